"""SEBs that never ran in a replay: why, and how many others wait for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.replaying.kernels.interface import NOT_SENT
from rewritelog.replaying.kernels.replay import find_blocked
from rewritelog.replaying.simulate import ReplayedRun
from rewritelog.text import count_text

SHOWN = 10
"""At most this many blocked SEBs are named."""


@dataclass(frozen=True)
class BlockedSeb:
    """A SEB that waits for something that the log does not contain."""

    pe: int
    seb: int
    name: str
    reason: str
    woken: int
    """The number of other SEBs that never ran because of it."""


@dataclass(frozen=True)
class Blocked:
    """The SEBs that never ran."""

    count: int
    roots: int
    """The number of those that wait for something that the log does not contain."""
    in_circles: int
    """The number of those in a cycle of dependencies and messages, or waiting for such a SEB."""
    examples: tuple[BlockedSeb, ...] = ()
    """Those that block the most others."""

    def to_json(self) -> dict[str, Any]:
        """Return the numbers and examples as a JSON object."""
        return {**vars(self), "examples": [vars(example) for example in self.examples]}


def find_never_run(outcome: ReplayedRun) -> Blocked:
    """Return the SEBs that never ran, each one counted for the SEB at the root of its waiting."""
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
    in_cycles = np.flatnonzero(never & (root < 0))
    if len(in_cycles):
        pe, index = workload.index_of(int(in_cycles[0]))
        name = workload.name_of(int(in_cycles[0]))
        reason = "is in a cycle of dependencies and messages, or waits for one"
        examples.append(BlockedSeb(pe, index, name, reason, len(in_cycles) - 1))
    return Blocked(int(np.count_nonzero(never)), len(roots), len(in_cycles), tuple(examples))


def _invalid_dependencies(outcome: ReplayedRun) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return whether each SEB depends on a SEB that its timeline does not have."""
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
        dependencies = sebs.dependencies[
            sebs.first_dependency[seb] : sebs.first_dependency[seb + 1]
        ]
        length = int(sebs.first_of_pe[pe + 1] - sebs.first_of_pe[pe])
        wrong = next(int(one) for one in dependencies if not 0 <= one < length)
        reason = f"depends on SEB {wrong}, but the timeline has {count_text(length, 'SEB')}"
    return BlockedSeb(pe, index, workload.name_of(seb), reason, woken)
