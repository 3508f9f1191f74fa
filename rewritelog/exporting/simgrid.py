"""SimGrid's time-independent traces: one file for each PE, with its SEBs in recorded order."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from rewritelog.exporting.programs import Steps

FLOPS_PER_S = 1e9
"""The speed of a host in SimGrid with which SEBs take as long as in the log."""


@dataclass
class SimgridWriter:
    """Writes a rank for each PE; PEs have to be in ascending order.

    Messages of a PE to itself are left out, since its SEBs are in order anyway.
    """

    folder: Path
    workers: int
    """The number of workers per node."""
    counts: dict[str, int] = field(default_factory=dict)
    _pe: int = -1
    _file: TextIO | None = None
    _pending: bool = False

    def begin(self) -> None:
        """Begin the lists of trace files and of their hosts."""
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
        """Begin the rank of a PE, unless it is the current one."""
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

    def write(self, steps: Steps) -> None:
        """Write SEBs: the receive of the starting message, then computations and sends in turn."""
        causes = zip(
            steps.cause_pe.tolist(),
            steps.cause_number.tolist(),
            steps.cause_bytes.tolist(),
            strict=True,
        )
        begins, durations = steps.first_send.tolist(), steps.duration_s.tolist()
        sends = self._sends_of(steps)
        for k, (pe, number, size) in enumerate(causes):
            if pe not in (-1, steps.pe):
                self._line(f"recv {pe} {number} {size}")
                self.counts["receives"] += 1
            reached_s = 0.0
            for offset_s, text, receivers in sends[begins[k] : begins[k + 1]]:
                self._compute(offset_s - reached_s)
                reached_s = offset_s
                for to in receivers:
                    self._line(f"isend {to} {text}")
                    self._pending = True
                    self.counts["sends"] += 1
            self._compute(durations[k] - reached_s)

    @staticmethod
    def _sends_of(steps: Steps) -> list[tuple[float, str, list[int]]]:
        """Return the send offset of each message, its number and size, and its other receivers."""
        to, begins = steps.receiver_pe.tolist(), steps.first_receiver.tolist()
        offsets, numbers = steps.offset_s.tolist(), steps.number.tolist()
        return [
            (
                offsets[k],
                f"{numbers[k]} {size}",
                [pe for pe in to[begins[k] : begins[k + 1]] if pe != steps.pe],
            )
            for k, size in enumerate(steps.size_bytes.tolist())
        ]

    def _compute(self, duration_s: float) -> None:
        if duration_s > 0:
            self._line(f"compute {duration_s * FLOPS_PER_S!r}")
            self.counts["computations"] += 1

    def _line(self, text: str) -> None:
        if self._file is not None:
            self._file.write(f"{self._pe} {text}\n")
