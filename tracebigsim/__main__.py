"""Prints where the header and its package files are: `tracebigsim`, or `python -m tracebigsim`."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from pathlib import Path

from tracebigsim import cmake_dir, include_dir, pkg_config_dir

FOLDERS = {
    "--include-dir": (include_dir, "the folder of tracebigsim.h, for a compiler's -I"),
    "--cmake-dir": (cmake_dir, "the folder of the CMake config, for -Dtracebigsim_DIR="),
    "--pkg-config-dir": (pkg_config_dir, "the folder for PKG_CONFIG_PATH"),
}

COMMANDS = ("stats", "merge")


def _version() -> str:
    """Return the version that pkg-config and CMake read; a checkout has no metadata."""
    text = Path(pkg_config_dir(), "tracebigsim.pc").read_text(encoding="utf-8")
    return f"tracebigsim {text.partition('Version: ')[2].split()[0]}"


def main() -> None:
    """Print what is asked for; exit with 1 if that fails, and with 2 for wrong usage.

    `stats` and `merge` are commands of rewritelog, which then replaces this process.
    """
    if {*COMMANDS}.intersection(sys.argv[1:2]):
        words = [sys.executable, "-P", "-m", "rewritelog", *sys.argv[1:]]  # -P: as below
        os.execv(sys.executable, words)  # noqa: S606 - no shell is wanted
    parser = argparse.ArgumentParser(
        prog="tracebigsim",
        usage="tracebigsim OPTION | tracebigsim stats|merge FILE...",
        description="Bracketed kernels of programs, and their timing lines.",
        epilog="stats, merge: commands for timing lines, see `rewritelog stats --help`.",
    )
    choices = parser.add_mutually_exclusive_group(required=True)
    for option, (folder, text) in FOLDERS.items():
        choices.add_argument(
            option, dest="asked", action="store_const", const=folder, help=f"print {text}"
        )
    choices.add_argument(
        "--version", dest="asked", action="store_const", const=_version, help="print the version"
    )
    if sys.argv[1:] and not sys.argv[1].startswith("-"):
        known = difflib.get_close_matches(sys.argv[1], COMMANDS)
        advice = f"; did you mean {known[0]!r}?" if known else ""
        parser.error(f"no such command {sys.argv[1]!r}{advice}")
    asked = parser.parse_args().asked
    try:
        text = f"{asked()}\n"
        os.fstat(1)  # fails if standard output is closed, and sys.stdout None
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        what = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"tracebigsim: error: {what}{error.strerror}\n")
        os._exit(1)  # at a normal exit, Python would try to write the text again


if __name__ == "__main__":
    # `python -m` looks for modules in the working directory first, which may be a folder of logs.
    if not (sys.flags.safe_path or __file__.startswith(sys.path[0] + os.sep)):
        del sys.path[0]
    main()
