"""Statistics of the timing lines of files: events, counts, ranges, times and their spread.

Memory is bounded: files are read in chunks, and the spread of times with equal parameters is
followed for the first SETS_KEPT distinct parameter sets only.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracebigsim.files import CHUNK_BYTES, Faults, scan_file
from tracebigsim.lines import LineTable, TimeUnit

SETS_KEPT: Final = 200_000

Floats = NDArray[np.float64]

_UNIT_NAMES: Final = {TimeUnit.SECONDS: "s", TimeUnit.CYCLES: "cycles"}


class LineKind(NamedTuple):
    """The event, number of parameters and unit of lines that are reported together."""

    event: str
    params: int
    """Number of parameters."""
    unit: TimeUnit


class SetSpread(NamedTuple):
    """How much the times of lines with identical parameters differ."""

    relative: float
    """Pooled standard deviation of the times, each relative to the mean of its set."""
    sets: int
    """Number of parameter sets that occur on more than one line."""
    lines: int
    """Number of lines of those sets."""


class _Set(NamedTuple):
    """The times of one parameter set: count, mean, and sum of squared deviations from the mean."""

    times: int
    mean: float
    squares: float

    def combined(self, other: _Set) -> _Set:
        """Return both sets combined, by the updating formula of Chan, Golub and LeVeque (1983)."""
        times = self.times + other.times
        apart = other.mean - self.mean
        mean = self.mean + apart * other.times / times
        squares = self.squares + other.squares + apart * apart * self.times * other.times / times
        return _Set(times, mean, squares)


@dataclass
class KindStats:
    """Statistics of the lines of one kind."""

    kind: LineKind
    lines: int = 0
    total: float = 0.0
    """Sum of the times in the kind's unit; NaN for lines without a time."""
    lowest: tuple[float, ...] = ()
    highest: tuple[float, ...] = ()
    """`lowest` and `highest` are the range of each parameter."""
    sets: dict[bytes, _Set] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """The mean time."""
        return self.total / self.lines

    @property
    def spread(self) -> SetSpread | None:
        """The spread of the sets that have several times, None if there are none."""
        repeated = [each for each in self.sets.values() if each.times > 1 and each.mean > 0]
        if not repeated:
            return None
        squares = math.fsum(each.squares / each.mean**2 for each in repeated)
        lines = sum(each.times for each in repeated)
        return SetSpread(math.sqrt(squares / (lines - len(repeated))), len(repeated), lines)

    def add_ranges(self, params: Floats, times: Floats) -> None:
        """Add lines to ranges and total; `params` has the shape (lines, parameters)."""
        if self.lines:
            params = np.vstack([params, self.lowest, self.highest])
        self.lowest, self.highest = tuple(params.min(axis=0)), tuple(params.max(axis=0))
        self.lines += len(times)
        self.total += float(times.sum())


@dataclass
class Stats:
    """Statistics of all lines of some files."""

    by_kind: dict[LineKind, KindStats] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)
    sets: int = 0
    """The number of parameter sets that are followed."""
    sets_left_out: bool = False
    """Whether there were more than SETS_KEPT parameter sets, so that the spread is of the first."""

    @property
    def kinds(self) -> list[KindStats]:
        """The statistics of each kind, sorted by event, number of parameters and unit."""
        return [self.by_kind[kind] for kind in sorted(self.by_kind)]

    def read(self, path: str | os.PathLike[str]) -> None:
        """Add the lines of a file."""
        for table in scan_file(path, CHUNK_BYTES):
            for kind, params, times in _by_kind(table):
                of_kind = self.by_kind.setdefault(kind, KindStats(kind))
                of_kind.add_ranges(params, times)
                if kind.unit != TimeUnit.NONE:
                    self._add_sets(of_kind.sets, params, times)
            self.faults.add(path, table)

    def _add_sets(self, sets: dict[bytes, _Set], params: Floats, times: Floats) -> None:
        """Add lines to their parameter sets."""
        for key, more in _sets(params, times):
            if key in sets:
                sets[key] = sets[key].combined(more)
            elif self.sets < SETS_KEPT:
                sets[key] = more
                self.sets += 1
            else:
                self.sets_left_out = True


def _by_kind(table: LineTable) -> Iterator[tuple[LineKind, Floats, Floats]]:
    """Yield each kind in a table with its parameters, shape (lines, parameters), and its times."""
    counts = np.diff(table.param_start)
    keys = np.stack([table.event.astype(np.int64), counts, table.time_unit.astype(np.int64)])
    kinds, kind_of_line = np.unique(keys, axis=1, return_inverse=True)
    kind_of_line = kind_of_line.reshape(-1)
    for number, (event, count, unit) in enumerate(kinds.T.tolist()):
        rows = np.flatnonzero(kind_of_line == number)
        columns = table.param_start[rows][:, np.newaxis] + np.arange(count)
        yield (
            LineKind(table.events[event], count, TimeUnit(unit)),
            table.params[columns],
            table.time[rows],
        )


def _sets(params: Floats, times: Floats) -> Iterator[tuple[bytes, _Set]]:
    """Yield each distinct parameter set, as bytes, with its times."""
    if params.shape[1] == 0:
        distinct, inverse = params[:1], np.zeros(len(times), dtype=np.int64)
    else:
        distinct, inverse = np.unique(params, axis=0, return_inverse=True)
        inverse = inverse.reshape(-1)
    counts = np.bincount(inverse)
    means = np.bincount(inverse, weights=times) / counts
    squares = np.bincount(inverse, weights=(times - means[inverse]) ** 2)
    figures = zip(counts.tolist(), means.tolist(), squares.tolist(), strict=True)
    for row, each in zip(distinct, figures, strict=True):
        yield row.tobytes(), _Set(*each)


def file_stats(paths: Iterable[str | os.PathLike[str]]) -> Stats:
    """Return the statistics of files, plain or compressed.

    Raises TraceFileError for a file that cannot be read.
    """
    stats = Stats()
    for path in paths:
        stats.read(path)
    return stats


def stats_text(stats: Stats) -> str:
    """Return statistics as text, a few lines for each event."""
    lines = [line for kind in stats.kinds for line in _kind_lines(kind)]
    if not stats.kinds:
        lines.append("no timing or param lines")
    if stats.sets_left_out:
        lines.append(
            f"variations are those of the first {SETS_KEPT:,} parameter sets; there are more"
        )
    lines.append(f"torn or malformed lines: {stats.faults.count}")
    return "\n".join(lines) + "\n"


def stats_json(stats: Stats) -> str:
    """Return statistics as JSON; a number that is not finite is null."""
    written = {
        "events": [_kind_json(kind) for kind in stats.kinds],
        "malformed_lines": stats.faults.count,
        "malformed": stats.faults.first,
        "spreads_are_of_the_first": SETS_KEPT if stats.sets_left_out else None,
    }
    return json.dumps(written, indent=2, allow_nan=False) + "\n"


def _kind_json(stats: KindStats) -> dict[str, Any]:
    spread = stats.spread
    return {
        "event": stats.kind.event,
        "parameters": stats.kind.params,
        "unit": _UNIT_NAMES.get(stats.kind.unit),
        "lines": stats.lines,
        "lowest": [_finite(number) for number in stats.lowest],
        "highest": [_finite(number) for number in stats.highest],
        "total": _finite(stats.total),
        "mean": _finite(stats.mean),
        "relative_spread": None if spread is None else _finite(spread.relative),
        "repeated_sets": 0 if spread is None else spread.sets,
    }


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _kind_lines(stats: KindStats) -> Iterator[str]:
    """Yield the lines of text of one kind."""
    names = [f"p{number}" for number in range(1, stats.kind.params + 1)]
    count = f"{stats.lines:,} line" + ("s" if stats.lines != 1 else "")
    times = "without times"
    if unit := _UNIT_NAMES.get(stats.kind.unit):
        times = f"{stats.total:.6g} {unit} in all, {stats.mean:.6g} {unit} on average"
    yield f"{stats.kind.event}({', '.join(names)}): {count}, {times}"
    ranges = zip(names, stats.lowest, stats.highest, strict=True)
    if told := ", ".join(f"{name} {low:.6g} to {high:.6g}" for name, low, high in ranges):
        yield f"  range: {told}"
    if (spread := stats.spread) is not None:
        yield (
            f"  variation among identical parameters: {100 * spread.relative:.2g} % "
            f"({spread.lines:,} lines of {spread.sets:,} sets)"
        )
