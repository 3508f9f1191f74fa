"""The complete job of a rewrite: open, fit, plan, rewrite block by block, and report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rewritelog.cores import limited_to
from rewritelog.errors import DamagedLogError, UsageError
from rewritelog.formats.bgtrace.blocks import plan_in_turn
from rewritelog.formats.bgtrace.files import InputFile
from rewritelog.formats.bgtrace.logset import LogSet, open_logs
from rewritelog.formats.bgtrace.params import ParamFolder, list_params
from rewritelog.models.base import FittedModel, Model
from rewritelog.models.checks import checked_fit, knows_residuals
from rewritelog.models.registry import load_model
from rewritelog.output import copy_file, create_file, new_folder
from rewritelog.output.companions import copy_companions, copy_own_files
from rewritelog.progress import report_progress
from rewritelog.rewriting.block import BlockRewriter, RewriteTask
from rewritelog.rewriting.dilations import DilationRules
from rewritelog.rewriting.intervals import expected_of
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.rewriting.predicting import Predictor
from rewritelog.rewriting.provenance import write_provenance
from rewritelog.rewriting.report import RewriteReport
from rewritelog.rewriting.statistics import BlockStatistics
from rewritelog.running.engines import lead, map_blocks, workers
from rewritelog.timings.read import TimingsRead, read_timings
from rewritelog.timings.texts import (
    named_fit,
    read_model_file,
    read_param_names,
    read_texts,
)


def rewrite(
    logs: LogSet | str | Path,
    out: str | Path | None,
    options: RewriteOptions | None = None,
) -> RewriteReport:
    """Rewrite a log set into the folder `out`, or only report if `out` is None.

    Raise a `RewriteLogError` for any invalid input; `out` is then not changed.
    """
    report = rewrite_or_serve(logs, out, options)
    if report is None:
        raise UsageError("only rank 0 of an MPI job has a report: call rewrite_or_serve")
    return report


def rewrite_or_serve(
    logs: LogSet | str | Path,
    out: str | Path | None,
    options: RewriteOptions | None = None,
) -> RewriteReport | None:
    """Rewrite as `rewrite` does; in an MPI job all ranks call this, and rank 0 gets the report.

    The other ranks work for it, and return None when it is done or has failed.
    """
    options = options or RewriteOptions()
    return lead(options.engine, options.jobs, partial(_rewrite, logs, out, options))


def _rewrite(
    logs: LogSet | str | Path, out: str | Path | None, options: RewriteOptions
) -> RewriteReport:
    started = time.perf_counter()
    report_progress("reading the heads of the logs")
    source = open_logs(logs)
    model = _model(options)
    read, fitted = _fit(model, options)
    predictor = _predictor(model, fitted, options)
    params = _params(source, model, options)
    with ExitStack() as stack:
        draft = None
        if out is not None:
            draft = stack.enter_context(new_output(source, Path(out), options))
            write_provenance(draft, source, options, model, read)
        task = rewrite_task(source, predictor, params, options)
        work = BlockRewriter(task, draft, flush=options.flush)
        statistics = _add_up(work, source, options.block_bytes)
        expected = expected_of(fitted, options.model_name, statistics)
    return RewriteReport(
        logs=source,
        out=None if out is None else Path(out),
        options=options,
        model=model,
        fitted=fitted,
        timings=read,
        params=params,
        statistics=statistics,
        expected=expected,
        workers=workers(),
        seconds=time.perf_counter() - started,
    )


def rewrite_task(
    logs: LogSet,
    predictor: Predictor,
    params: ParamFolder | None,
    options: RewriteOptions,
) -> RewriteTask:
    """Return the task for the options."""
    return RewriteTask(
        logs,
        predictor,
        params,
        DilationRules(options.general_dilation, options.dilation_for),
        options.recv == "keep",
        options.strict,
        options.block_bytes,
    )


def task_without_output(report: RewriteReport) -> RewriteTask:
    """Return the task of a report, to repeat it without writing."""
    return rewrite_task(report.logs, predictor_of(report), report.params, report.options)


def predictor_of(report: RewriteReport) -> Predictor:
    """Return the predictor of a report."""
    return _predictor(report.model, report.fitted, report.options)


def _model(options: RewriteOptions) -> Model[Any]:
    """Return the model by name, or that of a model file."""
    if isinstance(options.fitted, Model):
        return options.fitted
    if options.fitted is not None:
        from rewritelog.models.from_file import model_of  # noqa: PLC0415 - only some runs need it

        return model_of(read_model_file(options.fitted))
    texts = read_texts(options.formulas, options.coefficients)
    return load_model(options.model_name, options.model_options, texts)


def _fit(model: Model[Any], options: RewriteOptions) -> tuple[TimingsRead | None, FittedModel]:
    """Read the timings and fit the model."""
    name = options.model_name
    if not model.needs_timings:
        if options.timings:
            raise UsageError(f"the model {name!r} is not fitted: it takes no timings")
        return None, checked_fit(model, name, ())
    if not options.timings:
        raise UsageError(f"the model {name!r} is fitted to timing lines: give some (--timings)")
    read = read_timings(
        options.timings, options.clock_hz, strict=options.strict, columns=model.columns
    )
    names = read_param_names(options.param_names)
    with limited_to(options.jobs):
        return read, named_fit(checked_fit(model, name, read.timings), names)


def _predictor(model: Model[Any], fitted: FittedModel, options: RewriteOptions) -> Predictor:
    """Return the predictor; raise `UsageError` to spread with a model without residuals."""
    if options.spread == "none":
        measured = options.total == "measured"
        return Predictor(options.model_name, fitted, model.columns, measured_totals=measured)
    if not knows_residuals(fitted):
        raise UsageError(
            f"the model {options.model_name!r} has no residuals, so --spread residual cannot "
            "draw from them: choose a model that is fitted to timing lines, such as auto"
        )
    return Predictor(options.model_name, fitted, model.columns, options.spread_seed)


def fitted_predictor(options: RewriteOptions) -> tuple[Model[Any], tuple[str, ...], Predictor]:
    """Return the model for the options, the warnings of its fit, and the predictor."""
    model = _model(options)
    read, fitted = _fit(model, options)
    said = (*(() if read is None else read.warnings()), *fitted.warnings())
    return model, said, _predictor(model, fitted, options)


def _params(logs: LogSet, model: Model[Any], options: RewriteOptions) -> ParamFolder | None:
    """List the param files, for a model that uses them."""
    if not model.uses_params:
        return None
    return list_params(options.params or logs.folder)


@contextmanager
def new_output(logs: LogSet, out: Path, options: RewriteOptions) -> Iterator[Path]:
    """Yield a draft of the folder `out` with everything but the timelines; see `new_folder`."""
    inputs = [path for path in (logs.folder, *options.files, options.params) if path is not None]
    with new_folder(out, inputs, force=options.force, flush=options.flush) as draft:
        _copy_all_but_timelines(logs, draft, options)
        yield draft


def _copy_all_but_timelines(logs: LogSet, draft: Path, options: RewriteOptions) -> None:
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
