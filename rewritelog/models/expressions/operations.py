"""What the operators and functions of expressions compute, on arrays and on constants.

Every operation is elementwise IEEE arithmetic in float64: log(0) is −∞, 0/0 is NaN, and no warning
is raised by whoever calls within `np.errstate`. A result goes into the place of an operand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Value: TypeAlias = Any
"""A float64 array of its own, or a `np.float64`: numpy's stubs have no short name for the two."""


@dataclass(frozen=True)
class Operation:
    """An operator or function: how many operands it takes from the stack, and what it gives."""

    arity: int
    compute: Callable[..., Value]
    """Takes its operands, which it may overwrite, and returns the result."""


def _unary(ufunc: np.ufunc) -> Operation:
    """Return the operation of a function of one operand."""

    def compute(operand: Value) -> Value:
        return ufunc(operand, out=_reusable(operand))

    return Operation(1, compute)


def _binary(ufunc: np.ufunc) -> Operation:
    """Return the operation of a function of two operands; truth values become 1 and 0."""

    def compute(left: Value, right: Value) -> Value:
        target = _reusable(left, right)
        result = ufunc(left, right, out=target)
        return result if target is not None else np.float64(result)

    return Operation(2, compute)


def _reusable(*operands: Value) -> NDArray[np.float64] | None:
    """Return the first operand that is an array, to hold the result; None among constants."""
    for operand in operands:
        if isinstance(operand, np.ndarray):
            return operand
    return None


def _power(base: Value, exponent: Value) -> Value:
    """Return base^exponent; squares, the commonest power, by one multiplication."""
    if isinstance(exponent, np.float64) and exponent == 2:
        return np.multiply(base, base, out=_reusable(base))
    return np.power(base, exponent, out=_reusable(base, exponent))


def _torus_distance(*places_and_sizes: Value) -> Value:
    """Return how many steps from cell to neighbouring cell part two cells of a periodic grid.

    In each dimension d = |a − b| modulo n, and min(d, n − d) is the shorter way round; the sum over
    the dimensions (Manhattan) tells neighbours across a face (1), an edge (2) and a corner (3)
    apart, whose shares within a cutoff differ. A size that is infinite does not wrap round; one
    that is not above 0 gives NaN.
    """
    x1, y1, z1, x2, y2, z2, nx, ny, nz = places_and_sizes
    return _way_round(x1, x2, nx) + _way_round(y1, y2, ny) + _way_round(z1, z2, nz)


def _way_round(start: Value, end: Value, size: Value) -> Value:
    """Return the shorter of the two ways between two places on a ring."""
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
"""The operators between two operands."""

NEGATE = "negate"
"""The name of the minus before one operand, which `-` between two does not clash with."""

MANY = frozenset({"min", "max"})
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
"""The functions by name; logarithms are natural but for log2, and min and max pass NaN on."""

OPERATIONS = {**OPERATORS, **FUNCTIONS, NEGATE: _unary(np.negative)}
"""All operations by the name that a step has for them."""
