"""The run time predicted as the sum of all categories of lost cycles, for sizes never run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct

from rewritelog.arrays import rounded_sum
from rewritelog.commands.runs import PredictRunCommand
from rewritelog.errors import ModelError, UsageError, spelled
from rewritelog.evaluation.predict import DeterminedBy, predicted_calls
from rewritelog.models.base import LOST, PES
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.options import listed, settings
from rewritelog.text import (
    Readable,
    TextTable,
    count_text,
    json_number,
    percent_text,
    printable,
    share_of,
    shortest_text,
    some_text,
    time_column,
    time_range_text,
    time_text,
)
from rewritelog.units import number


class CategoryTotal(Struct, frozen=True):
    """The PE-seconds of one category."""

    category: str
    seconds: float
    low_s: float
    """The bounds of the 90 % interval, NaN if the model has none."""
    high_s: float
    extrapolated: bool
    negative: bool
    """Whether the fit is negative, which counts as 0 and has no interval."""
    in_all_runs: bool = True
    """Whether no other category has lines of more runs."""


@dataclass(frozen=True, repr=False)
class RunPrediction(Readable):
    """The prediction of a whole run by category."""

    model: str
    """The model file, or the name of the model."""
    values: tuple[tuple[str, float], ...]
    """P and the other variables, in the order of the parameters."""
    categories: tuple[CategoryTotal, ...]

    @property
    def pes(self) -> float:
        """The number of PEs."""
        return dict(self.values)[PES]

    @property
    def total_s(self) -> float:
        """The PE-seconds of all categories."""
        return rounded_sum(total.seconds for total in self.categories)

    @property
    def predicted_s(self) -> float:
        """The predicted run time, PE-seconds divided by PEs."""
        return self.total_s / self.pes

    @property
    def interval_s(self) -> tuple[float, float]:
        """The 90 % interval of the run time, if the errors of the categories are independent.

        It leaves out those whose fit is negative. NaN if another one has no interval.
        """
        totals = [total for total in self.categories if not total.negative]
        below = math.hypot(*(total.seconds - total.low_s for total in totals))
        above = math.hypot(*(total.high_s - total.seconds for total in totals))
        low = max(self.total_s - below, 0.0) if math.isfinite(below) else math.nan
        high = self.total_s + above if math.isfinite(above) else math.nan
        return low / self.pes, high / self.pes

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of a run beyond those fitted to, negative fits, and categories of few runs."""
        beyond = [total.category for total in self.categories if total.extrapolated]
        negative = [total.category for total in self.categories if total.negative]
        rare = [total.category for total in self.categories if not total.in_all_runs]
        at = ", ".join(f"{name}={shortest_text(value)}" for name, value in self.values)
        warnings = list[str]()
        if beyond:
            are = f"{len(beyond)} of {count_text(len(self.categories), 'category')}"
            warnings.append(
                f"{are} extrapolated: no run with them was as large or as small as {at}"
            )
        if negative:
            warnings.append(
                f"the fit of {some_text(negative, 5)} is below zero at {at}: it counts as 0 s, and "
                "the interval of the run leaves it out"
            )
        if rare:
            have = f"only some of the runs have lines of {some_text(rare, 5)}"
            warnings.append(
                f"{have}: the others do not count as 0 s, so the prediction is that of a run with "
                f"such time; all runs need the same {spelled('lost_as')}"
            )
        return tuple(warnings)

    def to_json(self) -> dict[str, Any]:
        """Return the prediction as a JSON object."""
        low, high = self.interval_s
        return {
            "model": str(self.model),
            "at": dict(self.values),
            "predicted_s": self.predicted_s,
            "low_s": json_number(low),
            "high_s": json_number(high),
            "categories_s": {total.category: total.seconds for total in self.categories},
            "intervals_s": {
                total.category: [json_number(total.low_s), json_number(total.high_s)]
                for total in self.categories
            },
            "shares": {total.category: self._share(total) for total in self.categories},
            "warnings": list(self.warnings),
        }

    def text(self) -> str:
        """Return the prediction as text."""
        low, high = self.interval_s
        at = ", ".join(f"{name} = {shortest_text(value)}" for name, value in self.values)
        interval = f", 90 %: {time_range_text(low, high)}" if math.isfinite(low + high) else ""
        totals = self.categories
        table = TextTable.of(
            {
                "PE time": [total.category for total in totals],
                "PE-seconds": time_column([total.seconds for total in totals]),
                "90 % from": time_column([json_number(total.low_s) for total in totals]),
                "to": time_column([json_number(total.high_s) for total in totals]),
                "share": [percent_text(self._share(total), 1) for total in totals],
            }
        )
        run_time = time_text(self.predicted_s)
        return f"Predicted run time: {run_time} at {printable(at)}{interval}\n\n{table}"

    def _share(self, total: CategoryTotal) -> float:
        return share_of(total.seconds, self.total_s)


def to_point(variables: Any, what: str) -> dict[str, float]:
    """Return variables, given by name or as texts such as `P=4096,D=512`.

    Raise `UsageError` for anything else.
    """
    named = settings(variables if hasattr(variables, "items") else listed(variables, what), what)
    values = {name.strip(): number(value, f"{what} {name}") for name, value in named.items()}
    for name, value in values.items():
        if not math.isfinite(value):
            raise UsageError(f"{what} {name} must be finite, not {value}")
    return values


def _point(model: str, fit: EventFit, values: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Return P and the other variables in the order of a fit's parameters.

    If the fit has no names, the variables are sorted by name, as in the lines of a study. Raise
    `UsageError` if the variables are not those of the fit.
    """
    if fit.names and "_" not in fit.names:
        names = fit.names
        if {*names} != {*values}:
            raise UsageError(
                f"{model}: its variables are {', '.join(names)}; "
                f"{spelled('at')} has {', '.join(values)}"
            )
    else:
        names = (PES, *sorted(values.keys() - {PES}))
        if fit.parameters != len(names):
            raise UsageError(
                f"{model}: the number of variables besides P is {fit.parameters - 1}, but "
                f"{spelled('at')} has {len(names) - 1}"
            )
    return tuple((name, values[name]) for name in names)


def predict_run(command: PredictRunCommand) -> RunPrediction:
    """Predict a run as the sum of all categories of lost cycles that a model was fitted to.

    Raise `UsageError` if P is not a number of PEs, or the variables are not those of the fit, and
    `ModelError` if the model has no lost cycles, or its prediction is not finite.
    """
    fitted, values = command.model, command.at
    pes = values.get(PES, 0.0)
    if pes < 1 or pes % 1:
        raise UsageError("P, the number of PEs, must be given, and be a whole number above 0")
    model = fitted.name
    fits = [fit for (event, _), fit in fitted.fits.items() if event.startswith(LOST)]
    if not fits:
        source = f"`lost-cycles` writes such timing lines with {spelled('timings_out')}"
        raise ModelError(f"{model}: no lost cycles: no event begins with {LOST}; {source}")
    if len({fit.parameters for fit in fits}) > 1:
        raise ModelError(
            f"{model}: some of its runs have more variables than others: fit one study"
        )
    points = [_point(model, fit, values) for fit in fits]
    categories, runs = [], max(fit.samples for fit in fits)
    for fit, point in zip(fits, points, strict=True):
        event = fit.event
        (row,) = predicted_calls(fitted, event, np.array([[value for _, value in point]]))
        seconds, low, high = (float(row[name]) for name in ("predicted_s", "low_s", "high_s"))
        is_negative = bool(row["negative"])
        if math.isnan(low + high) and seconds == 0 and not is_negative:
            low = high = 0.0  # a category that no run ever had
        name = event.removeprefix(LOST)
        is_outside = bool(row["determined_by"] == DeterminedBy.OUT_OF_RANGE)
        in_all = fit.samples == runs
        categories.append(CategoryTotal(name, seconds, low, high, is_outside, is_negative, in_all))
    run = RunPrediction(model, points[0], tuple(categories))
    if math.isinf(run.total_s):  # also if a category is NaN
        no_time = (
            "a category has no prediction, or the predicted time exceeds the range of a double"
        )
        raise ModelError(f"{model}: {no_time}")
    return run
