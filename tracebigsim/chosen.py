"""Lists of chosen SEBs: the brackets to be timed in an instrumented run of the program.

`rewritelog sample` writes such a list: `#` comments, then a line for each SEB, as written by
`format_chosen`,

    3 19 TRACEBIGSIM: event:{ Cell::pairForces } seqno: { 19 }    params:{ 53.000000 11.000000 }

that is, the PE's number and the line of that PE's param file. This module does not need numpy.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tracebigsim.errors import TraceFileError
from tracebigsim.writing import KEYWORD, MAX_PARAMS

_LINE: Final = re.compile(
    rf"[ \t]*(?P<pe>[0-9]{{1,19}})[ \t]+(?P<seb>[0-9]{{1,19}})[ \t]+{KEYWORD}:[ \t]*"
    r"event:[ \t]*\{[ \t]*(?P<event>.*[^ \t])[ \t]*\}[ \t]*seqno:[ \t]*\{[ \t]*[0-9]+[ \t]*\}"
    r"[ \t]*params:[ \t]*\{(?P<params>[-+.0-9eE \t]*)\}[ \t]*"
)


class ChosenSeb(NamedTuple):
    """One line of a list."""

    pe: int
    seb: int
    """The SEB's index in the PE's timeline."""
    event: str
    params: tuple[float, ...]


def read_chosen(path: str | os.PathLike[str]) -> tuple[ChosenSeb, ...]:
    """Read a list of chosen SEBs.

    Raises TraceFileError if it cannot be read, and for a malformed line, with the line's number.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise TraceFileError(path, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise TraceFileError(path, f"not a list of chosen SEBs: {error}") from error
    return tuple(_sebs(path, text))


def _sebs(path: str | os.PathLike[str], text: str) -> Iterator[ChosenSeb]:
    """Parse the lines that are neither blank nor comments."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line.rstrip("\r"))
        params = None if match is None else _params(match["params"])
        if match is None or params is None:
            raise TraceFileError(path, f"line {number}: not a chosen SEB: {line[:120]!r}")
        yield ChosenSeb(int(match["pe"]), int(match["seb"]), match["event"], params)


def _params(text: str) -> tuple[float, ...] | None:
    """Parse the parameters (-0 becomes 0); return None unless they are 0 to 20 finite numbers."""
    try:
        params = tuple(float(word) + 0.0 for word in text.split())
    except ValueError:
        return None
    return params if len(params) <= MAX_PARAMS and all(map(math.isfinite, params)) else None
