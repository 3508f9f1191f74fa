"""SEBs that could never run in a replay: why, and what else waits for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.replaying.kernels.interface import NOT_SENT
from rewritelog.replaying.kernels.replay import find_blocked
from rewritelog.replaying.simulate import ReplayedRun

SHOWN = 10
"""How many of them are named."""


@dataclass(frozen=True)
class BlockedSeb:
    """A SEB that lacks what the log does not hold."""

    pe: int
    seb: int
    name: str
    reason: str
    woken: int
    """How many more SEBs never ran because of it."""


@dataclass(frozen=True)
class Blocked:
    """All SEBs that never ran."""

    count: int
    roots: int
    """How many of them lack something that the log does not hold."""
    in_circles: int
    """How many wait for one another in a circle, or for one that does."""
    examples: tuple[BlockedSeb, ...] = ()
    """Those that hold up the most others."""

    def to_json(self) -> dict[str, Any]:
        """Return the SEBs for JSON."""
        return {**vars(self), "examples": [vars(example) for example in self.examples]}


def find_never_run(outcome: ReplayedRun) -> Blocked:
    """Return the SEBs that never ran, each counted under the first SEB that it waits for."""
    workload = outcome.workload
    never = np.isnan(outcome.times.ready_s)
    if not never.any():
        return Blocked(0, 0, 0)
    sebs = workload.program.sebs
    unsent = never & (sebs.starter == NOT_SENT)
    invalid = _invalid_dependencies(outcome) & never
    root = np.full(workload.sebs, -1, dtype=np.int32)
    find_blocked(workload.program, outcome.times, root, (unsent | invalid).astype(np.uint8))
    known = root[root >= 0]
    woken = np.bincount(known, minlength=workload.sebs)
    roots = np.flatnonzero(unsent | invalid)
    worst = roots[np.argsort(-woken[roots], kind="stable")][:SHOWN]
    examples = [_example(outcome, int(seb), int(woken[seb]) - 1, unsent=unsent) for seb in worst]
    circles = np.flatnonzero(never & (root < 0))
    if len(circles):
        pe, index = workload.index_of(int(circles[0]))
        name = workload.name_of(int(circles[0]))
        reason = "waits in a circle of dependencies and messages, or for one"
        examples.append(BlockedSeb(pe, index, name, reason, len(circles) - 1))
    return Blocked(int(np.count_nonzero(never)), len(roots), len(circles), tuple(examples))


def _invalid_dependencies(outcome: ReplayedRun) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return whether each SEB depends on one that its timeline does not have."""
    sebs = outcome.workload.program.sebs
    lengths = np.diff(sebs.first_of_pe)[sebs.pe]
    owner = np.repeat(np.arange(len(lengths)), np.diff(sebs.first_dependency))
    wrong = (sebs.dependencies < 0) | (sebs.dependencies >= lengths[owner])
    found = np.zeros(len(lengths), dtype=np.bool_)
    found[owner[wrong]] = True
    return found


def _example(outcome: ReplayedRun, seb: int, woken: int, *, unsent: Any) -> BlockedSeb:
    workload = outcome.workload
    sebs = workload.program.sebs
    pe, index = workload.index_of(seb)
    if unsent[seb]:
        at = int(np.searchsorted(workload.faults.not_sent, seb))
        source, number = workload.faults.not_sent_ids[at].tolist()
        reason = f"no SEB sends its starting message, number {number} of PE {source}"
    else:
        mine = sebs.dependencies[sebs.first_dependency[seb] : sebs.first_dependency[seb + 1]]
        length = int(sebs.first_of_pe[pe + 1] - sebs.first_of_pe[pe])
        wrong = next(int(one) for one in mine if not 0 <= one < length)
        reason = f"depends on SEB {wrong}, and the timeline has {length:,} SEBs"
    return BlockedSeb(pe, index, workload.name_of(seb), reason, woken)
