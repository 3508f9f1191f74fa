"""Chrome's trace event format, which Perfetto opens too.

SEBs and nodes of traces are slices, messages are flows. Log sets may be larger than memory, so they
are read PE by PE. Since any PE may send to any other, tables on disk match messages with the SEBs
that they start; a replay does so in memory.
"""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import msgspec
import numpy as np
from msgspec import Struct

from rewritelog.arrays import Flags, Floats, Ints, Table, pair_keys
from rewritelog.commands.logs import ALWAYS
from rewritelog.exporting.contents import Contents, durations_of, map_contents
from rewritelog.formats.bgtrace.declaration import EventType
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import ParamFolder
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


class ChromeMaker(Struct, frozen=True):
    """Makes the trace events of SEBs: slices, brackets, log events, and messages received."""

    workers: int
    """The number of workers per node."""
    matching: Path
    """The folder that `matched` yields."""
    exported: Flags
    """Whether each PE is exported."""

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
        flows = list(self._flows(sebs[finite], contents.interval))
        counts = {name: len(of_kind) for name, of_kind in events.items()}
        counts |= {"flows": len(flows) // 2, "left out": int(np.count_nonzero(~finite))}
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

    def _flows(self, sebs: Table, interval: tuple[float, float]) -> Iterator[Event]:
        """Yield two events for each message: where it leaves, and where it arrives."""
        causes, sent = _causes(self.matching, sebs)
        inside = (causes["send"] >= interval[0]) & (causes["send"] <= interval[1])
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
            flow: Event = {"name": "message", "cat": "message", "id": number}
            flow |= {"args": {"msg_id": msg_id, "bytes": size}}
            yield flow | {"ph": "s", "ts": sent_us} | self._track(source)
            yield flow | {"ph": "f", "bp": "e", "ts": start_us} | self._track(pe)

    def _track(self, pe: int) -> Event:
        return {"pid": pe // self.workers, "tid": pe}


def node_events(
    traces: Traces, part: Part, run: ReplayedRun | None, interval: tuple[float, float]
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
    from_us, until_us = (_US_PER_S * bound_s for bound_s in interval)
    within = (start_us <= until_us) & (start_us + duration_us >= from_us)
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


def _slice(name: str, category: str, ts: float, dur: float, args: Event) -> Event:
    return {"name": name, "cat": category, "ph": "X", "ts": ts, "dur": dur, "args": args}


def _lines(events: Iterable[Event]) -> str:
    return msgspec.json.Encoder().encode_lines(events).decode().rstrip().replace("\n", ",\n")


SENT = np.dtype([("size", np.int32), ("send", np.float64), ("last", np.float64)])
"""A message: its size in bytes, and in seconds its send time and the last nanosecond of its sending
SEB, since the next SEB may start at that SEB's end."""

_TABLES = {"keys": np.dtype(np.int64), "sent": SENT}
"""The rows of the two files, which each process maps: a key of each message, of PE and number,
ascending, and the messages in that order."""

_NANOSECOND = 1e-9


@contextmanager
def matched(logs: LogSet, folder: Path) -> Iterator[Path]:
    """Yield a temporary folder in `folder`, with the files `_TABLES` of all messages.

    It takes 28 bytes of disk for each message, and memory for the messages of one PE.
    """
    with TemporaryDirectory(prefix=".matching-", dir=folder) as scratch:
        keys_path, sent_path = (Path(scratch, name) for name in _TABLES)
        waiting: list[tuple[Ints, Table]] = []
        with keys_path.open("xb") as keys_file, sent_path.open("xb") as sent_file:
            params = ParamFolder(logs.folder, frozenset())  # messages have none
            parts = map_contents(logs, logs.pes, ALWAYS, params, _collected, "matching messages")
            for keys, sent, last in parts:
                waiting.append((keys, sent))
                if last:
                    all_keys, rows = map(np.concatenate, zip(*waiting, strict=True))
                    order = np.argsort(all_keys, kind="stable")
                    keys_file.write(all_keys[order].data)
                    sent_file.write(rows[order].tobytes())
                    waiting = []
        yield Path(scratch)


def _collected(part: Contents) -> tuple[Ints, Table, bool]:
    """Return messages with their keys, and if timelines end here."""
    sebs, messages = part["sebs"], part["messages"]
    starts = sebs["start_time"]
    last = np.maximum(starts, starts + durations_of(sebs) - _NANOSECOND)
    sent = np.empty(len(messages), dtype=SENT)
    sent["size"], sent["send"] = messages["size"], messages["send_time"]
    sent["last"] = last[part.row_of(messages)]
    return pair_keys(messages["pe"], messages["msg_id"]), sent, part.last


def _causes(matching: Path, sebs: Table) -> tuple[Table, Flags]:
    """Return the starting message of each SEB, and whether it was sent.

    If a PE repeats a number, only its first message starts SEBs.
    """
    keys, messages = (_mapped(matching / name, dtype) for name, dtype in _TABLES.items())
    named = pair_keys(sebs["src_pe"], sebs["msg_id"])
    row = np.searchsorted(keys, named)
    sent = (sebs["msg_id"] >= 0) & (row < len(keys))
    sent[sent] = keys[row[sent]] == named[sent]
    causes = np.zeros(len(sebs), dtype=SENT)
    causes[sent] = messages[row[sent]]
    return causes, sent


def _mapped(path: Path, dtype: np.dtype[np.generic]) -> Table:
    """Return the rows of a file as a memory map; an empty file cannot be mapped."""
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)
    with path.open("rb") as file:  # numpy's own maps are shared, which FUSE may refuse
        mapped = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    return np.frombuffer(mapped, dtype)
