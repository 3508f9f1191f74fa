"""The writing of synthetic timelines: copies of the SEBs of rows, with the other fields filled in.

`program` determines what the SEBs do and when; times become seconds here.
"""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Bytes, Ints
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.raw import store_f8
from rewritelog.synthesis.kernels.program import (
    EVENT_PARAMS,
    EXTRA_COUNTER,
    ROW_BACKWARD,
    ROW_EVENT,
    ROW_FIRST_SEND,
    ROW_FORWARD,
    ROW_ROOT,
    ROW_SENDS,
    ROW_STARTED,
    ROW_TIME_1,
    ROW_TIME_2,
    SyntheticProgram,
    event_param,
    first_number,
    has_extra,
    key_of,
    latency_ns,
    neighbour,
    regions,
    send_ns,
    send_offset,
    start_ns,
)
from tracebigsim.compiled import inner, kernel

(POSITION, EXTRA, INDEX, EFFECTIVE_NS, TEXT, MESSAGES, RECORDS) = range(7)
STATE_SIZE = 7
"""The state of writing a timeline: the next position over all iterations, whether an extra SEB
precedes it, the next SEB index, the last effective receive time, the text written, and counts."""

LINE_BYTES = 256
"""The most bytes of a param line."""

_NS_PER_S = 1e9
_TO_EVENT = np.frombuffer(b" TRACEBIGSIM: event:{ ", dtype=np.uint8)
_TO_SEQNO = np.frombuffer(b" } seqno: { ", dtype=np.uint8)
_TO_PARAMS = np.frombuffer(b" }    params:{ ", dtype=np.uint8)
_AFTER_PARAM = np.frombuffer(b".000000 ", dtype=np.uint8)
_LINE_END = np.frombuffer(b"}\n", dtype=np.uint8)


@inner
def store_integer(buf: Bytes, at: int, value: int, size: int, big: bool) -> None:
    """Write an integer of `size` bytes at `at`."""
    for k in range(size):
        buf[at + (size - 1 - k if big else k)] = (value >> (8 * k)) & 255


@inner
def write_times(
    buf: Bytes, at: int, lay: KernelLayout, start: int, duration: int, unclosed: bool
) -> None:
    """Write the start and end of a SEB, given in ns."""
    begin, end = start / _NS_PER_S, (start + duration) / _NS_PER_S
    store_f8(buf, at + lay.seb_start_time, begin, lay.swap)
    store_f8(buf, at + lay.seb_exec_time, 0.0 if unclosed else end - begin, lay.swap)
    store_f8(buf, at + lay.seb_end_time, -1.0 if unclosed else end, lay.swap)


@inner
def starting_message(
    program: SyntheticProgram, pe: int, iteration: int, started: int
) -> tuple[int, int, int]:
    """Return sender, number and receive time in ns of a SEB's starting message."""
    if iteration == 0:
        return 0, started - 1, send_ns(program, 0, 0, 0, started - 1)
    slot = program.starters[started, 0]
    which = program.starters[started, 1]
    send = program.starters[started, 2]
    direction = send % program.directions
    sender = neighbour(program, pe, direction, -1)
    number = first_number(program, sender) + (iteration - 1) * program.sends + send
    if sender == 0 and iteration == 1 and slot == 0:
        which += program.broadcasts
    sent = send_ns(program, sender, iteration - 1, slot, which)
    return sender, number, sent + latency_ns(program, sender, pe, direction)


@inner
def write_starter(
    buf: Bytes,
    at: int,
    program: SyntheticProgram,
    lay: KernelLayout,
    pe: int,
    row: int,
    iteration: int,
    start: int,
    state: Ints,
) -> None:
    """Write the starting message of a SEB and its receive times."""
    started = program.rows[row, ROW_STARTED]
    depends = False
    if state[POSITION] == 0 and state[EXTRA] == 0:
        state[EFFECTIVE_NS] = 0
    elif program.rows[row, ROW_ROOT] == 1:
        state[EFFECTIVE_NS] = start
    elif started >= 0:
        sender, number, came = starting_message(program, pe, iteration, started)
        store_integer(buf, at + lay.seb_src_pe, sender, 4, program.big)
        store_integer(buf, at + lay.seb_msg_id, number, 4, program.big)
        state[EFFECTIVE_NS] = came
    else:
        depends = True
    effective = state[EFFECTIVE_NS] / _NS_PER_S
    store_f8(buf, at + lay.seb_recv_time, -1.0 if depends else effective, lay.swap)
    store_f8(buf, at + lay.seb_eff_recv_time, effective, lay.swap)


@inner
def write_messages(
    buf: Bytes,
    at: int,
    program: SyntheticProgram,
    lay: KernelLayout,
    pe: int,
    row: int,
    iteration: int,
    start: int,
    begin: int,
    middle: int,
    tail: int,
) -> int:
    """Write the messages of a SEB; return their number."""
    to_all = program.broadcasts if row == program.slots + 1 else 0
    count = to_all + program.rows[row, ROW_SENDS]
    place = at + lay.seb_bytes + lay.count_bytes
    for which in range(count):
        sent = start + send_offset(begin, middle, tail, which, count)
        number, came = which, sent
        if which >= to_all:
            send = program.rows[row, ROW_FIRST_SEND] + which - to_all
            direction = send % program.directions
            receiver = neighbour(program, pe, direction, 1)
            number = first_number(program, pe) + iteration * program.sends + send
            came += latency_ns(program, pe, receiver, direction)
            node, worker = receiver // program.workers, receiver % program.workers
            store_integer(buf, place + lay.message_dst_node, node, 4, program.big)
            store_integer(buf, place + lay.message_tid, worker, 2, program.big)
        store_integer(buf, place + lay.message_msg_id, number, 4, program.big)
        store_f8(buf, place + lay.message_send_time, sent / _NS_PER_S, lay.swap)
        store_f8(buf, place + lay.message_recv_time, came / _NS_PER_S, lay.swap)
        place += lay.message_bytes
    return count


@inner
def write_event_times(
    buf: Bytes, at: int, rows: Ints, row: int, swap: bool, start: int, begin: int, middle: int
) -> None:
    """Write the times of a SEB's events: the bounds of the bracket, or half-way through."""
    if rows[row, ROW_TIME_1] > 0:
        offset = begin if rows[row, ROW_EVENT] >= 0 else begin // 2
        time = (start + offset) / _NS_PER_S - start / _NS_PER_S
        store_f8(buf, at + rows[row, ROW_TIME_1], time, swap)
    if rows[row, ROW_TIME_2] > 0:
        time = (start + begin + middle) / _NS_PER_S - start / _NS_PER_S
        store_f8(buf, at + rows[row, ROW_TIME_2], time, swap)


@inner
def write_dependencies(
    buf: Bytes, end: int, rows: Ints, row: int, big: bool, index: int, following: int
) -> int:
    """Write the dependencies at the end of a SEB; return its end without unused ones.

    `end` is the end with all forward dependencies, of which only `following` SEBs exist.
    """
    forward = rows[row, ROW_FORWARD]
    left = min(forward, following)
    offset = end - 4 * forward - 4
    for k in range(rows[row, ROW_BACKWARD]):
        store_integer(buf, offset - 4 * (k + 1), index - 1 - k, 4, big)
    store_integer(buf, offset, left, 4, big)
    for k in range(left):
        store_integer(buf, offset + 4 * (k + 1), index + 1 + k, 4, big)
    return int(end - 4 * (forward - left))


@inner
def put_bytes(text: Bytes, at: int, source: Bytes) -> int:
    """Write bytes; return their end."""
    for k in range(len(source)):
        text[at + k] = source[k]
    return at + len(source)


@inner
def put_digits(text: Bytes, at: int, value: int) -> int:
    """Write a non-negative number in decimal; return its end."""
    end, rest = at + 1, value // 10
    while rest > 0:
        end += 1
        rest //= 10
    for k in range(end - 1, at - 1, -1):
        text[k] = 48 + value % 10
        value //= 10
    return end


@inner
def put_line(
    text: Bytes, at: int, program: SyntheticProgram, event: int, key: np.uint64, index: int
) -> int:
    """Write the param line of a bracket; return its end."""
    at = put_bytes(text, put_digits(text, at, index), _TO_EVENT)
    for k in range(program.names.shape[1]):
        if program.names[event, k] != 0:
            text[at] = program.names[event, k]
            at += 1
    at = put_bytes(text, put_digits(text, put_bytes(text, at, _TO_SEQNO), index), _TO_PARAMS)
    for which in range(program.events[event, EVENT_PARAMS]):
        value = event_param(program.events, event, which, key)
        at = put_bytes(text, put_digits(text, at, value), _AFTER_PARAM)
    return put_bytes(text, at, _LINE_END)


@inner
def write_seb(
    buf: Bytes,
    at: int,
    text: Bytes,
    program: SyntheticProgram,
    lay: KernelLayout,
    pe: int,
    total: int,
    state: Ints,
) -> int:
    """Write the next SEB of a timeline and its param line; return the end of the SEB."""
    position, index = state[POSITION], state[INDEX]
    extra = state[EXTRA] == 1
    iteration = (position - 1 if extra else position) // program.slots
    slot = program.slots if extra else position % program.slots
    row = program.slots + 1 if pe == 0 and position == 0 else slot
    key = key_of(program.seed, pe, EXTRA_COUNTER + iteration if extra else position)
    size = program.begins[row + 1] - program.begins[row]
    for k in range(size):
        buf[at + k] = program.bytes[program.begins[row] + k]
    begin, middle, tail = regions(program, row, key)
    start = start_ns(program, row, iteration, key)
    unclosed = pe == 0 and index == total - 1
    store_integer(buf, at + lay.seb_seqno, index, 4, program.big)
    write_times(buf, at, lay, start, begin + middle + tail, unclosed)
    write_starter(buf, at, program, lay, pe, row, iteration, start, state)
    state[MESSAGES] += write_messages(
        buf, at, program, lay, pe, row, iteration, start, begin, middle, tail
    )
    write_event_times(buf, at, program.rows, row, lay.swap, start, begin, middle)
    if program.rows[row, ROW_EVENT] >= 0:
        state[TEXT] = put_line(text, state[TEXT], program, program.rows[row, ROW_EVENT], key, index)
        state[RECORDS] += 1
    following = max(program.length - position - 1, 0)
    return write_dependencies(buf, at + size, program.rows, row, program.big, index, following)


@kernel
def write_sebs(
    buf: Bytes,
    text: Bytes,
    program: SyntheticProgram,
    lay: KernelLayout,
    pe: int,
    total: int,
    state: Ints,
) -> int:
    """Write the next SEBs of a timeline into `buf`; return their size in bytes.

    Param lines are written to `text` from `state[TEXT]` on. It stops when either array has no room
    for the largest SEB, or at the end of the timeline, when `state[INDEX]` is `total`.
    """
    at = 0
    while (
        state[INDEX] < total
        and at + program.largest <= len(buf)
        and state[TEXT] + LINE_BYTES <= len(text)
    ):
        at = write_seb(buf, at, text, program, lay, pe, total, state)
        state[INDEX] += 1
        if state[EXTRA] == 1:
            state[EXTRA] = 0
            continue
        state[POSITION] += 1
        if state[POSITION] % program.slots == 0:
            iteration = state[POSITION] // program.slots - 1
            state[EXTRA] = 1 if has_extra(program, pe, iteration) else 0
    return at


@kernel
def timeline_sebs(program: SyntheticProgram, pe: int) -> int:
    """Return the number of SEBs in the timeline of a PE, including extra ones."""
    extras = 0
    for iteration in range(program.length // program.slots):
        extras += has_extra(program, pe, iteration)
    return program.length + extras
