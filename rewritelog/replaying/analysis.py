"""What bounds a replay: the critical path, gains by name or event, and SEBs that never ran."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.core import core
from rewritelog.replaying.replay import Case, ReplayedRun, run_time
from rewritelog.replaying.workload import Numbers, Workload
from rewritelog.stopping import raise_if_stopped
from rewritelog.text import count_text

_MOST_SIZES = 12
"""With more distinct sizes, messages are grouped by powers of two."""


class MessageShare(Struct, frozen=True):
    """The messages on the critical path of one size, or of a range of sizes."""

    least_bytes: int
    most_bytes: int
    count: int
    seconds: float


class CriticalPath(Struct, frozen=True):
    """The critical path: a chain of SEBs and messages from time 0 to the end, without gaps.

    Its arrays go from its end backwards.
    """

    seb: Numbers
    ran_s: Floats
    """The seconds that the path spends in each SEB, counted from the SEB's start."""
    message: Numbers
    """The message by which the path came to the SEB, −1 if it came otherwise."""
    transit_s: Floats
    """The transit time of that message."""
    by_name_s: dict[str, float]
    """The time in SEBs by name, largest first."""
    by_event_s: dict[str, float]
    """The part of that time in middle regions, by event."""
    messages: tuple[MessageShare, ...]
    """Largest time first."""

    @property
    def length(self) -> int:
        """The number of SEBs on it."""
        return len(self.seb)

    def to_json(self) -> dict[str, Any]:
        """Return a summary of the path as a JSON object."""
        return {
            "sebs": self.length,
            "by_name_s": self.by_name_s,
            "by_event_s": self.by_event_s,
            "messages": [asdict(share) for share in self.messages],
        }


def find_critical_path(outcome: ReplayedRun) -> CriticalPath:
    """Return the critical path, traced back from the SEB that ends last.

    A SEB that waited for its PE is preceded by the SEB that ran there before it, any other by the
    SEB that produced its last input. The path therefore has no gap from 0 to the end.
    """
    workload, times, states, ran = (
        outcome.workload,
        outcome.times,
        outcome.states,
        outcome.order_by_pe[1],
    )
    waited = times.start_s > times.ready_s
    before = np.where(waited, -1, states["cause"])
    waiting = np.flatnonzero(waited[ran[1:]])
    before[ran[1:][waiting]] = ran[:-1][waiting]
    seb = _traced_back(before, int(np.nanargmax(times.end_s)) if len(ran) else -1)
    message, departure_s = np.full(len(seb), -1, dtype=np.int32), times.start_s[seb]
    sent = np.flatnonzero(~waited[seb] & (states["kind"][seb] == core.BY_MESSAGE))
    message[sent] = workload.sebs.starter[seb[sent]]
    departure_s[sent] = outcome.sent_s(before[seb[sent]], message[sent])
    ran_s = np.concatenate([times.end_s[seb[:1]], departure_s[:-1]]) - times.start_s[seb]
    transit_s = np.where(message >= 0, times.ready_s[seb] - departure_s, 0.0)
    if workload.nodes is not None:  # of each collective one part has the time
        kept = (ran_s > 0) | (workload.nodes.parts["next"][seb] == seb)
        seb, ran_s, message, transit_s = (each[kept] for each in (seb, ran_s, message, transit_s))
    name_s = np.bincount(workload.sebs.name[seb], ran_s, len(workload.names))
    sizes = workload.messages.size_bytes[message[sent]].astype(np.int64)
    return CriticalPath(
        seb,
        ran_s,
        message,
        transit_s,
        _largest_first(workload.names, name_s),
        _largest_first(workload.events, _by_event(outcome, seb, ran_s)),
        _by_size(sizes, transit_s[sent]),
    )


def _traced_back(before: Numbers, last: int) -> Numbers:
    """Return the SEB `last`, the one that precedes it, and so on to the first."""
    path = array("i")
    while last >= 0:
        raise_if_stopped()
        path.append(last)
        last = int(before[last])
    return np.array(path, dtype=np.int32)


def _largest_first(names: tuple[str, ...], seconds: Any) -> dict[str, float]:
    return {names[k]: float(seconds[k]) for k in _descending(seconds)}


def _descending(seconds: Any) -> list[int]:
    """Return the indices of times above 0, longest first."""
    return [k for k in np.argsort(-seconds, kind="stable").tolist() if seconds[k] > 0]


def _by_event(outcome: ReplayedRun, seb: Numbers, ran_s: Floats) -> Floats:
    """Return the time of the path in the middle regions of each event."""
    workload, regions = outcome.workload, outcome.workload.regions
    ran_of_seb_s = np.zeros(len(workload.sebs))
    ran_of_seb_s[seb] = ran_s
    begins_s, lengths_s = outcome.regions_s
    inside_s = np.clip(ran_of_seb_s[regions.seb] - begins_s, 0.0, lengths_s)
    return np.bincount(regions.event, inside_s, len(workload.events)).astype(np.float64)


def _by_size(sizes: Ints, transit_s: Floats) -> tuple[MessageShare, ...]:
    """Group messages by size in bytes, or by powers of two if there are many sizes."""
    classes, group = np.unique(sizes, return_inverse=True)
    if len(classes) > _MOST_SIZES:
        group = np.searchsorted(2 ** np.arange(32, dtype=np.int64), sizes)
    groups = (np.flatnonzero(group == number) for number in np.unique(group))
    shares = [
        MessageShare(int(sizes[g].min()), int(sizes[g].max()), len(g), float(transit_s[g].sum()))
        for g in groups
    ]
    return tuple(sorted(shares, key=lambda share: -share.seconds))


MOST_GAINS = 10
"""By default gains are computed for at most this many names, and this many events."""

MOST_REPLAYED_SEBS = 10_000_000
"""By default the replays for gains run at most this many SEBs in all, or there is only one."""


class GainCandidate(Struct, frozen=True):
    """All SEBs of a name, or all middle regions of an event, before their gain is known."""

    name: str
    busy_s: float
    """The PE-seconds in them."""


class Gain(GainCandidate, frozen=True):
    """The gain if all SEBs of a name, or all middle regions of an event, took no time."""

    gain_s: float
    """By how much the predicted run time becomes shorter."""


def gain_candidates(
    workload: Workload, name_s: Any, event_s: Any, most: int | None
) -> tuple[list[GainCandidate], list[GainCandidate], int]:
    """Return the names and events with the most busy time, and how many are left out.

    At most `most` of each are returned; None chooses numbers that limit the time for a large log
    set.
    """
    names = [GainCandidate(workload.names[k], float(name_s[k])) for k in _descending(name_s)]
    events = [GainCandidate(workload.events[k], float(event_s[k])) for k in _descending(event_s)]
    if most is not None:
        return names[:most], events[:most], 0
    names, events = names[:MOST_GAINS], events[:MOST_GAINS]
    replays = max(1, MOST_REPLAYED_SEBS // max(len(workload.sebs), 1))
    of_events = min(len(events), replays // 2)
    of_names = min(len(names), replays - of_events)
    left_out = len(names) + len(events) - of_names - of_events
    return names[:of_names], events[:of_events], left_out


def gain_of(outcome: ReplayedRun, candidate: GainCandidate, case: Case) -> Gain:
    """Compute a gain by a replay of `case`, in which its name or event takes no time."""
    sent = outcome.sent if case.free_event is None else None  # free SEBs send as they start
    shorter = run_time(outcome.workload, case, sent)
    return Gain(candidate.name, candidate.busy_s, outcome.predicted_s - shorter.predicted_s)


SHOWN = 10
"""At most this many blocked SEBs are named."""


class BlockedSeb(Struct, frozen=True):
    """A SEB that waits for something that the log does not contain."""

    pe: int
    seb: int
    name: str
    reason: str
    blocked_others: int
    """The number of other SEBs that never ran because of it."""


class Blocked(Struct, frozen=True):
    """The SEBs that never ran."""

    count: int
    roots: int
    """The number of those that wait for something that the log does not contain."""
    in_cycles: int
    """The number of those in a cycle of dependencies and messages, or waiting for such a SEB."""
    examples: tuple[BlockedSeb, ...] = ()
    """Those that block the most others."""


def find_blocked(outcome: ReplayedRun) -> Blocked:
    """Return the SEBs that never ran, each one counted for the SEB at the root of its waiting."""
    workload, count = outcome.workload, len(outcome.workload.sebs)
    never_ran = np.isnan(outcome.times.ready_s)
    if not never_ran.any():
        return Blocked(0, 0, 0)
    lacking = np.concatenate([workload.not_sent[:, 0], workload.beyond[:, 0]])
    roots = np.unique(lacking)
    root = _roots(workload, never_ran, roots)
    blocked_others = np.bincount(root[root >= 0], minlength=count)
    worst = roots[np.argsort(-blocked_others[roots], kind="stable")][:SHOWN]
    in_cycles = np.flatnonzero(never_ran & (root < 0))
    begun = in_cycles[outcome.states["pending"][in_cycles] == core.WAITS_FOR_PARTS]
    first = (begun if len(begun) else in_cycles)[:1]
    places = workload.places_of(np.concatenate([worst, first]))
    pes, indices = (of.tolist() for of in places)
    examples = [
        _example(workload, (pe, index), seb, int(blocked_others[seb]) - 1)
        for pe, index, seb in zip(pes, indices, worst.tolist(), strict=False)
    ]
    if len(in_cycles):
        name = workload.name_of(int(first[0]))
        reason = "is in a cycle of dependencies and messages, or waits for one"
        if len(begun):
            reason = "waits in a collective for a rank that never begins it"
        examples.append(BlockedSeb(pes[-1], indices[-1], name, reason, len(in_cycles) - 1))
    return Blocked(int(np.count_nonzero(never_ran)), len(roots), len(in_cycles), tuple(examples))


def _roots(workload: Workload, never_ran: Flags, roots: Numbers) -> Ints:
    """Return the nearest root that each SEB waits for; below 0 if it has run, or waits for none."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - few replays need it
    from scipy.sparse.csgraph import dijkstra  # noqa: PLC0415

    sebs, count = workload.sebs, len(workload.sebs)
    if not len(roots):
        return np.full(count, -1)
    started = np.flatnonzero(sebs.starter >= 0)
    sender = sebs.senders(sebs.starter[started])
    ended, waiting = sebs.waits(0, count)
    before, after = np.concatenate([sender, ended]), np.concatenate([started, waiting])
    is_blocked = never_ran[before]
    weights = np.ones(np.count_nonzero(is_blocked), dtype=np.int8)
    links = csr_array((weights, (before[is_blocked], after[is_blocked])), shape=(count, count))
    # links between the same two SEBs add up, so that weights are not lengths
    options = {"unweighted": True, "min_only": True, "return_predecessors": True}
    return np.asarray(dijkstra(links, indices=roots, **options)[2])


def _example(
    workload: Workload, place: tuple[int, int], seb: int, blocked_others: int
) -> BlockedSeb:
    """Return why a SEB never ran, given its PE and its index there."""
    not_sent, beyond = workload.not_sent, workload.beyond
    at = int(np.searchsorted(not_sent[:, 0], seb))
    if at < len(not_sent) and not_sent[at, 0] == seb:
        source, number = not_sent[at, 1:].tolist()
        reason = f"no SEB sends its starting message, number {number} of PE {source}"
    else:
        other = int(beyond[np.searchsorted(beyond[:, 0], seb), 1])
        length = int(np.diff(workload.sebs.first_of_pe)[place[0]])
        reason = f"depends on SEB {other}, but the timeline has {count_text(length, 'SEB')}"
    return BlockedSeb(*place, workload.name_of(seb), reason, blocked_others)
