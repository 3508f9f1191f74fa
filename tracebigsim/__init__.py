"""Timing lines of bracketed kernels: programs print them, and tools read them.

For programs (light: no numpy is imported):

- `brackets`: `start`, `end`, `bracket`, `bracketed` time kernels and print lines; `output`, `flush`
- `writing`: `format_line` and `format_chosen`, which write the lines that `lines` reads
- `chosen`: lists of chosen SEBs
- `include/`: the same brackets for C, C++ and Fortran, in the folder that `include_dir` returns
- `share/`: package files for CMake and pkg-config

For tools:

- `lines`: `scan`, the parser of timing and param lines: bytes to columns
- `files`: `scan_file`, the same for plain or compressed files, in bounded memory
- `errors`: the exceptions, all derived from `TraceBigSimError`
- `__main__`: the options of the command `tracebigsim`; its `stats` and `merge` call rewritelog

Internal: `core` (the compiled scan, which has the grammar of timing lines, and the loader of
compiled cores).
Nothing in this package imports rewritelog.
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
    """Return the folder of tracebigsim.h and the sources beside it, for a compiler's `-I`.

    >>> import os
    >>> "tracebigsim.h" in os.listdir(tracebigsim.include_dir())
    True
    """
    return str(_FOLDER / "include")


def cmake_dir() -> str:
    """Return the folder for CMake's `-Dtracebigsim_DIR=`.

    >>> import os
    >>> sorted(os.listdir(tracebigsim.cmake_dir()))
    ['tracebigsim-config-version.cmake', 'tracebigsim-config.cmake']
    """
    return str(_FOLDER / "share" / "cmake")


def pkg_config_dir() -> str:
    """Return the folder for the environment variable PKG_CONFIG_PATH.

    >>> import os
    >>> os.listdir(tracebigsim.pkg_config_dir())
    ['tracebigsim.pc']
    """
    return str(_FOLDER / "share" / "pkgconfig")
