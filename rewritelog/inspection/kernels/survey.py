"""The survey of a block in one pass: counts, sums by name, brackets, time span."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from rewritelog.arrays import Bytes, Floats, Ints
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.brackets import find_brackets, slack
from rewritelog.kernels.names import FULL, NameTable, add_name
from rewritelog.kernels.raw import load_f8, load_i4
from rewritelog.kernels.sums import add_to
from rewritelog.kernels.walk import (
    BYTES_LEFT_OVER,
    FAULT_PIECE,
    FAULT_SEB,
    Pieces,
    seb_parts,
    set_fault,
)
from tracebigsim.compiled import inner, kernel


class SurveyCount(IntEnum):
    """The counts of a survey."""

    SEBS = 0
    MESSAGES = 1
    EVENTS = 2
    BACKWARD = 3
    FORWARD = 4
    UNCLOSED = 5
    ZERO_LENGTH = 6
    NOT_FINITE = 7
    BRACKETS = 8
    IRREGULAR = 9


EARLIEST, LATEST = 0, 1

DONE, NAMES_FULL, FAULTY = 0, -1, -2

PIECE, SEB, AT = 0, 1, 2
STATE_SIZE = 3
"""The state of a survey: piece, SEB in it and offset; initially 0, 0 and −1."""


class Survey(NamedTuple):
    """The results so far; the arrays of names grow between calls."""

    counts: Ints
    """Shape (SurveyCount,)."""
    span: Floats
    """The earliest start and the latest end in seconds."""
    names: NameTable
    name_sebs: Ints
    """The number of SEBs of each name, shape (capacity,)."""
    name_seconds: Floats
    """High and low part of the durations of each name's SEBs, shape (capacity, 1, 2)."""


@inner
def add_brackets(
    buf: Bytes,
    events: int,
    lay: KernelLayout,
    start: float,
    end: float,
    table: Floats,
    counts: Ints,
) -> None:
    """Count the brackets of a SEB; in an unclosed one only their order is checked."""
    duration = end - start if end >= start else np.inf
    brackets = find_brackets(buf, events, lay, duration, slack(start, end), table)
    if brackets < 0:
        counts[SurveyCount.IRREGULAR] += 1
    else:
        counts[SurveyCount.BRACKETS] += brackets


@inner
def add_times(start: float, end: float, name: int, found: Survey) -> None:
    """Count a SEB by its times, and add its duration to that of its name."""
    if not np.isfinite(start) or not np.isfinite(end):
        found.counts[SurveyCount.NOT_FINITE] += 1
        return
    found.span[EARLIEST] = min(found.span[EARLIEST], start)
    if end < start:
        found.counts[SurveyCount.UNCLOSED] += 1
        return
    found.span[LATEST] = max(found.span[LATEST], end)
    if end == start:
        found.counts[SurveyCount.ZERO_LENGTH] += 1
    add_to(found.name_seconds, name, 0, end - start)


@inner
def add_counts(
    buf: Bytes, at: int, events: int, backward: int, lay: KernelLayout, counts: Ints
) -> None:
    """Add the lengths of the lists of a SEB."""
    links = load_i4(buf, backward, lay.swap)
    forward = backward + lay.count_bytes + links * lay.dependency_bytes
    counts[SurveyCount.SEBS] += 1
    counts[SurveyCount.MESSAGES] += load_i4(buf, at + lay.seb_bytes, lay.swap)
    counts[SurveyCount.EVENTS] += load_i4(buf, events, lay.swap)
    counts[SurveyCount.BACKWARD] += links
    counts[SurveyCount.FORWARD] += load_i4(buf, forward, lay.swap)


@inner
def survey_piece(
    buf: Bytes,
    end_at: int,
    count: int,
    lay: KernelLayout,
    found: Survey,
    state: Ints,
    table: Floats,
    fault: Ints,
) -> int:
    """Survey a piece from `state` on; return an outcome, or the columns that the table needs."""
    while state[SEB] < count:
        at = state[AT]
        events, backward, following = seb_parts(buf, at, end_at, lay, fault)
        if following < 0:
            fault[FAULT_SEB] = state[SEB]
            return FAULTY
        columns = load_i4(buf, events, lay.swap) + 3
        if columns > table.shape[1]:
            return columns
        name = add_name(buf, at + lay.seb_name, found.names)
        if name == FULL:
            return NAMES_FULL
        start = load_f8(buf, at + lay.seb_start_time, lay.swap)
        end = load_f8(buf, at + lay.seb_end_time, lay.swap)
        found.name_sebs[name] += 1
        add_counts(buf, at, events, backward, lay, found.counts)
        add_times(start, end, name, found)
        add_brackets(buf, events, lay, start, end, table, found.counts)
        state[SEB] += 1
        state[AT] = following
    if state[AT] != end_at:
        fault[FAULT_SEB] = count
        set_fault(fault, BYTES_LEFT_OVER, state[AT], end_at - state[AT])
        return FAULTY
    return DONE


@inner
def survey_pieces(
    buf: Bytes,
    pieces: Pieces,
    lay: KernelLayout,
    found: Survey,
    state: Ints,
    table: Floats,
    fault: Ints,
) -> int:
    """Survey all pieces from `state` on; return what `survey_piece` returns."""
    while state[PIECE] < len(pieces.starts):
        piece = state[PIECE]
        fault[FAULT_PIECE] = piece
        if state[AT] < 0:
            state[SEB] = 0
            state[AT] = pieces.starts[piece]
        outcome = survey_piece(
            buf, pieces.ends[piece], pieces.counts[piece], lay, found, state, table, fault
        )
        if outcome != DONE:
            return outcome
        state[PIECE] += 1
        state[AT] = -1
    return DONE


@kernel(ns_per_byte=550)
def survey(
    buf: Bytes, pieces: Pieces, lay: KernelLayout, found: Survey, state: Ints, fault: Ints
) -> int:
    """Add the SEBs of a block to `found`.

    Return `DONE`, `NAMES_FULL` if `found` has to grow before the survey continues from `state`, or
    `FAULTY` if a SEB is damaged, as described by `fault`.
    """
    table = np.empty((3, 64))
    outcome = survey_pieces(buf, pieces, lay, found, state, table, fault)
    while outcome > 0:
        table = np.empty((3, outcome))
        outcome = survey_pieces(buf, pieces, lay, found, state, table, fault)
    return outcome
