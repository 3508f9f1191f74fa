"""Expressions in an event's parameters: text in, a value for each row of parameters out.

`parse` turns a text such as `min(p1, p2)*log1p(p3) + 2` into an `Expression`. No text ever reaches
Python's `eval`, and untrusted text takes bounded time, memory and stack.

Modules: `parser`, with the errors that say where a text is wrong, and `expression`: the steps of
an expression, what they compute, and their text in each language.
"""

from __future__ import annotations

from rewritelog.models.expressions.expression import (
    FUNCTIONS,
    Expression,
    Language,
    constant,
    number_in_language,
)
from rewritelog.models.expressions.parser import (
    MAX_PARAMETERS,
    FormulaError,
    Origin,
    checked_names,
    name_problem,
    parameter_number,
    parse,
)

__all__ = [
    "FUNCTIONS",
    "MAX_PARAMETERS",
    "Expression",
    "FormulaError",
    "Language",
    "Origin",
    "checked_names",
    "constant",
    "name_problem",
    "number_in_language",
    "parameter_number",
    "parse",
]
