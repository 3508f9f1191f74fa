"""`python -m benchmarks.scaling`: how time and memory grow with a log set, on threads and ranks.

The table of docs/measurements/scaling.md.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path

from benchmarks.logs import Workshop, fitted, timeline_bytes
from benchmarks.process import PYTHON, Job, Ran, in_turns, median_s, peak, walls
from benchmarks.results import Table, file_system, machine, put_into

SIZES_GB = (0.1, 1.0, 2.0, 5.0)
ROUNDS, RANKS = 3, 3
HEAD = (
    "log set",
    "PEs",
    "million SEBs",
    "million param records",
    "`cp` and `sync`",
    "constant, 1 thread",
    "constant, 2 threads",
    "least squares, 2 threads",
    f"least squares, {RANKS} ranks",
    "peak memory",
)


def main() -> None:
    """Measure, print, and put the table into a document."""
    given = _arguments()
    with (
        tempfile.TemporaryDirectory(prefix="rewritelog-scaling-", dir=given.work) as folder,
        closing(Workshop(Path(folder), max(SIZES_GB))) as shop,
    ):
        rows = []
        for size_gb in SIZES_GB:
            print(f"measuring: {size_gb:g} GB", file=sys.stderr, flush=True)
            rows.append(_row(shop, size_gb))
            print(rows[-1], file=sys.stderr, flush=True)
            shutil.rmtree(shop.logs(size_gb))
            shop.close()
        notes = f"- file system of the logs: {file_system(shop.folder)}"
    title = f"Whole processes, medians of {ROUNDS} rounds in turns, with the most seconds behind:"
    text = f"{machine()}\n{notes}\n\n{Table(title, HEAD, rows).text()}"
    print(text)
    if given.out:
        put_into(given.out, text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--out", type=Path, help="the document whose measured part is replaced")
    parser.add_argument(
        "--work",
        type=Path,
        help="the folder to work in; it needs 16 GB of disk [default: that of temporary files]",
    )
    return parser.parse_args()


def _row(shop: Workshop, size_gb: float) -> list[str]:
    logs = shop.logs(size_gb)
    least_squares = fitted(logs)
    jobs: dict[str, Job] = {
        "copy": shop.copying(logs, flush=True),
        "one thread": shop.rewriting(logs, "--jobs", "1"),
        "threads": shop.rewriting(logs, "--jobs", "2"),
        "least squares": shop.rewriting(logs, "--jobs", "2", *least_squares),
        "ranks": partial(shop.rewrite_under, _mpiexec(), logs, "--engine", "mpi", *least_squares),
    }
    ran = in_turns(jobs, ROUNDS)
    pes, sebs, records = _sizes(shop, logs)
    threads = [run for name in ("threads", "least squares") for run in ran[name]]
    return [
        f"{timeline_bytes(logs) / 1e9:.1f} GB",
        f"{pes:,}",
        f"{sebs / 1e6:.1f}",
        f"{records / 1e6:.2f}",
        *map(_seconds, ran.values()),
        f"{peak(threads) / 1e6:.0f} MB",
    ]


def _mpiexec() -> list[str]:
    found = shutil.which("mpiexec", path=str(Path(PYTHON).parent)) or shutil.which("mpiexec")
    if found is None:
        raise SystemExit("mpiexec is not installed: pip install mpich mpi4py")
    return [found, "-n", str(RANKS)]


def _sizes(shop: Workshop, logs: Path) -> tuple[int, ...]:
    """Return the PEs, SEBs and param records that synth said it made."""
    words = shop.made[logs.name].replace(",", "").split()
    number = {words[k + 1]: int(words[k]) for k in range(len(words) - 1) if words[k].isdigit()}
    return number["PEs"], number["SEBs"], number["param"]


def _seconds(runs: list[Ran]) -> str:
    return f"{median_s(runs):.1f} s ({max(walls(runs)):.1f})"


if __name__ == "__main__":
    main()
