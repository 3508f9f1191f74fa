"""The model `coefficients`: a fit made elsewhere, given as a file with one line for each event.

    Cell::pairForces  3.1e-9 2.2e-7 1.5e-6

means 3.1e-9·p1 + 2.2e-7·p2 + 1.5e-6 seconds: the constant comes last. If it is preceded by twice as
many coefficients as there are parameters, they are those of p1, p1², p2, p2² and so on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.errors import ModelError, UsageError
from rewritelog.models.base import Model, ModelFit, ModelText, Timings, option
from rewritelog.models.expressions import MAX_PARAMETERS
from rewritelog.text import count_text, printable

MAX_COEFFICIENTS = 2 * MAX_PARAMETERS + 1

_NUMBER = re.compile(r"[+-]?([0-9]++\.?[0-9]*+|\.[0-9]++)([eE][+-]?[0-9]++)?")
"""Possessive quantifiers, so that a word of many digits is matched in linear time."""


@dataclass(frozen=True)
class FittedCoefficients(ModelFit):
    """The coefficients of each event."""

    name: str
    """The name of the file."""
    unit_s: float
    events: Mapping[str, tuple[float, ...]]
    """The numbers of each line, the constant last, in the file's unit."""

    @property
    def events_given(self) -> Collection[str]:
        """The events that the file has a line for."""
        return self.events

    def predict(self, event: str, params: Floats) -> Floats:
        """Return the seconds of each row; NaN for an event or parameter count without a line."""
        columns, (*factors, constant) = params.T, self.events.get(event, (np.nan,))
        if len(factors) == 2 * len(columns):
            columns = np.stack((columns, columns * columns), axis=1).reshape(
                len(factors), len(params)
            )
        values = np.full(len(params), constant if len(factors) == len(columns) else np.nan)
        with np.errstate(all="ignore"):
            for factor, column in zip(factors, columns, strict=False):
                values += factor * column
            seconds = self.unit_s * values
        seconds[~np.isfinite(seconds)] = np.nan
        return seconds

    def describe(self) -> dict[str, Any]:
        """Return the contents of the file as a JSON object."""
        events = [
            {"event": event, "factors": list(factors), "constant": constant}
            for event, (*factors, constant) in self.events.items()
        ]
        return {"file": self.name, "unit_s": self.unit_s, "events": events}

    def summary(self) -> tuple[str, ...]:
        """Return a line for each event."""
        return tuple(
            f"{event}: a constant and {count_text(len(factors), 'factor')}"
            for event, (*factors, _) in self.events.items()
        )


@dataclass(frozen=True)
class CoefficientsOptions:
    """Options of the model `coefficients`."""

    unit_s: float = option(
        1.0, "Seconds per unit of the results: 1 / clock rate if they are in cycles.", above=0
    )


class Coefficients(Model[CoefficientsOptions]):
    """Predict with given coefficients; nothing is fitted.

    Choose it for polynomials that were fitted elsewhere.
    """

    Options = CoefficientsOptions
    needs_timings = False
    takes_text = "coefficients"
    needs_text = True

    def __init__(self, options: CoefficientsOptions, text: ModelText | None = None) -> None:
        """Parse the text of the file; raise `ModelError` with file and line for an invalid one."""
        if text is None:
            raise UsageError("the model 'coefficients' needs the text of a coefficients file")
        super().__init__(options, text)
        self._fitted = FittedCoefficients(text.name, options.unit_s, parse_coefficients(text))

    def fit(self, timings: Timings) -> FittedCoefficients:  # noqa: ARG002 - the fit is given
        """Return the model that the file holds."""
        return self._fitted


def parse_coefficients(text: ModelText) -> dict[str, tuple[float, ...]]:
    """Return the coefficients by event, the constant last.

    Blank lines and lines that begin with `#` are skipped. The event's name is everything before the
    trailing numbers of a line, so it may contain blanks. Raise `ModelError` with file and line for
    an invalid line or a duplicated event, and for a file without coefficients.
    """
    events: dict[str, tuple[float, ...]] = {}
    for number, line in enumerate(text.text.split("\n"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        numbers = list(takewhile(_NUMBER.fullmatch, reversed(words)))[::-1]
        where, shown = f"{printable(text.name)}:{number}", printable(line.strip()[:80])
        if not numbers:
            raise ModelError(f"{where}: the line does not end in a number: {shown!r}")
        if len(numbers) == len(words):
            raise ModelError(f"{where}: there is no event before the numbers: {shown!r}")
        if len(numbers) > MAX_COEFFICIENTS:
            raise ModelError(f"{where}: {len(numbers)} coefficients; at most {MAX_COEFFICIENTS}")
        values = tuple(map(float, numbers))
        if not np.isfinite(values).all():
            raise ModelError(f"{where}: a number is larger than any float64: {shown!r}")
        event = line.strip().rsplit(maxsplit=len(numbers))[0]
        if event in events:
            raise ModelError(f"{where}: event {event!r} is already in a line above")
        events[event] = values
    if not events:
        raise ModelError(f"{printable(text.name)}: contains no coefficients")
    return events
