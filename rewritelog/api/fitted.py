"""Fitted models: predictions, intervals, and model files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import ArrayLike

from rewritelog.arrays import Floats, new_frame, to_table
from rewritelog.commands.durations import FittedLike
from rewritelog.errors import ModelError, UsageError
from rewritelog.evaluation.fit import FitReport, write_model
from rewritelog.evaluation.predictions import LinePredictor
from rewritelog.formats import Columns
from rewritelog.models import base
from rewritelog.models.base import EventKey, entry_of, unknown_event
from rewritelog.models.checks import (
    checked_interval,
    checked_prediction,
    knows_intervals,
)
from rewritelog.models.fit_report import formula_text, terms_of
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.model_file import KeptFit, ModelFile, Source, model_text, writable
from rewritelog.options import PathLike
from rewritelog.paths import to_input, to_path
from rewritelog.text import (
    TextTable,
    count_text,
    event_label,
    json_number,
    parameter_names,
    percent_text,
    shorten,
)
from rewritelog.timings.read import to_timings
from rewritelog.timings.samples import Timings, TimingsLike
from rewritelog.timings.texts import read_model_file
from rewritelog.viewing.pictures import Picture, fit_figure


@dataclass(frozen=True, repr=False)
class FittedModel:
    """A model fitted to timings: it predicts seconds from the parameters of an event.

    >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
    >>> fitted.predict("Cell::pairForces", [[53, 11], [66, 17]])
    array([4.89758546e-06, 7.58604713e-06])
    """

    name: str
    """The name of the model."""
    raw: base.ModelFit
    """The fit as returned by the model."""
    columns: Columns
    """Whether it predicts from `params` or `counters`."""
    source: Source
    """The timing lines that it was fitted to."""
    timings: Timings | None = None
    """The samples that it was fitted to, as far as they are at hand."""

    @classmethod
    def of(cls, report: FitReport) -> FittedModel:
        """Return the model of a fit."""
        name = report.request.model_name
        timings = report.read
        return cls(name, report.fitted, report.model.columns, report.source, timings)

    @property
    def events(self) -> tuple[str, ...]:
        """The names of the events with a fit."""
        return tuple(dict.fromkeys(event for event, _ in self._keys()))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the reliability of the fit, one sentence each."""
        return self.raw.warnings()

    def predict(self, event: str, X: ArrayLike) -> Floats:
        """Return the seconds of each row of X, at least 0, shape (rows,).

        X is an array, lists or a DataFrame with one column for each parameter. The result is NaN
        where the fit is undefined. Raise `UsageError` for an event without a fit for that many
        parameters.
        """
        return checked_prediction(self.raw, self.name, event, self._table(event, X)).seconds

    def interval(self, event: str, X: ArrayLike) -> tuple[Floats, Floats]:
        """Return the lower and upper bounds in seconds of the 90 % interval of each row.

        They are NaN if there were too few samples. Raise `UsageError` as `predict` does, and
        `ModelError` for a model without intervals.
        """
        if not knows_intervals(self.raw):
            raise ModelError(f"the model {self.name!r} has no intervals")
        return checked_interval(self.raw, self.name, event, self._table(event, X))

    @property
    def r2(self) -> dict[str, float]:
        """R² of each event's fit on its own samples; NaN where the times do not vary.

        >>> {event: round(r2, 2) for event, r2 in fitted.r2.items()}  # doctest: +SKIP
        {'Cell::pairForces': 0.99, 'Cell::bonded': 0.98}
        """
        return {fit.event: _number(fit.whole.quality.r2) for fit in self._fits().values()}

    def formula(
        self,
        event: str,
        language: Literal["text", "python", "latex"] = "text",
        *,
        parameters: int | None = None,
    ) -> str:
        r"""Return an event's seconds as a formula of its parameters.

        `text` is the syntax of formulas files, `python` is evaluated with numpy as `np`, `latex` is
        for a paper. Exact matches, corrections and bounds are not part of it. `parameters` is
        needed for an event with fits for several numbers of parameters. Raise `UsageError` for an
        event without a fit, and `ModelError` for a model that has no formulas.

        >>> timings = {"work": ([[1], [2], [4], [8]], [2e-6, 4e-6, 8e-6, 16e-6])}
        >>> print(rewritelog.fit(timings).formula("work", "latex"))
        2 \cdot 10^{-6} \, p_{1}
        """
        return formula_text(entry_of(self._fits(), event, parameters, "fit for"), language)

    def coefficients(self, event: str, *, parameters: int | None = None) -> dict[str, float]:
        """Return the coefficient of each term of an event's formula, in seconds.

        Raise an error as `formula` does, and `ModelError` for a mean of several formulas.
        """
        return terms_of(entry_of(self._fits(), event, parameters, "fit for"))

    def plot(
        self,
        event: str,
        timings: TimingsLike | None = None,
        *,
        kind: Literal["svg", "png"] = "svg",
        parameters: int | None = None,
    ) -> Picture:
        """Return a picture of an event's measured and predicted seconds over its parameters.

        `timings` are needed for a model read from a file. The extra `rewritelog[view]` has to be
        installed.

        >>> fitted.plot("Cell::bonded")  # doctest: +SKIP
        <Picture: svg, 63,201 bytes>
        """
        if kind not in ("svg", "png"):
            raise UsageError(f"kind must be 'svg' or 'png', not {kind!r}")
        read = self.timings if timings is None else to_timings(timings, self.columns)
        if read is None:
            raise UsageError("a model file has no samples: give timings to plot")
        samples = read.of_event(event, parameters)
        fit = getattr(self.raw, "fits", {}).get(samples.key)
        names = parameter_names(samples.parameters, () if fit is None else fit.names)
        return Picture(fit_figure(self.raw, samples, tuple(names), kind), kind)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each fit.

        Its columns are event, parameters, family, samples, r2, held_out_error (a share) and
        formula.
        """
        fits = self._fits()
        columns: dict[str, Any] = {
            "event": [event for event, _ in fits],
            "parameters": [count for _, count in fits],
            "family": [fit.whole.family for fit in fits.values()],
            "samples": [fit.samples for fit in fits.values()],
            "r2": [_number(fit.whole.quality.r2) for fit in fits.values()],
            "held_out_error": [_number(fit.whole.quality.held_out_error) for fit in fits.values()],
            "formula": [formula_text(fit) for fit in fits.values()],
        }
        return new_frame(columns)

    def _fits(self) -> Mapping[EventKey, EventFit]:
        """Return the fits of all events; raise `ModelError` for a model that has none."""
        if not isinstance(self.raw, FittedEvents):
            raise ModelError(f"the model {self.name!r} has no formulas")
        return self.raw.fits

    def summary(self) -> str:
        """Return the fit as text: formula, quality and range of each event."""
        return "\n".join(self.raw.summary())

    def to_json(self) -> dict[str, Any]:
        """Return the content of the model file; raise `ModelError` if there can be none."""
        content: dict[str, Any] = json.loads(model_text(self.to_file()))
        return content

    def save(self, path: PathLike) -> None:
        """Write a model file, which `load_model` and `rewritelog rewrite --fitted` read."""
        write_model(to_path(path, "the model file"), self.to_file())

    def as_model(self) -> KeptFit:
        """Return it as a model that needs no timings, for commands that take one."""
        return KeptFit(self.raw, self.columns, self.source, self.name)

    def to_file(self) -> ModelFile:
        """Return the contents of a model file of this fit."""
        return ModelFile(writable(self.raw, self.name), self.columns, self.source)

    def _keys(self) -> list[tuple[str, int]]:
        """Return the events and their numbers of parameters, as far as the model reports them."""
        keys = getattr(self.raw, "fits", None) or getattr(self.raw, "events", {})
        return [key for key in keys if isinstance(key, tuple)]

    def _table(self, event: str, X: ArrayLike) -> Floats:
        """Return the table for an event; raise `UsageError` if the model has no fit for it."""
        keys = self._keys()
        counts = [count for name, count in keys if name == event]
        if keys and not counts:
            raise unknown_event(event, keys, "fit for")
        table = to_table(X, counts[0] if len(counts) == 1 else None)
        if len(counts) > 1 and table.shape[1] not in counts:
            raise UsageError(f"X must have {' or '.join(map(str, counts))} columns")
        return table

    def __repr__(self) -> str:
        names = ", ".join(shorten(name, 30) for name in self.events[:2])
        more = ", …" if len(self.events) > 2 else ""
        lines = count_text(self.source.lines, "sample")
        events = count_text(len(self.events), "event")
        return f"<FittedModel {shorten(self.name, 30)}: {events} ({names}{more}) of {lines}>"

    def _repr_html_(self) -> str:
        if not isinstance(self.raw, FittedEvents):
            return TextTable(("event", ""), [(name, "") for name in self.events]).html()
        rows = []
        for (event, count), fit in self.raw.fits.items():
            quality = fit.whole.quality
            r2 = json_number(quality.r2)
            rows.append(
                (
                    event_label(event, count, names=fit.names),
                    fit.whole.family,
                    f"{fit.samples:,}",
                    "" if r2 is None else f"{r2:.4f}",
                    percent_text(quality.held_out_error),
                )
            )
        return TextTable(("event", "family", "samples", "R²", "error"), rows, most_rows=100).html()


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def load_model(path: PathLike) -> FittedModel:
    """Return the model of a model file, as `FittedModel.save` or `rewritelog fit -o` wrote it.

    Raise `ModelError` with the JSON path of any error in it.

    >>> fitted.save("model.json")  # doctest: +SKIP
    >>> rewritelog.load_model("model.json").events  # doctest: +SKIP
    ('Cell::pairForces', 'Cell::bonded')
    """
    file = read_model_file(to_input(path, "the model file"))
    return FittedModel(file.fitted.model, file.fitted, file.columns, file.source)


def to_predictor(model: FittedLike, what: str = "the model file") -> LinePredictor:
    """Return what predicts lines, given a fitted model or its file."""
    fitted = model if isinstance(model, FittedModel) else load_model(to_path(model, what))
    name = fitted.name if model is fitted else str(model)
    return LinePredictor(name, fitted.raw, fitted.columns)
