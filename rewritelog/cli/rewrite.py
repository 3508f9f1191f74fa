"""`rewritelog rewrite`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewritelog.cli.arguments import (
    ClockHz,
    Coefficients,
    Force,
    Formulas,
    Jobs,
    Logs,
    ModelOption,
    Params,
    Strict,
)
from rewritelog.cli.model_options import MODEL_HELP, add_pairs, split_pairs, with_model_options
from rewritelog.errors import UsageError
from rewritelog.rewriting.options import EngineName, RecvPolicy, RewriteOptions, SpreadName
from rewritelog.text import json_text

if TYPE_CHECKING:
    from rewritelog.rewriting.report import Report
    from rewritelog.rewriting.run import Progress


@with_model_options
def rewrite_command(
    logs: Logs,
    out: Annotated[
        Path | None, typer.Argument(help="The folder to write; it must not exist or be empty.")
    ] = None,
    model: Annotated[str | None, typer.Option(help=MODEL_HELP, show_default=False)] = None,
    timings: Annotated[
        list[Path] | None,
        typer.Option(help="A file of timing lines to fit to, plain or gzip; repeatable."),
    ] = None,
    fitted: Annotated[
        Path | None,
        typer.Option(help="A model file of `rewritelog fit`, instead of a model and timings."),
    ] = None,
    formulas: Formulas = None,
    coefficients: Coefficients = None,
    params: Params = None,
    clock_hz: ClockHz = None,
    model_option: ModelOption = None,
    dilation: Annotated[
        float | None,
        typer.Option(help="Factor on durations that no model covers [default: 1]."),
    ] = None,
    speedup: Annotated[
        float | None, typer.Option(help="The same said the other way: 2 is --dilation 0.5.")
    ] = None,
    dilation_for: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=F, the dilation of SEBs of that name (* matches anything); repeatable, "
            "the last match wins."
        ),
    ] = None,
    spread: Annotated[
        SpreadName,
        typer.Option(
            help="none: each predicted duration is the fit's mean; residual: it lies around the "
            "mean as timing lines that the fit had not seen did."
        ),
    ] = "none",
    spread_seed: Annotated[
        int, typer.Option(help="The same seed spreads durations in the same way everywhere.", min=0)
    ] = 1,
    recv: Annotated[
        RecvPolicy,
        typer.Option(
            help="A message's recvTime: shift it with sendTime, or keep it unless sendTime "
            "passes it."
        ),
    ] = "shift",
    copy_params: Annotated[
        bool, typer.Option("--copy-params", help="Copy the param.P files to OUT too.")
    ] = False,
    force: Force = False,
    no_flush: Annotated[
        bool,
        typer.Option(
            "--no-flush",
            help="Do not wait until OUT is on the disk; a power cut may then leave it damaged.",
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report and write nothing.")] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write the report to this file as JSON too.")
    ] = None,
    strict: Strict = False,
    engine: Annotated[
        EngineName, typer.Option(help="Threads of this machine, or the ranks of mpiexec.")
    ] = "threads",
    jobs: Jobs = 0,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress bar and no report on stdout.")
    ] = False,
    *,
    model_options: dict[str, Any],
) -> None:
    """Rewrite a log set with new SEB durations, so that a simulator predicts the target.

    Without a model every duration is multiplied by the dilation. A fitted model predicts the
    bracketed parts of SEBs from their parameters, and the rest is dilated.
    """
    if (out is None) != dry_run:
        raise UsageError("OUT is needed" if out is None else "--dry-run takes no OUT")
    add_pairs(model_options, model_option)
    options = RewriteOptions(
        model=model,
        model_options=model_options,
        timings=tuple(timings or ()),
        fitted=fitted,
        formulas=formulas,
        coefficients=coefficients,
        params=params,
        clock_hz=clock_hz,
        strict=strict,
        dilation=_dilation(dilation, speedup),
        dilation_for=_dilations_for(dilation_for or []),
        spread=spread,
        spread_seed=spread_seed,
        recv=recv,
        copy_params=copy_params,
        force=force,
        flush=not no_flush,
        engine=engine,
        jobs=jobs,
    )
    _run(logs, out, options, report, quiet=quiet)


def _run(
    logs: Path, out: Path | None, options: RewriteOptions, report: Path | None, *, quiet: bool
) -> None:
    from rewritelog.rewriting.run import rewrite_or_serve  # noqa: PLC0415 - numba is slow to import

    if report is not None:
        _check_report(report, logs, options)
    with _progress(quiet=quiet) as progress:
        account = rewrite_or_serve(logs, out, options, progress)
    if account is None:
        return
    if not quiet:
        typer.echo(account.text())
    if report is not None:
        _write_report(report, account)


def _dilation(dilation: float | None, speedup: float | None) -> float:
    if dilation is not None and speedup is not None:
        raise UsageError("--dilation and --speedup say the same: give one of them")
    if speedup is not None:
        from rewritelog.rewriting.options import check_factor  # noqa: PLC0415

        check_factor("the speedup", speedup)
        return 1 / speedup
    return 1.0 if dilation is None else dilation


def _dilations_for(pairs: list[str]) -> tuple[tuple[str, float], ...]:
    factors = []
    for name, text in split_pairs(pairs, "--dilation-for"):
        try:
            factors.append((name, float(text)))
        except ValueError as error:
            raise UsageError(f"--dilation-for {name}={text}: {text!r} is no number") from error
    return tuple(factors)


def _check_report(report: Path, logs: Path, options: RewriteOptions) -> None:
    """Refuse to write the report over an input."""
    from rewritelog.output import check_outputs  # noqa: PLC0415

    files = (*options.timings, options.fitted, options.formulas, options.coefficients)
    check_outputs([report], files, (logs if logs.is_dir() else logs.parent, options.params))


def _write_report(report: Path, account: Report) -> None:
    from rewritelog.output import write_text_file  # noqa: PLC0415

    write_text_file(report, json_text(account.to_json(), indent=2) + "\n")


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Progress | None]:
    """Yield what shows a bar on stderr, or None where that is no terminal or not wanted."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm  # noqa: PLC0415

    with tqdm(unit="B", unit_scale=True, desc="rewriting", leave=False) as bar:

        def advance(done: int, total: int) -> None:
            bar.total = total
            bar.update(done)

        yield advance
