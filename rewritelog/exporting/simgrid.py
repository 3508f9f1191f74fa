"""SimGrid's time-independent traces: one file for each PE, with its SEBs in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.exporting.contents import Contents
from rewritelog.exporting.programs import Steps
from rewritelog.replaying.order import ReplayedOrder

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
    order: ReplayedOrder | None
    """The order of the SEBs; None for the recorded one. A PE's lines are then kept in memory."""
    counts: dict[str, int] = field(default_factory=dict)
    _waiting: list[str] = field(default_factory=list)
    """The text of each SEB of a PE that is written in parts, if it has to be ordered."""
    _pending: bool = False
    """Whether the PE that is written in parts has sent anything."""
    _begun: int = -1
    """The last PE that has been begun."""

    def begin(self) -> None:
        """Begin the counts."""
        self.counts = dict.fromkeys(("computations", "sends", "receives"), 0)

    def end(self) -> None:
        """Nothing is left to write."""

    def write(self, contents: Contents, steps: Steps) -> None:
        """Write SEBs: the receive of the starting message, then computations and sends in turn."""
        texts = self._texts(steps)
        sends = np.bincount(steps.sender, minlength=len(texts))
        bounds = np.searchsorted(steps.pe, [*contents.pes, contents.pes[-1] + 1]).tolist()
        for pe, low, high in zip(contents.pes, bounds, bounds[1:], strict=False):
            self._pending |= bool(sends[low:high].any())
            self._write_pe(pe, texts[low:high], last=contents.last)
        lists = {"traces.txt": "rank-{0}.txt", "hostfile.txt": "node-{1}"}
        new = [pe for pe in contents.pes if pe > self._begun]
        for name, line in lists.items():
            with (self.folder / name).open("a", encoding="ascii") as file:
                file.writelines(f"{line.format(pe, pe // self.workers)}\n" for pe in new)
        self._begun = contents.pes[-1]

    def _write_pe(self, pe: int, texts: list[str], *, last: bool) -> None:
        with (self.folder / f"rank-{pe}.txt").open("a", encoding="ascii") as file:
            if pe > self._begun:
                file.write(f"{pe} init\n")
            if self.order is None:
                file.writelines(texts)
            else:
                self._waiting += texts
            if last:
                if self.order is not None:
                    file.writelines(self._waiting[seb] for seb in self.order.of(pe).tolist())
                file.write(
                    f"{pe} waitall\n{pe} finalize\n" if self._pending else f"{pe} finalize\n"
                )
                self._waiting, self._pending = [], False

    def _texts(self, steps: Steps) -> list[str]:
        """Return the lines of each SEB as one text."""
        begin = np.searchsorted(steps.sender, np.arange(len(steps.seb) + 1)).tolist()
        what = "SimGrid needs a finite number of flops"
        every = np.arange(len(steps.seb))
        steps.scaled(steps.duration_s, every, FLOPS_PER_S, np.inf, what)
        durations, offsets = steps.duration_s.tolist(), steps.offset_s.tolist()
        columns = (steps.pe, steps.cause_pe, steps.cause_number, steps.cause_bytes)
        causes = list(zip(*(column.tolist() for column in columns), strict=True))
        sends = _send_lines(steps)
        texts = []
        for k, (pe, source, number, size) in enumerate(causes):
            lines = [f"{pe} recv {source} {number} {size}\n"] if source >= 0 else []
            reached_s = 0.0
            for row in range(begin[k], begin[k + 1]):
                if offsets[row] > reached_s:
                    lines.append(f"{pe} compute {(offsets[row] - reached_s) * FLOPS_PER_S!r}\n")
                    reached_s = offsets[row]
                lines.append(sends[row])
            if durations[k] > reached_s:
                lines.append(f"{pe} compute {(durations[k] - reached_s) * FLOPS_PER_S!r}\n")
            texts.append("".join(lines))
            self.counts["computations"] += len(lines) - (source >= 0) - begin[k + 1] + begin[k]
        self.counts["sends"] += len(sends)
        self.counts["receives"] += int(np.count_nonzero(steps.cause_pe >= 0))
        return texts


def _send_lines(steps: Steps) -> list[str]:
    columns: tuple[Ints, ...] = (
        steps.pe[steps.sender],
        steps.receiver_pe,
        steps.number,
        steps.size_bytes,
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [f"{pe} isend {to} {number} {size}\n" for pe, to, number, size in rows]
