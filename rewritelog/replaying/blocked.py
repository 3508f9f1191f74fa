"""SEBs that never ran in a replay: why, and how many others wait for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Flags
from rewritelog.core import core
from rewritelog.replaying.simulate import ReplayedRun
from rewritelog.replaying.workload import Numbers, Workload
from rewritelog.stopping import raise_if_stopped
from rewritelog.text import count_text

SHOWN = 10
"""At most this many blocked SEBs are named."""

_UNKNOWN = -1

_STEP = 1 << 20
"""How many SEBs are visited before a signal is handled."""


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
    workload, count = outcome.workload, len(outcome.workload.sebs)
    never = np.isnan(outcome.times.ready_s)
    if not never.any():
        return Blocked(0, 0, 0)
    lacking = np.concatenate([workload.irregular.not_sent, workload.irregular.beyond[:, 0]])
    roots = np.unique(lacking)
    root = _roots(workload, never, roots.astype(np.int32))
    woken = np.bincount(root[root >= 0], minlength=count)
    worst = roots[np.argsort(-woken[roots], kind="stable")][:SHOWN]
    examples = [_example(workload, int(seb), int(woken[seb]) - 1) for seb in worst]
    in_cycles = np.flatnonzero(root == _UNKNOWN)
    if len(in_cycles):
        pe, index = workload.index_of(int(in_cycles[0]))
        name = workload.name_of(int(in_cycles[0]))
        reason = "is in a cycle of dependencies and messages, or waits for one"
        examples.append(BlockedSeb(pe, index, name, reason, len(in_cycles) - 1))
    return Blocked(int(np.count_nonzero(never)), len(roots), len(in_cycles), tuple(examples))


def _roots(workload: Workload, never: Flags, origins: Numbers) -> Numbers:
    """Return the first of the `origins` that each SEB waits for, directly or not.

    It is `_UNKNOWN` in cycles and behind them, and lower for SEBs that have run.
    """
    root = np.where(never, _UNKNOWN, _UNKNOWN - 1).astype(np.int32)
    root[origins] = origins
    stack, state = np.empty(len(root), dtype=np.int32), np.zeros(2, dtype=np.int64)
    sebs, messages = workload.sebs, workload.messages
    links = (sebs.links, sebs.waiting, messages.first_receiver, messages.receivers)
    more = True
    while more:
        raise_if_stopped()
        more = core.spread_roots(*links, origins, root, stack, state, _STEP)
    return root


def _example(workload: Workload, seb: int, woken: int) -> BlockedSeb:
    irregular = workload.irregular
    pe, index = workload.index_of(seb)
    at = int(np.searchsorted(irregular.not_sent, seb))
    if at < len(irregular.not_sent) and irregular.not_sent[at] == seb:
        source, number = irregular.not_sent_ids[at].tolist()
        reason = f"no SEB sends its starting message, number {number} of PE {source}"
    else:
        other = int(irregular.beyond[np.searchsorted(irregular.beyond[:, 0], seb), 1])
        length = int(np.diff(workload.sebs.first_of_pe)[pe])
        reason = f"depends on SEB {other}, but the timeline has {count_text(length, 'SEB')}"
    return BlockedSeb(pe, index, workload.name_of(seb), reason, woken)
