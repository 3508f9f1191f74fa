"""The programs of sample_logs/programs: fits to their real timings, and what a bracket costs."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.logs import Workshop
from benchmarks.process import PYTHON, ROOT
from benchmarks.results import Result, Row, Table
from rewritelog.models.base import EventTimings
from rewritelog.models.metrics import relative_errors, sum_error
from rewritelog.models.registry import load_model
from rewritelog.text import percent_text
from rewritelog.timings.read import read_timings
from tracebigsim import include_dir

PROGRAMS = ROOT / "sample_logs" / "programs"
OVERHEAD = ROOT / "benchmarks" / "overhead.c"
LINES, SEED, RUNS = 1000, 1, 7
ERROR = 0.1
CLOCKS_NS, FORMAT_NS = 100, 1000


def _compile(folder: Path, *words: str | Path) -> Path:
    """Compile sources with optimisation; the first word is the compiler, the last the output."""
    compiler, *sources, name = words
    out = folder / str(name)
    command = [compiler, "-O2", "-I", include_dir(), *sources, "-o", out, "-lm"]
    subprocess.run([str(word) for word in command], check=True, cwd=folder)
    return out


def _commands(folder: Path) -> Iterator[tuple[str, list[str | Path]]]:
    """Give each program whose compiler is there, compiled, and its command line."""
    include = Path(include_dir())
    fortran = [include / "tracebigsim.f90", include / "tracebigsim_fortran.c"]
    for name, compiler, more in (
        ("stencil.cpp", "g++", []),
        ("particles.c", "gcc", []),
        ("solver.f90", "gfortran", fortran),
    ):
        if shutil.which(compiler):
            program = _compile(folder, compiler, *more, PROGRAMS / name, f"{name}.out")
            yield name, [program]
    yield "solver.py", [PYTHON, PROGRAMS / "solver.py"]


@dataclass(frozen=True)
class Error:
    """The error of a fit to half of an event's lines on the other half."""

    mean: float
    """Mean of |predicted − measured| / measured."""
    median: float
    of_sum: float | None
    """Σ predicted / Σ measured − 1."""

    def cells(self) -> list[str]:
        """Return them for a table."""
        shares = [percent_text(self.mean, 1), percent_text(self.median, 1)]
        return [*shares, percent_text(self.of_sum, 1, "+")]


@dataclass(frozen=True)
class HeldOut:
    """The errors of an event's fits."""

    program: str
    event: str
    lines: int
    """Left out of the fit."""
    least: Error
    """Of the least time of each line over the runs."""
    single: Error
    """Of the times of one run."""


def _error(samples: EventTimings) -> Error:
    """Fit to every other line and predict the others."""
    seen = EventTimings(samples.event, samples.params[::2], samples.seconds[::2])
    fitted = load_model("least-squares", {}).fit([seen])
    measured = samples.seconds[1::2]
    predicted = fitted.predict(samples.event, samples.params[1::2])
    errors = relative_errors(predicted, measured)
    of_sum = sum_error(predicted, measured)
    return Error(float(errors.mean()), float(np.median(errors)), of_sum)


def _held_out(program: str, runs: Sequence[EventTimings]) -> HeldOut:
    """Compare fits to one event's times in runs that drew the same parameters."""
    first = runs[0]
    least = np.min([samples.seconds for samples in runs], axis=0)
    of_least = _error(EventTimings(first.event, first.params, least))
    return HeldOut(program, first.event, len(least) // 2, of_least, _error(first))


def held_out_errors(folder: Path) -> list[HeldOut]:
    """Run the programs, all of them in turns, and fit to what they print."""
    commands = dict(_commands(folder))
    runs: dict[str, list[Sequence[EventTimings]]] = {name: [] for name in commands}
    for _ in range(RUNS):
        for name, command in commands.items():
            path = folder / f"{name}.lines"
            with path.open("wb") as out:
                words = [str(word) for word in (*command, LINES, SEED)]
                subprocess.run(words, check=True, stdout=out)
            runs[name].append(read_timings([path]).timings)
    return [_held_out(name, event) for name in commands for event in zip(*runs[name], strict=True)]


def overheads(folder: Path) -> Mapping[str, Mapping[str, float]]:
    """Measure what a bracket of a C program costs, in nanoseconds, by the way its line goes."""
    if not shutil.which("gcc"):
        return {}
    seconds = _compile(folder, "gcc", OVERHEAD, "overhead")
    cycles = _compile(folder, "gcc", "-DTRACEBIGSIM_CYCLES", OVERHEAD, "overhead-cycles")
    to_file = {"TRACEBIGSIM_OUTPUT": str(folder / "overhead.lines")}
    buffered = {**to_file, "TRACEBIGSIM_BUFFER_BYTES": "65536"}
    return {
        "one write per line": _overhead(seconds, to_file),
        "buffered": _overhead(seconds, buffered),
        "cycles, buffered": _overhead(cycles, buffered),
    }


def _overhead(program: Path, env: Mapping[str, str]) -> Mapping[str, float]:
    ran = subprocess.run([program], check=True, env=env, stderr=subprocess.PIPE)
    measured: dict[str, float] = json.loads(ran.stderr)
    return measured


def _overhead_rows(measured: Mapping[str, Mapping[str, float]]) -> list[Row]:
    clocks = max((each["clocks"] for each in measured.values()), default=0)
    formats = max((each["format"] for each in measured.values()), default=0)
    if not measured:
        return [Row("a bracket in C", "no compiler", "", None)]
    return [
        Row(
            "the two clock reads of a bracket",
            f"{clocks:.0f} ns",
            f"≤ {CLOCKS_NS} ns",
            clocks <= CLOCKS_NS,
        ),
        Row(
            "formatting a line of 2 parameters",
            f"{formats:.0f} ns",
            f"≤ {FORMAT_NS} ns",
            formats <= FORMAT_NS,
        ),
    ]


def _tables(errors: Sequence[HeldOut], costs: Mapping[str, Mapping[str, float]]) -> list[Table]:
    cells = [
        [each.program, each.event, f"{each.lines:,}", *each.least.cells(), *each.single.cells()]
        for each in errors
    ]
    columns = ("mean error", "median", "of the sum")
    head = [
        "program",
        "event",
        "held-out lines",
        *columns,
        *(f"{name}, one run" for name in columns),
    ]
    parts = [
        [way, *(f"{each[part]:.0f}" for part in ("clocks", "format", "bracket"))]
        for way, each in costs.items()
    ]
    return [
        Table(
            f"Least-squares fits to half of the lines, on the other half; a line's time is the "
            f"least of {RUNS} runs, or that of one run:",
            head,
            cells,
        ),
        Table(
            "A bracket of a C program, in ns:",
            ["lines", "two clock reads", "formatting", "all of it"],
            parts,
        ),
    ]


def measure(shop: Workshop) -> Result:
    """Measure the fits to the sample programs' timings, and the cost of a bracket."""
    errors = held_out_errors(shop.folder)
    costs = overheads(shop.folder)
    worst = max(errors, key=lambda each: each.least.mean)
    measured = f"{100 * worst.least.mean:.1f} % ({worst.event} of {worst.program})"
    rows = [
        Row(
            "mean error of fits to sample programs, the worst",
            measured,
            f"≤ {100 * ERROR:.0f} %",
            worst.least.mean <= ERROR,
        ),
        *_overhead_rows(costs),
    ]
    return Result(rows, _tables(errors, costs))
