"""The differences of two sets of traces: nodes are paired by their ids, rank by rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from rewritelog.arrays import Ints, Texts, mix, paired
from rewritelog.diffing.durations import NamedDurations, add_rows, rows_of
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
from rewritelog.formats.traces import COMMUNICATION, Events, Traces, Unit, joined
from rewritelog.running.engines import map_blocks
from rewritelog.text import printable, shorten_all, some_text

_COMPARED = ("duration_us", "start_us", "lane", "rest", *COMMUNICATION)
"""The columns of nodes that are compared, besides those that all loaded events have."""

_HEAD_WIDTH = 40
_TIMES = ("duration", "start")
_NONE = np.zeros(0, dtype=np.int64)
_PLACE, _REST = "place among the nodes", "other fields, or their order"


def compare_traces(a: Traces, b: Traces) -> Comparison:
    """Compare traces rank by rank, and the files of a rank part by part.

    Raise `UsageError` for different ranks, `DamagedLogError` for damage.
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
    heads: tuple[list[bytes], list[bytes]] = [], []
    parts = zip_longest(_kept(a, unit, heads[0]), _kept(b, units_of_b[unit.rank], heads[1]))
    totals = _compare_parts(a, unit.rank, parts)
    if heads[0][0] == heads[1][0]:
        return totals, []
    texts = shorten_all([printable(of_parts[0]) for of_parts in heads], _HEAD_WIDTH)
    return totals, [HeadDifference(f"metadata of rank {unit.rank}", *texts)]


def _kept(traces: Traces, unit: Unit, heads: list[bytes]) -> Iterator[Events]:
    """Yield the compared columns of each part of a unit; add what precedes them to `heads`."""
    for part in traces.read(unit):
        heads.append(part.head.tobytes())
        yield part.only(_COMPARED)


def _compare_parts(traces: Traces, rank: int, parts: Iterable[Sequence[Events | None]]) -> Totals:
    """Compare the nodes of a rank, given in parts of both sides; equal ids are paired in order.

    Memory is needed for such parts, and for nodes that come later on the other side.
    """
    totals, numbers = Totals(), [(_NONE, _NONE)]
    note = partial(_note, totals, rank)
    for name in ("only in A", "only in B", _PLACE):  # first in reports, though known last
        note(name, _NONE, ())
    for sides, are_pairs in _paired(parts):
        names = Texts.joined(events["name"] for events in sides)
        of_sides = np.split(names.number, [len(sides[0])])
        durations = [
            NamedDurations(number, events["duration_s"])
            for number, events in zip(of_sides, sides, strict=True)
        ]
        same = np.flatnonzero(of_sides[0] == of_sides[1]) if are_pairs else _NONE
        pairs = [side.take(same) for side in durations]
        add_rows(totals.by_name, rows_of(names.distinct, durations, pairs))
        for which, counts, events in zip("AB", totals.sides, sides, strict=True):
            counts["SEBs"] += len(events)
            totals.common[f"nodes of {which}"] += len(events)
            if not are_pairs:
                texts = [f"id {number}" for number in events["id"][:1].tolist()]
                texts.insert(1 - "AB".index(which), ABSENT)
                note(f"only in {which}", events["number"], texts)
        if are_pairs:
            totals.common["SEBs"] += len(sides[0])
            numbers.append((sides[0]["number"], sides[1]["number"]))
            _compare(traces, sides, note)
    old, new = map(np.concatenate, zip(*numbers, strict=True))
    order = np.argsort(old)
    place = np.argsort(np.argsort(new[order]))
    moved = np.flatnonzero(place != np.arange(len(place)))
    first = moved[:1]
    note(_PLACE, old[order[moved]], map(str, (*first.tolist(), *place[first].tolist())))
    return totals


def _paired(
    parts: Iterable[Sequence[Events | None]],
) -> Iterator[tuple[tuple[Events, Events], bool]]:
    """Yield the nodes that both sides have, in the order of A, and last those without a partner."""
    left: tuple[list[Events], list[Events]] = [], []
    looked_at = 0
    for pair in chain(parts, [()]):
        for side, part in zip(left, pair, strict=False):
            side.extend([] if part is None else [part])
        waiting = sum(len(events) for side in left for events in side)
        if not waiting or (pair and waiting < 2 * looked_at):
            continue  # else nodes without a partner so far would be looked at many times
        old, new = (joined(side) for side in left)
        if np.array_equal(old["id"], new["id"]):
            left[0][:], left[1][:] = [old.take(_NONE)], [new.take(_NONE)]
        else:
            ids = np.concatenate([old["id"], new["id"]])
            rows = paired(*np.split(np.unique(ids, return_inverse=True)[1], [len(old)]))
            for side, events, taken in zip(left, (old, new), rows, strict=True):
                side[:] = [events.take(np.setdiff1d(np.arange(len(events)), taken))]
            order = np.argsort(rows[0])
            old, new = old.take(rows[0][order]), new.take(rows[1][order])
        looked_at = len(left[0][0]) + len(left[1][0])
        yield (old, new), True
    if looked_at:
        yield (left[0][0], left[1][0]), False


def _note(totals: Totals, rank: int, name: str, numbers: Ints, texts: Iterable[str]) -> None:
    """Note the numbers of the nodes that differ; `texts` has both values of the first one."""
    kind = FieldKind.TIME if name in _TIMES else FieldKind.CONTENT
    of = f"nodes of {name[-1]}" if name.startswith("only in") else "SEBs"
    known = totals.compared.setdefault(name, Change(of, kind, 0, None))
    if len(numbers) and (known.first is None or numbers[0] < known.first.seb):
        known.first = FirstDifference(rank, int(numbers[0]), None, *texts)
    known.count += len(numbers)


def _compare(
    traces: Traces, pairs: Sequence[Events], note: Callable[[str, Ints, Iterable[str]], None]
) -> None:
    columns = [_columns(traces, events) for events in pairs]
    named = np.zeros(len(pairs[0]), dtype=np.bool_)
    for name, old in columns[0].items():
        new = columns[1][name]
        both_unknown = (old != old) & (new != new)  # noqa: PLR0124 - NaN, but not of texts
        differ = (old != new) & ~both_unknown
        if name == _REST:
            differ &= ~named
        elif name not in _TIMES:
            named |= differ
        at = np.flatnonzero(differ)
        values = (
            _value_text(name, events, at[0], column[name][at[0]])
            for events, column in zip(pairs, columns, strict=True)
        )
        note(name, pairs[0]["number"][at], values)


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
