"""Chrome's trace event format, which Perfetto opens too: SEBs as slices, messages as flows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, TextIO

import numpy as np

from rewritelog.exporting.contents import Contents, durations_of
from rewritelog.exporting.matching import Matching
from rewritelog.exporting.options import ExportOptions
from rewritelog.format import EventType
from rewritelog.logs.logset import LogSet
from rewritelog.text import printable

_US_PER_S = 1e6


@dataclass
class ChromeWriter:
    """Writes trace events, one per line."""

    file: TextIO
    logs: LogSet
    matching: Matching
    pes: frozenset[int]
    options: ExportOptions
    counts: dict[str, int] = field(default_factory=dict)
    """The numbers of slices, instants and flows, and of SEBs left out for a time not finite."""
    _begun: bool = False
    _last_pe: int = -1

    def begin(self) -> None:
        """Write the beginning of the file."""
        self.counts = dict.fromkeys(("SEBs", "brackets", "events", "flows", "left out"), 0)
        self.file.write('{"displayTimeUnit": "ns", "traceEvents": [')

    def end(self) -> None:
        """Write the end of the file."""
        self.file.write("\n]}\n")

    def write(self, contents: Contents) -> None:
        """Write the SEBs of a PE: slices, brackets, log events, and messages received."""
        if contents.pe != self._last_pe:
            self._last_pe = contents.pe
            self._name_track(contents.pe)
        sebs = contents.tables.sebs
        finite = np.isfinite(sebs["start_time"]) & np.isfinite(sebs["end_time"])
        self.counts["left out"] += int(np.count_nonzero(~finite))
        sebs = sebs[finite]
        starts = dict(zip(sebs["seb"].tolist(), sebs["start_time"].tolist(), strict=True))
        self._slices(contents.pe, sebs)
        self._brackets(contents, starts)
        self._instants(contents, starts)
        self._flows(contents.pe, sebs)

    def _name_track(self, pe: int) -> None:
        node = pe // self.logs.summary.num_wth
        for name, text in (("process_name", f"node {node}"), ("thread_name", f"PE {pe}")):
            self._add({"name": name, "ph": "M", **self._track(pe), "args": {"name": text}})

    def _slices(self, pe: int, sebs: Any) -> None:
        track = self._track(pe)
        durations = durations_of(sebs)
        for row, duration_s in zip(sebs, durations.tolist(), strict=True):
            args = {name: int(row[name]) for name in ("seb", "ep", "src_pe", "msg_id")}
            self._add(
                {
                    "name": printable(bytes(row["name"])) or "(no name)",
                    "cat": "seb",
                    "ph": "X",
                    "ts": float(row["start_time"]) * _US_PER_S,
                    "dur": duration_s * _US_PER_S,
                    **track,
                    "args": args,
                }
            )
        self.counts["SEBs"] += len(sebs)

    def _brackets(self, contents: Contents, starts: dict[int, float]) -> None:
        track = self._track(contents.pe)
        for row in contents.brackets:
            seb = int(row["seb"])
            if seb in starts:
                begin = starts[seb] + float(row["start"])
                name = row["event"] or "bracket"
                args = {"seb": seb, "bracket": int(row["bracket"])}
                duration = float(row["end"] - row["start"]) * _US_PER_S
                event = {"name": printable(name), "cat": "bracket", "ph": "X"}
                times = {"ts": begin * _US_PER_S, "dur": duration}
                self._add({**event, **times, **track, "args": args})
                self.counts["brackets"] += 1

    def _instants(self, contents: Contents, starts: dict[int, float]) -> None:
        track = self._track(contents.pe)
        for row in contents.tables.events:
            seb, time = int(row["seb"]), float(row["r_time"])
            if row["type"] == EventType.PROJECTIONS or seb not in starts or not np.isfinite(time):
                continue
            text = printable(row["text"].split(b"\0", 1)[0]).strip()
            event = {"name": text or "(no text)", "cat": "event", "ph": "i", "s": "t"}
            self._add({**event, "ts": (starts[seb] + time) * _US_PER_S, **track})
            self.counts["events"] += 1

    def _flows(self, pe: int, sebs: Any) -> None:
        causes, sent = self.matching.causes(sebs)
        inside = (causes["send"] >= self.options.from_s) & (causes["send"] <= self.options.to_s)
        for k in np.flatnonzero(sent & inside & np.isfinite(causes["send"])).tolist():
            source = int(sebs["src_pe"][k])
            if source not in self.pes:
                continue
            number = f"{pe << 32 | int(sebs['seb'][k]):#x}"  # Perfetto takes 64 bits in hexadecimal
            flow = {"name": "message", "cat": "message", "id": number}
            size = {"args": {"msg_id": int(sebs["msg_id"][k]), "bytes": int(causes["size"][k])}}
            sent_us = float(min(causes["send"][k], causes["last"][k])) * _US_PER_S
            start_us = float(sebs["start_time"][k]) * _US_PER_S
            self._add({**flow, "ph": "s", "ts": sent_us, **self._track(source), **size})
            self._add({**flow, "ph": "f", "bp": "e", "ts": start_us, **self._track(pe), **size})
            self.counts["flows"] += 1

    def _track(self, pe: int) -> dict[str, int]:
        return {"pid": pe // self.logs.summary.num_wth, "tid": pe}

    def _add(self, event: dict[str, Any]) -> None:
        self.file.write("\n" if not self._begun else ",\n")
        self._begun = True
        self.file.write(json.dumps(event, allow_nan=False))
