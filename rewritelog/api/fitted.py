"""Fitted models: predictions, intervals, and model files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rewritelog.arrays import Floats, column_names, new_frame, to_column, to_floats, to_table
from rewritelog.errors import ModelError, UsageError
from rewritelog.evaluation.fit import write_model
from rewritelog.models.base import (
    EventKey,
    FitByEvent,
    entry_of,
    event_names,
    interval_of_sum,
    require_name,
    unknown_event,
)
from rewritelog.models.fit_report import fits_table, formula_text, terms_of
from rewritelog.models.fitted import Fitted
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.model_file import model_file_text
from rewritelog.options import PathLike
from rewritelog.output.files import check_outputs
from rewritelog.paths import to_input, to_output
from rewritelog.text import (
    Lines,
    TextTable,
    count_text,
    events_text,
    parameter_names,
    shorten,
    warnings_html,
)
from rewritelog.timings.read import read_model_file, to_timings
from rewritelog.timings.samples import NUMBERED, Timings, TimingsLike, in_order_of
from rewritelog.viewing.pictures import Picture, fit_figure

Rows: TypeAlias = ArrayLike | Mapping[str, ArrayLike]
"""Rows of parameters: an array, lists, a DataFrame, or columns by name."""


class Total(NamedTuple):
    """The time of several calls together, in seconds."""

    seconds: float
    low_s: float
    """The lower bound of the 90 % interval; NaN if unknown."""
    high_s: float
    """The upper bound."""


@dataclass(frozen=True, repr=False, eq=False)
class FittedModel(Fitted):
    """A model fitted to timings: it predicts seconds from the parameters of an event.

    `name` is that of the model, `raw` the fit as the model returned it, `columns` what it predicts
    from, `params` or `counters`, and `source` the timing lines that it was fitted to.

    >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
    >>> fitted.predict("Cell::pairForces", [[53, 11], [66, 17]])
    array([4.89758546e-06, 7.58604713e-06])
    >>> fitted.predict("Cell::pairForces", {"p1": 53, "p2": 11})
    array([4.89758546e-06])
    """

    timings: Timings | None = None
    """The samples that it was fitted to; None if they are not at hand."""

    @property
    def events(self) -> tuple[str, ...]:
        """The names of the events with a fit."""
        return tuple(dict.fromkeys(event for event, _ in self.keys))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about its samples and the reliability of the fit, one sentence each."""
        of_timings = self.timings.warnings if self.timings else ()
        return (*of_timings, *self.notes, *self.lines("warnings"))

    def predict(self, event: str, X: Rows) -> Floats:
        """Return the seconds of each row of X, at least 0, shape (rows,).

        X is an array or lists with one column for each parameter, or a DataFrame or dictionary
        of columns by the names of the parameters; other columns are ignored. The result is NaN
        where the fit is undefined. These are usual times of single calls; `total` is for their sum.
        Raise `UsageError` for an event without a fit for that many parameters, and `UsageTypeError`
        for what is no number.

        >>> fitted = rewritelog.fit({"work": ([[1], [2], [4], [8]], [1e-6, 2e-6, 4e-6, 8e-6])})
        >>> fitted.predict("work", {"p1": [3, 16]})
        array([3.0e-06, 1.6e-05])
        """
        return self.prediction(event, self._table(event, X)).seconds

    def interval(self, event: str, X: Rows) -> tuple[Floats, Floats]:
        """Return the lower and upper bounds in seconds of the 90 % interval of each row.

        They are NaN if there were too few samples, and where the fit is below zero. Raise
        `UsageError` as `predict` does, and `ModelError` for a model without intervals.

        >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
        >>> low, high = fitted.interval("Cell::bonded", [[40], [80]])
        >>> (low < fitted.predict("Cell::bonded", [[40], [80]])) & (low < high)
        array([ True,  True])
        """
        if not self.implements("interval"):
            raise ModelError(f"the model {self.name!r} has no intervals")
        return self.bounds(event, self._table(event, X))

    def total(self, event: str, X: Rows) -> Total:
        """Return the time of all rows of X together, with the bounds of its 90 % interval.

        Usual times, as `predict` returns them, add up to too little where some calls take much
        longer: like `rewrite`, this multiplies each by a factor from held-out samples. The bounds
        are NaN where the model does not know them. Raise `UsageError` as `predict` does.

        >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
        >>> seconds, low_s, high_s = fitted.total("Cell::bonded", [[40]] * 1000)
        >>> low_s < seconds < high_s
        True
        """
        table = self._table(event, X)
        prediction, spread = self.prediction(event, table), self.spread(event, table.shape[1])
        seconds, widening = self.total_seconds(event, table, prediction), prediction.widening
        sum_s = math.fsum(seconds)
        if spread is None or widening is None:
            return Total(sum_s, math.nan, math.nan)
        exact_s = seconds[prediction.exact]
        parts = seconds**2, seconds * (widening - 1), exact_s, exact_s**2
        deviation_s = spread.deviation_s(sum_s, *map(math.fsum, parts))
        return Total(sum_s, *interval_of_sum(sum_s, deviation_s))

    @property
    def r2(self) -> dict[str, float]:
        """R² of each event's fit on its own samples; NaN where the times do not vary.

        For an event with classes it is that of the class from which most errors come.

        Keys are names of events, or as in `work(p1, p2)` for an event with fits for several numbers
        of parameters. Raise `ModelError` for a model that has no formulas.

        >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
        >>> {event: round(r2, 2) for event, r2 in fitted.r2.items()}
        {'Cell::pairForces': 0.99, 'Cell::bonded': 0.98}
        """
        fits = self._functions()
        qualities = (_number(fit.quality.r2) for fit in fits.values())
        return dict(zip(event_names(fits), qualities, strict=True))

    def formula(
        self,
        event: str,
        language: Literal["text", "python", "latex"] = "text",
        *,
        parameters: int | None = None,
    ) -> str:
        r"""Return an event's seconds as a formula of its parameters.

        `text` is the syntax of formulas files, and `latex` is for a paper. `python` is evaluated
        with numpy as `np`, which lacks only `torus_distance`, and with floats: products of integer
        columns may overflow. The formula leaves out exact matches, corrections, extrapolation, and
        that predictions are at least 0; for an event with classes it is that of all samples. A mean
        of several formulas, the product of their powers, leaves out factors that are not positive.
        `parameters` is needed for an event with fits for several numbers of parameters. Raise
        `UsageError` for an event without a fit, and `ModelError` for a model that has no formulas.

        >>> timings = {"work": ([[1], [2], [4], [8]], [2e-6, 4e-6, 8e-6, 16e-6])}
        >>> print(rewritelog.fit(timings).formula("work", "latex"))
        2 \cdot 10^{-6} \, p_{1}
        """
        return formula_text(entry_of(self._functions(), event, parameters, "fit for"), language)

    def coefficients(self, event: str, *, parameters: int | None = None) -> dict[str, float]:
        """Return the coefficient of each term of an event's formula, in seconds.

        Raise an error as `formula` does, and `ModelError` for a mean of several formulas.

        >>> timings = {"work": ([[1], [2], [4], [8]], [2e-6, 4e-6, 8e-6, 16e-6])}
        >>> rewritelog.fit(timings).coefficients("work")
        {'p1': 2e-06}
        """
        return terms_of(entry_of(self._functions(), event, parameters, "fit for"))

    def plot(
        self,
        event: str,
        timings: TimingsLike | None = None,
        *,
        kind: Literal["svg", "png"] = "svg",
        parameters: int | None = None,
    ) -> Picture:
        """Return a picture of an event's measured and predicted seconds over its parameters.

        `timings` are needed for a model read from a file. Raise `UsageError` for an event without
        samples, and if the extra `rewritelog[view]` is not installed.

        >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
        >>> fitted.plot("Cell::bonded").kind
        'svg'
        """
        if not isinstance(kind, str) or kind not in ("svg", "png"):
            raise UsageError(f"kind must be 'svg' or 'png', not {kind!r}")
        read = self.timings if timings is None else to_timings(timings, self.columns)
        if read is None:
            raise UsageError("a model file has no samples: give timings to plot")
        samples = in_order_of(read, self).of_event(event, parameters).usable()
        if not len(samples.seconds):
            raise UsageError(f"no sample of {event!r} has only finite numbers")
        names = parameter_names(samples.parameters, self.names_of(*samples.key))
        return Picture(fit_figure(self, samples, tuple(names), kind), kind)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each fit.

        Its columns are event, parameters, family, samples, r2, held_out_error (a share) and
        formula. For an event with classes, r2 and held_out_error are those of the class from which
        most errors come, and the rest is that of all samples. Raise `ModelError` for a model that
        has no formulas, and `RewriteLogError` if pandas is not installed.

        >>> rewritelog.fit("sample_logs/cells/timings.txt").to_frame()["samples"].tolist()
        [400, 200]
        """
        fits = self._functions()
        columns: dict[str, Any] = {
            "event": [event for event, _ in fits],
            "parameters": [count for _, count in fits],
            "family": [fit.whole.family for fit in fits.values()],
            "samples": [fit.samples for fit in fits.values()],
            "r2": [_number(fit.quality.r2) for fit in fits.values()],
            "held_out_error": [_number(fit.quality.held_out_error) for fit in fits.values()],
            "formula": [formula_text(fit) for fit in fits.values()],
        }
        return new_frame(columns)

    def _functions(self) -> Mapping[EventKey, EventFit]:
        """Return the fits of all events; raise `ModelError` for a model that has none."""
        if not isinstance(self.raw, FitByEvent):
            raise ModelError(f"the model {self.name!r} has no formulas")
        return self.raw.fits

    def summary(self) -> str:
        """Return the fit as text: formula, quality and range of each event."""
        return Lines("\n".join(self.lines("summary")))

    def to_json(self) -> dict[str, Any]:
        """Return the content of the model file; raise `ModelError` if there can be none."""
        content: dict[str, Any] = json.loads(model_file_text(self))
        return content

    def save(self, path: PathLike) -> None:
        """Write a model file, which `load_model` and `rewrite(fitted=…)` read.

        `-` is standard output. Raise `OutputError` if it cannot be written, and `ModelError` for a
        model that a file cannot hold, as that of a plug-in.

        >>> rewritelog.fit("sample_logs/cells/timings.txt").save("saved.json")
        """
        output = to_output(path, "the model file")
        check_outputs([output], () if self.timings is None else self.timings.inputs)
        write_model(output, self)

    def _table(self, event: str, X: Rows) -> Floats:
        """Return the table for an event; raise `UsageError` if the model has no fit for it."""
        require_name(event)
        keys = self.keys
        counts = [count for name, count in keys if name == event]
        if keys and not counts:
            raise unknown_event(event, keys, "fit for")
        named = isinstance(X, Mapping) or hasattr(X, "columns")
        rows: Any = self._by_name(event, counts, X) if named else X
        table = to_table(rows, counts[0] if len(counts) == 1 else None)
        if len(counts) > 1 and table.shape[1] not in counts:
            raise UsageError(f"X must have {' or '.join(map(str, counts))} columns")
        return table

    def _by_name(self, event: str, counts: list[int], X: Any) -> Any:
        """Return the columns of X that are named as the parameters of an event, in their order."""
        labels: list[object] = list(column_names(X, "X") if hasattr(X, "columns") else X)
        names: list[str] = []
        numbers = enumerate(map(str, labels), 1)
        named = isinstance(X, Mapping) or any(
            name != f"p{number}" and NUMBERED.fullmatch(name) for number, name in numbers
        )
        if not counts and self.timings is not None:  # as for a plug-in, which need not give them
            counts = [samples.parameters for samples in self.timings if samples.event == event]
        for count in sorted(counts, reverse=True):
            own = self.names_of(event, count)
            names = parameter_names(count, own)  # first: p1 may be that of another event
            for columns in (names, parameter_names(count)):
                if columns and {*labels}.issuperset(columns):
                    return _columns(X, columns)
            named = named or (bool(own) and any(isinstance(name, str) for name in labels))
        if named and not counts:
            raise UsageError(f"X must be a table: {self.name} does not say what {event!r} takes")
        if named:
            if not names:
                raise UsageError(f"X must be a table, as [[]]: {event!r} has no parameters")
            listed = ", ".join(names)
            raise UsageError(f"X must have the columns {listed}, the parameters of {event!r}")
        return X

    def __repr__(self) -> str:
        lines = count_text(self.source.lines, "sample")
        name = shorten(self.name, 30)
        if not self.events:  # as for a plug-in, which need not name them
            return f"<FittedModel {name}: fitted to {lines}>"
        return f"<FittedModel {name}: {events_text(self.events)} of {lines}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        if not self.fits:
            table = TextTable(("event", ""), [(name, "") for name in self.events])
        else:
            table = fits_table(self.fits.values())
        return table.html() + warnings_html(self.warnings)


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _columns(X: Any, names: Sequence[str]) -> Any:
    """Return the columns of these names; single values are repeated."""
    columns = []
    for name in names:
        column = np.atleast_1d(to_floats(X[name], f"the column {name!r}"))
        columns.append(to_column(column, len(column), f"the column {name!r}"))
    try:
        return np.column_stack(np.broadcast_arrays(*columns))
    except ValueError as error:
        lengths = ", ".join(f"{len(column):,}" for column in columns)
        raise UsageError(f"the columns of X have {lengths} values") from error


def load_model(path: PathLike) -> FittedModel:
    """Return the model of a model file, as `FittedModel.save` or `rewritelog fit -o` wrote it.

    Raise `MissingFileError` if it does not exist, and `ModelError` with the JSON path of any error
    in it.

    >>> rewritelog.fit("sample_logs/cells/timings.txt").save("model.json")
    >>> rewritelog.load_model("model.json").events
    ('Cell::pairForces', 'Cell::bonded')
    """
    read = read_model_file(to_input(path, "the model file"))
    return FittedModel(**vars(read) | {"name": read.options["made_by"]})
