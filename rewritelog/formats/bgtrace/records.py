"""The SEBs, messages, log events and dependencies of a block, as columns and as tables.

A walk in the compiled core finds where each record is, and checks every count. A column is one
field of all records of a kind, in native byte order and with the fields of the newest log version;
it is gathered from the bytes when it is first used. Fields that a log version lacks have the values
of `MISSING`. Brackets are the pairs of marks among the log events; names of SEBs are numbered.
A table has one numpy row for each record, with its offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace

from rewritelog.arrays import Bytes, Flags, Floats, Ints, Table, occurrences_before, spans
from rewritelog.core import NumberedTexts, core
from rewritelog.formats.bgtrace.blocks import LoadedBlock, Pieces, fault_error, walk
from rewritelog.formats.bgtrace.declaration import (
    MISSING,
    NAME_BYTES,
    EventType,
    FaultHandler,
    newest_layout,
    raise_first,
)
from rewritelog.running.locks import cached_property
from rewritelog.text import count_text

EXEC_SLACK_S = 1e-6
"""The tolerance of execTime = endTime − startTime (FORMAT 7, rule 4)."""

ROUNDING = 4.0 * np.finfo(np.float64).eps
"""The largest error of a SEB's duration, relative to its times."""


class Records(Struct, frozen=True, dict=True):
    """Records of one kind, in the order of the buffer; `records[name]` is the column of a field."""

    buffer: Bytes
    dtype: np.dtype[Any]
    """The fixed part of a record as it is in the buffer."""
    newest: np.dtype[Any]
    """The fixed part of a record of the newest log version, in native byte order."""
    seb: Ints
    """The SEB of each record, counted over the whole block."""
    at: Ints
    """The offset of each record in the buffer."""

    def __len__(self) -> int:
        return len(self.at)

    @cached_property
    def _columns(self) -> dict[str, Table]:
        return {}

    def __getitem__(self, name: str) -> Table:
        """Return the column of a field, shape (records,) or (records, elements)."""
        if name not in self._columns:
            self._columns[name] = self._column(name)
        return self._columns[name]

    def _column(self, name: str) -> Table:
        dtype, names = self.newest[name], self.dtype.names or ()
        if name in names and self.dtype[name].shape == dtype.shape:
            raw = self.raw(name)
            return names_of(raw) if raw.dtype.kind == "V" else raw
        column = np.empty(len(self), dtype)
        column[...] = MISSING[name]
        if name in names:
            raw = self.raw(name)
            column[:, : raw.shape[1]] = raw
        return column

    def raw(self, name: str) -> Table:
        """Return a field as this log version has it, in native byte order."""
        kind, field, width, number, swap = _place(self.dtype, name)
        column = np.empty(len(self), kind)
        core.gather(
            self.buffer, self.at, field, width, number, swap, column.view(np.uint8).reshape(-1)
        )
        return column

    def take(self, rows: Ints | list[int]) -> Records:
        """Return the records with these indices."""
        return replace(self, seb=self.seb[rows], at=self.at[rows])

    def after(self, length: int) -> Bytes:
        """Return the bytes after each record, shape (records, length); they have to be there."""
        raw = np.empty((len(self), length), dtype=np.uint8)
        behind = self.dtype.itemsize
        core.gather(self.buffer, self.at, behind, length, 1, False, raw.reshape(-1))
        return raw

    def put(self, name: str, values: Table, rows: Ints | None = None) -> None:
        """Write a field of all records, or of those whose indices are given, into the buffer."""
        kind, field, width, number, swap = _place(self.dtype, name)
        column = np.ascontiguousarray(values, dtype=kind.base)
        at = self.at if rows is None else self.at[rows]
        if column.shape != (len(at), *kind.shape):
            raise ValueError(f"{name}: {column.shape} values for {len(at)} records")
        core.scatter(self.buffer, at, field, width, number, swap, column.view(np.uint8).reshape(-1))
        self._columns.pop(name, None)


def _place(dtype: np.dtype[Any], name: str) -> tuple[np.dtype[Any], int, int, int, bool]:
    """Return a field's native dtype, offset, size, size of each number, and whether it swaps."""
    kind, field = dtype[name], offset_of(dtype, name)
    return kind.newbyteorder("="), field, kind.itemsize, kind.base.itemsize, not kind.base.isnative


def offset_of(dtype: np.dtype[Any], name: str) -> int:
    """Return the offset of a field in a record, in bytes."""
    fields: Any = dtype.fields
    return int(fields[name][1])


IRREGULAR: int = core.IRREGULAR
"""In place of a number of brackets, for a SEB whose marks do not pair up in order within it."""


class Brackets(Struct, frozen=True):
    """The brackets of SEBs, in the order of the buffer; times in seconds since the SEB's start."""

    counts: Ints
    """The number of brackets of each SEB, or `IRREGULAR`."""
    seb: Ints
    """The SEB of each bracket, counted over the whole block."""
    times: Floats
    """The start and the end of each bracket, shape (brackets, 2)."""

    def __len__(self) -> int:
        return len(self.seb)

    @property
    def starts(self) -> Floats:
        """The start of each bracket."""
        return self.times[:, 0]

    @property
    def ends(self) -> Floats:
        """The end of each bracket."""
        return self.times[:, 1]

    @property
    def number(self) -> Ints:
        """The index of each bracket in its SEB."""
        return occurrences_before(self.seb)


class BlockRecords(Struct, frozen=True, dict=True):
    """The records of a block, as far as it could be walked."""

    loaded: LoadedBlock
    pieces: Pieces
    """The whole SEBs of each piece of the block."""
    walked: Table
    """The core's `walked_seb` of each SEB."""

    @cached_property
    def sebs(self) -> Records:
        """The SEBs."""
        at, newest = np.ascontiguousarray(self.walked["at"]), newest_layout().seb
        return Records(self.loaded.buffer, self.loaded.layout.seb, newest, np.arange(len(at)), at)

    @cached_property
    def names(self) -> tuple[list[bytes], Ints]:
        """The distinct names of SEBs in order of appearance, and each SEB's index in them."""
        return distinct_names(self.sebs)

    @cached_property
    def seconds(self) -> Floats:
        """The duration of each SEB.

        NaN for one that ends before it starts, or has a start or an end that is not finite.
        """
        start, end = self.sebs["start_time"], self.sebs["end_time"]
        with np.errstate(over="ignore", invalid="ignore"):
            closed = np.isfinite(start) & np.isfinite(end) & (end >= start)
            return np.where(closed, end - start, np.nan)

    @property
    def exec_differs(self) -> Flags:
        """Whether the `execTime` of each SEB differs from its duration.

        An unclosed one has none, and differs unless it is the one in which the program exited: the
        last of its timeline, with an `execTime` of at most 0.
        """
        start, end, executed = (self.sebs[name] for name in ("start_time", "end_time", "exec_time"))
        exited = (end < start) & (self.index == self.loaded.totals[self.piece] - 1)
        with np.errstate(over="ignore", invalid="ignore"):
            differs = np.abs(executed - self.seconds) > EXEC_SLACK_S
        differs |= (end < start) & ~(exited & (executed <= EXEC_SLACK_S))
        return np.asarray(differs)

    @cached_property
    def messages(self) -> Records:
        """The messages."""
        return self._listed("messages", "message")

    @cached_property
    def events(self) -> Records:
        """Log events; `number` is the index into a Projections log, or the length of a text."""
        return self._listed("events", "event")

    @cached_property
    def backward(self) -> Records:
        """Backward dependencies; the field `other` is a SEB of the same timeline."""
        return self._listed("backward", "dependency")

    @cached_property
    def forward(self) -> Records:
        """Forward dependencies, like `backward`."""
        return self._listed("forward", "dependency")

    def _listed(self, name: str, kind: str) -> Records:
        seb, at = np.empty((2, int(self.walked[name].sum())), dtype=np.int64)
        buffer, lay = self.loaded.buffer, self.loaded.layout
        core.locate(buffer, self.walked, lay.core, list(LISTS).index(name), seb, at)
        return Records(buffer, getattr(lay, kind), getattr(newest_layout(), kind), seb, at)

    @cached_property
    def piece(self) -> Ints:
        """The piece of each SEB."""
        return np.repeat(np.arange(len(self.pieces.counts)), self.pieces.counts)

    @cached_property
    def pe(self) -> Ints:
        """The PE of each SEB."""
        return np.repeat(self.loaded.pes, self.pieces.counts)

    @cached_property
    def index(self) -> Ints:
        """The index of each SEB in its timeline."""
        return spans(self.pieces.firsts, self.pieces.counts)

    @cached_property
    def brackets(self) -> Brackets:
        """The brackets of the SEBs.

        A mark that rounding put after the end of its SEB counts as at the end. In a SEB that ends
        before it starts, or whose times are NaN, only the order of marks is checked.
        """
        buffer, lay = self.loaded.buffer, self.loaded.layout.core
        counts = np.empty(len(self.walked), dtype=np.int64)
        times = np.empty(int(self.walked["events"].sum()))
        closed = core.find_brackets(buffer, self.walked, lay, counts, times)
        sebs = np.repeat(np.arange(len(counts)), np.maximum(counts, 0))
        return Brackets(counts, sebs, times[: 2 * closed].reshape(-1, 2))

    def first(self, name: str) -> Ints:
        """Return the index of each SEB's first record in the list `name`, and the list's length.

        Shape (SEBs + 1,): the records of SEB k are those from element k to element k + 1.
        """
        return np.concatenate([[0], np.cumsum(self.walked[name])])


def records_of(loaded: LoadedBlock, on_faults: FaultHandler = raise_first) -> BlockRecords:
    """Walk a block and return its records; damage that the handler tolerates ends its piece.

    Raise `DamagedLogError` for damage that it does not tolerate.
    """
    pieces, sebs, faults = walk(loaded.buffer, loaded.pieces, loaded.layout)
    codes = faults[:, core.FAULT_CODE]
    damaged = (codes != core.OK) & (loaded.closed | (codes != core.BYTES_LEFT_OVER))
    for piece in np.flatnonzero(damaged).tolist():
        on_faults([fault_error(faults[piece], loaded)])
    return BlockRecords(loaded, pieces, sebs)


def names_of(fields: Table) -> Table:
    """Return name fields as byte strings that end before their first NUL."""
    width = fields.dtype.itemsize
    raw = np.ascontiguousarray(fields).view(np.uint8).reshape(len(fields), width)
    ended = np.maximum.accumulate(raw == 0, axis=1)
    names: Table = np.where(ended, np.uint8(0), raw).view(f"S{width}").reshape(len(fields))
    return names


def distinct_names(sebs: Records) -> tuple[list[bytes], Ints]:
    """Return the distinct names of SEBs in order of appearance, and each SEB's index in them."""
    at = sebs.at + offset_of(sebs.dtype, "name")
    names = NumberedTexts.of(sebs.buffer, at, np.full(len(at), NAME_BYTES), are_names=True)
    return names_of(sebs.take(names.first).raw("name")).tolist(), names.numbers


_BEGINNINGS = (
    b"AMPI_",
    b"ATAReq_wait\0",
    b"RECV_RESUME\0",
    b"SPLIT_RESUME\0",
    b"PROBE_RESUME\0",
    b"IPROBE_RESUME\0",
    b"msgep\0",
    b"GroupReduce\0",
    b"start-broadcast\0",
    b"split-broadcast\0",
    b"end-broadcast\0",
)
"""Prefixes of names, each followed by a NUL, of SEBs whose durations TraceR ignores."""


def tracer_replaces(name: bytes) -> bool:
    """Return whether TraceR ignores the duration of SEBs with this name."""
    return (name + b"\0").startswith(_BEGINNINGS)


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


LISTS = {
    "messages": "message",
    "events": "log event",
    "backward": "backward dependency",
    "forward": "forward dependency",
}
"""The lists of a SEB after its fixed part, in their order, and what each is a list of."""

_COLUMNS = {"event": "log_event", "events": "log_events"}
"""Columns with another name than in the format, since *event* is the name of a kernel elsewhere."""

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
"""A log event: `index` points into a Projections log (−1: none), `text` is a mark or a print."""

DEPENDENCY_ROW = np.dtype([*_SEB, ("forward", np.bool_), ("other", np.int64)])
"""A dependency of a SEB on the SEB `other` of its timeline; if `forward`, of `other` on it."""


class Tables(Struct, frozen=True, eq=False):
    """The records of some timelines, in the order of the file."""

    sebs: Table
    messages: Table
    log_events: Table
    dependencies: Table

    def __repr__(self) -> str:
        nouns = ("SEB", "message", "log event", "dependency")
        counts = map(count_text, map(len, asdict(self).values()), nouns)
        return f"<Tables: {', '.join(counts)}>"


def _rows(block: BlockRecords, records: Records, dtype: np.dtype[Any], list_name: str) -> Table:
    """Return a row for each record: its location, and each field that the dtype has too."""
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
"""The functions that make the `Tables` of a block."""


def tables_of(parts: Iterable[LoadedBlock], names: Iterable[str] = MAKERS) -> list[Table]:
    """Return the named `Tables`, each of all parts in order; raise `DamagedLogError` for damage."""
    makers = [MAKERS[name] for name in names]
    made = [[make(block) for make in makers] for block in map(records_of, parts)]
    return [np.concatenate(of_parts) for of_parts in zip(*made, strict=True)]
