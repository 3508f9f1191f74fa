"""Timing lines of files, gathered into the samples that a model is fitted to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rewritelog.errors import TimingError
from rewritelog.models.base import EventTimings, Floats
from rewritelog.text import count_text, printable
from tracebigsim.errors import TraceFileError
from tracebigsim.files import scan_file
from tracebigsim.lines import LineTable, TimeUnit

FAULTS_SHOWN = 5


@dataclass(frozen=True)
class TimingsRead:
    """The samples of some files, and what could not be used."""

    timings: tuple[EventTimings, ...]
    lines: int
    """Timing lines that became samples."""
    untimed: int
    """Lines without a time."""
    faulty: int
    """Torn or malformed lines."""
    faults: tuple[str, ...]
    """The first few of them, as `file:line: problem: text`."""

    def warnings(self) -> tuple[str, ...]:
        """Return a sentence for each thing that a user should know of."""
        said = []
        if self.faulty:
            shown = "; ".join(self.faults)
            said.append(f"{count_text(self.faulty, 'malformed timing line')} left out: {shown}")
        if self.untimed:
            said.append(f"{count_text(self.untimed, 'line')} without a time left out of the fit")
        return (*said, *self._mixed_counts())

    def _mixed_counts(self) -> Iterable[str]:
        by_event: dict[str, list[EventTimings]] = {}
        for samples in self.timings:
            by_event.setdefault(samples.event, []).append(samples)
        for event, groups in by_event.items():
            if len(groups) > 1:
                counts = ", ".join(
                    f"{group.params.shape[1]} in {count_text(len(group.seconds), 'line')}"
                    for group in groups
                )
                yield (
                    f"event {printable(event)!r} is timed with different numbers of parameters "
                    f"({counts}); each is a fit of its own"
                )


def fault_text(path: Path, line: int, problem: str, text: str) -> str:
    """Return how a faulty line is reported."""
    return f"{path}:{line}: {problem}: {printable(text)!r}"


def read_timings(
    paths: Iterable[Path], clock_hz: float | None = None, *, strict: bool = False
) -> TimingsRead:
    """Read the timing lines of files, plain or gzip, among whatever else stands in them.

    Raise `TimingError` for a file that cannot be read, for cycles without a clock, for files
    without any timing line, and with `strict` for the first malformed line.
    """
    gathered = _Gathered()
    for path in paths:
        try:
            for table in scan_file(path):
                _refuse_faults(path, table, strict=strict)
                gathered.add(path, table, clock_hz)
        except TraceFileError as error:
            raise TimingError(str(error)) from error
    read = gathered.finished()
    if not read.timings:
        names = ", ".join(str(path) for path in paths)
        raise TimingError(f"{names}: no timing line found" + "".join(
            f"; {warning}" for warning in read.warnings()
        ))  # fmt: skip
    return read


def _refuse_faults(path: Path, table: LineTable, *, strict: bool) -> None:
    if strict and table.faults:
        fault = table.faults[0]
        raise TimingError(fault_text(path, fault.line, fault.problem, fault.text))


class _Gathered:
    def __init__(self) -> None:
        self._parts: dict[tuple[str, int], list[tuple[Floats, Floats]]] = {}
        self._untimed = 0
        self._faulty = 0
        self._faults: list[str] = []

    def add(self, path: Path, table: LineTable, clock_hz: float | None) -> None:
        self._faulty += table.fault_count
        for fault in table.faults[: FAULTS_SHOWN - len(self._faults)]:
            self._faults.append(fault_text(path, fault.line, fault.problem, fault.text))
        timed = table.time_unit != TimeUnit.NONE
        self._untimed += int(np.count_nonzero(~timed))
        seconds = _seconds(path, table, clock_hz)
        counts = np.diff(table.param_start)
        keys = table.event.astype(np.int64) * (1 + counts.max(initial=0)) + counts
        _, first = np.unique(keys[timed], return_index=True)
        for row in np.flatnonzero(timed)[np.sort(first)]:
            rows = np.flatnonzero(timed & (keys == keys[row]))
            name, many = table.events[table.event[row]], int(counts[row])
            params = table.params[table.param_start[rows][:, None] + np.arange(many)]
            self._parts.setdefault((name, many), []).append((params, seconds[rows]))

    def finished(self) -> TimingsRead:
        timings = tuple(
            EventTimings(
                event,
                np.concatenate([params for params, _ in parts]),
                np.concatenate([seconds for _, seconds in parts]),
            )
            for (event, _), parts in self._parts.items()
        )
        lines = sum(len(samples.seconds) for samples in timings)
        return TimingsRead(timings, lines, self._untimed, self._faulty, tuple(self._faults))


def _seconds(path: Path, table: LineTable, clock_hz: float | None) -> Floats:
    cycles = table.time_unit == TimeUnit.CYCLES
    if not cycles.any():
        return table.time
    if clock_hz is None:
        line = table.line[int(np.argmax(cycles))]
        raise TimingError(f"{path}:{line}: the time is in cycles, and no clock is given; "
                          "give the machine's clock with --clock-hz")  # fmt: skip
    return np.where(cycles, table.time / clock_hz, table.time)
