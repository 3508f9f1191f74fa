"""Tables of a log: one numpy row for each SEB, message, event and dependency, with its offset.

Rows have native byte order and the fields of the newest log version, so that they are the same for
logs of all versions; fields that an older version lacks have the values of `MISSING`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Table
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.declaration import EventType, newest_layout
from rewritelog.formats.bgtrace.records import LISTS, BlockRecords, Records, records_of

_SEB: list[Any] = [("pe", np.int64), ("seb", np.int64)]


def _native(dtype: np.dtype[Any]) -> list[Any]:
    """Return the dtype fields of a record in native byte order, with names as byte strings."""
    fields: list[Any] = []
    for name in dtype.names or ():
        kind = dtype[name]
        if kind.kind == "V" and kind.subdtype is None:
            fields.append((name, f"S{kind.itemsize}"))
        else:
            fields.append((name, kind.newbyteorder("=")))
    return fields


_COLUMNS = {"event": "log_event", "events": "log_events"}
"""Columns that are not called as the format calls what they hold: an event is a kernel's name."""

SEB_ROW = np.dtype(
    [
        *_SEB,
        ("offset", np.int64),
        *_native(newest_layout().seb),
        *((_COLUMNS.get(name, name), np.int64) for name in LISTS),
    ]
)
"""A SEB: its location, its fields, and the lengths of its lists. Times are in seconds."""

MESSAGE_ROW = np.dtype(
    [*_SEB, ("message", np.int64), ("offset", np.int64), *_native(newest_layout().message)]
)
"""A message: its SEB, its index in the SEB, its file offset and its fields."""

EVENT_ROW = np.dtype(
    [
        *_SEB,
        ("log_event", np.int64),
        ("offset", np.int64),
        *_native(newest_layout().event)[:-1],
        ("index", np.int64),
        ("text", object),
    ]
)
"""A log event: `index` points into a Projections log (−1: none), `text` is the text of a mark."""

DEPENDENCY_ROW = np.dtype([*_SEB, ("forward", np.bool_), ("other", np.int64)])
"""A dependency of a SEB on the SEB `other` of its timeline; if `forward`, of `other` on it."""


@dataclass(frozen=True)
class Tables:
    """The records of some timelines, in the order of the file."""

    sebs: Table
    messages: Table
    log_events: Table
    dependencies: Table


def _rows(block: BlockRecords, records: Records, dtype: np.dtype[Any], list_name: str) -> Table:
    """Return rows with the locations of records, and with all columns they have of the dtype."""
    rows = np.zeros(len(records), dtype=dtype)
    rows["pe"], rows["seb"] = block.pe[records.seb], block.index[records.seb]
    rows["offset"] = records.at + block.loaded.block.offset
    for name in rows.dtype.names or ():
        if name in (records.newest.names or ()):
            rows[name] = records[name]
    if list_name:
        rows[_COLUMNS.get(list_name, list_name)] = (
            np.arange(len(records)) - block.first(f"{list_name}s")[records.seb]
        )
    return rows


def seb_rows(block: BlockRecords) -> Table:
    """Return the SEBs of a block as rows of `SEB_ROW`."""
    rows = _rows(block, block.sebs, SEB_ROW, "")
    for name in LISTS:
        rows[_COLUMNS.get(name, name)] = block.walked[name]
    return rows


def message_rows(block: BlockRecords) -> Table:
    """Return the messages of a block as rows of `MESSAGE_ROW`."""
    return _rows(block, block.messages, MESSAGE_ROW, "message")


def event_rows(block: BlockRecords) -> Table:
    """Return the log events of a block as rows of `EVENT_ROW`."""
    events = block.events
    rows = _rows(block, events, EVENT_ROW, "event")
    pointers = events["type"] == EventType.PROJECTIONS
    rows["index"] = np.where(pointers, events["number"], -1)
    texts = events.at + events.dtype.itemsize
    rows["text"] = [
        None if pointer else events.buffer[at : at + length].tobytes()
        for pointer, at, length in zip(
            pointers.tolist(), texts.tolist(), events["number"].tolist(), strict=True
        )
    ]
    return rows


def dependency_rows(block: BlockRecords) -> Table:
    """Return the dependencies of a block, the backward ones first, as rows of `DEPENDENCY_ROW`."""
    tables = []
    for forward, records in enumerate((block.backward, block.forward)):
        rows = np.zeros(len(records), dtype=DEPENDENCY_ROW)
        rows["pe"], rows["seb"] = block.pe[records.seb], block.index[records.seb]
        rows["forward"], rows["other"] = forward, records["other"]
        tables.append(rows)
    return np.concatenate(tables)


MAKERS = {
    "sebs": seb_rows,
    "messages": message_rows,
    "log_events": event_rows,
    "dependencies": dependency_rows,
}
"""What makes each of the `Tables` of a block."""


def tables_of(parts: Iterable[LoadedBlock], names: Iterable[str] = MAKERS) -> list[Table]:
    """Return some of the `Tables` of parts in their order; raise `DamagedLogError` for damage."""
    makers = [MAKERS[name] for name in names]
    made = [[make(block) for make in makers] for block in map(records_of, parts)]
    return [np.concatenate(of_parts) for of_parts in zip(*made, strict=True)]
