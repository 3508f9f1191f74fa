"""Texts compared with golden files: words exactly, numbers as far as machines agree."""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "files"

_NUMBER = re.compile(r"(?<![\w.])[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])")
_CLOSE = 2e-3
"""Libraries of linear algebra differ in last digits, and a printed number may round either way."""

_OF_THE_RUN = (
    (re.compile(r"done in .* on \d+ threads?( \(.*/s\))?"), "done in TIME"),
    (re.compile(r"timelines in \S+ s"), "timelines in TIME"),
    (re.compile(r"^(  .*% +\d+) +\d+\.\d\d$", re.MULTILINE), r"\1 SECONDS"),
    (re.compile(r"rewritelog \d+\.\d+\S*"), "rewritelog VERSION"),
)
"""What differs from run to run, and what is written in its place."""


@dataclass(frozen=True)
class Golden:
    """The golden files, compared with or written anew."""

    update: bool

    def check(self, name: str, text: str) -> None:
        """Fail with a diff where the text is not that of the golden file."""
        path = FOLDER / f"{name}.txt"
        text = _without_the_run(text)
        if self.update:
            if not path.exists() or not same(path.read_text(), text):
                path.write_text(text)
            return
        if not path.exists():
            pytest.fail(f"{path} does not exist: run pytest --update-golden")
        if not same(path.read_text(), text):
            old, new = path.read_text().splitlines(), text.splitlines()
            diff = "\n".join(difflib.unified_diff(old, new, "golden", "printed", lineterm=""))
            pytest.fail(f"{path.name} (pytest --update-golden writes it anew)\n{diff}", False)


def same(golden: str, text: str) -> bool:
    """Tell whether two texts have the same words and lines, and numbers that are close."""
    if len(_NUMBER.findall(golden)) != len(_NUMBER.findall(text)):
        return False
    if _words(golden) != _words(text):
        return False
    pairs = zip(_NUMBER.findall(golden), _NUMBER.findall(text), strict=True)
    return all(first == second or _close(first, second) for first, second in pairs)


def _words(text: str) -> list[list[str]]:
    """Return the words of each line; columns may be wider for a number of another length."""
    return [_NUMBER.sub(" 0 ", line).split() for line in text.splitlines()]


def _close(first: str, second: str) -> bool:
    if first.lstrip("+-").isdigit() or second.lstrip("+-").isdigit():
        return False
    step = min(Decimal(text).as_tuple().exponent for text in (first, second))
    return math.isclose(
        float(first), float(second), rel_tol=_CLOSE, abs_tol=1.01 * 10.0 ** int(step)
    )


def _without_the_run(text: str) -> str:
    for pattern, word in _OF_THE_RUN:
        text = pattern.sub(word, text)
    return text
