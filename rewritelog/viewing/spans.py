"""The SEBs and brackets of a log set or of a replay, with their names, events and times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.params import ParamFolder, read_params
from rewritelog.formats.bgtrace.records import NameTable, brackets_of, records_of
from rewritelog.formats.traces import UnitEvents, joined_texts
from rewritelog.replaying.loading import Paired
from rewritelog.replaying.simulate import ReplayedRun
from rewritelog.text import printable


@dataclass(frozen=True)
class Spans:
    """SEBs and brackets with absolute times: those of a part of a block, or of a replay."""

    names: Sequence[str]
    events: Sequence[str]
    pe: Ints
    seb: Ints
    """The index of each SEB in its timeline."""
    start_s: Floats
    end_s: Floats
    name: Ints
    of: Ints
    """The row of the SEB of each bracket."""
    begins_s: Floats
    ends_s: Floats
    event: Ints
    """The event of each bracket; −1 if no param record says it."""

    @classmethod
    def of_block(cls, loaded: LoadedBlock, params: ParamFolder) -> Spans:
        """Return those of a part of a block."""
        block, names = records_of(loaded), NameTable()
        start_s, end_s = block.sebs["start_time"], block.sebs["end_time"]
        name, brackets = names.add(block.sebs), brackets_of(block)
        of, times, event = brackets.seb, brackets.times, np.full(len(brackets), -1)
        events: Sequence[str] = ()
        if params.pes:
            records, _ = read_params(params, loaded, strict=False)
            paired, events = Paired.of(block, records), records.events
            rest = ~np.isin(of, paired.seb)
            of = np.concatenate([paired.seb, of[rest]])
            times = np.concatenate([paired.times(block), times[rest]])
            event = np.concatenate([records.event[paired.record], event[rest]])
        return cls(
            [printable(name) for name in names.names],
            [printable(name) for name in events],
            block.pe,
            block.index,
            start_s,
            end_s,
            name,
            of,
            start_s[of] + times[:, 0],
            start_s[of] + times[:, 1],
            event,
        )

    @classmethod
    def of_replay(cls, outcome: ReplayedRun) -> Spans:
        """Return those of a replay, whose brackets are those with a param record."""
        workload, times = outcome.workload, outcome.times
        sebs, regions = workload.sebs, workload.regions
        after_s, lengths_s = outcome.regions_s
        begins_s = times.start_s[regions.seb] + after_s
        return cls(
            [printable(name) for name in workload.names],
            [printable(event) for event in workload.events],
            sebs.pe.astype(np.int64),
            np.arange(len(sebs)) - sebs.first_of_pe[sebs.pe],
            times.start_s,
            times.end_s,
            sebs.name.astype(np.int64),
            regions.seb.astype(np.int64),
            begins_s,
            begins_s + lengths_s,
            regions.event.astype(np.int64),
        )

    @classmethod
    def of_units(cls, units: Sequence[UnitEvents], lane: Ints) -> Spans:
        """Return the nodes of traces, of which `lane` has the thread or stream."""
        names, name = joined_texts((events.names, events.name) for events in units)
        none, empty = np.zeros(0, dtype=np.int64), np.zeros(0)
        start_s = np.concatenate([empty, *(events.start_s for events in units)])
        return cls(
            [printable(name) for name in names],
            (),
            lane,
            np.concatenate([none, *(np.arange(len(events)) for events in units)]),
            start_s,
            start_s + np.concatenate([empty, *(events.duration_s for events in units)]),
            name,
            none,
            empty,
            empty,
            none,
        )

    @property
    def finite(self) -> Flags:
        """Which SEBs have finite times."""
        return np.isfinite(self.start_s) & np.isfinite(self.end_s)

    def extent(self) -> Extent:
        """Return when they are, and how long names and events take."""
        closed = self.finite & (self.end_s >= self.start_s)
        inside = closed[self.of] & (self.event >= 0)
        with np.errstate(over="ignore"):
            seconds = np.where(closed, self.end_s - self.start_s, 0.0)
            inside_s = np.where(inside, self.ends_s - self.begins_s, 0.0)
        return Extent(
            float(self.start_s[self.finite].min(initial=math.inf)),
            float(self.end_s[closed].max(initial=-math.inf)),
            _sums(self.names, self.name, seconds),
            _sums(self.events, self.event[inside], inside_s[inside]),
        )


@dataclass(frozen=True)
class Extent:
    """First start, last end, and the seconds of each SEB name and of each event."""

    earliest_s: float
    latest_s: float
    name_s: Counter[str]
    event_s: Counter[str]

    def __add__(self, other: Extent) -> Extent:
        return Extent(
            min(self.earliest_s, other.earliest_s),
            max(self.latest_s, other.latest_s),
            self.name_s + other.name_s,
            self.event_s + other.event_s,
        )


NOTHING = Extent(math.inf, -math.inf, Counter(), Counter())


def _sums(names: Sequence[str], codes: Ints, seconds: Floats) -> Counter[str]:
    """Return the seconds of each name."""
    sums = Counter[str]()
    for name, total in zip(names, np.bincount(codes, seconds, len(names)).tolist(), strict=True):
        sums[name] += total
    return sums
