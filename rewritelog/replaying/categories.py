"""Lost cycles: all PE time of a replay, divided into complete and disjoint categories.

The categories are those of Crovella and LeBlanc, "Parallel performance prediction using lost cycles
analysis", Supercomputing '94.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.core import core
from rewritelog.errors import UsageError
from rewritelog.replaying.idle import idle_by_kind
from rewritelog.replaying.simulate import ReplayedRun
from rewritelog.replaying.workload import Numbers
from rewritelog.stopping import in_steps
from rewritelog.text import matches

OTHER = "other computation"
IDLE = (
    "start",
    "end",
    "communication",
    "insufficient parallelism",
    "synchronisation",
    "load imbalance",
)
"""The categories of idle time, in the order of the columns of `idle`."""

PE_RANGES = 3
"""The number of PE ranges in a table."""

_FORBIDDEN = "{}\n\r\t"


def useful(event: str) -> str:
    """Return the name of the category of an event's middle regions."""
    return f"useful[{event}]"


@dataclass(frozen=True)
class LostAs:
    """Rules for busy time that is lost: categories by patterns of names; the last match wins."""

    rules: tuple[tuple[str, str], ...] = ()
    """Pairs of a pattern for SEB names or events, with `*` for any characters, and a category."""

    def __post_init__(self) -> None:
        for pattern, category in self.rules:
            if not category.strip() or any(c in _FORBIDDEN for c in category):
                raise UsageError(f"--lost-as {pattern}={category}: invalid category name")

    def category(self, name: str) -> str | None:
        """Return the category of a name, None if no pattern matches it."""
        for pattern, category in reversed(self.rules):
            if matches(pattern, name):
                return category
        return None

    def unmatched(self, names: Sequence[str]) -> list[str]:
        """Return the patterns that match none of the names."""
        return [pattern for pattern, _ in self.rules if not any(matches(pattern, n) for n in names)]


@dataclass(frozen=True)
class LostCycles:
    """PE-seconds by category and range of PEs."""

    pes: int
    predicted_s: float
    categories: tuple[str, ...]
    first_pes: tuple[int, ...]
    """The first PE of each range."""
    seconds: Floats
    """Shape (ranges, categories)."""
    warnings: tuple[str, ...] = ()

    @property
    def totals_s(self) -> dict[str, float]:
        """The PE-seconds of each category."""
        return dict(zip(self.categories, self.seconds.sum(axis=0).tolist(), strict=True))

    def range_sizes(self) -> list[int]:
        """Return the number of PEs in each range."""
        sizes: list[int] = np.diff([*self.first_pes, self.pes]).tolist()
        return sizes

    def to_json(self) -> dict[str, Any]:
        """Return the categories as a JSON object."""
        return {
            "pes": self.pes,
            "predicted_s": self.predicted_s,
            "categories_s": self.totals_s,
            "pe_ranges": [
                {
                    "first_pe": first,
                    "pes": size,
                    "categories_s": dict(zip(self.categories, row.tolist(), strict=True)),
                }
                for first, size, row in zip(
                    self.first_pes, self.range_sizes(), self.seconds, strict=True
                )
            ],
        }


NO_LOST_CYCLES = LostCycles(0, 0.0, (), (), np.zeros((0, 0)))
"""Those of what has no PEs."""


@dataclass(frozen=True)
class _Ranges:
    """A division of the PEs into a few ranges of consecutive numbers."""

    first_pes: Numbers
    of_pe: Numbers

    @classmethod
    def of(cls, pes: int, most: int) -> _Ranges:
        count = min(pes, most)
        first = (np.arange(count, dtype=np.int64) * pes // count).astype(np.int32)
        of_pe = np.repeat(np.arange(count, dtype=np.int32), np.diff([*first, pes]))
        return cls(first, of_pe)


def lost_cycles(
    outcome: ReplayedRun, lost_as: LostAs | None = None, ranges: int = PE_RANGES
) -> LostCycles:
    """Divide the time of all PEs, from 0 to the end of the run, into categories by PE range."""
    lost_as = lost_as or LostAs()
    workload = outcome.workload
    split = _Ranges.of(workload.pes, ranges)
    busy = _busy_by_category(outcome, lost_as, split)
    idle = np.add.reduceat(idle_by_kind(outcome), split.first_pes, axis=0)
    for column, name in enumerate(IDLE):
        _add(busy, name, idle[:, column])
    own = {useful(event) for event in workload.events}
    categories = (
        *sorted(name for name in busy if name in own),
        OTHER,
        *sorted(name for name in busy if name not in own and name not in (OTHER, *IDLE)),
        *IDLE,
    )
    unmatched = lost_as.unmatched((*workload.names, *workload.events))
    return LostCycles(
        workload.pes,
        outcome.predicted_s,
        categories,
        tuple(split.first_pes.tolist()),
        np.column_stack([busy[category] for category in categories]),
        tuple(f"--lost-as {pattern}: matches no SEB name and no event" for pattern in unmatched),
    )


def _busy_by_category(outcome: ReplayedRun, lost_as: LostAs, split: _Ranges) -> dict[str, Floats]:
    """Return the busy PE-seconds of each category, by range of PEs."""
    workload, split_of = outcome.workload, split.of_pe
    sebs, regions = workload.sebs, workload.regions
    of_name = [lost_as.category(name) or OTHER for name in workload.names]
    plain = np.array([lost_as.category(name) is None for name in workload.names], dtype=np.bool_)
    middle = region_lengths(outcome)
    middle[~plain[sebs.name[regions.seb]]] = 0.0
    of_event = [lost_as.category(event) or useful(event) for event in workload.events]
    busy: dict[str, Floats] = {OTHER: np.zeros(len(split.first_pes))}
    _add_by_code(busy, of_name, sebs.name, split_of[sebs.pe], outcome.busy_s)
    region_range = split_of[sebs.pe[regions.seb]]
    _add_by_code(busy, [OTHER] * len(of_event), regions.event, region_range, -middle)
    busy[OTHER] = np.maximum(busy[OTHER], 0.0)
    _add_by_code(busy, of_event, regions.event, region_range, middle)
    return busy


def _add_by_code(
    busy: dict[str, Floats],
    categories: list[str],
    code: Numbers,
    pe_range: Numbers,
    seconds: Floats,
) -> None:
    """Add durations to their categories; `categories[code]` is that of a duration."""
    distinct = sorted(set(categories))
    number_of = {name: number for number, name in enumerate(distinct)}
    numbers = np.array([number_of[name] for name in categories], dtype=np.int64)
    sums = np.zeros((int(pe_range.max(initial=-1)) + 1, len(distinct), 2))
    for step in in_steps(len(seconds)):
        groups = pe_range[step] * len(distinct) + numbers[code[step]]
        core.add_by_group(groups, seconds[step], sums)
    table = np.zeros((len(busy[OTHER]), len(distinct)))
    table[: len(sums)] = sums.sum(axis=2)
    for column, name in enumerate(distinct):
        _add(busy, name, table[:, column])


def _add(busy: dict[str, Floats], category: str, seconds: Floats) -> None:
    busy[category] = busy[category] + seconds if category in busy else seconds.copy()


def region_lengths(outcome: ReplayedRun) -> Floats:
    """Return the length of each middle region in seconds; 0 in SEBs that never ran."""
    workload, regions = outcome.workload, outcome.workload.regions
    name = workload.sebs.name[regions.seb]
    lengths = outcome.case.seconds(workload, regions.scaled_s, regions.fixed_s, name)
    lengths[np.isnan(outcome.times.start_s[regions.seb])] = 0.0
    return lengths
