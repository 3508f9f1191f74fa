"""The comparison of one pair of blocks: records side by side, field by field, as columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import NamedTuple

import numpy as np

from rewritelog.arrays import Flags, Ints, Table
from rewritelog.diffing.durations import Rows, add_rows, rows_by_event, rows_by_name, times_of
from rewritelog.formats import NO_RECORDS
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.declaration import (
    LOG_VERSIONS,
    EventType,
    Record,
    format_names,
    layout,
)
from rewritelog.formats.bgtrace.params import ParamFolder, read_params
from rewritelog.formats.bgtrace.records import LISTS, BlockRecords, Records, names_of, records_of
from rewritelog.formats.traces import NUMBERS
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


@dataclass(frozen=True)
class Field:
    """A field; a list or text counts once per SEB or log event."""

    label: str
    of: str = "SEBs"
    """The records with the field: `SEBs`, `messages` or `log events`."""
    kind: FieldKind = FieldKind.CONTENT


def _declared(record: Record, prefix: str = "", of: str = "SEBs") -> dict[str, Field]:
    """Return the fields of a record's fixed part by name, in the order of the format."""
    newest = getattr(layout(LOG_VERSIONS[-1], "little"), record)
    labels = format_names(record)
    return {
        name: Field(
            prefix + labels[name],
            of,
            FieldKind.TIME if newest[name].base.kind == "f" else FieldKind.CONTENT,
        )
        for name in newest.names
    }


SEB_FIELDS = _declared("seb")
LIST_LENGTHS = {
    "messages": Field("number of messages"),
    "events": Field("number of log events"),
}
DEPENDENCIES = {
    "backward": Field("backward dependencies"),
    "forward": Field("forward dependencies"),
}
MESSAGE_FIELDS = _declared("message", "message ", "messages")
EVENT_FIELDS = _declared("event", "log event ", "log events")
EVENT_INDEX = Field("log event index", "log events")
EVENT_TEXT = Field("log event text", "log events")
NAME_REST = Field("bytes after the name's NUL", kind=FieldKind.MEANINGLESS)
IDLE_MPI_SIZE = Field("mpiSize without an MPI operation", kind=FieldKind.MEANINGLESS)

NODE_FIELDS = {
    name: Field(name, kind=FieldKind.TIME if name in ("duration", "start") else FieldKind.CONTENT)
    for name in (
        "only in A", "only in B", "place among the nodes", "duration", "start", "type", "name",
        "dependencies", "CPU or device", "thread or stream", *NUMBERS,
    )
}  # fmt: skip
"""The fields of traces' nodes."""

FIELDS = dict.fromkeys(
    (
        *SEB_FIELDS.values(),
        *LIST_LENGTHS.values(),
        *DEPENDENCIES.values(),
        *MESSAGE_FIELDS.values(),
        *EVENT_FIELDS.values(),
        EVENT_INDEX,
        EVENT_TEXT,
        NAME_REST,
        IDLE_MPI_SIZE,
        *NODE_FIELDS.values(),
    )
)
"""All fields, in the order of reports."""


MEANINGLESS = {"name": NAME_REST, "mpi_size": IDLE_MPI_SIZE}
"""What a difference of a field counts as where it has no meaning, if both sides have the field."""


def _has_no_meaning(a: Records, b: Records, name: str, rows: Ints) -> Flags:
    """Return where names agree up to a NUL, and where neither side has an MPI operation."""
    if name == "name":
        old, new = (names_of(side.raw("name")[rows]) for side in (a, b))
        return np.asarray(old == new)
    return np.asarray((a["mpi_op"][rows] == 0) & (b["mpi_op"][rows] == 0))


def has(side: Records, name: str) -> bool:
    """Return whether the log version of a side has a field."""
    return name in (side.dtype.names or ())


def differing(a: Records, b: Records, name: str) -> Flags:
    """Return in which records the bits of a field differ; a field absent in one has its default.

    Shape (records,), or (records, elements) for an array field or a name.
    """
    old, new = (_bits(side, name) for side in (a, b))
    return np.asarray(old != new)


def _bits(side: Records, name: str) -> Table:
    """Return a column as unsigned integers, so that equal NaNs are equal and −0 is not 0."""
    if side.newest[name].base.kind == "V":
        column = side.raw(name)
        return column.view(np.uint8).reshape(len(column), column.itemsize)
    column = side[name]
    return column.view(f"u{column.itemsize}")


def field_texts(a: Records, b: Records, field: Field, name: str, row: int) -> tuple[str, str]:
    """Return both values of a record's field; of an array, the first elements that differ."""
    element = int(np.argmax(np.atleast_1d(differing(a, b, name)[row])))
    return _field_text(a, field, name, row, element), _field_text(b, field, name, row, element)


def _field_text(side: Records, field: Field, name: str, row: int, element: int) -> str:
    if not has(side, name):
        return ABSENT
    value = side.raw(name)[row]
    if value.dtype.kind == "V":
        raw = value.tobytes()
        return raw.hex(" ") if field is NAME_REST else repr(printable(raw.partition(b"\0")[0]))
    if value.ndim:
        if element >= len(value):
            return ABSENT
        value = value[element]
    return f"{value:.17g}" if value.dtype.kind == "f" else str(value)


class FirstDifference(NamedTuple):
    """The location where a field first differs, and its values on both sides."""

    pe: int
    seb: int
    item: int | None
    """The index of the message or log event in the SEB."""
    a: str
    b: str


@dataclass(frozen=True)
class Change:
    """The number of records in which a field differs, and the first one."""

    count: int
    first: FirstDifference


@dataclass
class Totals:
    """The differences in one block, or in all blocks."""

    changed: dict[Field, Change] = field(default_factory=dict)
    sides: tuple[Counter[str], Counter[str]] = field(default_factory=lambda: (Counter(), Counter()))
    """What each side has: `SEBs`, the records of each list, `unclosed` and `irregular` SEBs."""
    common: Counter[str] = field(default_factory=Counter)
    """What both sides have: `SEBs`, `messages`, `events`; messages `moved` within their SEBs or
    with other `transit` times; SEBs with `unpaired` brackets."""
    earlier_s: float = 0.0
    later_s: float = 0.0
    """The largest shifts of messages towards the start (negative) and the end of their SEBs."""
    by_name: Rows = field(default_factory=dict)
    by_event: Rows = field(default_factory=dict)
    faulty_lines: int = 0
    """The number of malformed lines of param files."""

    def add(self, other: Totals) -> None:
        """Add the totals of the next block."""
        for name, change in other.changed.items():
            known = self.changed.get(name, Change(0, change.first))
            self.changed[name] = Change(known.count + change.count, known.first)
        for mine, more in zip(self.sides, other.sides, strict=True):
            mine.update(more)
        self.common.update(other.common)
        self.earlier_s = min(self.earlier_s, other.earlier_s)
        self.later_s = max(self.later_s, other.later_s)
        self.faulty_lines += other.faulty_lines
        add_rows(self.by_name, other.by_name)
        add_rows(self.by_event, other.by_event)

    def note(
        self,
        field: Field,
        block: BlockRecords,
        records: Records,
        rows: Ints,
        texts: Callable[[int], tuple[str, str]],
    ) -> None:
        """Note the rows in which a field of records of A differs; `texts` are the values of one.

        `block` has the SEBs of A that both sides have.
        """
        if not len(rows):
            return
        row = int(rows[0])
        seb = int(records.seb[row])
        is_seb = records is block.sebs
        item = None if is_seb else row - int(np.searchsorted(records.seb, seb))
        first = FirstDifference(int(block.pe[seb]), int(block.index[seb]), item, *texts(row))
        self.changed[field] = Change(len(rows), first)


_ROUNDING = 4.0 * np.finfo(np.float64).eps
_TEXT_SHOWN = 60
_ENTRIES_SHOWN = 5


def compare_loaded(loaded: tuple[LoadedBlock, LoadedBlock], params: ParamFolder | None) -> Totals:
    """Compare a loaded pair; raise `DamagedLogError` if a side is damaged."""
    whole = records_of(loaded[0]), records_of(loaded[1])
    a, b = _common_sebs(*whole)
    totals = Totals()
    for side, counts in zip(whole, totals.sides, strict=True):
        counts["SEBs"] = len(side.sebs)
        counts["unclosed"] = int(np.count_nonzero(~times_of(side)[1]))
        counts.update(dict(zip(LISTS, side.counts.sum(axis=0).tolist(), strict=True)))
    totals.common["SEBs"] = len(a.sebs)
    records = NO_RECORDS
    if params is not None and len(whole[0].sebs):
        records, notes = read_params(params, loaded[0], strict=False)
        totals.faulty_lines = notes.faulty
    _compare_records(totals, a, a.sebs, b.sebs, SEB_FIELDS)
    _compare_messages(totals, a, b)
    _compare_events(totals, a, b)
    for name, dependencies in DEPENDENCIES.items():
        _compare_dependencies(totals, a, b, name, dependencies)
    totals.by_name = rows_by_name(whole, (a, b))
    totals.by_event, irregular, totals.common["unpaired"] = rows_by_event((a, b), records)
    for counts, of_side in zip(totals.sides, irregular, strict=True):
        counts["irregular"] = of_side
    return totals


def _common_sebs(a: BlockRecords, b: BlockRecords) -> tuple[BlockRecords, BlockRecords]:
    """Return the SEBs that both sides have: the first ones of each timeline."""
    if np.array_equal(a.walked, b.walked):
        return a, b
    fewer = np.minimum(a.walked, b.walked)
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


def _compare_records(
    totals: Totals, block: BlockRecords, a: Records, b: Records, fields: dict[str, Field]
) -> None:
    """Compare all fields in the fixed parts of records; `block` has the SEBs of A."""
    for name, compared in fields.items():
        if not (has(a, name) or has(b, name)):
            continue
        unequal = differing(a, b, name)
        rows = np.flatnonzero(unequal.any(axis=1) if unequal.ndim > 1 else unequal)
        if not len(rows):
            continue
        kinds = [(compared, rows)]
        if name in MEANINGLESS:
            none = _has_no_meaning(a, b, name, rows)
            kinds = [(compared, rows[~none])]
            if has(a, name) and has(b, name):
                kinds.append((MEANINGLESS[name], rows[none]))
        for kind, which in kinds:
            totals.note(kind, block, a, which, partial(field_texts, a, b, kind, name))


def _paired(a: BlockRecords, b: BlockRecords, name: str) -> tuple[Records, Records]:
    """Return the records that the lists `name` of both sides have, the first ones of each SEB."""
    old, new = getattr(a, name), getattr(b, name)
    counts, others = (side.counts[:, LISTS.index(name)] for side in (a, b))
    if np.array_equal(counts, others):
        return old, new
    fewer = np.minimum(counts, others)
    within = np.arange(fewer.sum()) - np.repeat(np.cumsum(fewer) - fewer, fewer)
    firsts = (np.repeat(side.first(name)[:-1], fewer) for side in (a, b))
    return old.take(next(firsts) + within), new.take(next(firsts) + within)


def _note_lengths(totals: Totals, a: BlockRecords, b: BlockRecords, name: str) -> None:
    """Note the SEBs with different numbers of messages or events."""
    old, new = (side.counts[:, LISTS.index(name)] for side in (a, b))
    rows = np.flatnonzero(old != new)
    totals.note(LIST_LENGTHS[name], a, a.sebs, rows, lambda row: (str(old[row]), str(new[row])))


def _compare_messages(totals: Totals, a: BlockRecords, b: BlockRecords) -> None:
    """Compare messages: fields, places in their SEBs, and transit times."""
    _note_lengths(totals, a, b, "messages")
    old, new = _paired(a, b, "messages")
    _compare_records(totals, a, old, new, MESSAGE_FIELDS)
    sent, came = ([side[f"{what}_time"] for side in (old, new)] for what in ("send", "recv"))
    with np.errstate(over="ignore", invalid="ignore"):
        offsets = [
            times - block.sebs["start_time"][side.seb]
            for times, side, block in zip(sent, (old, new), (a, b), strict=True)
        ]
        shifts = offsets[1] - offsets[0]
        largest = np.maximum.reduce([np.abs(times) for times in (*sent, *came)])
        transit = np.abs((came[1] - sent[1]) - (came[0] - sent[0])) > _ROUNDING * largest
    moved = shifts[(shifts < 0.0) | (shifts > 0.0)]
    totals.earlier_s = float(moved.min(initial=0.0))
    totals.later_s = float(moved.max(initial=0.0))
    totals.common["messages"] = len(old)
    totals.common["moved"] = len(moved)
    totals.common["transit"] = int(np.count_nonzero(transit))


def _compare_events(totals: Totals, a: BlockRecords, b: BlockRecords) -> None:
    """Compare log events: their fields, and of those of one type indices or texts."""
    _note_lengths(totals, a, b, "events")
    old, new = _paired(a, b, "events")
    totals.common["log events"] = len(old)
    _compare_records(totals, a, old, new, EVENT_FIELDS)
    pointers = old["type"] == EventType.PROJECTIONS
    alike = old["type"] == new["type"]
    other = old["number"] != new["number"]
    rows = np.flatnonzero(alike & pointers & other)
    numbers = old["number"], new["number"]
    totals.note(EVENT_INDEX, a, old, rows, lambda row: (str(numbers[0][row]), str(numbers[1][row])))
    texts = np.flatnonzero(alike & ~pointers)
    rows = texts[other[texts] | _texts_differ(old.take(texts), new.take(texts))]
    totals.note(
        EVENT_TEXT, a, old, rows, lambda row: (_event_text(old, row), _event_text(new, row))
    )


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
    shown = min(int(side["number"][row]), _TEXT_SHOWN)
    text = side.take(np.array([row])).after(shown).tobytes()
    return repr(printable(text.rstrip(b"\0")))


def _compare_dependencies(
    totals: Totals, a: BlockRecords, b: BlockRecords, name: str, field: Field
) -> None:
    """Compare the lists of dependencies of each SEB."""
    old, new = _paired(a, b, name)
    counts, others = (side.counts[:, LISTS.index(name)] for side in (a, b))
    changed = counts != others
    changed[old.seb[old["other"] != new["other"]]] = True

    def texts(row: int) -> tuple[str, str]:
        bounds = (side.first(name)[row : row + 2] for side in (a, b))
        old, new = (
            list_text(getattr(side, name)["other"][begin:end])
            for side, (begin, end) in zip((a, b), bounds, strict=True)
        )
        return old, new

    totals.note(field, a, a.sebs, np.flatnonzero(changed), texts)


def list_text(entries: np.ndarray) -> str:
    """Return the first entries of a list as text."""
    shown = [str(entry) for entry in entries[:_ENTRIES_SHOWN]]
    return f"[{', '.join([*shown, *['…'] * (len(entries) > _ENTRIES_SHOWN)])}]"
