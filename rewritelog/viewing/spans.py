"""The SEBs and brackets of a log set or of a replay, with their names, events and times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.params import Paired, ParamFolder, read_params
from rewritelog.formats.bgtrace.records import distinct_names, records_of
from rewritelog.formats.traces import Events
from rewritelog.replaying.simulate import ReplayedRun
from rewritelog.text import printable


@dataclass(frozen=True)
class Spans:
    """SEBs and brackets with absolute times: those of a part of a block, or of a replay.

    The columns have rows for all SEBs, and then for all brackets.
    """

    labels: Sequence[str]
    """Names of SEBs, and then events, all made printable."""
    names: int
    """How many of the labels are names."""
    sebs: int
    """How many of the rows are SEBs."""
    pe: Ints
    seb: Ints
    """The index of the SEB in its timeline."""
    start_s: Floats
    end_s: Floats
    label: Ints
    """−1 for a bracket of which no param record says the event."""
    of: Ints
    """The row of the SEB."""

    @classmethod
    def _of(
        cls,
        names: Iterable[str | bytes],
        sebs: tuple[Ints, Ints, Floats, Floats, Ints],
        events: Iterable[str] = (),
        brackets: tuple[Ints, Floats, Floats, Ints] | None = None,
    ) -> Spans:
        """Join the columns pe, seb, start_s, end_s and name with of, start_s, end_s and event."""
        pe, seb, start_s, end_s, name = sebs
        labels = [printable(text) for text in names]
        count, of = len(labels), np.arange(len(pe))
        if brackets is not None:
            of = np.append(of, brackets[0])
            start_s, end_s = np.append(start_s, brackets[1]), np.append(end_s, brackets[2])
            name = np.append(name, np.where(brackets[3] < 0, -1, brackets[3] + count))
            labels += [printable(text) for text in events]
        return cls(labels, count, len(pe), pe[of], seb[of], start_s, end_s, name, of)

    @classmethod
    def of_block(cls, loaded: LoadedBlock, params: ParamFolder | None) -> Spans:
        """Return those of a part of a block; without params, no event is known."""
        block = records_of(loaded)
        names, name = distinct_names(block.sebs)
        start_s, end_s = block.sebs["start_time"], block.sebs["end_time"]
        sebs = block.pe, block.index, start_s, end_s, name
        brackets, events = block.brackets, tuple[str, ...]()
        of, times, event = brackets.seb, brackets.times, np.full(len(brackets), -1)
        if params is not None and params.pes:
            records, _ = read_params(params, loaded, strict=False)
            paired, events = Paired.of(block, records), records.events
            rest = ~np.isin(of, paired.seb)
            of = np.append(paired.seb, of[rest])
            times = np.concatenate([paired.times(block), times[rest]])
            event = np.append(records.event[paired.record], event[rest])
        with np.errstate(over="ignore", invalid="ignore"):
            begins_s, ends_s = start_s[of] + times.T
        return cls._of(names, sebs, events, (of, begins_s, ends_s, event))

    @classmethod
    def of_replay(cls, outcome: ReplayedRun) -> Spans:
        """Return those of a replay, whose brackets are those with a param record."""
        workload, times = outcome.workload, outcome.times
        sebs, regions = workload.sebs, workload.regions
        index, names = np.arange(len(sebs)) - sebs.first_of_pe[sebs.pe], sebs.name.astype(np.int64)
        after_s, lengths_s = outcome.regions_s
        begins_s = times.start_s[regions.seb] + after_s
        return cls._of(
            workload.names,
            (sebs.pe.astype(np.int64), index, times.start_s, times.end_s, names),
            workload.events,
            (
                regions.seb.astype(np.int64),
                begins_s,
                begins_s + lengths_s,
                regions.event.astype(np.int64),
            ),
        )

    @classmethod
    def of_events(cls, events: Events, lane: Ints) -> Spans:
        """Return the nodes of traces, of which `lane` has the thread or stream."""
        end_s = events["start_s"] + events["duration_s"]
        named = (lane, events["number"], events["start_s"], end_s, events["name"].number)
        return cls._of(events["name"].distinct, named)

    @cached_property
    def finite(self) -> Flags:
        """Which rows are those of SEBs with finite times, or of brackets in these."""
        return (np.isfinite(self.start_s) & np.isfinite(self.end_s))[self.of]

    @cached_property
    def closed(self) -> Flags:
        """Which rows are those of SEBs that also have an end, or of brackets in these."""
        return self.finite & (self.end_s >= self.start_s)[self.of]

    def extent(self) -> Extent:
        """Return when they are, and how long names and events take."""
        start_s, end_s = self.start_s[: self.sebs], self.end_s[: self.sebs]
        named = self.closed & (self.label >= 0)
        with np.errstate(over="ignore", invalid="ignore"):
            seconds = (self.end_s - self.start_s)[named]
        sums = np.bincount(self.label[named], seconds, len(self.labels)).tolist()
        name_s, event_s = Counter[str](), Counter[str]()
        for number, (label, total) in enumerate(zip(self.labels, sums, strict=True)):
            (name_s if number < self.names else event_s)[label] += total
        return Extent(
            float(start_s[self.finite[: self.sebs]].min(initial=math.inf)),
            float(end_s[self.closed[: self.sebs]].max(initial=-math.inf)),
            name_s,
            event_s,
        )


@dataclass(frozen=True)
class Extent:
    """First start, last end, and the seconds of each SEB name and of each event."""

    earliest_s: float = math.inf
    latest_s: float = -math.inf
    name_s: Counter[str] = field(default_factory=Counter)
    event_s: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Extent) -> Extent:
        return Extent(
            min(self.earliest_s, other.earliest_s),
            max(self.latest_s, other.latest_s),
            self.name_s + other.name_s,
            self.event_s + other.event_s,
        )
