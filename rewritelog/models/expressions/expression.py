"""Expressions: steps in postfix notation, what they compute on arrays, and their text.

The steps are a flat tuple, so that no operation on an expression is recursive. All arithmetic is
elementwise IEEE 754 in float64: log(0) is −∞ and 0/0 is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from keyword import iskeyword
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.errors import ModelError

Value: TypeAlias = Any
"""A float64 array, or a `np.float64`; numpy has no name for both."""

BLOCK_ROWS = 1 << 13
"""Rows evaluated at a time, so that all temporaries stay in the cache."""

Step: TypeAlias = float | str
"""A number, not negative; a parameter, as in `p1`; or an operation on the values that the steps
before it have left on the stack, by its name in `OPERATIONS`."""


Language: TypeAlias = Literal["text", "python", "latex"]
"""The syntax of formulas files, that of Python with numpy as `np`, and that of LaTeX."""

COMPARISON, SUM, PRODUCT, SIGN, POWER, CLOSED = range(1, 7)
"""Precedences: a higher one binds tighter, and what is closed never needs parentheses.

−a^b is −(a^b), and −a·b is (−a)·b."""

NEGATE = "negate"
"""The name of the unary minus, which differs from that of the binary one."""

VARIADIC = frozenset({"min", "max"})
"""Functions of two or more operands; min(a, b, c) is min(min(a, b), c)."""


class Operation(NamedTuple):
    """An operator or function: its number of operands, what it computes, and its spelling."""

    arity: int
    compute: Callable[..., Value]
    spelled: Mapping[Language, tuple[str, int]]
    """Its template and precedence in each language.

    An operand `{:3}` is in parentheses unless its precedence is 3 or higher."""


def _operator(
    compute: Callable[..., Value], precedence: int, text: str, python: str = "", latex: str = ""
) -> Operation:
    spelled: dict[Language, tuple[str, int]] = {
        "text": (text, precedence),
        "python": (python or text, precedence),
        "latex": (latex or text, precedence),
    }
    return Operation(text.count("{"), compute, spelled)


def _comparison(ufunc: np.ufunc, sign: str, latex: str) -> Operation:
    """Return a comparison, which is 1 where it is true and 0 elsewhere."""
    spelled: dict[Language, tuple[str, int]] = {
        "text": (f"{{:2}} {sign} {{:2}}", COMPARISON),
        "python": (f"np.where({{:2}} {sign} {{:2}}, 1.0, 0.0)", CLOSED),
        "latex": (f"[{{:2}} {latex} {{:2}}]", CLOSED),  # Iverson's bracket
    }
    return Operation(2, ufunc, spelled)


def _function(ufunc: np.ufunc, name: str, latex: str) -> Operation:
    operands = "({}, {})" if ufunc.nin == 2 else "({})"
    return _operator(ufunc, CLOSED, name + operands, f"np.{ufunc.__name__}{operands}", latex)


def _power(base: Value, exponent: Value) -> Value:
    """Return base^exponent; squares, the most common power, by one multiplication."""
    if isinstance(exponent, np.float64) and exponent == 2:
        return base * base
    return np.power(base, exponent)


def _torus_distance(*positions_and_sizes: Value) -> Value:
    """Return the Manhattan distance of two cells in a periodic grid.

    It is the sum of min(d, n − d) over the dimensions, where d = |a − b| modulo n. It distinguishes
    neighbours across a face (1), an edge (2) and a corner (3), whose shares of pairs within a
    cutoff differ. An infinite size does not wrap round; one that is not positive returns NaN.
    """

    def ring_distance(start: Value, end: Value, size: Value) -> Value:
        way = np.fmod(np.abs(start - end), size)
        return np.minimum(way, np.where(size > 0, size, np.nan) - way)

    x1, y1, z1, x2, y2, z2, nx, ny, nz = positions_and_sizes
    return ring_distance(x1, x2, nx) + ring_distance(y1, y2, ny) + ring_distance(z1, z2, nz)


_NINE = ", ".join(["{}"] * 9)

FUNCTIONS = {
    "abs": _function(np.absolute, "abs", r"\left|{}\right|"),
    "ceil": _function(np.ceil, "ceil", r"\left\lceil {}\right\rceil"),
    "exp": _function(np.exp, "exp", r"\exp\left({}\right)"),
    "floor": _function(np.floor, "floor", r"\left\lfloor {}\right\rfloor"),
    "log": _function(np.log, "log", r"\ln\left({}\right)"),
    "log1p": _function(np.log1p, "log1p", r"\ln\left(1 + {}\right)"),
    "log2": _function(np.log2, "log2", r"\log_2\left({}\right)"),
    "max": _function(np.maximum, "max", r"\max\left({}, {}\right)"),
    "min": _function(np.minimum, "min", r"\min\left({}, {}\right)"),
    "sqrt": _function(np.sqrt, "sqrt", r"\sqrt{{{}}}"),
    "torus_distance": _operator(
        _torus_distance,
        CLOSED,
        f"torus_distance({_NINE})",
        latex=rf"\operatorname{{{{torus\_distance}}}}\left({_NINE}\right)",
    ),
}
"""The functions by name; logarithms are natural except log2, and min and max propagate NaN."""

OPERATIONS = {
    "+": _operator(np.add, SUM, "{:2} + {:3}"),
    "-": _operator(np.subtract, SUM, "{:2} - {:3}"),
    "*": _operator(np.multiply, PRODUCT, "{:3}*{:4}", "{:3} * {:4}", r"{:3} \cdot {:4}"),
    "/": _operator(np.divide, PRODUCT, "{:3}/{:4}", "{:3} / {:4}", r"\frac{{{}}}{{{}}}"),
    "^": _operator(_power, POWER, "{:6}^{:4}", "{:6}**{:4}", "{:6}^{{{}}}"),
    NEGATE: _operator(np.negative, SIGN, "-{:4}"),
    "<": _comparison(np.less, "<", "<"),
    "<=": _comparison(np.less_equal, "<=", r"\leq"),
    ">": _comparison(np.greater, ">", ">"),
    ">=": _comparison(np.greater_equal, ">=", r"\geq"),
    "==": _comparison(np.equal, "==", "="),
    "!=": _comparison(np.not_equal, "!=", r"\neq"),
    **FUNCTIONS,
}
"""All operations by their names in steps."""


class _Spelled(NamedTuple):
    """The text of a part of an expression."""

    text: str
    precedence: int
    parentheses: tuple[str, str]

    def __format__(self, loosest: str) -> str:
        opening, closing = self.parentheses if self.precedence < int(loosest or 0) else ("", "")
        return f"{opening}{self.text}{closing}"


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
        return frozenset(filter(None, map(_parameter_of, self.steps)))

    def evaluate(self, params: Floats) -> Floats:
        """Return the value for each row of `params`, shape (rows, parameters), as float64 (rows,).

        The arithmetic is IEEE 754's, including NaN and infinity, without warnings. The value of a
        row does not depend on the other rows. Raise `ModelError` if a parameter is missing.
        """
        if max(self.parameters, default=0) > params.shape[1]:
            needed = f"{self} needs {max(self.parameters)} parameters"
            raise ModelError(f"{needed}, not an array of {params.shape}")
        values = np.empty(len(params))
        with np.errstate(all="ignore"):
            for start in range(0, len(params), BLOCK_ROWS):
                block = slice(start, start + BLOCK_ROWS)
                values[block] = self._evaluate_block(params[block])
        return values

    def _evaluate_block(self, params: Floats) -> Value:
        """Return the values of a block of rows: an array, or a constant for all of them.

        Each array on the stack is a contiguous copy: numpy chooses its loops by the memory layout.
        """
        stack: list[Value] = []
        for step in self.steps:
            if isinstance(step, float):
                stack.append(np.float64(step))
            elif step not in OPERATIONS:
                stack.append(params[:, int(step[1:]) - 1].astype(np.float64))
            else:
                arity, compute, _ = OPERATIONS[step]
                result = np.asarray(compute(*stack[-arity:]), dtype=np.float64)
                stack[-arity:] = [result[()]]
        return stack[0]

    def times(self, other: Expression) -> Expression:
        """Return the product of the two."""
        return self.applied("*", other)

    def applied(self, operation: str, *others: Expression) -> Expression:
        """Return an operation applied to it, and to others as its further operands."""
        return Expression(
            (*self.steps, *(step for operand in others for step in operand.steps), operation)
        )

    def with_parameters(self, values: Mapping[int, Expression]) -> Expression:
        """Return it with an expression substituted for each parameter; none may be missing."""
        steps: list[Step] = []
        for step in self.steps:
            number = _parameter_of(step)
            steps.extend(values[number].steps if number else (step,))
        return Expression(tuple(steps))

    def __str__(self) -> str:
        return self.to_text({})

    def to_text(self, names: Mapping[int, str], language: Language = "text") -> str:
        """Return the text in a language, with the parameters in `names` called by these names."""
        return self._spelled(names, language).text

    def as_factor(self, names: Mapping[int, str], language: Language = "text") -> str:
        """Return the same, in parentheses if it needs them as a factor of a product."""
        return f"{self._spelled(names, language):{PRODUCT}}"

    def _spelled(self, names: Mapping[int, str], language: Language) -> _Spelled:
        stack = list[_Spelled]()
        parentheses = (r"\left(", r"\right)") if language == "latex" else ("(", ")")
        for step in self.steps:
            precedence = CLOSED
            if isinstance(step, float):
                text = repr(step).removesuffix(".0")
                if language == "latex":
                    text = number_in_language(step, language)
                    precedence = PRODUCT if r"\cdot" in text else CLOSED
            elif step in OPERATIONS:
                operands = stack[-OPERATIONS[step].arity :]
                del stack[-len(operands) :]
                template, precedence = OPERATIONS[step].spelled[language]
                text = template.format(*operands)
                if language == "text" and step in VARIADIC:  # min(min(a, b), c) is min(a, b, c)
                    first, call = operands[0].text, f"{step}("
                    if operands[0].precedence == CLOSED and first.startswith(call):
                        text = f"{first[:-1]}, {operands[1]})"
            else:
                text = names.get(int(step[1:]), step)
                text = _latex_name(text) if language == "latex" else text
                if language == "python" and (iskeyword(text) or text == "np"):
                    text += "_"
            stack.append(_Spelled(text, precedence, parentheses))
        return stack[0]


def _parameter_of(step: Step) -> int:
    """Return the number of a parameter, 0 for any other step."""
    return int(step[1:]) if isinstance(step, str) and step not in OPERATIONS else 0


def constant(value: float) -> Expression:
    """Return the expression of a number."""
    return Expression((abs(float(value)), *([NEGATE] if value < 0 else [])))


def number_in_language(value: float, language: Language) -> str:
    """Return a number: exactly in Python, with six digits elsewhere."""
    if language == "python":
        return repr(value)
    digits = f"{value:.6g}"
    if language == "text" or "e" not in digits:
        return digits
    mantissa, _, exponent = digits.partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"


def _latex_name(name: str) -> str:
    if name[:1] == "p" and name[1:].isdecimal():
        return f"p_{{{name[1:]}}}"
    escaped = name.replace("_", r"\_")
    return rf"\mathit{{{escaped}}}" if len(name) > 1 else name
