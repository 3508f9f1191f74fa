"""What traces hold and where their time goes: by type, name, lane and rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from rewritelog.cores import limited_to
from rewritelog.formats.bgtrace.provenance import Provenance, read_provenance
from rewritelog.formats.traces import Traces, Unit
from rewritelog.running.engines import map_blocks
from rewritelog.text import (
    Readable,
    TextTable,
    count_text,
    percent_text,
    printable,
    time_text,
    wrapped,
)

_SHOWN = 20

Key = TypeVar("Key")


@dataclass
class Share:
    """Some events and their seconds."""

    events: int = 0
    seconds: float = 0.0

    def add(self, events: int, seconds: float) -> None:
        """Add some."""
        self.events += events
        self.seconds += seconds


@dataclass
class UnitSums:
    """The sums of a unit, or of several."""

    types: dict[str, Share] = field(default_factory=dict)
    names: dict[tuple[str, str], Share] = field(default_factory=dict)
    """By type and name."""
    lanes: dict[str, Share] = field(default_factory=dict)
    dependencies: int = 0
    zero: int = 0
    started: int = 0
    """The events with a recorded start."""

    def add(self, other: UnitSums) -> None:
        """Add those of another unit."""
        _add_shares(self.types, other.types)
        _add_shares(self.names, other.names)
        _add_shares(self.lanes, other.lanes)
        self.dependencies += other.dependencies
        self.zero += other.zero
        self.started += other.started


def _add_shares(own: dict[Key, Share], more: Mapping[Key, Share]) -> None:
    for key, share in more.items():
        own.setdefault(key, Share()).add(share.events, share.seconds)


@dataclass(frozen=True, repr=False)
class TraceInfo(Readable):
    """The result of `survey` of traces."""

    traces: Traces
    sums: UnitSums
    ranks: dict[int, Share]
    provenance: Provenance | None

    warnings = ()

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return sum(share.events for share in self.ranks.values())

    @property
    def seconds(self) -> float:
        """The sum of all durations."""
        return sum(share.seconds for share in self.ranks.values())

    def to_json(self) -> dict[str, Any]:
        """Return the summary as a JSON object."""
        sums = self.sums
        return {
            "logs": str(self.traces.path),
            "format": self.traces.title,
            "bytes": self.traces.size_bytes,
            "nodes": self.nodes,
            "dependencies": sums.dependencies,
            "zero_durations": sums.zero,
            "started": sums.started,
            "seconds": self.seconds,
            "types": {name: vars(share) for name, share in sums.types.items()},
            "lanes": {name: vars(share) for name, share in sums.lanes.items()},
            "names": [
                {"type": kind, "name": printable(name), **vars(share)}
                for (kind, name), share in self._by_time()
            ],
            "ranks": {str(rank): vars(share) for rank, share in self.ranks.items()},
            "provenance": None if self.provenance is None else dict(self.provenance.content),
        }

    def _by_time(self) -> list[tuple[tuple[str, str], Share]]:
        return sorted(
            self.sums.names.items(), key=lambda item: (-item[1].seconds, -item[1].events, item[0])
        )

    def text(self) -> str:
        """Return the summary as text."""
        sums, total = self.sums, self.seconds
        deps = count_text(sums.dependencies, "dependency", "dependencies")
        lines = [
            self.traces.text(),
            *([f"rewritten {self.provenance.text()}"] if self.provenance else []),
            f"{count_text(self.nodes, 'node')}, {deps}; durations together {time_text(total)}, "
            f"{sums.zero:,} of them 0; "
            + (f"{sums.started:,} with a start" if sums.started else "no start times"),
        ]
        tables = [
            _table("type", dict(sorted(sums.types.items())), total),
            _table("runs on", dict(sorted(sums.lanes.items())), total),
            _table("node", {f"{n} ({k})": share for (k, n), share in self._by_time()}, total),
        ]
        if len(self.ranks) > 1:
            most = sorted(self.ranks.items(), key=lambda item: -item[1].seconds)
            tables.append(_table("rank", {f"rank {r}": share for r, share in most}, total))
        return "\n".join([*map(wrapped, lines), *(line for table in tables for line in table)])


def _table(head: str, shares: dict[str, Share], total: float) -> list[str]:
    rows = [
        (
            name,
            f"{share.events:,}",
            time_text(share.seconds),
            percent_text(share.seconds / total if total else 0.0),
        )
        for name, share in shares.items()
    ]
    return TextTable((head, "nodes", "time", "share"), rows, most_rows=_SHOWN).lines()


def survey_traces(traces: Traces, *, jobs: int = 0) -> TraceInfo:
    """Read all traces and return their summary."""
    total, ranks = UnitSums(), dict[int, Share]()
    with limited_to(jobs):
        work = partial(_sums, traces)
        for unit, sums in map_blocks(work, traces.units, "reading", traces.size_bytes):
            total.add(sums)
            rank = ranks.setdefault(unit.rank, Share())
            for share in sums.types.values():
                rank.add(share.events, share.seconds)
    return TraceInfo(traces, total, ranks, read_provenance(traces.folder))


def _sums(traces: Traces, unit: Unit) -> UnitSums:
    sums = UnitSums()
    for part in traces.read(unit):
        names, name = part.names
        duration_s, kind = part.duration_s, part.type
        key = kind * max(len(names), 1) + name
        counts, seconds = np.bincount(key), np.bincount(key, duration_s)
        for each in np.flatnonzero(counts).tolist():
            which, called = divmod(each, len(names))
            type_name = traces.types[which]
            for share in (
                sums.types.setdefault(type_name, Share()),
                sums.names.setdefault((type_name, names[called]), Share()),
            ):
                share.add(int(counts[each]), float(seconds[each]))
        for on_host, lane in set(zip(part.on_host.tolist(), part.lane.tolist(), strict=True)):
            own = (part.on_host == on_host) & (part.lane == lane)
            label = f"{'CPU thread' if on_host else 'device stream'} {lane}"
            sums.lanes.setdefault(label, Share()).add(int(own.sum()), float(duration_s[own].sum()))
        sums.dependencies += int(part.dependencies()[0].sum())
        sums.zero += int(np.count_nonzero(duration_s == 0))
        sums.started += int(np.count_nonzero(~np.isnan(part.start_s)))
    return sums
