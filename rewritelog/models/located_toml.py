"""TOML with declared types, whose errors name the line of the mistake.

`tomllib` parses the text, and msgspec checks the types; neither says where a key or value stands,
so this module searches the text for it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from rewritelog.models.expressions import FormulaError, Origin
from rewritelog.models.wording import AT, in_words, unknown_key

T = TypeVar("T")

MAX_FILE = 200_000
"""The most characters of a file."""

MAX_LINE = 1000
"""The most characters of a line: tomllib's time grows with the square of a dotted key's parts."""

_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_COMMENT = re.compile(r"(?m)^[ \t]*#.*$")


class LocatedToml:
    """A document that `tomllib` has parsed, and where its values stand in the text."""

    def __init__(self, name: str, text: str, document: Mapping[str, Any]) -> None:
        self.name = name
        """The name of the text in errors."""
        self.document = document
        self._text = _COMMENT.sub(lambda comment: " " * len(comment[0]), text)

    def declared(self, kind: type[T], *path: str | int) -> T:
        """Return the value at a path as a declared type; raise `FormulaError` if it is not one."""
        value: Any = self.document
        for step in path:
            value = value[step]
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            problem, _, within = str(error).partition(AT)
            path = (*path, *(int(index) if index else key for key, index in _STEP.findall(within)))
            which = f"value {path[-1] + 1} " if path and isinstance(path[-1], int) else ""
            explanation = in_words(problem, table="a table", value=which)
            if (key := unknown_key(problem)) is not None:
                known = ", ".join(getattr(kind, "__struct_fields__", ()))
                raise self.place(*path, key).error(f"{explanation}; known: {known}") from None
            named = next((key for key in reversed(path) if isinstance(key, str)), "")
            raise self.place(*path).error(f"{named}: {explanation}") from None

    def place(self, *path: str | int) -> Origin:
        """Return the line of a value, given the keys and indices that lead to it.

        Each step, a key, header or string, is searched for in the text from the end of the step
        before it. Only a string in one line without escapes has a column.
        """
        within: Any = self.document
        at, begin, header, column = 0, 0, "", None
        for step in path:
            if isinstance(step, str):
                patterns, within = [_word(step)], within.get(step)
                header = rf"\[\[[^\]\n]*{_word(step)}[^\]\n]*\]\]"
                patterns += [_string(within)] if isinstance(within, str) else []
            else:
                strings = isinstance(within[step], str)
                patterns = list(map(_string, within[: step + 1])) if strings else [header] * step
                within = within[step]
            for pattern in patterns:
                match = re.compile(pattern).search(self._text, at)
                at = match.end() if match else at
            start = at - len(str(within))
            before = self._text.rfind("\n", 0, start) + 1
            written = self._text[start:at] == within
            begin, is_in_line = (start, "\n" not in within) if written else (at, False)
            column = start - before + 1 if is_in_line else None
        return Origin(self.name, self._text.count("\n", 0, begin) + 1, column)


def _word(key: str) -> str:
    return rf"(?<![\w-]){re.escape(key)}(?![\w-])"


def _string(value: object) -> str:
    return rf"[\"']{re.escape(str(value))}(?=[\"'])"


def read_toml(text: str, name: str) -> LocatedToml:
    """Return a parsed text; raise `FormulaError` if it is too large, too deep or not TOML."""
    if len(text) > MAX_FILE:
        raise FormulaError(name, None, None, f"has more than {MAX_FILE} characters")
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_LINE:
            problem = f"the line has more than {MAX_LINE} characters; split it"
            raise FormulaError(name, number, None, problem)
    try:
        return LocatedToml(name, text, tomllib.loads(text))
    except RecursionError as error:
        raise FormulaError(name, None, None, "is nested too deeply") from error
    except ValueError as error:  # also for a number with thousands of digits
        raise FormulaError(name, None, None, f"is not TOML: {error}") from error
