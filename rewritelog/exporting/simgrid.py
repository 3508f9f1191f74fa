"""SimGrid's time-independent traces: one file for each PE, with its SEBs in a fixed order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from rewritelog.exporting.programs import Steps

FLOPS_PER_S = 1e9
"""The speed of a host in SimGrid with which SEBs take as long as in the log."""


def simgrid_part(steps: Steps) -> tuple[dict[int, str], Counter[str]]:
    """Return the text of each PE, and the numbers of computations, sends and receives.

    A SEB becomes lines: the receive of its starting message, then computations and sends. Messages
    of a PE to itself are left out, since its SEBs are in order anyway.
    """
    texts = _texts(steps)
    lines = sum(text.count("\n") for text in texts)
    sends, receives = len(steps.sender), int(np.count_nonzero(steps.cause_pe >= 0))
    kinds = Counter(computations=lines - sends - receives, sends=sends, receives=receives)
    ordered = [texts[step] for step in steps.order.tolist()]
    bounds = np.searchsorted(steps.pe, [*steps.pes, steps.pes.stop]).tolist()
    senders = set(steps.pe[steps.sender].tolist())
    traces = {}
    for pe, low, high in zip(steps.pes, bounds, bounds[1:], strict=False):
        end = f"{pe} waitall\n{pe} finalize\n" if pe in senders else f"{pe} finalize\n"
        traces[pe] = "".join([f"{pe} init\n", *ordered[low:high], end])
    return traces, kinds


def write_simgrid(
    folder: Path, workers: int, parts: Iterable[tuple[dict[int, str], Counter[str]]]
) -> dict[str, int]:
    """Write a file for each PE, in ascending order; return the number of lines of each kind.

    `workers` is the number of workers per node.
    """
    counts = Counter(computations=0, sends=0, receives=0)
    with (
        (folder / "traces.txt").open("x", encoding="ascii") as names,
        (folder / "hostfile.txt").open("x", encoding="ascii") as hosts,
    ):
        for traces, kinds in parts:
            counts.update(kinds)
            for pe, text in traces.items():
                (folder / f"rank-{pe}.txt").write_text(text, encoding="ascii")
                names.write(f"rank-{pe}.txt\n")
                hosts.write(f"node-{pe // workers}\n")
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
