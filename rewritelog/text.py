"""Text for people: names from a log made harmless for a terminal, numbers with their units."""

from __future__ import annotations

import json
from pathlib import Path

FAULTS_SHOWN = 5
"""How many faulty lines of a text file are shown."""


def printable(text: str | bytes) -> str:
    """Return a name with everything that a terminal might obey spelled as an escape."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def json_text(value: object, indent: int | None = None) -> str:
    """Return a value as strict JSON of printable ASCII, which a terminal can be shown.

    Raise `ValueError` for a number that JSON does not have.
    """
    text = json.dumps(value, indent=indent, allow_nan=False, ensure_ascii=True)
    return text.replace("\x7f", "\\u007f")


def bytes_text(size: float) -> str:
    """Return a size in the decimal unit that suits it, as in `1.5 MB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(size) < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def count_text(number: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun, as in `1 line` and `2,000 lines`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def fault_text(path: Path, line: int, problem: str, text: str) -> str:
    """Return how a faulty line of a text file is reported."""
    return f"{path}:{line}: {problem}: {printable(text)!r}"
