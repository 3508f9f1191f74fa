"""The model whose fit was made elsewhere: a file of coefficients, a line for each event.

    Cell::pairForces  3.1e-9 2.2e-7 1.5e-6

is 3.1e-9·p1 + 2.2e-7·p2 + 1.5e-6 seconds: the constant is last. Where twice as many
coefficients come before it as there are parameters, they are those of p1, p1², p2, p2² and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.errors import ModelError, UsageError
from rewritelog.models.base import FittedModel, Model, ModelText, Timings
from rewritelog.models.options import CoefficientsOptions
from rewritelog.text import count_text, printable

MAX_PARAMETERS = 20
MAX_COEFFICIENTS = 2 * MAX_PARAMETERS + 1

_NUMBER = re.compile(r"[+-]?([0-9]++\.?[0-9]*+|\.[0-9]++)([eE][+-]?[0-9]++)?")
"""Possessive: no digit is tried twice, however many a word has."""
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class EventCoefficients:
    """One line of the file."""

    event: str
    factors: tuple[float, ...]
    """Those before the constant, in the file's unit."""
    constant: float

    def powers(self, parameters: int) -> int | None:
        """Return the highest power of each parameter, 1 or 2; None if the number fits neither."""
        return next((n for n in (1, 2) if len(self.factors) == n * parameters), None)

    def evaluate(self, params: Floats) -> Floats:
        """Return the value of each row, in the file's unit; NaN where the number does not fit."""
        powers = self.powers(params.shape[1])
        if powers is None:
            return np.full(len(params), np.nan)
        values = np.full(len(params), self.constant)
        for place, factor in enumerate(self.factors):
            column = params[:, place // powers]
            values += factor * (column if place % powers == 0 else column * column)
        return values

    def spelled(self) -> str:
        """Return how the line is understood, in a line."""
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
class FittedCoefficients(FittedModel):
    """The coefficients of each event."""

    name: str
    """The file's."""
    unit_s: float
    events: Mapping[str, EventCoefficients]

    def predict(self, event: str, params: Floats) -> Floats:
        """Return the seconds; NaN for an event or number of parameters that no line is for."""
        found = self.events.get(event)
        if found is None:
            return np.full(len(params), np.nan)
        with np.errstate(all="ignore"):
            seconds = self.unit_s * found.evaluate(params)
        seconds[~np.isfinite(seconds)] = np.nan
        return seconds

    def describe(self) -> dict[str, Any]:
        """Return what the file says."""
        return {
            "file": self.name,
            "unit_s": self.unit_s,
            "events": [
                {"event": one.event, "factors": list(one.factors), "constant": one.constant}
                for one in self.events.values()
            ],
        }

    def summary(self) -> tuple[str, ...]:
        """Return how each line is understood."""
        return tuple(one.spelled() for one in self.events.values())


class Coefficients(Model[CoefficientsOptions]):
    """Predict by coefficients that are given; nothing is fitted."""

    Options = CoefficientsOptions
    needs_timings = False
    takes_text = "coefficients"
    needs_text = True

    def __init__(self, options: CoefficientsOptions, text: ModelText | None = None) -> None:
        """Read the file's text; raise `ModelError` with file, line and column where it is wrong."""
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
    """Return the coefficients by event; blank lines and lines that begin with `#` are left out.

    An event's name is all that comes before a line's trailing run of numbers, so it may hold
    blanks. Raise `ModelError` with the place for an invalid line, for an event that is
    duplicated, and for a file without any.
    """
    events: dict[str, EventCoefficients] = {}
    lines: dict[str, int] = {}
    for number, line in _lines(text.text):
        where = f"{printable(text.name)}:{number}"
        found = _parse_line(line, where)
        if found.event in events:
            name, first = printable(found.event), lines[found.event]
            raise ModelError(f"{where}: event {name!r} is already in line {first}")
        events[found.event] = found
        lines[found.event] = number
    if not events:
        raise ModelError(f"{printable(text.name)}: contains no coefficients")
    return events


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that say something, with their numbers."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.strip()


def _parse_line(line: str, where: str) -> EventCoefficients:
    """Return a line's event and coefficients."""
    words = list(_WORD.finditer(line))
    first = len(words)
    while first and _NUMBER.fullmatch(words[first - 1].group()):
        first -= 1
    shown = printable(line[:80])
    if first == len(words):
        raise ModelError(f"{where}: the line ends with no number: {shown!r}")
    if first == 0:
        raise ModelError(f"{where}: no event comes before the numbers: {shown!r}")
    values = [float(word.group()) for word in words[first:]]
    if len(values) > MAX_COEFFICIENTS:
        raise ModelError(f"{where}: {len(values)} coefficients; at most {MAX_COEFFICIENTS}")
    for word, value in zip(words[first:], values, strict=True):
        if not np.isfinite(value):
            raise ModelError(f"{where}: {printable(word.group())} is larger than any float64")
    return EventCoefficients(line[: words[first - 1].end()], tuple(values[:-1]), values[-1])
