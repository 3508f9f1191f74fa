"""The report of a rewrite: JSON, and a text of sentences and tables that fit a terminal."""

from __future__ import annotations

import dataclasses
import math
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import rewritelog
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import ParamFolder
from rewritelog.formats.bgtrace.provenance import read_provenance
from rewritelog.models.base import FittedModel, Model
from rewritelog.rewriting.busy_times import BusyTime, Largest
from rewritelog.rewriting.counts import BlockCount, DurationSum
from rewritelog.rewriting.event_lines import EventLine, event_line, expected_json, speedup
from rewritelog.rewriting.intervals import LEVEL, Expected, bracketed_expected
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.rewriting.overheads import Overheads, Share, overheads_of
from rewritelog.rewriting.report_warnings import warnings_of, warnings_of_options
from rewritelog.rewriting.statistics import BlockStatistics
from rewritelog.text import (
    NO_VALUE,
    Readable,
    TextTable,
    bytes_text,
    count_text,
    json_number,
    percent_text,
    printable,
    ratio_text,
    wrapped,
)
from rewritelog.timings.read import TimingsRead

_LEAST_RATED_BYTES, _LEAST_RATED_S = 100_000_000, 1.0
"""With less data or time the rate would be dominated by the start-up."""


@dataclass(frozen=True, repr=False)
class RewriteReport(Readable):
    """The results of a rewrite."""

    logs: LogSet
    out: Path | None
    options: RewriteOptions
    model: Model[Any]
    fitted: FittedModel
    timings: TimingsRead | None
    params: ParamFolder | None
    statistics: BlockStatistics
    expected: Mapping[str, Expected]
    """The expected sum of each event's brackets."""
    workers: int
    """The number of threads or ranks."""
    seconds: float

    def count(self, which: BlockCount) -> int:
        """Return a count."""
        return self.statistics.count(which)

    @cached_property
    def events(self) -> tuple[EventLine, ...]:
        """The events that have param records, by name."""
        return tuple(
            event_line(name, event, self.expected[name])
            for name, event in sorted(self.statistics.events.items())
        )

    @property
    def bracketed(self) -> Expected:
        """The expected sum of all brackets before any spread."""
        return bracketed_expected(self.statistics, self.expected.values())

    @property
    def overheads(self) -> Overheads:
        """The breakdown of the time of all SEBs."""
        return overheads_of(self.statistics)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, one sentence each."""
        return (
            *self._about_earlier_rewrite(),
            *warnings_of_options(self.options, self.model, self.statistics, self.by_dilation),
            *warnings_of(
                self.logs,
                self.params,
                self.timings,
                self.fitted,
                self.model.columns,
                self.statistics,
            ),
        )

    def _about_earlier_rewrite(self) -> Iterator[str]:
        earlier = read_provenance(self.logs.folder)
        if earlier is not None:
            yield (
                f"{self.logs.folder} was rewritten before, {earlier.text()}: its durations are no "
                "longer the host's, and are now rewritten a second time"
            )

    @property
    def by_dilation(self) -> float | None:
        """The share of the new time that only dilation determines; None without any time."""
        if not self.model.uses_params:
            return 1.0 if self.statistics.seconds(DurationSum.NEW) > 0 else None
        return self.overheads.by_dilation.new

    @property
    def busy_times(self) -> tuple[BusyTime, BusyTime]:
        """The busy times of the PEs, before and after."""
        pes = len(self.logs.pes)
        of_pe, old_s, new_s = self.statistics.busy_of_pes()
        return (
            BusyTime(Largest.of(of_pe, old_s), self.statistics.seconds(DurationSum.OLD) / pes),
            BusyTime(Largest.of(of_pe, new_s), self.statistics.seconds(DurationSum.NEW) / pes),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "versions": _versions(),
            "logs": str(self.logs.folder),
            "out": None if self.out is None else str(self.out),
            "options": _json_value(_reported(self.options)),
            "machine": dataclasses.asdict(self.logs.summary),
            "model": {
                "name": self.options.model_name,
                "options": _json_value(dataclasses.asdict(self.model.options)),
                "timing_lines": 0 if self.timings is None else self.timings.lines,
                "fit": self.fitted.describe(),
            },
            "counts": {which.name.lower(): self.count(which) for which in BlockCount},
            "durations_s": {
                which.name.lower(): json_number(self.statistics.seconds(which))
                for which in DurationSum
            },
            "speedup": speedup(
                self.statistics.seconds(DurationSum.OLD), self.statistics.seconds(DurationSum.NEW)
            ),
            "interval_level": LEVEL,
            "bracketed": expected_json(self.bracketed),
            "events": [line.to_json() for line in self.events],
            "overheads": self.overheads.to_json(),
            "busy_time": {
                when: busy.to_json()
                for when, busy in zip(("old", "new"), self.busy_times, strict=True)
            },
            "warnings": list(self.warnings),
            "run": {
                "engine": self.options.engine,
                "jobs": self.options.jobs,
                "flush": self.options.flush,
                "workers": self.workers,
                "seconds": self.seconds,
                "bytes": self.statistics.size_bytes,
            },
        }

    def text(self) -> str:
        """Return the report as text, without the warnings themselves."""
        return _text(self)


def _versions() -> dict[str, str]:
    return {
        "rewritelog": rewritelog.__version__,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
    }


def _reported(options: RewriteOptions) -> dict[str, Any]:
    """Return the options that affect the result; others are under `run`."""
    run_only = ("engine", "jobs", "block_bytes", "flush")
    return {k: v for k, v in vars(options).items() if k not in run_only}


def _json_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    return str(value) if isinstance(value, Path | Model) else value


def _text(report: RewriteReport) -> str:
    """Return the report as text; warnings are only counted."""
    parts = (
        " ".join(summary_sentences(report)),
        *_logs(report),
        *_model(report),
        *_sebs(report),
        *_durations(report),
        *_busy_times(report),
        *_events(report),
        *_shares(report),
        _closing(report),
    )
    return "\n".join(wrapped(line) for line in parts)


def summary_sentences(report: RewriteReport) -> list[str]:
    """Return the sentences of the summary: what was predicted, and on what basis."""
    return [_speedup_sentence(report), *_basis_sentences(report), _warnings_sentence(report)]


def _speedup_sentence(report: RewriteReport) -> str:
    old_s, new_s = (report.statistics.seconds(w) for w in (DurationSum.OLD, DurationSum.NEW))
    times = f"{old_s:.6g} s → {new_s:.6g} s"
    options = report.options
    if not report.model.uses_params and options.general_dilation == 1 and not options.dilation_for:
        copied = "nothing was written" if report.out is None else "OUT is a copy of LOGS"
        return f"Every duration stays as it is, without a model and at dilation 1: {copied}."
    ratio = speedup(old_s, new_s)
    if ratio is None or ratio == 1:
        return f"Predicted: SEB time unchanged, {times}."
    size = f"speedup of {ratio:.4g}" if ratio > 1 else f"slowdown of {1 / ratio:.4g}"
    return f"Predicted: SEB time {times}, a {size}."


def _basis_sentences(report: RewriteReport) -> Iterator[str]:
    """Yield the basis of the new time: fits with their error, and dilation."""
    alone = report.by_dilation
    if not report.model.uses_params:
        if report.options.general_dilation != 1 or report.options.dilation_for:
            yield "All of the new time rests on --dilation alone."
        return
    if alone is None:
        return
    error = _relative_error(report.bracketed)
    within = "" if error is None else f" (±{percent_text(error, 1)})"
    yield (
        f"{percent_text(1 - alone, 1)} of the new time comes from the model{within}, "
        f"{percent_text(alone, 1)} rests on --dilation alone."
    )
    predictions = sum(line.by_model + line.by_exact for line in report.events)
    outside = sum(line.outside + line.remote for line in report.events)
    if outside:
        yield f"{percent_text(outside / predictions, 1)} of the predictions are extrapolated."
    elif not predictions:
        yield "The model predicted nothing."


def _relative_error(expected: Expected) -> float | None:
    """Return half the width of an interval divided by the expected value."""
    if expected.interval_s is None or not 0 < expected.seconds < math.inf:
        return None
    low_s, high_s = expected.interval_s
    return (high_s - low_s) / 2 / expected.seconds


def _warnings_sentence(report: RewriteReport) -> str:
    warnings = len(report.warnings)
    return f"{count_text(warnings, 'warning')}." if warnings else "No warnings."


def _logs(report: RewriteReport) -> Iterator[str]:
    summary = report.logs.summary
    target = "nothing written (dry run)" if report.out is None else str(report.out)
    nodes = f"{summary.x} × {summary.y} × {summary.z} nodes"
    workers = count_text(summary.num_wth, "worker thread")
    yield f"logs: {printable(str(report.logs.folder))} → {printable(target)}"
    yield (
        f"  {count_text(summary.total_pes, 'PE')} ({nodes}, {workers} each), log version "
        f"{summary.log_version}, {summary.order}-endian, "
        f"{count_text(summary.files, 'timeline file')}, {bytes_text(report.logs.size_bytes)}"
    )


def _model(report: RewriteReport) -> Iterator[str]:
    options = dataclasses.asdict(report.model.options)
    spelled = ", ".join(f"{name.replace('_', '-')} {value}" for name, value in options.items())
    read = report.timings
    fitted = "" if read is None else f", fitted to {count_text(read.lines, 'timing line')}"
    yield f"model: {printable(report.options.model_name)}{fitted}"
    if spelled:
        yield f"  {printable(spelled)}"
    yield from (f"  {printable(line)}" for line in report.fitted.summary())
    if report.options.spread != "none":
        yield f"  spread: {report.options.spread}, seed {report.options.spread_seed}"
    yield f"dilation: {report.options.general_dilation:g} for what no model covers"
    for name, factor in report.options.dilation_for:
        yield f"  {factor:g} for SEBs named {printable(name)}"


def _sebs(report: RewriteReport) -> Iterator[str]:
    rows = (
        ("by model", BlockCount.BY_MODEL),
        ("by exact match", BlockCount.BY_EXACT),
        ("by dilation", BlockCount.BY_DILATION),
        ("unchanged: same duration", BlockCount.UNCHANGED),
        ("unchanged: zero length", BlockCount.ZERO_LENGTH),
        ("unchanged: unclosed", BlockCount.UNCLOSED),
    )
    sebs, messages = report.count(BlockCount.SEBS), report.count(BlockCount.MESSAGES)
    yield f"{count_text(sebs, 'SEB')}, {count_text(messages, 'message')}"
    cells = [(name, f"{report.count(which):,}") for name, which in rows if report.count(which)]
    yield from TextTable(("new durations", "SEBs"), cells).lines()
    if replaced := report.count(BlockCount.TRACER_REPLACES):
        predicted = report.count(BlockCount.BY_MODEL) + report.count(BlockCount.BY_EXACT)
        yield (
            f"TraceR has durations of its own for {replaced:,} of the "
            f"{count_text(predicted, 'predicted SEB')} (docs/simulating.md)"
        )


def _durations(report: RewriteReport) -> Iterator[str]:
    rows = [("all SEBs", DurationSum.OLD, DurationSum.NEW)]
    if report.count(BlockCount.BRACKETS) or report.count(BlockCount.UNMARKED_WITH_RECORD):
        rows.append(("bracketed", DurationSum.BRACKETED_OLD, DurationSum.BRACKETED_NEW))
    cells = []
    for name, old, new in rows:
        before, after = report.statistics.seconds(old), report.statistics.seconds(new)
        cells.append((name, f"{before:.6g}", f"{after:.6g}", ratio_text(speedup(before, after))))
    yield "durations"
    yield from TextTable(("", "old s", "new s", "speedup"), cells).lines()


def _busy_times(report: RewriteReport) -> Iterator[str]:
    old, new = report.busy_times
    rows = [("old", *old.cells()), ("new", *new.cells())]
    yield "busy time of the PEs (imbalance: largest / mean)"
    yield from TextTable(("", "largest s", "of PE", "mean s", "imbalance"), rows).lines()


def _events(report: RewriteReport) -> Iterator[str]:
    if not report.events:
        return
    yield "param records by event"
    columns = {
        "records": [line.records for line in report.events],
        "by model": [line.by_model for line in report.events],
        "exact": [line.by_exact for line in report.events],
        "dilated": [line.dilated for line in report.events],
        "not used": [line.not_used for line in report.events],
    }
    shown = {head: column for head, column in columns.items() if head == "records" or any(column)}
    names = [line.event for line in report.events]
    counts = [[f"{count:,}" for count in column] for column in shown.values()]
    yield from TextTable(("event", *shown), list(zip(names, *counts, strict=True))).lines()
    yield "events: durations, and the 90 % interval of each sum"
    heads = ("old s", "new s", "speedup", "90 % interval, s")
    rows = [(line.event, *_times(line)) for line in report.events]
    rows.append(("all brackets", "", "", "", _interval(report.bracketed)))
    yield from TextTable(("event", *heads), rows).lines()


def _times(line: EventLine) -> tuple[str, ...]:
    return (
        f"{line.old_s:.5g}",
        f"{line.new_s:.5g}",
        ratio_text(speedup(line.old_s, line.new_s)),
        _interval(line.expected),
    )


def _shares(report: RewriteReport) -> Iterator[str]:
    """Yield the table of shares of time, extrapolated shares, and coverage of intervals."""
    if not report.events:
        return
    parts = report.overheads
    rows = [
        (
            line.event,
            *_share(parts.events[line.event]),
            percent_text(line.extrapolated, 1),
            percent_text(line.expected.coverage, 1),
        )
        for line in report.events
    ]
    others = (
        ("brackets without a param record", parts.other_brackets),
        ("around brackets", parts.around_brackets),
        ("SEBs without brackets", parts.sebs_without_brackets),
    )
    rows += [(name, *_share(share), "", "") for name, share in others if share.old_s]
    rows.append(("of all: by dilation alone", *_share(parts.by_dilation), "", ""))
    yield "shares of all SEB time (coverage: of the 90 % interval, on held-out timing lines)"
    heads = ("old", "new", "extrapolated", "coverage")
    yield from TextTable(("part", *heads), rows).lines()


def _share(share: Share) -> tuple[str, str]:
    return percent_text(share.old, 1), percent_text(share.new, 1)


def _interval(expected: Expected) -> str:
    bounds = expected.interval_s
    return NO_VALUE if bounds is None else f"{bounds[0]:.5g} to {bounds[1]:.5g}"


def _closing(report: RewriteReport) -> str:
    size_bytes, seconds = report.statistics.size_bytes, report.seconds
    rated = size_bytes >= _LEAST_RATED_BYTES and seconds >= _LEAST_RATED_S
    rate = f" ({bytes_text(size_bytes / seconds)}/s)" if rated else ""
    kind = "thread" if report.options.engine == "threads" else "rank"
    return f"done in {seconds:.2f} s on {count_text(report.workers, kind)}{rate}"
