"""The report of a rewrite, as text and as JSON."""

from __future__ import annotations

import dataclasses
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
from rewritelog.rewriting.overheads import Overheads, overheads_of
from rewritelog.rewriting.report_warnings import warnings_of, warnings_of_options
from rewritelog.rewriting.statistics import BlockStatistics
from rewritelog.text import (
    Readable,
    json_number,
)
from rewritelog.timings.read import TimingsRead


@dataclass(frozen=True, repr=False)
class Report(Readable):
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
        from rewritelog.rewriting.report_text import report_text  # noqa: PLC0415 - no circle

        return report_text(self)


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
