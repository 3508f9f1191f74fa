"""The critical path of a replay, by SEB name, event and message size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.replaying.categories import region_lengths
from rewritelog.replaying.kernels.chains import Path, critical_path, run_before
from rewritelog.replaying.simulate import ReplayedRun

_MOST_SIZES = 12
"""With more distinct sizes, messages are grouped by powers of two."""


@dataclass(frozen=True)
class MessageShare:
    """The messages on the critical path of one size, or of a range of sizes."""

    least_bytes: int
    most_bytes: int
    count: int
    seconds: float


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
    if outcome.run == 0:
        none = np.empty(0, dtype=np.int32)
        return CriticalPath(0, {}, {}, (), Path(none, np.empty(0), none, np.empty(0)))
    times, program = outcome.times, outcome.workload.program
    last = int(np.nanargmax(times.end_s))
    before = run_before(program, times.order, outcome.workload.pes)
    path = critical_path(program, outcome.scale, times, outcome.causes, before, last)
    names = outcome.workload.names
    by_name = np.bincount(program.sebs.name[path.seb], path.ran_s, minlength=len(names))
    return CriticalPath(
        len(path.seb),
        _largest_first(names, by_name),
        _largest_first(outcome.workload.events, _by_event(outcome, path)),
        _messages(outcome, path),
        path,
    )


def _largest_first(names: tuple[str, ...], seconds: Any) -> dict[str, float]:
    order = np.argsort(-seconds, kind="stable")
    return {names[k]: float(seconds[k]) for k in order if seconds[k] > 0}


def _by_event(outcome: ReplayedRun, path: Path) -> Floats:
    """Return the time of the path in the middle regions of each event."""
    workload, scale = outcome.workload, outcome.scale
    regions = workload.regions
    totals = np.zeros(len(workload.events))
    if len(regions.seb) == 0:
        return totals
    order = np.argsort(path.seb)
    on_path = path.seb[order]
    where = np.minimum(np.searchsorted(on_path, regions.seb), len(on_path) - 1)
    hit = np.flatnonzero(on_path[where] == regions.seb)
    ran = path.ran_s[order][where[hit]]
    name = workload.program.sebs.name[regions.seb[hit]]
    begin = regions.begin_scaled_s[hit] * scale.scaled[name]
    begin += regions.begin_fixed_s[hit] * scale.fixed[name]
    inside = np.clip(ran - begin, 0.0, region_lengths(outcome)[hit])
    totals += np.bincount(regions.event[hit], inside, minlength=len(totals))
    return totals


def _messages(outcome: ReplayedRun, path: Path) -> tuple[MessageShare, ...]:
    sent = np.flatnonzero(path.message >= 0)
    sizes = outcome.workload.program.messages.size_bytes[path.message[sent]].astype(np.int64)
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
