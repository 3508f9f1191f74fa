"""The order in which each PE runs its SEBs in a replay."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.replaying.network import Network
from rewritelog.replaying.prepare import prepare
from rewritelog.replaying.simulate import simulate
from rewritelog.rewriting.options import DurationOptions


@dataclass(frozen=True)
class ReplayedOrder:
    """The SEBs of each PE in the order in which they run; those that never run are the last."""

    first: Ints
    """The number of the first SEB of each PE, counted over all PEs; shape (PEs + 1,)."""
    order: Ints
    """SEBs in this numbering, in the order of PEs and then of running."""

    def of(self, pe: int) -> Ints:
        """Return the SEBs of a PE, by their indices in the timeline."""
        first = self.first[pe]
        return np.asarray(self.order[first : self.first[pe + 1]] - first)

    def previous(self, pe: Ints, seb: Ints) -> Ints:
        """Return the SEB that runs before each SEB on its PE, −1 for none."""
        return np.asarray(self._previous[self.first[pe] + seb])

    @cached_property
    def _previous(self) -> Ints:
        before = np.full(len(self.order), -1)
        pe = np.searchsorted(self.first, self.order, side="right") - 1
        same = np.flatnonzero(pe[1:] == pe[:-1]) + 1
        before[self.order[same]] = self.order[same - 1] - self.first[pe[same]]
        return before


def replayed_order(logs: LogSet, network: Network) -> ReplayedOrder:
    """Replay the recorded durations over a network, and return the order; all SEBs are in memory.

    Raise a `RewriteLogError` for damaged logs.
    """
    prepared = prepare(logs, DurationOptions(dilation=1.0))
    run = simulate(prepared.workload, prepared.case(network))
    pe = prepared.workload.sebs.pe
    turn = np.full(len(pe), len(pe))
    turn[run.times.order] = np.arange(run.run)
    counts = np.bincount(pe, minlength=len(logs.pes))
    first = np.concatenate([[0], np.cumsum(counts)])
    return ReplayedOrder(first, np.lexsort((turn, pe)))
