"""Replays of a workload: the whole times of one, or only how long many take."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.errors import RewriteLogError
from rewritelog.logs.work import in_order
from rewritelog.replaying.kernels.interface import STATE_ROW, Causes, Delays, Scale, State, Times
from rewritelog.replaying.kernels.replay import find_causes, replay
from rewritelog.replaying.network import Network
from rewritelog.replaying.workload import Workload


@dataclass(frozen=True)
class Case:
    """One setting of durations and network."""

    network: Network
    factor_of: Callable[[str], float]
    """The dilation of SEBs of a name."""
    free: str | None = None
    """The name of SEBs that take no time."""

    def scale(self, workload: Workload) -> Scale:
        """Return the factors of the workload's names."""
        scaled = np.array([self.factor_of(name) for name in workload.names], dtype=np.float64)
        fixed = np.ones(len(workload.names))
        if self.free is not None:
            freed = np.array([name == self.free for name in workload.names])
            scaled[freed] = fixed[freed] = 0.0
        return Scale(scaled, fixed)

    def delays(self, workload: Workload) -> Delays:
        """Return the network as the kernels take it."""
        network = self.network
        bandwidth = network.bandwidth_bytes_per_s
        return Delays(
            network.recorded,
            float(network.latency_s or 0.0),
            math.inf if bandwidth is None else float(bandwidth),
            float(network.cost_per_packet_s),
            float(network.packet_bytes),
            float(network.node_latency_s),
            workload.workers,
        )


@dataclass(frozen=True)
class Outcome:
    """One replay, with the times of every SEB."""

    workload: Workload
    scale: Scale
    delays: Delays
    times: Times
    predicted_s: float

    @cached_property
    def causes(self) -> Causes:
        """What made each SEB ready, and what its PE ran before it."""
        sebs = self.workload.sebs
        causes = Causes(
            np.empty(sebs, dtype=np.int32),
            np.empty(sebs, dtype=np.uint8),
            np.empty(sebs, dtype=np.int32),
        )
        find_causes(
            self.workload.program, self.scale, self.delays, self.times, causes, self.workload.pes
        )
        return causes

    @property
    def run(self) -> int:
        """How many SEBs have run."""
        return len(self.times.order)

    @cached_property
    def durations_s(self) -> Floats:
        """How long each SEB took; 0 for one that never ran."""
        sebs = self.workload.program.sebs
        durations: Floats = sebs.scaled_s * self.scale.scaled[sebs.name]
        if len(sebs.fixed_s):
            durations += sebs.fixed_s * self.scale.fixed[sebs.name]
        if self.run < self.workload.sebs:
            durations[np.isnan(self.times.start_s)] = 0.0
        return durations


def simulate(workload: Workload, case: Case) -> Outcome:
    """Replay a workload once; raise `RewriteLogError` where a time is too large for a number."""
    sebs = workload.sebs
    start_s, end_s = np.full(sebs, np.nan), np.full(sebs, np.nan)
    order = np.empty(sebs, dtype=np.int32)
    scale, delays = case.scale(workload), case.delays(workload)
    state = _state(sebs)
    predicted_s, run = replay(
        workload.program, scale, delays, workload.pes, state, start_s, end_s, order
    )
    _check(predicted_s)
    times = Times(state.ready_s.copy(), start_s, end_s, order[:run])
    return Outcome(workload, scale, delays, times, predicted_s)


def run_time(workload: Workload, case: Case) -> float:
    """Return how long the program takes, in seconds, in half the memory of `simulate`."""
    none, no_order = np.empty(0), np.empty(0, dtype=np.int32)
    scale, delays = case.scale(workload), case.delays(workload)
    predicted_s, _ = replay(
        workload.program, scale, delays, workload.pes, _state(workload.sebs), none, none, no_order
    )
    _check(predicted_s)
    return float(predicted_s)


def _state(sebs: int) -> State:
    table = np.empty(sebs, dtype=STATE_ROW)
    return State(table["ready_s"], table["missing"], table["pe"])


def run_times(workload: Workload, cases: Iterable[Case], jobs: int = 0) -> Iterator[float]:
    """Yield how long the program takes in each case, several being replayed at a time."""
    workers = jobs or len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(workers) as executor:
        yield from in_order(executor, lambda case: run_time(workload, case), cases, workers)


def _check(predicted_s: float) -> None:
    if not math.isfinite(predicted_s):
        raise RewriteLogError("the replayed time exceeds the range of a double")
