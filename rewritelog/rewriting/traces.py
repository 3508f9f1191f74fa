"""The rewrite of traces: the durations of events of some types, unit by unit."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rewritelog.arrays import Bytes, Flags, Floats, Ints, Table
from rewritelog.core import core
from rewritelog.errors import UsageError
from rewritelog.formats.traces import Part, Traces, Unit, UnitWriter
from rewritelog.models.base import FittedModel, Model
from rewritelog.output import check_new_folder, copy_file, create_file, new_folder
from rewritelog.output.flushing import FlushingWork
from rewritelog.rewriting.counts import RecordState
from rewritelog.rewriting.dilations import DilationRules
from rewritelog.rewriting.fits import fit_model, predictor_for, read_model
from rewritelog.rewriting.intervals import expected_of
from rewritelog.rewriting.options import OutputOptions, RewriteOptions
from rewritelog.rewriting.predicting import Predicted, Predictor
from rewritelog.rewriting.provenance import Origin, write_provenance
from rewritelog.rewriting.running_sums import RunningSums
from rewritelog.rewriting.statistics import EventStatistics, total_of
from rewritelog.rewriting.trace_report import TraceReport
from rewritelog.rewriting.trace_statistics import TraceStatistics, TypeSums
from rewritelog.running.engines import engine_name, map_blocks, workers
from rewritelog.timings.event_params import EventParams, read_event_params


@dataclass(frozen=True)
class TraceTask:
    """What is needed to rewrite any unit; it can be pickled for another process."""

    traces: Traces
    predictor: Predictor
    params: EventParams | None
    """None if the model predicts nothing."""
    dilations: DilationRules
    types: tuple[int, ...]


def rewrite_traces(traces: Traces, out: Path | None, options: RewriteOptions) -> TraceReport:
    """Rewrite traces into a folder, or only report; see `rewrite`."""
    started = time.perf_counter()
    _check_options(traces, options)
    inputs = [unit.path for unit in traces.units]
    inputs += [path for path in (*options.files, options.event_params) if path is not None]
    if out is not None:  # before the fit, which may take long
        check_new_folder(out, inputs, force=options.force)
    model = read_model(options)
    read, fitted = fit_model(model, options)
    task = task_of(traces, model, fitted, options)
    statistics = TraceStatistics()
    with ExitStack() as stack:
        draft = None
        if out is not None:
            folder = new_folder(out, inputs, force=options.force, flush=not options.no_flush)
            draft = stack.enter_context(folder)
            sizes = {unit.path.name: unit.size_bytes for unit in traces.units}
            write_provenance(draft, Origin(traces.folder, sizes), options, model, read)
            for unit in traces.units:
                create_file(draft / unit.path.name, 0)
        work = UnitRewriter(task, draft, flush=not options.no_flush)
        for _, done in map_blocks(work, traces.units, "rewriting", traces.size_bytes):
            statistics.add(done)
        expected = expected_of(fitted, options.model_name, statistics.events)
    return TraceReport(
        logs=traces,
        out=out,
        options=options,
        model=model,
        fitted=fitted,
        timings=read,
        statistics=statistics,
        expected=expected,
        engine=engine_name(),
        workers=workers(),
        seconds=time.perf_counter() - started,
    )


def task_of(
    traces: Traces, model: Model[Any], fitted: FittedModel, options: OutputOptions
) -> TraceTask:
    """Return the task for the options and a fitted model."""
    return TraceTask(
        traces,
        predictor_for(model, fitted, options),
        read_event_params(options.event_params) if model.uses_params else None,
        DilationRules(options.general_dilation, options.dilation_for),
        chosen_types(traces, options.chosen_types),
    )


def prepared_task(traces: Traces, options: OutputOptions) -> tuple[TraceTask, tuple[str, ...]]:
    """Return the task for the options, and the warnings of the model's fit."""
    _check_options(traces, options)
    model = read_model(options)
    read, fitted = fit_model(model, options)
    said = (*(() if read is None else read.warnings()), *fitted.warnings())
    return task_of(traces, model, fitted, options), said


def new_durations(task: TraceTask, unit: Unit) -> Floats:
    """Return the new durations of a unit's events in seconds, before they are rounded."""
    parts = [_new_s(task, part, TraceStatistics())[0] for part in task.traces.read(unit)]
    return np.concatenate([np.zeros(0), *parts])


def _check_options(traces: Traces, options: OutputOptions) -> None:
    """Raise `UsageError` for an option that such traces have no use for."""
    useless = {
        "--params": options.params is not None,
        "--copy-params": options.copy_params,
    }
    if isinstance(options, RewriteOptions):
        useless["--recv keep"] = options.recv != "shift"
        useless["--spread residual"] = options.spread != "none"
    for name, is_given in useless.items():
        if is_given:
            raise UsageError(f"{name} is for bgTrace logs: {traces.path} has {traces.title}")


def chosen_types(traces: Traces, types: tuple[str, ...]) -> tuple[int, ...]:
    """Return the indices of types of events; raise `UsageError` for an unknown one."""
    for name in types:
        if name not in traces.types:
            known = ", ".join(traces.types)
            raise UsageError(f"there is no type {name!r}: {traces.title} have {known}")
    return tuple(traces.types.index(name) for name in types or (traces.computing,))


class UnitRewriter(FlushingWork[Unit, TraceStatistics]):
    """Rewrites units, each into a file of its own."""

    def __init__(self, task: TraceTask, draft: Path | None, *, flush: bool) -> None:
        """Begin with a folder that has the files to write into; None to write nothing."""
        super().__init__(draft, flush=flush)
        self._task, self._draft = task, draft

    def __call__(self, unit: Unit, /) -> TraceStatistics:
        """Rewrite a unit; return its statistics."""
        statistics, running, written = TraceStatistics(size_bytes=unit.size_bytes), RunningSums(), 0

        def sink(data: Bytes) -> None:
            nonlocal written
            self.write(unit.path.name, data, written)
            written += len(data)

        writer = self._task.traces.writer(unit, sink)
        rest = _Rest()
        for part in self._task.traces.read(unit):
            rewrite_part(self._task, part, writer, statistics, running, rest)
        writer.close()
        _finish(statistics, running, unit, rest)
        if self._draft is not None and unit.is_packed and not statistics.changed:
            (self._draft / unit.path.name).unlink()  # packed again, equal bytes may differ
            copy_file(unit.path, self._draft / unit.path.name)
        return statistics


@dataclass
class _Rest:
    """The sums that end with a unit."""

    exact_s: float = 0.0
    written_s: float = 0.0


def rewrite_part(
    task: TraceTask,
    part: Part,
    writer: UnitWriter,
    statistics: TraceStatistics,
    running: RunningSums,
    rest: _Rest,
) -> None:
    """Write a part with new durations, and count what became of its events."""
    kind, old_s = part.type, part.duration_s
    new_s, predicted = _new_s(task, part, statistics)
    changes: Flags = new_s != old_s
    written_s = writer.write(part, new_s, changes)
    _count(task, statistics, kind, old_s, written_s)
    computes = (kind == task.traces.types.index(task.traces.computing)) & ~part.on_host
    statistics.on_device_s += float(written_s[computes].sum())
    statistics.changed += int(np.count_nonzero(written_s != old_s))
    statistics.vanished += int(np.count_nonzero((written_s == 0) & (new_s > 0)))
    rounding = np.abs(written_s - new_s)[changes]
    statistics.rounded_s = max(statistics.rounded_s, float(rounding.max(initial=0.0)))
    rest.exact_s += float(new_s[changes].sum())
    rest.written_s += float(written_s[changes].sum())
    if predicted is not None:
        _count_records(statistics, running, predicted, old_s, written_s)


def _new_s(
    task: TraceTask, part: Part, statistics: TraceStatistics
) -> tuple[Floats, Predicted | None]:
    """Return the new durations of a part, and what a model predicts of it."""
    rows = np.flatnonzero(np.isin(part.type, task.types))
    statistics.chosen += len(rows)
    new_s = part.duration_s.copy()
    new_s[rows] *= _factors(task.dilations, part, rows, statistics)
    predicted = _predicted(task, part, rows)
    if predicted is not None:
        known = ~np.isnan(predicted.given_s)
        new_s[predicted.params.seb[known]] = predicted.given_s[known]
    return new_s, predicted


def _predicted(task: TraceTask, part: Part, rows: Ints) -> Predicted | None:
    if task.params is None:
        return None
    records = task.params.records(part, rows)
    return task.predictor.predict(records, np.array([part.unit.rank]))


def _factors(rules: DilationRules, part: Part, rows: Ints, statistics: TraceStatistics) -> Floats:
    """Return the dilation of each row."""
    if not rules.by_name:
        return np.full(len(rows), float(rules.factor))
    names, number = part.names
    statistics.matched_patterns |= rules.matching(names)
    return np.array([rules.factor_for(name) for name in names])[number[rows]]


def _count(
    task: TraceTask, statistics: TraceStatistics, kind: Ints, old_s: Floats, new_s: Floats
) -> None:
    for number in np.unique(kind).tolist():
        own = kind == number
        sums = statistics.types.setdefault(task.traces.types[number], TypeSums())
        sums.events += int(np.count_nonzero(own))
        sums.old_s = sums.old_s.plus([float(old_s[own].sum())])
        sums.new_s = sums.new_s.plus([float(new_s[own].sum())])


def _count_records(
    statistics: TraceStatistics,
    running: RunningSums,
    predicted: Predicted,
    old_s: Floats,
    new_s: Floats,
) -> None:
    params = predicted.params
    records: Table = np.zeros(len(params), dtype=core.structs["param_record"])
    known = ~np.isnan(predicted.given_s)
    records["state"] = np.where(known, RecordState.PREDICTED, RecordState.NOT_COVERED)
    records["old_s"], records["new_s"] = old_s[params.seb], new_s[params.seb]
    for name, event in predicted.by_event(records).items():
        statistics.events.setdefault(name, EventStatistics()).add(event)
    values = predicted.values(records)
    running.events(predicted.kinds, predicted.kind, params.piece, values, done=False)
    exact = int(np.count_nonzero(predicted.flags[0] & known))
    statistics.by_exact += exact
    statistics.by_model += int(np.count_nonzero(known)) - exact


def _finish(statistics: TraceStatistics, running: RunningSums, unit: Unit, rest: _Rest) -> None:
    """Add the sums of a whole unit."""
    nothing = np.zeros(0, dtype=np.int64)
    none = (np.zeros(0),) * 8
    sums = running.events((), nothing, nothing, none, done=True)
    for (event, count), added in sums.items():
        statistics.events[event].sums[count] = added
    statistics.off_s = abs(rest.exact_s - rest.written_s)
    old_s, new_s = (
        float(total_of(getattr(sums, which) for sums in statistics.types.values()))
        for which in ("old_s", "new_s")
    )
    statistics.busy = [(unit.rank, old_s, new_s)]
