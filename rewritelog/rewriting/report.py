"""The account of a rewrite: the same facts for a person and for a machine."""

from __future__ import annotations

import dataclasses
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np

import rewritelog
from rewritelog.kernels.account import Figure, RecordState, Sum
from rewritelog.logs.logset import LogSet
from rewritelog.models.base import FittedModel, Model
from rewritelog.rewriting.figures import BlockFigures
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.rewriting.params import ParamFolder
from rewritelog.rewriting.report_warnings import warnings_of
from rewritelog.rewriting.timings import TimingsRead
from rewritelog.text import bytes_text, count_text, printable


@dataclass(frozen=True)
class EventLine:
    """One event's row of the table."""

    event: str
    records: int
    by_model: int
    by_exact: int
    dilated: int
    """Brackets that were found but that the model does not cover."""
    not_used: int
    negative: int
    outside: int
    old_s: float
    new_s: float


@dataclass(frozen=True)
class Report:
    """What a rewrite did, complete when made."""

    logs: LogSet
    out: Path | None
    options: RewriteOptions
    model: Model[Any]
    fitted: FittedModel
    timings: TimingsRead | None
    params: ParamFolder | None
    figures: BlockFigures
    workers: int
    """Threads or ranks that worked."""
    seconds: float

    def count(self, figure: Figure) -> int:
        """Return how often something was counted."""
        return self.figures.count(figure)

    @property
    def events(self) -> tuple[EventLine, ...]:
        """The events that have param records, by name."""
        return tuple(_event_line(name, self.figures) for name in sorted(self.figures.events))

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each thing that a user should know of."""
        return warnings_of(self.logs, self.params, self.timings, self.fitted, self.figures)

    def to_json(self) -> dict[str, Any]:
        """Return the report in types that JSON has."""
        return {
            "versions": _versions(),
            "logs": str(self.logs.folder),
            "out": None if self.out is None else str(self.out),
            "options": _plain(_told(self.options)),
            "machine": dataclasses.asdict(self.logs.summary),
            "model": {
                "name": self.options.model,
                "options": _plain(dataclasses.asdict(self.model.options)),
                "timing_lines": 0 if self.timings is None else self.timings.lines,
                "fit": self.fitted.describe(),
            },
            "counts": {figure.name.lower(): self.count(figure) for figure in Figure},
            "durations_s": {which.name.lower(): self.figures.seconds(which) for which in Sum},
            "speedup": speedup(self.figures.seconds(Sum.OLD), self.figures.seconds(Sum.NEW)),
            "events": [
                dataclasses.asdict(line) | {"speedup": speedup(line.old_s, line.new_s)}
                for line in self.events
            ],
            "warnings": list(self.warnings),
            "run": {
                "engine": self.options.engine,
                "workers": self.workers,
                "seconds": self.seconds,
                "bytes": self.figures.size_bytes,
            },
        }

    def text(self) -> str:
        """Return the report for a person."""
        parts = [_heading(self), _model(self), _sebs(self), _durations(self), _events(self)]
        warnings = [f"warning: {printable(warning)}" for warning in self.warnings]
        return "\n".join([*(part for part in parts if part), *warnings, _closing(self)])


def speedup(old_s: float, new_s: float) -> float | None:
    """Return how many times shorter the new duration is; None where there is none."""
    return old_s / new_s if new_s > 0 else None


def _event_line(name: str, figures: BlockFigures) -> EventLine:
    event = figures.events[name]
    states = {kind: event.states.get(kind, 0) for kind in RecordState}
    used = states[RecordState.PREDICTED]
    dilated = states[RecordState.NOT_COVERED]
    records = sum(states.values())
    return EventLine(
        name, records, used - event.exact, event.exact, dilated, records - used - dilated,
        event.negative, event.outside, float(event.old_s), float(event.new_s),
    )  # fmt: skip


def _versions() -> dict[str, str]:
    return {
        "rewritelog": rewritelog.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def _told(options: RewriteOptions) -> dict[str, Any]:
    """Return the options that bear on the result; how it was run stands in a part of its own."""
    run_only = ("engine", "jobs", "block_bytes")
    return {k: v for k, v in dataclasses.asdict(options).items() if k not in run_only}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


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
    lines = [f"model: {report.options.model}" + (f" ({told})" if told else "")]
    if report.timings is not None:
        lines[0] += f", {count_text(report.timings.lines, 'timing line')} read"
    lines += [f"  {printable(line)}" for line in report.fitted.summary()]
    factors = [f"  dilation: {report.options.dilation:g} for what no model covers"]
    factors += [
        f"  dilation: {factor:g} for SEBs named {printable(name)}"
        for name, factor in report.options.dilation_for
    ]
    return "\n".join(lines + factors)


def _sebs(report: Report) -> str:
    rows = (
        ("by model", Figure.BY_MODEL),
        ("by exact match", Figure.BY_EXACT),
        ("by dilation", Figure.BY_DILATION),
        ("left alone: nothing to change", Figure.UNCHANGED),
        ("left alone: zero length", Figure.ZERO_LENGTH),
        ("left alone: never closed", Figure.UNCLOSED),
    )
    lines = [f"SEBs: {report.count(Figure.SEBS):,}, messages: {report.count(Figure.MESSAGES):,}"]
    lines += [
        f"  {name:<31} {report.count(figure):>14,}" for name, figure in rows if report.count(figure)
    ]
    return "\n".join(lines)


def _durations(report: Report) -> str:
    rows = [("all SEBs", Sum.OLD, Sum.NEW)]
    if report.count(Figure.BRACKETS) or report.count(Figure.UNMARKED_WITH_RECORD):
        rows.append(("bracketed", Sum.BRACKETED_OLD, Sum.BRACKETED_NEW))
    lines = [f"{'durations':<20} {'old s':>14} {'new s':>14} {'speedup':>10}"]
    for name, old, new in rows:
        before, after = report.figures.seconds(old), report.figures.seconds(new)
        lines.append(f"  {name:<18} {before:>14.6g} {after:>14.6g} {_ratio(before, after):>10}")
    return "\n".join(lines)


def _ratio(old_s: float, new_s: float) -> str:
    ratio = speedup(old_s, new_s)
    return "–" if ratio is None else f"{ratio:.4g}"


def _events(report: Report) -> str:
    if not report.events:
        return ""
    width = max(5, *(len(printable(line.event)) for line in report.events))
    heads = ("records", "by model", "exact", "dilated", "not used", "old s", "new s", "speedup")
    lines = [f"{'event':<{width + 2}}" + "".join(f"{head:>12}" for head in heads)]
    for line in report.events:
        counts = (line.records, line.by_model, line.by_exact, line.dilated, line.not_used)
        lines.append(
            f"  {printable(line.event):<{width}}"
            + "".join(f"{count:>12,}" for count in counts)
            + f"{line.old_s:>12.5g}{line.new_s:>12.5g}{_ratio(line.old_s, line.new_s):>12}"
        )
    return "\n".join(lines)


def _closing(report: Report) -> str:
    rate = bytes_text(report.figures.size_bytes / report.seconds) if report.seconds > 0 else "–"
    kind = "thread" if report.options.engine == "threads" else "rank"
    jobs = count_text(report.workers, kind)
    return f"done in {report.seconds:.2f} s on {jobs} ({rate}/s)"
