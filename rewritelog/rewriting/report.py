"""The report of a rewrite: JSON, a text of sentences and tables, and warnings, a sentence each."""

from __future__ import annotations

import math
import platform
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

import rewritelog
from rewritelog.arrays import rounded_sum
from rewritelog.commands.durations import RewriteOptions
from rewritelog.errors import spelled
from rewritelog.formats.files import read_provenance
from rewritelog.formats.traces import AnyTraces, Terms
from rewritelog.models.base import LEVEL
from rewritelog.models.fitted import Fitted
from rewritelog.options import declarations, json_value, reported
from rewritelog.rewriting.block import RewriteTask
from rewritelog.rewriting.predicting import (
    LACKING,
    OF_NO_LENGTH,
    fit_warnings,
    warnings_of_uncovered,
    warnings_of_unused,
)
from rewritelog.rewriting.statistics import (
    BlockCount,
    BlockStatistics,
    BusyTime,
    DurationSum,
    EventLine,
    Expected,
    Overheads,
    Share,
    bracketed_expected,
    event_line,
    expected_json,
    overheads_of,
    predicted_expected,
)
from rewritelog.running import EngineName
from rewritelog.running.locks import cached_property
from rewritelog.text import (
    MOST_ALIKE,
    Readable,
    TextTable,
    count_text,
    faster_text,
    json_of,
    percent_text,
    printable,
    ratio_text,
    some_quoted,
    speedup,
    time_column,
    time_text,
    wrapped,
)
from rewritelog.timings.samples import Timings

if TYPE_CHECKING:
    from rewritelog.rewriting.traces import TraceTask

Task: TypeAlias = "RewriteTask | TraceTask"

_LEAST_ROUNDING_S = 1e-9
"""A smaller difference is a rounding error of floating-point numbers."""

_MOST_EVENTS = 10
"""The most events with rows of their own in the table; the others share a row."""


class RunTime(Struct, frozen=True):
    """The run time of the whole program by a replay of the logs, before and after a rewrite."""

    before_s: float
    after_s: float
    network: str
    """The network of both replays, as text."""
    never_ran: int
    """The number of SEBs or nodes that the replays could not start, and whose time is missing."""
    warnings: tuple[str, ...]
    """What the replays had to ignore, a sentence each."""

    @property
    def speedup(self) -> float | None:
        """The run time before divided by that after; None if either is 0 or infinite."""
        return speedup(self.before_s, self.after_s)

    def to_json(self) -> dict[str, Any]:
        """Return the times as a JSON object."""
        fields = {name: value for name, value in asdict(self).items() if name != "warnings"}
        return {**fields, "speedup": self.speedup}


@dataclass(frozen=True, repr=False, eq=False)
class RewriteReport(Readable):
    """The results of a rewrite."""

    more = "fits, counts, busy times, shares"

    task: Task
    out: Path | None
    options: RewriteOptions
    fitted: Fitted
    timings: Timings | None
    statistics: BlockStatistics
    expected: Mapping[str, Expected]
    """The expected sum of each event's brackets."""
    engine: EngineName
    workers: int
    """The number of threads or ranks."""
    seconds: float
    run_time: RunTime | None = None
    """The run time of the program before and after; None if it was not replayed."""
    no_run_time: str = ""
    """Why the program was not replayed."""

    @property
    def logs(self) -> AnyTraces:
        """What was rewritten."""
        return self.task.logs

    @property
    def terms(self) -> Terms:
        """What reports call SEBs, PEs and brackets, or what the format has in their place."""
        return self.logs.terms

    @property
    def changes_nothing(self) -> bool:
        """Whether all durations stay as they are."""
        is_dilated = self.options.dilations.factor != 1 or self.statistics.matched_patterns
        return not self.fitted.uses_params and not is_dilated

    def count(self, which: BlockCount) -> int:
        """Return a count."""
        return self.statistics.count(which)

    @cached_property
    def events(self) -> tuple[EventLine, ...]:
        """The events that the model was asked for, by name."""
        return tuple(
            event_line(name, event, self.expected[name])
            for name, event in sorted(self.statistics.events.items())
        )

    @property
    def bracketed(self) -> Expected:
        """The expected sum of all brackets before any spread."""
        return bracketed_expected(self.statistics, self.expected)

    @property
    def overheads(self) -> Overheads:
        """The breakdown of the time of all SEBs."""
        return overheads_of(self.statistics)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, one sentence each."""
        return (*warnings_of(self), *(self.run_time.warnings if self.run_time else ()))

    @property
    def hints(self) -> tuple[str, ...]:
        """What is no warning: the notes of a model file, and what concerns only users of TraceR."""
        noted = self.fitted.notes if self.timings is None else ()
        notes = tuple(f"{self.fitted}: {note}" for note in noted)
        replaced = self.count(BlockCount.TRACER_REPLACES)
        if not replaced:
            return notes
        predicted = self.count(BlockCount.BY_MODEL) + self.count(BlockCount.BY_EXACT)
        hint = (
            f"TraceR would ignore {replaced:,} of the "
            f"{count_text(predicted, 'predicted duration')}; replay and export use them "
            "(docs/simulating.md)"
        )
        return (*notes, hint)

    @property
    def by_dilation(self) -> float | None:
        """The share of the new time that only dilation determines; None without any time."""
        if not self.fitted.uses_params:
            untouched = self.overheads.untouched.new_share or 0.0
            return 1.0 - untouched if self.statistics.seconds(DurationSum.NEW) > 0 else None
        return self.overheads.by_dilation.new_share

    @property
    def busy_times(self) -> tuple[BusyTime, BusyTime]:
        """The busy times of the PEs, before and after."""
        pes = len(self.logs.pes)
        of_pe, old_s, new_s = self.statistics.busy_of_pes()
        return (
            BusyTime.of(of_pe, old_s, self.statistics.seconds(DurationSum.OLD) / pes),
            BusyTime.of(of_pe, new_s, self.statistics.seconds(DurationSum.NEW) / pes),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "versions": {
                "rewritelog": rewritelog.__version__,
                "python": platform.python_version(),
                "numpy": version("numpy"),
                "scipy": version("scipy"),
            },
            "logs": str(self.logs.path),
            "out": None if self.out is None else str(self.out),
            "options": reported(self.options, declarations(RewriteOptions)),
            "machine": self.logs.machine_json(),
            "model": {
                "name": self.fitted.name,
                "options": json_value(self.fitted.options),
                "timing_lines": 0 if self.timings is None else len(self.timings),
                "fit": self.fitted.described(),
            },
            "counts": {which.name.lower(): self.count(which) for which in BlockCount},
            "durations_s": {
                which.name.lower(): json_of(self.statistics.seconds(which)) for which in DurationSum
            },
            "speedup": speedup(
                self.statistics.seconds(DurationSum.OLD), self.statistics.seconds(DurationSum.NEW)
            ),
            "run_time": None if self.run_time is None else self.run_time.to_json(),
            "interval_level": LEVEL,
            "bracketed": expected_json(self.bracketed),
            "events": [line.to_json() for line in self.events],
            "overheads": json_of(self.overheads),
            "busy_time": {
                when: busy.to_json()
                for when, busy in zip(("old", "new"), self.busy_times, strict=True)
            },
            "rounding": json_of(self.statistics.rounding),
            "warnings": list(self.warnings),
            "run": {
                "engine": self.engine,
                "jobs": self.options.jobs,
                "flush": not self.options.no_flush,
                "workers": self.workers,
                "seconds": self.seconds,
                "bytes": self.statistics.size_bytes,
            },
        }

    def top_lines(self) -> list[str]:
        """Return the sentences of the summary: what was predicted, and on what basis."""
        warnings = count_text(len(self.warnings), "warning") if self.warnings else "No warnings"
        return [
            *_run_time_sentences(self),
            _sebs_sentence(self),
            *_basis_sentences(self),
            f"{warnings}.",
        ]

    def text(self) -> str:
        """Return the verdict and a table of the time by part, without the warnings themselves."""
        parts = (*self.top_lines(), *_parts_table(self), *_closing(self))
        return "\n".join(wrapped(line) for line in parts)

    def details(self) -> str:
        """Return the rest as text: logs, fits, counts, busy times and shares."""
        parts = (_logs, _model, _sebs, _busy_times, _shares)
        return "\n".join(wrapped(line) for part in parts for line in part(self))


def _run_time_sentences(report: RewriteReport) -> Iterator[str]:
    """Yield the run time before and after, if the logs were replayed."""
    run = report.run_time
    if run is None or report.changes_nothing:
        return
    before, after = time_column([run.before_s, run.after_s])
    yield (
        f"Predicted run time: {before} → {after}, {faster_text(run.before_s, run.after_s)}, on "
        f"{count_text(len(report.logs.pes), report.terms.lane)}, {run.network}."
    )


def _sebs_sentence(report: RewriteReport) -> str:
    if report.changes_nothing:
        copied = "nothing was written" if report.out is None else "OUT is a copy of LOGS"
        return f"Every duration stays as it is, without a model and at dilation 1: {copied}."
    old_s, new_s = (report.statistics.seconds(w) for w in (DurationSum.OLD, DurationSum.NEW))
    old, new = time_column([old_s, new_s])
    items = f"{report.terms.item}s"
    head = f"Predicted time of all {items}" if report.run_time is None else f"All {items} together"
    return f"{head}: {old} → {new}, {faster_text(old_s, new_s)}."


def _basis_sentences(report: RewriteReport) -> Iterator[str]:
    """Yield the basis of the new time: fits with their error, and dilation."""
    alone, untouched = report.by_dilation, report.overheads.untouched.new_share
    of_other_types = (
        f", {percent_text(untouched, 1)} is in {report.terms.item}s of other types"
        if untouched
        else ""
    )
    run = report.run_time
    if untouched and run is not None and run.network != report.terms.recorded:
        of_other_types += " (as recorded: the network counts only in the run time)"
    if alone is None:
        return
    if not report.fitted.uses_params:
        if not report.changes_nothing:
            share = percent_text(alone, 1) if untouched else "All"
            yield f"{share} of the new time rests on {spelled('dilation')} alone{of_other_types}."
        return
    expected = predicted_expected(report.statistics, report.expected)
    within = " (± unknown)" if expected.seconds > 0 and expected.interval_s is None else ""
    if error := _error_text(expected):
        within = f" (±{error})".replace("±> ", "over ±")
    yield (
        f"{percent_text(1 - alone - (untouched or 0.0), 1)} of the new time comes from the model"
        f"{within}, {percent_text(alone, 1)} rests on {spelled('dilation')} alone{of_other_types}."
    )
    predictions = sum(line.by_model + line.by_exact for line in report.events)
    outside = sum(line.outside + line.remote for line in report.events)
    if outside:
        yield f"{percent_text(outside / predictions, 1)} of the predictions are extrapolated."
    elif not predictions:
        yield "The model predicted nothing."


def _error_text(expected: Expected) -> str:
    """Return half the width of an interval relative to the expected value; empty if unknown."""
    if expected.interval_s is None or not 0 < expected.seconds < math.inf:
        return ""
    low_s, high_s = expected.interval_s
    error = (high_s - low_s) / 2 / expected.seconds
    return percent_text(error, 1) if error <= 1 else "> 100 %"


def _logs(report: RewriteReport) -> Iterator[str]:
    target = "nothing written (dry run)" if report.out is None else str(report.out)
    yield f"logs: {printable(str(report.logs.path))} → {printable(target)}"
    yield f"  {report.logs.described}"


def _model(report: RewriteReport) -> Iterator[str]:
    fit = report.fitted
    read = report.timings
    fitted = "" if read is None else f", {fit.fitted_to(len(read))}"
    yield f"model: {printable(fit.name)}{fitted}"
    if fit.options:
        yield f"  {printable(fit.options_text)}"
    yield from (f"  {printable(line)}" for line in fit.lines("summary"))
    if report.options.spread != "none":
        yield f"  spread: {report.options.spread}, seed {report.options.seed}"
    yield f"dilation: {report.options.dilations.factor:g} for what no model covers"
    for name, factor in report.options.dilation_for:
        yield f"  {factor:g} for {report.terms.item}s named {printable(name)}"


def _parts_table(report: RewriteReport) -> Iterator[str]:
    """Yield the table of the time before and after, by part of all time."""
    events = sorted(report.events, key=lambda line: -line.new_s)
    shown = events if len(events) <= _MOST_EVENTS + 1 else events[:_MOST_EVENTS]
    names, seconds = [printable(line.event) for line in shown], [(e.old_s, e.new_s) for e in shown]
    if rest := events[len(shown) :]:
        names.append(f"{len(rest):,} more events")
        seconds.append((rounded_sum(e.old_s for e in rest), rounded_sum(e.new_s for e in rest)))
    for name, share in _others(report) if events else ():
        names.append(name)
        seconds.append((share.old_s, share.new_s))
    old_s, new_s = map(report.statistics.seconds, (DurationSum.OLD, DurationSum.NEW))
    before, after = zip(*seconds, (old_s, new_s), strict=True)
    blank = [""] * (len(seconds) - len(shown))
    dilated = [line.dilated / line.used if line.used else 0.0 for line in shown]
    columns = {
        "part": [*names, f"all {report.terms.item}s"],
        "calls": [f"{e.used:,}" for e in shown] + [*blank, f"{report.count(BlockCount.SEBS):,}"],
        "before": time_column(before),
        "after": time_column(after),
        "speedup": [ratio_text(speedup(*pair)) for pair in zip(before, after, strict=True)],
        "± (90 %)": [_error_text(line.expected) for line in shown],
        "outside": [percent_text(e.extrapolated, 1) if e.extrapolated else "" for e in shown],
        "dilated": [percent_text(share, 1) if share else "" for share in dilated],
    }
    yield from _table(columns)


def _table(columns: dict[str, list[str]]) -> list[str]:
    """Return the lines of a table of the columns with any text; the last cells may be missing."""
    rows = len(next(iter(columns.values())))
    filled = {head: column for head, column in columns.items() if any(column)}
    return TextTable.of({h: c + [""] * (rows - len(c)) for h, c in filled.items()}).lines()


def _others(report: RewriteReport) -> Iterator[tuple[str, Share]]:
    """Yield the parts of the time that belong to no event, each after its name."""
    parts = report.overheads
    if parts.other_brackets.old_s:
        yield "brackets, no record", parts.other_brackets
    if parts.around_brackets.old_s:
        yield "around brackets", parts.around_brackets
    if parts.sebs_without_brackets.old_s:
        yield f"other {report.terms.item}s", parts.sebs_without_brackets
    if parts.untouched.old_s:
        yield f"{report.terms.item}s of other types", parts.untouched


def _sebs(report: RewriteReport) -> Iterator[str]:
    rows = (
        ("by model", BlockCount.BY_MODEL),
        ("by exact match", BlockCount.BY_EXACT),
        ("by dilation", BlockCount.BY_DILATION),
        ("unchanged: same duration", BlockCount.UNCHANGED),
        ("unchanged: zero length", BlockCount.ZERO_LENGTH),
        ("unchanged: unclosed", BlockCount.UNCLOSED),
    )
    messages = report.count(BlockCount.MESSAGES)
    sent = f", {count_text(messages, 'message')}" if report.logs.has_messages else ""
    yield f"{count_text(report.count(BlockCount.SEBS), report.terms.item)}{sent}"
    cells = [(name, f"{report.count(which):,}") for name, which in rows if report.count(which)]
    yield from TextTable(("new durations", f"{report.terms.item}s"), cells).lines()


def _busy_times(report: RewriteReport) -> Iterator[str]:
    before, after = report.busy_times
    rows = [("before", *before.cells()), ("after", *after.cells())]
    lane = report.terms.lane
    yield f"busy time of the {lane}s (imbalance: largest / mean)"
    yield from TextTable(("", "largest", f"of {lane}", "mean", "imbalance"), rows).lines()


def _shares(report: RewriteReport) -> Iterator[str]:
    """Yield the table of shares of time, and of the uses of each event's records."""
    if not report.events:
        return
    lines, parts = report.events, report.overheads
    shares = [(line.event, parts.events[line.event]) for line in lines]
    shares += [*_others(report), ("of all: by dilation alone", parts.by_dilation)]
    counts = {
        "by model": [line.by_model for line in lines],
        "exact": [line.by_exact for line in lines],
        "dilated": [line.dilated for line in lines],
        "not used": [line.not_used for line in lines],
    }
    columns = {
        "part": [printable(name) for name, _ in shares],
        "before": [percent_text(share.old_share, 1) for _, share in shares],
        "after": [percent_text(share.new_share, 1) for _, share in shares],
        "extrapolated": [percent_text(line.extrapolated, 1) for line in lines],
        "coverage": [percent_text(line.expected.coverage, 1) for line in lines],
        **{head: [f"{n:,}" for n in column] for head, column in counts.items() if any(column)},
    }
    intervals = "coverage: of the 90 % interval, on held-out timing lines"
    yield f"shares of all {report.terms.item} time ({intervals})"
    yield from _table(columns)


def _closing(report: RewriteReport) -> Iterator[str]:
    """Yield what was written, who can use it, and where the rest of the report is."""
    kind = "thread" if report.engine == "threads" else "rank"
    target = "nothing written (dry run)" if report.out is None else str(report.out)
    rounding = report.statistics.rounding
    if rounding.item_s >= _LEAST_ROUNDING_S:
        zero = f"; {rounding.to_zero:,} of them became 0" if rounding.to_zero else ""
        yield (
            "new durations are rounded to whole microseconds, each by at most "
            f"{1e6 * rounding.item_s:.2g} µs, their sum in a {report.terms.lane}, and in each of "
            f"its threads and streams, by at most {1e6 * rounding.sum_s:.2g} µs{zero}"
        )
    took = f"done in {report.seconds:.2f} s on {count_text(report.workers, kind)}"
    yield f"{printable(target)}: {took}"
    if report.no_run_time and not report.changes_nothing:
        yield f"no predicted run time: {report.no_run_time}"


_IRREGULAR = {
    "malformed": ("malformed param line", "{} not used: {}"),
    "seqno": (
        "param line",
        "in {} the SEB number and the seqno differ, and the former is used: {}",
    ),
    "no_seb": (
        "param record",
        "not used: {} of SEBs that the log does not have ({}): the params may belong to other logs",
    ),
    "of_no_length": ("param record", f"{OF_NO_LENGTH} ({{}})"),
    "marks_irregular": (
        "SEB",
        "{} with marks that are unmatched, reversed or outside the SEB dilated as a whole ({})",
    ),
    "records_mismatched": (
        "SEB",
        "{} with different numbers of param records and brackets dilated as a whole ({})",
    ),
    "unmarked_with_record": (
        "SEB",
        "{} with a param record but no bracket in the log, taken as bracketed from end to end ({})",
    ),
    "lacking": ("node", f"{LACKING} ({{}})"),
}
"""For each irregularity, what is counted, and the warning, with the count and the first places."""


def warnings_of(report: RewriteReport) -> Iterator[str]:
    """Yield the warnings: of input and options, of the fit, of params, SEBs and events."""
    task, options, statistics = report.task, report.options, report.statistics
    earlier = read_provenance(report.logs.folder)
    if earlier is not None:
        yield (
            f"{report.logs.folder} was rewritten before, {earlier.text()}: its durations are no "
            "longer the host's, and are now rewritten a second time"
        )
    used = statistics.matched_patterns, statistics.events
    yield from warnings_of_unused(options, report.fitted, report.terms, *used)
    yield from _about_total(report)
    yield from _about_shares(report)
    yield from fit_warnings(report.timings, report.fitted)
    yield from task.about_params(statistics)
    yield from _about_irregular(statistics)
    without = statistics.count(BlockCount.BRACKETS_WITHOUT_RECORD)
    if task.params is not None and without:
        yield f"{count_text(without, 'bracket')} without a param record dilated"
    dilated = {
        name: event.counts["dilated"] - event.counts["uncounted"]
        for name, event in statistics.events.items()
    }
    uncovered = {name: count for name, count in dilated.items() if count}
    recorded = {name: event.sums.keys() for name, event in statistics.events.items()}
    yield from warnings_of_uncovered(uncovered, report.fitted, report.terms, recorded)
    yield from _about_events(statistics, report.terms)


_LEAST_TOLD = 0.01
"""The least share of the new time that is told of nodes whose duration was 0."""


def _about_shares(report: RewriteReport) -> Iterator[str]:
    """Yield warnings of the new time: none, replaced by a simulator, or at the host's speed."""
    options, statistics = report.options, report.statistics
    old_s, new_s = (statistics.seconds(w) for w in (DurationSum.OLD, DurationSum.NEW))
    others, is_chosen = report.overheads.untouched, statistics.chosen or not new_s
    is_timeless = is_chosen and (old_s, new_s) == (others.old_s, others.new_s)
    if is_timeless and not report.changes_nothing and report.count(BlockCount.SEBS):
        items = f"all {report.terms.item}s{' of the chosen types' * (new_s > 0)} take no time"
        stay = "a rewrite leaves them so"
        if statistics.chosen:
            stay = "a dilation leaves them so: a model that covers them gives durations"
        yield f"{items}, and {stay}"
    untimed_s = statistics.untimed_s
    if untimed_s > _LEAST_TOLD * new_s and statistics.seconds(DurationSum.BRACKETED_OLD):
        yield (
            f"{percent_text(untimed_s / new_s, 1)} of the new time, {time_text(untimed_s)}, is of "
            f"{count_text(statistics.untimed, 'node')} whose duration was 0: if that means not "
            "timed, the time before lacks theirs"
        )
    if options.roofline:
        share = statistics.on_device_s / new_s if new_s else 0.0
        yield (
            f"{percent_text(share, 1)} of the new time is computed by devices: with "
            "roofline-enabled, ASTRA-sim takes times of its own for it, and version f66c1da for "
            "that of CPUs, too"
        )
    patterns = [pattern for pattern, _ in options.dilation_for]
    is_unknown = options.dilation is None and "*" not in patterns
    if is_unknown and report.fitted.uses_params and report.by_dilation:
        spared = f", unless {spelled('dilation_for')} matches it" if patterns else ""
        yield (
            f"{percent_text(report.by_dilation, 1)} of the new time is not covered by the model "
            f"and keeps the host's speed{spared}: give the target's with {spelled('dilation')}, or "
            f"{spelled('dilation', 1)} if this is intended"
        )


def _about_irregular(statistics: BlockStatistics) -> Iterator[str]:
    for what, (noun, sentence) in _IRREGULAR.items():
        if irregularity := statistics.irregularities.get(what):
            joint = "; " if noun.endswith("line") else ", "
            places = joint.join(place for _, place in irregularity.first)
            yield sentence.format(count_text(irregularity.count, noun), places)


def _about_total(report: RewriteReport) -> Iterator[str]:
    if report.options.total == "measured":
        return
    unused = f"{spelled('total', 'typical')} changes nothing"
    if report.options.spread != "none":
        spread = spelled("spread", "residual")
        yield f"{unused}: with {spread}, durations add up to the measured machine's sum"
    elif not report.fitted.implements("retransformation"):
        name = report.fitted.name
        yield f"{unused}: the model {name!r} predicts no sums of its own"


_DOUBTS = {
    "uncounted": (
        "{items} dilated, since their {record}s have no counters: let the emulation write the "
        "target's counters (PAPI:{{ … }}), or choose a model of parameters"
    ),
    "negative": (
        "{predictions} below zero became 0, or the least that the fit allows: the fit is invalid "
        "there; time this event with such parameters"
    ),
    "outside": (
        "{items} ({share}) with parameters outside the range or the categories of the samples: "
        "their durations are extrapolated; time this event with such parameters too"
    ),
    "remote": (
        "{items} ({share}) with parameters each within the range of the samples, but together "
        "further out than any of them: their durations are extrapolated; time such combinations too"
    ),
    "not_spread": (
        "{items} ({share}) not spread, since the fit has no residuals of held-out samples: time "
        "more samples of this event"
    ),
}
"""The warning, with advice, about records of an event that have a property of `FLAGS`."""


def _about_events(statistics: BlockStatistics, terms: Terms) -> Iterator[str]:
    """Yield a warning for each event and doubt; if a doubt concerns many events, one for all."""
    events = {name: event.counts for name, event in sorted(statistics.events.items())}
    concerned = {doubt: [name for name in events if events[name][doubt]] for doubt in _DOUBTS}
    doubtful = [*dict.fromkeys(name for names in concerned.values() for name in names)]
    quoted = dict(zip(doubtful, some_quoted(doubtful, len(doubtful)), strict=True))
    for name, counts in events.items():
        for doubt, names in concerned.items():
            if counts[doubt] and len(names) <= MOST_ALIKE:
                yield f"event {quoted[name]}: {_doubt_text(doubt, counts, terms)}"
    for doubt, names in concerned.items():
        if len(names) > MOST_ALIKE:
            most = max(names, key=lambda name: events[name]["records"])
            together = sum((events[name] for name in names), Counter[str]())
            text = _doubt_text(doubt, together, terms).replace("this event", "these events")
            yield f"{len(names):,} events, the largest being {quoted[most]}: {text}"


def _doubt_text(doubt: str, counts: Counter[str], terms: Terms) -> str:
    count, predicted = counts[doubt], max(1, counts["by_model"] + counts["by_exact"])
    return _DOUBTS[doubt].format(
        items=count_text(count, terms.predicted),
        predictions=count_text(count, "prediction"),
        record=terms.record,
        share=f"{100 * count / predicted:.3g} % of those predicted",
    )
