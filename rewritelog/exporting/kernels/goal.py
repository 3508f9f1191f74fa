"""GOAL schedules: SEBs as rows, one for each line, and the text of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rewritelog.arrays import Bytes, Ints
from rewritelog.exporting.programs import Steps
from tracebigsim.compiled import inner, kernel

LINE_BYTES = 160
"""The most bytes of a line: two labels with four numbers each, or one label and five numbers."""

COMPUTATIONS, SENDS, RECEIVES = range(3)
"""Kinds of operations."""
_NS_PER_S = 1e9
_TAGS = (1 << 32) - 1
"""The number of tags that can be used: the last one means any tag."""


def _bytes(text: str) -> Bytes:
    return np.frombuffer(text.encode("ascii"), dtype=np.uint8)


class Words(NamedTuple):
    """The constant parts of lines."""

    verbs: tuple[Bytes, Bytes, Bytes]
    """By kind of operation."""
    directions: tuple[Bytes, Bytes]
    """The prepositions of sends and of receives."""
    tag: Bytes
    cpu: Bytes
    requires: tuple[Bytes, Bytes]
    """For a dependency on the end of an operation, or on its beginning."""


WORDS = Words(
    (_bytes(": calc "), _bytes(": send "), _bytes(": recv ")),
    (_bytes("b to "), _bytes("b from ")),
    _bytes(" tag "),
    _bytes(" cpu "),
    (_bytes(" requires "), _bytes(" irequires ")),
)

_WORKER, _UNDERSCORE, _MESSAGE, _PART, _SENT, _RECEIVED = (ord(c) for c in "w_mcsr")
_ZERO, _NEWLINE = ord("0"), ord("\n")
END, MESSAGE, PART, SENT, RECEIVED = range(5)
"""Kinds of labels: end of a SEB, sending point of a message, computation, send and receive."""


@inner
def put_number(out: Bytes, at: int, number: int) -> int:
    """Write a non-negative number; return the offset after it."""
    digits, left = 1, number // 10
    while left > 0:
        digits, left = digits + 1, left // 10
    for k in range(at + digits - 1, at - 1, -1):
        out[k] = _ZERO + number % 10
        number //= 10
    return at + digits


@inner
def put_word(out: Bytes, at: int, word: Bytes) -> int:
    """Write a word; return the offset after it."""
    for k in range(len(word)):
        out[at + k] = word[k]
    return at + len(word)


@inner
def put_label(out: Bytes, at: int, kind: int, worker: int, seb: int, k: int, j: int) -> int:
    """Write the label of an operation; return the offset after it.

    `seb` is a message's number in a label of that kind; `k` counts the messages of a SEB, and `j`
    the receivers of one.
    """
    out[at] = _WORKER
    at = put_number(out, at + 1, worker)
    out[at] = _UNDERSCORE
    at += 1
    if kind == MESSAGE:
        out[at] = _MESSAGE
        at += 1
    at = put_number(out, at, seb)
    if kind in (END, MESSAGE):
        return at
    out[at] = _UNDERSCORE
    out[at + 1] = _PART if kind == PART else _SENT if kind == SENT else _RECEIVED
    at += 2
    if kind == RECEIVED:
        return at
    at = put_number(out, at, k)
    if kind == SENT:
        out[at] = _UNDERSCORE
        at = put_number(out, at + 1, j)
    return at


class Operations(NamedTuple):
    """Operations as columns: their labels, which `put_label` describes, and what they do."""

    label: Ints
    seb: Ints
    k: Ints
    j: Ints
    kind: Ints
    amount: Ints
    """The nanoseconds of a computation, or the bytes of a message."""
    node: Ints
    """The other node of a message."""
    tag: Ints
    cpu: Ints


class Dependencies(NamedTuple):
    """Dependencies: the label that requires, and the one that has to have ended or begun."""

    label: Ints
    seb: Ints
    k: Ints
    j: Ints
    begun: Ints
    on_label: Ints
    on_worker: Ints
    on_seb: Ints
    on_k: Ints
    on_j: Ints


OPERATION_ROW = np.dtype([(name, np.int64) for name in Operations._fields])
DEPENDENCY_ROW = np.dtype([(name, np.int64) for name in Dependencies._fields])
"""Rows keep the fields of an operation or dependency together; kernels take their columns."""


@inner
def operate(
    rows: Operations,
    at: int,
    label: int,
    seb: int,
    k: int,
    j: int,
    kind: int,
    amount: int,
    node: int,
    tag: int,
    cpu: int,
) -> int:
    """Add an operation; return the row after it."""
    rows.label[at], rows.seb[at], rows.k[at], rows.j[at] = label, seb, k, j
    rows.kind[at], rows.amount[at] = kind, amount
    rows.node[at], rows.tag[at], rows.cpu[at] = node, tag, cpu
    return at + 1


@inner
def require(
    rows: Dependencies,
    at: int,
    label: int,
    seb: int,
    k: int,
    j: int,
    begun: bool,
    on_label: int,
    on_worker: int,
    on_seb: int,
    on_k: int,
    on_j: int,
) -> int:
    """Add a dependency; return the row after it."""
    rows.label[at], rows.seb[at], rows.k[at], rows.j[at], rows.begun[at] = label, seb, k, j, begun
    rows.on_label[at], rows.on_worker[at], rows.on_seb[at] = on_label, on_worker, on_seb
    rows.on_k[at], rows.on_j[at] = on_k, on_j
    return at + 1


@inner
def tag_of(number: int, pe: int, workers: int) -> int:
    """Return the tag of a message, which is unique among the messages of its node."""
    return (number * workers + pe % workers) % _TAGS


@inner
def nanoseconds(seconds: float) -> int:
    """Return a time in whole nanoseconds."""
    return int(np.rint(seconds * _NS_PER_S))


@inner
def require_entry(
    steps: Steps, step: int, workers: int, label: int, k: int, rows: Dependencies, at: int
) -> int:
    """Add the requirements of the first computation of a SEB; return the row after the last."""
    worker, seb, source = steps.pe % workers, steps.seb[step], steps.cause_pe[step]
    if source >= 0:
        on_label, on_worker, on_seb = RECEIVED, worker, seb
        if source == steps.pe:
            on_label, on_seb = END, steps.cause_seb[step]
        elif source // workers == steps.pe // workers:
            on_label, on_worker, on_seb = MESSAGE, source % workers, steps.cause_number[step]
        at = require(rows, at, label, seb, k, 0, False, on_label, on_worker, on_seb, 0, 0)
    for row in range(steps.first_required[step], steps.first_required[step + 1]):
        at = require(rows, at, label, seb, k, 0, False, END, worker, steps.required[row], 0, 0)
    return at


@inner
def require_begun(
    steps: Steps,
    step: int,
    workers: int,
    since: int,
    label: int,
    k: int,
    rows: Dependencies,
    at: int,
) -> int:
    """Add that a computation requires that the sends since the previous one have begun."""
    worker, seb, own = steps.pe % workers, steps.seb[step], steps.pe // workers
    first = steps.first_send[step]
    for send in range(since, first + k):
        j = 0
        for row in range(steps.first_receiver[send], steps.first_receiver[send + 1]):
            if steps.receiver_pe[row] // workers != own:
                at = require(rows, at, label, seb, k, 0, True, SENT, worker, seb, send - first, j)
                j += 1
    return at


@inner
def has_local_receiver(steps: Steps, send: int, workers: int) -> bool:
    """Return whether a message starts a SEB of another worker of its own node."""
    for row in range(steps.first_receiver[send], steps.first_receiver[send + 1]):
        to = steps.receiver_pe[row]
        if to != steps.pe and to // workers == steps.pe // workers:
            return True
    return False


@kernel
def lay_out(
    steps: Steps, workers: int, operations: Operations, dependencies: Dependencies
) -> tuple[int, int]:
    """Fill in the operations and dependencies of SEBs; return the numbers of both."""
    at = dep = 0
    worker, own = steps.pe % workers, steps.pe // workers
    messenger = workers + worker
    for step in range(len(steps.seb)):
        seb, source = steps.seb[step], steps.cause_pe[step]
        if source >= 0 and source // workers != own:
            tag = tag_of(steps.cause_number[step], source, workers)
            at = operate(
                operations,
                at,
                RECEIVED,
                seb,
                0,
                0,
                RECEIVES,
                steps.cause_bytes[step],
                source // workers,
                tag,
                messenger,
            )
        first = steps.first_send[step]
        sends = steps.first_send[step + 1] - first
        reached, current, since = 0, -1, first
        for k in range(sends + 1):
            until = nanoseconds(steps.duration_s[step] if k == sends else steps.offset_s[first + k])
            if k == sends or current < 0 or until != reached:
                label = END if k == sends else PART
                spent = max(0, until - reached)
                at = operate(operations, at, label, seb, k, 0, COMPUTATIONS, spent, 0, 0, worker)
                if current < 0:
                    dep = require_entry(steps, step, workers, label, k, dependencies, dep)
                else:
                    dep = require(
                        dependencies, dep, label, seb, k, 0, False, PART, worker, seb, current, 0
                    )
                dep = require_begun(steps, step, workers, since, label, k, dependencies, dep)
                reached, current, since = max(reached, until), k, first + k
            if k == sends:
                break
            number = steps.number[first + k]
            if has_local_receiver(steps, first + k, workers):
                at = operate(operations, at, MESSAGE, number, 0, 0, COMPUTATIONS, 0, 0, 0, worker)
                dep = require(
                    dependencies, dep, MESSAGE, number, 0, 0, False, PART, worker, seb, current, 0
                )
            tag, j = tag_of(number, steps.pe, workers), 0
            for row in range(steps.first_receiver[first + k], steps.first_receiver[first + k + 1]):
                node = steps.receiver_pe[row] // workers
                if node != own:
                    at = operate(
                        operations,
                        at,
                        SENT,
                        seb,
                        k,
                        j,
                        SENDS,
                        steps.size_bytes[first + k],
                        node,
                        tag,
                        messenger,
                    )
                    dep = require(
                        dependencies, dep, SENT, seb, k, j, False, PART, worker, seb, current, 0
                    )
                    j += 1
    return at, dep


@kernel(ns_per_byte=1_500)
def write_operations(rows: Operations, count: int, worker: int, words: Words, out: Bytes) -> int:
    """Write the text of operations; return its length in bytes."""
    at = 0
    for row in range(count):
        kind = rows.kind[row]
        at = put_label(out, at, rows.label[row], worker, rows.seb[row], rows.k[row], rows.j[row])
        at = put_word(out, at, words.verbs[kind])
        at = put_number(out, at, rows.amount[row])
        if kind != COMPUTATIONS:
            at = put_word(out, at, words.directions[kind - SENDS])
            at = put_number(out, at, rows.node[row])
            at = put_word(out, at, words.tag)
            at = put_number(out, at, rows.tag[row])
        at = put_word(out, at, words.cpu)
        at = put_number(out, at, rows.cpu[row])
        out[at] = _NEWLINE
        at += 1
    return at


@kernel(ns_per_byte=1_000)
def write_dependencies(
    rows: Dependencies, count: int, worker: int, words: Words, out: Bytes
) -> int:
    """Write the text of dependencies; return its length in bytes."""
    at = 0
    for row in range(count):
        at = put_label(out, at, rows.label[row], worker, rows.seb[row], rows.k[row], rows.j[row])
        at = put_word(out, at, words.requires[rows.begun[row]])
        at = put_label(
            out,
            at,
            rows.on_label[row],
            rows.on_worker[row],
            rows.on_seb[row],
            rows.on_k[row],
            rows.on_j[row],
        )
        out[at] = _NEWLINE
        at += 1
    return at
