"""The model `coefficients`: a fit made elsewhere, given as a file with one line for each event.

    Cell::pairForces  3.1e-9 2.2e-7 1.5e-6

means 3.1e-9·p1 + 2.2e-7·p2 + 1.5e-6 seconds: the constant comes last. If it is preceded by twice as
many coefficients as there are parameters, they are those of p1, p1², p2, p2² and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.errors import ModelError, UsageError
from rewritelog.models.base import Model, ModelFit, ModelText, Timings, option
from rewritelog.text import count_text, printable

MAX_PARAMETERS = 20
MAX_COEFFICIENTS = 2 * MAX_PARAMETERS + 1

_NUMBER = re.compile(r"[+-]?([0-9]++\.?[0-9]*+|\.[0-9]++)([eE][+-]?[0-9]++)?")
"""Possessive quantifiers, so that a word of many digits is matched in linear time."""
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class EventCoefficients:
    """One line of the file."""

    event: str
    factors: tuple[float, ...]
    """The coefficients before the constant, in the file's unit."""
    constant: float

    def powers(self, parameters: int) -> int | None:
        """Return the highest power of each parameter, 1 or 2; None if their number fits neither."""
        return next((n for n in (1, 2) if len(self.factors) == n * parameters), None)

    def evaluate(self, params: Floats) -> Floats:
        """Return the value of each row, in the file's unit; NaN where the number does not fit."""
        powers = self.powers(params.shape[1])
        if powers is None:
            return np.full(len(params), np.nan)
        values = np.full(len(params), self.constant)
        for index, factor in enumerate(self.factors):
            column = params[:, index // powers]
            values += factor * (column if index % powers == 0 else column * column)
        return values

    def summary_line(self) -> str:
        """Return a line that says how the coefficients are interpreted."""
        count = len(self.factors)
        if not count:
            return f"{self.event}: constant"
        linear = f"linear in {count_text(count, 'parameter')}"
        if count % 2 or count > 2 * MAX_PARAMETERS:
            return f"{self.event}: {linear}"
        quadratic = f"quadratic in {count_text(count // 2, 'parameter')}"
        if count > MAX_PARAMETERS:
            return f"{self.event}: {quadratic}"
        return f"{self.event}: {linear}, or {quadratic}"


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
            "events": [
                {"event": line.event, "factors": list(line.factors), "constant": line.constant}
                for line in self.events.values()
            ],
        }

    def summary(self) -> tuple[str, ...]:
        """Return how each line is interpreted."""
        return tuple(line.summary_line() for line in self.events.values())


@dataclass(frozen=True)
class CoefficientsOptions:
    """Options of the coefficients model."""

    unit_s: float = option(
        1.0, "Seconds per unit of the results: 1 / clock rate if they are in cycles."
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
        if not (np.isfinite(options.unit_s) and options.unit_s > 0):
            raise UsageError(f"unit_s must be a finite number above 0, not {options.unit_s}")
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
    for number, line in _lines(text.text):
        where = f"{printable(text.name)}:{number}"
        coefficients = _parse_line(line, where)
        if coefficients.event in events:
            name, first = printable(coefficients.event), lines[coefficients.event]
            raise ModelError(f"{where}: event {name!r} is already in line {first}")
        events[coefficients.event] = coefficients
        lines[coefficients.event] = number
    if not events:
        raise ModelError(f"{printable(text.name)}: contains no coefficients")
    return events


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is neither blank nor a comment."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.strip()


def _parse_line(line: str, where: str) -> EventCoefficients:
    """Return the event and the coefficients of a line."""
    words = list(_WORD.finditer(line))
    first = len(words)
    while first and _NUMBER.fullmatch(words[first - 1].group()):
        first -= 1
    shown = printable(line[:80])
    if first == len(words):
        raise ModelError(f"{where}: the line does not end in a number: {shown!r}")
    if first == 0:
        raise ModelError(f"{where}: there is no event before the numbers: {shown!r}")
    values = [float(word.group()) for word in words[first:]]
    if len(values) > MAX_COEFFICIENTS:
        raise ModelError(f"{where}: {len(values)} coefficients; at most {MAX_COEFFICIENTS}")
    for word, value in zip(words[first:], values, strict=True):
        if not np.isfinite(value):
            raise ModelError(f"{where}: {printable(word.group())} is larger than any float64")
    return EventCoefficients(line[: words[first - 1].end()], tuple(values[:-1]), values[-1])
