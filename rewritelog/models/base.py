"""The contract of a duration model: timings in, a fitted model out, seconds from parameters.

A model is a class with a frozen options dataclass; see `docs/writing-a-model.md` for one in full.
Models know arrays. They know nothing of files, logs or the command line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

import numpy as np

from rewritelog.arrays import Flags, Floats

__all__ = [
    "EventTimings",
    "FittedModel",
    "Flags",
    "Floats",
    "Model",
    "ModelText",
    "Prediction",
    "Timings",
    "TotalSpread",
]
"""What a model's author needs, the array aliases among them."""


LOST = "lost::"
"""What the events of lost cycles begin with; their times are PE-seconds of a replay."""


def has_slow_first_call(event: str) -> bool:
    """Return whether an event's first time may include cold caches, as no replayed time does."""
    return not event.startswith(LOST)


@dataclass(frozen=True)
class EventTimings:
    """The timing samples of one event that carry one number of parameters."""

    event: str
    params: Floats
    """The parameters, shape (samples, parameters)."""
    seconds: Floats
    """The measured times, shape (samples,)."""

    def part(self, rows: Flags) -> EventTimings:
        """Return the samples that a mask selects, in their order."""
        return EventTimings(self.event, self.params[rows], self.seconds[rows])


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
    remote: Flags | None = None
    """True where the fit's terms reach further than for any sample (by leverage); None: unknown."""
    negative: Flags | None = None
    """True where the fit gives less than zero, before any bounds; None: where `seconds` do."""


@dataclass(frozen=True)
class TotalSpread:
    """How single durations and their mean differ from what a model predicts, as relative errors."""

    single: float
    """Standard deviation of a measured duration from its prediction, independent of others."""
    common: float
    """Standard deviation of the mean of all of them, which more brackets do not average out."""
    coverage: float | None = None
    """Share of held-out samples within their 90 % interval; None: not measured."""


class FittedModel(ABC):
    """A model after its fit; it can be pickled, and says what it is made of."""

    @abstractmethod
    def predict(self, event: str, params: Floats) -> Floats:
        """Return the duration in seconds of each row of `params`, shape (rows, parameters).

        NaN where the model does not cover the event or its number of parameters.
        """

    def predict_detailed(self, event: str, params: Floats) -> Prediction:
        """Return the durations with what determined them; models that know more override this."""
        nothing = np.zeros(len(params), dtype=np.bool_)
        return Prediction(seconds=self.predict(event, params), exact=nothing, outside=nothing)

    def interval(self, event: str, params: Floats) -> tuple[Floats, Floats]:  # noqa: ARG002
        """Return the bounds in seconds of the 90 % interval of measured durations.

        NaN where they are not known.
        """
        nothing = np.full(len(params), np.nan)
        return nothing, nothing

    def drawn_factors(self, event: str, params: Floats, numbers: Floats) -> Floats | None:  # noqa: ARG002 - for those that know
        """Return a factor for each row's duration that spreads it as measured ones spread.

        `numbers` lie in [0, 1), one for each row, and decide which of the held-out residuals a row
        gets. None where the model has no residuals.
        """
        return None

    def total_factors(self, event: str, params: Floats) -> Floats | None:  # noqa: ARG002
        """Return what each row's duration is multiplied by so that sums come out as measured.

        `predict` gives the usual duration of one call; rare long calls add to a sum beyond it.
        None where the model does not tell the two apart.
        """
        return None

    def total_spread(self, event: str, parameters: int) -> TotalSpread | None:  # noqa: ARG002
        """Return what the error of a sum of predictions is made of; None where it is not known."""
        return None

    def describe(self) -> dict[str, Any]:
        """Return the fit in full, in types that JSON has, for the machine-readable report."""
        return {}

    def summary(self) -> tuple[str, ...]:
        """Return the fit in a few lines of text, for the report that a person reads."""
        return ()

    def warnings(self) -> tuple[str, ...]:
        """Return what a user should know before relying on the fit, a sentence each."""
        return ()


@dataclass(frozen=True)
class ModelText:
    """The text of a file that a model is made with; models open no files."""

    name: str
    """What errors call the file."""
    text: str


OptionsT = TypeVar("OptionsT")


class Model(ABC, Generic[OptionsT]):
    """A way to get SEB durations, made from its options and then fitted to timings."""

    Options: ClassVar[type[Any]]
    """The frozen dataclass of the model's options; every field has a default and a help text."""

    uses_params: ClassVar[bool] = True
    """Whether the model predicts from param records, so that they are read at all."""

    columns: ClassVar[Literal["params", "counters"]] = "params"
    """What the columns of its tables are: the parameters of lines, or their counters."""

    needs_timings: ClassVar[bool] = True
    """Whether the model is fitted, so that running without timings is an error."""

    takes_text: ClassVar[str | None] = None
    """Which text the model is made with besides: `formulas`, `coefficients` or none."""

    needs_text: ClassVar[bool] = False
    """Whether it cannot be made without that text."""

    def __init__(self, options: OptionsT, text: ModelText | None = None) -> None:
        self.options = options
        self.text = text

    @abstractmethod
    def fit(self, timings: Timings) -> FittedModel:
        """Return the model fitted to all samples.

        Raise `ModelError` where no fit is defined, never because of few or odd samples.
        """
