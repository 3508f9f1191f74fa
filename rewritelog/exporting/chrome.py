"""Chrome's trace event format, which Perfetto opens too.

SEBs and nodes of traces are slices, messages are flows. Log sets may be larger than memory, so they
are read PE by PE. The identifier of a flow is made of its PE and number, by which viewers match a
message with the SEBs that it starts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
from msgspec import Struct

from rewritelog.arrays import Flags, Floats, Ints, Table, pair_keys
from rewritelog.exporting.contents import Contents, durations_of
from rewritelog.formats.bgtrace.declaration import EventType
from rewritelog.formats.traces import Part, Traces
from rewritelog.replaying.replay import ReplayedRun
from rewritelog.text import NO_NAME, printable

SEB_KINDS = ("sebs", "brackets", "log_events", "flows")
"""The kinds of trace events that are counted for logs."""

Event: TypeAlias = dict[str, Any]
"""A trace event as a JSON object."""

TraceEvents: TypeAlias = tuple[str, dict[str, int]]
"""Some trace events, one per line and separated by commas, and their numbers by kind."""

_US_PER_S = 1e6
_NANOSECOND = 1e-9


class ChromeMaker(Struct, frozen=True):
    """Makes the trace events of SEBs: slices, brackets, log events, and messages received."""

    workers: int
    """The number of workers per node."""
    pes: Ints
    """The exported PEs."""

    def __call__(self, contents: Contents, /) -> TraceEvents:
        """Return the events of SEBs."""
        sebs = contents["sebs"]
        finite = _finite_us(sebs["start_time"]) & _finite_us(sebs["end_time"])
        finite &= _finite_us(durations_of(sebs))
        events = {
            "tracks": list(self._tracks(contents.pes)) if contents.first else [],
            "sebs": list(self._slices(sebs[finite])),
        }
        for name, make in (("brackets", self._brackets), ("log_events", self._instants)):
            rows = contents[name]
            seb = contents.row_of(rows)
            are_finite = finite[seb]
            events[name] = list(make(rows[are_finite], sebs["start_time"][seb[are_finite]]))
        starts = list(self._flow_ends(sebs[finite]))
        flows = chain(self._flow_begins(contents, finite), starts)
        counts = {name: len(of_kind) for name, of_kind in events.items()}
        counts |= {"flows": len(starts), "not finite": int(np.count_nonzero(~finite))}
        counts["overlapping"] = _overlapping(sebs[finite])
        return _lines(chain(*events.values(), flows)), counts

    def _tracks(self, pes: list[int]) -> Iterator[Event]:
        for pe in pes:
            names = {"process_name": f"node {pe // self.workers}", "thread_name": f"PE {pe}"}
            for name, text in names.items():
                yield {"name": name, "ph": "M", **self._track(pe), "args": {"name": text}}

    def _slices(self, sebs: Table) -> Iterator[Event]:
        columns = (sebs[name].tolist() for name in ("pe", "seb", "ep", "src_pe", "msg_id"))
        times = (_microseconds(sebs["start_time"]), _microseconds(durations_of(sebs)))
        names = _shown(sebs["name"].tolist(), NO_NAME)
        for name, ts, dur, pe, seb, ep, source, number in zip(names, *times, *columns, strict=True):
            args = {"seb": seb, "ep": ep, "src_pe": source, "msg_id": number}
            yield _slice(name, "seb", ts, dur, args) | self._track(pe)

    def _brackets(self, rows: Table, starts: Floats) -> Iterator[Event]:
        columns = (rows[name].tolist() for name in ("pe", "seb", "bracket"))
        times = _microseconds(starts + rows["start"]), _microseconds(rows["end"] - rows["start"])
        names = _shown([name or b"" for name in rows["event"]], "bracket")
        for name, ts, dur, pe, seb, number in zip(names, *times, *columns, strict=True):
            args = {"seb": seb, "bracket": number}
            yield _slice(name, "bracket", ts, dur, args) | self._track(pe)

    def _instants(self, rows: Table, starts: Floats) -> Iterator[Event]:
        times = starts + rows["r_time"]
        are_drawn = (rows["type"] != EventType.PROJECTIONS) & _finite_us(times)
        rows = rows[are_drawn]
        texts = _shown([text.split(b"\0", 1)[0] for text in rows["text"]], "(no text)")
        events = zip(texts, _microseconds(times[are_drawn]), rows["pe"].tolist(), strict=True)
        for text, ts, pe in events:
            shown: Event = {"name": text, "cat": "event", "ph": "i", "s": "t", "ts": ts}
            yield shown | self._track(pe)

    def _flow_begins(self, contents: Contents, finite: Flags) -> Iterator[Event]:
        """Yield where messages leave: within the slice that sends them, before they arrive."""
        sebs, messages = contents["sebs"], contents["messages"]
        seb = contents.row_of(messages)
        start_s = sebs["start_time"][seb]
        until_s = np.minimum(messages["send_time"], start_s + durations_of(sebs)[seb])
        leaves_s = np.maximum(start_s, until_s - _NANOSECOND)
        shown = finite[seb] & _finite_us(leaves_s) & (messages["msg_id"] >= 0)
        rows = messages[shown]
        columns = (rows[name].tolist() for name in ("pe", "msg_id", "size"))
        times, numbers = _microseconds(leaves_s[shown]), _flow_numbers(rows["pe"], rows["msg_id"])
        for ts, number, pe, msg_id, size in zip(times, numbers, *columns, strict=True):
            args = {"msg_id": msg_id, "bytes": size}
            yield _flow("s", number, ts) | {"args": args} | self._track(pe)

    def _flow_ends(self, sebs: Table) -> Iterator[Event]:
        """Yield where messages arrive: at the start of each SEB with a starting message."""
        rows = sebs[(sebs["msg_id"] >= 0) & np.isin(sebs["src_pe"], self.pes)]
        times, pes = _microseconds(rows["start_time"]), rows["pe"].tolist()
        numbers = _flow_numbers(rows["src_pe"], rows["msg_id"])
        for ts, number, pe in zip(times, numbers, pes, strict=True):
            yield _flow("f", number, ts) | {"bp": "e"} | self._track(pe)

    def _track(self, pe: int) -> Event:
        return {"pid": pe // self.workers, "tid": pe}


def node_events(
    traces: Traces, part: Part, run: ReplayedRun | None, interval_us: tuple[float, float]
) -> TraceEvents:
    """Return the nodes of a part as slices: a process for each rank, a track for each lane.

    Their times and lanes are those of a replay, or without one as recorded; then communication has
    no lanes of its own. Times are whole nanoseconds, since viewers leave out what begins before
    the end of the last one, even if only by a rounding error.
    """
    start_us = np.where(part["start_us"] > 0, part["start_us"], np.nan)
    duration_us = part["duration_us"].astype(np.float64)
    kinds = np.where(part["on_host"], "CPU thread ", "stream ")
    tracks = np.char.add(kinds, part["lane"].astype(np.str_))
    if run is not None and run.workload.nodes is not None:
        nodes = run.workload.nodes
        first = nodes.first[part.unit.rank] + part.first
        seb = nodes.seb[first : first + len(part)]
        start_ns, end_ns = (np.rint(1e9 * s[seb]) for s in (run.times.start_s, run.times.end_s))
        start_us, duration_us = start_ns / 1e3, (end_ns - start_ns) / 1e3
        tracks = nodes.lanes.track[run.workload.sebs.pe[seb]]
    within = (start_us <= interval_us[1]) & (start_us + duration_us >= interval_us[0])
    columns = [part[name] for name in ("id", "name", "type")]
    columns += [tracks, start_us, duration_us]
    events = [
        _slice(printable(name) or NO_NAME, traces.types[kind], ts, dur, {"id": number})
        | {"pid": part.unit.rank, "tid": track}
        for number, name, kind, track, ts, dur in zip(
            *(column[within].tolist() for column in columns), strict=True
        )
    ]
    unknown = int(np.isnan(start_us).sum())
    counts = {"nodes": len(events), "left out": unknown, "timed": len(part) - unknown}
    return _lines(events), counts


def rank_name(rank: int) -> TraceEvents:
    """Return the event that names the process of a rank."""
    named = {"name": "process_name", "ph": "M", "pid": rank, "args": {"name": f"rank {rank}"}}
    return _lines([named]), {}


def _overlapping(sebs: Table) -> int:
    """Return how many SEBs start over a nanosecond before the previous one of their PE ends."""
    pe, start_s, duration_s = sebs["pe"], sebs["start_time"], durations_of(sebs)
    order = np.lexsort((duration_s, start_s, pe))
    early = start_s[order[1:]] < (start_s + duration_s)[order[:-1]] - 1e-9
    return int(np.count_nonzero(early & (np.diff(pe[order]) == 0)))


def write_trace(folder: Path, events: Iterable[TraceEvents]) -> Counter[str]:
    """Write all events to a file; return their numbers by kind."""
    counts, separator = Counter[str](), "\n"
    with (folder / "trace.json").open("x", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [')
        for text, of_part in events:
            if text:
                file.write(separator + text)
                separator = ",\n"
            counts.update(of_part)
        file.write("\n]}\n")
    return counts


def _finite_us(seconds: Floats) -> Flags:
    """Return which times are finite in microseconds."""
    with np.errstate(over="ignore"):
        return np.isfinite(seconds * _US_PER_S)


def _microseconds(seconds: Floats) -> list[float]:
    numbers: list[float] = (seconds * _US_PER_S).tolist()
    return numbers


def _shown(texts: Sequence[bytes | str], otherwise: str) -> list[str]:
    """Return texts that are safe to display; `otherwise` for empty ones."""
    known = {text: printable(text).strip() or otherwise for text in set(texts)}
    return [known[text] for text in texts]


def _flow_numbers(pe: Ints, msg_id: Ints) -> list[str]:
    """Return the numbers of flows in hexadecimal, of which Perfetto takes 64 bits."""
    return [hex(number) for number in pair_keys(pe, msg_id).tolist()]


def _flow(phase: str, number: str, ts: float) -> Event:
    return {"name": "message", "cat": "message", "ph": phase, "id": number, "ts": ts}


def _slice(name: str, category: str, ts: float, dur: float, args: Event) -> Event:
    return {"name": name, "cat": category, "ph": "X", "ts": ts, "dur": dur, "args": args}


def _lines(events: Iterable[Event]) -> str:
    return msgspec.json.Encoder().encode_lines(events).decode().rstrip().replace("\n", ",\n")
