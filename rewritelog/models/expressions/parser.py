"""From text to an expression: top-down operator precedence (Pratt 1973) that emits postfix steps.

From lowest to highest precedence: comparisons (which do not chain), `+ -`, `* /`, the sign, `^`
(right-associative).

Python's `ast` is not used. Its messages differ between versions of Python and name other columns:
for `(p1 p2 + 3)` column 2, "Perhaps you forgot a comma?", in place of 5, where an operator is
missing. Names such as `in` and `from` would be keywords and `^` another operator. Text in model
files, which need not be trusted, could exhaust the memory or stack of its parser, unless something
like this one had read it before.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rewritelog.errors import ModelError
from rewritelog.models.expressions.expression import (
    COMPARISON,
    FUNCTIONS,
    NEGATE,
    OPERATIONS,
    SIGN,
    VARIADIC,
    Expression,
    Step,
)
from rewritelog.text import count_text, printable

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


@dataclass(frozen=True)
class Origin:
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


def name_problem(text: str, number: int) -> str:
    """Return why a text cannot be the name of the parameter of that number; empty if it can."""
    if not (text.isidentifier() and text.isascii()):
        return f"{text!r} is not a valid name: a letter, then letters, digits and _"
    if text in FUNCTIONS:
        return f"{text!r} is a function and cannot be a parameter's name"
    if parameter_number(text) not in (None, number):
        return f"{text!r} cannot be the name of p{number}"
    return ""


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
            raise self._unexpected("a number, a name or '(' is missing before")
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

    def _unexpected(self, problem: str) -> FormulaError:
        """Return the error that the next token is not expected here."""
        token = "the end" if self._next.lastgroup == "end" else repr(self._next[0])
        return self._error(f"{problem} {token}", self._next)

    def _error(self, problem: str, token: re.Match[str]) -> FormulaError:
        return self._where.error(problem, token.start())
