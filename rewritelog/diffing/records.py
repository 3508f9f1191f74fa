"""The comparison of one pair of blocks or units: columns side by side, field by field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from rewritelog.arrays import Flags, Ints, Table, spans
from rewritelog.core import core
from rewritelog.diffing.durations import Rows, add_rows, rows_by_event, rows_by_name
from rewritelog.formats import NO_RECORDS
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.declaration import EventType, Record, format_names, is_time
from rewritelog.formats.bgtrace.params import ParamFolder, read_params
from rewritelog.formats.bgtrace.records import (
    LISTS,
    ROUNDING,
    BlockRecords,
    Records,
    names_of,
    offset_of,
    records_of,
)
from rewritelog.text import printable

ABSENT = "absent"


class FieldKind(Enum):
    """The significance of a difference."""

    TIME = "time"
    """Times, which a rewrite changes."""
    CONTENT = "content"
    """Content, which a rewrite must not change."""
    MEANINGLESS = "meaningless"
    """Bytes that no reader interprets."""


class FirstDifference(NamedTuple):
    """The location where a field first differs, and its values on both sides."""

    pe: int
    seb: int
    item: int | None
    """The index of the message or log event in the SEB."""
    a: str
    b: str


class Change(Struct):
    """The number of records where a field differs; a list or text counts once per SEB or event."""

    noun: str
    """The records with the field, as `Totals.common` names them."""
    kind: FieldKind
    count: int
    first: FirstDifference | None
    """None if there is no difference."""


class Totals(Struct):
    """The differences in one block, or in all blocks."""

    compared: dict[str, Change] = {}
    """Every field that was compared, by its name in the documentation of the format."""
    sides: tuple[Counter[str], Counter[str]] = field(default_factory=lambda: (Counter(), Counter()))
    """What each side has: `SEBs`, the records of each list, `unclosed` and `irregular` SEBs."""
    common: Counter[str] = field(default_factory=Counter)
    """What both sides have: `SEBs`, `messages`, `log events`; messages `moved` within their SEBs or
    with other `transit` times; SEBs with `unpaired` brackets."""
    earlier_s: float = 0.0
    later_s: float = 0.0
    """The largest shifts of messages towards the start (negative) and the end of their SEBs."""
    by_name: Rows = {}
    by_event: Rows = {}
    malformed_lines: int = 0
    """The number of malformed lines of param files."""

    def add(self, other: Totals) -> None:
        """Add the totals of the next block."""
        for name, change in other.compared.items():
            known = self.compared.setdefault(name, replace(change, count=0))
            known.count += change.count
            known.first = known.first or change.first
        for side, other_side in zip(self.sides, other.sides, strict=True):
            side.update(other_side)
        self.common.update(other.common)
        self.earlier_s = min(self.earlier_s, other.earlier_s)
        self.later_s = max(self.later_s, other.later_s)
        self.malformed_lines += other.malformed_lines
        add_rows(self.by_name, other.by_name)
        add_rows(self.by_event, other.by_event)


MEANINGLESS = {
    "name": "bytes after the name's NUL",
    "mpi_size": "mpiSize without an MPI operation",
}
"""The labels of meaningless differences, by field; noted only if both sides have the field."""

_NO_ROWS = np.zeros(0, dtype=np.int64)
_MOST_SHOWN = 1000
"""The most bytes of a text, and entries of a list, that are shown of a difference in them."""


def compare_loaded(
    loaded: tuple[LoadedBlock, LoadedBlock], params: tuple[ParamFolder, ParamFolder]
) -> Totals:
    """Compare a loaded pair; raise `DamagedLogError` if a side is damaged."""
    all_records = records_of(loaded[0]), records_of(loaded[1])
    totals = Totals()
    for side, counts in zip(all_records, totals.sides, strict=True):
        counts["SEBs"] = len(side.sebs)
        counts["unclosed"] = int(np.count_nonzero(np.isnan(side.seconds)))
        counts.update({name: int(side.walked[name].sum()) for name in LISTS})
    records = NO_RECORDS, NO_RECORDS
    if all(len(side.sebs) for side in all_records):
        folders = zip(dict.fromkeys(params), loaded, strict=False)  # the same one is read once
        read = [read_params(folder, side, strict=False) for folder, side in folders]
        records = read[0][0], read[-1][0]
        totals.malformed_lines = sum(notes.malformed for _, notes in read)
    pair = _BlockComparison(totals, *_common_sebs(*all_records))
    pair.compare_all()
    totals.by_name = rows_by_name(all_records, (pair.a, pair.b))
    totals.by_event, irregular, unpaired = rows_by_event((pair.a, pair.b), records)
    totals.common["unpaired"] = unpaired
    for counts, of_side in zip(totals.sides, irregular, strict=True):
        counts["irregular"] = of_side
    return totals


def _common_sebs(a: BlockRecords, b: BlockRecords) -> tuple[BlockRecords, BlockRecords]:
    """Return the SEBs that both sides have: the first ones of each timeline."""
    if np.array_equal(a.pieces.counts, b.pieces.counts):
        return a, b
    fewer = np.minimum(a.pieces.counts, b.pieces.counts)
    first_of_each = (
        replace(
            side.loaded,
            pieces=side.loaded.pieces._replace(counts=fewer),
            closed=np.zeros_like(side.loaded.closed),
        )
        for side in (a, b)
    )
    old, new = map(records_of, first_of_each)
    return old, new


class _BlockComparison(Struct, frozen=True):
    """The SEBs that both sides have, and what is found in them."""

    totals: Totals
    a: BlockRecords
    b: BlockRecords

    def compare_all(self) -> None:
        """Compare all fields and lists, in the order of the format; then what has no meaning."""
        common, sebs = self.totals.common, (self.a.sebs, self.b.sebs)
        common["SEBs"] = len(self.a.sebs)
        meaningless = self.compare_fields("seb", sebs, "", "SEBs")
        pairs = {name: self.paired(name) for name in LISTS}
        for name, label in (("messages", "messages"), ("events", "log events")):
            common[label] = len(pairs[name][0])
            counts = self.counts(name)
            rows = np.flatnonzero(counts[0] != counts[1])
            self.note(f"number of {label}", sebs[0], rows, counts, _number_text)
        for name in ("backward", "forward"):
            self.compare_dependencies(name, *pairs[name])
        self.compare_fields("message", pairs["messages"], "message ", "messages")
        self.compare_transit(*pairs["messages"])
        self.compare_fields("event", pairs["events"], "log event ", "log events")
        self.compare_event_data(*pairs["events"])
        for name, label in MEANINGLESS.items():
            text = _bytes_text if name == "name" else partial(_value_text, name, 0)
            rows = meaningless.get(name, _NO_ROWS)
            self.note(label, sebs[0], rows, sebs, text, kind=FieldKind.MEANINGLESS)

    def note(
        self,
        label: str,
        records: Records,
        rows: Ints,
        sides: tuple[Any, Any],
        text: Callable[[Any, int], str],
        *,
        noun: str = "SEBs",
        kind: FieldKind = FieldKind.CONTENT,
    ) -> None:
        """Note the rows of A's records where a field differs; `text` returns a side's value."""
        first = None
        for row in rows[:1].tolist():
            seb = int(records.seb[row])
            is_seb = records is self.a.sebs
            item = None if is_seb else row - int(np.searchsorted(records.seb, seb))
            values = (text(side, row) for side in sides)
            first = FirstDifference(int(self.a.pe[seb]), int(self.a.index[seb]), item, *values)
        self.totals.compared[label] = Change(noun, kind, len(rows), first)

    def counts(self, name: str) -> tuple[Ints, Ints]:
        """Return the length of each SEB's list `name` on both sides."""
        return self.a.walked[name], self.b.walked[name]

    def paired(self, name: str) -> tuple[Records, Records]:
        """Return the records of both sides' lists `name`, each cut to the shorter length."""
        old, new = getattr(self.a, name), getattr(self.b, name)
        counts = self.counts(name)
        if np.array_equal(*counts):
            return old, new
        fewer = np.minimum(*counts)
        firsts = (side.first(name)[:-1] for side in (self.a, self.b))
        return old.take(spans(next(firsts), fewer)), new.take(spans(next(firsts), fewer))

    def compare_fields(
        self, record: Record, sides: tuple[Records, Records], prefix: str, noun: str
    ) -> dict[str, Ints]:
        """Compare all declared fields; return the rows of differences without meaning, by field."""
        meaningless, (a, b), unequal_fields = {}, sides, _unequal_fields(*sides)
        for name, label in format_names(record).items():
            if not (has(a, name) or has(b, name)):
                continue
            rows = np.flatnonzero(differing(a, b, name)) if name in unequal_fields else _NO_ROWS
            if name in MEANINGLESS:
                is_meaningless = _has_no_meaning(a, b, name, rows)
                if has(a, name) and has(b, name):
                    meaningless[name] = rows[is_meaningless]
                rows = rows[~is_meaningless]
            kind = FieldKind.TIME if is_time(name) else FieldKind.CONTENT
            element = 0
            if a.newest[name].shape and len(rows):
                element = int(np.argmax(a[name][rows[0]] != b[name][rows[0]]))
            text = _name_text if name == "name" else partial(_value_text, name, element)
            self.note(prefix + label, a, rows, sides, text, noun=noun, kind=kind)
        return meaningless

    def compare_transit(self, old: Records, new: Records) -> None:
        """Compare the places of messages in their SEBs, and their transit times."""
        totals = self.totals
        sent, received = (
            [side[f"{what}_time"] for side in (old, new)] for what in ("send", "recv")
        )
        with np.errstate(over="ignore", invalid="ignore"):
            offsets = [
                times - block.sebs["start_time"][side.seb]
                for times, side, block in zip(sent, (old, new), (self.a, self.b), strict=True)
            ]
            shifts = offsets[1] - offsets[0]
            largest = np.maximum.reduce([np.abs(times) for times in (*sent, *received)])
            transit = np.abs((received[1] - sent[1]) - (received[0] - sent[0])) > ROUNDING * largest
        moved = shifts[(shifts < 0.0) | (shifts > 0.0)]
        totals.earlier_s = float(moved.min(initial=0.0))
        totals.later_s = float(moved.max(initial=0.0))
        totals.common["moved"] = len(moved)
        totals.common["transit"] = int(np.count_nonzero(transit))

    def compare_event_data(self, old: Records, new: Records) -> None:
        """Compare the indices or texts of log events that have the same type."""
        pointers, alike = old["type"] == EventType.PROJECTIONS, old["type"] == new["type"]
        other = old["number"] != new["number"]
        rows = np.flatnonzero(alike & pointers & other)
        numbers = old["number"], new["number"]
        self.note("log event index", old, rows, numbers, _number_text, noun="log events")
        rows = np.flatnonzero(alike & ~pointers)
        rows = rows[other[rows] | _texts_differ(old.take(rows), new.take(rows))]
        self.note("log event text", old, rows, (old, new), _event_text, noun="log events")

    def compare_dependencies(self, name: str, old: Records, new: Records) -> None:
        """Compare the lists of dependencies of each SEB."""
        counts, other_counts = self.counts(name)
        changed = counts != other_counts
        changed[old.seb[old["other"] != new["other"]]] = True

        def text(side: BlockRecords, row: int) -> str:
            begin, end = side.first(name)[row : row + 2]
            return list_text(getattr(side, name)["other"][begin:end])

        rows = np.flatnonzero(changed)
        self.note(f"{name} dependencies", self.a.sebs, rows, (self.a, self.b), text)


def _has_no_meaning(a: Records, b: Records, name: str, rows: Ints) -> Flags:
    """Return which rows differ only after a name's NUL, or in sizes without an MPI operation."""
    if name == "name":
        old, new = (names_of(side.take(rows).raw("name")) for side in (a, b))
        return np.asarray(old == new)
    old, new = (side.take(rows)["mpi_op"] for side in (a, b))
    return np.asarray((old == 0) & (new == 0))


def has(side: Records, name: str) -> bool:
    """Return whether the log version of a side has a field."""
    return name in (side.dtype.names or ())


def _unequal_fields(a: Records, b: Records) -> Container[str]:
    """Return the fields that differ in some record; all of them, if layouts differ."""
    if a.dtype != b.dtype:
        return a.newest.names or ()
    bits = np.zeros(a.dtype.itemsize, dtype=np.uint8)
    core.differing_bits(a.buffer, a.at, b.buffer, b.at, bits)
    fields = {
        name: slice(at := offset_of(a.dtype, name), at + a.dtype[name].itemsize)
        for name in a.dtype.names or ()
    }
    return [name for name, field in fields.items() if bits[field].any()]


def differing(a: Records, b: Records, name: str) -> Flags:
    """Return in which records the bits of a field differ; a field absent in one has its default."""
    old, new = (_bits(side, name) for side in (a, b))
    unequal: Flags = np.asarray(old != new)
    return np.asarray(unequal.any(axis=1)) if unequal.ndim > 1 else unequal


def _bits(side: Records, name: str) -> Table:
    """Return a column as unsigned integers, so that equal NaNs are equal and −0 is not 0."""
    if side.newest[name].base.kind == "V":
        column = side.raw(name)
        return column.view(np.uint8).reshape(len(column), column.itemsize)
    column = side[name]
    return column.view(f"u{column.itemsize}")


def _name_text(side: Records, row: int) -> str:
    return _quoted(names_of(side.take([row]).raw("name"))[0])


def _bytes_text(side: Records, row: int) -> str:
    return side.take([row]).raw("name").tobytes().hex(" ")


def _number_text(column: Ints, row: int) -> str:
    return str(column[row])


def _value_text(name: str, element: int, side: Records, row: int) -> str:
    values = side.take([row]).raw(name).reshape(-1) if has(side, name) else ()
    if element >= len(values):
        return ABSENT
    return f"{values[element]:.17g}" if side.newest[name].kind == "f" else str(values[element])


def _texts_differ(a: Records, b: Records) -> Flags:
    """Return which texts of events differ, among those of equal length; others count as equal."""
    differ = np.zeros(len(a), dtype=np.bool_)
    lengths = np.where(a["number"] == b["number"], a["number"], 0)
    order = np.argsort(lengths, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1)
    for rows in groups if len(order) else ():
        length = int(lengths[rows[0]])
        old, new = (side.take(rows).after(length) for side in (a, b))
        differ[rows] = (old != new).any(axis=1)
    return differ


def _event_text(side: Records, row: int) -> str:
    shown = min(int(side["number"][row]), _MOST_SHOWN)
    return _quoted(side.take([row]).after(shown).tobytes().removesuffix(b"\0"))


def _quoted(text: bytes) -> str:
    return f"'{printable(text)}'"


def list_text(entries: np.ndarray) -> str:
    """Return the first entries of a list as text."""
    shown = [str(entry) for entry in entries[:_MOST_SHOWN]]
    return f"[{', '.join([*shown, *['…'] * (len(entries) > _MOST_SHOWN)])}]"
