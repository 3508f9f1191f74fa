"""The causes of idle time: chains of the SEBs that a SEB waited for, and sums along them.

The chain of a SEB x goes back from the time when x was ready to time 0. Its first link leads to the
SEB v that produced the last input of x, the next one from v to the SEB of its last input, and so
on. The link from v to x covers the time between the readiness of the two: v waiting for its PE
(load imbalance), v running, and a message in transit (communication). The sums of these kinds along
each chain make their amounts in an interval before x was ready differences of two sums.
"""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Floats, Table
from rewritelog.core import core
from rewritelog.replaying.simulate import ReplayedRun
from rewritelog.stopping import in_steps

START, END, COMMUNICATION, ALONE, SHARED, IMBALANCE = range(6)
"""The columns of idle time; `ALONE` while exactly one PE is busy, `SHARED` while more are."""
IDLE_KINDS = 6

_STEP = 1 << 18


def idle_by_kind(outcome: ReplayedRun) -> Floats:
    """Return the idle seconds of each PE by kind, shape (PEs, `IDLE_KINDS`)."""
    times, until_s = outcome.times, outcome.predicted_s
    first, ran = outcome.lines
    used = np.flatnonzero(np.diff(first))
    idle = np.zeros((outcome.workload.pes, IDLE_KINDS))
    idle[:, START] = until_s
    idle[used, START] = times.start_s[ran[first[used]]]
    idle[used, END] = until_s - times.end_s[ran[first[used + 1] - 1]]
    sums = np.zeros((*idle.shape, 2))
    _add_between(outcome, sums)
    return np.asarray(np.maximum(idle + sums.sum(axis=2), 0.0))


def _add_between(outcome: ReplayedRun, sums: Floats) -> None:
    """Add the idle time of PEs between their SEBs, by what the next SEB waited for."""
    times, ran, starter = outcome.times, outcome.lines[1], outcome.workload.sebs.starter
    history = outcome.runs, times.start_s, starter, outcome.sent, _alone(outcome)
    chains = np.empty(len(outcome.runs), dtype=core.structs["chain_link"])
    for step in in_steps(len(times.order), _STEP):
        core.add_up_chains(times.order[step], *history, chains)
    for step in in_steps(len(ran) - 1, _STEP):
        before, sebs = ran[step], ran[step.start + 1 : step.stop + 1]
        since_s = times.end_s[before]
        same_pe = outcome.pe_of(sebs) == outcome.pe_of(before)
        gaps = same_pe & (times.start_s[sebs] > since_s)
        sebs, since_s = sebs[gaps], since_s[gaps]
        split = np.empty((len(sebs), 3))
        core.split_idle(sebs, since_s, *history, chains, split)
        shared = times.ready_s[sebs] - since_s
        for part in split.T:
            shared -= part
        group = outcome.pe_of(sebs).astype(np.int64) * IDLE_KINDS
        kinds = (COMMUNICATION, ALONE, IMBALANCE, SHARED)
        for kind, seconds in zip(kinds, (*split.T, shared), strict=True):
            core.add_by_group(group + kind, np.ascontiguousarray(seconds), sums)


def _alone(outcome: ReplayedRun) -> Table:
    """Return the intervals in which exactly one PE is busy, in order.

    With n ends so far, one PE is busy from the begin n + 1 to the next event.
    """
    begins_s, ends_s = _busy(outcome)
    begins_s.sort()
    ends_s.sort()
    since_s = np.maximum(begins_s, np.append(-np.inf, ends_s[:-1])[: len(begins_s)])
    until_s = np.minimum(ends_s, np.append(begins_s[1:], np.inf)[: len(begins_s)])
    alone = until_s > since_s
    intervals = np.empty(np.count_nonzero(alone), dtype=core.structs["lone_interval"])
    intervals["begin_s"], intervals["end_s"] = since_s[alone], until_s[alone]
    lengths_s = intervals["end_s"] - intervals["begin_s"]
    intervals["before_s"][:1] = 0.0
    intervals["before_s"][1:] = np.cumsum(lengths_s[:-1])
    return intervals


def _busy(outcome: ReplayedRun) -> tuple[Floats, Floats]:
    """Return the begin and end times of the intervals in which each PE is busy."""
    times, ran = outcome.times, outcome.lines[1]
    ran = ran[times.end_s[ran] > times.start_s[ran]]
    start_s, end_s = times.start_s[ran], times.end_s[ran]
    goes_on = (start_s[1:] == end_s[:-1]) & (outcome.pe_of(ran[1:]) == outcome.pe_of(ran[:-1]))
    any_ran = np.ones(min(len(ran), 1), dtype=np.bool_)
    begins, ends = np.concatenate([any_ran, ~goes_on]), np.concatenate([~goes_on, any_ran])
    return start_s[begins], end_s[ends]
