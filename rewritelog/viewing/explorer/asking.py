"""What the page asks for: JSON from a browser, of which nothing is taken for granted."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from rewritelog.errors import UsageError
from rewritelog.models.exact_matches import ExactMatch
from rewritelog.models.fitting.samples import Weighting
from rewritelog.models.fitting.solving import Loss
from rewritelog.models.formulas.reading import MAX_TERMS
from rewritelog.viewing.explorer.choices import LONGEST_TERM, FitChoices

MOST_CHARACTERS = 8 << 20
"""A longer message is refused: a million lines left out have fewer."""


@dataclass(frozen=True)
class Refit:
    """Fit an event as chosen."""

    event: int
    choices: FitChoices


@dataclass(frozen=True)
class Check:
    """Say whether terms and category are valid, while they are typed."""

    event: int
    choices: FitChoices


@dataclass(frozen=True)
class Predict:
    """Predict an event's time at parameters."""

    event: int
    params: tuple[float, ...]


@dataclass(frozen=True)
class Show:
    """Send what the page shows of an event."""

    event: int


@dataclass(frozen=True)
class Plain:
    """What needs no more than its name: undo, redo, stop, save, rewrite."""

    do: str


Request: TypeAlias = Refit | Check | Predict | Show | Plain

PLAIN = ("undo", "redo", "stop", "save", "rewrite")
_CHOICES = {"event", "terms", "category", "weights", "loss", "exact_match", "left_out"}


@dataclass(frozen=True)
class Sizes:
    """What a request can name: lines and parameters of each event."""

    lines: tuple[int, ...]
    parameters: tuple[int, ...]


def read_request(text: str, sizes: Sizes) -> Request:
    """Return what a message asks for; raise `UsageError` for one that is invalid."""
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
        _only(value, set())
        return Plain(do)
    if do in ("refit", "check"):
        _only(value, _CHOICES)
        event = _place(value["event"], "event", len(sizes.lines))
        choices = _choices(value, sizes.lines[event])
        return Refit(event, choices) if do == "refit" else Check(event, choices)
    if do == "show":
        _only(value, {"event"})
        return Show(_place(value["event"], "event", len(sizes.lines)))
    if do == "predict":
        _only(value, {"event", "params"})
        event = _place(value["event"], "event", len(sizes.lines))
        return Predict(event, _params(value["params"], sizes.parameters[event]))
    raise UsageError("unknown kind of message")


def _only(value: Mapping[str, Any], keys: set[str]) -> None:
    if set(value) != keys:
        names = ", ".join(sorted(keys)) or "none"
        raise UsageError(f"the keys of this message must be {names}")


def _place(value: Any, what: str, count: int) -> int:
    if type(value) is not int or not 0 <= value < count:
        raise UsageError(f"{what} must be a whole number from 0 to {count - 1}")
    return value


def _choices(value: Mapping[str, Any], lines: int) -> FitChoices:
    terms = value["terms"]
    if not isinstance(terms, list) or len(terms) > MAX_TERMS:
        raise UsageError(f"terms must be a list of at most {MAX_TERMS} texts")
    left_out = value["left_out"]
    if not isinstance(left_out, list) or len(left_out) > lines:
        raise UsageError("left_out must be a list of lines")
    return FitChoices(
        terms=tuple(_text(term, "term") for term in terms),
        category=_text(value["category"], "category").strip(),
        weights=_one_of(value["weights"], "weights", get_args(Weighting)),
        loss=_one_of(value["loss"], "loss", get_args(Loss)),
        exact_match=_one_of(value["exact_match"], "exact_match", get_args(ExactMatch)),
        left_out=frozenset(_place(row, "a line left out", lines) for row in left_out),
    )


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TERM + 1:
        raise UsageError(f"a {what} must be a text of at most {LONGEST_TERM} characters")
    return value


def _one_of(value: Any, what: str, known: tuple[str, ...]) -> Any:
    if value not in known or not isinstance(value, str):
        raise UsageError(f"{what} must be one of {', '.join(known)}")
    return value


def _params(value: Any, count: int) -> tuple[float, ...]:
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
