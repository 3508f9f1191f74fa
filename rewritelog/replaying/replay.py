"""Replays of a loaded workload: one with the times of all SEBs, or many with their run times."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rewritelog.arrays import Floats, Ints, Table, spans
from rewritelog.commands.durations import DilationRules, DurationOptions
from rewritelog.core import core
from rewritelog.errors import RewriteLogError, UsageError
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import about_malformed, about_none, list_params
from rewritelog.formats.opening import open_traces
from rewritelog.formats.traces import AnyTraces, Traces
from rewritelog.models.fitted import Fitted
from rewritelog.replaying.loading import load_workload
from rewritelog.replaying.network import Network
from rewritelog.replaying.workload import Numbers, Seconds, Workload, grouped
from rewritelog.rewriting.block import RewriteTask, logs_task
from rewritelog.rewriting.predicting import (
    OF_NO_LENGTH,
    fit_warnings,
    fitted_predictor,
    warnings_of_uncovered,
    warnings_of_unused,
)
from rewritelog.running.locks import cached_property
from rewritelog.stopping import raise_if_stopped
from rewritelog.text import count_text, matching
from rewritelog.timings.samples import Timings

if TYPE_CHECKING:
    from rewritelog.rewriting.traces import TraceTask

Task = TypeVar("Task", RewriteTask, "TraceTask")

_STEP = 1 << 18
"""The most SEBs that are replayed before a signal is handled."""

_ENTRIES_PER_BUCKET, _MOST_BUCKETS = 4, 1 << 18

_PICOSECONDS = 1e12
"""The unit of time in replays of traces, per second. Whole picoseconds add up without rounding, so
that nodes which are ready at the same time by their durations are so in the replay, too."""


class Case(Struct, frozen=True):
    """The times and the network of one replay."""

    network: Network
    seconds: Seconds
    free_name: str | None = None
    """The name of SEBs that take no time; None for no such SEBs."""
    free_event: str | None = None
    """The event whose middle regions take no time; None for no such event."""

    def durations_s(self, workload: Workload) -> Floats:
        """Return the duration of each SEB."""
        sebs, nodes, seconds = workload.sebs, workload.nodes, self.seconds.of_sebs.copy()
        if nodes is not None and self.network.recorded:
            seconds[seconds == 0] = np.inf  # a part of 0 may not have been timed
            nodes.equalise(seconds)
            seconds[np.isinf(seconds)] = 0.0
            seconds[nodes.received] = 0.0
        elif nodes is not None:
            seb, steps, step_bytes = nodes.transfers
            delays = delays_s(self.network, step_bytes)
            seconds[seb] = np.multiply(steps, delays, out=np.zeros_like(delays), where=steps > 0)
        if self.free_name is not None:
            is_free = np.array([name == self.free_name for name in workload.names], dtype=np.bool_)
            seconds[is_free[sebs.name]] = 0.0
            if nodes is not None:
                nodes.equalise(seconds)
        if self.free_event is not None:
            regions = self._regions_of_free_event(workload)
            np.subtract.at(seconds, workload.regions.seb[regions], self.seconds.in_regions[regions])
        return np.maximum(seconds, 0.0, out=seconds)

    def _regions_of_free_event(self, workload: Workload) -> Ints:
        return np.flatnonzero(
            workload.regions.event == workload.events.index(self.free_event or "")
        )

    def _sent_after_s(self, workload: Workload) -> Floats:
        """Return when messages leave after their SEB's start; free regions before take no time."""
        after_s, first = self.seconds.until_sent, workload.sebs.first_message
        if self.free_event is None:
            return after_s
        regions = self._regions_of_free_event(workload)
        seb, after_s = workload.regions.seb[regions], after_s.copy()
        counts = first[seb + 1] - first[seb]
        message, region = spans(first[seb], counts), np.repeat(regions, counts)
        since_s = after_s[message] - self.seconds.until_regions[region]
        inside_s = np.clip(since_s, 0.0, self.seconds.in_regions[region])
        np.subtract.at(after_s, message, inside_s)
        return np.maximum(after_s, 0.0, out=after_s)

    def sent(self, workload: Workload) -> Table:
        """Return when each message leaves after the start of its SEB, and its delay."""
        messages, transit_s = workload.messages, self.seconds.in_transit
        sent = np.empty(len(messages), dtype=core.structs["sent_message"])
        sent["after_s"] = self._sent_after_s(workload)
        if self.network.recorded:
            sent["delay_s"] = np.where(transit_s > 0, transit_s, 0.0)
        else:
            sent["delay_s"] = delays_s(self.network, np.maximum(messages.size_bytes, 0.0))
        return sent


def delays_s(network: Network, size: Floats) -> Floats:
    """Return the delay of messages between two nodes, given their sizes in bytes."""
    bandwidth = network.bandwidth
    with np.errstate(over="ignore"):
        delays = (network.latency or 0.0) + size / (math.inf if bandwidth is None else bandwidth)
        if network.packet_size:
            packets = np.maximum(np.ceil(size / network.packet_size), 1.0)
            delays += network.cost_per_packet * packets
    return delays


class Times(NamedTuple):
    """The times at which each SEB was ready, started and ended; NaN for one that never ran."""

    ready_s: Floats
    start_s: Floats
    end_s: Floats
    order: Numbers
    """The SEBs that ran; those of one PE are in the order in which it ran them."""


class ReplayedRun(Struct, frozen=True, dict=True):
    """The results of one replay, with the times of all SEBs."""

    workload: Workload
    case: Case
    sent: Table
    """The offset of each message in its SEB, and its delay between nodes."""
    times: Times
    states: Table
    """The state of each SEB at the end: its cause is the SEB of its last input, −1 for none."""
    predicted_s: float
    stalls: int
    """How often ranks waited in collectives for others that did not come."""

    @property
    def never_ran(self) -> int:
        """The number of SEBs that have not run; it is the same for all durations and networks."""
        return len(self.workload.sebs) - len(self.times.order)

    @property
    def durations_s(self) -> Floats:
        """The duration of each SEB, also of one that never ran."""
        return self.states["duration_s"]

    @property
    def busy_s(self) -> Floats:
        """The duration of each SEB; 0 for one that never ran."""
        return np.where(np.isnan(self.times.start_s), 0.0, self.durations_s)

    @cached_property
    def order_by_pe(self) -> tuple[Numbers, Numbers]:
        """The SEBs that each PE ran, in order: the index of each PE's first among all, and all."""
        pe = self.workload.sebs.pe[self.times.order]
        return grouped(pe, self.times.order, self.workload.pes)

    @cached_property
    def regions_s(self) -> tuple[Floats, Floats]:
        """When each middle region begins in its SEB, and its length; 0 if the SEB never ran."""
        seconds, start_s = self.case.seconds, self.times.start_s[self.workload.regions.seb]
        return seconds.until_regions, np.where(np.isnan(start_s), 0.0, seconds.in_regions)

    def sent_s(self, seb: Numbers, message: Numbers) -> Floats:
        """Return when each SEB sends the message in the same row."""
        times = self.times
        sent_s = times.start_s[seb] + self.sent["after_s"][message]
        return np.asarray(np.minimum(sent_s, times.end_s[seb]))


_SWEPT = 0.25, 0.5
"""The two dilations that are loaded for a sweep of dilations; times at all others follow."""


class Prepared(Struct, frozen=True):
    """Logs or traces that have been loaded with their new durations."""

    task: RewriteTask | TraceTask
    """What gives them these durations."""
    timings: Timings | None
    """The timings to which the model was fitted, if it was."""
    workload: Workload
    warnings: tuple[str, ...]
    """Warnings of the model's fit, and of options that had no effect."""

    @property
    def logs(self) -> AnyTraces:
        """The logs or traces that were loaded."""
        return self.task.logs

    def warnings_of(
        self, runs: Collection[ReplayedRun | ReplayedTime], networks: Collection[Network]
    ) -> tuple[str, ...]:
        """Return the warnings of replays over some networks."""
        return (*self.warnings, *self.workload.warnings(networks, runs))

    def case(self, network: Network, dilation: float | None = None) -> Case:
        """Return the case to replay, with one of the dilations if it is loaded for a sweep of them.

        A duration at the dilation f is a · f + b, and so is every offset within a SEB. Raise
        `UsageError` for traces that were loaded for replays without a network, or only for these.
        """
        nodes = self.workload.nodes
        if nodes is not None and nodes.recorded != network.recorded:
            raise UsageError(
                "communication of traces is as recorded, or on networks, not both in one sweep"
            )
        seconds = self.workload.seconds[0]
        if dilation is not None:
            share = (dilation - _SWEPT[0]) / (_SWEPT[1] - _SWEPT[0])
            seconds = seconds.interpolated(self.workload.seconds[1], share)
        return Case(network, seconds)


def _about_params(workload: Workload, fitted: Fitted) -> Iterator[str]:
    """Yield warnings of param lines and records of logs that are not used."""
    unused = workload.unused
    if fitted.uses_params and unused["of_no_length"]:
        yield OF_NO_LENGTH.format(count_text(unused["of_no_length"], "param record"))
    elif fitted.uses_params and not len(workload.regions.seb):
        yield "no bracket has a param record, so the model predicts nothing"
    yield from about_malformed(unused["malformed"])
    if unused["unpaired"]:
        unpaired = count_text(unused["unpaired"], "param record")
        why = "marks do not pair up, or the params belong to other logs"
        yield f"{unpaired} not used, for want of a bracket: {why}; `rewritelog check` says which"


def prepare(
    logs: AnyTraces | str | Path,
    options: DurationOptions,
    *,
    recorded: bool = True,
    dilates: bool = False,
) -> Prepared:
    """Fit the model and load the logs; `dilates` is for a sweep of dilations.

    Traces are loaded for replays with communication as `recorded`, or for those on a network.
    Raise a `RewriteLogError` for any invalid input.
    """
    source, remarks = open_traces(logs), tuple[str, ...]()
    predictor, timings = fitted_predictor(options)
    task: RewriteTask | TraceTask
    if isinstance(source, Traces):
        from rewritelog.replaying.traces import load_traces  # noqa: PLC0415 - not of logs
        from rewritelog.rewriting.traces import trace_task  # noqa: PLC0415 - as above

        task = trace_task(source, predictor, options)
        workload, remarks = load_traces(_tasks(task, dilates=dilates), recorded=recorded)
    else:
        task = logs_task(source, predictor, options)
        tasks = _tasks(task, dilates=dilates)
        params = task.params or list_params(options.params or source.folder)
        workload = load_workload(tasks, params)
        about = _about_params(workload, predictor.fitted)
        remarks = tuple(about_none(params, source)) or tuple(about)
    first_s, last_s = (workload.seconds[place].of_sebs for place in (0, -1))
    if dilates and np.array_equal(first_s, last_s):
        remarks = (*remarks, "the dilation that is varied changes no duration")
    names = workload.names if workload.nodes is None else workload.nodes.names
    matched = matching(options.dilation_for, names)
    fitted, terms = predictor.fitted, source.terms
    unused = warnings_of_unused(options, fitted, terms, matched, workload.asked)
    warnings = [*fit_warnings(timings, fitted), *unused, *remarks]
    uncovered, lengths = Counter[str](), defaultdict[str, set[int]](set)
    for (event, parameters), count in workload.uncovered.items():
        uncovered[event] += count
        lengths[event].add(parameters)
    warnings += warnings_of_uncovered(uncovered, fitted, terms, lengths)
    return Prepared(task, timings, workload, tuple(warnings))


def _tasks(task: Task, *, dilates: bool) -> list[Task]:
    """Return the task, or for a sweep of dilations a copy for each of those that are loaded."""
    rules = [DilationRules(factor, task.dilations.by_name) for factor in _SWEPT]
    return [replace(task, dilations=rule) for rule in rules] if dilates else [task]


def load_recorded(logs: LogSet) -> Workload:
    """Load a log set with the recorded durations, and without its events."""
    options = DurationOptions()
    predictor, _ = fitted_predictor(options)
    return load_workload([logs_task(logs, predictor, options)], None)


def replay_workload(workload: Workload, case: Case) -> ReplayedRun:
    """Replay a workload once; raise `RewriteLogError` if a time overflows."""
    count, sent = len(workload.sebs), case.sent(workload)
    order, start_s = np.empty(count, dtype=np.int32), np.full(count, np.nan)
    predicted_s, queue, states = _run_sebs(workload, case, sent, order, start_s)
    end_s = start_s + states["duration_s"]
    if workload.nodes is not None:
        for column in (start_s, end_s, states["ready_s"], states["duration_s"]):
            np.divide(column, _PICOSECONDS, out=column)
    never = np.isnan(start_s)
    if never.any():
        order = order[: queue["ran"]].copy()
        states["ready_s"][never] = np.nan
        states["cause"][never], states["kind"][never] = -1, core.BY_ITSELF
    times = Times(states["ready_s"], start_s, end_s, order)
    return ReplayedRun(workload, case, sent, times, states, predicted_s, int(queue["stalls"]))


class ReplayedTime(NamedTuple):
    """The outcome of a replay for the whole run."""

    predicted_s: float
    never_ran: int
    """The number of SEBs that could not run; it is the same for all durations and networks."""
    stalls: int
    """How often ranks waited in collectives for others that did not come."""


def run_time(workload: Workload, case: Case, sent: Table | None = None) -> ReplayedTime:
    """Return the run time; it takes less memory than `replay_workload`.

    `sent` is what `Case.sent` returns, if that is known.
    """
    sent = case.sent(workload) if sent is None else sent
    predicted_s, queue, _ = _run_sebs(workload, case, sent, np.empty(0, np.int32), np.empty(0))
    never_ran = len(workload.sebs) - int(queue["ran"])
    return ReplayedTime(predicted_s, never_ran, int(queue["stalls"]))


def _run_sebs(
    workload: Workload, case: Case, sent: Table, order: Numbers, start_s: Floats
) -> tuple[float, Any, Table]:
    """Run all SEBs; return the end of the last one, the queue at the end, and each SEB's state.

    Times are in seconds, but for traces those of `start_s` and the states in `_PICOSECONDS`.
    """
    sebs, messages, structs = workload.sebs, workload.messages, core.structs
    count = len(sebs)
    states = np.empty(count, dtype=structs["seb_state"])
    durations, per_s = case.durations_s(workload), 1.0
    if workload.nodes is not None:
        per_s = _PICOSECONDS
        with np.errstate(over="ignore"):  # of a time that the replay refuses
            durations = np.rint(durations * per_s)
    states["ready_s"], states["duration_s"] = 0.0, durations
    states["pe"], states["pending"] = sebs.pe, sebs.inputs
    states["cause"], states["kind"] = -1, core.BY_ITSELF
    entry, pes = structs["queue_entry"], workload.pes
    heap, nodes, later = (np.empty(count + pes, dtype=entry) for _ in range(3))
    # of ready nodes of traces the one with the lowest id runs first; of ready SEBs the earliest
    traces = workload.nodes
    held = np.empty(0 if traces is None else count, dtype=entry)
    parts = np.empty(0, structs["collective_part"]) if traces is None else traces.parts
    parts_left = np.empty(0, np.int32) if traces is None else traces.ranks.astype(np.int32)
    ready = np.flatnonzero(sebs.inputs == 0)
    later["time"][: len(ready)], later["seb"][: len(ready)] = 0.0, ready
    queue = np.zeros(1, dtype=structs["replay_queue"])
    queue["in_later"], queue["current"], queue["free"] = len(ready), -1, -1
    queue["base_s"], queue["buckets_per_s"] = -1.0, 1.0
    heads = np.empty(min(count // _ENTRIES_PER_BUCKET + 1, _MOST_BUCKETS), dtype=np.int32)
    free_s, held_of_pe = np.zeros(pes), np.zeros(pes, dtype=np.int32)
    more = True
    while more:
        raise_if_stopped()
        more = core.replay(
            states,
            sebs.links,
            sebs.waiting,
            sent,
            messages.first_receiver,
            messages.receivers,
            workload.workers,
            case.network.node_latency,
            free_s,
            queue,
            heap,
            nodes,
            later,
            heads,
            held,
            sebs.first_of_pe,
            held_of_pe,
            parts,
            parts_left,
            order,
            start_s,
            _STEP,
        )
    predicted_s = float(queue["latest_s"][0]) / per_s
    if not math.isfinite(predicted_s * max(1, pes)):  # no sum of a report is larger
        raise RewriteLogError("the replayed time exceeds the range of a double")
    return predicted_s, queue[0], states
