"""The report of a rewrite: the same facts for a person and for a machine."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np

import rewritelog
from rewritelog.logs.logset import LogSet
from rewritelog.logs.params import ParamFolder
from rewritelog.models.base import FittedModel, Model
from rewritelog.rewriting.event_lines import EventLine, event_line, expected_json, speedup
from rewritelog.rewriting.intervals import LEVEL, Expected, bracketed_expected
from rewritelog.rewriting.kernels.interface import BlockCount, DurationSum
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.rewriting.overheads import Overheads, Share, overheads_of
from rewritelog.rewriting.report_warnings import warnings_of
from rewritelog.rewriting.statistics import BlockStatistics
from rewritelog.text import (
    NO_VALUE,
    Readable,
    Table,
    bytes_text,
    count_text,
    json_number,
    percent_text,
    printable,
)
from rewritelog.timings.read import TimingsRead


@dataclass(frozen=True, repr=False)
class Report(Readable):
    """What a rewrite did, complete when made."""

    logs: LogSet
    out: Path | None
    options: RewriteOptions
    model: Model[Any]
    fitted: FittedModel
    timings: TimingsRead | None
    params: ParamFolder | None
    statistics: BlockStatistics
    expected: Mapping[str, Expected]
    """What each event's brackets are to take."""
    workers: int
    """Threads or ranks that worked."""
    seconds: float

    def count(self, which: BlockCount) -> int:
        """Return how often something was counted."""
        return self.statistics.count(which)

    @property
    def events(self) -> tuple[EventLine, ...]:
        """The events that have param records, by name."""
        return tuple(
            event_line(name, event, self.expected[name])
            for name, event in sorted(self.statistics.events.items())
        )

    @property
    def bracketed(self) -> Expected:
        """What all brackets together take before any spread, and how far off that may be."""
        return bracketed_expected(self.statistics, self.expected.values())

    @property
    def overheads(self) -> Overheads:
        """Where the time of all SEBs goes, and how much rests on the dilation factor alone."""
        return overheads_of(self.statistics)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each thing that a user should know of."""
        return warnings_of(
            self.logs, self.params, self.timings, self.fitted, self.model.columns, self.statistics
        )

    def to_json(self) -> dict[str, Any]:
        """Return the report in types that JSON has."""
        return {
            "versions": _versions(),
            "logs": str(self.logs.folder),
            "out": None if self.out is None else str(self.out),
            "options": _plain(_told(self.options)),
            "machine": dataclasses.asdict(self.logs.summary),
            "model": {
                "name": self.options.model_name,
                "options": _plain(dataclasses.asdict(self.model.options)),
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
        """Return the report for a person."""
        tables = (_sebs(self), _durations(self), _events(self), _shares(self))
        parts = [_heading(self), _model(self), *tables]
        return "\n".join([*(part for part in parts if part), _closing(self)])


def _versions() -> dict[str, str]:
    return {
        "rewritelog": rewritelog.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def _told(options: RewriteOptions) -> dict[str, Any]:
    """Return the options that bear on the result; how it was run stands in a part of its own."""
    run_only = ("engine", "jobs", "block_bytes", "flush")
    return {k: v for k, v in vars(options).items() if k not in run_only}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path | Model) else value


def _heading(report: Report) -> str:
    summary = report.logs.summary
    target = "nothing written (dry run)" if report.out is None else str(report.out)
    nodes = f"{summary.x} × {summary.y} × {summary.z} nodes"
    workers = count_text(summary.num_wth, "worker thread")
    files = count_text(summary.files, "timeline file")
    return (
        f"{printable(str(report.logs.folder))} → {printable(target)}\n"
        f"  {summary.total_pes:,} PEs ({nodes}, {workers} each), log version "
        f"{summary.log_version}, {summary.order}-endian, {files}, "
        f"{bytes_text(report.logs.size_bytes)}"
    )


def _model(report: Report) -> str:
    options = dataclasses.asdict(report.model.options)
    told = ", ".join(f"{name.replace('_', '-')} {value}" for name, value in options.items())
    lines = [f"model: {printable(report.options.model_name)}" + (f" ({told})" if told else "")]
    if report.timings is not None:
        lines[0] += f", {count_text(report.timings.lines, 'timing line')} read"
    lines += [f"  {printable(line)}" for line in report.fitted.summary()]
    if report.options.spread != "none":
        lines.append(f"  spread: {report.options.spread}, seed {report.options.spread_seed}")
    factors = [f"  dilation: {report.options.dilation:g} for what no model covers"]
    factors += [
        f"  dilation: {factor:g} for SEBs named {printable(name)}"
        for name, factor in report.options.dilation_for
    ]
    return "\n".join(lines + factors)


def _sebs(report: Report) -> str:
    rows = (
        ("by model", BlockCount.BY_MODEL),
        ("by exact match", BlockCount.BY_EXACT),
        ("by dilation", BlockCount.BY_DILATION),
        ("left alone: nothing to change", BlockCount.UNCHANGED),
        ("left alone: zero length", BlockCount.ZERO_LENGTH),
        ("left alone: never closed", BlockCount.UNCLOSED),
    )
    sebs, messages = report.count(BlockCount.SEBS), report.count(BlockCount.MESSAGES)
    cells = [(name, f"{report.count(which):,}") for name, which in rows if report.count(which)]
    return str(Table((f"SEBs: {sebs:,}, messages: {messages:,}", ""), cells))


def _durations(report: Report) -> str:
    rows = [("all SEBs", DurationSum.OLD, DurationSum.NEW)]
    if report.count(BlockCount.BRACKETS) or report.count(BlockCount.UNMARKED_WITH_RECORD):
        rows.append(("bracketed", DurationSum.BRACKETED_OLD, DurationSum.BRACKETED_NEW))
    cells = []
    for name, old, new in rows:
        before, after = report.statistics.seconds(old), report.statistics.seconds(new)
        cells.append((name, f"{before:.6g}", f"{after:.6g}", _ratio(before, after)))
    return str(Table(("durations", "old s", "new s", "speedup"), cells))


def _ratio(old_s: float, new_s: float) -> str:
    ratio = speedup(old_s, new_s)
    return NO_VALUE if ratio is None else f"{ratio:.4g}"


def _events(report: Report) -> str:
    if not report.events:
        return ""
    heads = ("records", "by model", "exact", "dilated", "not used", "old s", "new s", "speedup")
    rows = []
    for line in report.events:
        counts = (line.records, line.by_model, line.by_exact, line.dilated, line.not_used)
        times = (f"{line.old_s:.5g}", f"{line.new_s:.5g}", _ratio(line.old_s, line.new_s))
        rows.append((line.event, *(f"{count:,}" for count in counts), *times))
    return str(Table(("event", *heads), rows))


def _shares(report: Report) -> str:
    """Return where the time goes, and how far each event's new sum can be trusted."""
    if not report.events:
        return ""
    parts = report.overheads
    heads = ("old", "new", "extrapolated", "90 % interval, s", "coverage")
    rows = [
        (
            line.event,
            *_share(parts.events[line.event]),
            percent_text(line.extrapolated, 1),
            _interval(line.expected),
            percent_text(line.expected.coverage, 1),
        )
        for line in report.events
    ]
    others = (
        ("brackets without a param record", parts.other_brackets),
        ("in SEBs with brackets, around them", parts.around_brackets),
        ("SEBs without brackets", parts.sebs_without_brackets),
    )
    rows += [(name, *_share(share), "", "", "") for name, share in others if share.old_s]
    rows.append(("by the dilation factor alone", *_share(parts.by_dilation), "", "", ""))
    rows.append(("all brackets together", "", "", "", _interval(report.bracketed), ""))
    return str(Table(("share of all SEB time", *heads), rows))


def _share(share: Share) -> tuple[str, str]:
    return percent_text(share.old, 1), percent_text(share.new, 1)


def _interval(expected: Expected) -> str:
    bounds = expected.interval_s
    return NO_VALUE if bounds is None else f"{bounds[0]:.5g} to {bounds[1]:.5g}"


def _closing(report: Report) -> str:
    rate = bytes_text(report.statistics.size_bytes / report.seconds) if report.seconds > 0 else "–"
    kind = "thread" if report.options.engine == "threads" else "rank"
    jobs = count_text(report.workers, kind)
    return f"done in {report.seconds:.2f} s on {jobs} ({rate}/s)"
