"""From text to an expression: precedence climbing (Pratt 1973) that emits postfix steps.

Loosest first: comparisons (which do not chain), `+ -`, `* /`, the sign, `^` (from the right).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from rewritelog.models.expressions.expression import (
    BINDING,
    SIGN_BINDING,
    Apply,
    Constant,
    Expression,
    Parameter,
    Step,
)
from rewritelog.models.expressions.operations import FUNCTIONS, MANY, NEGATE, OPERATORS
from rewritelog.models.expressions.origin import FormulaError, Origin
from rewritelog.models.expressions.tokens import (
    MAX_PARAMETERS,
    Token,
    parameter_number,
    tokenize,
)

MAX_DEPTH = 100
"""Parentheses, signs, powers and right-hand sides may nest this deep."""

MAX_STEPS = 2000
"""The most constants, parameters and operations of an expression."""


def parse(
    text: str,
    *,
    names: Mapping[str, int] | None = None,
    parameters: int = MAX_PARAMETERS,
    where: Origin | None = None,
) -> Expression:
    """Return the expression that the text says, over p1 … p20 and the names.

    `names` gives the parameter number, from 1, that each name stands for; functions keep theirs.
    `parameters` is how many parameters there are.
    Raise `FormulaError` with the place for anything that is not an expression.
    """
    if names or where:
        return _parse(text, names or {}, parameters, where or Origin())
    return _parse_plain(text, parameters)


@lru_cache(maxsize=1 << 12)
def _parse_plain(text: str, parameters: int) -> Expression:
    """Return a text's expression, which fits ask for again and again."""
    return _parse(text, {}, parameters, Origin())


def _parse(text: str, names: Mapping[str, int], parameters: int, where: Origin) -> Expression:
    parser = _Parser(tokenize(text, where), names, parameters, where)
    parser.expression(0, 0)
    if parser.next.kind != "end":
        raise parser.wrong("an operator is missing before")
    return Expression(tuple(parser.steps))


@dataclass(frozen=True)
class _Call:
    """A function call whose arguments are being read."""

    name: Token
    depth: int


class _Parser:
    """Reads the words from left to right; `steps` is what they mean so far."""

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
        """Read operands and the operators between them that bind at least as tight."""
        self._operand(depth)
        while self.next.text in OPERATORS and BINDING[self.next.text] >= loosest:
            operator = self._take()
            binding = BINDING[operator.text]
            self.expression(binding if operator.text == "^" else binding + 1, depth + 1)
            self._emit(Apply(operator.text), operator)
            if binding == BINDING["<"] and BINDING.get(self.next.text) == binding:
                raise self.wrong("comparisons do not chain: write (a < b)*(b < c); found")

    def wrong(self, problem: str) -> FormulaError:
        """Return the error that the next word is not what may be there."""
        found = "the end" if self.next.kind == "end" else repr(self.next.text)
        return self._where.error(f"{problem} {found}", self.next.offset)

    def _operand(self, depth: int) -> None:
        """Read a number, a name, a call, something in parentheses, or a sign and its operand."""
        if depth > MAX_DEPTH:
            problem = f"the expression is nested more than {MAX_DEPTH} deep"
            raise self._where.error(problem, self.next.offset)
        if self.next.kind == "number":
            self._number(self._take())
        elif self.next.kind == "name":
            self._name(self._take(), depth)
        elif self.next.text in ("-", "+"):
            sign = self._take()
            self.expression(SIGN_BINDING, depth + 1)
            if sign.text == "-":
                self._emit(Apply(NEGATE), sign)
        elif self.next.text == "(":
            self._take()
            self.expression(0, depth + 1)
            self._close("')' is missing before")
        else:
            raise self.wrong("a number, a name or '(' is missing before")

    def _number(self, token: Token) -> None:
        value = float(token.text)
        if not math.isfinite(value):
            raise self._where.error(f"{token.text} is larger than any float64", token.offset)
        self._emit(Constant(value), token)

    def _name(self, token: Token, depth: int) -> None:
        """Read a function's arguments, or emit the parameter that the name stands for."""
        if token.text in FUNCTIONS:
            self._call(_Call(token, depth))
            return
        number = self._names.get(token.text) or parameter_number(token.text)
        if number is None:
            raise self._unknown(token)
        if not 1 <= number <= self._parameters:
            problem = f"there is no parameter {token.text!r}: they are p1 to p{self._parameters}"
            raise self._where.error(problem, token.offset)
        self._emit(Parameter(number), token)

    def _unknown(self, token: Token) -> FormulaError:
        if self.next.text == "(":
            known = f"unknown function {token.text!r}; known: {', '.join(FUNCTIONS)}"
        else:
            names = f"p1 to p{self._parameters}" + "".join(f", {name}" for name in self._names)
            known = f"unknown name {token.text!r}; known: {names}"
        return self._where.error(known, token.offset)

    def _call(self, call: _Call) -> None:
        """Read `(a, b, …)` and emit the function; min and max after each argument but the first."""
        if self.next.text != "(":
            raise self.wrong(f"'(' is missing after {call.name.text!r}, before")
        self._take()
        many = call.name.text in MANY
        arguments = 0
        while arguments == 0 or self.next.text == ",":
            if arguments:
                self._take()
            elif self.next.text == ")":
                break
            self.expression(0, call.depth + 1)
            arguments += 1
            if many and arguments > 1:
                self._emit(Apply(call.name.text), call.name)
        self._close("',' or ')' is missing before")
        self._check_arity(call.name, arguments)
        if not many:
            self._emit(Apply(call.name.text), call.name)

    def _check_arity(self, name: Token, arguments: int) -> None:
        needed = FUNCTIONS[name.text].arity
        fits = arguments >= needed if name.text in MANY else arguments == needed
        if not fits:
            least = "at least " if name.text in MANY else ""
            plural = "" if needed == 1 else "s"
            problem = f"{name.text} takes {least}{needed} argument{plural}, not {arguments}"
            raise self._where.error(problem, name.offset)

    def _close(self, problem: str) -> None:
        if self.next.text != ")":
            raise self.wrong(problem)
        self._take()

    def _take(self) -> Token:
        """Return the next word, and move on; the end stays where it is."""
        taken = self.next
        self.next = next(self._tokens, taken)
        return taken

    def _emit(self, step: Step, token: Token) -> None:
        if len(self.steps) >= MAX_STEPS:
            problem = f"the expression has more than {MAX_STEPS} numbers, names and operations"
            raise self._where.error(problem, token.offset)
        self.steps.append(step)
