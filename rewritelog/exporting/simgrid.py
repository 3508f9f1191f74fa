"""SimGrid's time-independent traces: one file for each PE, with its SEBs in a fixed order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.exporting.contents import Contents
from rewritelog.exporting.programs import StepMaker, Steps
from rewritelog.replaying.order import ReplayedOrder

KINDS = ("computations", "sends", "receives")
"""What is counted."""

FLOPS_PER_S = 1e9
"""The speed of a host in SimGrid with which SEBs take as long as in the log."""


@dataclass(frozen=True)
class RankPart:
    """SEBs of one PE as lines: the receive of the starting message, then computations and sends."""

    pe: int
    texts: list[str]
    """The lines of each SEB."""
    counts: Counter[str]


@dataclass(frozen=True)
class SimgridPart:
    """SEBs of successive PEs, or some SEBs of one PE."""

    counts: Counter[str]
    """What `Steps` counts."""
    ranks: list[RankPart]
    first: bool
    """Whether the timelines begin here."""
    last: bool
    """Whether they end here."""


@dataclass(frozen=True)
class SimgridMaker:
    """Makes the lines of SEBs.

    Messages of a PE to itself are left out, since its SEBs are in order anyway.
    """

    program: StepMaker

    def __call__(self, contents: Contents, /) -> SimgridPart:
        """Return the lines of SEBs."""
        steps = self.program.steps_of(contents)
        texts, ranks = _texts(steps), []
        sends = np.bincount(steps.sender, minlength=len(texts))
        bounds = np.searchsorted(steps.pe, [*contents.pes, contents.pes[-1] + 1]).tolist()
        for pe, low, high in zip(contents.pes, bounds, bounds[1:], strict=False):
            own = texts[low:high]
            counts = Counter(
                sends=int(sends[low:high].sum()),
                receives=int(np.count_nonzero(steps.cause_pe[low:high] >= 0)),
            )
            lines = sum(text.count("\n") for text in own)
            counts["computations"] = lines - counts.total()
            ranks.append(RankPart(pe, own, counts))
        return SimgridPart(steps.counts, ranks, contents.first, contents.last)


@dataclass
class SimgridWriter:
    """Writes a file for each PE; PEs have to be in ascending order."""

    folder: Path
    workers: int
    """The number of workers per node."""
    order: ReplayedOrder | None
    """The order of the SEBs; None for the recorded one. A PE's lines are then kept in memory."""
    counts: Counter[str] = field(default_factory=Counter)
    _waiting: list[str] = field(default_factory=list)
    """The text of each SEB of a PE that is written in parts, if it has to be ordered."""
    _sends: bool = False
    """Whether the PE that is written in parts has sent anything."""

    def write(self, part: SimgridPart) -> None:
        """Write SEBs."""
        for rank in part.ranks:
            self.counts.update(rank.counts)
            self._write_rank(rank, part)
        lists = {"traces.txt": "rank-{0}.txt", "hostfile.txt": "node-{1}"}
        new = [rank.pe for rank in part.ranks] if part.first else []
        for name, line in lists.items():
            with (self.folder / name).open("a", encoding="ascii") as file:
                file.writelines(f"{line.format(pe, pe // self.workers)}\n" for pe in new)

    def _write_rank(self, rank: RankPart, part: SimgridPart) -> None:
        pe = rank.pe
        self._sends |= rank.counts["sends"] > 0
        with (self.folder / f"rank-{pe}.txt").open("a", encoding="ascii") as file:
            if part.first:
                file.write(f"{pe} init\n")
            if self.order is None:
                file.writelines(rank.texts)
            else:
                self._waiting += rank.texts
            if part.last:
                if self.order is not None:
                    file.writelines(self._waiting[seb] for seb in self.order.of(pe).tolist())
                file.write(f"{pe} waitall\n{pe} finalize\n" if self._sends else f"{pe} finalize\n")
                self._waiting, self._sends = [], False


def _texts(steps: Steps) -> list[str]:
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
