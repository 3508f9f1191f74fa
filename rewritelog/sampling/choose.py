"""The job of `sample`: read a run, choose SEBs to time, and write the list of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rewritelog.cores import limited_to
from rewritelog.errors import RewriteLogError
from rewritelog.formats.bgtrace.logset import LogSet, open_logs
from rewritelog.formats.bgtrace.params import list_params
from rewritelog.models.formulas import Formulas, parse_formulas
from rewritelog.output import check_outputs, write_text_file
from rewritelog.sampling.options import SampleOptions
from rewritelog.sampling.records import read_run
from rewritelog.sampling.replicates import spread_of
from rewritelog.sampling.report import ChosenStratum, SampleReport
from rewritelog.sampling.selection import choose
from rewritelog.sampling.strata import RunStratum, formula_warnings, strata_of
from rewritelog.text import printable
from rewritelog.timings.read import TimingsRead, read_timings
from rewritelog.timings.texts import read_model_text


def sample(
    logs: LogSet | str | Path,
    options: SampleOptions | None = None,
    out: Path | None = None,
) -> SampleReport:
    """Choose SEBs of a run, and write the list of them to `out`.

    Raise a `RewriteLogError` for any invalid input; `out` is then not changed.
    """
    options = options or SampleOptions()
    source = open_logs(logs)
    folder = list_params(options.params or source.folder)
    check_outputs((out,), (*options.timings, options.formulas), (source.folder, folder.folder))
    formulas = _formulas(options)
    read = _timings(options)
    with limited_to(options.jobs):
        run = read_run(source, folder, strict=options.strict)
    if len(run) == 0:
        where = "" if folder.folder == source.folder else f" in {folder.folder}"
        raise RewriteLogError(
            f"{source.folder}: none of its SEBs has a param record{where}: without brackets in the "
            "program there is nothing to choose from"
        )
    timings = () if read is None else read.timings
    spreads = {(spread.event, spread.parameters): spread for spread in map(spread_of, timings)}
    strata = strata_of(run, timings, spreads, formulas, options.replicates)
    choices = choose([stratum.stratum for stratum in strata], options.plan())
    made = SampleReport(
        logs=source,
        out=out,
        options=options,
        records=len(run),
        strata=tuple(
            ChosenStratum(stratum, choice) for stratum, choice in zip(strata, choices, strict=True)
        ),
        spreads=tuple(spreads.values()),
        remarks=(*run.warnings, *_remarks(read, formulas, strata)),
        run=run,
    )
    if out is not None:
        write_text_file(out, made.listing())
    return made


def _formulas(options: SampleOptions) -> Formulas | None:
    if options.formulas is None:
        return None
    read = read_model_text(options.formulas)
    return parse_formulas(read.text, read.name)


def _timings(options: SampleOptions) -> TimingsRead | None:
    if not options.timings:
        return None
    return read_timings(options.timings, options.clock_hz, strict=options.strict)


def _remarks(
    read: TimingsRead | None, formulas: Formulas | None, strata: tuple[RunStratum, ...]
) -> Sequence[str]:
    """Return the warnings of the timings and the formulas."""
    remarks = [] if formulas is None else list(formula_warnings(formulas, strata))
    if read is not None:
        remarks += read.warnings()
        in_run = {(item.event, item.parameters) for item in strata}
        foreign = [item.key for item in read.timings if item.key not in in_run]
        remarks += [
            f"event {printable(event)!r} with {count} parameters is timed, but not in the run"
            for event, count in foreign
        ]
    return remarks
