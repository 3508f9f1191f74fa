"""The model `gaussian-process`: an opaque alternative to formulas, one process for each event.

It needs scikit-learn, and works on logarithms of times and parameters. Predictions are medians, exp
of the mean of the process; intervals come from its standard deviation, which grows with the
distance from the samples.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from rewritelog.arrays import Flags, Floats
from rewritelog.errors import ModelError
from rewritelog.hashing import sequence
from rewritelog.models.base import (
    EventKey,
    EventTimings,
    FittedModel,
    Model,
    ModelText,
    Prediction,
    Timings,
)
from rewritelog.models.checks import errors_as_model_errors
from rewritelog.models.options import GaussianProcessOptions
from rewritelog.progress import report_progress
from rewritelog.text import count_text, event_label, percent_text

MODEL = "gaussian-process"
FEWEST = 3
"""With fewer positive samples the prediction is their geometric mean, without intervals."""

UPPER = 1.6448536269514722
"""Standard deviations of a normal distribution within which 90 % of its values lie."""

BLOCK_ROWS = 4096
"""Rows predicted at a time, since memory grows with rows times samples."""


@dataclass(frozen=True)
class LogScaling:
    """A scaling of parameters to mean 0 and standard deviation 1, in logarithms where positive.

    Other parameters become arsinh(p/m), which is close to log(2p/m) above the median m of |p|, and
    to p/m below it.
    """

    in_logs: Flags
    units: Floats
    means: Floats
    deviations: Floats
    """1 for a parameter that does not vary."""

    @classmethod
    def of(cls, params: Floats) -> LogScaling:
        """Return the scaling for these samples."""
        middles = np.median(np.abs(params), axis=0)
        units = np.where(middles > 0, middles, 1.0)
        in_logs = params.min(axis=0) > 0
        columns = _columns(params, in_logs, units)
        deviations = columns.std(axis=0)
        return cls(in_logs, units, columns.mean(axis=0), np.where(deviations > 0, deviations, 1.0))

    def columns(self, params: Floats) -> Floats:
        """Return the scaled columns of a table of parameters, of the same shape."""
        return (_columns(params, self.in_logs, self.units) - self.means) / self.deviations


def _columns(params: Floats, in_logs: Flags, units: Floats) -> Floats:
    sizes = params / units
    return np.where(in_logs & (sizes > 0), np.log(np.maximum(sizes, 1e-300)), np.arcsinh(sizes))


@dataclass(frozen=True)
class EventProcess:
    """The process of one event with one number of parameters."""

    samples: int
    used: int
    """The number of positive samples that it is fitted to."""
    lowest: Floats
    highest: Floats
    scale: LogScaling
    mean_log: float
    """The mean of the logarithms of the times."""
    noise: float
    """Standard deviation of log time about the process; NaN if it is unknown."""
    regressor: Any
    """scikit-learn's `GaussianProcessRegressor`; None with too few samples."""

    def distribution(self, params: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the logarithm of each row's time."""
        means, deviations = np.full((2, len(params)), np.nan)
        rows = np.flatnonzero(np.isfinite(params).all(axis=1))
        if self.regressor is None:
            means[rows] = self.mean_log
            return means, deviations
        for start in range(0, len(rows), BLOCK_ROWS):
            some = rows[start : start + BLOCK_ROWS]
            columns = self.scale.columns(params[some])
            mean, deviation = self.regressor.predict(columns, return_std=True)
            means[some], deviations[some] = mean + self.mean_log, deviation
        return means, deviations

    def outside(self, params: Floats) -> Flags:
        """Return which rows lie outside the range of the samples."""
        return np.asarray(~((params >= self.lowest) & (params <= self.highest)).all(axis=1))


@dataclass(frozen=True)
class FittedGaussianProcess(FittedModel):
    """The processes of all events."""

    options: GaussianProcessOptions
    events: Mapping[EventKey, EventProcess]
    unfitted: tuple[EventKey, ...]

    def predict(self, event: str, params: Floats) -> Floats:
        """Return the median of each row's time; NaN for an event that is not covered."""
        means, _ = self._distribution(event, params)
        with np.errstate(over="ignore"):
            return np.exp(np.minimum(means, 700.0))

    def predict_detailed(self, event: str, params: Floats) -> Prediction:
        """Return the predictions, with the rows outside the samples' range."""
        found = self.events.get((event, params.shape[1]))
        nothing = np.zeros(len(params), dtype=np.bool_)
        outside = nothing if found is None else found.outside(params)
        return Prediction(self.predict(event, params), nothing, outside)

    def interval(self, event: str, params: Floats) -> tuple[Floats, Floats]:
        """Return the bounds in seconds of the 90 % interval of measured times."""
        means, deviations = self._distribution(event, params)
        with np.errstate(over="ignore"):
            low, high = means - UPPER * deviations, np.minimum(means + UPPER * deviations, 700.0)
            return np.exp(low), np.exp(high)

    def drawn_factors(self, event: str, params: Floats, numbers: Floats) -> Floats | None:
        """Return the quantile of the log-normal noise at each row's number."""
        found = self.events.get((event, params.shape[1]))
        if found is None or not found.noise >= 0:
            return None
        from scipy.special import ndtri  # noqa: PLC0415 - heavy, and seldom needed

        inside = np.clip(numbers, 1e-9, 1 - 1e-9)
        return np.asarray(np.exp(found.noise * ndtri(inside)))

    def retransformation(self, event: str, params: Floats) -> Floats | None:
        """Return the mean of the log-normal noise divided by its median, exp(σ²/2)."""
        found = self.events.get((event, params.shape[1]))
        if found is None or not found.noise >= 0:
            return None
        return np.full(len(params), math.exp(min(found.noise**2 / 2, 1.0)))

    def describe(self) -> dict[str, Any]:
        """Return the options, and each event's samples, noise and kernel."""
        events = [
            {
                "event": event,
                "parameters": parameters,
                "samples": one.samples,
                "fitted_to": one.used,
                "noise": None if math.isnan(one.noise) else one.noise,
                "kernel": None if one.regressor is None else str(one.regressor.kernel_),
            }
            for (event, parameters), one in self.events.items()
        ]
        return {**asdict(self.options), "events": events}

    def summary(self) -> tuple[str, ...]:
        """Return a line for each event."""
        return tuple(
            f"{event_label(event, parameters)}: {_event_text(one)}"
            for (event, parameters), one in self.events.items()
        )

    def warnings(self) -> tuple[str, ...]:
        """Return which events have no usable samples."""
        return tuple(
            f"{event_label(event, parameters)}: no timing sample above zero, so it is not covered; "
            "add timing lines"
            for event, parameters in self.unfitted
        )

    def _distribution(self, event: str, params: Floats) -> tuple[Floats, Floats]:
        found = self.events.get((event, params.shape[1]))
        if found is None:
            nothing = np.full(len(params), np.nan)
            return nothing, nothing
        return found.distribution(params)


def _event_text(one: EventProcess) -> str:
    if one.regressor is None:
        return f"the geometric mean of {count_text(one.used, 'sample')}"
    return f"fitted to {count_text(one.used, 'sample')}, noise {percent_text(one.noise, 1)}"


class GaussianProcess(Model[GaussianProcessOptions]):
    """Fit a Gaussian process to the logarithms of each event's times."""

    Options = GaussianProcessOptions

    def __init__(self, options: GaussianProcessOptions, text: ModelText | None = None) -> None:
        super().__init__(options, text)
        if not is_installed():
            raise ModelError(
                f"the model {MODEL!r} needs scikit-learn: pip install 'rewritelog[{MODEL}]'"
            )

    def fit(self, timings: Timings) -> FittedGaussianProcess:
        """Return a process for each event."""
        events: dict[EventKey, EventProcess] = {}
        unfitted: list[EventKey] = []
        for number, samples in enumerate(timings):
            key = samples.key
            usable = samples.usable & (samples.seconds > 0)
            if usable.any():
                with errors_as_model_errors(f"model {MODEL!r}, event {samples.event!r}"):
                    events[key] = self._fit_event(samples.part(usable), len(samples.seconds))
            else:
                unfitted.append(key)
            report_progress("fitting events", number + 1, len(timings))
        return FittedGaussianProcess(self.options, events, tuple(unfitted))

    def _fit_event(self, samples: EventTimings, count: int) -> EventProcess:
        params, logs = samples.params, np.log(samples.seconds)
        lowest, highest = params.min(axis=0), params.max(axis=0)
        if len(logs) > self.options.most_lines:
            order = np.argsort(sequence(len(logs)), kind="stable")[: self.options.most_lines]
            params, logs = params[order], logs[order]
        scale, mean = LogScaling.of(params), float(logs.mean())
        regressor, noise = None, math.nan
        if len(logs) >= FEWEST and params.shape[1]:
            regressor = _regressor(params.shape[1])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of hyperparameters at their bounds
                regressor.fit(scale.columns(params), logs - mean)
            noise = math.sqrt(float(regressor.kernel_.k2.noise_level))
        return EventProcess(count, len(logs), lowest, highest, scale, mean, noise, regressor)


def is_installed() -> bool:
    """Return whether scikit-learn is installed."""
    return find_spec("sklearn") is not None


def _regressor(parameters: int) -> Any:
    """Return a process with a linear trend, a smooth deviation with one length each, and noise."""
    from sklearn.gaussian_process import (  # noqa: PLC0415 - an extra
        GaussianProcessRegressor,
    )
    from sklearn.gaussian_process.kernels import (  # noqa: PLC0415 - an extra
        RBF,
        ConstantKernel,
        DotProduct,
        WhiteKernel,
    )

    trend = ConstantKernel(1.0, (1e-4, 1e4)) * DotProduct(1.0, (1e-3, 1e3))
    smooth = ConstantKernel(0.5, (1e-4, 1e3)) * RBF(np.full(parameters, 2.0), (0.05, 1e3))
    noise = WhiteKernel(0.01, (1e-8, 10.0))
    return GaussianProcessRegressor(trend + smooth + noise, alpha=1e-10, random_state=0)
