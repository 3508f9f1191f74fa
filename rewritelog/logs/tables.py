"""Columns of a log: one numpy row for each SEB, message, event and dependency, with its offset.

Rows have native byte order and the fields of the newest log version, so that logs of all versions
look alike; what an older version lacks reads as FORMAT says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Bytes, Table
from rewritelog.format import Layout, layout
from rewritelog.format.declaration import LOG_VERSIONS, MISSING
from rewritelog.kernels import walk
from rewritelog.logs.blocks import LoadedBlock, raise_fault

_NEWEST = layout(LOG_VERSIONS[-1], "little")
_PLACE: list[Any] = [("pe", np.int64), ("seb", np.int64)]


def _native(dtype: np.dtype[Any]) -> list[Any]:
    """Return the fields of a record in native order, names as bytes up to the NUL."""
    fields: list[Any] = []
    for name in dtype.names or ():
        kind = dtype[name]
        if kind.kind == "V" and kind.subdtype is None:
            fields.append((name, f"S{kind.itemsize}"))
        else:
            fields.append((name, kind.newbyteorder("=")))
    return fields


SEB_ROW = np.dtype(
    [
        *_PLACE,
        ("offset", np.int64),
        *_native(_NEWEST.seb),
        *((name, np.int64) for name in ("messages", "events", "backward", "forward")),
    ]
)
"""A SEB: where it stands, its fields, and the numbers of what it holds. Times are in seconds."""

MESSAGE_ROW = np.dtype(
    [*_PLACE, ("message", np.int64), ("offset", np.int64), *_native(_NEWEST.message)]
)
"""A message: its SEB, its index in the SEB, its file offset and its fields."""

EVENT_ROW = np.dtype(
    [
        *_PLACE,
        ("event", np.int64),
        ("offset", np.int64),
        *_native(_NEWEST.event),
        ("index", np.int64),
        ("text", object),
    ]
)
"""An event: `index` points into a Projections log (−1: none), `text` is what a mark says."""

DEPENDENCY_ROW = np.dtype([*_PLACE, ("forward", np.bool_), ("other", np.int64)])
"""A dependency of a SEB on the SEB `other` of its timeline, or, forward, of `other` on it."""


@dataclass(frozen=True)
class Tables:
    """All that some timelines hold, in the order of the file."""

    sebs: Table
    messages: Table
    events: Table
    dependencies: Table


def tables_of(loaded: LoadedBlock, lay: Layout) -> Tables:
    """Return the tables of a block; raise `DamagedLogError` where its bytes cannot be walked."""
    fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
    pieces = loaded.pieces
    totals = walk.tally(loaded.buffer, pieces.starts, pieces.ends, pieces.counts, lay.kernel, fault)
    raise_fault(fault, loaded.file, loaded.block.offset, loaded.pes, pieces.firsts)
    parts = [_piece_tables(loaded, lay, piece, totals[piece]) for piece in range(len(totals))]
    return join_tables(parts)


def join_tables(parts: list[Tables]) -> Tables:
    """Return tables one after the other as one."""
    names = {"sebs": SEB_ROW, "messages": MESSAGE_ROW, "events": EVENT_ROW,
             "dependencies": DEPENDENCY_ROW}  # fmt: skip
    return Tables(
        **{
            name: np.concatenate([np.empty(0, row), *(getattr(part, name) for part in parts)])
            for name, row in names.items()
        }
    )


def _piece_tables(loaded: LoadedBlock, lay: Layout, piece: int, totals: Table) -> Tables:
    pieces = loaded.pieces
    count = int(pieces.counts[piece])
    sebs = np.empty((count, 5), dtype=np.int64)
    messages, events = (np.empty((int(n), 3), dtype=np.int64) for n in totals[:2])
    backward, forward = (np.empty((int(n), 2), dtype=np.int64) for n in totals[2:])
    fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
    walk.locate(
        loaded.buffer, pieces.starts[piece], pieces.ends[piece], count, lay.kernel, fault,
        sebs, messages, events, backward, forward,
    )  # fmt: skip
    first = int(pieces.firsts[piece])
    place = _Place(loaded, int(loaded.pes[piece]), first)
    return Tables(
        sebs=_seb_rows(place, lay, sebs),
        messages=_message_rows(place, lay, messages),
        events=_event_rows(place, lay, events),
        dependencies=_dependency_rows(place, backward, forward),
    )


@dataclass(frozen=True)
class _Place:
    loaded: LoadedBlock
    pe: int
    first_seb: int

    def rows(self, dtype: np.dtype[Any], found: Table, source: np.dtype[Any]) -> Table:
        """Return rows with place and fields filled in, for things that begin at offsets."""
        offsets = found[:, -1]
        rows = np.zeros(len(found), dtype=dtype)
        rows["pe"] = self.pe
        rows["seb"] = found[:, 0] + self.first_seb
        rows["offset"] = offsets + self.loaded.block.offset
        _copy_fields(rows, gather(self.loaded.buffer, offsets, source))
        return rows


def gather(buffer: Bytes, offsets: Table, dtype: np.dtype[Any]) -> Table:
    """Return the records that stand at the offsets, one row for each."""
    rows: Table = buffer[offsets[:, None] + np.arange(dtype.itemsize)].reshape(-1).view(dtype)
    return rows


def _copy_fields(rows: Table, records: Table) -> None:
    present = records.dtype.names or ()
    for name in rows.dtype.names or ():
        if name in present and rows.dtype[name].kind == "S":
            rows[name] = names_of(records[name])
        elif name in present:
            _copy_field(rows[name], records[name], MISSING.get(name))
        elif name in MISSING:
            rows[name] = MISSING[name]


def _copy_field(column: Table, values: Table, missing: Any) -> None:
    if column.shape != values.shape:
        column[:] = missing
        column[:, : values.shape[1]] = values
    else:
        column[:] = values


def names_of(fields: Table) -> Table:
    """Return name fields as byte strings that end before their first NUL."""
    width = fields.dtype.itemsize
    raw = np.ascontiguousarray(fields).view(np.uint8).reshape(len(fields), width)
    ended = np.maximum.accumulate(raw == 0, axis=1)
    names: Table = np.where(ended, np.uint8(0), raw).view(f"S{width}").reshape(len(fields))
    return names


def _seb_rows(place: _Place, lay: Layout, found: Table) -> Table:
    where = np.column_stack([np.arange(len(found)), found[:, 0]])
    rows = place.rows(SEB_ROW, where, lay.seb)
    for column, name in enumerate(("messages", "events", "backward", "forward"), start=1):
        rows[name] = found[:, column]
    return rows


def _message_rows(place: _Place, lay: Layout, found: Table) -> Table:
    rows = place.rows(MESSAGE_ROW, found, lay.message)
    rows["message"] = found[:, 1]
    return rows


def _event_rows(place: _Place, lay: Layout, found: Table) -> Table:
    rows = place.rows(EVENT_ROW, found, lay.event)
    rows["event"] = found[:, 1]
    rows["index"] = -1
    number = np.dtype("<i4" if lay.order == "little" else ">i4")
    after = found[:, 2] + lay.event.itemsize
    numbers = gather(place.loaded.buffer, after, number)
    pointers = rows["type"] == 1
    rows["index"][pointers] = numbers[pointers]
    texts = [
        None if pointer else place.loaded.buffer[at : at + int(length)].tobytes()
        for pointer, at, length in zip(pointers, after + number.itemsize, numbers, strict=True)
    ]
    rows["text"] = texts
    return rows


def _dependency_rows(place: _Place, backward: Table, forward: Table) -> Table:
    rows = np.empty(len(backward) + len(forward), dtype=DEPENDENCY_ROW)
    rows["pe"] = place.pe
    rows["forward"] = np.arange(len(rows)) >= len(backward)
    found = np.concatenate([backward, forward])
    rows["seb"] = found[:, 0] + place.first_seb
    rows["other"] = found[:, 1]
    return rows
