"""SimGrid's time-independent traces: a file for each PE, its SEBs in recorded order."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from rewritelog.exporting.programs import Step

FLOPS_PER_S = 1e9
"""The speed of a host on which a SEB takes as long as in the log."""


@dataclass
class SimgridWriter:
    """Writes a rank for each PE; the PEs must come in rising order.

    Messages of a PE to itself are left out, since they are in order anyway.
    """

    folder: Path
    workers: int
    """Of a node."""
    counts: dict[str, int] = field(default_factory=dict)
    _pe: int = -1
    _file: TextIO | None = None
    _pending: bool = False

    def begin(self) -> None:
        """Begin the list of the trace files, and the hosts that they run on."""
        self.counts = dict.fromkeys(("computations", "sends", "receives"), 0)
        (self.folder / "traces.txt").touch()
        (self.folder / "hostfile.txt").touch()

    def end(self) -> None:
        """End the last rank."""
        if self._file is not None:
            if self._pending:
                self._line("waitall")
            self._line("finalize")
            self._file.close()
            self._file, self._pending = None, False

    def rank(self, pe: int) -> None:
        """Begin the rank of a PE, where it is not that of the last step."""
        if pe == self._pe:
            return
        self.end()
        self._pe = pe
        name = f"rank-{pe}.txt"
        self._file = (self.folder / name).open("x", encoding="ascii")
        for path, line in (("traces.txt", name), ("hostfile.txt", f"node-{pe // self.workers}")):
            with (self.folder / path).open("a", encoding="ascii") as file:
                file.write(f"{line}\n")
        self._line("init")

    def write(self, step: Step) -> None:
        """Write a SEB: the receive of its message, and its computation and sends in turn."""
        cause = step.cause
        if cause is not None and cause.pe != step.pe:
            self._line(f"recv {cause.pe} {cause.msg_id} {cause.size_bytes}")
            self.counts["receives"] += 1
        reached_s = 0.0
        for send in step.sends:
            self._compute(send.offset_s - reached_s)
            reached_s = send.offset_s
            for pe in send.receivers["pe"][send.receivers["pe"] != step.pe].tolist():
                self._line(f"isend {pe} {send.msg_id} {send.size_bytes}")
                self._pending = True
                self.counts["sends"] += 1
        self._compute(step.duration_s - reached_s)

    def _compute(self, duration_s: float) -> None:
        if duration_s > 0:
            self._line(f"compute {duration_s * FLOPS_PER_S!r}")
            self.counts["computations"] += 1

    def _line(self, text: str) -> None:
        if self._file is not None:
            self._file.write(f"{self._pe} {text}\n")
