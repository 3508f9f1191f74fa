"""The summary of a log set: machine, sizes, brackets, and time by SEB name; and that of traces."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct

from rewritelog.arrays import ZERO_SUM, rounded_sum
from rewritelog.commands.logs import InfoCommand
from rewritelog.formats.bgtrace.heads import Summary
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import list_params
from rewritelog.formats.bgtrace.records import tracer_replaces
from rewritelog.formats.files import Provenance, read_provenance
from rewritelog.formats.traces import Part, Traces
from rewritelog.inspection.survey import (
    SHOWN,
    Survey,
    Traffic,
    read_survey,
    survey_of_block,
    time_table,
)
from rewritelog.running.locks import cached_property
from rewritelog.text import (
    Readable,
    bytes_text,
    count_text,
    decoded,
    json_number,
    json_of,
    percent_text,
    printable,
    share_of,
    time_text,
    wrapped,
)


class NameShare(Struct, frozen=True):
    """The SEBs of one name."""

    name: str
    """The name; bytes of it that are not UTF-8 are escaped."""
    sebs: int
    seconds: float
    """The sum of their durations."""
    share: float
    """The share of the durations of all SEBs, from 0 to 1."""


class FileInfo(Struct, frozen=True):
    """A file of the log set."""

    name: str
    bytes: int


@dataclass(frozen=True, repr=False)
class LogInfo(Readable):
    """The result of `survey`."""

    item = "SEB"

    folder: str
    summary: Summary
    files: tuple[FileInfo, ...]
    """The timeline files."""
    sebs: int
    messages: int
    log_events: int
    backward: int
    """The number of backward dependencies."""
    forward: int
    """The number of forward dependencies."""
    earliest_s: float | None
    """The earliest start of a SEB; None if no SEB has finite times."""
    latest_s: float | None
    """The latest end of a closed SEB."""
    seb_seconds: float
    """The sum of the durations of all closed SEBs."""
    names: tuple[NameShare, ...]
    """SEB names, most time first."""
    brackets: int
    irregular: int
    """The number of SEBs whose marks do not pair up."""
    unclosed: int
    """The number of SEBs that end before they start."""
    zero_length: int
    not_finite: int
    """The number of SEBs whose start or end is not finite; other times leave them out."""
    param_files: int
    provenance: Provenance | None
    """The provenance of rewritten logs; None for others."""
    traffic: Traffic
    """Who sends how much to whom, and in messages of which sizes."""

    warnings = ()

    @property
    def tracer_replaces(self) -> float:
        """The share of SEB time whose durations TraceR ignores."""
        return math.fsum(name.share for name in self.names if tracer_replaces(name.name.encode()))

    @property
    def size_bytes(self) -> int:
        """The total size of the timeline files."""
        return sum(file.bytes for file in self.files)

    def times(self) -> list[tuple[str, str, int, float]]:
        """Return for each name of SEBs: the name, an empty suffix, number and seconds."""
        return [(name.name, "", name.sebs, name.seconds) for name in self.names]

    def to_json(self) -> dict[str, Any]:
        """Return the summary as a JSON object; numbers that are not finite are null."""
        summary = json_of(self.summary)
        summary["timeline_files"] = summary.pop("files")
        excluded = ("summary", "provenance", "traffic")
        fields = {name: value for name, value in vars(self).items() if name not in excluded}
        return {
            **json_of(fields),
            "bytes": self.size_bytes,
            "machine": summary,
            "traffic": self.traffic.to_json(),
            "provenance": None if self.provenance is None else dict(self.provenance.content),
            "tracer_replaces": json_number(self.tracer_replaces),
        }

    def text(self) -> str:
        """Return the summary as text, with only the names that take most time."""
        table = time_table(("SEB name", "SEBs"), self.times(), self.seb_seconds)
        return "\n".join([*map(wrapped, self.top_lines()), *table.lines()])

    def top_lines(self) -> list[str]:
        """Return the lines at the top of the text, before they are wrapped."""
        return [*self._machine_lines(), *self._content_lines()]

    def _machine_lines(self) -> list[str]:
        s = self.summary
        workers = count_text(s.num_wth, "worker thread")
        communicators = count_text(s.num_cth, "communication thread")
        nodes = f"{s.x} × {s.y} × {s.z} nodes, {workers} and {communicators} per node"
        version = f"log version {s.log_version}, {s.order}-endian"
        lines = [
            f"{printable(self.folder)}: {version}, header version {s.header_version}",
            f"machine: {nodes}: {count_text(s.total_pes, 'PE')}",
            f"{count_text(len(self.files), 'timeline file')}: {bytes_text(self.size_bytes)}",
            *(f"  {file.name} ({bytes_text(file.bytes)})" for file in self.files[:SHOWN]),
            *([f"  and {len(self.files) - SHOWN:,} more"] if len(self.files) > SHOWN else []),
            count_text(self.param_files, "param file"),
        ]
        if self.provenance is not None:
            lines.append(f"rewritten {self.provenance.text()}")
        return lines

    def _content_lines(self) -> list[str]:
        counts = (
            count_text(self.sebs, "SEB"),
            count_text(self.messages, "message"),
            count_text(self.log_events, "log event"),
            count_text(self.backward, "backward dependency"),
            count_text(self.forward, "forward dependency"),
        )
        span = f"from {_seconds(self.earliest_s)} to {_seconds(self.latest_s)}"
        irregular = f"marks that do not pair up in {count_text(self.irregular, 'SEB')}"
        lines = [
            ", ".join(counts),
            f"{span}; SEBs together {_seconds(self.seb_seconds)}",
            f"{count_text(self.brackets, 'bracket')}; {irregular}",
            f"{count_text(self.zero_length, 'SEB')} of zero length, {self.unclosed:,} unclosed",
        ]
        if self.not_finite:
            lines.append(f"{count_text(self.not_finite, 'SEB')} with times that are not finite")
        if self.tracer_replaces > 0:
            share = percent_text(self.tracer_replaces, 1)
            whose = f"for {share} of the SEBs' time"
            lines.append(f"TraceR takes durations of its own {whose} (docs/simulating.md)")
        return lines


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else time_text(value)


def survey(logs: LogSet) -> LogInfo:
    """Read a whole log set and return its summary.

    Memory is needed for a few blocks and for the names, whatever the size of the logs. Raise
    `DamagedLogError` for damaged logs, `RewriteLogError` if a file cannot be read.
    """
    surveyed = read_survey(logs, partial(survey_of_block, logs.summary))
    total = sum((seconds for _, seconds in surveyed.times.values()), ZERO_SUM)
    return LogInfo(
        folder=str(logs.folder),
        summary=logs.summary,
        files=tuple(FileInfo(file.path.name, file.size_bytes) for file in logs.files),
        earliest_s=json_number(surveyed.earliest_s),
        latest_s=json_number(surveyed.latest_s),
        seb_seconds=float(total),
        names=_shares(surveyed, float(total)),
        param_files=len(list_params(logs.folder).pes),
        provenance=read_provenance(logs.folder),
        traffic=surveyed.traffic,
        **surveyed.counts,
    )


def _shares(surveyed: Survey, total_s: float) -> tuple[NameShare, ...]:
    times = ((name, sebs, float(seconds)) for name, (sebs, seconds) in surveyed.times.items())
    shares = [NameShare(decoded(name), sebs, s, share_of(s, total_s)) for name, sebs, s in times]
    return tuple(sorted(shares, key=lambda share: (-share.seconds, -share.sebs, share.name)))


Group: TypeAlias = tuple[Any, ...]
"""What nodes have in common: `("types", TYPE)`, `("names", TYPE, NAME)`, `("lanes", LANE)` or
`("ranks", RANK)`."""


@dataclass(frozen=True, repr=False)
class TraceInfo(Readable):
    """The result of `survey` of traces."""

    item = "node"

    traces: Traces
    provenance: Provenance | None
    surveyed: Survey
    """The numbers of dependencies, durations of 0 and recorded starts; the time by group."""

    warnings = ()

    @cached_property
    def by(self) -> dict[str, list[tuple[Group, int, float]]]:
        """The groups of each kind, with the number and seconds of their nodes, most time first."""
        rows: dict[str, list[tuple[int, int, Group]]] = {"types": [], "names": [], "lanes": []}
        for (what, *group), (nodes, micros) in self.surveyed.times.items():
            rows.setdefault(what, []).append((-micros, -nodes, tuple(group)))
        return {
            what: [(group, -nodes, -micros / 10**6) for micros, nodes, group in sorted(of_kind)]
            for what, of_kind in rows.items()
        }

    def times(self, what: str = "names") -> list[tuple[str, str, int, float]]:
        """Return for each name of nodes: the name, their type as a suffix, number and seconds.

        `what` names another kind of groups, which have no suffix.
        """
        label = "rank {}" if what == "ranks" else "{}"
        return [
            (label.format(group[-1]), f" ({group[0]})" if group[1:] else "", nodes, seconds)
            for group, nodes, seconds in self.by[what]
        ]

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return sum(events for _, events, _ in self.by["ranks"])

    @property
    def seconds(self) -> float:
        """The sum of all durations."""
        return rounded_sum(seconds for _, _, seconds in self.by["ranks"])

    def to_json(self) -> dict[str, Any]:
        """Return the summary as a JSON object."""
        shares = {
            what: {
                str(name): {"nodes": nodes, "seconds": seconds}
                for (name,), nodes, seconds in self.by[what]
            }
            for what in ("types", "lanes", "ranks")
        }
        return {
            "logs": str(self.traces.path),
            "format": self.traces.title,
            "bytes": self.traces.size_bytes,
            "nodes": self.nodes,
            "dependencies": self.surveyed.counts["dependencies"],
            "zero_durations": self.surveyed.counts["zero"],
            "started": self.surveyed.counts["started"],
            "seconds": self.seconds,
            **shares,
            "names": [
                {"type": kind, "name": name, "nodes": nodes, "seconds": seconds}
                for (kind, name), nodes, seconds in self.by["names"]
            ],
            "provenance": None if self.provenance is None else dict(self.provenance.content),
        }

    def top_lines(self) -> list[str]:
        """Return the lines at the top of the text, before they are wrapped."""
        counts = self.surveyed.counts
        dependencies = count_text(counts["dependencies"], "dependency")
        return [
            self.traces.text(),
            *([f"rewritten {self.provenance.text()}"] if self.provenance else []),
            f"{count_text(self.nodes, 'node')}, {dependencies}; durations together "
            f"{time_text(self.seconds)}, {count_text(counts['zero'], 'node')} of zero duration; "
            + (f"{counts['started']:,} with a start" if counts["started"] else "no start times"),
        ]

    def text(self) -> str:
        """Return the summary as text."""
        lines = [*map(wrapped, self.top_lines())]
        tables = {"type": "types", "runs on": "lanes", "node": "names"}
        if len(self.traces.files) > 1:
            tables["rank"] = "ranks"
        for head, what in tables.items():
            table = time_table((head, "nodes"), self.times(what), self.seconds)
            lines += table.lines() if table.rows else []
        return "\n".join(lines)


def survey_traces(traces: Traces) -> TraceInfo:
    """Read all traces and return their summary."""
    surveyed = read_survey(traces, partial(_survey_of_rank, traces.types))
    return TraceInfo(traces, read_provenance(traces.folder), surveyed)


_RUNS_ON = ("device stream", "CPU thread")
_LOW = np.uint64((1 << 32) - 1)
"""The low 32 bits of microseconds; summed apart from the high ones, they are exact as floats."""


def _survey_of_rank(types: Sequence[str], parts: Iterator[Part]) -> Survey:
    """Return the counts, and the number and seconds of the nodes of each group of a unit."""
    survey = Survey()
    for part in parts:
        micros, kind, name = part["duration_us"], part["type"], part["name"]
        named, of_name = np.unique(kind + len(types) * name.number, return_inverse=True)
        lanes, lane = np.unique(2 * part["lane"] + part["on_host"], return_inverse=True)
        texts = [(types[at % len(types)], name.distinct[at // len(types)]) for at in named.tolist()]
        rows = [(f"{_RUNS_ON[at % 2]} {at // 2}",) for at in lanes.tolist()]
        for what, labels, number in (
            ("ranks", [(part.unit.rank,)], np.zeros_like(kind)),
            ("types", [(text,) for text in types], kind),
            ("names", texts, of_name),
            ("lanes", rows, lane),
        ):
            nodes, low, high = (
                np.bincount(number, weights, len(labels)).astype(np.int64).tolist()
                for weights in (None, micros & _LOW, micros >> np.uint64(32))
            )
            for label, count, rest, times in zip(labels, nodes, low, high, strict=True):
                if count or what == "ranks":  # a rank without nodes is listed, too
                    survey.add_time((what, *label), count, (times << 32) + rest)
        survey.counts.update(
            dependencies=len(part["waited_for"]),
            zero=int(np.count_nonzero(micros == 0)),
            started=int(np.count_nonzero(part["start_us"])),
        )
    return survey


def survey_opened(command: InfoCommand) -> LogInfo | TraceInfo:
    """Return the summary of logs or traces."""
    logs = command.logs
    return survey(logs) if isinstance(logs, LogSet) else survey_traces(logs)
