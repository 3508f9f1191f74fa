"""Chrome's trace event format, which Perfetto opens too.

SEBs and nodes of traces are slices, messages are flows. Log sets may be larger than memory, so they
are read PE by PE. The identifier of a flow is made of its PE and number, by which viewers match a
message with the SEBs that it starts.

Times are whole nanoseconds, as in viewers. These nest a slice in the one in which it begins, and
leave it out if it ends later than that, even if only by a rounding error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

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

_NANOSECOND = 1e-9


_SLICE_ROW = np.dtype([("track", np.int64), ("start_us", np.float64), ("end_us", np.float64)])
_NO_SLICES = np.empty(0, dtype=_SLICE_ROW)


class Times(NamedTuple):
    """The times of slices in microseconds, which are whole nanoseconds."""

    start_us: Floats
    duration_us: Floats
    end_us: Floats

    @classmethod
    def of(cls, start_s: Floats, end_s: Floats) -> Times:
        """Return times in seconds, rounded."""
        start_ns, end_ns = _nanoseconds(start_s), _nanoseconds(end_s)
        return cls(start_ns / 1e3, (end_ns - start_ns) / 1e3, end_ns / 1e3)

    def slices(self, track: Ints) -> Table:
        """Return a row for each slice, on tracks with these numbers."""
        rows = np.empty(len(track), dtype=_SLICE_ROW)
        rows["track"], rows["start_us"], rows["end_us"] = track, self.start_us, self.end_us
        return rows


class TraceEvents(Struct, frozen=True):
    """Some trace events, one per line and separated by commas."""

    lines: str
    counts: dict[str, int] = {}
    """Their numbers by kind."""
    slices: Table = _NO_SLICES
    """A row for each slice."""
    is_first: bool = False
    """Whether all slices before these are on other tracks."""


class ChromeMaker(Struct, frozen=True):
    """Makes the trace events of SEBs: slices, brackets, log events, and messages received."""

    workers: int
    """The number of workers per node."""
    pes: Ints
    """The exported PEs."""

    def __call__(self, contents: Contents, /) -> TraceEvents:
        """Return the events of SEBs."""
        sebs = contents["sebs"]
        start_s = sebs["start_time"]
        with np.errstate(over="ignore"):
            end_s = start_s + durations_of(sebs)
        finite = _are_finite(start_s) & _are_finite(sebs["end_time"]) & _are_finite(end_s)

        def of_finite(name: str) -> tuple[Table, Floats]:
            """Return the rows of a table in SEBs with finite times, and the starts of these."""
            rows, seb = contents[name], contents.row_of(contents[name])
            return rows[finite[seb]], start_s[seb[finite[seb]]]

        seb_times = Times.of(start_s[finite], end_s[finite])
        brackets, begin_s = of_finite("brackets")
        bracket_times = Times.of(begin_s + brackets["start"], begin_s + brackets["end"])
        events = {
            "tracks": list(self._tracks(contents.pes)) if contents.first else [],
            "sebs": list(self._slices(sebs[finite], seb_times)),
            "brackets": list(self._brackets(brackets, bracket_times)),
            "log_events": list(self._instants(*of_finite("log_events"))),
        }
        starts = list(self._flow_ends(sebs[finite]))
        flows = chain(self._flow_begins(contents, finite), starts)
        counts = {name: len(of_kind) for name, of_kind in events.items()}
        counts |= {"flows": len(starts), "not finite": int(np.count_nonzero(~finite))}
        slices = [seb_times.slices(sebs["pe"][finite]), bracket_times.slices(brackets["pe"])]
        lines = _lines(chain(*events.values(), flows))
        return TraceEvents(lines, counts, np.concatenate(slices), contents.first)

    def _tracks(self, pes: list[int]) -> Iterator[Event]:
        for pe in pes:
            names = {"process_name": f"node {pe // self.workers}", "thread_name": f"PE {pe}"}
            for name, text in names.items():
                yield {"name": name, "ph": "M", **self._track(pe), "args": {"name": text}}

    def _slices(self, sebs: Table, times: Times) -> Iterator[Event]:
        columns = (sebs[name].tolist() for name in ("pe", "seb", "ep", "src_pe", "msg_id"))
        spans = (column.tolist() for column in times[:2])
        names = _shown(sebs["name"].tolist(), NO_NAME)
        for name, ts, dur, pe, seb, ep, source, number in zip(names, *spans, *columns, strict=True):
            args = {"seb": seb, "ep": ep, "src_pe": source, "msg_id": number}
            yield _slice(name, "seb", ts, dur, args) | self._track(pe)

    def _brackets(self, rows: Table, times: Times) -> Iterator[Event]:
        columns = (rows[name].tolist() for name in ("pe", "seb", "bracket"))
        spans = (column.tolist() for column in times[:2])
        names = _shown([name or b"" for name in rows["event"]], "bracket")
        for name, ts, dur, pe, seb, number in zip(names, *spans, *columns, strict=True):
            args = {"seb": seb, "bracket": number}
            yield _slice(name, "bracket", ts, dur, args) | self._track(pe)

    def _instants(self, rows: Table, starts: Floats) -> Iterator[Event]:
        times = starts + rows["r_time"]
        are_drawn = (rows["type"] != EventType.PROJECTIONS) & _are_finite(times)
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
        shown = finite[seb] & _are_finite(leaves_s) & (messages["msg_id"] >= 0)
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
    no lanes of its own.
    """
    start_us = np.where(part["start_us"] > 0, part["start_us"], np.nan)
    duration_us = part["duration_us"].astype(np.float64)
    times = Times(start_us, duration_us, start_us + duration_us)
    track = 2 * part["lane"] + part["on_host"]
    kinds = np.where(part["on_host"], "CPU thread ", "stream ")
    names = np.char.add(kinds, part["lane"].astype(np.str_))
    if run is not None and run.workload.nodes is not None:
        nodes = run.workload.nodes
        first = nodes.first[part.unit.rank] + part.first
        seb = nodes.seb[first : first + len(part)]
        times = Times.of(run.times.start_s[seb], run.times.end_s[seb])
        track = run.workload.sebs.pe[seb]
        names = nodes.lanes.track[track]
    within = (times.start_us <= interval_us[1]) & (times.end_us >= interval_us[0])
    columns = [part[name] for name in ("id", "name", "type")]
    columns += [names, times.start_us, times.duration_us]
    events = [
        _slice(printable(name) or NO_NAME, traces.types[kind], ts, dur, {"id": number})
        | {"pid": part.unit.rank, "tid": of_track}
        for number, name, kind, of_track, ts, dur in zip(
            *(column[within].tolist() for column in columns), strict=True
        )
    ]
    unknown = int(np.isnan(times.start_us).sum())
    counts = {"nodes": len(events), "left out": unknown, "timed": len(part) - unknown}
    return TraceEvents(_lines(events), counts, times.slices(track)[within], part.first == 0)


def rank_name(rank: int) -> TraceEvents:
    """Return the event that names the process of a rank."""
    named = {"name": "process_name", "ph": "M", "pid": rank, "args": {"name": f"rank {rank}"}}
    return TraceEvents(_lines([named]))


def write_trace(folder: Path, events: Iterable[TraceEvents]) -> Counter[str]:
    """Write all events to a file; return their numbers by kind."""
    counts, separator, slices = Counter[str](), "\n", [_NO_SLICES]
    with (folder / "trace.json").open("x", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [')
        for part in events:
            if part.lines:
                file.write(separator + part.lines)
                separator = ",\n"
            counts.update(part.counts)
            if part.is_first:
                counts["overlapping"] += _overlapping(np.concatenate(slices))
                slices.clear()
            slices.append(part.slices)
        file.write("\n]}\n")
    counts["overlapping"] += _overlapping(np.concatenate(slices))
    return counts


def _overlapping(slices: Table) -> int:
    """Return how many slices begin within another one of their track and end after it.

    Viewers leave these out; what begins within such a slice may be shown. Of slices that begin
    together, the longest is around the others.
    """
    order = np.lexsort((-slices["end_us"], slices["start_us"], slices["track"]))
    columns = (slices[name][order].data for name in _SLICE_ROW.names or ())
    count, ends, last_track = 0, list[float](), None
    for track, start, end in zip(*columns, strict=True):
        if track != last_track:
            ends, last_track = [], track
        while ends and ends[-1] <= start:
            ends.pop()
        if ends and end > ends[-1]:
            count += 1
        else:
            ends.append(end)
    return count


def _are_finite(seconds: Floats) -> Flags:
    """Return which times are finite in nanoseconds."""
    with np.errstate(over="ignore"):
        return np.isfinite(_nanoseconds(seconds))


def _nanoseconds(seconds: Floats) -> Floats:
    return np.rint(1e9 * seconds)


def _microseconds(seconds: Floats) -> list[float]:
    """Return times in microseconds, which are whole nanoseconds."""
    numbers: list[float] = (_nanoseconds(seconds) / 1e3).tolist()
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
