"""Replays of a workload: all times of a single one, or only the run times of many."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.cores import cores, in_order
from rewritelog.errors import RewriteLogError
from rewritelog.replaying.kernels.interface import (
    RUN_ROW,
    STATE_ROW,
    Causes,
    Delays,
    Program,
    Record,
    Scale,
    State,
    Times,
    record_of,
    state_of,
    times_of,
)
from rewritelog.replaying.kernels.queue import Queue
from rewritelog.replaying.kernels.replay import replay
from rewritelog.replaying.network import Network
from rewritelog.replaying.workload import Workload


@dataclass(frozen=True)
class Case:
    """The durations and the network of one replay."""

    network: Network
    factor_of: Callable[[str], float]
    """A function that returns the dilation of SEBs with a name."""
    free: str | None = None
    """The name of SEBs that take no time; None for no such SEBs."""

    def scale(self, workload: Workload) -> Scale:
        """Return the factors of all SEB names of the workload."""
        scaled = np.array([self.factor_of(name) for name in workload.names], dtype=np.float64)
        fixed = np.ones(len(workload.names))
        if self.free is not None:
            freed = np.array([name == self.free for name in workload.names])
            scaled[freed] = fixed[freed] = 0.0
        return Scale(scaled, fixed)

    def delays(self, workload: Workload) -> Delays:
        """Return the network in the form that the kernels take."""
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
class ReplayedRun:
    """The results of one replay, with the times of all SEBs."""

    workload: Workload
    scale: Scale
    delays: Delays
    times: Times
    causes: Causes
    predicted_s: float

    @property
    def run(self) -> int:
        """The number of SEBs that have run."""
        return len(self.times.order)

    def durations_s(self) -> Floats:
        """Return the duration of each SEB; 0 for one that never ran."""
        sebs = self.workload.program.sebs
        durations: Floats = sebs.scaled_s * self.scale.scaled[sebs.name]
        if len(sebs.fixed_s):
            durations += sebs.fixed_s * self.scale.fixed[sebs.name]
        if self.run < self.workload.sebs:
            durations[np.isnan(self.times.start_s)] = 0.0
        return durations


def simulate(workload: Workload, case: Case) -> ReplayedRun:
    """Replay a workload once; raise `RewriteLogError` if a time overflows."""
    table = np.empty(workload.sebs, dtype=RUN_ROW)
    record = record_of(table, np.empty(workload.sebs, dtype=np.int32))
    predicted_s, run = _replay(workload, case, workload.program, state_of(table), record)
    times = times_of(table, record.times.order[:run])
    scale, delays = case.scale(workload), case.delays(workload)
    return ReplayedRun(workload, scale, delays, times, record.causes, predicted_s)


def run_time(workload: Workload, case: Case, program: Program | None = None) -> float:
    """Return the run time in seconds; it takes a third of the memory of `simulate`.

    `program` replaces the workload's, with the same SEBs.
    """
    nothing = record_of(np.empty(2, dtype=RUN_ROW), np.empty(2, dtype=np.int32), wanted=False)
    state = state_of(np.empty(workload.sebs, dtype=STATE_ROW))
    return _replay(workload, case, program or workload.program, state, nothing)[0]


def _replay(
    workload: Workload, case: Case, program: Program, state: State, record: Record
) -> tuple[float, int]:
    scale, delays = case.scale(workload), case.delays(workload)
    free, queue = np.zeros(workload.pes), Queue.of(workload.sebs)
    predicted_s, run = replay(program, scale, delays, free, state, record, queue)
    if not math.isfinite(predicted_s):
        raise RewriteLogError("the replayed time exceeds the range of a double")
    return float(predicted_s), int(run)


def run_times(workload: Workload, cases: Iterable[Case], jobs: int = 0) -> Iterator[float]:
    """Yield the run time in seconds of each case, replayed in parallel."""
    workers = cores(jobs)
    with ThreadPoolExecutor(workers) as executor:
        yield from in_order(executor, lambda case: run_time(workload, case), cases, workers)
