"""SimGrid's time-independent traces: one file for each PE, with its SEBs in a fixed order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rewritelog.exporting.contents import Contents
from rewritelog.exporting.programs import ReplayedOrder, Steps

FLOPS_PER_S = 1e9
"""The speed of a host in SimGrid with which SEBs take as long as in the log."""


@dataclass(frozen=True)
class SimgridPart:
    """SEBs of successive PEs, or some SEBs of one PE."""

    ranks: list[tuple[int, list[str]]]
    """Each PE with the lines of each of its SEBs."""
    kinds: Counter[str]
    """The numbers of computations, sends and receives."""
    first: bool
    """Whether the timelines begin here."""
    last: bool
    """Whether they end here."""


def simgrid_part(steps: Steps, contents: Contents) -> SimgridPart:
    """Return SEBs as lines: the receive of the starting message, then computations and sends.

    Messages of a PE to itself are left out, since its SEBs are in order anyway.
    """
    texts = _texts(steps)
    bounds = np.searchsorted(steps.pe, [*contents.pes, contents.pes[-1] + 1]).tolist()
    ranks = [
        (pe, texts[low:high])
        for pe, low, high in zip(contents.pes, bounds, bounds[1:], strict=False)
    ]
    sends, receives = len(steps.sender), int(np.count_nonzero(steps.cause_pe >= 0))
    lines = sum(text.count("\n") for text in texts)
    kinds = Counter(computations=lines - sends - receives, sends=sends, receives=receives)
    return SimgridPart(ranks, kinds, contents.first, contents.last)


def write_simgrid(
    folder: Path, workers: int, order: ReplayedOrder | None, parts: Iterable[SimgridPart]
) -> dict[str, int]:
    """Write a file for each PE, in ascending order; return the numbers of kinds of lines.

    `workers` is the number of workers per node, `order` that of the SEBs; None for the recorded
    one. Otherwise the lines of a PE are kept in memory.
    """
    counts = Counter(computations=0, sends=0, receives=0)
    waiting: list[str] = []  # of a PE that is written in parts
    has_sent = False  # such a PE
    for part in parts:
        counts.update(part.kinds)
        for pe, texts in part.ranks:
            has_sent |= any(" isend " in text for text in texts)
            with (folder / f"rank-{pe}.txt").open("a", encoding="ascii") as file:
                if part.first:
                    file.write(f"{pe} init\n")
                if order is None:
                    file.writelines(texts)
                else:
                    waiting += texts
                if part.last:
                    if order is not None:
                        file.writelines(waiting[seb] for seb in order.of(pe).tolist())
                    file.write(f"{pe} waitall\n{pe} finalize\n" if has_sent else f"{pe} finalize\n")
                    waiting, has_sent = [], False
        new = [pe for pe, _ in part.ranks] if part.first else []
        for name, line in (("traces.txt", "rank-{0}.txt"), ("hostfile.txt", "node-{1}")):
            with (folder / name).open("a", encoding="ascii") as file:
                file.writelines(f"{line.format(pe, pe // workers)}\n" for pe in new)
    return dict(counts)


def _texts(steps: Steps) -> list[str]:
    """Return the lines of each SEB as one text."""
    begin = np.searchsorted(steps.sender, np.arange(len(steps.seb) + 1)).tolist()
    what = "SimGrid needs a finite number of flops"
    all_steps = np.arange(len(steps.seb))
    steps.scaled(steps.duration_s, all_steps, FLOPS_PER_S, np.inf, what)
    durations, offsets = steps.duration_s.tolist(), steps.offset_s.tolist()
    causes = (steps.pe, steps.cause_pe, steps.cause_number, steps.cause_bytes)
    transfers = (steps.pe[steps.sender], steps.receiver_pe, steps.number, steps.size_bytes)
    rows = zip(*(column.tolist() for column in transfers), strict=True)
    sends = [f"{pe} isend {to} {number} {size}\n" for pe, to, number, size in rows]
    texts = []
    rows = zip(*(column.tolist() for column in causes), strict=True)
    for k, (pe, source, number, size) in enumerate(rows):
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
