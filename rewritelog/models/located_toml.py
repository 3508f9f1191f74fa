"""TOML whose values have the types that are declared, with the line and column of each of them.

`tomllib` parses the text, and msgspec checks the types; neither says where a key or value stands.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec

from rewritelog.models.expressions import FormulaError, Origin

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and array indices from the root to a value, as in `("formula", 0, "terms", 2)`."""

T = TypeVar("T")

MAX_FILE = 200_000
"""The most characters of a file."""

MAX_LINE = 1000
"""The most characters of a line: tomllib's time grows with the square of a dotted key's parts."""

DEEPEST = 8
"""Paths are recorded up to this depth; a deeper value has the location of what contains it."""

_TOMLLIB_LOCATION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_UNKNOWN_KEY = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")

_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SEPARATOR = re.compile(r"(?:[ \t\n,]|#[^\n]*)*")
_BRACKETS = re.compile(r"\[{0,2}")
_DOT = re.compile(r"\.?")
_KEY = re.compile(r""""(?:\\.|[^"\\])*"|'[^']*'|[A-Za-z0-9_-]+""")
_STRING = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}(?!")|\'\'\'.*?'{3,5}(?!')|"(?:\\.|[^"\\])*"|'[^']*\'''', re.DOTALL
)
_PLAIN = re.compile(rf"(?:{_STRING.pattern})|[^,\]}}#\n]*", re.DOTALL)
_OPENING = re.compile(r"[\[{]?")
_CLOSING = re.compile(r"[\]}]?")
_CHARACTER = re.compile(
    r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|(?P<fold>[ \t]*\n[ \t\n]*)|.)|.",
    re.DOTALL,
)


class LocatedToml:
    """A document with the location of each key and value.

    `read_toml` makes it: of a text that `tomllib` has parsed without an error, the brackets, keys,
    strings and other values are scanned for where they begin.
    """

    def __init__(self, name: str, text: str, document: Mapping[str, Any]) -> None:
        self.name = name
        """The name of the text in errors."""
        self.document = document
        self._text = text
        self._lines = [0, *(newline.end() for newline in re.finditer("\n", text))]
        """The first character of each line."""
        self._values: dict[KeyPath, int] = {}
        """The first character of each value."""
        self._keys: dict[KeyPath, int] = {}
        """The first character of each key, or of the header for a table in an array of tables."""
        self._tables: dict[KeyPath, int] = {}
        """The index of the last table so far in each array of tables."""
        self._at = 0
        self._scan()

    def declared(self, value: Any, kind: type[T], path: KeyPath) -> T:
        """Return the value of a path as a declared type; raise `FormulaError` where it is none."""
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            problem, _, within = str(error).partition(" - at `$")
            path = (*path, *(int(index) if index else key for key, index in _STEP.findall(within)))
            if unknown := _UNKNOWN_KEY.fullmatch(problem):
                known = ", ".join(getattr(kind, "__struct_fields__", ()))
                explanation = f"unknown key {unknown[1]!r}; known: {known}"
                raise self.of_key((*path, unknown[1])).error(explanation) from None
            named = next((key for key in reversed(path) if isinstance(key, str)), "")
            raise self.of_value(path).error(f"{named}: {problem}") from None

    def of_value(self, path: KeyPath) -> Origin:
        """Return the location of a value, or of its key or header if it is written as a table.

        That of a string is the first character within its quotes.
        """
        if path not in self._values:
            return self._origin(self._keys[path]) if path in self._keys else Origin(self.name, 1)
        start = self._values[path]
        match = _STRING.match(self._text, start)
        return self._origin(*_offsets(match[0], start)) if match else self._origin(start)

    def of_key(self, path: KeyPath) -> Origin:
        """Return the location of a key or header, or of the value if there is no key."""
        return self._origin(self._keys[path]) if path in self._keys else self.of_value(path)

    def _origin(self, *offsets: int) -> Origin:
        """Return the location of a text whose characters are at these offsets."""
        positions = []
        for offset in offsets:
            line = bisect_right(self._lines, offset)
            positions.append((line, offset - self._lines[line - 1] + 1))
        return Origin(self.name, *positions[0], tuple(positions))

    def _scan(self) -> None:
        """Scan the whole text: headers, and the assignments below each."""
        table: KeyPath = ()
        self._take(_BLANK)
        while self._at < len(self._text):
            start = self._at
            brackets = self._take(_BRACKETS)
            path = self._scan_key(() if brackets else table, start)
            self._at += len(brackets) or 1  # the closing brackets, or the equals sign
            if brackets:
                if len(brackets) == 2:
                    self._tables[path] = self._tables.get(path, -1) + 1
                table = self._latest(path)
                self._keys.setdefault(table, start)
            else:
                self._scan_value(path)
            self._take(_BLANK)

    def _scan_key(self, path: KeyPath, start: int) -> KeyPath:
        """Return the path of a dotted key below another one, and record that it starts there."""
        while True:
            self._take(_BLANK)
            key = self._take(_KEY)
            parts = tomllib.loads(key + "=0") if key[0] in "\"'" else (key,)
            path = (*self._latest(path), *parts)[:DEEPEST]
            self._keys.setdefault(path, start)
            self._take(_BLANK)
            if not self._take(_DOT):
                return path

    def _latest(self, path: KeyPath) -> KeyPath:
        """Return a path with the index of the last table, if it is one of an array of tables."""
        return (*path, self._tables[path]) if path in self._tables else path

    def _scan_value(self, path: KeyPath) -> None:
        """Record where a value and everything in it begin."""
        self._take(_BLANK)
        self._values.setdefault(path, self._at)
        bracket = self._take(_OPENING)
        if not bracket:
            self._take(_PLAIN)
            return
        self._take(_SEPARATOR)
        index = 0
        while not self._take(_CLOSING):
            if bracket == "{":
                inner = self._scan_key(path, self._at)
                self._at += 1  # the equals sign
            else:
                inner = (*path, index)[:DEEPEST]
            self._scan_value(inner)
            index += 1
            self._take(_SEPARATOR)

    def _take(self, pattern: re.Pattern[str]) -> str:
        """Return what matches here, and advance past it."""
        match = pattern.match(self._text, self._at)
        taken = match[0] if match else ""
        self._at += len(taken)
        return taken


def _offsets(string: str, start: int) -> list[int]:
    """Return the offsets of the characters of a string in quotes, and of its end."""
    quotes = 3 if string[:3] in ('"""', "'''") and len(string) > 5 else 1
    begin, end = quotes + (quotes == 3 and string[3] == "\n"), len(string) - quotes
    characters: Sequence[int] = range(begin, end)
    if string[0] == '"' and "\\" in string:
        written = _CHARACTER.finditer(string, begin, end)
        characters = [match.start() for match in written if match["fold"] is None]
    return [start + offset for offset in (*characters, end)]


def read_toml(text: str, name: str) -> LocatedToml:
    """Return the document of a text; raise `FormulaError` if it is too large, too deep or none."""
    if len(text) > MAX_FILE:
        raise FormulaError(name, None, None, f"has more than {MAX_FILE} characters")
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_LINE:
            problem = f"the line has more than {MAX_LINE} characters; split it"
            raise FormulaError(name, number, MAX_LINE + 1, problem)
    try:
        return LocatedToml(name, text.replace("\r\n", "\n"), tomllib.loads(text))
    except RecursionError as error:
        raise FormulaError(name, None, None, "is nested too deeply") from error
    except ValueError as error:  # also for a number with thousands of digits
        match = _TOMLLIB_LOCATION.search(str(error))
        end = text.count("\n") + 1, len(text) - text.rfind("\n")
        location = (int(match[1]), int(match[2])) if match and match[1] else end
        problem = _TOMLLIB_LOCATION.sub("", str(error))
        raise FormulaError(name, *location, f"is not TOML: {problem}") from error
