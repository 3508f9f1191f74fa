"""Sweeps: predicted run times over a grid of dilations and networks; logs are loaded once."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from msgspec import Struct

from rewritelog import units
from rewritelog.arrays import new_frame
from rewritelog.commands.runs import SweepCommand
from rewritelog.errors import UsageError, spelled
from rewritelog.formats.traces import AnyTraces, Traces
from rewritelog.options import check_factor, listed, pairs
from rewritelog.output.files import write_text_file
from rewritelog.progress import report_progress
from rewritelog.replaying.network import QUANTITIES, Network, to_machine
from rewritelog.replaying.replay import ReplayedTime, prepare, run_time
from rewritelog.running.engines import cores, in_threads
from rewritelog.text import (
    Readable,
    TextTable,
    printable,
    ratio_text,
    time_column,
    time_text,
    wrapped,
)

DILATION, MACHINE = "dilation", "machine"
SWEPT = (DILATION, MACHINE, *QUANTITIES)
"""The quantities that a sweep can vary."""

Axes: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The values of each quantity that a sweep varies, numbers or networks, by their texts."""

_UNITS = {
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "B/s": {"GB/s": 1e9, "MB/s": 1e6},
}
"""Further units in which plain numbers are written, so that they read back as the same numbers."""

MOST_POINTS = 100_000
"""The most points of a grid."""


def axes_of(vary: object, what: str) -> Axes:
    """Return the quantities of a sweep, given as a mapping or as `NAME=VALUE,VALUE` texts.

    Raise `UsageError` for names that are unknown or repeated, for none, and for too many points.
    """
    values_of: dict[str, Sequence[Any]] = {}
    for key, values in pairs(vary, what):
        name = key.strip().replace("_", "-")
        several = listed(values, what) if isinstance(values, str) else units.items_of(values)
        several = [values] if several is None else several
        if name not in SWEPT or not several:
            names = ", ".join(SWEPT)
            raise UsageError(f"{what} {key}: expected NAME=VALUE,VALUE,…; the names are {names}")
        if name in values_of:
            raise UsageError("a sweep can vary each quantity only once")
        values_of[name] = several
    axes: dict[str, dict[str, Any]] = {name: {} for name in values_of}
    for name, axis in axes.items():
        for value in values_of[name]:
            text, number = _written(value, name, f"{what} {name}", axes)
            if axis.setdefault(text, number) != number:
                raise UsageError(f"{what} {name}: two different values would be called {text!r}")
    points = math.prod(map(len, axes.values()))
    if not axes:
        raise UsageError("a sweep needs at least one quantity to vary")
    if points > MOST_POINTS:
        raise UsageError(f"a sweep has at most {MOST_POINTS:,} points, not {points:,}")
    return axes


def _written(value: object, name: str, what: str, varied: Collection[str]) -> tuple[str, Any]:
    """Return a value of an axis as text, and as a number or a network.

    The text of a network without a name has no quantities that are `varied` beside it.
    """
    if isinstance(value, Network) and name == MACHINE:
        return value.name or value.text(varied=varied) or "unnamed", value
    if name == MACHINE:
        machine = str(value).strip()
        return machine, to_machine(machine, what)
    if name == DILATION:
        factor = units.number(value, what)
        check_factor(what, factor)
        return str(value).strip(), factor
    number = QUANTITIES[name].read(value, what)
    if isinstance(value, str) or math.isinf(number):
        return str(value).strip(), number
    base = QUANTITIES[name].base
    larger = ((unit, size) for unit, size in _UNITS.get(base, {}).items() if number >= size)
    unit, size = next(larger, (base, 1.0))
    return f"{number / size:.12g}{unit}", number


class Point(Struct, frozen=True):
    """One point of the grid."""

    values: tuple[str, ...]
    """The value on each axis."""
    predicted_s: float


@dataclass(frozen=True, repr=False, eq=False)
class Sweep(Readable):
    """Predicted run times over a grid."""

    logs: AnyTraces
    network: Network
    """The network of the first point, of which the others vary some quantities."""
    axes: Axes
    points: tuple[Point, ...]
    recorded_s: float
    pes: int
    warnings: tuple[str, ...] = ()
    """The warnings, one sentence each."""

    def to_json(self) -> dict[str, Any]:
        """Return the grid as a JSON object; the network has only what all points have in common."""
        network = {} if MACHINE in self.axes else self.network.to_json()
        for name in self.axes.keys() & QUANTITIES:
            network.pop(QUANTITIES[name].key, None)
        return {
            "logs": str(self.logs.path),
            "network": network or None,
            "pes": self.pes,
            "recorded_s": self.recorded_s,
            "sweep": [
                {**self._values(point), "predicted_s": point.predicted_s} for point in self.points
            ],
            "warnings": list(self.warnings),
        }

    def csv(self) -> str:
        """Return the grid as CSV, one line for each point."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*self.axes, "predicted_s"])
        for point in self.points:
            writer.writerow([*point.values, repr(point.predicted_s)])
        return text.getvalue()

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each point.

        It has a column for each axis, with the values as numbers in SI units or the names of
        machines, and `predicted_s`.
        """
        rows = [self._values(point) for point in self.points]
        columns: dict[str, Any] = {
            name: [row[name] if name == MACHINE else axis[row[name]] for row in rows]
            for name, axis in self.axes.items()
        }
        return new_frame(columns | {"predicted_s": [point.predicted_s for point in self.points]})

    @property
    def table(self) -> TextTable:
        """The run times, also relative to the first one."""
        first = self.points[0].predicted_s
        times = time_column([point.predicted_s for point in self.points])
        rows = [
            (*point.values, time, ratio_text(point.predicted_s / first if first > 0 else None))
            for point, time in zip(self.points, times, strict=True)
        ]
        heads = (*self.axes, "predicted", "relative to the first")
        return TextTable(heads, rows, caption="Predicted run time by setting")

    def top_lines(self) -> list[str]:
        """Return the lines at the top of the text, before they are wrapped."""
        least = min(self.points, key=lambda point: point.predicted_s)
        where = ", ".join(f"{name} {value}" for name, value in self._values(least).items())
        shortest = f"Shortest predicted run time: {time_text(least.predicted_s)}, with {where}"
        recorded = self.logs.terms.recorded
        fixed = "" if MACHINE in self.axes else self.network.text(recorded, varied=self.axes)
        text = f"  network, except for what is varied: {printable(fixed)}"
        return [shortest, *([text] if fixed else [])]

    def text(self) -> str:
        """Return the shortest run time, and the table."""
        return "\n".join((*map(wrapped, self.top_lines()), "", str(self.table)))

    def _values(self, point: Point) -> dict[str, str]:
        """Return the value of each quantity at a point."""
        return dict(zip(self.axes, point.values, strict=True))


def sweep(command: SweepCommand) -> Sweep:
    """Replay logs or traces at every point of a grid; they are loaded only once.

    Raise a `RewriteLogError` for any invalid input.
    """
    axes, network = command.vary, _base_network(command)
    grid = list(itertools.product(*axes.values()))
    settings = [_setting(axes, values, network) for values in grid]
    first = settings[0][0]
    prepared = prepare(command.logs, command, recorded=first.recorded, dilates=DILATION in axes)
    cases = [prepared.case(*setting) for setting in settings]
    workload, runs = prepared.workload, list[ReplayedTime]()
    for run in in_threads(partial(run_time, workload), cases, cores()):
        runs.append(run)
        report_progress("replaying", len(runs), len(grid))
    points = [Point(values, run.predicted_s) for values, run in zip(grid, runs, strict=True)]
    swept = Sweep(
        prepared.logs,
        first,
        axes,
        tuple(points),
        workload.recorded_s,
        len(prepared.logs.pes),
        prepared.warnings_of(runs, [case.network for case in cases]),
    )
    if command.output is not None:
        write_text_file(command.output, swept.csv())
    return swept


def _base_network(command: SweepCommand) -> Network:
    """Return the network to vary; raise `UsageError` if it has or excludes what is varied."""
    axes = command.vary
    for name in axes:
        if getattr(command, field := name.replace("-", "_")) is not None:
            raise UsageError(f"give {spelled(field)}, or vary it, not both")
        if name == "node-latency" and isinstance(command.logs, Traces):
            logs = command.logs
            raise UsageError(f"{name} is for bgTrace logs: {logs.path} has {logs.title}")
        if isinstance(command.network, str) and name not in (DILATION, "node-latency"):
            raise UsageError(f"{spelled('network', 'log')} takes no {name}, which is varied")
    is_whole = MACHINE in axes  # what else is varied is checked with each machine
    if is_whole and command.describes_network:
        raise UsageError("a machine that is varied is a whole network: vary the rest of it, too")
    first = {name: next(iter(axis.values())) for name, axis in axes.items() if name in QUANTITIES}
    return command.read_network({} if is_whole else first)


def _setting(axes: Axes, values: tuple[str, ...], network: Network) -> tuple[Network, float | None]:
    """Return the network and the dilation of a point."""
    numbers = {name: axis[text] for (name, axis), text in zip(axes.items(), values, strict=True)}
    dilation, machine = numbers.pop(DILATION, None), numbers.pop(MACHINE, network)
    return machine.with_quantities(numbers), dilation
