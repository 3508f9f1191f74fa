"""Cycles of dependencies: strongly connected components among the SEBs of a timeline."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Ints
from rewritelog.checking.findings import SHOWN, Finding, Findings
from rewritelog.checking.kernels.check import find_waits
from rewritelog.errors import Location
from rewritelog.kernels import walk
from rewritelog.logs.blocks import LoadedBlock


def add_cycles(loaded: LoadedBlock, chosen: Ints, dependencies: int, findings: Findings) -> None:
    """Add a finding for each cycle of SEBs that wait for each other.

    `chosen` are the pieces to examine, which have to be whole, undamaged timelines, and
    `dependencies` is the number of valid backward dependencies in them.
    """
    pieces = walk.Pieces(*(part[chosen] for part in loaded.pieces))
    offsets = np.zeros(int(pieces.counts.sum()), dtype=np.int64)
    waits = np.zeros((dependencies, 2), dtype=np.int32)
    fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
    rows = find_waits(loaded.buffer, pieces, loaded.layout.kernel, offsets, waits, fault)
    group, firsts = _cycles(waits[:rows], len(offsets))
    bases = np.concatenate([[0], np.cumsum(pieces.counts)])
    found = []
    for head in firsts[:SHOWN].tolist():
        piece = int(np.searchsorted(bases, head, side="right")) - 1
        members = np.flatnonzero(group == group[head]) - bases[piece]
        location = Location(
            loaded.file.path,
            loaded.block.offset + int(offsets[head]),
            int(loaded.pes[chosen[piece]]),
            head - int(bases[piece]),
        )
        named = ", ".join(map(str, members[:SHOWN])) + (", …" if len(members) > SHOWN else "")
        found.append(Finding(location, f"these SEBs wait for one another: {named}"))
    findings.add_many("dependency-cycle", len(firsts), found)


def _cycles(waits: NDArray[np.int32], total: int) -> tuple[NDArray[np.int32], Ints]:
    """Return the component of each of `total` SEBs, and the first SEB of each cyclic one."""
    from scipy.sparse import coo_array  # noqa: PLC0415 - slow to import, and seldom needed
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    links = (np.ones(len(waits)), (waits[:, 0], waits[:, 1]))
    graph = coo_array(links, shape=(total, total)).tocsr()
    _, group = connected_components(graph, directed=True, connection="strong")
    sizes = np.bincount(group, minlength=total)
    itself = waits[waits[:, 0] == waits[:, 1], 0]
    sizes[group[itself]] += 1  # a SEB that waits for itself is a cycle alone
    inside = np.flatnonzero(sizes[group] > 1)
    _, first = np.unique(group[inside], return_index=True)
    return group, inside[np.sort(first)]
