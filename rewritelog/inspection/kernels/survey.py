"""What a log holds, counted in one pass: sums by name, brackets, time span, odd SEBs."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Bytes, Floats, Ints
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.brackets import find_brackets, slack
from rewritelog.kernels.names import name_length, slot_of
from rewritelog.kernels.raw import load_f8, load_i4
from rewritelog.kernels.sums import add_to
from rewritelog.kernels.walk import (
    BYTES_LEFT_OVER,
    FAULT_PIECE,
    FAULT_SEB,
    Pieces,
    blame,
    seb_parts,
)
from tracebigsim.compiled import inner, kernel


class SurveyCount(IntEnum):
    """What a survey counts."""

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


FIGURES = len(SurveyCount)
(_SEBS, _MESSAGES, _EVENTS, _BACKWARD, _FORWARD, _UNCLOSED, _ZERO_LENGTH, _NOT_FINITE, _BRACKETS,
 _IRREGULAR) = (int(figure) for figure in SurveyCount)  # fmt: skip

EARLIEST, LATEST = 0, 1

DONE, NAMES_FULL = 0, -1
FAULTY = -2

PIECE, SEB, AT = 0, 1, 2
STATE_SIZE = 3
"""Where a survey stands: piece, SEB in it and byte; a new one has 0, 0 and −1."""


class Survey(NamedTuple):
    """What is known so far; the arrays grow between calls."""

    figures: Ints
    """Shape (FIGURES,)."""
    span: Floats
    """The earliest start and the latest end in seconds."""
    names: Bytes
    """Padded with NULs, shape (capacity, bytes of a name)."""
    slots: NDArray[np.int32]
    """The hash table over `names`, longer than its capacity."""
    counts: Ints
    """SEBs of each name, shape (capacity + 1,); the last entry is the number of names."""
    seconds: Floats
    """The durations of each name's SEBs, as high and low part; shape (capacity, 2)."""


@inner
def name_of(
    buf: Bytes, at: int, most: int, names: Bytes, slots: NDArray[np.int32], counts: Ints
) -> int:
    """Return the index of the name at `at`, a new one where it was not known, or `NAMES_FULL`."""
    slot = slot_of(buf, at, names, slots, most)
    if slots[slot] == 0:
        known = counts[len(names)]
        if known == len(names):
            return NAMES_FULL
        for k in range(name_length(buf, at, most)):
            names[known, k] = buf[at + k]
        counts[len(names)] = known + 1
        slots[slot] = known + 1
    return int(slots[slot]) - 1


@inner
def add_brackets(
    buf: Bytes, events: int, lay: KernelLayout, start: float, end: float, table: Floats,
    figures: Ints,
) -> None:  # fmt: skip
    """Count the brackets of a SEB; in one that was never closed only their order can be checked."""
    duration = end - start if end >= start else np.inf
    brackets = find_brackets(buf, events, lay, duration, slack(start, end), table)
    if brackets < 0:
        figures[_IRREGULAR] += 1
    else:
        figures[_BRACKETS] += brackets


@inner
def add_times(
    start: float, end: float, name: int, figures: Ints, span: Floats, seconds: Floats
) -> None:
    """Count a SEB by its duration and add that to its name's."""
    if not np.isfinite(start) or not np.isfinite(end):
        figures[_NOT_FINITE] += 1
        return
    span[EARLIEST] = min(span[EARLIEST], start)
    if end < start:
        figures[_UNCLOSED] += 1
        return
    span[LATEST] = max(span[LATEST], end)
    if end == start:
        figures[_ZERO_LENGTH] += 1
    add_to(seconds, name, 0, end - start)


@inner
def add_counts(
    buf: Bytes, at: int, events: int, backward: int, lay: KernelLayout, figures: Ints
) -> None:
    """Add the numbers of what a SEB holds."""
    links = load_i4(buf, backward, lay.swap)
    forward = backward + lay.count_bytes + links * lay.dependency_bytes
    figures[_SEBS] += 1
    figures[_MESSAGES] += load_i4(buf, at + lay.seb_bytes, lay.swap)
    figures[_EVENTS] += load_i4(buf, events, lay.swap)
    figures[_BACKWARD] += links
    figures[_FORWARD] += load_i4(buf, forward, lay.swap)


@inner
def survey_piece(
    buf: Bytes, end_at: int, count: int, lay: KernelLayout, found: Survey, state: Ints,
    table: Floats, fault: Ints,
) -> int:  # fmt: skip
    """Survey a piece from `state` on: `DONE`, or why not, or how many columns the table lacks."""
    while state[SEB] < count:
        at = state[AT]
        events, backward, following = seb_parts(buf, at, end_at, lay, fault)
        if following < 0:
            fault[FAULT_SEB] = state[SEB]
            return FAULTY
        columns = load_i4(buf, events, lay.swap) + 3
        if columns > table.shape[1]:
            return columns
        name = name_of(
            buf, at + lay.seb_name, lay.name_bytes, found.names, found.slots, found.counts
        )
        if name < 0:
            return NAMES_FULL
        start = load_f8(buf, at + lay.seb_start_time, lay.swap)
        end = load_f8(buf, at + lay.seb_end_time, lay.swap)
        found.counts[name] += 1
        add_counts(buf, at, events, backward, lay, found.figures)
        add_times(start, end, name, found.figures, found.span, found.seconds)
        add_brackets(buf, events, lay, start, end, table, found.figures)
        state[SEB] += 1
        state[AT] = following
    if state[AT] != end_at:
        fault[FAULT_SEB] = count
        blame(fault, BYTES_LEFT_OVER, state[AT], end_at - state[AT])
        return FAULTY
    return DONE


@inner
def survey_pieces(
    buf: Bytes, pieces: Pieces, lay: KernelLayout, found: Survey, state: Ints, table: Floats,
    fault: Ints,
) -> int:  # fmt: skip
    """Survey all pieces from `state` on; return what `survey_piece` does."""
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


@kernel
def survey(
    buf: Bytes, pieces: Pieces, lay: KernelLayout, found: Survey, state: Ints, fault: Ints
) -> int:
    """Add what the SEBs of a block hold to `found`.

    Return `DONE`, `NAMES_FULL` where `found` has to grow before the survey goes on from `state`,
    or `FAULTY` where a SEB is damaged: `fault` says why.
    """
    table = np.empty((3, 64))
    outcome = survey_pieces(buf, pieces, lay, found, state, table, fault)
    while outcome > 0:
        table = np.empty((3, outcome))
        outcome = survey_pieces(buf, pieces, lay, found, state, table, fault)
    return outcome


@kernel
def fill_slots(names: Bytes, slots: NDArray[np.int32], known: int) -> None:
    """Enter the first `known` names into an empty hash table."""
    flat = names.reshape(-1)
    width = names.shape[1]
    for k in range(known):
        slots[slot_of(flat, k * width, names, slots, width)] = k + 1
