"""`python -m benchmarks`: measure everything, print it, and put it into the docs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from benchmarks.logs import Workshop
from benchmarks.process import working_folder
from benchmarks.profiling import profile
from benchmarks.results import Result, add_out, file_system, put_into, report
from benchmarks.starting import start_up
from benchmarks.texts_and_fits import fitting, reading
from benchmarks.whole_runs import against_copy, big_endian, memory

FULL_GB = 2.0


def programs(shop: Workshop) -> Result:
    """Measure bracketed programs, last: the imports for that enlarge this process."""
    from benchmarks.programs import measure  # noqa: PLC0415

    return measure(shop)


MEASUREMENTS: dict[str, Callable[[Workshop], Result]] = {
    "copy": against_copy,
    "reading": reading,
    "fit": fitting,
    "memory": memory,
    "start-up": start_up,
    "big-endian": big_endian,
    "profile": profile,
    "programs": programs,
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--scale",
        type=float,
        default=FULL_GB,
        help=f"size of the large log set in GB [default: {FULL_GB:g}]",
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=MEASUREMENTS,
        help="one measurement; repeatable [default: all]",
    )
    add_out(parser)
    parser.add_argument(
        "--work",
        type=Path,
        help="the folder to work in; it needs four times the scale's disk space "
        "[default: that of temporary files]",
    )
    arguments = parser.parse_args()
    if arguments.out and arguments.only:
        parser.error("--out is for all measurements")
    return arguments


def main() -> None:
    """Run the measurements one after the other; a target that is not met is no error."""
    arguments = _arguments()
    busy = f"load at the start, by other processes: {os.getloadavg()[0]:.2f} in the last minute"
    results = []
    with ExitStack() as stack:
        folder = stack.enter_context(working_folder(arguments.work))
        shop = stack.enter_context(closing(Workshop(folder, arguments.scale)))
        for name in arguments.only or MEASUREMENTS:
            print(f"measuring: {name}", file=sys.stderr, flush=True)
            results.append(MEASUREMENTS[name](shop))
            print(results[-1].text(), file=sys.stderr, flush=True)
        origins = [f"made by `rewritelog synth`: {text}" for text in shop.made.values()]
        notes = [busy, f"file system of the logs: {file_system(shop.folder)}", *origins]
    text = report(results, notes)
    print(text)
    if arguments.out:
        put_into(arguments.out, text)


if __name__ == "__main__":
    main()
