"""The whole job: open, fit, plan, rewrite block by block, and give account."""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from rewritelog.errors import UsageError
from rewritelog.logs.blocks import Block, plan_blocks
from rewritelog.logs.files import InputFile
from rewritelog.logs.logset import LogSet, open_logs
from rewritelog.models.base import FittedModel, Model
from rewritelog.models.checks import checked_fit
from rewritelog.models.registry import load_model
from rewritelog.output import create_file, new_folder
from rewritelog.rewriting.block import Task
from rewritelog.rewriting.dilations import Dilations
from rewritelog.rewriting.engines import Engine, engine_of
from rewritelog.rewriting.figures import BlockFigures
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.rewriting.params import ParamFolder, list_params
from rewritelog.rewriting.report import Report
from rewritelog.rewriting.timings import TimingsRead, read_timings

Progress = Callable[[int, int], Any]
"""Called with the bytes that one more block had, and the bytes in all."""

_AHEAD = 4
"""How many blocks a worker may have waiting."""


def rewrite(
    logs: LogSet | str | Path,
    out: str | Path | None,
    options: RewriteOptions | None = None,
    progress: Progress | None = None,
) -> Report:
    """Rewrite a log set into the folder `out`, or only report where `out` is None.

    Raise a `RewriteLogError` for whatever is wrong; then `out` is as it was before.
    """
    report = rewrite_or_serve(logs, out, options, progress)
    if report is None:
        raise UsageError("only rank 0 of an MPI job has a report: call rewrite_or_serve")
    return report


def rewrite_or_serve(
    logs: LogSet | str | Path,
    out: str | Path | None,
    options: RewriteOptions | None = None,
    progress: Progress | None = None,
) -> Report | None:
    """Do as `rewrite` does; in an MPI job for all ranks, of which only rank 0 gets the report.

    The others work for it, and return None when it is done or has failed.
    """
    options = options or RewriteOptions()
    with engine_of(options.engine, options.jobs) as engine:
        if engine.leads:
            return _lead(engine, logs, out, options, progress)
        engine.serve()
        return None


def _lead(
    engine: Engine,
    logs: LogSet | str | Path,
    out: str | Path | None,
    options: RewriteOptions,
    progress: Progress | None,
) -> Report:
    started = time.perf_counter()
    source = logs if isinstance(logs, LogSet) else open_logs(logs)
    model = load_model(options.model, options.model_options)
    read, fitted = _fit(model, options)
    params = _params(source, model, options)
    with ExitStack() as stack:
        draft = None
        if out is not None:
            inputs = [source.folder, *options.timings, *([params.folder] if params else [])]
            draft = stack.enter_context(
                new_folder(Path(out), inputs, force=options.force, flush=options.flush)
            )
            _prepare(source, draft, options)
        task = Task(
            source, options.model, fitted, params,
            Dilations(options.dilation, options.dilation_for), options.recv == "keep",
            options.strict, options.block_bytes, draft,
        )  # fmt: skip
        executor, work = stack.enter_context(engine.start(task))
        results = in_order(executor, work, _blocks(source, options), _AHEAD * engine.workers)
        figures = _add_up(results, source, progress)
    return Report(
        logs=source,
        out=None if out is None else Path(out),
        options=options,
        model=model,
        fitted=fitted,
        timings=read,
        params=params,
        figures=figures,
        workers=engine.workers,
        seconds=time.perf_counter() - started,
    )


def _fit(model: Model[Any], options: RewriteOptions) -> tuple[TimingsRead | None, FittedModel]:
    """Read the timings and fit the model, once and before anything else."""
    if not model.needs_timings:
        if options.timings:
            raise UsageError(f"the model {options.model!r} is not fitted: it takes no timings")
        return None, checked_fit(model, options.model, ())
    if not options.timings:
        raise UsageError(f"the model {options.model!r} is fitted: it needs a file of timing lines")
    read = read_timings(options.timings, options.clock_hz, strict=options.strict)
    return read, checked_fit(model, options.model, read.timings)


def _params(logs: LogSet, model: Model[Any], options: RewriteOptions) -> ParamFolder | None:
    """List the param files, for a model that uses them."""
    if not model.uses_params:
        return None
    return list_params(options.params or logs.folder)


def _prepare(logs: LogSet, draft: Path, options: RewriteOptions) -> None:
    """Write all but the timelines: the summary, the heads of the timeline files, companions."""
    shutil.copyfile(logs.summary_path, draft / logs.summary_path.name)
    for file in logs.files:
        with InputFile(file.path) as source:
            head = source.read(0, file.head_bytes).tobytes()
        create_file(draft / file.path.name, file.size_bytes, head)
    for path in companions(logs.folder):
        shutil.copyfile(path, draft / path.name)
    if options.copy_params:
        params = options.params or logs.folder
        for pe in sorted(list_params(params).pes):
            shutil.copyfile(params / f"param.{pe}", draft / f"param.{pe}")


def companions(folder: Path) -> list[Path]:
    """Return the files that a simulator wants beside the logs: Projections' `.sts` and logs."""
    return sorted(path for path in folder.iterdir() if path.name.endswith((".sts", ".log.gz")))


def _blocks(logs: LogSet, options: RewriteOptions) -> Iterator[Block]:
    for file in logs.files:
        yield from plan_blocks(file, options.block_bytes)


def _add_up(
    results: Iterator[BlockFigures], logs: LogSet, progress: Progress | None
) -> BlockFigures:
    total = logs.size_bytes - sum(file.head_bytes for file in logs.files)
    figures = BlockFigures()
    for done in results:
        figures.add(done)
        if progress is not None:
            progress(done.size_bytes, total)
    return figures


def in_order(
    executor: Executor,
    work: Callable[[Block], BlockFigures],
    blocks: Iterable[Block],
    ahead: int,
) -> Iterator[BlockFigures]:
    """Yield the results in the blocks' order, with at most `ahead` blocks under way.

    Where one raises, those that wait are dropped, and its error is raised.
    """
    waiting: deque[Future[BlockFigures]] = deque()
    source = iter(blocks)
    try:
        waiting.extend(executor.submit(work, block) for block in islice(source, ahead))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(executor.submit(work, block) for block in islice(source, 1))
    finally:
        for future in waiting:
            future.cancel()
