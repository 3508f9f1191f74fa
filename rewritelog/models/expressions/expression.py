"""Expressions: steps in postfix notation, what they compute on arrays, and their text.

The steps are a flat tuple, so that no operation on an expression is recursive. All arithmetic is
elementwise IEEE 754 in float64: log(0) is −∞ and 0/0 is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Floats
from rewritelog.errors import ModelError

Value: TypeAlias = Any
"""A float64 array that may be overwritten, or a `np.float64`; numpy has no name for both."""

BLOCK_ROWS = 1 << 13
"""Rows evaluated at a time, so that all temporaries stay in the cache."""


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


class Operation(NamedTuple):
    """An operator or function: its number of operands, and what it computes."""

    arity: int
    compute: Callable[..., Value]
    """Takes the operands, and as `out` an array for the result or None, as numpy's ufuncs do."""


def _power(base: Value, exponent: Value, out: NDArray[np.float64] | None) -> Value:
    """Return base^exponent; squares, the most common power, by one multiplication."""
    if isinstance(exponent, np.float64) and exponent == 2:
        return np.multiply(base, base, out=out)
    return np.power(base, exponent, out=out)


def _torus_distance(*positions_and_sizes: Value, out: object) -> Value:  # noqa: ARG001
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


COMPARISONS = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
"""The comparisons; they return 1 where they are true and 0 elsewhere."""

COMPARISON, SUM, PRODUCT, SIGN, POWER, CLOSED = range(1, 7)
"""Precedences: a higher one binds tighter, and what is closed never needs parentheses.

−a^b is −(a^b), and −a·b is (−a)·b."""

PRECEDENCE = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "^": POWER} | dict.fromkeys(
    COMPARISONS, COMPARISON
)
"""The precedence of each binary operator."""

NEGATE = "negate"
"""The name of the unary minus, which differs from that of the binary one."""

VARIADIC = frozenset({"min", "max"})
"""Functions of two or more operands; min(a, b, c) is min(min(a, b), c)."""

_UFUNCS = {
    "abs": np.absolute,
    "ceil": np.ceil,
    "exp": np.exp,
    "floor": np.floor,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "max": np.maximum,
    "min": np.minimum,
    "sqrt": np.sqrt,
}

FUNCTIONS = {
    **{name: Operation(ufunc.nin, ufunc) for name, ufunc in _UFUNCS.items()},
    "torus_distance": Operation(9, _torus_distance),
}
"""The functions by name; logarithms are natural except log2, and min and max propagate NaN."""

OPERATIONS = {
    "+": Operation(2, np.add),
    "-": Operation(2, np.subtract),
    "*": Operation(2, np.multiply),
    "/": Operation(2, np.divide),
    "^": Operation(2, _power),
    NEGATE: Operation(1, np.negative),
    **{name: Operation(2, ufunc) for name, ufunc in COMPARISONS.items()},
    **FUNCTIONS,
}
"""All operations by their names in steps."""

_APPLY = {name: Apply(name) for name in OPERATIONS}


Language: TypeAlias = Literal["text", "python", "latex"]
"""The syntax of formulas files, that of Python with numpy as `np`, and that of LaTeX."""


class Spelling(NamedTuple):
    """How a language spells an operation."""

    template: str
    """With braces for each operand, as for `str.format`."""
    precedence: int
    loosest: tuple[int, ...]
    """The loosest precedence with which each operand needs no parentheses."""


def _spellings(
    times: str, over: str, comparison: Spelling, function: str, names: Mapping[str, str]
) -> dict[str, Spelling]:
    """Return how a language spells all operations: comparisons and functions by one template.

    `~` in it stands for the sign or name, which `names` has where it is another one in the
    language, and `…` for the operands.
    """
    spellings = {
        NEGATE: Spelling("-{}", SIGN, (SIGN,)),
        "+": Spelling("{} + {}", SUM, (SUM, SUM + 1)),
        "-": Spelling("{} - {}", SUM, (SUM, SUM + 1)),
        "*": Spelling(f"{{}}{times}{{}}", PRODUCT, (PRODUCT, PRODUCT + 1)),
        "/": Spelling(f"{{}}{over}{{}}", PRODUCT, (PRODUCT, PRODUCT + 1)),
    }
    for name in COMPARISONS:
        template = comparison.template.replace("~", names.get(name, name))
        spellings[name] = comparison._replace(template=template)
    for name, (arity, _) in FUNCTIONS.items():
        call = function.replace("~", names.get(name, name))
        template = call.replace("…", ", ".join(["{}"] * arity))
        spellings[name] = Spelling(template, CLOSED, (0,) * arity)
    return spellings


_COMPARED = (COMPARISON + 1, COMPARISON + 1)

SPELLINGS: dict[Language, dict[str, Spelling]] = {
    "text": {
        **_spellings("*", "/", Spelling("{} ~ {}", COMPARISON, _COMPARED), "~(…)", {}),
        "^": Spelling("{}^{}", POWER, (CLOSED, SIGN)),
    },
    "python": {
        **_spellings(
            " * ",
            " / ",
            Spelling("np.where({} ~ {}, 1.0, 0.0)", CLOSED, _COMPARED),
            "np.~(…)",
            {"min": "minimum", "max": "maximum", "abs": "absolute"},
        ),
        "^": Spelling("{}**{}", POWER, (CLOSED, SIGN)),
    },
    "latex": {
        **_spellings(
            r" \cdot ",
            "",
            Spelling("[{} ~ {}]", CLOSED, _COMPARED),  # Iverson's bracket
            r"~\left(…\right)",
            {name: "\\" + name for name in ("exp", "max", "min")}
            | {"log": r"\ln", "log2": r"\log_2"}
            | {"torus_distance": r"\operatorname{{torus\_distance}}"}
            | {"<=": r"\le", ">=": r"\ge", "==": "=", "!=": r"\ne"},
        ),
        "/": Spelling(r"\frac{{{}}}{{{}}}", PRODUCT, (0, 0)),
        "^": Spelling("{}^{{{}}}", POWER, (CLOSED, 0)),
        "abs": Spelling(r"\left|{}\right|", CLOSED, (0,)),
        "ceil": Spelling(r"\left\lceil {}\right\rceil", CLOSED, (0,)),
        "floor": Spelling(r"\left\lfloor {}\right\rfloor", CLOSED, (0,)),
        "log1p": Spelling(r"\ln\left(1 + {}\right)", CLOSED, (0,)),
        "sqrt": Spelling(r"\sqrt{{{}}}", CLOSED, (0,)),
    },
}
"""How each language spells the operations that it has."""
del SPELLINGS["python"]["torus_distance"]


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
                arity, compute = OPERATIONS[step.name]
                operands = stack[-arity:]
                # the first operand that is an array holds the result
                target = next((one for one in operands if isinstance(one, np.ndarray)), None)
                result = compute(*operands, out=target)
                stack[-arity:] = [np.float64(result) if target is None else result]
        return stack[0]

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

    def __str__(self) -> str:
        return self.to_text({})

    def to_text(self, names: Mapping[int, str], language: Language = "text") -> str:
        """Return the text in a language, with the parameters in `names` called by these names.

        Raise `ModelError` for a function that the language does not have.
        """
        return self._with_precedence(names, language)[0]

    def as_factor(self, names: Mapping[int, str], language: Language = "text") -> str:
        """Return the same, in parentheses if it needs them as a factor of a product."""
        return _enclosed(self._with_precedence(names, language), PRODUCT, language)

    def _with_precedence(self, names: Mapping[int, str], language: Language) -> tuple[str, int]:
        """Return the text and its precedence."""
        stack: list[tuple[str, int]] = []
        for step in self.steps:
            if isinstance(step, Number):
                text = repr(step.value).removesuffix(".0")
                if language == "latex":
                    text = number_in_language(step.value, language)
                stack.append((text, CLOSED))
            elif isinstance(step, Parameter):
                name = names.get(step.number, f"p{step.number}")
                stack.append((_latex_name(name) if language == "latex" else name, CLOSED))
            elif spelling := SPELLINGS[language].get(step.name):
                operands = stack[-OPERATIONS[step.name].arity :]
                texts = [
                    _enclosed(operand, loosest, language)
                    for operand, loosest in zip(operands, spelling.loosest, strict=True)
                ]
                if language == "text" and step.name in VARIADIC:
                    texts[0] = _arguments(operands[0], step.name)
                text = spelling.template.format(*texts)
                stack[-len(texts) :] = [(text, spelling.precedence)]
            else:
                raise ModelError(f"{step.name} is not a function of numpy: use predict")
        return stack[0]


def constant(value: float) -> Expression:
    """Return the expression of a number."""
    sign = (Apply(NEGATE),) if value < 0 else ()
    return Expression((Number(abs(value)), *sign))


def number_in_language(value: float, language: Language) -> str:
    """Return a number: exactly in Python, with six digits elsewhere."""
    if language == "python":
        return repr(value)
    digits = f"{value:.6g}"
    if language == "text" or "e" not in digits:
        return digits
    mantissa, _, exponent = digits.partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"


def _enclosed(operand: tuple[str, int], loosest: int, language: Language) -> str:
    """Return an operand, in parentheses if it binds looser than `loosest`."""
    text, precedence = operand
    if precedence >= loosest:
        return text
    return rf"\left({text}\right)" if language == "latex" else f"({text})"


def _arguments(operand: tuple[str, int], name: str) -> str:
    """Return the arguments of a call of the function, or another operand as it is.

    min(min(a, b), c) is min(a, b, c).
    """
    text, precedence = operand
    is_call = precedence == CLOSED and text.startswith(f"{name}(")
    return text[len(name) + 1 : -1] if is_call else text


def _latex_name(name: str) -> str:
    if name[:1] == "p" and name[1:].isdecimal():
        return f"p_{{{name[1:]}}}"
    escaped = name.replace("_", r"\_")
    return rf"\mathit{{{escaped}}}" if len(name) > 1 else name
