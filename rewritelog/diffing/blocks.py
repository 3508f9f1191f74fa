"""The comparison of one pair of blocks: load, compare, and format the first differences."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rewritelog.diffing.kernels import interface as kernels
from rewritelog.diffing.kernels.diff import compare
from rewritelog.diffing.kernels.interface import MOST_NAMES, Field
from rewritelog.diffing.pairs import LoadedPair, Pair, PairLoader
from rewritelog.diffing.totals import MOST_ROWS, FirstDifference, Totals, rows_of
from rewritelog.diffing.values import value_text
from rewritelog.format import Layout
from rewritelog.kernels import walk
from rewritelog.kernels.names import names_of, new_table
from rewritelog.logs.blocks import LoadedBlock, raise_fault
from rewritelog.logs.logset import LogSet
from rewritelog.logs.params import ParamFolder, read_params
from rewritelog.text import printable

_NO_BYTES = np.zeros(0, dtype=np.uint8)
_NONE = np.zeros(0, dtype=np.int64)

NO_RECORD = ""
"""The event name of brackets without a param record."""


@dataclass(frozen=True)
class DiffTask:
    """What is needed to compare any pair of blocks."""

    a: LogSet
    b: LogSet
    params: ParamFolder | None
    rules: kernels.Rules
    block_bytes: int


_local = threading.local()


def compare_pair(task: DiffTask, pair: Pair) -> Totals:
    """Compare a pair of blocks; raise `DamagedLogError` if a side is damaged."""
    if not hasattr(_local, "loader"):
        _local.loader = PairLoader()
    totals = Totals()
    for loaded in _local.loader.load(task.a, task.b, pair, task.block_bytes):
        totals.add(compare_loaded(task, loaded))
    return totals


def compare_loaded(task: DiffTask, loaded: LoadedPair) -> Totals:
    """Compare a loaded pair; raise `DamagedLogError` if a side is damaged."""
    side_a = _side(loaded.a, task.a.layout, len(loaded.pes))
    side_b = _side(loaded.b, task.b.layout, len(loaded.pes))
    names, events, faulty = _records(task, loaded)
    pairs = int(np.minimum(side_a.pieces.counts, side_b.pieces.counts).sum())
    found = _no_differences(side_a, side_b, pairs, len(names))
    state = np.zeros(kernels.STATE_SIZE, dtype=np.int64)
    state[kernels.AT_A] = -1
    faults = [np.zeros(walk.FAULT_SIZE, dtype=np.int64) for _ in range(2)]
    compare(side_a, side_b, task.rules, events, found, state, *faults)
    for fault, block in zip(faults, (loaded.a, loaded.b), strict=True):
        if block is not None:
            raise_fault(fault, block)
    totals = _totals(found, state, names)
    totals.faulty_lines = faulty
    totals.examples = _examples(found, side_a, side_b, task, loaded)
    return totals


def _side(block: LoadedBlock | None, layout: Layout, pieces: int) -> kernels.Side:
    """Return a side in the form that the kernel takes; a missing one has pieces without SEBs."""
    if block is not None:
        return kernels.Side(block.buffer, block.pieces, layout.kernel)
    none = np.zeros(pieces, dtype=np.int64)
    return kernels.Side(_NO_BYTES.copy(), walk.Pieces(none, none, none, none), layout.kernel)


def _records(
    task: DiffTask, loaded: LoadedPair
) -> tuple[list[str | None], kernels.RecordedEvents, int]:
    """Return the names of events, the param records of the block, and the malformed lines.

    The first name is that of brackets without a record, the last that of events beyond `MOST_ROWS`.
    """
    many = len(loaded.pes)
    if task.params is None or loaded.a is None:
        return (
            [NO_RECORD, None],
            kernels.RecordedEvents(np.zeros(many + 1, np.int64), _NONE, _NONE),
            0,
        )
    records, notes = read_params(task.params, loaded.a, strict=False)
    begins = np.searchsorted(records.piece, np.arange(many + 1)).astype(np.int64)
    rows = np.minimum(records.event + 1, MOST_ROWS)
    names = [NO_RECORD, *(printable(name) for name in records.events[: MOST_ROWS - 1]), None]
    return names, kernels.RecordedEvents(begins, records.seb, rows.astype(np.int64)), notes.faulty


def _durations(rows: int, pairs: int) -> kernels.Durations:
    extremes = np.empty((rows, 2))
    extremes[:, kernels.LOWEST], extremes[:, kernels.HIGHEST] = np.inf, -np.inf
    counts, keys = np.zeros((rows, 3), dtype=np.int64), np.empty(pairs, dtype=np.int64)
    return kernels.Durations(counts, np.zeros((rows, 2, 2)), extremes, keys)


def _no_differences(
    a: kernels.Side, b: kernels.Side, pairs: int, events: int
) -> kernels.Differences:
    """Return empty differences; a bracket has two events, or is a whole SEB without any."""
    brackets = pairs + min(len(a.buf), len(b.buf)) // (2 * a.lay.event_bytes)
    return kernels.Differences(
        changed=np.zeros(len(Field), dtype=np.int64),
        firsts=np.zeros((len(Field), 5), dtype=np.int64),
        counts=np.zeros((2, len(kernels.DiffCount)), dtype=np.int64),
        common=np.zeros(len(kernels.CommonCount), dtype=np.int64),
        shifts=np.zeros(2),
        names=new_table(a.lay.name_bytes, MOST_NAMES),
        by_name=_durations(MOST_NAMES + 1, pairs),
        by_event=_durations(events, brackets),
    )


def _totals(
    found: kernels.Differences, state: NDArray[np.int64], events: list[str | None]
) -> Totals:
    names: list[str | None] = [printable(name) for name in names_of(found.names)]
    names += [None] * (MOST_NAMES + 1 - len(names))
    return Totals(
        changed=found.changed,
        counts=found.counts,
        common=found.common,
        earlier_s=float(found.shifts[kernels.LOWEST]),
        later_s=float(found.shifts[kernels.HIGHEST]),
        by_name=rows_of(names, found.by_name, int(state[kernels.PAIRS])),
        by_event=rows_of(events, found.by_event, int(state[kernels.BRACKET_PAIRS])),
    )


def _examples(
    found: kernels.Differences, a: kernels.Side, b: kernels.Side, task: DiffTask, loaded: LoadedPair
) -> dict[Field, FirstDifference]:
    """Return the first difference of each field that differs, with the values on both sides."""
    examples = {}
    for number in np.flatnonzero(found.changed):
        kind = Field(int(number))
        piece, seb, item, at, bt = (int(n) for n in found.firsts[kind])
        old = value_text(a.buf, task.a.layout, kind, at)
        new = value_text(b.buf, task.b.layout, kind, bt)
        pe = int(loaded.pes[piece])
        examples[kind] = FirstDifference(pe, seb, item if item >= 0 else None, old, new)
    return examples
