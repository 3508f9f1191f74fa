"""Timing lines as samples of events, read from files or made from arrays and DataFrames."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rewritelog.api.arguments import PathsLike, are_paths, to_column, to_floats, to_inputs, to_table
from rewritelog.errors import UsageError, UsageTypeError
from rewritelog.logs.columns import new_frame
from rewritelog.logs.params import Columns
from rewritelog.models.base import EventTimings
from rewritelog.text import TextTable, count_text, shorten
from rewritelog.timings import read
from rewritelog.timings.read import TimingsRead

TimingsLike: TypeAlias = "Timings | PathsLike | Mapping[str, tuple[ArrayLike, ArrayLike]] | Any"
"""Timings, files of timing lines, `{event: (X, y)}`, or a DataFrame."""

_PARAMETER = re.compile(r"p[1-9][0-9]*")


@dataclass(frozen=True, repr=False)
class Timings:
    """The timing samples of some events: parameters and measured seconds.

    Iterating yields one `EventTimings` for each event and number of parameters, with `event`,
    `params` of shape (samples, parameters) and `seconds` of shape (samples,).

    >>> timings = rewritelog.Timings.from_arrays({"kernel": ([[8], [16]], [1e-6, 2e-6])})
    >>> len(timings)
    2
    """

    read: TimingsRead

    @classmethod
    def from_arrays(cls, samples: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Timings:
        """Return timings from `{event: (X, y)}`: a row of X and a time in seconds per sample."""
        made = []
        for event, pair in samples.items():
            if not isinstance(event, str) or not isinstance(pair, tuple | list) or len(pair) != 2:
                raise UsageTypeError("timings are a mapping of an event's name to (X, y)")
            params = to_table(pair[0], None, f"X of {event!r}")
            seconds = to_column(pair[1], len(params), f"y of {event!r}")
            made.append(EventTimings(event, params, seconds))
        return cls._of(tuple(made))

    @classmethod
    def from_pandas(cls, frame: Any) -> Timings:
        """Return timings from a DataFrame with the columns `event`, `seconds` and `p1`, `p2`, ….

        Parameters after the last one of an event are NaN.
        """
        names = [str(name) for name in frame.columns]
        missing = {"event", "seconds"} - set(names)
        if missing:
            raise UsageError(f"the DataFrame has no column {min(missing)!r}")
        numbers = sorted(int(name[1:]) for name in names if _PARAMETER.fullmatch(name))
        params = to_table(frame[[f"p{number}" for number in numbers]], len(numbers))
        seconds = to_floats(frame["seconds"], "seconds")
        made: dict[tuple[str, int], list[int]] = {}
        counts = len(numbers) - np.isnan(params[:, ::-1]).argmin(axis=1)
        for row, event in enumerate(frame["event"].tolist()):
            known = 0 if np.isnan(params[row]).all() else int(counts[row])
            made.setdefault((str(event), known), []).append(row)
        return cls._of(
            tuple(
                EventTimings(event, params[rows][:, :count], seconds[rows])
                for (event, count), rows in made.items()
            )
        )

    @classmethod
    def _of(cls, samples: tuple[EventTimings, ...]) -> Timings:
        if not samples:
            raise UsageError("timings need at least one event")
        return cls(TimingsRead(samples, sum(len(one.seconds) for one in samples), 0, 0, ()))

    @property
    def events(self) -> tuple[str, ...]:
        """The names of the events."""
        return tuple(dict.fromkeys(one.event for one in self))

    @property
    def columns(self) -> Columns:
        """Whether the columns are `params` or `counters`."""
        return self.read.columns

    @property
    def warnings(self) -> tuple[str, ...]:
        """Irregularities of the files, one sentence each."""
        return self.read.warnings()

    def to_pandas(self) -> Any:
        """Return a DataFrame with the columns `event`, `p1`, `p2`, … and `seconds`."""
        most = max(one.parameters for one in self)
        names = np.concatenate([np.full(len(one.seconds), one.event, dtype=object) for one in self])
        columns: dict[str, Any] = {"event": names}
        for k in range(most):
            parts = (
                one.params[:, k] if k < one.parameters else np.full(len(one.seconds), np.nan)
                for one in self
            )
            columns[f"p{k + 1}"] = np.concatenate(list(parts))
        columns["seconds"] = np.concatenate([one.seconds for one in self])
        return new_frame(columns)

    def __iter__(self) -> Iterator[EventTimings]:
        return iter(self.read.timings)

    def __len__(self) -> int:
        return self.read.lines

    def __repr__(self) -> str:
        names = ", ".join(shorten(name, 30) for name in self.events[:2])
        more = ", …" if len(self.events) > 2 else ""
        lines, events = count_text(len(self), "sample"), count_text(len(self.events), "event")
        return f"<Timings: {lines} of {events} ({names}{more})>"

    def _repr_html_(self) -> str:
        rows = []
        for one in self:
            span = (f"{value:.6g}" for value in (one.seconds.min(), one.seconds.max()))
            rows.append((one.event, str(one.parameters), str(len(one.seconds)), *span))
        heads = ("event", "parameters", "samples", "least s", "most s")
        return TextTable(heads, rows, most_rows=100).html()


def read_timings(
    paths: PathsLike,
    *,
    clock_hz: float | None = None,
    strict: bool = False,
    columns: Columns = "params",
) -> Timings:
    """Read the timing lines of files, plain or compressed, among any other text.

    `clock_hz` is the clock in Hz for times in cycles; with `strict` a malformed line is an error;
    `columns="counters"` reads performance counters (PAPI) in place of parameters. Raise
    `TimingError` if there is no timing line.

    >>> rewritelog.read_timings("sample_logs/cells/timings.txt")
    <Timings: 600 samples of 2 events (Cell::pairForces, Cell::bonded)>
    """
    if columns not in ("params", "counters"):
        raise UsageError(f"columns must be 'params' or 'counters', not {columns!r}")
    files = to_inputs(paths, "the timings")
    return Timings(read.read_timings(files, clock_hz, strict=strict, columns=columns))


def to_timings(given: TimingsLike, columns: Columns = "params", **options: Any) -> Timings:
    """Return timings given in any accepted form."""
    if isinstance(given, Timings):
        if given.columns != columns:
            raise UsageError(
                f"the model is fitted to {columns}: read the timings with columns={columns!r}"
            )
        return given
    if isinstance(given, Mapping):
        return Timings.from_arrays(given)
    if hasattr(given, "columns"):
        return Timings.from_pandas(given)
    return read_timings(given, columns=columns, **options)


def to_files_or_samples(given: TimingsLike, what: str) -> tuple[Path, ...] | Timings:
    """Return the paths of files, or samples given in any other form."""
    if are_paths(given):
        return to_inputs(given, what)
    return given if isinstance(given, Timings) else to_timings(given)
