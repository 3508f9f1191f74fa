"""A parsed expression: its steps in postfix order, their evaluation, and its canonical text.

Steps are in a flat tuple, so that nothing that is done with an expression recurses.
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
"""Rows computed at a time, so that all temporaries stay in the cache."""

BINDING = {"+": 2, "-": 2, "*": 3, "/": 3, "^": 5} | dict.fromkeys(
    ("<", "<=", ">", ">=", "==", "!="), 1
)
"""How tight each operator binds."""

SIGN_BINDING = 4
"""How tight a sign binds: −a^b is −(a^b), and −a·b is (−a)·b."""

_TIGHTEST = 6
"""The binding of what needs no parentheses anywhere."""


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
    """An operation on what the steps before have left."""

    name: str


Step: TypeAlias = Constant | Parameter | Apply


@dataclass(frozen=True)
class Expression:
    """A formula over the parameters of one event; `parse` makes it.

    Two are equal where they compute the same in the same order. `str` gives a text that parses to
    an equal one.
    """

    steps: tuple[Step, ...]
    """In postfix order: operands before their operation."""

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.steps)

    @cached_property
    def parameters(self) -> frozenset[int]:
        """Return which parameters it needs, counted from 1."""
        return frozenset(step.number for step in self.steps if isinstance(step, Parameter))

    @cached_property
    def _needed(self) -> int:
        """The largest number of its parameters."""
        return max(self.parameters, default=0)

    def evaluate(self, params: Floats) -> Floats:
        """Return the value for each row of `params`, shape (rows, parameters), as float64 (rows,).

        Values are IEEE arithmetic's, NaN and infinity included, without warnings. A row's value
        does not depend on the rows beside it. Raise `ModelError` where a parameter is missing.
        """
        if params.ndim != 2 or params.shape[1] < self._needed:
            needed = f"{self} needs {self._needed} parameters"
            raise ModelError(f"{needed}, not an array of {params.shape}")
        values = np.empty(len(params))
        with np.errstate(all="ignore"):
            for start in range(0, len(params), BLOCK_ROWS):
                block = slice(start, start + BLOCK_ROWS)
                values[block] = self._evaluate_block(params[block])
        return values

    def times(self, other: Expression) -> Expression:
        """Return the product of both."""
        return self.applied("*", other)

    def applied(self, operation: str, other: Expression) -> Expression:
        """Return what an operation of two operands makes of both."""
        return Expression((*self.steps, *other.steps, Apply(operation)))

    def with_parameters(self, values: Mapping[int, Expression]) -> Expression:
        """Return it with expressions in the place of parameters, each of which must be given."""
        steps: list[Step] = []
        for step in self.steps:
            steps.extend(values[step.number].steps if isinstance(step, Parameter) else (step,))
        return Expression(tuple(steps))

    @property
    def is_sum(self) -> bool:
        """Return whether its last operation binds looser than a product: it needs parentheses."""
        last = self.steps[-1]
        return isinstance(last, Apply) and BINDING.get(last.name, _TIGHTEST) < BINDING["*"]

    def spelled(self, names: Mapping[int, str]) -> str:
        """Return the canonical text, with names for the parameters that have one."""
        texts: list[tuple[str, int]] = []
        for step in self.steps:
            if isinstance(step, Constant):
                texts.append((_spell_number(step.value), _TIGHTEST))
            elif isinstance(step, Parameter):
                texts.append((names.get(step.number, f"p{step.number}"), _TIGHTEST))
            else:
                arity = OPERATIONS[step.name].arity
                texts[-arity:] = [_spell(step.name, texts[-arity:])]
        ((text, _),) = texts
        return text

    def __str__(self) -> str:
        return self.spelled({})

    def _evaluate_block(self, params: Floats) -> Value:
        """Return the value of a few rows: an array, or a constant for all of them.

        Each array on the stack is a contiguous copy of its own, which operations overwrite: that
        saves temporaries, and the memory layout, by which numpy picks its loops, never varies.
        """
        stack: list[Value] = []
        for step in self.steps:
            if isinstance(step, Constant):
                stack.append(np.float64(step.value))
            elif isinstance(step, Parameter):
                stack.append(params[:, step.number - 1].astype(np.float64))
            else:
                operation = OPERATIONS[step.name]
                stack[-operation.arity :] = [operation.compute(*stack[-operation.arity :])]
        return stack[0]


def constant(value: float) -> Expression:
    """Return the expression of a number."""
    sign = (Apply(NEGATE),) if value < 0 else ()
    return Expression((Constant(abs(value)), *sign))


def _spell_number(value: float) -> str:
    """Return the shortest text that reads back as the number; whole ones without a point."""
    text = repr(value)
    return text.removesuffix(".0")


def _spell(name: str, operands: list[tuple[str, int]]) -> tuple[str, int]:
    """Return the text of an operation with its binding; operands come as texts with theirs."""
    if name == NEGATE:
        return "-" + _bracketed(operands[0], SIGN_BINDING), SIGN_BINDING
    if name in OPERATORS:
        return _spell_operator(name, *operands), BINDING[name]
    texts = [text for text, _ in operands]
    if name in MANY and texts[0].startswith(f"{name}(") and operands[0][1] == _TIGHTEST:
        texts[0] = texts[0][len(name) + 1 : -1]  # min(min(a, b), c) is min(a, b, c)
    return f"{name}({', '.join(texts)})", _TIGHTEST


def _spell_operator(name: str, left: tuple[str, int], right: tuple[str, int]) -> str:
    """Return both operands with the operator between, in parentheses only where they must be."""
    binding = BINDING[name]
    if name == "^":
        return f"{_bracketed(left, binding + 1)}^{_bracketed(right, SIGN_BINDING)}"
    from_left = binding + 1 if binding == BINDING["<"] else binding
    between = name if name in "*/" else f" {name} "
    return _bracketed(left, from_left) + between + _bracketed(right, binding + 1)


def _bracketed(operand: tuple[str, int], loosest: int) -> str:
    """Return an operand's text, in parentheses where it binds looser than its place allows."""
    text, binding = operand
    return text if binding >= loosest else f"({text})"
