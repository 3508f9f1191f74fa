"""The comparison of one pair of blocks: records side by side, field by field, as columns."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from rewritelog.arrays import Flags, Ints
from rewritelog.diffing.durations import Rows, add_rows, rows_by_event, rows_by_name, times_of
from rewritelog.diffing.fields import (
    DEPENDENCIES,
    EVENT_FIELDS,
    EVENT_INDEX,
    EVENT_TEXT,
    LIST_LENGTHS,
    MEANINGLESS,
    MESSAGE_FIELDS,
    SEB_FIELDS,
    Field,
    differing,
    field_texts,
    has,
)
from rewritelog.diffing.pairs import LoadedPair, Pair, PairLoader
from rewritelog.formats import NO_RECORDS
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.declaration import EventType
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import ParamFolder, read_params
from rewritelog.formats.bgtrace.records import LISTS, BlockRecords, Records, records_of
from rewritelog.text import printable


@dataclass(frozen=True)
class FirstDifference:
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


_ROUNDING = 4.0 * np.finfo(np.float64).eps
_TEXT_SHOWN = 60
_ENTRIES_SHOWN = 5


@dataclass(frozen=True)
class DiffTask:
    """What is needed to compare any pair of blocks."""

    a: LogSet
    b: LogSet
    params: ParamFolder | None
    block_bytes: int

    def __call__(self, pair: Pair, /) -> Totals:
        """Compare a pair of blocks; raise `DamagedLogError` if a side is damaged."""
        if not hasattr(_local, "loader"):
            _local.loader = PairLoader()
        totals = Totals()
        for loaded in _local.loader.load(self.a, self.b, pair, self.block_bytes):
            totals.add(compare_loaded(loaded, self.params))
        return totals


_local = threading.local()


def compare_loaded(loaded: LoadedPair, params: ParamFolder | None) -> Totals:
    """Compare a loaded pair; raise `DamagedLogError` if a side is damaged."""
    whole = records_of(loaded.a), records_of(loaded.b)
    a, b = _common_sebs(*whole)
    totals = Totals()
    for side, counts in zip(whole, totals.sides, strict=True):
        counts["SEBs"] = len(side.sebs)
        counts["unclosed"] = int(np.count_nonzero(~times_of(side).closed))
        counts.update(dict(zip(LISTS, side.counts.sum(axis=0).tolist(), strict=True)))
    totals.common["SEBs"] = len(a.sebs)
    records = NO_RECORDS
    if params is not None and len(whole[0].sebs):
        records, notes = read_params(params, loaded.a, strict=False)
        totals.faulty_lines = notes.faulty
    noted = _Noted(a, totals)
    _compare_records(noted, a.sebs, b.sebs, SEB_FIELDS)
    _compare_messages(noted, a, b)
    _compare_events(noted, a, b)
    for name, dependencies in DEPENDENCIES.items():
        _compare_dependencies(noted, a, b, name, dependencies)
    totals.by_name = rows_by_name(whole, (a, b))
    brackets = rows_by_event((a, b), records)
    totals.by_event = brackets.rows
    for counts, irregular in zip(totals.sides, brackets.irregular, strict=True):
        counts["irregular"] = irregular
    totals.common["unpaired"] = brackets.unpaired
    return totals


def _common_sebs(a: BlockRecords, b: BlockRecords) -> tuple[BlockRecords, BlockRecords]:
    """Return the SEBs that both sides have: the first ones of each timeline."""
    if np.array_equal(a.walked, b.walked):
        return a, b
    fewer = np.minimum(a.walked, b.walked)
    return _first_sebs(a.loaded, fewer), _first_sebs(b.loaded, fewer)


def _first_sebs(loaded: LoadedBlock, counts: Ints) -> BlockRecords:
    pieces = loaded.pieces._replace(counts=counts)
    return records_of(replace(loaded, pieces=pieces, closed=np.zeros_like(loaded.closed)))


@dataclass(frozen=True)
class _Noted:
    """Takes the differences of a pair of blocks."""

    block: BlockRecords
    """The SEBs of A that both sides have."""
    totals: Totals

    def add(
        self, field: Field, a: Records, rows: Ints, texts: Callable[[int], tuple[str, str]]
    ) -> None:
        """Note the rows in which a field of some records differs; `texts` are the values of one."""
        if not len(rows):
            return
        row = int(rows[0])
        seb = int(a.seb[row])
        item = None if a is self.block.sebs else row - int(np.searchsorted(a.seb, seb))
        pe, index = int(self.block.pe[seb]), int(self.block.index[seb])
        first = FirstDifference(pe, index, item, *texts(row))
        self.totals.changed[field] = Change(len(rows), first)


def _compare_records(noted: _Noted, a: Records, b: Records, fields: dict[str, Field]) -> None:
    """Compare all fields in the fixed parts of records."""
    for name, compared in fields.items():
        if not (has(a, name) or has(b, name)):
            continue
        unequal = differing(a, b, name)
        if not unequal.any():
            continue
        rows = np.flatnonzero(unequal.any(axis=1) if unequal.ndim > 1 else unequal)
        if name in MEANINGLESS:
            has_none, other = MEANINGLESS[name]
            none = has_none(a, b, rows)
            if has(a, name) and has(b, name):
                _note_field(noted, a, b, other, name, rows[none])
            rows = rows[~none]
        _note_field(noted, a, b, compared, name, rows)


def _note_field(noted: _Noted, a: Records, b: Records, field: Field, name: str, rows: Ints) -> None:
    noted.add(field, a, rows, lambda row: field_texts(a, b, field, name, row))


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


def _note_lengths(noted: _Noted, a: BlockRecords, b: BlockRecords, name: str) -> None:
    """Note the SEBs with different numbers of messages or events."""
    old, new = (side.counts[:, LISTS.index(name)] for side in (a, b))
    rows = np.flatnonzero(old != new)
    noted.add(LIST_LENGTHS[name], a.sebs, rows, lambda row: (str(old[row]), str(new[row])))


def _compare_messages(noted: _Noted, a: BlockRecords, b: BlockRecords) -> None:
    """Compare messages: fields, places in their SEBs, and transit times."""
    _note_lengths(noted, a, b, "messages")
    old, new = _paired(a, b, "messages")
    _compare_records(noted, old, new, MESSAGE_FIELDS)
    sent, came = ([side[f"{what}_time"] for side in (old, new)] for what in ("send", "recv"))
    totals = noted.totals
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


def _compare_events(noted: _Noted, a: BlockRecords, b: BlockRecords) -> None:
    """Compare log events: their fields, and of those of one type indices or texts."""
    _note_lengths(noted, a, b, "events")
    old, new = _paired(a, b, "events")
    noted.totals.common["log events"] = len(old)
    _compare_records(noted, old, new, EVENT_FIELDS)
    pointers = old["type"] == EventType.PROJECTIONS
    alike = old["type"] == new["type"]
    other = old["number"] != new["number"]
    rows = np.flatnonzero(alike & pointers & other)
    numbers = old["number"], new["number"]
    noted.add(EVENT_INDEX, old, rows, lambda row: (str(numbers[0][row]), str(numbers[1][row])))
    texts = np.flatnonzero(alike & ~pointers)
    rows = texts[other[texts] | _texts_differ(old.take(texts), new.take(texts))]
    noted.add(EVENT_TEXT, old, rows, lambda row: (_event_text(old, row), _event_text(new, row)))


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
    noted: _Noted, a: BlockRecords, b: BlockRecords, name: str, field: Field
) -> None:
    """Compare the lists of dependencies of each SEB."""
    old, new = _paired(a, b, name)
    counts, others = (side.counts[:, LISTS.index(name)] for side in (a, b))
    changed = counts != others
    changed[old.seb[old["other"] != new["other"]]] = True
    noted.add(
        field,
        a.sebs,
        np.flatnonzero(changed),
        lambda row: (_list_text(a, name, row), _list_text(b, name, row)),
    )


def _list_text(side: BlockRecords, name: str, row: int) -> str:
    begin, end = side.first(name)[row : row + 2]
    entries = getattr(side, name)["other"][begin:end]
    shown = [str(entry) for entry in entries[:_ENTRIES_SHOWN]]
    return f"[{', '.join([*shown, *['…'] * (len(entries) > _ENTRIES_SHOWN)])}]"
