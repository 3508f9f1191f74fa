"""Expressions in an event's parameters: text in, a value for each row of parameters out.

`parse` turns a text such as `min(p1, p2)*log1p(p3) + 2` into an `Expression`: steps in postfix
notation, a flat tuple, so that no operation on an expression is recursive. They are computed on
arrays, elementwise in IEEE 754 float64 (log(0) is −∞ and 0/0 is NaN), and written as text in
several languages.

The parser is one of top-down operator precedence (Pratt 1973). From lowest to highest: comparisons
(which do not chain), `+ -`, `* /`, the sign, `^` (right-associative). No text ever reaches Python's
`eval`, and untrusted text takes bounded time, memory and stack. Python's `ast` is not used. Its
messages differ between versions of Python and name other columns: for `(p1 p2 + 3)` column 2,
"Perhaps you forgot a comma?", in place of 5, where an operator is missing. Names such as `in` and
`from` would be keywords and `^` another operator. Text in model files, which need not be trusted,
could exhaust the memory or stack of its parser, unless something like this one had read it before.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from keyword import iskeyword
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct

from rewritelog.arrays import Floats
from rewritelog.errors import ModelError
from rewritelog.running.locks import cached_property
from rewritelog.text import count_text, printable, shortest_text

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

    Two expressions are equal if they consist of the same steps. `str` returns a text that parses to
    an equal one.
    """

    def __init__(self, steps: tuple[Step, ...]) -> None:
        """Take the steps in postfix notation: operands before their operation."""
        self.steps = steps

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.steps == other.steps

    def __hash__(self) -> int:
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
        """Return the product of the two as people write it: a·b·c, b/a for (1/a)·b, a for 1·a."""
        (first, own), (second, others) = self._factors(), other._factors()
        if first.steps == (1.0,):
            first, second = second, first
        between = [] if second.steps == (1.0,) else [("*", second)]
        for operation, factor in (*own, *between, *others):
            first = first.applied(operation, factor)
        return first

    def _factors(self) -> tuple[Expression, Sequence[tuple[str, Expression]]]:
        """Return the first factor of a product, and the others, each with `*` or `/`."""
        first, others = self.steps, list[tuple[str, Expression]]()
        while (operation := str(first[-1])) in ("*", "/"):
            begin, operands = len(first) - 1, 1
            while operands:  # back to where the last operand begins
                begin -= 1
                step = first[begin]
                operands += (OPERATIONS[step].arity if step in OPERATIONS else 0) - 1
            others.append((operation, Expression(first[begin:-1])))
            first = first[:begin]
        return Expression(first), others[::-1]

    def applied(self, operation: str, *others: Expression) -> Expression:
        """Return an operation with this expression as its first operand, then the others."""
        return Expression(
            (*self.steps, *(step for operand in others for step in operand.steps), operation)
        )

    def with_parameters(self, values: Mapping[int, Expression]) -> Expression:
        """Return the expression with another one for each parameter; none may be missing."""
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
        """Return what `to_text` does, in parentheses if it needs them after a coefficient.

        Where a blank stands for the product, a sign would look like that of a difference.
        """
        spelled = self._spelled(names, language)
        return f"{spelled:{CLOSED if spelled.text.startswith('-') else PRODUCT}}"

    def _spelled(self, names: Mapping[int, str], language: Language) -> _Spelled:
        stack = list[_Spelled]()
        parentheses = (r"\left(", r"\right)") if language == "latex" else ("(", ")")
        if language == "python":
            names = _python_names(names)
        for step in self.steps:
            precedence = CLOSED
            if isinstance(step, float):
                text = number_in_language(step, language, is_exact=True)
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
            stack.append(_Spelled(text, precedence, parentheses))
        return stack[0]


def _parameter_of(step: Step) -> int:
    """Return the number of a parameter, 0 for any other step."""
    return int(step[1:]) if isinstance(step, str) and step not in OPERATIONS else 0


def constant(value: float) -> Expression:
    """Return the expression of a number."""
    return Expression((abs(float(value)), *([NEGATE] if value < 0 else [])))


def number_in_language(value: float, language: Language, *, is_exact: bool = False) -> str:
    """Return a number: exactly in Python and if `is_exact`, else with six digits.

    Numbers within terms are exact, since they may be compared. In Python a number has a point:
    powers of integers may overflow.
    """
    if language == "python":
        return repr(value)
    digits = shortest_text(value) if is_exact else f"{value:.6g}"
    if language == "text" or "e" not in digits:
        return digits
    mantissa, _, exponent = digits.partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"


def _python_names(names: Mapping[int, str]) -> dict[int, str]:
    """Return the names with `_` after keywords and `np`, and more than one if others have it."""
    taken, spelled = {*names.values()}, dict(names)
    for number, name in names.items():
        if iskeyword(name) or name == "np":
            while spelled[number] in taken:
                spelled[number] += "_"
    return spelled


def _latex_name(name: str) -> str:
    if name[:1] == "p" and name[1:].isdecimal():
        return f"p_{{{name[1:]}}}"
    escaped = name.replace("_", r"\_")
    return rf"\mathit{{{escaped}}}" if len(name) > 1 else name


MAX_LENGTH = 100_000
"""The most characters of a text; canonical texts are always shorter."""

MAX_PARAMETERS = 20
"""Parameters are p1 … p20, as timing lines have them."""

MAX_DEPTH = 100
"""The deepest nesting of parentheses, signs, powers and right operands."""

MAX_STEPS = 2000
"""The most constants, parameters and operations of an expression."""


class FormulaError(ModelError):
    """An invalid formula; file, line and column are part of the message.

    Lines and columns count from 1, columns in characters. The line is None for a text that is not
    in a file, the column where it is not known; both are None for a file as a whole.
    """

    def __init__(self, name: str, line: int | None, column: int | None, problem: str) -> None:
        place = printable(name) + ("" if line is None else f":{line}")
        if column is not None:
            place += f", column {column}" if line is None else f":{column}"
        super().__init__(f"{place}: {problem}")
        self.name = name
        self.line = line
        self.column = column
        self.problem = problem

    def __reduce__(self) -> tuple[type[FormulaError], tuple[str, int | None, int | None, str]]:
        """Pickle the arguments, so that the error passes between processes without loss."""
        return (type(self), (self.name, self.line, self.column, self.problem))


class Origin(Struct, frozen=True):
    """The location of an expression's text; by default of a text that is not in a file."""

    name: str = "expression"
    """The name of the file, or of the text."""
    line: int | None = None
    """The line of its first character, from 1; None if it is not in a file."""
    column: int | None = 1
    """The column of its first character, from 1; None if it is not known."""

    def error(self, problem: str, offset: int = 0) -> FormulaError:
        """Return the error for a problem with the character at `offset`, counted from 0."""
        column = None if self.column is None else self.column + offset
        return FormulaError(self.name, self.line, column, problem)


def parse(
    text: str,
    *,
    names: Mapping[str, int] | None = None,
    parameters: int = MAX_PARAMETERS,
    where: Origin | None = None,
) -> Expression:
    """Return the expression of a text in p1 … p20 and the given names.

    `names` maps names to the numbers of parameters, from 1; they cannot hide functions.
    `parameters` is the number of parameters, and `where` the location of the text for errors.
    Raise `FormulaError` with the location for anything that is not an expression.
    """
    if names or where:
        return _Parser(text, names or {}, parameters, where or Origin()).parsed()
    return _parse_plain(text, parameters)


@lru_cache(maxsize=1 << 12)
def _parse_plain(text: str, parameters: int) -> Expression:
    """Return the expression of a text, from a cache: fits parse the same texts many times."""
    return _Parser(text, {}, parameters, Origin()).parsed()


_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<operator><=|>=|==|!=|[-+*/^<>(),])"
    r"|(?P<blank>[ \t\r\n]+)"
    r"|(?P<end>\Z)"
    r"|(?P<invalid>.)"
)

PRECEDENCE = {
    name: operation.spelled["text"][1]
    for name, operation in OPERATIONS.items()
    if name not in (NEGATE, *FUNCTIONS)
}
"""The precedence of each binary operator."""


def _tokenized(text: str, where: Origin) -> Iterator[re.Match[str]]:
    """Yield the tokens of the text and its end; raise `FormulaError` for anything else."""
    if len(text) > MAX_LENGTH:
        raise where.error(f"the expression has {len(text)} characters; at most {MAX_LENGTH}")
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "invalid":
            raise where.error(f"invalid character {token[0]!r}", token.start())
        if token.lastgroup != "blank":
            yield token


def parameter_number(name: str) -> int | None:
    """Return the number in a name such as `p12`; None for any other name."""
    match = re.fullmatch(r"p(0|[1-9][0-9]{0,8})", name)
    return int(match[1]) if match else None


def checked_names(named: Sequence[tuple[str, Origin]]) -> tuple[str, ...]:
    """Return the names, in the order of the parameters; raise `FormulaError` for an invalid one."""
    if len(named) > MAX_PARAMETERS:
        where = named[MAX_PARAMETERS][1]
        raise where.error(f"there are at most {MAX_PARAMETERS} parameters")
    seen: set[str] = set()
    for number, (text, where) in enumerate(named, 1):
        if problem := name_problem(text, number):
            raise where.error(problem)
        if text in seen and text != "_":
            raise where.error(f"the name {text!r} is duplicated")
        seen.add(text)
    return tuple(text for text, _ in named)


def numbers_by_name(names: Iterable[str]) -> dict[str, int]:
    """Return the number of each parameter that has a name; `_` is none."""
    return {name: number for number, name in enumerate(names, 1) if name != "_"}


def name_problem(text: str, number: int) -> str:
    """Return why a text cannot be the name of the parameter of that number; empty if it can."""
    if not (text.isidentifier() and text.isascii()):
        return f"{text!r} is not a valid name: a letter, then letters, digits and _"
    if text in FUNCTIONS:
        return f"{text!r} is a function and cannot be a parameter's name"
    if parameter_number(text) not in (None, number):
        return f"{text!r} cannot be the name of p{number}"
    return ""


def usable_names(names: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of columns if all are valid names of parameters, else an empty tuple."""
    named = tuple(names)
    are_texts = all(isinstance(name, str) for name in named) and len({*named}) == len(named)
    is_usable = are_texts and not any(name_problem(name, n) for n, name in enumerate(named, 1))
    return named if is_usable else ()


class _Parser:
    """Reads the tokens from left to right, and adds steps to the expression so far."""

    def __init__(self, text: str, names: Mapping[str, int], parameters: int, where: Origin) -> None:
        self._steps: list[Step] = []
        self._tokens = iter([*_tokenized(text, where)])  # all of them, before any is used
        self._names = names
        self._parameters = parameters
        self._where = where
        self._next = next(self._tokens)

    def parsed(self) -> Expression:
        """Return the expression of the whole text."""
        self._expression(0, 0)
        if self._next.lastgroup != "end":
            raise self._unexpected("an operator is missing before")
        return Expression(tuple(self._steps))

    def _expression(self, loosest: int, depth: int) -> None:
        """Read operands and operators of at least the precedence `loosest`."""
        self._operand(depth)
        while PRECEDENCE.get(self._next[0], -1) >= loosest:
            operator = self._take()
            precedence = PRECEDENCE[operator[0]]
            self._expression(precedence if operator[0] == "^" else precedence + 1, depth + 1)
            self._emit(operator[0], operator)
            if precedence == COMPARISON == PRECEDENCE.get(self._next[0]):
                raise self._unexpected("comparisons do not chain: write (a < b)*(b < c); found")

    def _operand(self, depth: int) -> None:
        """Read a number, a name, a call, something in parentheses, or a sign and its operand."""
        if depth > MAX_DEPTH:
            problem = f"the expression is nested more than {MAX_DEPTH} deep"
            raise self._error(problem, self._next)
        if self._next.lastgroup not in ("number", "name") and self._next[0] not in ("-", "+", "("):
            advice = "; a power is ^" if self._next[0] == "*" else ""
            raise self._unexpected("a number, a name or '(' is missing before", advice)
        token = self._take()
        if token.lastgroup == "number":
            value = float(token[0])
            if not math.isfinite(value):
                raise self._error(f"{token[0]} is larger than any float64", token)
            self._emit(value, token)
        elif token[0] in FUNCTIONS:
            self._call(token, depth)
        elif token.lastgroup == "name":
            self._emit(f"p{self._number_of(token)}", token)
        elif token[0] == "(":
            self._expression(0, depth + 1)
            self._skip(")", "')' is missing before")
        else:
            self._expression(SIGN, depth + 1)
            if token[0] == "-":
                self._emit(NEGATE, token)

    def _number_of(self, name: re.Match[str]) -> int:
        """Return the number of the parameter that a name stands for."""
        number = self._names.get(name[0]) or parameter_number(name[0])
        if number is None and self._next[0] == "(":
            functions = ", ".join(FUNCTIONS)
            raise self._error(f"unknown function {name[0]!r}; known: {functions}", name)
        if number is None or not 1 <= number <= self._parameters:
            known = ", ".join([f"p1 to p{self._parameters}", *self._names])
            raise self._error(f"unknown name {name[0]!r}; known: {known}", name)
        return number

    def _call(self, name: re.Match[str], depth: int) -> None:
        """Read `(a, b, …)` and emit the function; min and max after each argument but the first."""
        self._skip("(", f"'(' is missing after {name[0]!r}, before")
        variadic, needed = name[0] in VARIADIC, FUNCTIONS[name[0]].arity
        arguments = 0
        while self._next[0] == "," if arguments else self._next[0] != ")":
            if arguments:
                self._take()
            self._expression(0, depth + 1)
            arguments += 1
            if variadic and arguments > 1:
                self._emit(name[0], name)
        self._skip(")", "',' or ')' is missing before")
        if arguments < needed or (arguments > needed and not variadic):
            least = "at least " if variadic else ""
            takes = f"{name[0]} takes {least}{count_text(needed, 'argument')}"
            raise self._error(f"{takes}, not {arguments}", name)
        if not variadic:
            self._emit(name[0], name)

    def _skip(self, token: str, problem: str) -> None:
        if self._next[0] != token:
            raise self._unexpected(problem)
        self._take()

    def _take(self) -> re.Match[str]:
        """Return the next token and advance, but not past the end."""
        taken = self._next
        self._next = next(self._tokens, taken)
        return taken

    def _emit(self, step: Step, token: re.Match[str]) -> None:
        if len(self._steps) >= MAX_STEPS:
            problem = f"the expression has more than {MAX_STEPS} numbers, names and operations"
            raise self._error(problem, token)
        self._steps.append(step)

    def _unexpected(self, problem: str, advice: str = "") -> FormulaError:
        """Return the error that the next token is not expected here."""
        token = "the end" if self._next.lastgroup == "end" else repr(self._next[0])
        return self._error(f"{problem} {token}{advice}", self._next)

    def _error(self, problem: str, token: re.Match[str]) -> FormulaError:
        return self._where.error(problem, token.start())
