"""Replays of what is loaded once: all times of a single one, or the run times of many."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rewritelog.arrays import Floats, Table, spans
from rewritelog.commands.durations import NO_DILATION, DilationRules, DurationOptions
from rewritelog.core import core
from rewritelog.errors import RewriteLogError
from rewritelog.formats import open_traces
from rewritelog.formats.traces import AnyTraces, Traces
from rewritelog.replaying.loading import load_workload
from rewritelog.replaying.network import Network
from rewritelog.replaying.workload import Numbers, Workload, grouped
from rewritelog.rewriting.predicting import (
    Predictor,
    fit_warnings,
    fitted_predictor,
    warnings_of_uncovered,
    warnings_of_unused,
)
from rewritelog.stopping import raise_if_stopped
from rewritelog.text import count_text, matching

_STEP = 1 << 18
"""The most SEBs that are replayed before a signal is handled."""

_ENTRIES_PER_BUCKET, _MOST_BUCKETS = 4, 1 << 18


@dataclass(frozen=True)
class Case:
    """The durations and the network of one replay."""

    network: Network
    dilations: DilationRules = NO_DILATION
    free: str | None = None
    """The name of SEBs that take no time; None for no such SEBs."""
    free_event: str | None = None
    """The event whose middle regions take no time; None for no such event."""

    def seconds(
        self, workload: Workload, scaled_s: Floats, fixed_s: Floats, name: Numbers
    ) -> Floats:
        """Return the seconds of parts of SEBs, given their scaled and fixed parts and names."""
        free = np.array([each == self.free for each in workload.names], dtype=np.bool_)
        factors: Floats = np.array([self.dilations.factor_for(each) for each in workload.names])
        factors[free] = 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # of what never runs
            seconds = scaled_s * factors[name]
            if len(fixed_s):
                seconds += fixed_s * np.where(free, 0.0, 1.0)[name]
        return seconds

    def durations_s(self, workload: Workload) -> Floats:
        """Return the duration of each SEB."""
        sebs, nodes = workload.sebs, workload.nodes
        seconds = self.seconds(workload, sebs.scaled_s, sebs.fixed_s, sebs.name)
        if nodes is not None and not self.network.recorded:
            seb, steps, step_bytes, _ = nodes.transfers
            delays = delays_s(self.network, step_bytes)
            takes_s = np.multiply(steps, delays, out=np.zeros_like(delays), where=steps > 0)
            seconds[seb] = self.seconds(workload, takes_s, np.empty(0), sebs.name[seb])
        if self.free_event is not None:
            seb, _, lengths_s = self._free_regions(workload)
            np.subtract.at(seconds, seb, lengths_s)
        return np.maximum(seconds, 0.0, out=seconds)

    def regions_s(self, workload: Workload) -> tuple[Floats, Floats]:
        """Return when each middle region begins in its SEB, and how long it is."""
        regions, name = workload.regions, workload.sebs.name[workload.regions.seb]
        begins = regions.begin_scaled_s, regions.begin_fixed_s
        lengths = regions.scaled_s, regions.fixed_s
        return self.seconds(workload, *begins, name), self.seconds(workload, *lengths, name)

    def _free_regions(self, workload: Workload) -> tuple[Numbers, Floats, Floats]:
        """Return the SEBs of the regions that take no time, with their begins and lengths."""
        regions = workload.regions
        chosen = regions.event == workload.events.index(self.free_event or "")
        begins_s, lengths_s = self.regions_s(workload)
        return regions.seb[chosen], begins_s[chosen], lengths_s[chosen]

    def _sent_after_s(self, workload: Workload) -> Floats:
        """Return when messages leave; within or after a region that takes no time it is sooner."""
        messages, first = workload.messages, workload.sebs.first_message
        sender = np.repeat(workload.sebs.name, np.diff(first))
        after_s = self.seconds(workload, messages.scaled_s, messages.fixed_s, sender)
        if self.free_event is not None:
            seb, begins_s, lengths_s = self._free_regions(workload)
            counts = first[seb + 1] - first[seb]
            message, region = spans(first[seb], counts), np.repeat(np.arange(len(seb)), counts)
            inside_s = np.clip(after_s[message] - begins_s[region], 0.0, lengths_s[region])
            np.subtract.at(after_s, message, inside_s)
        return np.maximum(after_s, 0.0, out=after_s)

    def sent(self, workload: Workload) -> Table:
        """Return when each message leaves after the start of its SEB, and its delay."""
        messages = workload.messages
        sent = np.empty(len(messages), dtype=core.structs["sent_message"])
        sent["after_s"] = self._sent_after_s(workload)
        if self.network.recorded:
            sent["delay_s"] = np.where(messages.transit_s > 0, messages.transit_s, 0.0)
        else:
            sent["delay_s"] = delays_s(self.network, np.maximum(messages.size_bytes, 0.0))
        return sent


def delays_s(network: Network, size: Floats) -> Floats:
    """Return the delay of messages of some sizes in bytes between two nodes."""
    bandwidth = network.bandwidth_bytes_per_s
    with np.errstate(over="ignore"):
        delays = (network.latency_s or 0.0) + size / (math.inf if bandwidth is None else bandwidth)
        if network.packet_bytes:
            packets = np.maximum(np.ceil(size / network.packet_bytes), 1.0)
            delays += network.cost_per_packet_s * packets
    return delays


class Times(NamedTuple):
    """The times at which each SEB was ready, started and ended; NaN for one that never ran."""

    ready_s: Floats
    start_s: Floats
    end_s: Floats
    order: Numbers
    """The SEBs that have run, in the order in which they became ready."""


@dataclass(frozen=True)
class ReplayedRun:
    """The results of one replay, with the times of all SEBs."""

    workload: Workload
    case: Case
    sent: Table
    """The offset of each message in its SEB, and its delay between nodes."""
    times: Times
    runs: Table
    """The state of each SEB at the end: its cause is the SEB of its last input, −1 for none."""
    predicted_s: float

    @property
    def run(self) -> int:
        """The number of SEBs that have run."""
        return len(self.times.order)

    @property
    def never_ran(self) -> int:
        """The number of SEBs that have not run; it is the same for all durations and networks."""
        return len(self.workload.sebs) - self.run

    @property
    def durations_s(self) -> Floats:
        """The duration of each SEB, also of one that never ran."""
        return self.case.durations_s(self.workload)

    @property
    def busy_s(self) -> Floats:
        """The duration of each SEB; 0 for one that never ran."""
        return np.where(np.isnan(self.times.start_s), 0.0, self.durations_s)

    @cached_property
    def lines(self) -> tuple[Numbers, Numbers]:
        """The SEBs that each PE ran, in their order: the first one of each PE, and all of them."""
        pe = self.workload.sebs.pe[self.times.order]
        return grouped(pe, self.times.order, self.workload.pes)

    @cached_property
    def regions_s(self) -> tuple[Floats, Floats]:
        """When each middle region begins in its SEB, and how long it is; 0 if that never ran."""
        begins_s, lengths_s = self.case.regions_s(self.workload)
        lengths_s[np.isnan(self.times.start_s[self.workload.regions.seb])] = 0.0
        return begins_s, lengths_s

    def sent_s(self, seb: Numbers, message: Numbers) -> Floats:
        """Return when SEBs send messages."""
        times = self.times
        sent_s = times.start_s[seb] + self.sent["after_s"][message]
        return np.asarray(np.minimum(sent_s, times.end_s[seb]))


@dataclass(frozen=True)
class Prepared:
    """Logs or traces that have been loaded with predicted durations."""

    logs: AnyTraces
    dilations: DilationRules
    """How durations are dilated in a replay; those of traces are when they are loaded."""
    predictor: Predictor
    workload: Workload
    warnings: tuple[str, ...]
    """Warnings of the model's fit, and of options that had no effect."""

    def warnings_of(self, never_ran: int, networks: Iterable[Network]) -> tuple[str, ...]:
        """Return the warnings of replays over some networks that could not run so many SEBs."""
        of_links = self.workload.warnings(recorded=any(network.recorded for network in networks))
        never = f"{count_text(never_ran, 'SEB')} never ran: the times do not include them"
        return (*self.warnings, *([never] if never_ran else []), *of_links)

    def case(self, network: Network, dilation: float | None = None) -> Case:
        """Return the case to replay, with the dilation of the options or another one."""
        rules = self.dilations
        return Case(network, rules if dilation is None else replace(rules, factor=dilation))


def prepare(logs: AnyTraces | str | Path, options: DurationOptions) -> Prepared:
    """Fit the model and load the logs; raise a `RewriteLogError` for any invalid input."""
    source = open_traces(logs)
    predictor, read = fitted_predictor(options)
    remarks, dilations = tuple[str, ...](), options.dilations
    if isinstance(source, Traces):
        from rewritelog.replaying.traces import load_traces  # noqa: PLC0415 - not of logs

        workload, remarks = load_traces(source, predictor, options)
        dilations = NO_DILATION
    else:
        workload = load_workload(source, predictor, options)
        if predictor.fitted.uses_params and not len(workload.regions.seb):
            remarks = ("no bracket has a param record, so the model predicts nothing",)
    matched = matching(options.dilation_for, workload.names)
    unused = warnings_of_unused(options, predictor.fitted, source.terms, matched)
    warnings = [*fit_warnings(read, predictor.fitted), *unused, *remarks]
    warnings += warnings_of_uncovered(workload.uncovered, predictor.fitted, source.terms)
    return Prepared(source, dilations, predictor, workload, tuple(warnings))


def simulate(workload: Workload, case: Case) -> ReplayedRun:
    """Replay a workload once; raise `RewriteLogError` if a time overflows."""
    count, sent = len(workload.sebs), case.sent(workload)
    order, start_s = np.empty(count, dtype=np.int32), np.full(count, np.nan)
    predicted_s, runs = _replay(workload, case, sent, order, start_s)
    never = runs["missing"] > 0
    if never.any():
        order = order[: count - int(np.count_nonzero(never))].copy()
        runs["ready_s"][never] = runs["end_s"][never] = np.nan
        runs["cause"][never], runs["kind"][never] = -1, core.BY_ITSELF
    times = Times(runs["ready_s"], start_s, runs["end_s"], order)
    return ReplayedRun(workload, case, sent, times, runs, predicted_s)


class ReplayedTime(NamedTuple):
    """What a replay says of the whole run."""

    predicted_s: float
    never_ran: int
    """The number of SEBs that could not run; it is the same for all durations and networks."""


def run_time(workload: Workload, case: Case, sent: Table | None = None) -> ReplayedTime:
    """Return the run time; it takes less memory than `simulate`.

    `sent` is what `Case.sent` returns, if that is known.
    """
    sent = case.sent(workload) if sent is None else sent
    predicted_s, runs = _replay(workload, case, sent, np.empty(0, dtype=np.int32), np.empty(0))
    return ReplayedTime(predicted_s, int(np.count_nonzero(runs["missing"] > 0)))


def _replay(
    workload: Workload, case: Case, sent: Table, order: Numbers, start_s: Floats
) -> tuple[float, Table]:
    """Run all SEBs; return the end of the last one, and the state of each."""
    sebs, messages, structs = workload.sebs, workload.messages, core.structs
    count = len(sebs)
    runs = np.empty(count, dtype=structs["seb_run"])
    runs["ready_s"], runs["end_s"] = 0.0, case.durations_s(workload)
    runs["pe"], runs["missing"] = sebs.pe, sebs.inputs
    runs["cause"], runs["kind"] = -1, core.BY_ITSELF
    heap, nodes, later = (np.empty(count, dtype=structs["queue_entry"]) for _ in range(3))
    ready = np.flatnonzero(sebs.inputs == 0)
    later["time"][: len(ready)], later["seb"][: len(ready)] = 0.0, ready
    queue = np.zeros(1, dtype=structs["replay_queue"])
    queue["in_later"], queue["current"], queue["free"] = len(ready), -1, -1
    queue["base_s"], queue["buckets_per_s"] = -1.0, 1.0
    heads = np.empty(min(count // _ENTRIES_PER_BUCKET + 1, _MOST_BUCKETS), dtype=np.int32)
    free_s = np.zeros(workload.pes)
    more = True
    while more:
        raise_if_stopped()
        more = core.replay(
            runs,
            sebs.links,
            sebs.waiting,
            sent,
            messages.first_receiver,
            messages.receivers,
            workload.workers,
            case.network.node_latency_s,
            free_s,
            queue,
            heap,
            nodes,
            later,
            heads,
            order,
            start_s,
            _STEP,
        )
    predicted_s = float(queue["latest_s"][0])
    if not math.isfinite(predicted_s * max(1, workload.pes)):  # more than any sum of a report
        raise RewriteLogError("the replayed time exceeds the range of a double")
    return predicted_s, runs
