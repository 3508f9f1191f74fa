"""Third-party regressors: any class with scikit-learn's `fit(X, y)` and `predict(X)`.

They are named `module:Class` or `file.py:Class`. Naming one imports the module or runs the file; no
third-party code runs otherwise.
"""

from __future__ import annotations

import inspect
import re
import sys
from ast import literal_eval
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from msgspec import Struct

from rewritelog.arrays import Flags, Floats
from rewritelog.errors import ModelError, UsageError
from rewritelog.models.base import (
    EventKey,
    EventTimings,
    Model,
    ModelFit,
    Prediction,
    Timings,
    uncovered_text,
)
from rewritelog.models.fitted import checked_seconds, errors_as_model_errors, problem_of
from rewritelog.running.locks import process_lock
from rewritelog.text import count_text, event_label

_NAME = re.compile(r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<path>[^\W\d]\w*(\.[^\W\d]\w*)*)")
_FILE = re.compile(r"(?P<file>.+\.py):(?P<path>[^\W\d]\w*(\.[^\W\d]\w*)*)")
_WORDS = {"true": "True", "false": "False", "none": "None"}
_ONE_AT_A_TIME = process_lock()
"""Held while a regressor predicts, since third-party classes need not be thread-safe."""


@dataclass(frozen=True)
class OutsideOptions:
    """The arguments that the regressor is created with."""

    arguments: Mapping[str, object] = field(default_factory=dict)


class FittedEvent(Struct, frozen=True):
    """One event's regressor after its fit."""

    regressor: Any
    """For an event without parameters, and so without columns, the mean time in seconds."""
    samples: int
    lowest: Floats
    highest: Floats
    """The range of each parameter over the samples, shape (parameters,)."""


@dataclass(frozen=True)
class FittedOutside(ModelFit):
    """One fitted regressor for each event and number of parameters."""

    name: str
    """The name of the regressor, `module:Class`."""
    options: OutsideOptions
    events: Mapping[EventKey, FittedEvent]
    unfitted: tuple[EventKey, ...]

    def predict(self, event: str, params: Floats) -> Floats:
        """Return the regressor's prediction; NaN for rows with parameters that are not finite."""
        seconds = np.full(len(params), np.nan)
        fitted = self.events.get((event, params.shape[1]))
        usable = np.isfinite(params).all(axis=1)
        if fitted is None or not usable.any():
            return seconds
        if not params.shape[1]:
            return np.full(len(params), fitted.regressor)
        where = f"model {self.name!r}, event {event!r}"
        with _ONE_AT_A_TIME, errors_as_model_errors(where):
            answer = fitted.regressor.predict(params[usable])
        seconds[usable] = checked_seconds(answer, int(usable.sum()), where)
        return seconds

    def predict_detailed(self, event: str, params: Floats) -> Prediction:
        """Return the regressor's prediction, and which rows are beyond the samples' range."""
        exact: Flags = np.zeros(len(params), dtype=np.bool_)
        outside = exact
        fitted = self.events.get((event, params.shape[1]))
        if fitted is not None:
            inside = (params >= fitted.lowest) & (params <= fitted.highest)
            outside = np.asarray(~inside.all(axis=1))
        return Prediction(self.predict(event, params), exact, outside)

    def describe(self) -> dict[str, Any]:
        """Return the regressor's name and arguments, and the samples of each event, as JSON."""
        return {
            "regressor": self.name,
            "arguments": {
                key: value if isinstance(value, str | int | None) else repr(value)
                for key, value in self.options.arguments.items()
            },
            "events": [
                {
                    "event": event,
                    "parameters": parameters,
                    "samples": fitted.samples,
                    "lowest": fitted.lowest.tolist(),
                    "highest": fitted.highest.tolist(),
                }
                for (event, parameters), fitted in self.events.items()
            ],
        }

    def summary(self) -> tuple[str, ...]:
        """Return a line for each event."""
        return tuple(
            f"{event_label(event, parameters)}: fitted to {count_text(fitted.samples, 'sample')}"
            for (event, parameters), fitted in self.events.items()
        )

    def warnings(self) -> tuple[str, ...]:
        """Return which events have no usable samples."""
        return tuple(uncovered_text(*key) for key in self.unfitted)


class Outside(Model[OutsideOptions]):
    """Fits a new regressor to the samples of each event and number of parameters."""

    Options = OutsideOptions

    def __init__(self, name: str, maker: object, arguments: Mapping[str, object]) -> None:
        """Take a class or function that returns a new regressor when it is called with arguments.

        Text that spells a number, a boolean or None is converted. A `random_state` that `maker`
        takes and nobody gives is 0, so that a run is reproducible.
        """
        if not callable(maker):
            raise ModelError(f"model {name!r} is neither a class nor a function")
        converted = {key.replace("-", "_"): _converted(value) for key, value in arguments.items()}
        with suppress(ValueError, TypeError):  # some callables have no signature
            if "random_state" in inspect.signature(maker).parameters:
                converted.setdefault("random_state", 0)
        super().__init__(OutsideOptions(converted))
        self._name, self._maker = name, maker
        self._new()  # to raise errors of arguments before timings are read

    def fit(self, timings: Timings) -> FittedOutside:
        """Return the fitted regressors; raise `ModelError` naming the event if one raises."""
        events: dict[EventKey, FittedEvent] = {}
        unfitted: list[EventKey] = []
        for samples in timings:
            usable = samples.usable()
            if len(usable.seconds):
                events[samples.key] = self._fit_event(usable)
            else:
                unfitted.append(samples.key)
        return FittedOutside(self._name, self.options, events, tuple(unfitted))

    def _fit_event(self, samples: EventTimings) -> FittedEvent:
        params, seconds = samples.params, samples.seconds
        regressor: Any = float(seconds.mean())
        if params.shape[1]:
            regressor = self._new()
            with errors_as_model_errors(f"model {self._name!r}, event {samples.event!r}, fit"):
                regressor.fit(params, seconds)
        return FittedEvent(regressor, len(seconds), params.min(axis=0), params.max(axis=0))

    def _new(self) -> Any:
        """Return a new regressor, not yet fitted; raise `ModelError` if it lacks a method."""
        name, arguments = self._name, self.options.arguments
        passed = "".join(f" {key}={value!r}" for key, value in arguments.items()) or " no options"
        with errors_as_model_errors(f"model {name!r} cannot be created with{passed}"):
            regressor = self._maker(**arguments)
        for method in ("fit", "predict"):
            if not callable(getattr(regressor, method, None)):
                raise ModelError(f"model {name!r} has no method {method}; it needs fit and predict")
        return regressor


def import_named(name: str) -> Any:
    """Import the module of `module:Class` or `file.py:Class`, and return the class.

    Its code is run. Raise `UsageError` for a name of another form, and `ModelError` if the import
    fails.
    """
    in_file = _FILE.fullmatch(name)
    parts = in_file or _NAME.fullmatch(name)
    if parts is None:
        raise UsageError(f"an outside model is named module:Class or file.py:Class, not {name!r}")
    try:
        module = run_file(in_file["file"]) if in_file else import_module(parts["module"])
        return reduce(getattr, parts["path"].split("."), module)
    except MemoryError:
        raise
    except BaseException as error:
        what = problem_of(error)
        if in_file:
            what = what.replace(_module_name(in_file["file"]), in_file["file"])
        missing = isinstance(error, ModuleNotFoundError)
        hint = "; a file is named file.py:Class" if missing and not in_file else ""
        raise ModelError(f"model {name!r} cannot be imported: {what}{hint}") from error


def file_of(name: str) -> str:
    """Return the file of a model named `file.py:Class`; empty for any other name."""
    in_file = _FILE.fullmatch(name)
    return in_file["file"] if in_file else ""


def _module_name(path: str) -> str:
    """Return the name by which pickle finds a file's module; a dot in it would name a package."""
    return f"rewritelog_model_{Path(path).resolve()}".replace(".", "//")


def run_file(path: str) -> ModuleType:
    """Return a Python file as a module; only the first call for the file runs it."""
    name = _module_name(path)
    if name not in sys.modules:
        spec = spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} is no Python file")
        module = module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def _converted(value: object) -> object:
    """Return the number, boolean or None that a text spells; other values as they are."""
    if not isinstance(value, str):
        return value
    with suppress(ValueError, SyntaxError):
        return literal_eval(_WORDS.get(value.lower(), value))
    return value
