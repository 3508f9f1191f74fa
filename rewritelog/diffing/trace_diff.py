"""The differences of two sets of traces: nodes are compared by their ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from rewritelog.arrays import Keys
from rewritelog.cores import limited_to
from rewritelog.errors import NotComparableError
from rewritelog.formats.traces import Traces, Unit
from rewritelog.formats.unit_events import NUMBERS, UnitEvents, load_unit
from rewritelog.running.engines import map_blocks
from rewritelog.text import Readable, TextTable, count_text, printable, ratio_text, time_text

_SHOWN = 20


@dataclass
class Differences:
    """The differences of one rank, or of all."""

    common: int = 0
    only_a: int = 0
    only_b: int = 0
    fields: dict[str, int] = field(default_factory=dict)
    """How many nodes differ in a field."""
    names: dict[str, list[float]] = field(default_factory=dict)
    """Nodes of a name whose durations differ, and the seconds of all its nodes on each side."""
    order: int = 0
    """The number of ranks with the same nodes in another order."""

    def add(self, other: Differences) -> None:
        """Add those of another rank."""
        for key in ("common", "only_a", "only_b", "order"):
            setattr(self, key, getattr(self, key) + getattr(other, key))
        for name, count in other.fields.items():
            self.fields[name] = self.fields.get(name, 0) + count
        for name, numbers in other.names.items():
            own = self.names.setdefault(name, [0.0, 0.0, 0.0])
            self.names[name] = [a + b for a, b in zip(own, numbers, strict=True)]


@dataclass(frozen=True, repr=False)
class TraceComparison(Readable):
    """The differences of two sets of traces."""

    sides: tuple[Traces, Traces]
    found: Differences

    @property
    def same(self) -> bool:
        """Whether there is no difference in what was compared."""
        found = self.found
        return not (found.fields or found.only_a or found.only_b or found.order)

    @property
    def verdict(self) -> str:
        """The result in a phrase."""
        if self.same:
            return "the same"
        found = self.found
        alone = set(found.fields) <= {"duration"} and not (found.only_a or found.only_b)
        return "different: only durations" if alone and not found.order else "different"

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as a JSON object."""
        found = self.found
        return {
            "a": str(self.sides[0].path),
            "b": str(self.sides[1].path),
            "verdict": self.verdict,
            "same": self.same,
            "nodes": {"common": found.common, "only_a": found.only_a, "only_b": found.only_b},
            "ranks_in_another_order": found.order,
            "fields": found.fields,
            "names": [
                {"name": printable(name), "changed": int(changed), "a_s": a_s, "b_s": b_s}
                for name, (changed, a_s, b_s) in self._changed()
            ],
        }

    def _changed(self) -> list[tuple[str, list[float]]]:
        changed = [(name, numbers) for name, numbers in self.found.names.items() if numbers[0]]
        return sorted(changed, key=lambda item: (-abs(item[1][2] - item[1][1]), item[0]))

    def text(self) -> str:
        """Return the comparison as text."""
        found = self.found
        lines = [
            self.verdict,
            *(f"{side}: {traces.text()}" for side, traces in zip("AB", self.sides, strict=True)),
            f"{count_text(found.common, 'node')} in both",
            f"{found.only_a:,} only in A, {found.only_b:,} only in B",
        ]
        if found.order:
            lines.append(f"in another order: nodes of {count_text(found.order, 'rank')}")
        lines += [f"{name} differs in {count_text(n, 'node')}" for name, n in found.fields.items()]
        rows = [
            (
                name,
                f"{int(n):,}",
                time_text(a_s),
                time_text(b_s),
                _ratio(a_s, b_s),
            )
            for name, (n, a_s, b_s) in self._changed()
        ]
        if rows:
            heads = ("node", "changed", "A", "B", "A/B")
            lines += TextTable(heads, rows, most_rows=_SHOWN).lines()
        return "\n".join(lines)


def compare_traces(a: Traces, b: Traces, *, jobs: int = 0) -> TraceComparison:
    """Compare two sets of traces; raise `NotComparableError` for different ranks."""
    ranks = [[unit.rank for unit in traces.units] for traces in (a, b)]
    if ranks[0] != ranks[1]:
        counts = " and ".join(count_text(len(each), "rank") for each in ranks)
        raise NotComparableError(f"A and B have {counts}, or different ones")
    total, others = Differences(), {unit.rank: unit for unit in b.units}
    with limited_to(jobs):
        work = partial(_compared, a, b, others)
        for _, found in map_blocks(work, a.units, "comparing", a.size_bytes):
            total.add(found)
    return TraceComparison((a, b), total)


def _compared(a: Traces, b: Traces, others: dict[int, Unit], unit: Unit) -> Differences:
    one, other = load_unit(a, unit), load_unit(b, others[unit.rank])
    _, rows, columns = np.intersect1d(one.ids, other.ids, return_indices=True)
    found = Differences(
        common=len(rows), only_a=len(one) - len(rows), only_b=len(other) - len(rows)
    )
    found.order = int((np.diff(columns[np.argsort(rows)]) < 0).any())
    names = np.array([*one.names, ""], dtype=object)[one.name[rows]]
    pairs = {
        "duration": (one.duration_s[rows], other.duration_s[columns]),
        "start": (one.start_s[rows], other.start_s[columns]),
        "type": (one.type[rows], other.type[columns]),
        "name": (names, np.array([*other.names, ""], dtype=object)[other.name[columns]]),
        "dependencies": (_waits(one)[rows], _waits(other)[columns]),
        "CPU or device": (one.on_host[rows], other.on_host[columns]),
        "thread or stream": (one.lane[rows], other.lane[columns]),
        **{key: (one.numbers[key][rows], other.numbers[key][columns]) for key in NUMBERS},
    }
    for name, (left, right) in pairs.items():
        both_unknown = (left != left) & (right != right)  # noqa: PLR0124 - NaN, but not of texts
        if count := int(np.count_nonzero((left != right) & ~both_unknown)):
            found.fields[name] = count
    left_s, right_s = pairs["duration"]
    for name in dict.fromkeys(names.tolist()):
        own = names == name
        changed = float(np.count_nonzero(left_s[own] != right_s[own]))
        found.names[name] = [changed, float(left_s[own].sum()), float(right_s[own].sum())]
    return found


def _waits(events: UnitEvents) -> Keys:
    """Return a number for each event that depends on the ids it waits for, in any order."""
    ends = np.concatenate([[0], np.cumsum(events.dep_counts)])
    mixed = events.dep_ids * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    all_of_each: Keys = sums[ends[1:]] - sums[ends[:-1]] + events.dep_counts.astype(np.uint64)
    return all_of_each


def _ratio(a_s: float, b_s: float) -> str:
    return ratio_text(a_s / b_s if b_s else None)
