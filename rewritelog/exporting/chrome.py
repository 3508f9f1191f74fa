"""Chrome's trace event format, which Perfetto opens too.

SEBs and nodes of traces are slices, messages are flows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TextIO

import numpy as np

from rewritelog.arrays import Flags, Floats, Table
from rewritelog.exporting.contents import Contents, durations_of
from rewritelog.exporting.matching import Matching
from rewritelog.formats.bgtrace.declaration import EventType
from rewritelog.formats.traces import Part, Traces
from rewritelog.text import printable

SEB_KINDS = ("SEBs", "brackets", "log events", "flows")
"""What is counted of logs."""

_US_PER_S = 1e6


@dataclass(frozen=True)
class TraceEvents:
    """Some trace events, one per line and separated by commas, and their numbers by kind."""

    text: str
    counts: dict[str, int]


@dataclass(frozen=True)
class ChromeMaker:
    """Makes the trace events of SEBs: slices, brackets, log events, and messages received."""

    workers: int
    """The number of workers per node."""
    matching: Matching
    interval: tuple[float, float]
    exported: Flags
    """Whether each PE is exported."""

    def __call__(self, contents: Contents, /) -> TraceEvents:
        """Return the events of SEBs."""
        sebs = contents.sebs
        finite = _finite_us(sebs["start_time"]) & _finite_us(sebs["end_time"])
        finite &= _finite_us(durations_of(sebs))
        lines = {
            "tracks": list(self._tracks(contents.pes)) if contents.first else [],
            "SEBs": list(self._slices(sebs[finite])),
        }
        for name, rows, events in (
            ("brackets", contents.brackets, self._brackets),
            ("log events", contents.log_events, self._instants),
        ):
            seb = contents.row_of(rows)
            kept = finite[seb]
            lines[name] = list(events(rows[kept], sebs["start_time"][seb[kept]]))
        lines["flows"] = list(self._flows(sebs[finite]))
        counts = {name: len(some) for name, some in lines.items()}
        counts["left out"] = int(np.count_nonzero(~finite))
        return TraceEvents(",\n".join(chain.from_iterable(lines.values())), counts)

    def _tracks(self, pes: list[int]) -> Iterator[str]:
        for pe in pes:
            names = {"process_name": f"node {self._node(pe)}", "thread_name": f"PE {pe}"}
            for name, text in names.items():
                args = f'"args": {{"name": "{text}"}}'
                yield f'{{"name": "{name}", "ph": "M", {self._track(pe)}, {args}}}'

    def _slices(self, sebs: Table) -> Iterator[str]:
        columns = (sebs[name].tolist() for name in ("pe", "seb", "ep", "src_pe", "msg_id"))
        times = (_microseconds(sebs["start_time"]), _microseconds(durations_of(sebs)))
        names = _quoted(sebs["name"].tolist(), "(no name)")
        for name, ts, dur, pe, seb, ep, source, number in zip(names, *times, *columns, strict=True):
            yield (
                f'{{"name": {name}, "cat": "seb", "ph": "X", "ts": {ts!r}, "dur": {dur!r}, '
                f'{self._track(pe)}, "args": {{"seb": {seb}, "ep": {ep}, "src_pe": {source}, '
                f'"msg_id": {number}}}}}'
            )

    def _brackets(self, rows: Table, starts: Floats) -> Iterator[str]:
        columns = (rows[name].tolist() for name in ("pe", "seb", "bracket"))
        times = _microseconds(starts + rows["start"]), _microseconds(rows["end"] - rows["start"])
        names = _quoted([name or b"" for name in rows["event"]], "bracket")
        for name, ts, dur, pe, seb, number in zip(names, *times, *columns, strict=True):
            yield (
                f'{{"name": {name}, "cat": "bracket", "ph": "X", "ts": {ts!r}, "dur": {dur!r}, '
                f'{self._track(pe)}, "args": {{"seb": {seb}, "bracket": {number}}}}}'
            )

    def _instants(self, rows: Table, starts: Floats) -> Iterator[str]:
        times = starts + rows["r_time"]
        kept = (rows["type"] != EventType.PROJECTIONS) & _finite_us(times)
        rows = rows[kept]
        texts = _quoted([text.split(b"\0", 1)[0] for text in rows["text"]], "(no text)")
        events = zip(texts, _microseconds(times[kept]), rows["pe"].tolist(), strict=True)
        for text, ts, pe in events:
            yield (
                f'{{"name": {text}, "cat": "event", "ph": "i", "s": "t", "ts": {ts!r}, '
                f"{self._track(pe)}}}"
            )

    def _flows(self, sebs: Table) -> Iterator[str]:
        causes, sent = self.matching.causes(sebs)
        inside = (causes["send"] >= self.interval[0]) & (causes["send"] <= self.interval[1])
        leaves = np.minimum(causes["send"], causes["last"])
        shown = np.flatnonzero(sent & inside & _finite_us(leaves))
        shown = shown[self.exported[sebs["src_pe"][shown]]]
        rows = sebs[shown]
        columns = (rows[name].tolist() for name in ("pe", "seb", "src_pe", "msg_id"))
        times = _microseconds(leaves[shown]), _microseconds(rows["start_time"])
        sizes = causes["size"][shown].tolist()
        for sent_us, start_us, size, pe, seb, source, msg_id in zip(
            *times, sizes, *columns, strict=True
        ):
            number = f"{pe << 32 | seb:#x}"  # Perfetto takes 64 bits in hexadecimal
            flow = f'{{"name": "message", "cat": "message", "id": "{number}"'
            args = f'"args": {{"msg_id": {msg_id}, "bytes": {size}}}}}'
            yield (
                f'{flow}, "ph": "s", "ts": {sent_us!r}, {self._track(source)}, {args},\n'
                f'{flow}, "ph": "f", "bp": "e", "ts": {start_us!r}, {self._track(pe)}, {args}'
            )

    def _node(self, pe: int) -> int:
        return pe // self.workers

    def _track(self, pe: int) -> str:
        return f'"pid": {self._node(pe)}, "tid": {pe}'


def node_events(
    traces: Traces, part: Part, start_s: Floats, interval: tuple[float, float]
) -> TraceEvents:
    """Return the nodes of a part as slices: a process for each rank, a track for each lane."""
    duration_s = part["duration_s"]
    within = (start_s < interval[1]) & (start_s + duration_s >= interval[0])
    columns = [part[name] for name in ("id", "name", "type", "on_host", "lane")]
    columns += [start_s * _US_PER_S, duration_s * _US_PER_S]
    lines = [
        json.dumps(
            {
                "name": printable(name),
                "cat": traces.types[kind],
                "ph": "X",
                "pid": part.unit.rank,
                "tid": f"{'CPU' if on_host else 'stream'} {lane}",
                "ts": begin_us,
                "dur": duration_us,
                "args": {"id": number},
            }
        )
        for number, name, kind, on_host, lane, begin_us, duration_us in zip(
            *(column[within].tolist() for column in columns), strict=True
        )
    ]
    counts = {"nodes": len(lines), "left out": int(np.isnan(start_s).sum())}
    return TraceEvents(",\n".join(lines), counts)


def rank_name(rank: int) -> TraceEvents:
    """Return the event that names the process of a rank."""
    named = {"name": "process_name", "ph": "M", "pid": rank, "args": {"name": f"rank {rank}"}}
    return TraceEvents(json.dumps(named), {})


def write_trace(
    file: TextIO, kinds: Sequence[str], events: Iterable[TraceEvents]
) -> tuple[dict[str, int], int]:
    """Write all events; return the numbers of some kinds, and that of all that is left out."""
    counts = Counter[str]()
    file.write('{"displayTimeUnit": "ns", "traceEvents": [')
    separator = "\n"
    for some in events:
        if some.text:
            file.write(separator + some.text)
            separator = ",\n"
        counts.update(some.counts)
    file.write("\n]}\n")
    return {kind: counts[kind] for kind in kinds}, counts["left out"]


def _finite_us(seconds: Floats) -> Flags:
    """Return which times are finite in microseconds."""
    with np.errstate(over="ignore"):
        return np.isfinite(seconds * _US_PER_S)


def _microseconds(seconds: Floats) -> list[float]:
    numbers: list[float] = (seconds * _US_PER_S).tolist()
    return numbers


def _quoted(texts: Sequence[bytes | str], otherwise: str) -> list[str]:
    """Return texts that are safe to display as JSON strings; `otherwise` for empty ones."""
    known = {text: json.dumps(printable(text).strip() or otherwise) for text in set(texts)}
    return [known[text] for text in texts]
