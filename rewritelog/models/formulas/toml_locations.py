"""Lines and columns of the keys and values in a TOML text, which `tomllib` does not report.

The result is only meaningful for a text that `tomllib` has parsed without an error.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TypeAlias

from rewritelog.models.expressions import Origin

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and array indices from the root to a value, as in `("formula", 0, "terms", 2)`."""

DEEPEST = 8
"""Paths are recorded up to this depth; a deeper value has the location of what contains it."""

_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[ \t]*\n[ \t\n]*|.)")
_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]*")


@dataclass(frozen=True)
class TomlLocations:
    """The locations of keys and values in one text."""

    name: str
    """The name of the text in errors."""
    values: dict[KeyPath, Origin] = field(default_factory=dict)
    """The first character of each value; of a string, the first one within its quotes."""
    keys: dict[KeyPath, Origin] = field(default_factory=dict)
    """The first character of each key, or of the header for a table in an array of tables."""

    def of_value(self, path: KeyPath) -> Origin:
        """Return the location of a value, or of its key or header if it is written as a table."""
        return self.values.get(path) or self.of_key(path)

    def of_key(self, path: KeyPath) -> Origin:
        """Return the location of a key or header, or of the value if there is no key."""
        return self.keys.get(path) or self.values.get(path) or Origin(self.name, 1)


def find_locations(text: str, name: str) -> TomlLocations:
    """Return the locations of all keys and values; lines and columns count from 1."""
    scanner = _Scanner(text.replace("\r\n", "\n"), TomlLocations(name))
    scanner.document()
    return scanner.locations


class _Scanner:
    """Scans the text once; `_at` is the offset reached."""

    def __init__(self, text: str, locations: TomlLocations) -> None:
        self.locations = locations
        self._text = text
        self._at = 0
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]
        self._tables: dict[KeyPath, int] = {}
        """The number of tables found so far in each array of tables."""

    def document(self) -> None:
        """Scan the whole text: headers, and the assignments below each."""
        table: KeyPath = ()
        self._skip_blanks()
        while self._at < len(self._text):
            if self._ahead("["):
                table = self._header()
            else:
                self._assignment(table)
            self._skip_blanks()

    def _header(self) -> KeyPath:
        """Return the path of the table that `[a.b]` or `[[a.b]]` begins."""
        start = self._at
        brackets = 2 if self._ahead("[[") else 1
        self._at += brackets
        path: KeyPath = ()
        for key in self._key():
            path = (*self._latest(path), key)[:DEEPEST]
            self.locations.keys.setdefault(path, self._origin(start))
        self._skip_blanks()
        self._at += brackets
        if brackets == 2:
            self._tables[path] = self._tables.get(path, 0) + 1
            path = self._latest(path)
        self.locations.keys.setdefault(path, self._origin(start))
        return self._latest(path)

    def _latest(self, path: KeyPath) -> KeyPath:
        """Return a path with the index of the last table, if it is one of an array of tables."""
        return (*path, self._tables[path] - 1) if path in self._tables else path

    def _assignment(self, table: KeyPath) -> None:
        start = self._at
        path = table
        for key in self._key():
            path = (*path, key)[:DEEPEST]
            self.locations.keys.setdefault(path, self._origin(start))
        self._skip_blanks()
        self._at += 1  # the equals sign
        self._value(path)

    def _key(self) -> tuple[str, ...]:
        """Return the parts of a key, and advance past it."""
        parts: list[str] = []
        while not parts or self._ahead("."):
            self._at += bool(parts)
            self._skip_blanks()
            start = self._at
            if self._ahead('"') or self._ahead("'"):
                self._string()
                parts.append(*tomllib.loads(self._text[start : self._at] + "=0"))
            else:
                self._match(_BARE_KEY)
                parts.append(self._text[start : self._at])
            self._skip_blanks()
        return tuple(parts)

    def _value(self, path: KeyPath) -> None:
        """Record the locations of a value and of everything in it."""
        self._skip_blanks()
        if self._ahead('"') or self._ahead("'"):
            self.locations.values.setdefault(path, self._string())
            return
        self.locations.values.setdefault(path, self._origin(self._at))
        if self._ahead("["):
            self._array(path)
        elif self._ahead("{"):
            self._inline_table(path)
        else:
            self._match(_SCALAR)

    def _array(self, path: KeyPath) -> None:
        self._step()
        index = 0
        while not self._ahead("]"):
            self._value((*path, index)[:DEEPEST])
            index += 1
            self._skip_separator()
        self._at += 1

    def _inline_table(self, path: KeyPath) -> None:
        self._step()
        while not self._ahead("}"):
            self._assignment(path)
            self._skip_separator()
        self._at += 1

    def _string(self) -> Origin:
        """Advance past a string, and return the location of each of its characters."""
        quote = self._text[self._at]
        delimiter = quote * 3 if self._ahead(quote * 3) else quote
        self._at += len(delimiter)
        if len(delimiter) == 3 and self._ahead("\n"):
            self._at += 1
        offsets: list[int] = []
        while not self._ahead(delimiter):
            offsets.extend(self._character(escapes=quote == '"'))
        while len(delimiter) == 3 and self._ahead(quote * 4):
            offsets.append(self._at)
            self._at += 1
        offsets.append(self._at)
        self._at += len(delimiter)
        return self._string_origin(offsets)

    def _character(self, *, escapes: bool) -> list[int]:
        """Advance past a character or escape; return its offset, or none for a folded line."""
        start = self._at
        found = _ESCAPE.match(self._text, start) if escapes else None
        self._at = found.end() if found else start + 1
        return [] if found and "\n" in found.group() else [start]

    def _string_origin(self, offsets: list[int]) -> Origin:
        """Return a string's location, with those of its characters unless they are contiguous."""
        locations = [self._line_and_column(offset) for offset in offsets]
        line, column = locations[0]
        plain = locations == [(line, column + step) for step in range(len(locations))]
        return Origin(self.locations.name, line, column, () if plain else tuple(locations))

    def _origin(self, offset: int) -> Origin:
        return Origin(self.locations.name, *self._line_and_column(offset))

    def _line_and_column(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def _ahead(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _step(self) -> None:
        self._at += 1
        self._skip_blanks()

    def _skip_separator(self) -> None:
        self._skip_blanks()
        if self._ahead(","):
            self._step()

    def _skip_blanks(self) -> None:
        self._match(_BLANK)

    def _match(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at
