"""The differences of two sets of traces: nodes are paired by their ids, rank by rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from rewritelog.arrays import Ints, Keys, Texts, mix, paired
from rewritelog.diffing.durations import NamedDurations, Rows, rows_of
from rewritelog.diffing.records import (
    ABSENT,
    Change,
    FieldKind,
    FirstDifference,
    Totals,
    list_text,
)
from rewritelog.diffing.report import Comparison, HeadDifference
from rewritelog.errors import UsageError
from rewritelog.formats.traces import COMMUNICATION, Events, Traces, Unit, loaded
from rewritelog.running.engines import map_blocks
from rewritelog.text import printable, shorten_all, some_text

_COMPARED = ("duration_us", "start_us", "lane", "rest", *COMMUNICATION)
"""The columns of nodes that are compared, besides those that all loaded events have."""

_HEAD_WIDTH = 40
_TIMES = ("duration", "start")
_REST = "other fields, or their order"


def compare_traces(a: Traces, b: Traces) -> Comparison:
    """Compare traces rank by rank.

    Memory is needed for the nodes of a few ranks. Raise `UsageError` for different ranks,
    `DamagedLogError` for damage.
    """
    if a.pes != b.pes:
        ranks = (some_text([str(rank) for rank in side.pes], 5) for side in (a, b))
        raise UsageError("the ranks differ: {} in A, {} in B".format(*ranks))
    totals, heads = Totals(), list[HeadDifference]()
    work = partial(_compare_units, a, b, dict(zip(a.pes, b.files, strict=True)))
    for _, (of_rank, of_head) in map_blocks(work, a.files, "comparing", a.size_bytes):
        totals.add(of_rank)
        heads += of_head
    packed = [str(sum(unit.is_packed for unit in side.files)) for side in (a, b)]
    files = [] if packed[0] == packed[1] else [HeadDifference("packed files", *packed)]
    return Comparison((a, b), totals, tuple(files), tuple(heads))


def _compare_units(
    a: Traces, b: Traces, units_of_b: dict[int, Unit], unit: Unit
) -> tuple[Totals, list[HeadDifference]]:
    """Return the differences of the nodes of a rank, and of what comes before the nodes."""
    (old, old_head), (new, new_head) = _loaded(a, unit), _loaded(b, units_of_b[unit.rank])
    totals = _compare(a, unit.rank, (old, new))
    if old_head == new_head:
        return totals, []
    texts = shorten_all([printable(old_head), printable(new_head)], _HEAD_WIDTH)
    return totals, [HeadDifference(f"metadata of rank {unit.rank}", *texts)]


def _loaded(traces: Traces, unit: Unit) -> tuple[Events, bytes]:
    """Return what is compared of all nodes of a unit, and what precedes them in the file."""
    parts = traces.read(unit)
    first = next(parts)
    return loaded(chain([first], parts), _COMPARED), first.head.tobytes()


def _compare(traces: Traces, rank: int, sides: tuple[Events, Events]) -> Totals:
    """Compare the nodes of a rank; those of equal ids are paired in order."""
    totals, rows = Totals(), _paired(*(side["id"] for side in sides))
    totals.common["SEBs"] = len(rows[0])
    totals.by_name = _durations_by_name(sides, rows)

    def note(name: str, differing: Ints, texts: Iterable[str], noun: str = "SEBs") -> None:
        """Note the nodes where a field differs; `texts` has both values of the first one."""
        kind = FieldKind.TIME if name in _TIMES else FieldKind.CONTENT
        first = FirstDifference(rank, int(differing[0]), None, *texts) if len(differing) else None
        totals.compared[name] = Change(noun, kind, len(differing), first)

    for which, counts, side, of_side in zip("AB", totals.sides, sides, rows, strict=True):
        counts["SEBs"] = totals.common[f"nodes of {which}"] = len(side)
        is_alone = np.ones(len(side), dtype=np.bool_)
        is_alone[of_side] = False
        alone = np.flatnonzero(is_alone)
        texts = [f"id {number}" for number in side["id"][alone[:1]].tolist()]
        texts.insert(1 - "AB".index(which), ABSENT)
        note(f"only in {which}", alone, texts, f"nodes of {which}")
    place = np.argsort(np.argsort(rows[1]))
    moved = np.flatnonzero(place != np.arange(len(place)))
    places = (*moved[:1].tolist(), *place[moved[:1]].tolist())
    note("place among the nodes", rows[0][moved], map(str, places))
    for name, at, values in _differing(traces, sides, rows):
        note(name, rows[0][at], values)
    return totals


def _differing(
    traces: Traces, sides: tuple[Events, Events], rows: tuple[Ints, Ints]
) -> Iterator[tuple[str, Ints, Iterable[str]]]:
    """Yield each column with the pairs that differ in it, and both values of the first of them."""
    columns = [_columns(traces, side) for side in sides]
    named = np.zeros(len(rows[0]), dtype=np.bool_)
    for name in columns[0]:
        pairs = [side[name][of_side] for side, of_side in zip(columns, rows, strict=True)]
        old, new = pairs
        both_unknown = (old != old) & (new != new)  # noqa: PLR0124 - NaN, but not of texts
        differ = (old != new) & ~both_unknown
        if name == _REST:
            differ &= ~named
        elif name not in _TIMES:
            named |= differ
        at = np.flatnonzero(differ)
        values = (
            _value_text(name, side, of_side[at[0]], column[at[0]])
            for side, of_side, column in zip(sides, rows, pairs, strict=True)
        )
        yield name, at, values


def _paired(a: Keys, b: Keys) -> tuple[Ints, Ints]:
    """Return the rows of nodes that both sides have, given the ids, in the order of A."""
    if np.array_equal(a, b):
        return np.arange(len(a)), np.arange(len(b))
    numbers = np.unique(np.concatenate([a, b]), return_inverse=True)[1]
    of_a, of_b = paired(*np.split(numbers, [len(a)]))
    order = np.argsort(of_a)
    return of_a[order], of_b[order]


def _durations_by_name(sides: tuple[Events, Events], rows: tuple[Ints, Ints]) -> Rows:
    """Return the durations by name; nodes that both sides have pair if they have one name."""
    names = Texts.joined(side["name"] for side in sides)
    of_sides = np.split(names.number, [len(sides[0])])
    durations = [
        NamedDurations(number, side["duration_s"])
        for number, side in zip(of_sides, sides, strict=True)
    ]
    pairs = [side.take(of_side) for side, of_side in zip(durations, rows, strict=True)]
    same = np.flatnonzero(pairs[0].name == pairs[1].name)
    return rows_of(names.distinct, durations, [side.take(same) for side in pairs])


def _value_text(name: str, events: Events, row: int, value: Any) -> str:
    if name == "dependencies":
        return list_text(events["waited_for"][events.waiting == row])
    if name == _REST:
        return f"{value:016x}"
    if name in _TIMES:
        return str(Decimal(int(value)).scaleb(-6)) if value or name == "duration" else ABSENT
    return repr(str(value)) if isinstance(value, str) else f"{value:.17g}"


def _columns(traces: Traces, events: Events) -> dict[str, np.ndarray]:
    """Return what is compared of nodes besides their place, in the order of reports."""
    waits, ends = events["waits"], np.concatenate([[0], np.cumsum(events["waits"])])
    mixed = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mix(events["waited_for"]))])
    return {
        "duration": events["duration_us"],
        "start": events["start_us"],
        "type": np.array(traces.types, dtype=object)[events["type"]],
        "name": np.array(events["name"].distinct, dtype=object)[events["name"].number],
        # the same sum for the same ids in any order
        "dependencies": mixed[ends[1:]] - mixed[ends[:-1]] + waits.astype(np.uint64),
        "CPU or device": np.where(events["on_host"], "CPU", "device"),
        "thread or stream": events["lane"],
        **{name: events[name] for name in COMMUNICATION},
        _REST: events["rest"],
    }
