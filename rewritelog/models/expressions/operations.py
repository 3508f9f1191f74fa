"""The steps of expressions, and what operators and functions compute on arrays and constants.

Every operation is elementwise IEEE 754 arithmetic in float64: log(0) is −∞ and 0/0 is NaN. Callers
suppress numpy's warnings with `np.errstate`. A result overwrites an operand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Value: TypeAlias = Any
"""A float64 array that may be overwritten, or a `np.float64`; numpy has no name for both."""


@dataclass(frozen=True, slots=True)
class Number:
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


Step: TypeAlias = Number | Parameter | Apply


@dataclass(frozen=True)
class Operation:
    """An operator or function: its number of operands, and what it computes."""

    arity: int
    compute: Callable[..., Value]
    """A function of the operands, which it may overwrite, that returns the result."""


def _unary(ufunc: np.ufunc) -> Operation:
    """Return the operation of a ufunc with one operand."""

    def compute(operand: Value) -> Value:
        return ufunc(operand, out=_reusable(operand))

    return Operation(1, compute)


def _binary(ufunc: np.ufunc) -> Operation:
    """Return the operation of a ufunc with two operands; booleans become 1 and 0."""

    def compute(left: Value, right: Value) -> Value:
        target = _reusable(left, right)
        result = ufunc(left, right, out=target)
        return result if target is not None else np.float64(result)

    return Operation(2, compute)


def _reusable(*operands: Value) -> NDArray[np.float64] | None:
    """Return the first operand that is an array, to hold the result; None if all are constants."""
    for operand in operands:
        if isinstance(operand, np.ndarray):
            return operand
    return None


def _power(base: Value, exponent: Value) -> Value:
    """Return base^exponent; squares, the most common power, by one multiplication."""
    if isinstance(exponent, np.float64) and exponent == 2:
        return np.multiply(base, base, out=_reusable(base))
    return np.power(base, exponent, out=_reusable(base, exponent))


def _torus_distance(*positions_and_sizes: Value) -> Value:
    """Return the Manhattan distance of two cells in a periodic grid.

    It is the sum of min(d, n − d) over the dimensions, where d = |a − b| modulo n. It distinguishes
    neighbours across a face (1), an edge (2) and a corner (3), whose shares of pairs within a
    cutoff differ. An infinite size does not wrap round; one that is not positive returns NaN.
    """
    x1, y1, z1, x2, y2, z2, nx, ny, nz = positions_and_sizes
    return _ring_distance(x1, x2, nx) + _ring_distance(y1, y2, ny) + _ring_distance(z1, z2, nz)


def _ring_distance(start: Value, end: Value, size: Value) -> Value:
    """Return the shorter of the two distances between two positions on a ring."""
    way = np.fmod(np.abs(start - end), size)
    return np.minimum(way, np.where(size > 0, size, np.nan) - way)


OPERATORS = {
    "+": _binary(np.add),
    "-": _binary(np.subtract),
    "*": _binary(np.multiply),
    "/": _binary(np.divide),
    "^": Operation(2, _power),
    "<": _binary(np.less),
    "<=": _binary(np.less_equal),
    ">": _binary(np.greater),
    ">=": _binary(np.greater_equal),
    "==": _binary(np.equal),
    "!=": _binary(np.not_equal),
}
"""The binary operators."""

PRECEDENCE = {"+": 2, "-": 2, "*": 3, "/": 3, "^": 5} | dict.fromkeys(
    ("<", "<=", ">", ">=", "==", "!="), 1
)
"""The precedence of each operator; a higher one binds tighter."""

SIGN_PRECEDENCE = 4
"""The precedence of a sign: −a^b is −(a^b), and −a·b is (−a)·b."""

NEGATE = "negate"
"""The name of the unary minus, which differs from that of the binary one."""

VARIADIC = frozenset({"min", "max"})
"""Functions of two or more operands; min(a, b, c) is min(min(a, b), c)."""

FUNCTIONS = {
    "abs": _unary(np.absolute),
    "ceil": _unary(np.ceil),
    "exp": _unary(np.exp),
    "floor": _unary(np.floor),
    "log": _unary(np.log),
    "log1p": _unary(np.log1p),
    "log2": _unary(np.log2),
    "max": _binary(np.maximum),
    "min": _binary(np.minimum),
    "sqrt": _unary(np.sqrt),
    "torus_distance": Operation(9, _torus_distance),
}
"""The functions by name; logarithms are natural except log2, and min and max propagate NaN."""

OPERATIONS = {**OPERATORS, **FUNCTIONS, NEGATE: _unary(np.negative)}
"""All operations by their names in steps."""
