"""The comparison of one rank of two sets of traces: nodes are paired by their ids."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Ints, Keys
from rewritelog.diffing.durations import MOST_ROWS, Timed, named_rows, rows_of
from rewritelog.diffing.records import ABSENT, NODE_FIELDS, Change, FirstDifference, Totals
from rewritelog.formats.traces import Traces, Unit, UnitEvents, load_unit
from rewritelog.text import printable

_DEPS_SHOWN = 5


@dataclass(frozen=True)
class TraceDiffTask:
    """What is needed to compare any rank; it can be pickled for another process."""

    a: Traces
    b: Traces

    def __call__(self, unit: Unit, /) -> Totals:
        """Compare a unit of A with that of B; raise `DamagedLogError` if a side is damaged."""
        other = next(other for other in self.b.units if other.rank == unit.rank)
        return compare_units(self.a, load_unit(self.a, unit), load_unit(self.b, other))


def compare_units(traces: Traces, a: UnitEvents, b: UnitEvents) -> Totals:
    """Compare the nodes of two units; memory is needed for both."""
    totals, sides = Totals(), (a, b)
    _, rows, others = np.intersect1d(a.ids, b.ids, return_indices=True)
    order = np.argsort(rows)
    pairs = rows[order], others[order]
    for counts, events in zip(totals.sides, sides, strict=True):
        counts["SEBs"] = len(events)
    totals.common["SEBs"] = len(rows)
    for name, which, at in (("only in A", 0, pairs[0]), ("only in B", 1, pairs[1])):
        alone = np.setdiff1d(np.arange(len(sides[which])), at)
        if len(alone):
            texts = [ABSENT, ABSENT]
            texts[which] = f"id {sides[which].ids[alone[0]]}"
            _note(totals, name, a.unit.rank, alone, texts)
    values = [_values(traces, events, own) for events, own in zip(sides, pairs, strict=True)]
    values[0]["place among the nodes"] = np.arange(len(rows))
    values[1]["place among the nodes"] = np.argsort(np.argsort(pairs[1]))
    for name, left in values[0].items():
        right = values[1][name]
        both_unknown = (left != left) & (right != right)  # noqa: PLR0124 - NaN, but not of texts
        at = np.flatnonzero((left != right) & ~both_unknown)
        if len(at):
            texts = [
                _deps_text(events, own[at[0]])
                if name == "dependencies"
                else _text(of_side[name][at[0]])
                for events, own, of_side in zip(sides, pairs, values, strict=True)
            ]
            _note(totals, name, a.unit.rank, pairs[0][at], texts)
    _add_durations(totals, sides, pairs)
    return totals


def _note(totals: Totals, name: str, rank: int, rows: Ints, texts: list[str]) -> None:
    """Note that nodes differ in a field; `texts` are the values of the first."""
    first = FirstDifference(rank, int(rows[0]), None, *texts)
    totals.changed[NODE_FIELDS[name]] = Change(len(rows), first)


def _values(traces: Traces, events: UnitEvents, rows: Ints) -> dict[str, np.ndarray]:
    """Return what is compared of some nodes."""
    columns = {
        "duration": events.duration_s,
        "start": events.start_s,
        "type": np.array(traces.types, dtype=object)[events.type],
        "name": np.array([*events.names, ""], dtype=object)[events.name],
        "dependencies": _waits(events),
        "CPU or device": np.where(events.on_host, "CPU", "device"),
        "thread or stream": events.lane,
        **events.numbers,
    }
    return {name: column[rows] for name, column in columns.items()}


def _text(value: object) -> str:
    return repr(printable(value)) if isinstance(value, str) else f"{value:.17g}"


def _deps_text(events: UnitEvents, row: int) -> str:
    ids = events.dep_ids[events.waiting == row]
    shown = [str(each) for each in ids[:_DEPS_SHOWN]]
    return f"[{', '.join([*shown, *['…'] * (len(ids) > _DEPS_SHOWN)])}]"


def _waits(events: UnitEvents) -> Keys:
    """Return a number for each event that depends on the ids it waits for, in any order."""
    ends = np.concatenate([[0], np.cumsum(events.dep_counts)])
    mixed = events.dep_ids * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    all_of_each: Keys = sums[ends[1:]] - sums[ends[:-1]] + events.dep_counts.astype(np.uint64)
    return all_of_each


def _add_durations(
    totals: Totals, sides: tuple[UnitEvents, UnitEvents], pairs: tuple[Ints, Ints]
) -> None:
    """Add the durations by name: of all nodes of each side, and of those that both have."""
    known: dict[str, int] = {}
    timed = []
    for events in sides:
        numbers = [known.setdefault(name, len(known)) for name in events.names]
        number = np.array([*numbers, 0])[events.name]
        timed.append(Timed(np.minimum(number, MOST_ROWS), events.duration_s))
    both = [each.take(own) for each, own in zip(timed, pairs, strict=True)]
    names = named_rows(list(map(printable, known)))
    totals.by_name = rows_of(names, [each.rows for each in timed], timed, both)
