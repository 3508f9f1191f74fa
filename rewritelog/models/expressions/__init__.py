"""Expressions in an event's parameters: text in, a value for each row of parameters out.

`parse` turns a text such as `min(p1, p2)*log1p(p3) + 2` into an `Expression`. No text ever reaches
Python's `eval`, and untrusted text takes bounded time, memory and stack.

Modules: `origin` (the location of a text, for errors), `parser`, `operations` (the steps of an
expression and what they compute), `expression` (evaluation), `languages` (its text in each).
"""

from __future__ import annotations

from rewritelog.models.expressions.expression import Expression, constant
from rewritelog.models.expressions.operations import FUNCTIONS
from rewritelog.models.expressions.origin import FormulaError, Origin
from rewritelog.models.expressions.parser import (
    MAX_DEPTH,
    MAX_LENGTH,
    MAX_PARAMETERS,
    MAX_STEPS,
    is_name,
    parameter_number,
    parse,
)

__all__ = [
    "FUNCTIONS",
    "MAX_DEPTH",
    "MAX_LENGTH",
    "MAX_PARAMETERS",
    "MAX_STEPS",
    "Expression",
    "FormulaError",
    "Origin",
    "constant",
    "is_name",
    "parameter_number",
    "parse",
]
