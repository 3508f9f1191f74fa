"""The job of a rewrite: open, fit, rewrite block by block, report; and its provenance file."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

import rewritelog
from rewritelog.commands.durations import OutputOptions, RewriteOptions
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import list_params
from rewritelog.formats.files import FORMAT, PROVENANCE_NAME, VERSION, InputFile, read_provenance
from rewritelog.formats.opening import open_traces
from rewritelog.formats.traces import AnyTraces, Traces
from rewritelog.models.base import digest_of
from rewritelog.models.fitted import Fitted
from rewritelog.options import declarations, reported
from rewritelog.output.files import (
    FlushingWork,
    copy_companions,
    copy_file,
    copy_own_files,
    create_file,
)
from rewritelog.output.folders import new_folder
from rewritelog.progress import report_progress
from rewritelog.rewriting.block import logs_task
from rewritelog.rewriting.predicting import fitted_predictor
from rewritelog.rewriting.report import RewriteReport, Task
from rewritelog.rewriting.statistics import BlockStatistics, expected_of
from rewritelog.running.engines import engine, limited_to, map_blocks
from rewritelog.text import json_text
from rewritelog.timings.samples import Timings


def write_provenance(
    draft: Path,
    logs: AnyTraces,
    options: OutputOptions,
    fitted: Fitted,
    timings: Timings | None,
) -> None:
    """Write into the draft what determines its bytes: versions, options, digests, no dates."""
    earlier = read_provenance(logs.folder)
    files = {
        "formulas": options.formulas,
        "coefficients": options.coefficients,
        "summary": logs.summary_path if isinstance(logs, LogSet) else None,
        **({"event_params": options.event_params} if options.event_params else {}),
    }
    content = {
        "format": FORMAT,
        "version": VERSION,
        "rewritelog": rewritelog.__version__,
        "options": reported(options, declarations(type(options)), "decides"),
        "model": {
            "name": "fitted" if options.fitted else fitted.name,
            "options": fitted.options,
            "timing_lines": None if timings is None else len(timings),
            "fitted_to": msgspec.to_builtins(fitted.source) if options.fitted else None,
        },
        "sha256": {
            "samples": None if timings is None else digest_of(timings.timings),
            **{
                what: None if path is None else hashlib.sha256(path.read_bytes()).hexdigest()
                for what, path in files.items()
            },
            "model_file": None if options.fitted is None else options.fitted.file_sha256,
        },
        "timeline_bytes": logs.sizes,
        "rewritten_from": None if earlier is None else dict(earlier.content),
    }
    (draft / PROVENANCE_NAME).write_text(json_text(content, indent=2) + "\n", encoding="utf-8")


def rewrite(
    logs: AnyTraces | str | Path,
    out: str | Path | None,
    options: RewriteOptions | None = None,
    most_kept: int = 0,
    completed: Callable[[RewriteReport], RewriteReport] = lambda report: report,
) -> RewriteReport:
    """Rewrite a log set or traces into the folder `out`, or only report if `out` is None.

    The nodes of traces are kept for a replay of at most `most_kept` nodes. `completed` adds to the
    report before `out` gets its name, so that `out` is as it was if that fails or is interrupted.
    Raise a `RewriteLogError` for any invalid input; `out` is then not changed.
    """
    options, out = options or RewriteOptions(), None if out is None else Path(out)
    report_progress("reading the heads of the logs")
    source = open_traces(logs)
    started = time.perf_counter()
    with limited_to(options.jobs), ExitStack() as stack:
        predictor, timings = fitted_predictor(options)
        task: Task
        if isinstance(source, Traces):
            from rewritelog.rewriting.traces import trace_task  # noqa: PLC0415 - not of logs

            task = trace_task(source, predictor, options, most_kept)
        else:
            task = logs_task(source, predictor, options)
        draft = None
        if out is not None:
            draft = stack.enter_context(new_output(source, out, options))
            write_provenance(draft, source, options, predictor.fitted, timings)
        statistics = _add_up(task, draft, most_kept, flush=not options.no_flush)
        this_engine = engine()
        report = RewriteReport(
            task=task,
            out=out,
            options=options,
            fitted=predictor.fitted,
            timings=timings,
            statistics=statistics,
            expected=expected_of(predictor.fitted, statistics.events),
            engine=this_engine.name,
            workers=this_engine.workers,
            seconds=time.perf_counter() - started,
        )
        report = completed(report)
    return dataclasses.replace(report, seconds=time.perf_counter() - started)


@contextmanager
def new_output(logs: AnyTraces, out: Path, options: OutputOptions) -> Iterator[Path]:
    """Yield a draft of the folder `out` with everything but what is rewritten; see `new_folder`."""
    with new_folder(out, force=options.force, flush=not options.no_flush) as draft:
        if isinstance(logs, LogSet):
            _copy_all_but_timelines(logs, draft, options)
        else:
            for unit in logs.files:
                create_file(draft / unit.path.name, 0)
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
        params = list_params(options.params or logs.folder)
        copy_own_files(logs, map(params.path, sorted(params.pes)), draft)


def _add_up(task: Task, draft: Path | None, most_kept: int, *, flush: bool) -> BlockStatistics:
    """Rewrite all blocks and add up their statistics."""
    statistics = BlockStatistics()
    work = FlushingWork[Any, BlockStatistics](task.rewrite, draft, flush=flush)
    units = task.logs.units(in_turn=True)
    for _, of_block in map_blocks(work, units, "rewriting", task.logs.units_bytes):
        statistics.add(of_block)
        if statistics.replay_size > most_kept:
            statistics.kept.clear()
    return statistics
