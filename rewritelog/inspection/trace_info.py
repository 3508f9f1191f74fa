"""What traces hold and where their time goes: by type, name, lane and rank."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from rewritelog.cores import limited_to
from rewritelog.formats.files import Provenance, read_provenance
from rewritelog.formats.traces import Part, Traces, Unit
from rewritelog.inspection.survey import time_table
from rewritelog.running.engines import map_blocks
from rewritelog.text import Readable, count_text, printable, time_text, wrapped

Group: TypeAlias = tuple[str, ...]
"""What events have in common: `("types", TYPE)`, `("names", TYPE, NAME)`, `("lanes", LANE)` or
`("ranks", RANK)`."""


@dataclass
class EventShare:
    """Some events and their seconds."""

    events: int = 0
    seconds: float = 0.0

    def add(self, events: int, seconds: float) -> None:
        """Add some."""
        self.events += events
        self.seconds += seconds


@dataclass
class EventSums:
    """The sums of some events."""

    counts: Counter[str] = field(default_factory=Counter)
    """How many dependencies, durations of 0 and recorded starts there are."""
    groups: defaultdict[Group, EventShare] = field(default_factory=lambda: defaultdict(EventShare))

    def add(self, other: EventSums) -> None:
        """Add those of other events."""
        self.counts.update(other.counts)
        for group, share in other.groups.items():
            self.groups[group].add(share.events, share.seconds)

    def by(self, what: str) -> dict[Group, EventShare]:
        """Return the events by what they have in common, most time first."""
        groups = ((group[1:], share) for group, share in self.groups.items() if group[0] == what)
        return dict(sorted(groups, key=lambda item: (-item[1].seconds, -item[1].events, item[0])))


@dataclass(frozen=True, repr=False)
class TraceInfo(Readable):
    """The result of `survey` of traces."""

    traces: Traces
    sums: EventSums
    provenance: Provenance | None

    warnings = ()

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return sum(share.events for share in self.sums.by("ranks").values())

    @property
    def seconds(self) -> float:
        """The sum of all durations."""
        return sum(share.seconds for share in self.sums.by("ranks").values())

    def to_json(self) -> dict[str, Any]:
        """Return the summary as a JSON object."""
        counts = self.sums.counts
        shares = {
            what: {name: vars(share) for (name,), share in self.sums.by(what).items()}
            for what in ("types", "lanes", "ranks")
        }
        return {
            "logs": str(self.traces.path),
            "format": self.traces.title,
            "bytes": self.traces.size_bytes,
            "nodes": self.nodes,
            "dependencies": counts["dependencies"],
            "zero_durations": counts["zero"],
            "started": counts["started"],
            "seconds": self.seconds,
            **shares,
            "names": [
                {"type": kind, "name": printable(name), **vars(share)}
                for (kind, name), share in self.sums.by("names").items()
            ],
            "provenance": None if self.provenance is None else dict(self.provenance.content),
        }

    def text(self) -> str:
        """Return the summary as text."""
        counts = self.sums.counts
        dependencies = count_text(counts["dependencies"], "dependency", "dependencies")
        lines = [
            self.traces.text(),
            *([f"rewritten {self.provenance.text()}"] if self.provenance else []),
            f"{count_text(self.nodes, 'node')}, {dependencies}; durations together "
            f"{time_text(self.seconds)}, {count_text(counts['zero'], 'node')} of zero duration; "
            + (f"{counts['started']:,} with a start" if counts["started"] else "no start times"),
        ]
        tables = [
            *self._table("type", "types", "{}"),
            *self._table("runs on", "lanes", "{}"),
            *self._table("node", "names", "{1} ({0})"),
            *(self._table("rank", "ranks", "rank {}") if len(self.traces.units) > 1 else []),
        ]
        return "\n".join([*map(wrapped, lines), *tables])

    def _table(self, head: str, what: str, label: str) -> list[str]:
        shares = self.sums.by(what).items()
        rows = [(label.format(*group), share.events, share.seconds) for group, share in shares]
        return time_table((head, "nodes"), rows, self.seconds)


def survey_traces(traces: Traces, *, jobs: int = 0) -> TraceInfo:
    """Read all traces and return their summary."""
    total = EventSums()
    with limited_to(jobs):
        work = partial(_sums, traces)
        for _, sums in map_blocks(work, traces.units, "reading", traces.size_bytes):
            total.add(sums)
    return TraceInfo(traces, total, read_provenance(traces.folder))


def _sums(traces: Traces, unit: Unit) -> EventSums:
    sums = EventSums()
    rank = sums.groups["ranks", str(unit.rank)]
    for part in traces.read(unit):
        rank.add(len(part), float(part.duration_s.sum()))
        for group, events, seconds in _groups(part, traces.types):
            sums.groups[group].add(events, seconds)
        sums.counts.update(
            dependencies=int(part.dependencies()[0].sum()),
            zero=int(np.count_nonzero(part.duration_s == 0)),
            started=int(np.count_nonzero(~np.isnan(part.start_s))),
        )
    return sums


def _groups(part: Part, types: Sequence[str]) -> Iterator[tuple[Group, int, float]]:
    """Yield types, names and lanes of a part with their numbers of events and seconds."""
    names, name = part.names
    key = part.type * max(len(names), 1) + name
    counts, seconds = np.bincount(key), np.bincount(key, part.duration_s)
    for each in np.flatnonzero(counts).tolist():
        kind, called = divmod(each, len(names))
        for group in (("types", types[kind]), ("names", types[kind], names[called])):
            yield group, int(counts[each]), float(seconds[each])
    for on_host, lane in set(zip(part.on_host.tolist(), part.lane.tolist(), strict=True)):
        own = (part.on_host == on_host) & (part.lane == lane)
        label = f"{'CPU thread' if on_host else 'device stream'} {lane}"
        yield ("lanes", label), int(own.sum()), float(part.duration_s[own].sum())
