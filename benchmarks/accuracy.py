"""`python -m benchmarks.accuracy`: how far the models are off on lines that they did not see.

The table of docs/measurements/accuracy.md.

Data: the reference folder that REWRITELOG_REFERENCE names, or the one
beside the repository, and the project's own sample logs. Fits run one after the other.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from benchmarks.results import Table, add_out, machine, put_into

if TYPE_CHECKING:
    from benchmarks.accuracy_rows import Line

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
HEAD = ("what", "original", "auto", "known good", "aim", "met")
MEASUREMENTS = (
    "namd-kf",
    "namd-rs",
    "namd-sample",
    "namd-xt",
    "cells",
    "exact-match",
    "kernels",
    "measured",
    "time",
)


def main() -> None:
    """Measure, print, and put the table into a document; an aim that is missed is no error."""
    arguments = _arguments()
    for name in BLAS_THREADS:  # small matrices: more threads only wait for each other
        os.environ[name] = "1"
    from benchmarks.accuracy_rows import measure  # noqa: PLC0415 - numpy reads the environment

    lines: list[Line] = []
    for name in arguments.only or MEASUREMENTS:
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        measured = measure(name, quick=arguments.quick)
        print(_text(measured), file=sys.stderr, flush=True)
        lines += measured
    text = f"{machine()}\n- {_protocol(quick=arguments.quick)}\n\n{_text(lines)}"
    print(text)
    if arguments.out:
        put_into(arguments.out, text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="fewer seeds, and a tenth of the million lines"
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=MEASUREMENTS,
        help="one measurement; repeatable [default: all]",
    )
    add_out(parser)
    arguments = parser.parse_args()
    if arguments.out and (arguments.only or arguments.quick):
        parser.error("--out is for all measurements in full")
    return arguments


def _protocol(*, quick: bool) -> str:
    if quick:
        return "a quick look: fewer seeds, and a tenth of the million lines"
    return "seeds: 5 of 10 folds each for KF, 30 for RS, 10 for `sample`; BLAS on one thread"


def _text(lines: list[Line]) -> str:
    return Table("Mean error on held-out lines:", HEAD, [line.cells() for line in lines]).text()


if __name__ == "__main__":
    main()
