"""What must hold of a block of timelines, whatever bytes it has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from blocks import loaded_from, params_of, rewritten
from numpy.typing import NDArray

from rewritelog.arrays import Bytes, Floats, Ints
from rewritelog.errors import DamagedLogError
from rewritelog.formats.bgtrace.blocks import LoadedBlock, Pieces, walk
from rewritelog.formats.bgtrace.declaration import COUNT_BYTES, Layout
from rewritelog.formats.bgtrace.records import BlockRecords, records_of

_EPSILON = 2.0**-52


@dataclass(frozen=True)
class Tools:
    """The layout of a block, and how it is rewritten."""

    lay: Layout
    factor: float
    keep_recv: bool


@dataclass(frozen=True)
class MadeRecords:
    """Param records of SEBs that may be there, ordered by piece and SEB."""

    piece: Ints
    seb: Ints
    seconds: Floats


class BrokenPromiseError(Exception):
    """What did not hold."""


def check_block(buf: Bytes, borders: Ints, tools: Tools, records: MadeRecords) -> str | None:
    """Walk and rewrite a block in place; return its fault, None for a whole one.

    Raise `BrokenPromiseError` for what does not hold.
    """
    starts, ends = borders[:-1].copy(), borders[1:].copy()
    counts = buf[starts[:, None] + np.arange(COUNT_BYTES)].view(tools.lay.count)[:, 0]
    if (counts < 0).any() or (counts > len(buf)).any():
        return "count"
    loaded = loaded_from(tools.lay, buf, starts + COUNT_BYTES, ends, counts.astype(np.int64))
    old = loaded_from(tools.lay, buf.copy(), *loaded.pieces[:3])
    fault = _fault_of_walk(loaded)
    params = params_of(records.piece, records.seb)
    try:
        rewritten(loaded, params, records.seconds, tools.factor, keep_recv=tools.keep_recv)
    except DamagedLogError as error:
        _check_fault(error, loaded)
        return str(error)
    _hold(fault is None, "a rewrite reads what the walk does not")
    _check_rewrite(records_of(old), records_of(loaded), keep_recv=tools.keep_recv)
    return None


def _hold(holds: bool | np.bool_, promise: str) -> None:
    if not holds:
        raise BrokenPromiseError(f"not so: {promise}")


def _check_fault(error: DamagedLogError, loaded: LoadedBlock) -> None:
    place = error.location
    inside = 0 <= (place.offset_bytes or 0) <= len(loaded.buffer) and (place.seb or 0) >= 0
    _hold(inside, "a fault lies in the block")


def _fault_of_walk(loaded: LoadedBlock) -> DamagedLogError | None:
    """Walk the block whole and in parts, which has to come to the same."""
    try:
        block = records_of(loaded)
    except DamagedLogError as error:
        _check_fault(error, loaded)
        return error
    lay, pieces = loaded.layout.core, loaded.pieces
    least = len(block.messages) * int(lay["message_bytes"]) + len(block.sebs) * int(
        lay["seb_bytes"]
    )
    _hold(least <= len(loaded.buffer), "a walk counts what its bytes can hold")
    for start, end, count in zip(*(column.tolist() for column in pieces[:3]), strict=True):
        middle, half = _walked(loaded, start, (start + end) // 2, count)
        after, rest = _walked(loaded, middle, end, count - half)
        same = half + rest == count and after == end
        _hold(same, "the walk in parts comes to the same SEBs")
    return None


def _walked(loaded: LoadedBlock, start: int, end: int, count: int) -> tuple[int, int]:
    """Return where a walk of some SEBs ends, and how many of them are whole."""
    piece = Pieces(*(np.array([number]) for number in (start, end, count, 0)))
    pieces, _, _ = walk(loaded.buffer, piece, loaded.layout)
    return int(pieces.ends[0]), int(pieces.counts[0])


def _check_rewrite(old: BlockRecords, new: BlockRecords, *, keep_recv: bool) -> None:
    before, after = old.loaded.buffer, new.loaded.buffer
    changed = np.flatnonzero(before != after)
    touched = np.unique(np.searchsorted(old.sebs.at, changed, side="right") - 1)
    start, end = old.sebs["start_time"], old.sebs["end_time"]
    new_end, took = new.sebs["end_time"], new.sebs["exec_time"]
    _hold((end > start)[touched].all(), "a SEB without a duration stays as it is")
    finite = np.isfinite(new_end[touched]) & np.isfinite(took[touched])
    _hold(finite.all(), "times stay finite")
    rounding = 4 * _EPSILON * np.maximum(np.abs(start), np.abs(new_end))
    wrong = np.abs(took - (new_end - start)) > np.maximum(1e-6, rounding)
    _hold(not wrong[touched].any(), "execTime is endTime - startTime")
    was_touched = np.zeros(len(start), dtype=np.bool_)
    was_touched[touched] = True
    _check_messages(old, new, was_touched, keep_recv=keep_recv)
    _check_events(old, new, was_touched)
    _hide_times(old)
    _hide_times(new)
    _hold(np.array_equal(before, after), "a rewrite changes nothing but times")


def _check_messages(
    old: BlockRecords, new: BlockRecords, touched: NDArray[np.bool_], *, keep_recv: bool
) -> None:
    rows = np.flatnonzero(touched[old.messages.seb])
    seb = old.messages.seb[rows]
    start, end = old.sebs["start_time"][seb], old.sebs["end_time"][seb]
    new_end = new.sebs["end_time"][seb]
    sent, moved = (block.messages["send_time"][rows] for block in (old, new))
    received, arrived = (block.messages["recv_time"][rows] for block in (old, new))
    finite = np.isfinite(moved) & (np.isfinite(arrived) | ~np.isfinite(received))
    _hold(finite.all(), "times of messages stay finite")
    left = (start <= sent) & (sent <= end) & ~((start <= moved) & (moved <= new_end))
    _hold(not left.any(), "a message stays in its SEB")
    early = (arrived < moved) & (keep_recv | ~(received < sent))
    _hold(not early.any(), "a message is not received before it is sent")
    same, was, now = seb[1:] == seb[:-1], np.diff(sent), np.diff(moved)
    turned = same & (((was >= 0) & (now < 0)) | ((was <= 0) & (now > 0)))
    _hold(not turned.any(), "messages keep their order")


def _check_events(old: BlockRecords, new: BlockRecords, touched: NDArray[np.bool_]) -> None:
    rows = np.flatnonzero(touched[old.events.seb])
    seb = old.events.seb[rows]
    start = old.sebs["start_time"][seb]
    duration = old.sebs["end_time"][seb] - start
    limit = new.sebs["end_time"][seb] - start
    time, moved = (block.events["r_time"][rows] for block in (old, new))
    _hold((np.isfinite(moved) | ~np.isfinite(time)).all(), "times of events stay finite")
    _hold((np.isnan(moved) | ~np.isnan(time)).all(), "what is no number stays none")
    left = (time >= 0) & (time <= duration) & ~((moved >= 0) & (moved <= limit))
    _hold(not left.any(), "an event stays in its SEB")


def _hide_times(block: BlockRecords) -> None:
    """Put 0 for all times that a rewrite may change."""
    kinds = (
        (block.sebs, ("exec_time", "end_time")),
        (block.messages, ("send_time", "recv_time")),
        (block.events, ("r_time",)),
    )
    for records, names in kinds:
        for name in names:
            records.put(name, np.zeros(len(records)))
