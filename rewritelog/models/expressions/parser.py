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
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from rewritelog.models.expressions.expression import Expression
from rewritelog.models.expressions.operations import (
    FUNCTIONS,
    NEGATE,
    OPERATORS,
    PRECEDENCE,
    SIGN_PRECEDENCE,
    VARIADIC,
    Apply,
    Number,
    Parameter,
    Step,
)
from rewritelog.models.expressions.origin import FormulaError, Origin

MAX_LENGTH = 100_000
"""The most characters of a text; canonical texts are always shorter."""

MAX_PARAMETERS = 20
"""Parameters are p1 … p20, as timing lines have them."""

MAX_DEPTH = 100
"""The deepest nesting of parentheses, signs, powers and right operands."""

MAX_STEPS = 2000
"""The most constants, parameters and operations of an expression."""


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
        return _parse(text, names or {}, parameters, where or Origin())
    return _parse_plain(text, parameters)


@lru_cache(maxsize=1 << 12)
def _parse_plain(text: str, parameters: int) -> Expression:
    """Return the expression of a text, from a cache: fits parse the same texts many times."""
    return _parse(text, {}, parameters, Origin())


def _parse(text: str, names: Mapping[str, int], parameters: int, where: Origin) -> Expression:
    parser = _Parser(_tokenized(text, where), names, parameters, where)
    parser.expression(0, 0)
    if parser.next.kind != "end":
        raise parser.unexpected("an operator is missing before")
    return Expression(tuple(parser.steps))


_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<operator><=|>=|==|!=|\*\*|[-+*/^<>(),=])"
    r"|(?P<blank>[ \t\r\n]+)"
)

_MISSPELLED = {"**": "^", "=": "=="}
"""Operators of other languages, and the ones to use in their place."""


@dataclass(frozen=True)
class Token:
    """One token of the text."""

    kind: str
    """`number`, `name`, `operator` or `end`."""
    text: str
    offset: int
    """The offset of its first character, from 0."""


def _tokenized(text: str, where: Origin) -> list[Token]:
    """Return the tokens of the text and an `end`; raise `FormulaError` for anything else."""
    if len(text) > MAX_LENGTH:
        raise where.error(f"the expression has {len(text)} characters; at most {MAX_LENGTH}")
    tokens, at = [], 0
    for match in _TOKEN.finditer(text):
        if match.start() > at:
            break
        at = match.end()
        kind, word = match.lastgroup, match.group()
        if word in _MISSPELLED:
            problem = f"unknown operator {word!r}; write {_MISSPELLED[word]!r}"
            raise where.error(problem, match.start())
        if kind != "blank":
            tokens.append(Token(kind or "", word, match.start()))
    if at < len(text):
        raise where.error(f"invalid character {text[at]!r}", at)
    return [*tokens, Token("end", "", at)]


def is_name(text: str) -> bool:
    """Return whether the text can be a name: a letter or `_`, then letters, digits and `_`."""
    match = _TOKEN.fullmatch(text)
    return match is not None and match.lastgroup == "name"


def parameter_number(name: str) -> int | None:
    """Return the number in a name such as `p12`; None for any other name."""
    match = re.fullmatch(r"p(0|[1-9][0-9]{0,8})", name)
    return int(match[1]) if match else None


class _Parser:
    """Reads the tokens from left to right; `steps` is the expression so far."""

    def __init__(
        self, tokens: list[Token], names: Mapping[str, int], parameters: int, where: Origin
    ) -> None:
        self.steps: list[Step] = []
        self._tokens = iter(tokens)
        self._names = names
        self._parameters = parameters
        self._where = where
        self.next = next(self._tokens)

    def expression(self, loosest: int, depth: int) -> None:
        """Read operands and operators of at least the precedence `loosest`."""
        self._operand(depth)
        while self.next.text in OPERATORS and PRECEDENCE[self.next.text] >= loosest:
            operator = self._take()
            precedence = PRECEDENCE[operator.text]
            self.expression(precedence if operator.text == "^" else precedence + 1, depth + 1)
            self._emit(Apply(operator.text), operator)
            if precedence == PRECEDENCE["<"] and PRECEDENCE.get(self.next.text) == precedence:
                raise self.unexpected("comparisons do not chain: write (a < b)*(b < c); found")

    def unexpected(self, problem: str) -> FormulaError:
        """Return the error that the next token is not expected here."""
        token = "the end" if self.next.kind == "end" else repr(self.next.text)
        return self._where.error(f"{problem} {token}", self.next.offset)

    def _operand(self, depth: int) -> None:
        """Read a number, a name, a call, something in parentheses, or a sign and its operand."""
        if depth > MAX_DEPTH:
            problem = f"the expression is nested more than {MAX_DEPTH} deep"
            raise self._where.error(problem, self.next.offset)
        if self.next.kind == "number":
            self._emit_number(self._take())
        elif self.next.kind == "name":
            self._name_or_call(self._take(), depth)
        elif self.next.text in ("-", "+"):
            sign = self._take()
            self.expression(SIGN_PRECEDENCE, depth + 1)
            if sign.text == "-":
                self._emit(Apply(NEGATE), sign)
        elif self.next.text == "(":
            self._take()
            self.expression(0, depth + 1)
            self._close("')' is missing before")
        else:
            raise self.unexpected("a number, a name or '(' is missing before")

    def _emit_number(self, token: Token) -> None:
        value = float(token.text)
        if not math.isfinite(value):
            raise self._where.error(f"{token.text} is larger than any float64", token.offset)
        self._emit(Number(value), token)

    def _name_or_call(self, token: Token, depth: int) -> None:
        """Read a function's arguments, or emit the parameter that the name stands for."""
        if token.text in FUNCTIONS:
            self._call(token, depth)
            return
        number = self._names.get(token.text) or parameter_number(token.text)
        if number is None:
            raise self._unknown(token)
        if not 1 <= number <= self._parameters:
            problem = f"unknown parameter {token.text!r}; known: p1 to p{self._parameters}"
            raise self._where.error(problem, token.offset)
        self._emit(Parameter(number), token)

    def _unknown(self, token: Token) -> FormulaError:
        if self.next.text == "(":
            known = f"unknown function {token.text!r}; known: {', '.join(FUNCTIONS)}"
        else:
            names = f"p1 to p{self._parameters}" + "".join(f", {name}" for name in self._names)
            known = f"unknown name {token.text!r}; known: {names}"
        return self._where.error(known, token.offset)

    def _call(self, name: Token, depth: int) -> None:
        """Read `(a, b, …)` and emit the function; min and max after each argument but the first."""
        if self.next.text != "(":
            raise self.unexpected(f"'(' is missing after {name.text!r}, before")
        self._take()
        variadic = name.text in VARIADIC
        arguments = 0
        while arguments == 0 or self.next.text == ",":
            if arguments:
                self._take()
            elif self.next.text == ")":
                break
            self.expression(0, depth + 1)
            arguments += 1
            if variadic and arguments > 1:
                self._emit(Apply(name.text), name)
        self._close("',' or ')' is missing before")
        self._check_arity(name, arguments)
        if not variadic:
            self._emit(Apply(name.text), name)

    def _check_arity(self, name: Token, arguments: int) -> None:
        needed = FUNCTIONS[name.text].arity
        fits = arguments >= needed if name.text in VARIADIC else arguments == needed
        if not fits:
            least = "at least " if name.text in VARIADIC else ""
            plural = "" if needed == 1 else "s"
            problem = f"{name.text} takes {least}{needed} argument{plural}, not {arguments}"
            raise self._where.error(problem, name.offset)

    def _close(self, problem: str) -> None:
        if self.next.text != ")":
            raise self.unexpected(problem)
        self._take()

    def _take(self) -> Token:
        """Return the next token and advance, but not past the end."""
        taken = self.next
        self.next = next(self._tokens, taken)
        return taken

    def _emit(self, step: Step, token: Token) -> None:
        if len(self.steps) >= MAX_STEPS:
            problem = f"the expression has more than {MAX_STEPS} numbers, names and operations"
            raise self._where.error(problem, token.offset)
        self.steps.append(step)
