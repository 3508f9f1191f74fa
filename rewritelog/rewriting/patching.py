"""The rewrite of a loaded block in place, by the compiled core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Bytes, Flags, Floats, Ints, Table
from rewritelog.core import core
from rewritelog.formats import ParamRecords
from rewritelog.formats.bgtrace.blocks import LoadedBlock, raise_fault
from rewritelog.formats.bgtrace.records import NameTable, Records, tracer_replaces
from rewritelog.rewriting.counts import IRREGULAR, BlockCount

_OUTCOMES = {
    BlockCount.UNCLOSED: core.SEB_UNCLOSED,
    BlockCount.ZERO_LENGTH: core.SEB_ZERO_LENGTH,
    BlockCount.UNCHANGED: core.SEB_UNCHANGED,
    BlockCount.BY_DILATION: core.SEB_BY_DILATION,
    BlockCount.BY_EXACT: core.SEB_BY_EXACT,
    BlockCount.BY_MODEL: core.SEB_BY_MODEL,
}


_COUNTED = {
    BlockCount.MESSAGES: core.MESSAGES,
    BlockCount.MESSAGES_OUTSIDE: core.MESSAGES_OUTSIDE,
    BlockCount.RECV_RAISED: core.RECV_RAISED,
    BlockCount.BRACKETS: core.BRACKETS,
    BlockCount.BRACKETS_WITHOUT_RECORD: core.BRACKETS_WITHOUT_RECORD,
}


@dataclass(frozen=True)
class Patched:
    """What became of the SEBs and records of a block."""

    sebs: Records
    outcomes: Bytes
    """The outcome of each SEB, as the core says it."""
    records: Table
    """The param records, as the core's struct `param_record`."""
    counts: Ints
    """Shape (BlockCount,)."""

    def irregular(self, which: BlockCount) -> Ints:
        """Return the SEBs with a kind of irregularity, counted over the block."""
        return np.flatnonzero(self.outcomes & IRREGULAR[which])


def patch(
    loaded: LoadedBlock, records: Table, factors: Floats, sums: Floats, *, keep_recv: bool
) -> Patched:
    """Rewrite the SEBs of a block that have a duration, and add their durations to `sums`.

    `factors` has the dilation of each SEB; `sums` has the shape (pieces, DurationSum, 2). Raise
    `DamagedLogError` for a damaged block, and for times that are no numbers or become too large.
    """
    pieces, lay = loaded.pieces, loaded.layout
    smallest_event = lay.event.itemsize + lay.count.itemsize
    sebs = np.empty(int(pieces.counts.sum()), dtype=np.int64)
    outcomes = np.empty(len(sebs), dtype=np.uint8)
    counts = np.zeros(core.PATCH_COUNTS, dtype=np.int64)
    fault = np.zeros(core.FAULT_SIZE, dtype=np.int64)
    core.patch(
        loaded.buffer,
        *pieces,
        lay.core,
        factors,
        keep_recv,
        records,
        np.empty(3 * (2 + len(loaded.buffer) // smallest_event)),
        sebs,
        outcomes,
        counts,
        sums,
        fault,
    )
    raise_fault(fault, loaded)
    patched = Records(loaded.buffer, lay.seb, lay.seb, np.arange(len(sebs)), sebs)
    return Patched(patched, outcomes, records, _block_counts(patched, outcomes, counts))


def records_for(loaded: LoadedBlock, params: ParamRecords, given_s: Floats, exact: Flags) -> Table:
    """Return param records in the form that the core takes: `given_s` is NaN where it dilates."""
    pieces = loaded.pieces
    index = params.seb - pieces.firsts[params.piece]
    inside = (index >= 0) & (index < pieces.counts[params.piece])
    begins = np.cumsum(pieces.counts) - pieces.counts
    records = np.zeros(len(params), dtype=core.structs["param_record"])
    records["seb"] = np.where(inside, begins[params.piece] + index, -1)
    records["given_s"], records["exact"] = given_s, exact
    return records


def _block_counts(sebs: Records, outcomes: Bytes, counted: Ints) -> Ints:
    counts = np.zeros(len(BlockCount), dtype=np.int64)
    by_outcome = np.bincount(outcomes, minlength=core.SEB_OUTCOMES)
    each = np.arange(core.SEB_OUTCOMES)
    for which, outcome in _OUTCOMES.items():
        counts[which] = by_outcome[each % core.SEB_MARKS_IRREGULAR == outcome].sum()
    for which, flag in IRREGULAR.items():
        counts[which] = by_outcome[(each & flag) > 0].sum()
    for which, place in _COUNTED.items():
        counts[which] = counted[place]
    counts[BlockCount.SEBS] = len(sebs)
    predicted = np.flatnonzero(outcomes % core.SEB_MARKS_IRREGULAR >= core.SEB_BY_EXACT)
    counts[BlockCount.TRACER_REPLACES] = _replaced_by_tracer(sebs.take(predicted))
    return counts


def _replaced_by_tracer(sebs: Records) -> int:
    """Return how many SEBs have names for which TraceR ignores durations."""
    table = NameTable()
    numbers = np.bincount(table.add(sebs))
    return sum(
        count
        for name, count in zip(table.names, numbers.tolist(), strict=True)
        if tracer_replaces(name)
    )
