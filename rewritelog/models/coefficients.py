"""The model `coefficients`: a fit made elsewhere, given as a file with one line for each event.

    Cell::pairForces  3.1e-9 2.2e-7 1.5e-6

means 3.1e-9·p1 + 2.2e-7·p2 + 1.5e-6 seconds: the constant comes last. If it is preceded by twice as
many coefficients as there are parameters, they are those of p1, p1², p2, p2² and so on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
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
class EventCoefficients:
    """One line of the file."""

    event: str
    factors: tuple[float, ...]
    """The coefficients before the constant, in the file's unit."""
    constant: float

    def evaluate(self, params: Floats) -> Floats:
        """Return the value of each row, in the file's unit; NaN where the number does not fit."""
        columns, count = params.T, len(self.factors)
        if count == 2 * len(columns):
            columns = np.stack((columns, columns * columns), axis=1).reshape(count, len(params))
        values = np.full(len(params), self.constant if count == len(columns) else np.nan)
        for factor, column in zip(self.factors, columns, strict=False):
            values += factor * column
        return values

    def summary_line(self) -> str:
        """Return a line that says how the coefficients are interpreted."""
        count = len(self.factors)
        readings = [
            f"{word} in {count_text(count // power, 'parameter')}"
            for power, word in ((1, "linear"), (2, "quadratic"))
            if count % power == 0 and count // power <= MAX_PARAMETERS
        ]
        return f"{self.event}: {', or '.join(readings) if count else 'constant'}"


@dataclass(frozen=True)
class FittedCoefficients(ModelFit):
    """The coefficients of each event."""

    name: str
    """The name of the file."""
    unit_s: float
    events: Mapping[str, EventCoefficients]

    def predict(self, event: str, params: Floats) -> Floats:
        """Return the seconds of each row; NaN for an event or parameter count without a line."""
        coefficients = self.events.get(event)
        if coefficients is None:
            return np.full(len(params), np.nan)
        with np.errstate(all="ignore"):
            seconds = self.unit_s * coefficients.evaluate(params)
        seconds[~np.isfinite(seconds)] = np.nan
        return seconds

    def describe(self) -> dict[str, Any]:
        """Return the contents of the file as a JSON object."""
        return {
            "file": self.name,
            "unit_s": self.unit_s,
            "events": [asdict(line) for line in self.events.values()],
        }

    def summary(self) -> tuple[str, ...]:
        """Return how each line is interpreted."""
        return tuple(line.summary_line() for line in self.events.values())


@dataclass(frozen=True)
class CoefficientsOptions:
    """Options of the coefficients model."""

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


def parse_coefficients(text: ModelText) -> dict[str, EventCoefficients]:
    """Return the coefficients by event; blank lines and lines that begin with `#` are skipped.

    The event's name is everything before the trailing numbers of a line, so it may contain
    blanks. Raise `ModelError` with file and line for an invalid line or a duplicated event, and
    for a file without coefficients.
    """
    events: dict[str, EventCoefficients] = {}
    lines: dict[str, int] = {}
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
        for written, value in zip(numbers, values, strict=True):
            if not np.isfinite(value):
                raise ModelError(f"{where}: {printable(written)} is larger than any float64")
        event = line.strip().rsplit(maxsplit=len(numbers))[0]
        if event in events:
            raise ModelError(f"{where}: event {event!r} is already in line {lines[event]}")
        events[event], lines[event] = EventCoefficients(event, values[:-1], values[-1]), number
    if not events:
        raise ModelError(f"{printable(text.name)}: contains no coefficients")
    return events
