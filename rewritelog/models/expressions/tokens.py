"""The tokens of an expression: numbers, names and operators, each with its offset in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from rewritelog.models.expressions.origin import Origin

MAX_LENGTH = 100_000
"""The most characters of a text; canonical texts are always shorter."""

MAX_PARAMETERS = 20
"""Parameters are p1 … p20, as timing lines have them."""

Kind = Literal["number", "name", "operator", "end"]

_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<operator><=|>=|==|!=|\*\*|[-+*/^<>(),=])"
)
_BLANKS = re.compile(r"[ \t\r\n]*")

_MISSPELLED = {"**": "^", "=": "=="}
"""Operators of other languages, and the ones to use in their place."""


@dataclass(frozen=True)
class Token:
    """One token of the text."""

    kind: Kind
    text: str
    offset: int
    """The offset of its first character, from 0."""


def tokenize(text: str, where: Origin) -> list[Token]:
    """Return the tokens of the text and an `end`; raise `FormulaError` for anything else."""
    if len(text) > MAX_LENGTH:
        raise where.error(f"the expression has {len(text)} characters; at most {MAX_LENGTH}")
    tokens = []
    at = _skip_blanks(text, 0)
    while at < len(text):
        token = _token(text, at, where)
        tokens.append(token)
        at = _skip_blanks(text, at + len(token.text))
    tokens.append(Token("end", "", at))
    return tokens


def is_name(text: str) -> bool:
    """Return whether the text can be a name: a letter or `_`, then letters, digits and `_`."""
    found = _TOKEN.fullmatch(text)
    return found is not None and found.lastgroup == "name"


def parameter_number(name: str) -> int | None:
    """Return the number in a name such as `p12`; None for any other name."""
    found = re.fullmatch(r"p(0|[1-9][0-9]{0,8})", name)
    return int(found[1]) if found else None


def _skip_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _token(text: str, at: int, where: Origin) -> Token:
    """Return the token that begins at an offset."""
    found = _TOKEN.match(text, at)
    if found is None:
        raise where.error(f"invalid character {text[at]!r}", at)
    word = found.group()
    if word in _MISSPELLED:
        raise where.error(f"unknown operator {word!r}; write {_MISSPELLED[word]!r}", at)
    if found.lastgroup == "number":
        return Token("number", word, at)
    return Token("name" if found.lastgroup == "name" else "operator", word, at)
