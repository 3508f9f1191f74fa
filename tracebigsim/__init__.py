"""Timing lines of bracketed regions: programs print them, tools read them.

For programs (light: no numpy is imported):

- `brackets`: `start`, `end` and `bracket` time regions and print their lines; `output`
- `writing`: `format_line`, the writing half of the grammar
- `include/traceBigSim.h`: the same brackets for C++; `include_dir` says where

For tools:

- `lines`: `scan`, the one grammar of timing and param lines: bytes to columns
- `files`: `scan_file`, the same for files, plain or gzip, in bounded memory
- `errors`: what is raised, all of it under `TraceBigSimError`

Within: `_grammar` (words, limits, faults), `_numbers` (exact decimal to double), `_tokens`,
`_fields` and `_bare` (what follows the keyword), `_scan` (the pass over the lines), `_compiled`
(how kernels are compiled). Nothing here imports rewritelog.
"""

from __future__ import annotations

from pathlib import Path

from tracebigsim.brackets import bracket, end, output, start
from tracebigsim.errors import BracketError, LineFormatError, TraceBigSimError, TraceFileError
from tracebigsim.writing import format_line

__all__ = [
    "BracketError",
    "LineFormatError",
    "TraceBigSimError",
    "TraceFileError",
    "bracket",
    "end",
    "format_line",
    "include_dir",
    "output",
    "start",
]


def include_dir() -> str:
    """Give the folder of traceBigSim.h, for a compiler's `-I`."""
    return str(Path(__file__).resolve().parent / "include")
