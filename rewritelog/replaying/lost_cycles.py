"""Lost cycles: all PE time of a replay, divided into complete and disjoint categories.

The categories are those of Crovella and LeBlanc, "Parallel performance prediction using lost cycles
analysis", Supercomputing '94.

The causes of idle time follow from chains. The chain of a SEB x goes back from the time when x was
ready to time 0. Its first link leads to the SEB v that produced the last input of x, the next to
the SEB that produced the last input of v, and so on. The link from v to x covers the time from when
v was ready to when x was: v waits for its PE (load imbalance), v runs, and a message is in transit
(communication). Each kind is summed along the chain, so that its amount in any interval before x
was ready is the difference of two sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from rewritelog.arrays import Floats, Ints, Table
from rewritelog.core import core
from rewritelog.errors import spelled
from rewritelog.replaying.replay import ReplayedRun
from rewritelog.stopping import in_steps
from rewritelog.text import last_match, matching, unused_patterns

OTHER = "other computation"
IDLE = (
    "start",
    "end",
    "communication",
    "insufficient parallelism",
    "synchronisation",
    "load imbalance",
)
"""The categories of idle time."""

START, END, COMMUNICATION, ALONE, SHARED, IMBALANCE = range(len(IDLE))
"""Their columns; `ALONE` while exactly one PE is busy, `SHARED` while more are."""

PE_RANGES = 3
"""The number of PE ranges in a table."""

_STEP = 1 << 18


def useful(event: str) -> str:
    """Return the name of the category of an event's middle regions."""
    return f"useful[{event}]"


class LostCycles(Struct, frozen=True):
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

    def ranges(self) -> Iterator[tuple[int, int, dict[str, float]]]:
        """Yield the first PE of each range, its number of PEs, and their PE-seconds by category."""
        sizes = np.diff([*self.first_pes, self.pes]).tolist()
        for first, size, row in zip(self.first_pes, sizes, self.seconds.tolist(), strict=True):
            yield first, size, dict(zip(self.categories, row, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Return the categories as a JSON object."""
        return {
            "pes": self.pes,
            "predicted_s": self.predicted_s,
            "categories_s": self.totals_s,
            "pe_ranges": [
                {"first_pe": first, "pes": size, "categories_s": seconds}
                for first, size, seconds in self.ranges()
            ],
        }


NO_LOST_CYCLES = LostCycles(0, 0.0, (), (), np.zeros((0, 0)))
"""For traces, whose time is not divided into categories."""


def lost_cycles(
    outcome: ReplayedRun, lost_as: Sequence[tuple[str, str]] = (), ranges: int = PE_RANGES
) -> LostCycles:
    """Divide the time of all PEs, from 0 to the end of the run, into categories by PE range.

    `lost_as` has pairs of a pattern for SEB names or events, and the category of lost time to which
    their busy time belongs.
    """
    workload = outcome.workload
    of_name = [last_match(lost_as, name, None) for name in workload.names]
    of_event = [last_match(lost_as, event, useful(event)) for event in workload.events]
    of_events = {useful(event) for event in workload.events}
    used = {name for name in (*of_name, *of_event) if name is not None}
    busy = (*sorted(used & of_events), OTHER, *sorted(used - of_events - {OTHER, *IDLE}))
    categories, count = (*busy, *IDLE), min(workload.pes, ranges)
    first = np.arange(count, dtype=np.int64) * workload.pes // count
    range_of_pe = np.repeat(np.arange(count), np.diff([*first, workload.pes]))
    seconds = _busy_s(outcome, categories, of_name, of_event, range_of_pe)
    seconds[:, len(busy) :] += np.add.reduceat(idle_by_kind(outcome), first, axis=0)
    matched = matching(lost_as, (*workload.names, *workload.events))
    return LostCycles(
        workload.pes,
        outcome.predicted_s,
        categories,
        tuple(first.tolist()),
        seconds,
        tuple(
            f"{spelled('lost_as')} {pattern}: matches no SEB name and no event{more}"
            for pattern, more in unused_patterns(lost_as, matched)
        ),
    )


def _busy_s(
    outcome: ReplayedRun,
    categories: tuple[str, ...],
    of_name: Sequence[str | None],
    of_event: Sequence[str],
    range_of_pe: Ints,
) -> Floats:
    """Return the busy PE-seconds, shape (ranges of PEs, categories).

    A middle region counts under its event, unless the name of its SEB has a category.
    """
    sebs, regions = outcome.workload.sebs, outcome.workload.regions
    column = {name: number for number, name in enumerate(categories)}
    by_name = np.array([column[name or OTHER] for name in of_name], dtype=np.int64)
    by_event = np.array([column[name] for name in of_event], dtype=np.int64)
    plain = np.array([name is None for name in of_name], dtype=np.bool_)
    middle_s = np.where(plain[sebs.name[regions.seb]], outcome.regions_s[1], 0.0)
    region_pe, outside = sebs.pe[regions.seb], np.full(len(of_event), column[OTHER])
    sums = np.zeros((int(range_of_pe[-1]) + 1, len(categories), 2))
    for column_of, code, pe, seconds in (
        (by_name, sebs.name, sebs.pe, outcome.busy_s),
        (outside, regions.event, region_pe, -middle_s),
        (by_event, regions.event, region_pe, middle_s),
    ):
        for step in in_steps(len(seconds)):
            group = range_of_pe[pe[step]] * len(categories) + column_of[code[step]]
            core.add_by_group(group, seconds[step], sums)
    return np.asarray(np.maximum(sums.sum(axis=2), 0.0))


def idle_by_kind(outcome: ReplayedRun) -> Floats:
    """Return the idle seconds of each PE by kind, shape (PEs, `len(IDLE)`)."""
    times, until_s = outcome.times, outcome.predicted_s
    first, ran = outcome.order_by_pe
    used = np.flatnonzero(np.diff(first))
    idle = np.zeros((outcome.workload.pes, len(IDLE)))
    idle[:, START] = until_s
    idle[used, START] = times.start_s[ran[first[used]]]
    idle[used, END] = until_s - times.end_s[ran[first[used + 1] - 1]]
    sums = np.zeros((*idle.shape, 2))
    _add_between(outcome, sums)
    return np.asarray(np.maximum(idle + sums.sum(axis=2), 0.0))


def _add_between(outcome: ReplayedRun, sums: Floats) -> None:
    """Add the idle time of PEs between their SEBs, by what the next SEB waited for."""
    times, ran, pe = outcome.times, outcome.order_by_pe[1], outcome.workload.sebs.pe
    starter = outcome.workload.sebs.starter
    history = outcome.states, times.start_s, starter, outcome.sent, _alone(outcome)
    chains = np.empty(len(outcome.states), dtype=core.structs["chain_link"])
    for step in in_steps(len(times.order), _STEP):
        core.add_up_chains(times.order[step], *history, chains)
    for step in in_steps(len(ran) - 1, _STEP):
        before, sebs = ran[step], ran[step.start + 1 : step.stop + 1]
        since_s = times.end_s[before]
        same_pe = pe[sebs] == pe[before]
        gaps = same_pe & (times.start_s[sebs] > since_s)
        sebs, since_s = sebs[gaps], since_s[gaps]
        split = np.empty((len(sebs), 3))
        core.split_idle(sebs, since_s, *history, chains, split)
        shared = times.ready_s[sebs] - since_s
        for part in split.T:
            shared -= part
        group = pe[sebs].astype(np.int64) * len(IDLE)
        kinds = (COMMUNICATION, ALONE, IMBALANCE, SHARED)
        for kind, seconds in zip(kinds, (*split.T, shared), strict=True):
            core.add_by_group(group + kind, np.ascontiguousarray(seconds), sums)


def _alone(outcome: ReplayedRun) -> Table:
    """Return the intervals in which exactly one PE is busy, in order.

    They are those in which one more SEB has begun than has ended; adjacent SEBs are one.
    """
    times, ran = outcome.times, outcome.order_by_pe[1]
    ran = ran[times.end_s[ran] > times.start_s[ran]]
    begins_s, ends_s = times.start_s[ran], times.end_s[ran]
    goes_on = begins_s[1:] == ends_s[:-1]
    begins_s = np.sort(np.concatenate([begins_s[:1], begins_s[1:][~goes_on]]))
    ends_s = np.sort(np.concatenate([ends_s[:-1][~goes_on], ends_s[-1:]]))
    since_s = np.maximum(begins_s, np.append(-np.inf, ends_s[:-1]))
    until_s = np.minimum(ends_s, np.append(begins_s[1:], np.inf))
    alone = until_s > since_s
    intervals = np.empty(np.count_nonzero(alone), dtype=core.structs["lone_interval"])
    intervals["begin_s"], intervals["end_s"] = since_s[alone], until_s[alone]
    lengths_s = intervals["end_s"] - intervals["begin_s"]
    intervals["before_s"][:1] = 0.0
    intervals["before_s"][1:] = np.cumsum(lengths_s[:-1])
    return intervals
