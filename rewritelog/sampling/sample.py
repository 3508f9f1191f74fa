"""The job of `sample`: SEBs chosen of a run, the list of them, and how well they cover the run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from rewritelog import __version__
from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.commands.fits import SampleCommand
from rewritelog.errors import ModelError, OutputError, RewriteLogError, UsageError, spelled
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import list_params
from rewritelog.models.base import EventKey, ParamNames
from rewritelog.models.formulas import EventFormula, Formulas, parse_formulas
from rewritelog.options import reported
from rewritelog.output.files import write_text_file
from rewritelog.sampling.selection import Choice, Plan, Stratum, choose
from rewritelog.text import (
    LABEL_WIDTH,
    Readable,
    TextTable,
    count_text,
    event_label,
    percent_text,
    printable,
    shorten_all,
    shortest_text,
    some_text,
)
from rewritelog.timings.params import Params, read_run
from rewritelog.timings.read import read_model_text, read_param_names, samples_of
from rewritelog.timings.samples import Timings, or_columns, require_order, usable
from rewritelog.timings.stats import LARGE_SPREAD, ReplicateSpread, spread_of
from tracebigsim.errors import LineFormatError
from tracebigsim.writing import format_chosen

LARGE_SHARE = 0.05
"""A larger share of extrapolated records in a stratum gets a warning."""

SHOWN = 100
"""The number of strata in the text; the JSON report has all of them."""

MOST_CATEGORIES = 1000
"""An event with more categories probably has the wrong formula."""


@dataclass(frozen=True, repr=False, eq=False)
class SampleReport(Readable):
    """The result of `sample`."""

    logs: LogSet
    out: Path | None
    options: SampleCommand
    records: int
    """The number of param records of the run."""
    strata: tuple[Choice, ...]
    spreads: tuple[ReplicateSpread, ...]
    """The spread of each event of the run with timing lines."""
    remarks: tuple[str, ...]
    """Warnings about the input files."""
    run: Params
    """All records of the run."""

    @property
    def rows(self) -> Ints:
        """The indices of the chosen records of the run, ascending."""
        rows = (np.asarray(choice.stratum.records)[choice.rows] for choice in self.strata)
        return np.sort(np.concatenate(list(rows)))

    @property
    def labels(self) -> list[str]:
        """The names of the strata in sentences."""
        strata = [choice.stratum for choice in self.strata]
        names = shorten_all([stratum.event for stratum in strata], LABEL_WIDTH)
        return [
            event_label(name, stratum.parameters, stratum.category, stratum.names)
            for name, stratum in zip(names, strata, strict=True)
        ]

    @property
    def chosen(self) -> int:
        """The number of chosen records, including replicates."""
        return sum(len(choice.rows) for choice in self.strata)

    @property
    def replicates(self) -> int:
        """The number of replicates."""
        return sum(choice.replicates for choice in self.strata)

    @property
    def extrapolated(self) -> int:
        """The number of records whose prediction would be an extrapolation."""
        return sum(choice.extrapolated for choice in self.strata)

    def listing(self) -> str:
        """Return the list of the chosen SEBs, sorted by PE and SEB, with comments before it."""
        options = self.options
        settings = (
            f"method {options.method}, seed {options.seed}, fraction {options.fraction:g}, "
            f"floor {options.floor}"
        )
        formulas = (
            "" if options.formulas is None else f", formulas {printable(str(options.formulas))}"
        )
        head = (
            f"# rewritelog {__version__} sample: {self.chosen} of {self.records} param records of "
            f"{printable(str(self.logs.folder))}\n"
            f"# {settings}{formulas}\n"
            "# a line: the PE, then the line of its param file\n"
        )
        return head + "".join(self._line(row) for row in self.rows.tolist())

    def _line(self, row: int) -> str:
        run = self.run
        pe, seb, start = int(run.pe[row]), int(run.seb[row]), int(run.param_start[row])
        params = run.params[start : start + int(run.param_count[row])].tolist()
        try:
            return format_chosen(pe, seb, run.events[int(run.event[row])], params)
        except LineFormatError as error:
            raise OutputError(f"PE {pe}, SEB {seb}: cannot be listed: {error}") from error

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "rewritelog": __version__,
            "logs": str(self.logs.folder),
            "output": None if self.out is None else str(self.out),
            "options": reported(self.options, SampleCommand.own()),
            "records": self.records,
            "chosen": self.chosen,
            "replicates": self.replicates,
            "extrapolated": self.extrapolated,
            "extrapolated_share": self.extrapolated / self.records,
            "strata": [choice.to_json() for choice in self.strata],
            "spreads": [
                {**structs.asdict(spread), "replicates": spread.replicates}
                for spread in self.spreads
            ],
            "warnings": list(self.warnings),
        }

    def text(self) -> str:
        """Return the report as text."""
        out = "not written" if self.out is None else str(self.out)
        options = self.options
        replicates = f", {self.replicates:,} of them replicates" if self.replicates else ""
        share = self.extrapolated / self.records
        extrapolated = count_text(self.extrapolated, "record")
        chosen = (
            f"  {count_text(self.chosen, 'param record')} chosen of {self.records:,} "
            f"({percent_text(self.chosen / self.records)}){replicates}; method {options.method}, "
            f"seed {options.seed}"
        )
        lines = [
            f"{printable(str(self.logs.folder))} → {printable(out)}",
            chosen,
            *self.table.lines(),
            f"  would be extrapolated, outside or beyond: {extrapolated} ({percent_text(share)})",
            *(
                _spread_text(spread, self._label_of(spread))
                for spread in self.spreads
                if spread.relative is not None
            ),
        ]
        return "\n".join(lines)

    def top_lines(self) -> list[str]:
        """Return the lines of the text without the first; the `repr` begins with what is chosen."""
        return [line.strip() for line in self.text().split("\n")[1:]]

    @property
    def table(self) -> TextTable:
        """The strata with their points."""
        split = any(choice.stratum.category is not None for choice in self.strata)
        rows = []
        for choice in self.strata:
            stratum, records = choice.stratum, len(choice.stratum.params)
            category = "" if stratum.category is None else shortest_text(stratum.category)
            counts = (records, choice.points, len(stratum.timed), len(choice.rows))
            shares = (choice.outside / records, choice.beyond / records)
            cells = [stratum.event, str(stratum.parameters), *([category] if split else [])]
            cells += [f"{n:,}" for n in counts]
            rows.append((*cells, *(percent_text(share, 1) for share in shares)))
        heads = ["event", "params", *(["category"] if split else [])]
        heads += ["records", "points", "timed", "chosen", "outside", "beyond"]
        caption = "param records by event; outside, beyond: shares that would be extrapolated"
        return TextTable(tuple(heads), rows, most_rows=SHOWN, caption=caption)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, one sentence each."""
        first_time, size = self.chosen - self.replicates, list[str]()
        chosen = count_text(first_time, "param record is chosen", "param records are chosen")
        requested = round(self.options.fraction * self.records)
        if first_time > requested:
            size.append(
                f"{chosen}, more than the {requested:,} of {spelled('fraction')}: "
                f"{spelled('floor', self.options.floor)} asks for so many of each event and "
                "category, if there are as many"
            )
        if first_time < requested:
            size.append(
                f"{chosen}, fewer than the {requested:,} of {spelled('fraction')}: all others "
                "have parameters that are chosen or timed already"
            )
        return (*self.remarks, *size, *self._span_warnings(), *self._spread_warnings())

    def _span_warnings(self) -> Iterator[str]:
        for choice, label in zip(self.strata, self.labels, strict=True):
            share = choice.extrapolated / len(choice.stratum.params)
            if share > LARGE_SHARE:
                points = count_text(choice.measured_points, "point")
                fit = f"{choice.coefficients} coefficients or more"
                advice = f", or say with {spelled('formulas')} what its time depends on"
                if choice.stratum.terms:
                    fit, advice = count_text(choice.coefficients, "coefficient"), ""
                yield (
                    f"{label}: {percent_text(share, 1)} of its records would be extrapolated "
                    f"from the {points} measured, for a fit with {fit}; choose a larger "
                    f"{spelled('fraction')} or {spelled('floor')}{advice}"
                )

    def _spread_warnings(self) -> Iterator[str]:
        for spread in self.spreads:
            if not spread.is_large:
                continue
            choices = self._choices_of(spread)
            points = sum(choice.replicated_points for choice in choices)
            times = max(choice.most_times for choice in choices)
            again = f"the list repeats {count_text(points, 'point')} of it up to {times} times"
            if points == 0:
                again = "no parameters recur in the run, so replicates are not possible"
            yield (
                f"{self._label_of(spread)}: times of identical parameters vary by "
                f"{percent_text(spread.relative, 1)}, more than "
                f"{percent_text(LARGE_SPREAD, 0)}: find out why before relying on them; {again}"
            )

    def _choices_of(self, spread: ReplicateSpread) -> list[Choice]:
        key = spread.event, spread.parameters
        return [
            choice
            for choice in self.strata
            if (choice.stratum.event, choice.stratum.parameters) == key
        ]

    def _label_of(self, spread: ReplicateSpread) -> str:
        names = self._choices_of(spread)[0].stratum.names
        return event_label(spread.event, spread.parameters, names=names)


def _spread_text(spread: ReplicateSpread, name: str) -> str:
    """Return the spread of the times of an event of this name as a line of text."""
    outliers = f", {spread.left_out:,} off by more than a factor of 2 left out" * bool(
        spread.left_out
    )
    return (
        f"  variation of {name}: {percent_text(spread.relative, 1)} ({spread.lines:,} lines at "
        f"{count_text(spread.points, 'point')}{outliers})"
    )


def sample(options: SampleCommand) -> SampleReport:
    """Choose SEBs of a run, and write the list of them to the output, if there is one.

    Raise a `RewriteLogError` for any invalid input; the output is then not changed.
    """
    source, out = options.logs, options.output
    folder = list_params(options.params or source.folder)
    formulas, timings = Formulas(), Timings(())
    if options.formulas is not None:
        text = read_model_text(options.formulas)
        formulas = parse_formulas(text.text, text.name)
    if options.timings is not None:
        timings = usable(samples_of(options.timings, options.clock_hz, strict=options.strict))
    elif options.clock_hz is not None:
        raise UsageError(f"{spelled('clock_hz')} is for {spelled('timings')}")
    if not folder.pes:
        raise RewriteLogError(
            f"{folder.folder}: has no param files: give the folder with the files param.P, "
            f"uncompressed, with {spelled('params')}"
        )
    run = read_run(source, folder, strict=options.strict)
    if len(run) == 0:
        where = "" if folder.folder == source.folder else f" in {folder.folder}"
        raise RewriteLogError(
            f"{source.folder}: none of its SEBs has a param record{where}: without brackets in the "
            "program there is nothing to choose from"
        )
    spreads = {(spread.event, spread.parameters): spread for spread in map(spread_of, timings)}
    names = or_columns(read_param_names(options.param_names), timings)
    strata = _strata_of(run, timings, spreads, formulas, names, options.replicates)
    names_by_key = {(stratum.event, stratum.parameters): stratum.names for stratum in strata}
    require_order(timings, lambda *key: names_by_key.get(key, ()))
    choices = choose(strata, Plan(options.fraction, options.method, options.seed, options.floor))
    report = SampleReport(
        logs=source,
        out=out,
        options=options,
        records=len(run),
        strata=choices,
        spreads=tuple(spreads[key] for key in spreads if key in names_by_key),
        remarks=(*run.warnings, *_remarks(timings, names_by_key, formulas, names)),
        run=run,
    )
    if out is not None:
        write_text_file(out, report.listing())
    return report


def _strata_of(
    run: Params,
    timings: Timings,
    spreads: Mapping[EventKey, ReplicateSpread],
    formulas: Formulas,
    param_names: ParamNames,
    replicates: int,
) -> tuple[Stratum, ...]:
    """Return the strata of a run: events in order of appearance, categories ascending.

    Points are measured `replicates` times, or more often if the spread calls for it. Raise
    `ModelError` for a formula that divides an event into too many categories.
    """
    params_by_key = {samples.key: samples.params for samples in timings}
    keys, key = run.event_keys()
    groups = np.split(np.argsort(key, kind="stable"), np.cumsum(np.bincount(key))[:-1])
    strata: list[Stratum] = []
    for (event, parameters), rows in zip(keys, groups, strict=True):
        formula = formulas.for_event(event, parameters)
        timed_params = params_by_key.get((event, parameters), np.zeros((0, parameters)))
        params, spread = run.params_of(rows, parameters), spreads.get((event, parameters))
        names = (formula and formula.names) or param_names.for_event(event, parameters)
        times = max(replicates, spread.replicates if spread is not None else 1)
        for category, members, timed_members in _categories(event, formula, params, timed_params):
            terms = () if formula is None else formula.terms
            label = f"{parameters} {'' if category is None else repr(category)} {event}"
            lines, records = (params[members], timed_params[timed_members]), rows[members]
            strata.append(Stratum(event, *lines, terms, times, category, records, label, names))
    return tuple(strata)


def _categories(
    event: str, formula: EventFormula | None, params: Floats, timed_params: Floats
) -> Iterator[tuple[float | None, Ints, Flags]]:
    """Yield each category of an event with its rows of `params` and of `timed_params`."""
    if formula is None or formula.category is None:
        yield None, np.arange(len(params)), np.ones(len(timed_params), dtype=np.bool_)
        return
    row_values, timed_values = map(formula.category.evaluate, (params, timed_params))
    values, value_of_row = np.unique(row_values, return_inverse=True)
    if len(values) > MOST_CATEGORIES:
        raise ModelError(
            f"{formula.where}: the category splits the event {event!r} "
            f"into {len(values)} classes; at most {MOST_CATEGORIES}"
        )
    order = np.argsort(value_of_row, kind="stable")
    counts = np.bincount(value_of_row, minlength=len(values))
    for value, members in zip(values, np.split(order, np.cumsum(counts)[:-1]), strict=True):
        timed_members = np.isnan(timed_values) if np.isnan(value) else timed_values == value
        yield float(value), members, timed_members


def _remarks(
    timings: Timings, keys: Collection[EventKey], formulas: Formulas, names: ParamNames
) -> Sequence[str]:
    """Return the warnings of timings, and of formulas or names, given the events of the run."""
    remarks = [*formulas.unused(keys), *names.unused(keys, formulas.names(keys))]
    remarks += timings.warnings
    if others := [event_label(*samples.key) for samples in timings if samples.key not in keys]:
        remarks.append(f"timed, but not in the run: {some_text(others, 5)}")
    return remarks
