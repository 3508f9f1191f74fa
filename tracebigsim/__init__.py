"""Timing lines of bracketed regions: programs print them, tools read them.

For programs (light: no numpy is imported):

- `brackets`: `start`, `end`, `bracket` and `bracketed` time regions and print their lines; `output`
- `writing`: `format_line`, the writing half of the grammar, and `format_chosen`
- `chosen`: lists of chosen SEBs
- `include/`: the same brackets for C, C++ and Fortran, in the folder that `include_dir` gives
- `share/`: what finds them for CMake and pkg-config

For tools:

- `lines`: `scan`, the one grammar of timing and param lines: bytes to columns
- `files`: `scan_file`, the same for files, plain or compressed, in bounded memory
- `stats`, `merge`: what the lines of files hold, and one clean file of them
- `errors`: what is raised, all of it under `TraceBigSimError`
- `compiled`: how kernels run, compiled or as they are; for packages with kernels of their own
- `__main__`: the command `tracebigsim`

Within: `_output` (where lines go), `_grammar` (words, limits, faults), `_numbers` (exact decimal to
double), `_tokens`, `_fields` and `_bare` (what follows the keyword), `_scan` (the pass over the
lines), `kernel_cache` and `kernel_digest` (where compiled kernels are kept, and until when).
Nothing here imports rewritelog.
"""

from __future__ import annotations

from pathlib import Path

from tracebigsim.brackets import bracket, bracketed, end, flush, output, start
from tracebigsim.errors import (
    BracketError,
    BracketWarning,
    LineFormatError,
    TraceBigSimError,
    TraceFileError,
)
from tracebigsim.writing import format_chosen, format_line

__all__ = [
    "BracketError",
    "BracketWarning",
    "LineFormatError",
    "TraceBigSimError",
    "TraceFileError",
    "bracket",
    "bracketed",
    "cmake_dir",
    "end",
    "flush",
    "format_chosen",
    "format_line",
    "include_dir",
    "output",
    "pkg_config_dir",
    "start",
]

_FOLDER = Path(__file__).resolve().parent


def include_dir() -> str:
    """Give the folder of tracebigsim.h, for a compiler's `-I`, and of the sources beside it."""
    return str(_FOLDER / "include")


def cmake_dir() -> str:
    """Give the folder for CMake's `-Dtracebigsim_DIR=`."""
    return str(_FOLDER / "share" / "cmake")


def pkg_config_dir() -> str:
    """Give the folder for the environment variable PKG_CONFIG_PATH."""
    return str(_FOLDER / "share" / "pkgconfig")
