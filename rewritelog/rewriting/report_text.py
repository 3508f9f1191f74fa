"""The text report of a rewrite: a summary in sentences, then tables that fit a terminal."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from rewritelog.rewriting.counts import BlockCount, DurationSum
from rewritelog.rewriting.event_lines import EventLine, speedup
from rewritelog.rewriting.intervals import Expected
from rewritelog.rewriting.overheads import Share
from rewritelog.rewriting.report import Report
from rewritelog.text import (
    NO_VALUE,
    TextTable,
    bytes_text,
    count_text,
    percent_text,
    printable,
    ratio_text,
    wrapped,
)

_LEAST_RATED_BYTES, _LEAST_RATED_S = 100_000_000, 1.0
"""With less data or time the rate would be dominated by the start-up."""


def report_text(report: Report) -> str:
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


def summary_sentences(report: Report) -> list[str]:
    """Return the sentences of the summary: what was predicted, and on what basis."""
    return [_speedup_sentence(report), *_basis_sentences(report), _warnings_sentence(report)]


def _speedup_sentence(report: Report) -> str:
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


def _basis_sentences(report: Report) -> Iterator[str]:
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


def _warnings_sentence(report: Report) -> str:
    warnings = len(report.warnings)
    return f"{count_text(warnings, 'warning')}." if warnings else "No warnings."


def _logs(report: Report) -> Iterator[str]:
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


def _model(report: Report) -> Iterator[str]:
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


def _sebs(report: Report) -> Iterator[str]:
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


def _durations(report: Report) -> Iterator[str]:
    rows = [("all SEBs", DurationSum.OLD, DurationSum.NEW)]
    if report.count(BlockCount.BRACKETS) or report.count(BlockCount.UNMARKED_WITH_RECORD):
        rows.append(("bracketed", DurationSum.BRACKETED_OLD, DurationSum.BRACKETED_NEW))
    cells = []
    for name, old, new in rows:
        before, after = report.statistics.seconds(old), report.statistics.seconds(new)
        cells.append((name, f"{before:.6g}", f"{after:.6g}", ratio_text(speedup(before, after))))
    yield "durations"
    yield from TextTable(("", "old s", "new s", "speedup"), cells).lines()


def _busy_times(report: Report) -> Iterator[str]:
    old, new = report.busy_times
    rows = [("old", *old.cells()), ("new", *new.cells())]
    yield "busy time of the PEs (imbalance: largest / mean)"
    yield from TextTable(("", "largest s", "of PE", "mean s", "imbalance"), rows).lines()


def _events(report: Report) -> Iterator[str]:
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


def _shares(report: Report) -> Iterator[str]:
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


def _closing(report: Report) -> str:
    size_bytes, seconds = report.statistics.size_bytes, report.seconds
    rated = size_bytes >= _LEAST_RATED_BYTES and seconds >= _LEAST_RATED_S
    rate = f" ({bytes_text(size_bytes / seconds)}/s)" if rated else ""
    kind = "thread" if report.options.engine == "threads" else "rank"
    return f"done in {seconds:.2f} s on {count_text(report.workers, kind)}{rate}"
