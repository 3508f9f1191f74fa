"""The contract of a duration model: timings in, a fitted model out, seconds from parameters.

A model is a class with a frozen options dataclass; see `docs/writing-a-model.md` for one in full.
Models know arrays. They know nothing of files, logs or the command line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class EventTimings:
    """The timing samples of one event that carry one number of parameters."""

    event: str
    params: Floats
    """The parameters, shape (samples, parameters)."""
    seconds: Floats
    """The measured times, shape (samples,)."""


Timings: TypeAlias = Sequence[EventTimings]
"""All samples: one entry for each event name and parameter count, in order of appearance."""


@dataclass(frozen=True)
class Prediction:
    """What a fitted model says of a table of parameters, row by row."""

    seconds: Floats
    """Predicted durations, raw: NaN where the model does not cover the row, maybe below zero."""
    exact: Flags
    """True where the duration is that of identically parameterised samples, not the fit's."""
    outside: Flags
    """True where a parameter lies outside the range of the samples."""


class FittedModel(ABC):
    """A model after its fit; it can be pickled, and says what it is made of."""

    @abstractmethod
    def predict(self, event: str, params: Floats) -> Floats:
        """Return the duration in seconds of each row of `params`, shape (rows, parameters).

        NaN where the model does not cover the event or its number of parameters.
        """

    def judge(self, event: str, params: Floats) -> Prediction:
        """Return the durations with what determined them; models that know more override this."""
        nothing = np.zeros(len(params), dtype=np.bool_)
        return Prediction(seconds=self.predict(event, params), exact=nothing, outside=nothing)

    def describe(self) -> dict[str, Any]:
        """Return the fit in full, in types that JSON has, for the machine-readable report."""
        return {}

    def summary(self) -> tuple[str, ...]:
        """Return the fit in a few lines of text, for the report that a person reads."""
        return ()

    def warnings(self) -> tuple[str, ...]:
        """Return what a user should know before relying on the fit, a sentence each."""
        return ()


OptionsT = TypeVar("OptionsT")


class Model(ABC, Generic[OptionsT]):
    """A way to get SEB durations, made from its options and then fitted to timings."""

    Options: ClassVar[type[Any]]
    """The frozen dataclass of the model's options; every field has a default and a help text."""

    uses_params: ClassVar[bool] = True
    """Whether the model predicts from param records, so that they are read at all."""

    needs_timings: ClassVar[bool] = True
    """Whether the model is fitted, so that running without timings is an error."""

    def __init__(self, options: OptionsT) -> None:
        self.options = options

    @abstractmethod
    def fit(self, timings: Timings) -> FittedModel:
        """Return the model fitted to all samples.

        Raise `ModelError` where no fit can be meant, never because of few or odd samples.
        """
