"""Tables of a log: one numpy row for each SEB, message, event and dependency, with its offset.

Rows have native byte order and the fields of the newest log version, so that they are the same for
logs of all versions; fields that an older version lacks have the values of `MISSING`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Bytes, Table
from rewritelog.format import EventType, layout
from rewritelog.format.declaration import COUNT_BYTES, LOG_VERSIONS, MISSING
from rewritelog.kernels import walk
from rewritelog.logs.blocks import LoadedBlock, raise_fault

_NEWEST = layout(LOG_VERSIONS[-1], "little")
_SEB: list[Any] = [("pe", np.int64), ("seb", np.int64)]

CONTENTS = ("messages", "events", "backward", "forward")
"""The lists of a SEB after its fixed part."""


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


SEB_ROW = np.dtype(
    [
        *_SEB,
        ("offset", np.int64),
        *_native(_NEWEST.seb),
        *((name, np.int64) for name in CONTENTS),
    ]
)
"""A SEB: its location, its fields, and the lengths of its lists. Times are in seconds."""

MESSAGE_ROW = np.dtype(
    [*_SEB, ("message", np.int64), ("offset", np.int64), *_native(_NEWEST.message)]
)
"""A message: its SEB, its index in the SEB, its file offset and its fields."""

EVENT_ROW = np.dtype(
    [
        *_SEB,
        ("event", np.int64),
        ("offset", np.int64),
        *_native(_NEWEST.event),
        ("index", np.int64),
        ("text", object),
    ]
)
"""A log event: `index` points into a Projections log (−1: none), `text` is the text of a mark."""

DEPENDENCY_ROW = np.dtype([*_SEB, ("forward", np.bool_), ("other", np.int64)])
"""A dependency of a SEB on the SEB `other` of its timeline; if `forward`, of `other` on it."""

_ROWS = {
    "sebs": SEB_ROW,
    "messages": MESSAGE_ROW,
    "events": EVENT_ROW,
    "dependencies": DEPENDENCY_ROW,
}


@dataclass(frozen=True)
class Tables:
    """The records of some timelines, in the order of the file."""

    sebs: Table
    messages: Table
    events: Table
    dependencies: Table


def tables_of(loaded: LoadedBlock) -> Tables:
    """Return the tables of a block; raise `DamagedLogError` if it is damaged."""
    fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
    pieces, lay = loaded.pieces, loaded.layout.kernel
    totals = walk.tally(loaded.buffer, pieces.starts, pieces.ends, pieces.counts, lay, fault)
    raise_fault(fault, loaded)
    return join_tables([_Piece(loaded, k).tables(totals[k]) for k in range(len(totals))])


def join_tables(parts: list[Tables]) -> Tables:
    """Return the concatenation of tables."""
    return Tables(
        **{
            name: np.concatenate([np.empty(0, row), *(getattr(part, name) for part in parts)])
            for name, row in _ROWS.items()
        }
    )


@dataclass(frozen=True)
class _Piece:
    """Converts the records of one piece of a block to rows."""

    loaded: LoadedBlock
    index: int

    def tables(self, totals: Table) -> Tables:
        """Return the tables of the piece, given the counts of `walk.tally`."""
        pieces, k = self.loaded.pieces, self.index
        count = int(pieces.counts[k])
        sebs = np.empty((count, 5), dtype=np.int64)
        messages, events = (np.empty((int(n), 3), dtype=np.int64) for n in totals[:2])
        backward, forward = (np.empty((int(n), 2), dtype=np.int64) for n in totals[2:])
        walk.locate(
            self.loaded.buffer,
            pieces.starts[k],
            pieces.ends[k],
            count,
            self.loaded.layout.kernel,
            np.zeros(walk.FAULT_SIZE, dtype=np.int64),
            sebs,
            messages,
            events,
            backward,
            forward,
        )
        return Tables(
            sebs=self._sebs(sebs),
            messages=self._messages(messages),
            events=self._events(events),
            dependencies=self._dependencies(backward, forward),
        )

    def _rows(self, dtype: np.dtype[Any], found: Table, source: np.dtype[Any]) -> Table:
        """Return rows for records; `found` has their SEBs first, and their offsets last."""
        rows = np.zeros(len(found), dtype=dtype)
        rows["pe"] = self.loaded.pes[self.index]
        rows["seb"] = found[:, 0] + self.loaded.pieces.firsts[self.index]
        rows["offset"] = found[:, -1] + self.loaded.block.offset
        _copy_fields(rows, gather(self.loaded.buffer, found[:, -1], source))
        return rows

    def _sebs(self, found: Table) -> Table:
        where = np.column_stack([np.arange(len(found)), found[:, 0]])
        rows = self._rows(SEB_ROW, where, self.loaded.layout.seb)
        for column, name in enumerate(CONTENTS, start=1):
            rows[name] = found[:, column]
        return rows

    def _messages(self, found: Table) -> Table:
        rows = self._rows(MESSAGE_ROW, found, self.loaded.layout.message)
        rows["message"] = found[:, 1]
        return rows

    def _events(self, found: Table) -> Table:
        buffer, lay = self.loaded.buffer, self.loaded.layout
        rows = self._rows(EVENT_ROW, found, lay.event)
        rows["event"] = found[:, 1]
        after = found[:, 2] + lay.event.itemsize
        numbers = gather(buffer, after, lay.count)
        pointers = rows["type"] == EventType.PROJECTIONS
        rows["index"] = np.where(pointers, numbers, -1)
        rows["text"] = [
            None if pointer else buffer[at : at + int(length)].tobytes()
            for pointer, at, length in zip(pointers, after + COUNT_BYTES, numbers, strict=True)
        ]
        return rows

    def _dependencies(self, backward: Table, forward: Table) -> Table:
        rows = np.empty(len(backward) + len(forward), dtype=DEPENDENCY_ROW)
        rows["pe"] = self.loaded.pes[self.index]
        rows["forward"] = np.arange(len(rows)) >= len(backward)
        found = np.concatenate([backward, forward])
        rows["seb"] = found[:, 0] + self.loaded.pieces.firsts[self.index]
        rows["other"] = found[:, 1]
        return rows


def gather(buffer: Bytes, offsets: Table, dtype: np.dtype[Any]) -> Table:
    """Return the records at the offsets, shape (offsets,)."""
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
