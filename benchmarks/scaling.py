"""`python -m benchmarks.scaling`: how time and memory grow with a log set, on threads and ranks.

The table of docs/measurements/scaling.md.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

from benchmarks.logs import Workshop, fitted, timeline_bytes
from benchmarks.process import (
    PYTHON,
    Job,
    Ran,
    in_turns,
    median_s,
    peak,
    rewritelog,
    run,
    walls,
    working_folder,
)
from benchmarks.results import Table, add_out, file_system, machine, put_into

SIZES_GB = (0.1, 1.0)
ENGINES_GB = 1.0
"""The size on which engines are compared."""
ROUNDS, RANKS = 3, (1, 2, 4)
HEAD = (
    "log set",
    "PEs",
    "million SEBs",
    "million param records",
    "`cp` and `sync`",
    "constant, 1 thread",
    "constant, 2 threads",
    "least squares, 2 threads",
    "peak memory",
)
COMMANDS = {
    "`rewrite`, constant": ("rewrite", "{}", "{}.out", "--dilation", "0.5", "--no-flush"),
    "`rewrite`, least squares": (
        *("rewrite", "{}", "{}.out", "--model", "least-squares", "--timings", "{}/timings.txt"),
        "--no-flush",
    ),
    "`convert`": ("convert", "{}", "{}.out", "--byte-order", "big"),
    "`check`": ("check", "{}"),
    "`info`": ("info", "{}"),
    "`diff`": ("diff", "{}", "{}"),
}
"""Commands and their words, in which `{}` is the folder of the logs."""
ENGINES = {
    "2 threads": (),
    **{f"{ranks} rank{'s' * (ranks > 1)}": ("--engine", "mpi") for ranks in RANKS},
}


def main() -> None:
    """Measure, print, and put the table into a document."""
    arguments = _arguments()
    with (
        working_folder(arguments.work) as folder,
        closing(Workshop(folder, max(SIZES_GB))) as shop,
    ):
        rows = []
        for size_gb in SIZES_GB:
            print(f"measuring: {size_gb:g} GB", file=sys.stderr, flush=True)
            rows.append(_row(shop, size_gb))
            print(rows[-1], file=sys.stderr, flush=True)
            if size_gb == ENGINES_GB:
                commands = _commands(shop.logs(size_gb))
            shutil.rmtree(shop.logs(size_gb))
            shop.close()
        notes = f"- file system of the logs: {file_system(shop.folder)}"
    title = f"Whole processes, medians of {ROUNDS} rounds in turns, with the most seconds behind:"
    second = f"Wall seconds of whole processes on {ENGINES_GB:g} GB, medians of {ROUNDS} rounds:"
    text = (
        f"{machine()}\n{notes}\n\n{Table(title, HEAD, rows).text()}\n\n"
        f"{Table(second, ('command', *ENGINES), commands).text()}"
    )
    print(text)
    if arguments.out:
        put_into(arguments.out, text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.scaling", description=__doc__)
    add_out(parser)
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


def _commands(logs: Path) -> list[list[str]]:
    """Return a row for each command, with its median time on each engine."""
    out = logs.with_name(f"{logs.name}.out")
    rows = []
    for name, words in COMMANDS.items():
        own = [word.format(logs) for word in words]
        jobs: dict[str, Job] = {}
        for engine, more in ENGINES.items():
            first = _mpiexec(int(engine.split()[0])) if more else []
            command = [*first, *rewritelog(*own, "--quiet", *more)]
            jobs[engine] = partial(_without, out, command)
        times = (f"{median_s(runs):.1f}" for runs in in_turns(jobs, ROUNDS).values())
        rows.append([name, *times])
        shutil.rmtree(out, ignore_errors=True)
    return rows


def _without(out: Path, command: list[str | Path]) -> Ran:
    shutil.rmtree(out, ignore_errors=True)
    return run(command)


def _mpiexec(ranks: int) -> list[str]:
    path = shutil.which("mpiexec", path=str(Path(PYTHON).parent)) or shutil.which("mpiexec")
    if path is None:
        raise SystemExit("mpiexec is not installed: pip install mpich mpi4py")
    return [path, "-n", str(ranks)]


def _sizes(shop: Workshop, logs: Path) -> tuple[int, ...]:
    """Return the PEs, SEBs and param records that synth said it made."""
    words = shop.made[logs.name].replace(",", "").split()
    number = {words[k + 1]: int(words[k]) for k in range(len(words) - 1) if words[k].isdigit()}
    return number["PEs"], number["SEBs"], number["param"]


def _seconds(runs: list[Ran]) -> str:
    return f"{median_s(runs):.1f} s ({max(walls(runs)):.1f})"


if __name__ == "__main__":
    main()
