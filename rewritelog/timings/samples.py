"""Timing lines as samples of events, read from files or made from arrays and DataFrames."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import ArrayLike

from rewritelog.arrays import (
    Columns,
    Ints,
    column_names,
    new_frame,
    numbered,
    rows_by_key,
    to_column,
    to_seconds,
    to_table,
)
from rewritelog.errors import UsageError, UsageTypeError
from rewritelog.models.base import EventTimings, Model, ParamNames, entry_of, span_texts
from rewritelog.models.expressions import name_problem, numbers_by_name, usable_names
from rewritelog.options import PathsLike
from rewritelog.paths import to_inputs
from rewritelog.text import (
    TextTable,
    count_text,
    events_text,
    parameter_names,
    quoted,
    some_text,
    warnings_html,
)

if TYPE_CHECKING:
    from rewritelog.models.fitted import Fitted

NUMBERED = re.compile(r"p[1-9][0-9]*")
"""The name of a column that tells which parameter it is."""

_DROP_OR_RENAME = "drop it, or rename it if it is a parameter"
"""What to do with a column that may be the index of a DataFrame."""

_MISSING = {"None", "nan", "NaT", "<NA>"}
"""The texts of missing values in pandas."""


class SampleLocations(Struct, frozen=True):
    """The locations of one event's samples, one array entry for each."""

    file: Ints
    """The index of the file; 0 for samples that are not from files."""
    line: Ints
    """The line, or the place among the event's samples, from 1."""


class Timings(Struct, frozen=True, eq=False):
    """The timing samples of some events: parameters and measured seconds.

    Iterating yields one `EventTimings` for each event and number of parameters, with `event`,
    `params` of shape (samples, parameters) and `seconds` of shape (samples,).

    >>> timings = rewritelog.Timings.from_arrays({"kernel": ([[8], [16]], [1e-6, 2e-6])})
    >>> len(timings)
    2
    """

    timings: tuple[EventTimings, ...]
    """The samples, an entry for each event and number of parameters."""
    names: Mapping[str, tuple[str, ...]] = {}
    """The names of each event's parameters, as far as they are known."""
    columns: Columns = "params"
    """Whether the columns of samples read from files are parameters or counters; those of samples
    made from arrays and DataFrames are what a model takes."""
    uncounted: int = 0
    """The number of lines with a time but without counters, if these are the columns."""
    notes: tuple[str, ...] = ()
    """What is odd about the files, a sentence each."""
    inputs: tuple[Path, ...] = ()
    """The files that the samples were read from."""
    locations: tuple[SampleLocations, ...] = ()
    """The locations of the samples of each entry of `timings`; empty if they are as they came."""

    @classmethod
    def from_arrays(cls, samples: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Timings:
        """Return timings from `{event: (X, y)}`: a row of X and a time in seconds per sample.

        X has shape (samples, parameters), y has shape (samples,). Masked values become NaN; fits
        leave out samples with NaN. The columns of a DataFrame name the parameters, if formulas can
        have these names. Raise `UsageError` for other shapes and negative times, and
        `UsageTypeError` for values that are not numbers.

        >>> rewritelog.Timings.from_arrays({"kernel": ([[8], [16]], [1e-6, 2e-6])})["kernel"].params
        array([[ 8.],
               [16.]])
        """
        timings, names_by_event = [], {}
        for event, pair in samples.items() if isinstance(samples, Mapping) else [(None, None)]:
            if not isinstance(event, str) or not isinstance(pair, tuple | list) or len(pair) != 2:
                raise UsageTypeError("timings are a mapping of an event's name to (X, y)")
            params = to_table(pair[0], None, f"X of {event!r}")
            seconds = to_seconds(pair[1], len(params), f"y of {event!r}")
            timings.append(EventTimings(event, params.copy(), seconds.copy()))
            names = usable_names(getattr(pair[0], "columns", ()))
            if names != (*parameter_names(len(names)),):
                names_by_event[event] = names
        return replace(cls._of(tuple(timings)), names=names_by_event)

    @classmethod
    def from_frame(cls, frame: Any) -> Timings:
        """Return timings from a DataFrame with the columns `event` and `seconds`.

        All other columns are parameters, which formulas and reports call by the columns' names. A
        column that is NaN for all samples of an event is no parameter of it. Columns p1, p2, … are
        taken in this order; parameters after the last one of a sample are NaN. Raise `UsageError`
        for missing columns and names that no parameter can have.

        >>> import pandas
        >>> columns = {"event": ["work"] * 4, "n": [1, 2, 4, 8], "seconds": [2, 4, 8, 16]}
        >>> rewritelog.fit(pandas.DataFrame(columns)).formula("work")
        '2*n'
        """
        if not hasattr(frame, "columns"):
            raise UsageTypeError(f"timings cannot be a {type(frame).__name__}")
        names = column_names(frame, "timings")
        if not_texts := [name for name in names if not isinstance(name, str)]:
            problem = f"the column {not_texts[0]!r} has no name that is a text"
            raise UsageError(f"{problem}; {_DROP_OR_RENAME}")
        missing = {"event", "seconds"} - set(names)
        if missing:
            needed = "'event', the names of the kernels, and 'seconds'"
            raise UsageError(f"the DataFrame has no column {min(missing)!r}: it needs {needed}")
        if duplicates := [name for name in names if names.count(name) > 1]:
            raise UsageError(f"the DataFrame has several columns {duplicates[0]!r}")
        parameters, are_numbered = _parameters_among(names)
        seconds = to_seconds(frame["seconds"], len(frame), "the column 'seconds'")
        columns = [
            to_column(frame[name], len(frame), f"a parameter's column {name!r}")
            for name in parameters
        ]
        params = np.column_stack([np.empty((len(frame), 0)), *columns])
        events = np.asarray(frame["event"], dtype=object).tolist()
        named = (_event_of(*row) for row in enumerate(events, 1))
        is_missing = np.isnan(params)
        last = (~is_missing * np.arange(1, 1 + len(parameters))).max(axis=1, initial=0)
        keys, key = numbered(zip(named, (last * are_numbered).tolist(), strict=True))
        timings, names_by_event = [], {}
        for (event, count), rows in zip(keys, rows_by_key(key, key >= 0), strict=True):
            is_used = (
                np.arange(len(parameters)) < count
                if are_numbered
                else ~is_missing[rows].all(axis=0)
            )
            timings.append(EventTimings(event, params[rows][:, is_used], seconds[rows]))
            if not are_numbered:
                names_by_event[event] = tuple(np.array(parameters, dtype=object)[is_used].tolist())
        return replace(cls._of(tuple(timings)), names=names_by_event)

    @classmethod
    def _of(cls, samples: tuple[EventTimings, ...]) -> Timings:
        if not samples:
            raise UsageError("timings need at least one event")
        return cls(samples)

    def __getitem__(self, event: str) -> EventTimings:
        """Return the samples of an event: `params`, shape (samples, parameters), and `seconds`.

        >>> rewritelog.read_timings("sample_logs/cells/timings.txt")["Cell::bonded"].params.shape
        (200, 1)
        """
        return self.of_event(event)

    def of_event(self, event: str, parameters: int | None = None) -> EventTimings:
        """Return the samples of an event that have this number of parameters, if it is given.

        Raise `UsageError` for an unknown event, and for one that has samples with several numbers
        of parameters, unless `parameters` is one of them.

        >>> rewritelog.read_timings("sample_logs/cells/timings.txt").of_event("Cell::bonded", 1)
        <EventTimings Cell::bonded(p1): 200 samples>
        """
        return entry_of({timings.key: timings for timings in self}, event, parameters, "sample of")

    @property
    def events(self) -> tuple[str, ...]:
        """The names of the events."""
        return tuple(dict.fromkeys(timings.event for timings in self))

    def where(self, entry: int, row: int) -> str:
        """Return the location of a sample of an entry of `timings`, as `file:line`.

        A sample that is not from a file is `sample 7 of work`, counted among those of its event.
        Raise `UsageError` for a sample that does not exist.

        >>> rewritelog.read_timings("sample_logs/cells/timings.txt").where(entry=0, row=0)
        'sample_logs/cells/timings.txt:1'
        """
        try:
            number = range(len(self.timings[entry].seconds))[row]
        except (IndexError, TypeError) as error:
            raise UsageError(f"entry {entry!r} of {self!r} has no sample {row!r}") from error
        line = self.locations[entry].line[number] if self.locations else number + 1
        if not self.inputs:
            return f"sample {line} of {self.timings[entry].event}"
        return f"{self.inputs[int(self.locations[entry].file[number])]}:{line}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, one sentence each."""
        lines_of: dict[str, list[str]] = {}
        for samples in self.timings:
            lines = count_text(len(samples.seconds), "line")
            lines_of.setdefault(samples.event, []).append(f"{samples.parameters} in {lines}")
        mixed = [
            f"{quoted(event)} ({', '.join(lines)})"
            for event, lines in lines_of.items()
            if len(lines) > 1
        ]
        what = "counters" if self.columns == "counters" else "parameters"
        numbers = f"timed with different numbers of {what}, each with its own fit"
        return (*self.notes, *[f"{numbers}: {some_text(mixed, 5)}"] * bool(mixed))

    def to_frame(self) -> Any:
        """Return a DataFrame with the columns `event`, one for each parameter, and `seconds`.

        Parameters without names are `p1`, `p2`, …; those that an event does not have are NaN. Raise
        `UsageError` for a parameter with the name of another column.

        >>> list(rewritelog.read_timings("sample_logs/cells/timings.txt").to_frame().columns)
        ['event', 'p1', 'p2', 'seconds']
        """
        counts = np.array([len(timings.seconds) for timings in self], dtype=np.int64)
        events = np.array([timings.event for timings in self], dtype=object)
        columns: dict[str, Any] = {"event": np.repeat(events, counts)}
        for timings, end in zip(self, np.cumsum(counts), strict=True):
            names = parameter_names(timings.parameters, self.names.get(timings.event, ()))
            if taken := {"event", "seconds"} & {*names}:
                what = f"the parameter {min(taken)!r} of {timings.event!r}"
                raise UsageError(f"{what} has the name of another column of the DataFrame")
            for name, values in zip(names, timings.params.T, strict=True):
                if name not in columns:
                    columns[name] = np.full(len(self), np.nan)
                columns[name][end - len(values) : end] = values
        columns["seconds"] = np.concatenate([(), *(timings.seconds for timings in self)])
        return new_frame(columns)

    def __iter__(self) -> Iterator[EventTimings]:
        return iter(self.timings)

    def __contains__(self, event: object) -> bool:
        return event in self.events

    def __len__(self) -> int:
        return sum(len(samples.seconds) for samples in self.timings)

    def __repr__(self) -> str:
        return f"<Timings: {count_text(len(self), 'sample')} of {events_text(self.events)}>"

    def _repr_html_(self) -> str:
        rows = [
            (
                samples.event,
                str(samples.parameters),
                str(len(samples.seconds)),
                *span_texts(samples.seconds),
            )
            for samples in self
        ]
        heads = ("event", "parameters", "samples", "least s", "most s")
        return TextTable(heads, rows, most_rows=100).html() + warnings_html(self.warnings)


TimingsLike: TypeAlias = Timings | PathsLike | Mapping[str, tuple[ArrayLike, ArrayLike]] | Any
"""Timings, files of timing lines, `{event: (X, y)}`, or a DataFrame."""


def _parameters_among(columns: list[str]) -> tuple[list[str], bool]:
    """Return the columns that are parameters, and whether they are p1, p2, …, sorted if so.

    Raise `UsageError` for a name that no parameter can have.
    """
    parameters = [name for name in columns if name not in ("event", "seconds")]
    if not parameters or not all(NUMBERED.fullmatch(name) for name in parameters):
        for number, name in enumerate(parameters, 1):
            if problem := name_problem(name, number):
                if NUMBERED.fullmatch(name):  # the index of a DataFrame may be before it
                    others = (each for each in parameters if not NUMBERED.fullmatch(each))
                    problem = f"{next(others)!r} is not one of p1, p2, … as {name!r} is"
                raise UsageError(f"the column {problem}; {_DROP_OR_RENAME}")
        return parameters, False
    numbered_names = parameter_names(len(parameters))
    if lacking := [name for name in numbered_names if name not in parameters]:
        raise UsageError(f"the DataFrame has no {lacking[0]}, but {max(parameters)}: rename them")
    return list(numbered_names), True


def _event_of(row: int, event: object) -> str:
    """Return the event of a row of a DataFrame; raise `UsageError` if it has none, or bytes."""
    if not isinstance(event, str) and str(event) in _MISSING:
        raise UsageError(f"the column 'event' has no name in row {row} of the DataFrame")
    if isinstance(event, bytes):
        raise UsageTypeError(f"the column 'event' has bytes, {event!r}, in row {row}")
    return str(event)


def to_files_or_samples(samples: TimingsLike, what: str) -> Timings | tuple[Path, ...]:
    """Return the paths of files, or samples given in any other form."""
    if isinstance(samples, Timings):
        return samples
    if isinstance(samples, Mapping):
        return Timings.from_arrays(samples)
    if hasattr(samples, "columns") and hasattr(samples, "__getitem__"):
        return Timings.from_frame(samples)
    return to_inputs(samples, what)


def in_order_of(timings: Timings, fitted: Fitted) -> Timings:
    """Return samples with the columns in the order of a model's parameters, if both have names.

    Raise `UsageError` for columns of other names, and, if parameters of the model have no names,
    for those in another order.
    """
    ordered = list(timings.timings)
    for entry, samples in enumerate(ordered):
        names, columns = fitted.names_of(*samples.key), timings.names.get(samples.event, ())
        if not names or not columns:
            continue
        if "_" in names:  # the columns of parameters without names are known by their places alone
            _require_places(samples.event, names, columns)
            continue
        if {*names} != {*columns}:
            raise UsageError(
                f"{samples.event!r} has the parameters {', '.join(names)}, and the timings "
                f"have {', '.join(columns)}"
            )
        order = [columns.index(name) for name in names]
        ordered[entry] = replace(samples, params=samples.params[:, order])
    return replace(timings, timings=tuple(ordered))


def fit_named(model: Model[Any], name: str, timings: Timings, names: ParamNames | None) -> Fitted:
    """Fit a model; formulas name its parameters, or else `names`, or else the columns of samples.

    Raise `UsageError` as `require_order` does.
    """
    from rewritelog.models.fitted import Fitted  # noqa: PLC0415 - only some runs need it

    fitted = Fitted.of(model, name, timings.timings).named(or_columns(names, timings))
    require_order(timings, fitted.names_of)
    return fitted


def or_columns(names: ParamNames | None, timings: Timings) -> ParamNames:
    """Return the names of a file, if there is one, and those of the columns of other events."""
    return ParamNames(names.entries if names else {}, timings.names)


def require_order(timings: Timings, names_of: Callable[[str, int], tuple[str, ...]]) -> None:
    """Raise `UsageError` if a parameter has the name of a column at another place.

    Samples are taken as they came, as the arguments of a program; names that no column has rename.
    """
    for samples in timings.timings:
        columns = timings.names.get(samples.event, ())
        _require_places(samples.event, names_of(*samples.key), columns)


def _require_places(event: str, names: tuple[str, ...], columns: tuple[str, ...]) -> None:
    places = numbers_by_name(columns)
    for name, place in numbers_by_name(names).items():
        if places.get(name, place) != place:
            raise UsageError(
                f"{event!r} has the parameters {', '.join(names)}, in this order, and the timings "
                f"have {', '.join(columns)}: give both in the same order"
            )


def usable(timings: Timings) -> Timings:
    """Return the samples that hold finite numbers only, with a note on the others."""
    rows = [samples.are_finite for samples in timings.timings]
    left_out = sum(int(np.count_nonzero(~of_event)) for of_event in rows)
    if not left_out:
        return timings
    note = f"{count_text(left_out, 'sample')} with numbers that are not finite left out"
    locations = timings.locations or tuple(
        SampleLocations(np.zeros(len(of_event), np.int64), np.arange(1, len(of_event) + 1))
        for of_event in rows
    )
    pairs, places = zip(timings.timings, rows, strict=True), zip(locations, rows, strict=True)
    return replace(
        timings,
        timings=tuple(samples.part(of_event) for samples, of_event in pairs),
        locations=tuple(
            SampleLocations(place.file[of_event], place.line[of_event])
            for place, of_event in places
        ),
        notes=(*timings.notes, note),
    )


def files_of(timings: Timings | tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the files of timings; none for samples that are not from files."""
    return timings.inputs if isinstance(timings, Timings) else timings
