"""A parsed expression: its steps in postfix notation, their evaluation, and its canonical text.

The steps are a flat tuple, so that no operation on an expression is recursive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.errors import ModelError
from rewritelog.models.expressions.operations import (
    MANY,
    NEGATE,
    OPERATIONS,
    OPERATORS,
    Value,
)

BLOCK_ROWS = 1 << 13
"""Rows evaluated at a time, so that all temporaries stay in the cache."""

PRECEDENCE = {"+": 2, "-": 2, "*": 3, "/": 3, "^": 5} | dict.fromkeys(
    ("<", "<=", ">", ">=", "==", "!="), 1
)
"""The precedence of each operator; a higher one binds tighter."""

SIGN_PRECEDENCE = 4
"""The precedence of a sign: −a^b is −(a^b), and −a·b is (−a)·b."""

_TIGHTEST = 6
"""The precedence of what never needs parentheses."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, not negative."""

    value: float


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter, counted from 1."""

    number: int


@dataclass(frozen=True, slots=True)
class Apply:
    """An operation on the values that the steps before it have left on the stack."""

    name: str


Step: TypeAlias = Constant | Parameter | Apply

_APPLY = {name: Apply(name) for name in OPERATIONS}


@dataclass(frozen=True)
class Expression:
    """An expression in the parameters of one event; `parse` creates it.

    Two are equal if they consist of the same steps. `str` returns a text that parses to an equal
    one.
    """

    steps: tuple[Step, ...]
    """In postfix notation: operands before their operation."""

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

    @property
    def is_sum(self) -> bool:
        """Whether it needs parentheses as a factor: its last operation binds looser than `*`."""
        last = self.steps[-1]
        return isinstance(last, Apply) and PRECEDENCE.get(last.name, _TIGHTEST) < PRECEDENCE["*"]

    def to_text(self, names: Mapping[int, str]) -> str:
        """Return the canonical text, with the parameters in `names` called by these names."""
        texts: list[tuple[str, int]] = []
        for step in self.steps:
            if isinstance(step, Constant):
                texts.append((_number_text(step.value), _TIGHTEST))
            elif isinstance(step, Parameter):
                texts.append((names.get(step.number, f"p{step.number}"), _TIGHTEST))
            else:
                arity = OPERATIONS[step.name].arity
                texts[-arity:] = [_operation_text(step.name, texts[-arity:])]
        ((text, _),) = texts
        return text

    def __str__(self) -> str:
        return self.to_text({})

    def _evaluate_block(self, params: Floats) -> Value:
        """Return the values of a block of rows: an array, or a constant for all of them.

        Each array on the stack is a contiguous copy that operations may overwrite. That saves
        temporaries, and keeps the memory layout, by which numpy chooses its loops, the same.
        """
        stack: list[Value] = []
        for step in self.steps:
            if isinstance(step, Constant):
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
    return Expression((Constant(abs(value)), *sign))


def _number_text(value: float) -> str:
    """Return the shortest text that reads back as the number; integers without a point."""
    text = repr(value)
    return text.removesuffix(".0")


def _operation_text(name: str, operands: list[tuple[str, int]]) -> tuple[str, int]:
    """Return text and precedence of an operation, given those of its operands."""
    if name == NEGATE:
        return "-" + _parenthesized(operands[0], SIGN_PRECEDENCE), SIGN_PRECEDENCE
    if name in OPERATORS:
        return _operator_text(name, *operands), PRECEDENCE[name]
    texts = [text for text, _ in operands]
    if name in MANY and texts[0].startswith(f"{name}(") and operands[0][1] == _TIGHTEST:
        texts[0] = texts[0][len(name) + 1 : -1]  # min(min(a, b), c) is min(a, b, c)
    return f"{name}({', '.join(texts)})", _TIGHTEST


def _operator_text(name: str, left: tuple[str, int], right: tuple[str, int]) -> str:
    """Return the text of a binary operation, with parentheses only where they are needed."""
    precedence = PRECEDENCE[name]
    if name == "^":
        return f"{_parenthesized(left, precedence + 1)}^{_parenthesized(right, SIGN_PRECEDENCE)}"
    from_left = precedence + 1 if precedence == PRECEDENCE["<"] else precedence
    between = name if name in "*/" else f" {name} "
    return _parenthesized(left, from_left) + between + _parenthesized(right, precedence + 1)


def _parenthesized(operand: tuple[str, int], loosest: int) -> str:
    """Return an operand's text, in parentheses if it binds looser than `loosest`."""
    text, precedence = operand
    return text if precedence >= loosest else f"({text})"
