"""Log sets that are read in small blocks, and blocks in memory, without a log set."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from rewritelog import LogSet, open_logs
from rewritelog.arrays import Bytes, Floats, Ints
from rewritelog.formats import ParamRecords
from rewritelog.formats.bgtrace.blocks import Block, LoadedBlock, Pieces
from rewritelog.formats.bgtrace.declaration import Layout
from rewritelog.formats.bgtrace.heads import TimelineFile
from rewritelog.rewriting.block import Patched, patch, records_for
from rewritelog.rewriting.statistics import DurationSum


def in_blocks(folder: Path, block_bytes: int) -> LogSet:
    """Return the open log set of a folder, of which at most so much is read at a time."""
    return replace(open_logs(folder), block_bytes=block_bytes)


def loaded_from(lay: Layout, buffer: Bytes, starts: Ints, ends: Ints, counts: Ints) -> LoadedBlock:
    """Return a block whose pieces have their SEBs from `starts` to `ends`, one for each PE."""
    count, closed = len(starts), np.ones(len(starts), dtype=np.bool_)
    pes, borders = np.arange(count), np.append(starts, len(buffer))
    file = TimelineFile(Path("made"), 0, len(buffer), lay.order, b"", pes, borders, closed)
    return LoadedBlock(
        block=Block(0, 0, len(buffer), 0, count),
        file=file,
        buffer=buffer,
        layout=lay,
        pieces=Pieces(starts, ends, counts, np.zeros_like(counts)),
        pes=pes,
        totals=counts,
        closed=closed,
    )


def params_of(piece: Ints, seb: Ints) -> ParamRecords:
    """Return param records of SEBs, all of one event without parameters."""
    none = np.zeros(len(seb), dtype=np.int64)
    return ParamRecords(("k",), none, piece, seb, none, none, np.zeros(0))


def rewritten(
    loaded: LoadedBlock,
    params: ParamRecords,
    seconds: Floats,
    factor: float,
    *,
    keep_recv: bool = False,
) -> Patched:
    """Rewrite a block in place, given the predicted seconds of its records."""
    records = records_for(loaded, params, seconds, np.zeros(len(params), dtype=np.bool_))
    factors = np.full(int(loaded.pieces.counts.sum()), factor)
    sums = np.zeros((len(loaded.pes), len(DurationSum), 2))
    return patch(loaded, records, factors, sums, keep_recv=keep_recv)
