"""The report of a rewrite of traces, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rewritelog.formats.traces import Traces
from rewritelog.models.base import FittedModel, Model
from rewritelog.options import reported
from rewritelog.rewriting.event_lines import EventLine, event_line, expected_json, speedup
from rewritelog.rewriting.intervals import LEVEL, Expected
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.rewriting.report import RunTime, about_earlier_rewrite, model_json, versions
from rewritelog.rewriting.trace_statistics import TraceStatistics
from rewritelog.running import EngineName
from rewritelog.text import (
    NO_VALUE,
    Readable,
    TextTable,
    count_text,
    faster_text,
    json_number,
    percent_text,
    printable,
    ratio_text,
    time_range_text,
    time_text,
    wrapped,
)
from rewritelog.timings.read import TimingsRead

_SHOWN = 20


@dataclass(frozen=True, repr=False)
class TraceReport(Readable):
    """The results of a rewrite of traces."""

    logs: Traces
    out: Path | None
    options: RewriteOptions
    model: Model[Any]
    fitted: FittedModel
    timings: TimingsRead | None
    statistics: TraceStatistics
    expected: Mapping[str, Expected]
    """The expected sum of each event."""
    engine: EngineName
    workers: int
    """The number of threads or ranks."""
    seconds: float
    run_time: RunTime | None = None
    """The run time before and after, by a replay; None if there was none."""

    @cached_property
    def events(self) -> tuple[EventLine, ...]:
        """The events that the model was asked for, the one with most new time first."""
        lines = (
            event_line(name, event, self.expected[name])
            for name, event in self.statistics.events.items()
        )
        return tuple(sorted(lines, key=lambda line: (-line.new_s, line.event)))

    @property
    def nodes(self) -> int:
        """The number of nodes of all types."""
        return sum(sums.events for sums in self.statistics.types.values())

    @property
    def old_s(self) -> float:
        """The time of all events before."""
        return float(sum(old_s for _, old_s, _ in self.statistics.busy))

    @property
    def new_s(self) -> float:
        """The time of all events after."""
        return float(sum(new_s for _, _, new_s in self.statistics.busy))

    @property
    def types(self) -> str:
        """The types of events whose durations are new."""
        return ", ".join(self.options.chosen_types or (self.logs.computing,))

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, one sentence each."""
        return tuple(self._warnings())

    def _warnings(self) -> Iterator[str]:
        yield from about_earlier_rewrite(self.logs.folder, "measured ones")
        for pattern, _ in self.options.dilation_for:
            if pattern not in self.statistics.matched_patterns:
                shown = printable(pattern)
                yield f"the dilation for {shown!r} was not used: no node's name matches"
        if self.options.event_params is not None and not self.model.uses_params:
            yield f"{self.options.event_params}: not used, since the model takes no parameters"
        if self.options.roofline:
            share = self.statistics.on_device_s / self.new_s if self.new_s else 0.0
            yield (
                f"{percent_text(share, 1)} of the new time is computed by devices: with "
                "roofline-enabled, ASTRA-sim takes times of its own for it"
            )
        yield from () if self.timings is None else self.timings.warnings()
        yield from self.fitted.warnings()
        yield from self._about_predictions()

    def _about_predictions(self) -> Iterator[str]:
        """Yield what is not reliable, over all events, and which event it concerns most."""
        if self.model.uses_params and not self.events:
            yield f"there are no nodes of type {self.types}, so the model predicts nothing"
        said = {
            "dilated": "not covered by the model, and dilated: time their events too",
            "negative": "with a prediction below zero, which became 0: the fit is invalid there",
            "outside": "with parameters outside the range of the samples: extrapolated",
            "remote": "with parameters each within the samples' range, but together further out "
            "than any of them: extrapolated",
        }
        for name, problem in said.items():
            counts = {line.event: getattr(line, name) for line in self.events}
            total = sum(counts.values())
            if total:
                event, most = max(counts.items(), key=lambda item: item[1])
                yield f"{count_text(total, 'node')} {problem} ({most:,} of {printable(event)!r})"
        if self.options.dilation is None and self.model.uses_params:
            left = sum(line.dilated for line in self.events)
            if left:
                yield (
                    "what the model does not cover keeps its duration: give the target's speed "
                    "with --dilation, or --dilation 1 if this is intended"
                )

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        found = self.statistics
        return {
            "versions": versions(),
            "logs": str(self.logs.path),
            "format": self.logs.title,
            "ranks": len(self.logs.units),
            "out": None if self.out is None else str(self.out),
            "options": reported(self.options, RewriteOptions),
            "model": model_json(self.options, self.model, self.timings, self.fitted),
            "counts": {
                "nodes": self.nodes,
                "chosen": found.chosen,
                "changed": found.changed,
                "by_model": found.by_model,
                "by_exact": found.by_exact,
                "vanished": found.vanished,
            },
            "durations_s": {"old": json_number(self.old_s), "new": json_number(self.new_s)},
            "speedup": speedup(self.old_s, self.new_s),
            "run_time": None if self.run_time is None else self.run_time.to_json(),
            "types": {
                name: {
                    "nodes": sums.events,
                    "old_s": json_number(float(sums.old_s)),
                    "new_s": json_number(float(sums.new_s)),
                }
                for name, sums in found.types.items()
            },
            "ranks_s": [
                {"rank": rank, "old_s": json_number(old_s), "new_s": json_number(new_s)}
                for rank, old_s, new_s in found.busy
            ],
            "rounding": {"node_s": found.rounded_s, "rank_s": found.off_s},
            "interval_level": LEVEL,
            "events": [line.to_json() for line in self.events],
            "expected": {name: expected_json(each) for name, each in self.expected.items()},
            "warnings": list(self.warnings),
            "run": {
                "engine": self.engine,
                "jobs": self.options.jobs,
                "workers": self.workers,
                "seconds": self.seconds,
                "bytes": found.size_bytes,
            },
        }

    def text(self) -> str:
        """Return the report as text; warnings are only counted."""
        parts = (self._summary(), *self._head(), *self._types(), *self._events(), *self._end())
        return "\n".join(wrapped(line) for line in parts)

    def details(self) -> str:
        """Return the fits."""
        return "\n".join(printable(line) for line in self.fitted.summary())

    def _summary(self) -> str:
        said = [self._run_time()] if self.run_time is not None else []
        times = f"{time_text(self.old_s)} → {time_text(self.new_s)}"
        if self.statistics.changed:
            said.append(f"Node time {times}, {faster_text(speedup(self.old_s, self.new_s))}.")
        else:
            said.append(f"Every duration stays as it is, node time {times}.")
        warned = len(self.warnings)
        return " ".join([*said, f"{count_text(warned, 'warning')}." if warned else "No warnings."])

    def _run_time(self) -> str:
        times = self.run_time
        if times is None:
            return ""
        both = f"{time_text(times.before_s)} → {time_text(times.after_s)}"
        return f"Run time {both}, {faster_text(times.speedup)}, by a simple replay."

    def _head(self) -> Iterator[str]:
        out = "nothing written (dry run)" if self.out is None else printable(str(self.out))
        yield f"{self.logs.text()} → {out}"
        read = self.timings
        fitted = "" if read is None else f", fitted to {count_text(read.lines, 'timing line')}"
        yield f"model: {printable(self.options.model_name)}{fitted}"
        yield f"dilation: {self.options.general_dilation:g} for what no model covers"
        for name, factor in self.options.dilation_for:
            yield f"  {factor:g} for nodes named {printable(name)}"

    def _types(self) -> Iterator[str]:
        found = self.statistics
        predicted = found.by_model + found.by_exact
        yield (
            f"{count_text(found.chosen, 'node')} of type {self.types}: "
            f"{found.by_model:,} by model, {found.by_exact:,} by exact match, "
            f"{found.chosen - predicted:,} by dilation"
        )
        rows = [
            (
                name,
                f"{sums.events:,}",
                time_text(float(sums.old_s)),
                time_text(float(sums.new_s)),
                ratio_text(speedup(float(sums.old_s), float(sums.new_s))),
            )
            for name, sums in sorted(found.types.items())
        ]
        yield from TextTable(("type", "nodes", "old", "new", "speedup"), rows).lines()

    def _events(self) -> Iterator[str]:
        if not self.events:
            return
        heads = ("event", "nodes", "old", "new", "speedup", "90 % interval", "extrapolated")
        rows = [
            (
                line.event,
                f"{line.records:,}",
                time_text(line.old_s),
                time_text(line.new_s),
                ratio_text(speedup(line.old_s, line.new_s)),
                _interval(line.expected),
                percent_text(line.extrapolated, 1),
            )
            for line in self.events
        ]
        yield from TextTable(heads, rows, most_rows=_SHOWN).lines()

    def _end(self) -> Iterator[str]:
        found = self.statistics
        if found.rounded_s:
            yield (
                f"durations are whole microseconds: single ones were rounded by up to "
                f"{1e6 * found.rounded_s:.2g} µs ({found.vanished:,} to 0), the sum of a rank by "
                f"{1e6 * found.off_s:.2g} µs"
            )
        kind = "thread" if self.engine == "threads" else "rank"
        yield f"done in {self.seconds:.2f} s on {count_text(self.workers, kind)}"


def _interval(expected: Expected) -> str:
    bounds = expected.interval_s
    return NO_VALUE if bounds is None else time_range_text(*bounds)
