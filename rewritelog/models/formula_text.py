"""Fitted functions as formulas: in the syntax of formulas files, in Python and in LaTeX."""

from __future__ import annotations

from typing import get_args

from rewritelog.errors import ModelError, UsageError
from rewritelog.models.expressions import Language, number_in_language
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.fitting.function import FittedFunction, FittedMixture, formula_of
from rewritelog.text import parameter_names

_TIMES = {"text": "*", "python": " * ", "latex": r" \, "}
_POWER = {"text": "({})^{}", "python": "({})**{}", "latex": r"\left({}\right)^{{{}}}"}


def formula_text(fit: EventFit, language: Language = "text") -> str:
    """Return the seconds of an event as a formula of its parameters.

    Raise `UsageError` for an unknown language.
    """
    if language not in get_args(Language):
        raise UsageError(f"unknown language {language!r}; known: {', '.join(get_args(Language))}")
    names = dict(enumerate(parameter_names(fit.parameters, fit.names), 1))
    function = formula_of(fit.whole.function)
    if not isinstance(function, FittedMixture):
        return _sum_text(function, names, language)
    return _TIMES[language].join(
        _POWER[language].format(
            _sum_text(member, names, language), number_in_language(weight, language)
        )
        for weight, member in zip(function.weights, function.members, strict=True)
    )


def plain_function(fit: EventFit) -> FittedFunction:
    """Return the function of an event as a sum of terms; raise `ModelError` for a mean of sums."""
    function = formula_of(fit.whole.function)
    if not isinstance(function, FittedFunction):
        raise ModelError(
            f"the function of {fit.event!r} is a mean of formulas, without coefficients of its own"
        )
    return function


def terms_of(fit: EventFit) -> dict[str, float]:
    """Return the coefficient of each term of an event's function, in seconds."""
    function, names = plain_function(fit), parameter_names(fit.parameters, fit.names)
    values = (function.coefficients * function.calibration).tolist()
    called = dict(enumerate(names, 1))
    return {term.to_text(called): value for term, value in zip(function.terms, values, strict=True)}


def _sum_text(function: FittedFunction, names: dict[int, str], language: Language) -> str:
    """Return Σ coefficient · term, without terms of coefficient 0."""
    values = (function.coefficients * function.calibration).tolist()
    texts = []
    for term, value in zip(function.terms, values, strict=True):
        if value:
            factor, number = term.as_factor(names, language), number_in_language(value, language)
            texts.append(number if factor == "1" else f"{number}{_TIMES[language]}{factor}")
    return (" + ".join(texts) or "0").replace("+ -", "- ")
