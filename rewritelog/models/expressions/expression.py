"""A parsed expression: its steps in postfix notation, their evaluation, and its canonical text.

The steps are a flat tuple, so that no operation on an expression is recursive.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.errors import ModelError
from rewritelog.models.expressions.languages import PRODUCT, Language, enclosed, in_language
from rewritelog.models.expressions.operations import (
    NEGATE,
    OPERATIONS,
    Apply,
    Number,
    Parameter,
    Step,
    Value,
)

BLOCK_ROWS = 1 << 13
"""Rows evaluated at a time, so that all temporaries stay in the cache."""

_APPLY = {name: Apply(name) for name in OPERATIONS}


class Expression:
    """An expression in the parameters of one event; `parse` creates it.

    Two are equal if they consist of the same steps. `str` returns a text that parses to an equal
    one.
    """

    def __init__(self, steps: tuple[Step, ...]) -> None:
        """Take the steps in postfix notation: operands before their operation."""
        self.steps = steps

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.steps == other.steps

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.steps)

    @cached_property
    def parameters(self) -> frozenset[int]:
        """The numbers of the parameters that it needs, counted from 1."""
        return frozenset(step.number for step in self.steps if isinstance(step, Parameter))

    def evaluate(self, params: Floats) -> Floats:
        """Return the value for each row of `params`, shape (rows, parameters), as float64 (rows,).

        The arithmetic is IEEE 754's, including NaN and infinity, without warnings. The value of a
        row does not depend on the other rows. Raise `ModelError` if a parameter is missing.
        """
        values = np.empty(len(params))
        with np.errstate(all="ignore"):
            self.evaluate_into(values, params)
        return values

    def evaluate_into(self, values: Floats, params: Floats) -> None:
        """Fill `values`, shape (rows,), like `evaluate`, but with numpy's warnings."""
        try:
            if len(params) <= BLOCK_ROWS:
                values[:] = self._evaluate_block(params)
                return
            for start in range(0, len(params), BLOCK_ROWS):
                block = slice(start, start + BLOCK_ROWS)
                values[block] = self._evaluate_block(params[block])
        except IndexError:
            needed = f"{self} needs {max(self.parameters)} parameters"
            raise ModelError(f"{needed}, not an array of {params.shape}") from None

    def times(self, other: Expression) -> Expression:
        """Return the product of the two."""
        return self.applied("*", other)

    def applied(self, operation: str, other: Expression) -> Expression:
        """Return an operation of two operands applied to the two."""
        return Expression((*self.steps, *other.steps, _APPLY[operation]))

    def mapped(self, function: str) -> Expression:
        """Return a function of one operand applied to it."""
        return Expression((*self.steps, _APPLY[function]))

    def with_parameters(self, values: Mapping[int, Expression]) -> Expression:
        """Return it with an expression substituted for each parameter; none may be missing."""
        steps: list[Step] = []
        for step in self.steps:
            steps.extend(values[step.number].steps if isinstance(step, Parameter) else (step,))
        return Expression(tuple(steps))

    def to_text(self, names: Mapping[int, str], language: Language = "text") -> str:
        """Return the text in a language, with the parameters in `names` called by these names.

        Raise `ModelError` for a function that the language does not have.
        """
        return in_language(self.steps, names, language)[0]

    def as_factor(self, names: Mapping[int, str], language: Language = "text") -> str:
        """Return the same, in parentheses if it needs them as a factor of a product."""
        return enclosed(in_language(self.steps, names, language), PRODUCT, language)

    def __str__(self) -> str:
        return self.to_text({})

    def _evaluate_block(self, params: Floats) -> Value:
        """Return the values of a block of rows: an array, or a constant for all of them.

        Each array on the stack is a contiguous copy that operations may overwrite. That saves
        temporaries, and keeps the memory layout, by which numpy chooses its loops, the same.
        """
        stack: list[Value] = []
        for step in self.steps:
            if isinstance(step, Number):
                stack.append(np.float64(step.value))
            elif isinstance(step, Parameter):
                stack.append(params[:, step.number - 1].astype(np.float64))
            else:
                operation = OPERATIONS[step.name]
                if operation.arity == 1:
                    stack[-1] = operation.compute(stack[-1])
                elif operation.arity == 2:
                    right = stack.pop()
                    stack[-1] = operation.compute(stack[-1], right)
                else:
                    stack[-operation.arity :] = [operation.compute(*stack[-operation.arity :])]
        return stack[0]


def constant(value: float) -> Expression:
    """Return the expression of a number."""
    sign = (Apply(NEGATE),) if value < 0 else ()
    return Expression((Number(abs(value)), *sign))
