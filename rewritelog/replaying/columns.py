"""The columns of a block for replays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.core import core
from rewritelog.errors import DamagedLogError
from rewritelog.formats import ParamRecords
from rewritelog.formats.bgtrace.blocks import LoadedBlock, fault_error
from rewritelog.formats.bgtrace.records import (
    BlockRecords,
    NameTable,
    Records,
    offset_of,
    records_of,
)
from rewritelog.replaying.regions import BlockRegions

LEVELS = ("sebs", "messages", "backward", "regions")
"""What columns belong to; the name of each one begins with its level."""


@dataclass(frozen=True)
class BlockColumns:
    """The columns of a block or part."""

    columns: dict[str, Any]
    pes: Ints
    """The PE of each piece."""
    firsts: Ints
    """The index of each piece's first SEB in its timeline."""
    counts: Ints
    """The number of rows of each level in each piece, shape (pieces, levels)."""
    latest_s: float
    names: list[bytes]
    events: tuple[str, ...]


def columns_of(
    loaded: LoadedBlock, params: ParamRecords, given_s: Floats, *, predicts: bool
) -> BlockColumns:
    """Return the columns of a block, given its param records and their predicted seconds.

    Raise `DamagedLogError` for damage, and for times that are not finite.
    """
    block = records_of(loaded)
    refuse_infinite(block)
    sebs, messages, backward = block.sebs, block.messages, block.backward
    start, end = sebs["start_time"], sebs["end_time"]
    duration_s = np.where(end >= start, np.maximum(sebs["exec_time"], 0.0), 0.0)
    regions = BlockRegions.of(block, params, given_s, duration_s, predicts=predicts)
    spent = regions.durations(duration_s)
    since_s = messages["send_time"] - start[messages.seb]
    sent = regions.split(messages.seb, since_s, duration_s)
    names = NameTable()
    depends = block.counts[:, 2] > 0
    columns = {
        "sebs.scaled_s": spent[0],
        "sebs.fixed_s": spent[1] if predicts else np.empty(0),
        "sebs.name": names.add(sebs).astype(np.int32),
        "sebs.follows": (block.index > 0)
        & (sebs["msg_id"] < 0)
        & (~depends | (sebs["recv_time"] != -1.0)),
        "sebs.source": sebs["src_pe"],
        "sebs.number": sebs["msg_id"],
        "sebs.messages": block.counts[:, 0].astype(np.int32),
        "sebs.dependencies": block.counts[:, 2].astype(np.int32),
        "sebs.cut": regions.cut,
        "messages.scaled_s": sent[0],
        "messages.fixed_s": sent[1] if predicts else np.empty(0),
        "messages.transit_s": messages["recv_time"] - messages["send_time"],
        "messages.size_bytes": messages["size"],
        "messages.number": messages["msg_id"],
        "messages.node": messages["dst_node"],
        "messages.worker": messages["tid"],
        "backward.other": backward["other"],
        **regions.columns(params.event),
    }
    of_rows = (np.arange(len(sebs)), messages.seb, backward.seb, regions.paired.seb)
    counts = [np.bincount(block.piece[of], minlength=len(block.walked)) for of in of_rows]
    return BlockColumns(
        columns,
        loaded.pes.copy(),
        loaded.pieces.firsts.copy(),
        np.column_stack(counts),
        float(end.max(initial=0.0)),
        names.names,
        params.events,
    )


def refuse_infinite(block: BlockRecords) -> None:
    """Raise `DamagedLogError` for the first SEB with a time that is not finite."""
    sebs, messages = block.sebs, block.messages
    times = np.stack([sebs[name] for name in ("start_time", "end_time", "exec_time")])
    wrong = np.flatnonzero(~np.isfinite(times).all(axis=0))[:1]
    sent = np.flatnonzero(~np.isfinite(messages["send_time"]))[:1]
    if len(wrong) and not (messages.seb[sent] < wrong).any():
        raise _refusal(block, core.TIME_NOT_FINITE, sebs, int(wrong[0]), "start_time")
    if len(sent):
        raise _refusal(block, core.SEND_NOT_FINITE, messages, int(sent[0]), "send_time")


def _refusal(
    block: BlockRecords, code: int, records: Records, row: int, field: str
) -> DamagedLogError:
    seb = records.seb[row]
    at = records.at[row] + offset_of(records.dtype, field)
    fault = np.array([code, at, 0, block.piece[seb], block.index[seb]])
    return fault_error(fault, block.loaded, absolute=True)
