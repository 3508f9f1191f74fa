"""The critical path of a replay, by SEB name, event and message size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.core import core
from rewritelog.replaying.categories import region_lengths
from rewritelog.replaying.simulate import ReplayedRun
from rewritelog.replaying.workload import Numbers
from rewritelog.stopping import raise_if_stopped

_MOST_SIZES = 12
"""With more distinct sizes, messages are grouped by powers of two."""

_STEP = 1 << 20
"""How many SEBs of the path are followed before a signal is handled."""


@dataclass(frozen=True)
class MessageShare:
    """The messages on the critical path of one size, or of a range of sizes."""

    least_bytes: int
    most_bytes: int
    count: int
    seconds: float


class Path(NamedTuple):
    """The critical path from its end backwards: SEBs, and the messages between them."""

    seb: Numbers
    ran_s: Floats
    """The seconds of the path in each SEB, from the start of the SEB."""
    message: Numbers
    """The message by which the path came to the SEB, −1 if it came otherwise."""
    transit_s: Floats
    """The transit time of that message."""


@dataclass(frozen=True)
class CriticalPath:
    """The critical path: a chain of SEBs and messages from time 0 to the end, without gaps."""

    length: int
    """The number of SEBs on it."""
    by_name_s: dict[str, float]
    """The time in SEBs by name, largest first."""
    by_event_s: dict[str, float]
    """The part of that time in middle regions, by event."""
    messages: tuple[MessageShare, ...]
    """Largest time first."""
    path: Path
    """The path itself, from its end."""

    def to_json(self) -> dict[str, Any]:
        """Return a summary of the path as a JSON object."""
        return {
            "sebs": self.length,
            "by_name_s": self.by_name_s,
            "by_event_s": self.by_event_s,
            "messages": [vars(share) for share in self.messages],
        }


def find_critical_path(outcome: ReplayedRun) -> CriticalPath:
    """Return the critical path, traced back from the SEB that ends last."""
    workload = outcome.workload
    path = _path(outcome)
    names = workload.names
    by_name = np.bincount(workload.sebs.name[path.seb], path.ran_s, minlength=len(names))
    return CriticalPath(
        len(path.seb),
        _largest_first(names, by_name),
        _largest_first(workload.events, _by_event(outcome, path)),
        _messages(outcome, path),
        path,
    )


def _path(outcome: ReplayedRun) -> Path:
    """Return the path to the SEB that ends last.

    Its predecessor at a SEB that had to wait for its PE is the SEB that ran there before, and
    otherwise the SEB of the last input. The path therefore has no gap from 0 to the end.
    """
    times, ran, runs = outcome.times, outcome.lines[1], outcome.runs
    waited = times.start_s > times.ready_s
    before = np.where(waited, -1, runs["cause"])
    waiting = np.flatnonzero(waited[ran[1:]])
    before[ran[1:][waiting]] = ran[:-1][waiting]
    path = _followed(before, int(np.nanargmax(times.end_s)) if len(ran) else -1)
    message, left_s = np.full(len(path), -1, dtype=np.int32), times.start_s[path]
    sent = np.flatnonzero(~waited[path] & (runs["kind"][path] == core.BY_MESSAGE))
    message[sent] = outcome.workload.sebs.starter[path[sent]]
    left_s[sent] = outcome.sent_s(before[path[sent]], message[sent])
    until_s = np.concatenate([times.end_s[path[:1]], left_s[:-1]])
    transit_s = np.where(message >= 0, times.ready_s[path] - left_s, 0.0)
    return Path(path, until_s - times.start_s[path], message, transit_s)


def _followed(before: Numbers, last: int) -> Numbers:
    """Return a SEB, the one before it, and so on."""
    parts = [np.empty(0, dtype=np.int32)]
    while last >= 0:
        raise_if_stopped()
        part = np.empty(_STEP, dtype=np.int32)
        parts.append(part[: core.follow(before, last, part)].copy())
        last = int(before[parts[-1][-1]])
    return np.concatenate(parts)


def _largest_first(names: tuple[str, ...], seconds: Any) -> dict[str, float]:
    order = np.argsort(-seconds, kind="stable")
    return {names[k]: float(seconds[k]) for k in order if seconds[k] > 0}


def _by_event(outcome: ReplayedRun, path: Path) -> Floats:
    """Return the time of the path in the middle regions of each event."""
    workload = outcome.workload
    regions = workload.regions
    totals = np.zeros(len(workload.events))
    if len(regions.seb) == 0:
        return totals
    order = np.argsort(path.seb)
    on_path = path.seb[order]
    where = np.minimum(np.searchsorted(on_path, regions.seb), len(on_path) - 1)
    hit = np.flatnonzero(on_path[where] == regions.seb)
    ran = path.ran_s[order][where[hit]]
    name = workload.sebs.name[regions.seb[hit]]
    begins = regions.begin_scaled_s[hit], regions.begin_fixed_s[hit]
    begin = outcome.case.seconds(workload, *begins, name)
    inside = np.clip(ran - begin, 0.0, region_lengths(outcome)[hit])
    totals += np.bincount(regions.event[hit], inside, minlength=len(totals))
    return totals


def _messages(outcome: ReplayedRun, path: Path) -> tuple[MessageShare, ...]:
    sent = np.flatnonzero(path.message >= 0)
    sizes = outcome.workload.messages.size_bytes[path.message[sent]].astype(np.int64)
    transit = path.transit_s[sent]
    classes = np.unique(sizes)
    if len(classes) > _MOST_SIZES:
        bounds = 2 ** np.arange(32, dtype=np.int64)
        group = np.searchsorted(bounds, sizes)
    else:
        group = np.searchsorted(classes, sizes)
    shares = []
    for number in np.unique(group):
        of_group = group == number
        shares.append(
            MessageShare(
                int(sizes[of_group].min()),
                int(sizes[of_group].max()),
                int(np.count_nonzero(of_group)),
                float(transit[of_group].sum()),
            )
        )
    return tuple(sorted(shares, key=lambda share: -share.seconds))
