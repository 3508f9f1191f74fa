"""The rewrite of traces, unit by unit: the nodes of some types get new durations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Bytes, Flags, Floats, Ints, Table
from rewritelog.commands.durations import DilationRules, OutputOptions
from rewritelog.core import core
from rewritelog.errors import UsageError
from rewritelog.formats import NO_RECORDS
from rewritelog.formats.traces import Part, Traces, Unit, UnitEvents, events_of
from rewritelog.output.files import FlushingWork, copy_file
from rewritelog.rewriting.block import no_sums
from rewritelog.rewriting.predicting import Predicted, Predictor, dilations_of
from rewritelog.rewriting.statistics import (
    BlockCount,
    BlockStatistics,
    DurationSum,
)
from rewritelog.timings.traces import EventParams, read_event_params


@dataclass(frozen=True)
class TraceTask:
    """What is needed to rewrite any unit; it can be pickled for another process."""

    logs: Traces
    predictor: Predictor
    params: EventParams | None
    """None if the model predicts nothing."""
    dilations: DilationRules
    types: tuple[int, ...]

    @property
    def blocks(self) -> Iterable[Unit]:
        """What is rewritten at a time."""
        return self.logs.units

    @property
    def size_bytes(self) -> int:
        """The size of all that is read."""
        return self.logs.size_bytes

    def rewrite(self, unit: Unit, files: FlushingWork[Unit, BlockStatistics]) -> BlockStatistics:
        """Rewrite a unit, and write it to a file of its own; return its statistics."""
        statistics, sums = BlockStatistics(size_bytes=unit.size_bytes), no_sums(1)
        written = 0

        def sink(data: Bytes) -> None:
            nonlocal written
            files.write(unit.path.name, data, written)
            written += len(data)

        writer = self.logs.writer(unit, sink)
        changed = False
        for part in self.logs.read(unit):
            old_s, new = part.duration_s, self.durations(part)
            new_s = writer.write(part, new.seconds, new.seconds != old_s)
            statistics.add(_statistics(self.logs, part, new, new_s, sums[0]))
            changed |= not np.array_equal(old_s, new_s)
        writer.close()
        statistics.rounding = writer.rounding
        statistics.take_durations(np.array([unit.rank]), sums)
        if files.folder is not None and unit.is_packed and not changed:
            (files.folder / unit.path.name).unlink()  # packed again, equal bytes may differ
            copy_file(unit.path, files.folder / unit.path.name)
        return statistics

    def durations(self, part: Part) -> NewDurations:
        """Return the new durations of a part, before they are rounded."""
        rows = np.flatnonzero(np.isin(part.type, self.types))
        records = NO_RECORDS if self.params is None else self.params.records(part, rows)
        predicted = self.predictor.predict(records, np.array([part.unit.rank]))
        factors, patterns = dilations_of(self.dilations, part)
        new_s = part.duration_s.copy()
        new_s[rows] *= factors[rows]
        known = ~np.isnan(predicted.given_s)
        new_s[records.seb[known]] = predicted.given_s[known]
        return NewDurations(rows, new_s, predicted, patterns)

    def load_unit(self, unit: Unit) -> tuple[UnitEvents, Floats]:
        """Read a unit; return its events, and their new durations before they are rounded."""
        new_s = [np.zeros(0)]

        def parts() -> Iterator[Part]:
            for part in self.logs.read(unit):
                new_s.append(self.durations(part).seconds)
                yield part

        events = events_of(unit, parts())
        return events, np.concatenate(new_s)


@dataclass(frozen=True)
class NewDurations:
    """The new durations of a part, and what they come from."""

    rows: Ints
    """The nodes of the types that are rewritten."""
    seconds: Floats
    predicted: Predicted
    matched_patterns: frozenset[str]


def chosen_types(traces: Traces, types: tuple[str, ...]) -> tuple[int, ...]:
    """Return the indices of types of events; raise `UsageError` for an unknown one."""
    for name in types:
        if name not in traces.types:
            known = ", ".join(traces.types)
            raise UsageError(f"there is no type {name!r}: {traces.title} have {known}")
    return tuple(traces.types.index(name) for name in types or (traces.computing,))


def trace_task(traces: Traces, predictor: Predictor, options: OutputOptions) -> TraceTask:
    """Return the task for the options and a fitted model."""
    params = read_event_params(options.event_params) if predictor.predicts else None
    types = chosen_types(traces, options.types or ())
    return TraceTask(traces, predictor, params, options.dilations, types)


def _statistics(
    traces: Traces, part: Part, new: NewDurations, new_s: Floats, sums: Floats
) -> BlockStatistics:
    """Return the counts of a part whose nodes have got new durations, and add these to sums."""
    old_s, predicted = part.duration_s, new.predicted
    params, known = predicted.params, ~np.isnan(predicted.given_s)
    records: Table = np.zeros(len(params), dtype=core.structs["param_record"])
    records["state"] = np.where(known, core.RECORD_PREDICTED, core.RECORD_NOT_COVERED)
    records["old_s"], records["new_s"] = old_s[params.seb], new_s[params.seb]
    has_record: Flags = np.zeros(len(part), dtype=np.bool_)
    has_record[params.seb] = True
    without: Flags = np.zeros(len(part), dtype=np.bool_)
    without[new.rows] = ~has_record[new.rows]
    for rows, old, after in (
        (np.ones_like(has_record), DurationSum.OLD, DurationSum.NEW),
        (has_record, DurationSum.BRACKETED_OLD, DurationSum.BRACKETED_NEW),
        (without, DurationSum.WITHOUT_OLD, DurationSum.WITHOUT_NEW),
    ):
        group = np.zeros(int(np.count_nonzero(rows)), dtype=np.int64)
        core.add_by_group(group, old_s[rows], sums[old : old + 1])
        core.add_by_group(group, new_s[rows], sums[after : after + 1])
    on_device = (part.type == traces.types.index(traces.computing)) & ~part.on_host
    return BlockStatistics(
        counts=_counts(predicted, known, old_s, new_s),
        events=predicted.by_event(records),
        matched_patterns=new.matched_patterns,
        on_device_s=float(new_s[on_device].sum()),
    )


def _counts(predicted: Predicted, known: Flags, old_s: Floats, new_s: Floats) -> Ints:
    rest: Flags = np.ones(len(old_s), dtype=np.bool_)
    rest[predicted.params.seb[known]] = False
    rest_old_s, rest_new_s = old_s[rest], new_s[rest]
    counts = np.zeros(len(BlockCount), dtype=np.int64)
    counts[BlockCount.SEBS] = len(old_s)
    counts[BlockCount.BRACKETS] = len(known)
    counts[BlockCount.BY_EXACT] = np.count_nonzero(predicted.flags["exact"] & known)
    counts[BlockCount.BY_MODEL] = np.count_nonzero(known) - counts[BlockCount.BY_EXACT]
    counts[BlockCount.BY_DILATION] = np.count_nonzero(rest_old_s != rest_new_s)
    counts[BlockCount.ZERO_LENGTH] = np.count_nonzero((rest_old_s == 0) & (rest_new_s == 0))
    counts[BlockCount.UNCHANGED] = np.count_nonzero((rest_old_s == rest_new_s) & (rest_old_s > 0))
    return counts
