"""What Fortran programs print through the module."""

from __future__ import annotations

from pathlib import Path

import pytest
from building import build, compiled, events_of, params_of, run, tool

import tracebigsim
from tracebigsim import format_chosen
from tracebigsim.lines import TimeUnit

INCLUDE = Path(tracebigsim.include_dir())
SOURCES = [INCLUDE / "tracebigsim.f90", INCLUDE / "tracebigsim_fortran.c"]

PROGRAM = """
program main
  use, intrinsic :: iso_fortran_env
  use tracebigsim
  implicit none
  integer :: n = 3
  real :: x = 2.5
  character(len=20) :: name = "padded name"
  print *, "some text of its own"
  call startTraceBigSim()
  call endTraceBigSim(name, n, x, 0.1d0, 7_int64, 8_int16, 9_int8, -1.0e-300_real64)
  call startTraceBigSimFor("none")
  call endTraceBigSim("none")
  call startTraceBigSim()
  call endTraceBigSim("twenty", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, &
      11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
  call startTraceBigSim()
  call endTraceBigSim("a text", 1, "text")
  call endTraceBigSim("unmatched")
  call flushTraceBigSim()
end program
"""


@pytest.mark.parametrize("options", [["-O0"], ["-O3"], ["-O2", "-DTRACEBIGSIM_CYCLES"]])
def test_every_call_prints_its_line(options: list[str], tmp_path: Path) -> None:
    printed = run([build(tmp_path, *SOURCES, ("main.f90", PROGRAM), options=options)])
    table = printed.table()
    assert events_of(table) == ["padded name", "none", "twenty"]
    assert params_of(table) == [[3, 2.5, 0.1, 7, 8, 9, -1e-300], [], list(range(1, 21))]
    cycles = "-DTRACEBIGSIM_CYCLES" in options
    assert set(table.time_unit) == {TimeUnit.CYCLES if cycles else TimeUnit.SECONDS}
    assert printed.err.splitlines() == [
        "tracebigsim: a text: a parameter is not finite",
        "tracebigsim: unmatched: an end without a start",
    ]


def test_options_that_change_the_size_of_doubles_do_not_compile(tmp_path: Path) -> None:
    """C read 32768.007766723633 for 2.5, and any number where there was none."""
    for option in ("-freal-8-real-4", "-freal-8-real-16"):
        assert "Division by zero" in compiled(SOURCES[0], tmp_path, option).stderr
    assert compiled(SOURCES[0], tmp_path, "-fdefault-real-8").returncode == 0


def test_threads_share_no_variables_whatever_the_options(tmp_path: Path) -> None:
    """With variables that keep their values, lines had numbers of the brackets of other threads."""
    assert compiled(SOURCES[0], tmp_path, "-fno-automatic").returncode == 0
    symbols = run([tool("nm"), tmp_path / "tracebigsim_f90.o"]).out.decode()
    assert "endtracebigsim" in symbols
    assert [line for line in symbols.splitlines() if line.split()[-2] in "bd"] == []


def test_a_twenty_first_number_does_not_compile(tmp_path: Path) -> None:
    program = PROGRAM.replace("19, 20)", "19, 20, 21)")
    with pytest.raises(AssertionError, match="arg"):
        build(tmp_path, *SOURCES, ("main.f90", program))


def test_off_and_chosen(tmp_path: Path) -> None:
    chosen = tmp_path / "chosen"
    chosen.write_text(format_chosen(0, 1, "none", []))
    program = build(tmp_path, *SOURCES, ("main.f90", PROGRAM))
    printed = run([program], more={"TRACEBIGSIM_CHOSEN": str(chosen)})
    assert events_of(printed.table()) == ["none"]
    program = build(tmp_path, *SOURCES, ("main.f90", PROGRAM), options=["-DTRACEBIGSIM_OFF"])
    printed = run([program])
    assert (len(printed.table()), printed.err) == (0, "")
