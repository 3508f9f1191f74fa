"""The job of `stats`: what timing lines hold, in bounded memory; how much equal calls vary."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct

from rewritelog.arrays import Floats
from rewritelog.commands.fits import StatsCommand
from rewritelog.core import DistinctPoints
from rewritelog.models.base import EventTimings, ParamNames
from rewritelog.progress import report_progress
from rewritelog.text import (
    Readable,
    count_text,
    json_of,
    parameter_names,
    percent_text,
    printable,
    range_texts,
    time_text,
)
from rewritelog.timings.read import MalformedLines, line_groups, read_param_names
from tracebigsim.lines import TimeUnit

LINES_KEPT = 500_000
"""The variation among identical parameters is computed from about this many lines, the first."""

_UNIT_NAMES: Final = {TimeUnit.SECONDS: "s", TimeUnit.CYCLES: "cycles"}


class EventStats(Struct):
    """The lines of one event with one number of parameters, and times in one unit."""

    event: str
    parameters: int
    unit: TimeUnit
    lines: int = 0
    total: float = 0.0
    """The sum of the times; NaN for lines without a time."""
    ranges: Floats = np.empty(0)
    """The least value of each parameter, and the greatest, shape (2, parameters)."""
    kept: bytearray = bytearray()
    """The parameters and the time of each line kept for the variation of times; as bytes, since
    files may have so many events that an array for each would not fit into memory."""

    def add(self, params: Floats, times: Floats, *, keep: bool) -> None:
        """Add lines, and perhaps `keep` them for the variation of times."""
        rows = np.vstack([params, self.ranges]) if self.lines else params
        self.ranges = np.array([rows.min(axis=0), rows.max(axis=0)])
        self.lines += len(times)
        self.total += float(times.sum())
        if keep:
            self.kept += np.column_stack([params, times]).tobytes()

    @property
    def spread(self) -> ReplicateSpread | None:
        """The variation of times with identical parameters; None if there are none."""
        if self.lines < 2 or not self.kept:
            return None
        rows = np.frombuffer(self.kept).reshape(-1, self.parameters + 1)
        spread = spread_of(EventTimings(self.event, rows[:, :-1], rows[:, -1]))
        return spread if spread.points or spread.left_out else None

    def to_json(self) -> dict[str, Any]:
        """Return the statistics as a JSON object, with null for numbers that are not finite."""
        spread = self.spread
        row = {
            "event": self.event,
            "parameters": self.parameters,
            "unit": _UNIT_NAMES.get(self.unit),
            "lines": self.lines,
            "lowest": list(self.ranges[0]),
            "highest": list(self.ranges[1]),
            "total": self.total,
            "mean": self.total / self.lines,
            "relative_spread": None if spread is None else spread.relative,
            "repeated_points": 0 if spread is None else spread.points,
        }
        row_json: dict[str, Any] = json_of(row)
        return row_json

    def text_lines(self, param_names: ParamNames) -> Iterator[str]:
        """Yield the statistics as lines of text."""
        names = parameter_names(self.parameters, param_names.for_event(self.event, self.parameters))
        times, mean = "without times", self.total / self.lines
        if self.unit == TimeUnit.SECONDS:
            times = f"{time_text(self.total)} in all, {time_text(mean)} on average"
        elif self.unit == TimeUnit.CYCLES:
            shown = [f"{n:,.0f}" if n >= 1e4 else f"{n:.6g}" for n in (self.total, mean)]
            times = "{} cycles in all, {} cycles on average".format(*shown)
        count = count_text(self.lines, "line")
        yield f"{printable(self.event)}({', '.join(names)}): {count}, {times}"
        ranges = zip(names, *self.ranges, strict=True)
        listed = [f"{name} {' to '.join(range_texts(low, high))}" for name, low, high in ranges]
        if listed:
            yield f"  range: {', '.join(listed)}"
        if (spread := self.spread) is not None:
            basis = f"{count_text(spread.lines, 'line')} at {count_text(spread.points, 'point')}"
            if spread.left_out:
                basis += f" without {count_text(spread.left_out, 'outlier')}"
            variation = percent_text(spread.relative)
            yield f"  variation among identical parameters: {variation} ({basis})"


@dataclass(repr=False, eq=False)
class LineStats(Readable):
    """The statistics of all lines of some files."""

    param_names: ParamNames
    by_key: dict[tuple[str, int, TimeUnit], EventStats] = field(default_factory=dict)
    malformed: MalformedLines = field(default_factory=MalformedLines)
    kept: int = 0
    """The number of lines that are kept for the variation of times."""
    are_all_kept: bool = True

    @property
    def events(self) -> list[EventStats]:
        """The statistics by event, number of parameters and unit, sorted by these."""
        return [self.by_key[key] for key in sorted(self.by_key)]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Malformed lines, files that are given more than once, and names of no event."""
        keys = [(event, parameters) for event, parameters, _ in self.by_key]
        return (*self.malformed.warnings("line"), *self.param_names.unused(keys))

    def read(self, path: Path) -> None:
        """Add the lines of a file; raise `TimingError` if it cannot be read."""
        report_progress(f"reading {printable(str(path))}")
        for _, table in self.malformed.scanned(path):
            for unit in TimeUnit:
                for event, rows, params in line_groups(table, "params", table.time_unit == unit):
                    key = event, params.shape[1], unit
                    stats = self.by_key.setdefault(key, EventStats(*key))
                    keep = unit != TimeUnit.NONE and self.kept < LINES_KEPT
                    stats.add(params, table.time[rows], keep=keep)
                    self.kept += len(rows) * keep
                    self.are_all_kept &= keep or unit == TimeUnit.NONE

    def to_json(self) -> dict[str, Any]:
        """Return the statistics as a JSON object."""
        return {
            "events": [event.to_json() for event in self.events],
            "malformed_lines": self.malformed.count,
            "warnings": list(self.warnings),
        }

    def text(self) -> str:
        """Return the statistics as text, a few lines for each event."""
        lines = [line for event in self.events for line in event.text_lines(self.param_names)]
        if not self.are_all_kept:
            lines.append(f"the variation is that of the first {self.kept:,} lines with a time")
        return "\n".join(lines or ["no timing or param lines"])


def line_stats(command: StatsCommand) -> LineStats:
    """Return the statistics of files; raise `TimingError` for one that cannot be read."""
    stats = LineStats(read_param_names(command.param_names) or ParamNames())
    for path in command.files:
        stats.read(path)
    return stats


LARGE_SPREAD = 0.03
"""Measurements of the same thing that vary by more than 2 or 3 per cent should not be relied on
before the reason is known (I. Foster, "Designing and Building Parallel Programs", 1995, 3.5.2)."""

LARGEST_FACTOR = 2.0
"""A time that differs by more than this factor from the median of its point is an outlier."""

MOST_REPLICATES = 10
"""The most replicates of a point."""


class ReplicateSpread(Struct, frozen=True):
    """The variation of one event's times with identical parameters."""

    event: str
    parameters: int
    lines: int
    """The number of timing lines at points measured more than once, without outliers."""
    points: int
    left_out: int
    """The number of outliers."""
    relative: float | None
    """The pooled standard deviation in units of each point's mean; None without repeated points."""

    @property
    def is_large(self) -> bool:
        """Whether points should be measured more than once."""
        return self.relative is not None and self.relative > LARGE_SPREAD

    @property
    def replicates(self) -> int:
        """How often to measure a point for a standard error of at most `LARGE_SPREAD`."""
        if self.relative is None or not self.is_large:
            return 1
        return min(max(2, math.ceil((self.relative / LARGE_SPREAD) ** 2)), MOST_REPLICATES)


def spread_of(timings: EventTimings) -> ReplicateSpread:
    """Return the spread of an event's times, pooled over the points measured repeatedly."""
    timings = timings.usable()
    timings = timings.part(timings.seconds > 0)
    points, seconds = DistinctPoints.of_rows(timings.params), timings.seconds
    point = points.point_of_row
    medians = _medians(points, seconds)[point]
    is_inlier = (seconds <= LARGEST_FACTOR * medians) & (seconds >= medians / LARGEST_FACTOR)
    counts = np.bincount(point[is_inlier], minlength=len(points))
    is_repeated = is_inlier & (counts[point] > 1)
    repeated = counts > 1
    degrees_of_freedom = int((counts[repeated] - 1).sum())
    relative = None
    if degrees_of_freedom:
        sums = np.bincount(point[is_repeated], weights=seconds[is_repeated], minlength=len(points))
        means = sums[point[is_repeated]] / counts[point[is_repeated]]
        relative = math.sqrt(
            float(((seconds[is_repeated] / means - 1) ** 2).sum()) / degrees_of_freedom
        )
    return ReplicateSpread(
        timings.event,
        timings.parameters,
        lines=int(np.count_nonzero(is_repeated)),
        points=int(np.count_nonzero(repeated)),
        left_out=int(np.count_nonzero(~is_inlier)),
        relative=relative,
    )


def _medians(points: DistinctPoints, seconds: Floats) -> Floats:
    """Return the median of each point's times.

    Of two times it is the longer one: if they differ by more than `LARGEST_FACTOR`, either may be
    wrong; the shorter one is then an outlier, and the point says nothing.
    """
    order, starts = points.in_order(seconds)
    ascending, first, counts = seconds[order], starts[:-1], points.counts
    upper = first + counts // 2
    lower = np.where(counts > 2, first + (counts - 1) // 2, upper)
    return np.asarray((ascending[lower] + ascending[upper]) / 2)
