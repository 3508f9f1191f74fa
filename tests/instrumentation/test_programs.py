"""The sample programs, compiled and run: lines, pairs of calls, parameters."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from building import PROGRAMS, Printed, build, events_of, params_of, run
from chosen import by_tier

import tracebigsim
from tracebigsim.lines import TimeUnit

INCLUDE = Path(tracebigsim.include_dir())
FORTRAN = [INCLUDE / "tracebigsim.f90", INCLUDE / "tracebigsim_fortran.c"]
SOURCES = {
    "stencil.cpp": [],
    "particles.c": [],
    "cells.c": [],
    "solver.f90": FORTRAN,
    "solver.py": [],
}
KERNELS = {
    "stencil.cpp": {"Grid::relax": 1, "Grid::exchangeEdges": 2},
    "particles.c": {"pair_forces": 2, "move": 1},
    "cells.c": {"Cell::pairForces": 2, "Cell::bonded": 1},
    "solver.f90": {"multiply": 2, "step": 1},
    "solver.py": {"multiply": 2, "residual": 1},
}
COUNT = 20


def started(name: str, folder: Path, *options: str, more: dict[str, str] | None = None) -> Printed:
    """Compile a program and run it."""
    if name.endswith(".py"):
        return run([sys.executable, PROGRAMS / name, str(COUNT), "1"], more=more)
    program = build(folder, *SOURCES[name], PROGRAMS / name, options=["-O2", *options])
    return run([program, str(COUNT), "1"], more=more)


def check_params(name: str, event: str, params: list[float]) -> None:
    """Check what a program's parameters must satisfy, whatever was drawn."""
    assert all(param == int(param) and param > 0 for param in params)
    if event == "pair_forces":
        count, close = params
        assert 100 <= count <= 600
        assert close < count * (count - 1) / 2
    if event == "multiply":
        rows, entries = params
        fewest, most = (200, 12) if name == "solver.py" else (500, 40)
        assert fewest <= rows <= 3000
        assert rows <= entries <= most * rows


@pytest.mark.parametrize("name", SOURCES)
def test_a_program_prints_a_line_for_each_bracket(name: str, tmp_path: Path) -> None:
    printed = started(name, tmp_path)
    assert printed.err == "", "calls that do not pair up are reported there"
    table = printed.table()
    assert Counter(events_of(table)) == dict.fromkeys(KERNELS[name], COUNT)
    assert events_of(table)[:4] == [*KERNELS[name], *KERNELS[name]], "in the order of the calls"
    for event, params in zip(events_of(table), params_of(table), strict=True):
        assert len(params) == KERNELS[name][event]
        check_params(name, event, params)
    assert set(table.time_unit) == {TimeUnit.SECONDS}
    assert 0 < table.time.min() <= table.time.max() < 60
    assert f"{COUNT} " in printed.out.decode(), "the program's own text is there too"


@pytest.mark.parametrize("name", by_tier(SOURCES, ["particles.c", "solver.py"], SOURCES))
def test_a_program_fails_where_standard_output_is_full(name: str, tmp_path: Path) -> None:
    command: list[str | Path] = [sys.executable, PROGRAMS / name]
    if not name.endswith(".py"):
        command = [build(tmp_path, *SOURCES[name], PROGRAMS / name)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*command, "2", "1"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("name", by_tier(SOURCES, ["solver.py"], ["particles.c", "stencil.cpp"]))
def test_the_same_seed_gives_the_same_parameters(name: str, tmp_path: Path) -> None:
    first, second = (started(name, tmp_path).table() for _ in range(2))
    assert params_of(first) == params_of(second)


@pytest.mark.parametrize(
    "name",
    by_tier(
        ["stencil.cpp", "particles.c", "solver.f90"], ["particles.c"], ["stencil.cpp", "solver.f90"]
    ),
)
def test_a_program_in_other_modes(name: str, tmp_path: Path) -> None:
    cycles = started(name, tmp_path, "-DTRACEBIGSIM_CYCLES").table()
    assert set(cycles.time_unit) == {TimeUnit.CYCLES}
    assert len(cycles) == 2 * COUNT
    off = started(name, tmp_path, "-DTRACEBIGSIM_OFF")
    assert (len(off.table()), off.err) == (0, "")


def test_the_manifest_names_every_program() -> None:
    manifest = (PROGRAMS / "MANIFEST.md").read_text()
    files = {path.name for path in PROGRAMS.iterdir() if path.is_file()}
    assert files == {*SOURCES, "MANIFEST.md"}
    assert all(f"`{name}`" in manifest for name in SOURCES)
    assert all(f"`{event}`" in manifest for kernels in KERNELS.values() for event in kernels)
