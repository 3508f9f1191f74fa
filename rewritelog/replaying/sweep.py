"""Sweeps: predicted run times over a grid of dilations and networks; logs are read once."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewritelog import units
from rewritelog.errors import UsageError
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.progress import report_progress
from rewritelog.replaying.network import QUANTITIES, Network, with_unit
from rewritelog.replaying.prepare import prepare
from rewritelog.replaying.simulate import run_times
from rewritelog.rewriting.options import DurationOptions, check_factor
from rewritelog.text import NO_VALUE, Readable, TextTable, printable, time_column, time_text

DILATION = "dilation"
SWEPT = (DILATION, *QUANTITIES)
"""The quantities that a sweep can vary."""

MOST_POINTS = 100_000
"""The most points of a grid."""


@dataclass(frozen=True)
class Axis:
    """One quantity of a sweep with its values as text."""

    name: str
    values: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Axis:
        """Return the axis of a text such as `dilation=0.5,1`; raise `UsageError` for any other."""
        name, _, listed = text.partition("=")
        return cls.of(name, [value for value in listed.split(",") if value.strip()], text)

    @classmethod
    def of(cls, name: str, values: Iterable[object], text: str = "") -> Axis:
        """Return the axis of a quantity; raise `UsageError` quoting `text` for unknown ones."""
        known = name.strip().replace("_", "-")
        texts = tuple(with_unit(known, value).strip() for value in values)
        if known not in SWEPT or not texts:
            names = ", ".join(SWEPT)
            raise UsageError(
                f"--vary {text or name}: expected NAME=VALUE,VALUE,…; the names are {names}"
            )
        return cls(known, texts)


@dataclass(frozen=True)
class Point:
    """One point of the grid."""

    values: tuple[str, ...]
    """The value on each axis."""
    predicted_s: float


@dataclass(frozen=True, repr=False)
class Sweep(Readable):
    """Predicted run times over a grid."""

    logs: LogSet
    network: Network
    """The network with the quantities that are not varied."""
    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    recorded_s: float
    pes: int
    warnings: tuple[str, ...] = ()
    """The warnings, one sentence each."""

    def to_json(self) -> dict[str, Any]:
        """Return the grid as a JSON object."""
        names = [axis.name for axis in self.axes]
        return {
            "logs": str(self.logs.folder),
            "network": self.network.to_json(),
            "pes": self.pes,
            "recorded_s": self.recorded_s,
            "sweep": [
                {**dict(zip(names, point.values, strict=True)), "predicted_s": point.predicted_s}
                for point in self.points
            ],
            "warnings": list(self.warnings),
        }

    def csv(self) -> str:
        """Return the grid as CSV, one line for each point."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*(axis.name for axis in self.axes), "predicted_s"])
        for point in self.points:
            writer.writerow([*point.values, repr(point.predicted_s)])
        return text.getvalue()

    def text(self) -> str:
        """Return the grid as text: run times, also relative to the first one."""
        least = min(self.points, key=lambda point: point.predicted_s)
        where = ", ".join(
            f"{axis.name} {value}" for axis, value in zip(self.axes, least.values, strict=True)
        )
        first = self.points[0].predicted_s
        times = time_column([point.predicted_s for point in self.points])
        rows = [
            (
                *point.values,
                time,
                f"{point.predicted_s / first:.4f}" if first > 0 else NO_VALUE,
            )
            for point, time in zip(self.points, times, strict=True)
        ]
        heads = (*(axis.name for axis in self.axes), "predicted", "relative to the first")
        return "\n".join(
            (
                f"Shortest predicted run time: {time_text(least.predicted_s)}, with {where}",
                *self._network_lines(),
                "",
                str(TextTable(heads, rows)),
            )
        )

    def _network_lines(self) -> tuple[str, ...]:
        """Return the network that is not varied, unless the axes determine all of it."""
        varied = {axis.name for axis in self.axes}
        if self.network.recorded and varied & {"latency", "bandwidth"}:
            return ()
        return (f"  network, except for what is varied: {printable(self.network.text())}",)


def sweep(
    logs: LogSet | str | Path,
    axes: Sequence[Axis],
    network: Network | None = None,
    options: DurationOptions | None = None,
) -> Sweep:
    """Replay a log set at every point of a grid; it is read, and durations predicted, only once.

    Raise a `RewriteLogError` for any invalid input.
    """
    network, options = network or Network(), options or DurationOptions()
    _check_axes(axes)
    grid = list(itertools.product(*(axis.values for axis in axes)))
    settings = [_setting(axes, values, network) for values in grid]
    prepared = prepare(logs, options)
    cases = [prepared.case(*setting) for setting in settings]
    points = []
    times = run_times(prepared.workload, cases, options.jobs)
    for done, (values, predicted_s) in enumerate(zip(grid, times, strict=True), 1):
        points.append(Point(values, predicted_s))
        report_progress("replaying", done, len(grid))
    workload = prepared.workload
    return Sweep(
        prepared.logs,
        network,
        tuple(axes),
        tuple(points),
        workload.recorded_s,
        workload.pes,
        prepared.warnings,
    )


def _check_axes(axes: Sequence[Axis]) -> None:
    names = [axis.name for axis in axes]
    if not axes:
        raise UsageError("a sweep needs at least one quantity to vary")
    if len(set(names)) < len(names):
        raise UsageError("a sweep can vary each quantity only once")
    points = 1
    for axis in axes:
        points *= len(axis.values)
    if points > MOST_POINTS:
        raise UsageError(f"a sweep has at most {MOST_POINTS:,} points, not {points:,}")


def _setting(
    axes: Sequence[Axis], values: tuple[str, ...], network: Network
) -> tuple[Network, float | None]:
    """Return the network and the dilation of a point."""
    texts = dict(zip((axis.name for axis in axes), values, strict=True))
    dilation = None
    if DILATION in texts:
        dilation = units.number(texts.pop(DILATION), "--vary dilation")
        check_factor("the dilation", dilation)
    return network.with_quantities(texts), dilation
