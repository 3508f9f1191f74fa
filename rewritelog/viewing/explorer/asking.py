"""The requests of the page: JSON from a browser, which is not trusted."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from rewritelog.errors import UsageError
from rewritelog.models.exact_matches import ExactMatch
from rewritelog.models.fitting.regression import Loss
from rewritelog.models.fitting.samples import Weighting
from rewritelog.models.formulas.reading import MAX_TERMS
from rewritelog.viewing.explorer.choices import LONGEST_TERM, FitChoices

MOST_CHARACTERS = 8 << 20
"""Longer messages are refused; a list of a million lines left out is shorter."""


@dataclass(frozen=True)
class Refit:
    """Request to fit an event as chosen."""

    event: int
    choices: FitChoices


@dataclass(frozen=True)
class Check:
    """Request to check whether terms and category are valid, sent while the user types."""

    event: int
    choices: FitChoices


@dataclass(frozen=True)
class Predict:
    """Request to predict an event's time at parameters."""

    event: int
    params: tuple[float, ...]


@dataclass(frozen=True)
class Show:
    """Request for the data that the page shows of an event."""

    event: int


@dataclass(frozen=True)
class Plain:
    """A request without arguments: undo, redo, stop, save, rewrite."""

    do: str


Request: TypeAlias = Refit | Check | Predict | Show | Plain

PLAIN = ("undo", "redo", "stop", "save", "rewrite")
_CHOICES = {"event", "terms", "category", "weights", "loss", "exact_match", "left_out"}


@dataclass(frozen=True)
class Sizes:
    """The numbers of lines and of parameters of each event, against which requests are checked."""

    lines: tuple[int, ...]
    parameters: tuple[int, ...]


def read_request(text: str, sizes: Sizes) -> Request:
    """Return the request in a message; raise `UsageError` for an invalid one."""
    if len(text) > MOST_CHARACTERS:
        raise UsageError("the message is too long")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError("the message is not JSON") from error
    if not isinstance(value, dict):
        raise UsageError("the message is not an object")
    do = value.pop("do", None)
    if do in PLAIN:
        _check_keys(value, set())
        return Plain(do)
    if do in ("refit", "check"):
        _check_keys(value, _CHOICES)
        event = _checked_index(value["event"], "event", len(sizes.lines))
        choices = _checked_choices(value, sizes.lines[event])
        return Refit(event, choices) if do == "refit" else Check(event, choices)
    if do == "show":
        _check_keys(value, {"event"})
        return Show(_checked_index(value["event"], "event", len(sizes.lines)))
    if do == "predict":
        _check_keys(value, {"event", "params"})
        event = _checked_index(value["event"], "event", len(sizes.lines))
        return Predict(event, _checked_params(value["params"], sizes.parameters[event]))
    raise UsageError("unknown kind of message")


def _check_keys(value: Mapping[str, Any], keys: set[str]) -> None:
    if set(value) != keys:
        names = ", ".join(sorted(keys)) or "none"
        raise UsageError(f"the keys of this message must be {names}")


def _checked_index(value: Any, what: str, count: int) -> int:
    if type(value) is not int or not 0 <= value < count:
        raise UsageError(f"{what} must be an integer from 0 to {count - 1}")
    return value


def _checked_choices(value: Mapping[str, Any], lines: int) -> FitChoices:
    terms = value["terms"]
    if not isinstance(terms, list) or len(terms) > MAX_TERMS:
        raise UsageError(f"terms must be a list of at most {MAX_TERMS} texts")
    left_out = value["left_out"]
    if not isinstance(left_out, list) or len(left_out) > lines:
        raise UsageError("left_out must be a list of lines")
    return FitChoices(
        terms=tuple(_checked_text(term, "term") for term in terms),
        category=_checked_text(value["category"], "category").strip(),
        weights=_one_of(value["weights"], "weights", get_args(Weighting)),
        loss=_one_of(value["loss"], "loss", get_args(Loss)),
        exact_match=_one_of(value["exact_match"], "exact_match", get_args(ExactMatch)),
        left_out=frozenset(_checked_index(row, "a line left out", lines) for row in left_out),
    )


def _checked_text(value: Any, what: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TERM + 1:
        raise UsageError(f"a {what} must be a text of at most {LONGEST_TERM} characters")
    return value


def _one_of(value: Any, what: str, known: tuple[str, ...]) -> Any:
    if value not in known or not isinstance(value, str):
        raise UsageError(f"{what} must be one of {', '.join(known)}")
    return value


def _checked_params(value: Any, count: int) -> tuple[float, ...]:
    if not isinstance(value, list) or len(value) != count:
        raise UsageError(f"params must be a list of {count} numbers")
    for one in value:
        if type(one) not in (int, float) or not math.isfinite(_float(one)):
            raise UsageError("a parameter must be a finite number")
    return tuple(map(_float, value))


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
