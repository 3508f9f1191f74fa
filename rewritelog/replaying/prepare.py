"""Preparation of a replay: the model is fitted, and the logs are loaded as a workload.

The order of SEBs in such a replay is for exports.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.commands.durations import DurationOptions
from rewritelog.formats.bgtrace.logset import LogSet, open_logs
from rewritelog.replaying.loading import load_workload
from rewritelog.replaying.network import Network
from rewritelog.replaying.simulate import Case, simulate
from rewritelog.replaying.workload import Workload
from rewritelog.rewriting.predicting import (
    Predictor,
    fit_warnings,
    fitted_predictor,
    warnings_of_unused,
)
from rewritelog.text import matching


@dataclass(frozen=True)
class Prepared:
    """A log set that has been loaded with predicted durations."""

    logs: LogSet
    options: DurationOptions
    predictor: Predictor
    workload: Workload
    warnings: tuple[str, ...]
    """Warnings of the model's fit, and of options that had no effect."""

    def case(self, network: Network, dilation: float | None = None) -> Case:
        """Return the case to replay, with the dilation of the options or another one."""
        rules = self.options.dilations
        return Case(network, rules if dilation is None else replace(rules, factor=dilation))


def prepare(logs: LogSet | str | Path, options: DurationOptions) -> Prepared:
    """Fit the model and load the logs; raise a `RewriteLogError` for any invalid input."""
    source = open_logs(logs)
    model, read, predictor = fitted_predictor(options)
    workload = load_workload(source, predictor, options)
    matched = matching(options.dilation_for, workload.names)
    unused = warnings_of_unused(options, model, source.terms, matched)
    warnings = (*fit_warnings(read, predictor.fitted), *unused)
    return Prepared(source, options, predictor, workload, warnings)


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
