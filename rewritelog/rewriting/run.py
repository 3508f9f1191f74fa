"""The complete job of a rewrite: open, fit, plan, rewrite block by block, and report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial, singledispatch
from pathlib import Path
from typing import Any, overload

from rewritelog.errors import DamagedLogError
from rewritelog.formats.bgtrace.blocks import plan_in_turn
from rewritelog.formats.bgtrace.files import InputFile
from rewritelog.formats.bgtrace.logset import LogSet, open_logs
from rewritelog.formats.bgtrace.params import ParamFolder, list_params
from rewritelog.formats.traces import Traces
from rewritelog.models.base import Model
from rewritelog.output import check_new_folder, copy_file, create_file, new_folder
from rewritelog.output.companions import copy_companions, copy_own_files
from rewritelog.progress import report_progress
from rewritelog.rewriting.block import BlockRewriter, RewriteTask
from rewritelog.rewriting.dilations import DilationRules
from rewritelog.rewriting.fits import fit_model, predictor_for, read_model
from rewritelog.rewriting.intervals import expected_of
from rewritelog.rewriting.options import (
    BLOCK_BYTES,
    DurationOptions,
    OutputOptions,
    RewriteOptions,
)
from rewritelog.rewriting.predicting import Predictor
from rewritelog.rewriting.provenance import Origin, write_provenance
from rewritelog.rewriting.report import RewriteReport
from rewritelog.rewriting.statistics import BlockStatistics
from rewritelog.rewriting.trace_report import TraceReport
from rewritelog.rewriting.traces import rewrite_traces
from rewritelog.running.engines import engine_name, lead, map_blocks, workers


@overload
def rewrite(
    logs: LogSet | str | Path, out: str | Path | None, options: RewriteOptions | None = None
) -> RewriteReport: ...


@overload
def rewrite(
    logs: Traces, out: str | Path | None, options: RewriteOptions | None = None
) -> TraceReport: ...


def rewrite(
    logs: LogSet | Traces | str | Path,
    out: str | Path | None,
    options: RewriteOptions | None = None,
) -> RewriteReport | TraceReport:
    """Rewrite a log set or traces into the folder `out`, or only report if `out` is None.

    Raise a `RewriteLogError` for any invalid input; `out` is then not changed.
    """
    options = options or RewriteOptions()
    return lead("threads", options.jobs, partial(_rewrite, logs, out, options))


def _rewrite(
    logs: LogSet | Traces | str | Path, out: str | Path | None, options: RewriteOptions
) -> RewriteReport | TraceReport:
    report_progress("reading the heads of the logs")
    source = logs if isinstance(logs, Traces) else open_logs(logs)
    return rewrite_opened(source, None if out is None else Path(out), options)


@singledispatch
def rewrite_opened(
    source: LogSet | Traces, out: Path | None, options: RewriteOptions
) -> RewriteReport | TraceReport:
    """Rewrite what has been opened, by the function for what it is."""
    raise NotImplementedError


rewrite_opened.register(Traces, rewrite_traces)


@rewrite_opened.register
def _rewrite_logs(source: LogSet, out: Path | None, options: RewriteOptions) -> RewriteReport:
    started = time.perf_counter()
    options.check_for_logs()
    if out is not None:  # before the fit, which may take long
        check_new_folder(out, _inputs(source, options), force=options.force)
    model = read_model(options)
    read, fitted = fit_model(model, options)
    predictor = predictor_for(model, fitted, options)
    params = _params(source, model, options)
    with ExitStack() as stack:
        draft = None
        if out is not None:
            draft = stack.enter_context(new_output(source, out, options))
            sizes = {file.path.name: file.size_bytes for file in source.files}
            origin = Origin(source.folder, sizes, source.summary_path)
            write_provenance(draft, origin, options, model, read)
        task = _task(source, predictor, params, options)
        work = BlockRewriter(task, draft, flush=not options.no_flush)
        statistics = _add_up(work, source, options.block_bytes)
        expected = expected_of(fitted, options.model_name, statistics.events)
    return RewriteReport(
        logs=source,
        out=out,
        options=options,
        model=model,
        fitted=fitted,
        timings=read,
        params=params,
        statistics=statistics,
        expected=expected,
        engine=engine_name(),
        workers=workers(),
        seconds=time.perf_counter() - started,
    )


def rewrite_task(
    logs: LogSet,
    predictor: Predictor,
    params: ParamFolder | None,
    options: DurationOptions,
    *,
    keep_recv: bool = False,
    block_bytes: int = BLOCK_BYTES,
) -> RewriteTask:
    """Return the task for the options; with `keep_recv` messages keep their receive times."""
    return RewriteTask(
        logs,
        predictor,
        params,
        DilationRules(options.general_dilation, options.dilation_for),
        keep_recv,
        options.strict,
        block_bytes,
    )


def task_without_output(report: RewriteReport) -> RewriteTask:
    """Return the task of a report, to repeat it without writing."""
    return _task(report.logs, predictor_of(report), report.params, report.options)


def _task(
    logs: LogSet, predictor: Predictor, params: ParamFolder | None, options: RewriteOptions
) -> RewriteTask:
    keep_recv, block_bytes = options.recv == "keep", options.block_bytes
    return rewrite_task(
        logs, predictor, params, options, keep_recv=keep_recv, block_bytes=block_bytes
    )


def predictor_of(report: RewriteReport) -> Predictor:
    """Return the predictor of a report."""
    return predictor_for(report.model, report.fitted, report.options)


def _params(logs: LogSet, model: Model[Any], options: DurationOptions) -> ParamFolder | None:
    """List the param files, for a model that uses them."""
    if not model.uses_params:
        return None
    return list_params(options.params or logs.folder)


def _inputs(logs: LogSet, options: OutputOptions) -> list[Path]:
    """Return the folders and files that a rewrite reads, which OUT may not replace."""
    return [path for path in (logs.folder, *options.files, options.params) if path is not None]


@contextmanager
def new_output(logs: LogSet, out: Path, options: OutputOptions) -> Iterator[Path]:
    """Yield a draft of the folder `out` with everything but the timelines; see `new_folder`."""
    inputs = _inputs(logs, options)
    with new_folder(out, inputs, force=options.force, flush=not options.no_flush) as draft:
        _copy_all_but_timelines(logs, draft, options)
        yield draft


def _copy_all_but_timelines(logs: LogSet, draft: Path, options: OutputOptions) -> None:
    """Write everything but the timelines: summary, heads of timeline files, companions."""
    copy_file(logs.summary_path, draft / logs.summary_path.name)
    for file in logs.files:
        with InputFile(file.path) as source:
            head = source.read(0, file.head_bytes).tobytes()
        create_file(draft / file.path.name, file.size_bytes, head)
    copy_companions(logs, draft)
    if options.copy_params:
        params = options.params or logs.folder
        pes = sorted(list_params(params).pes)
        copy_own_files(logs, (params / f"param.{pe}" for pe in pes), draft)


def _add_up(work: BlockRewriter, logs: LogSet, block_bytes: int) -> BlockStatistics:
    """Rewrite all blocks and add up their statistics."""
    statistics = BlockStatistics()
    blocks = plan_in_turn(logs.files, block_bytes)
    try:
        for _, done in map_blocks(work, blocks, "rewriting", logs.timelines_bytes):
            statistics.add(done)
    except DamagedLogError as error:
        from rewritelog.checking.versions import with_likely_version  # noqa: PLC0415 - only then

        raise with_likely_version(error, logs) from error
    return statistics
