"""Emulation mode, against a stub of BigSim's headers: marks, param files, and that they pair up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from building import EMULATOR, PAPI, PAPI_STUB, Printed, build, params_of, run, sound, written
from chosen import by_tier
from logbuilder import END, START, mark, seb, write_logs, write_timings

import rewritelog
import tracebigsim
from tracebigsim import format_chosen
from tracebigsim.lines import TimeUnit

EMULATED = ["-D__CHARMC__=1", "-I", str(EMULATOR)]
"""The options of Charm++'s compiler wrapper."""
SOURCE = Path(tracebigsim.include_dir()) / "tracebigsim_emulation.cpp"
PES, SEBS, THREADS = 12, 9, 3

PROGRAM = f"""
#include "tracebigsim.h"
#include "emulator.h"
static volatile double sink;
static void work(int count) {{ for (int i = 0; i < count; i++) sink += i; }}
static void run(int pe, int seb) {{
  work(50);
  if (seb % 3 == 1) {{
    startTraceBigSim();
    work(pe + 1);
    endTraceBigSim("Cell::pairForces", pe + 1, 0.1 * seb);
  }} else if (seb % 3 == 2) {{
    startTraceBigSimFor("bonded", pe / 7.0);
    work(seb);
    endTraceBigSim("bonded", pe / 7.0);
  }}
  work(50);
}}
int main(void) {{ emulate({PES}, {SEBS}, {THREADS}, run); return 0; }}
"""


@dataclass
class Seb:
    """A SEB of the stub's timelines."""

    pe: int
    start: float
    end: float
    marks: list[tuple[float, bytes]] = field(default_factory=list)


def emulated(folder: Path, program: Path, **more: str) -> tuple[list[list[Seb]], Printed]:
    """Run an emulation in a folder; give the timeline of each PE and what was printed."""
    printed = run([program], cwd=folder, more=more)
    timelines: dict[int, list[Seb]] = {}
    for line in printed.out.splitlines():
        word, *rest = line.split(b" ", 2 if line.startswith(b"mark") else 3)
        if word == b"seb":
            last = Seb(int(rest[0]), float(rest[1]), float(rest[2]))
            timelines.setdefault(last.pe, []).append(last)
        elif word == b"mark":
            last.marks.append((float(rest[0]), rest[1] + b"\n\0"))
    return [timelines[pe] for pe in sorted(timelines)], printed


def sources(suffix: str, program: str) -> Sequence[tuple[str, str] | Path]:
    """What a program in this language is made of."""
    main = (f"main.{suffix}", program)
    return [main, EMULATOR / "emulator.cpp", *([SOURCE] if suffix == "c" else [])]


@pytest.mark.parametrize("suffix", by_tier(["c", "cpp"], ["cpp"]))
@pytest.mark.parametrize(
    "defined",
    by_tier(("-D__CHARMC__=1", "-DCMK_BIGSIM_CHARM=1", "-DCMK_BIGSIM_CHARM="), ("-D__CHARMC__=1",)),
)
def test_what_is_written_pairs_up_with_the_log(suffix: str, defined: str, tmp_path: Path) -> None:
    program = build(tmp_path, *sources(suffix, PROGRAM), options=[defined, *EMULATED[1:]])
    (tmp_path / "param.0").write_text("a line of an earlier run\n")
    timelines, printed = emulated(tmp_path, program)
    assert printed.err == ""
    assert len(list(tmp_path.glob("param.*"))) == PES
    for pe, timeline in enumerate(timelines):
        table = sound((tmp_path / f"param.{pe}").read_bytes())
        assert table.seb.tolist() == table.seqno.tolist() == [1, 2, 4, 5, 7, 8]
        expected = [
            [pe + 1, 0.1 * index] if index % 3 == 1 else [pe / 7] for index in table.seb.tolist()
        ]
        assert params_of(table) == expected
        assert set(table.time_unit) == {TimeUnit.NONE}
        for index, emulated_seb in enumerate(timeline):
            assert [text for _, text in emulated_seb.marks] == ([START, END] if index % 3 else [])

    logs = write_logs(
        tmp_path / "logs",
        [
            [
                seb(
                    emulated_seb.start,
                    emulated_seb.end,
                    events=[mark(text, at) for at, text in emulated_seb.marks],
                )
                for emulated_seb in timeline
            ]
            for timeline in timelines
        ],
    )
    kernels: list[tuple[Any, ...]] = [("bonded", 1.5, 0), ("bonded", 1.5, 1), ("bonded", 1.5, 2)]
    kernels += [("Cell::pairForces", 2.5, 1, 0), ("Cell::pairForces", 2.5, 12, 1)]
    timings = write_timings(tmp_path / "timings", *kernels)
    report = rewritelog.rewrite(
        rewritelog.open_logs(logs), tmp_path / "out",
        model="least-squares", timings=timings, params=tmp_path, dilation=1.0,
    )  # fmt: skip
    assert re.search(rf"by model +{PES * SEBS * 2 // 3}\n", report.details())
    about_samples = ["samples" in warning for warning in report.warnings]
    assert all(about_samples), "none is about brackets or records"
    old, new = (rewritelog.open_logs(folder).sebs() for folder in (logs, tmp_path / "out"))
    middles = [
        emulated_seb.marks[1][0] - emulated_seb.marks[0][0] if emulated_seb.marks else 0.0
        for timeline in timelines
        for emulated_seb in timeline
    ]
    durations = [(0.0, 2.5, 1.5)[index % SEBS % 3] for index in range(PES * SEBS)]
    expected_times = old["exec_time"] - middles + durations
    assert new["exec_time"] == pytest.approx(expected_times, abs=1e-9)


@pytest.mark.long
def test_more_pes_than_a_process_may_have_files(tmp_path: Path) -> None:
    limited = PROGRAM.replace(
        "int main(void) {",
        """#include <sys/resource.h>
int main(void) { struct rlimit few = {20, 20}; setrlimit(RLIMIT_NOFILE, &few);""",
    ).replace(f"emulate({PES}", "emulate(100")
    program = build(tmp_path, *sources("cpp", limited), options=EMULATED)
    _, printed = emulated(tmp_path, program)
    assert printed.err == ""
    sebs = [sound((tmp_path / f"param.{pe}").read_bytes()).seb.tolist() for pe in range(100)]
    assert sebs == [[1, 2, 4, 5, 7, 8]] * 100


@pytest.mark.long
def test_lines_are_there_though_the_emulator_ends_without_closing(tmp_path: Path) -> None:
    head = "static void run(int pe, int seb) {"
    ends = PROGRAM.replace(head, f"{head} if (seb == {SEBS - 1}) _exit(0);")
    ends = ends.replace(f"{THREADS}, run", "1, run")
    program = build(tmp_path, *sources("c", ends), options=EMULATED)
    run([program], cwd=tmp_path, more={"TRACEBIGSIM_BUFFER_BYTES": "5000"})
    sebs = [sound((tmp_path / f"param.{pe}").read_bytes()).seb.tolist() for pe in range(PES)]
    assert sebs == [[1, 2, 4, 5, 7]] * PES


@pytest.mark.slow
def test_only_chosen_sebs_are_bracketed(tmp_path: Path) -> None:
    """By PE and index, whatever the list says of their event and parameters."""
    program = build(tmp_path, *sources("cpp", PROGRAM), options=EMULATED)
    chosen = written(
        tmp_path, "chosen", format_chosen(3, 4, "x", []) + format_chosen(5, 2, "y", [1])
    )
    timelines, _ = emulated(tmp_path, program, TRACEBIGSIM_CHOSEN=str(chosen))
    marked = [
        (pe, index)
        for pe, timeline in enumerate(timelines)
        for index, emulated_seb in enumerate(timeline)
        if emulated_seb.marks
    ]
    assert marked == [(3, 4), (5, 2)]
    assert sorted(path.name for path in tmp_path.glob("param.*")) == ["param.3", "param.5"]


@pytest.mark.long
def test_an_emulation_in_a_cycle_accurate_simulator_has_times_too(tmp_path: Path) -> None:
    hooks = "static unsigned long now(void) { static unsigned long ticks; return ticks += 5; }\n"
    hooks += "#define TRACEBIGSIM_READ_CYCLES() now()\n"
    single = PROGRAM.replace(f"{THREADS}, run", "1, run")
    program = build(tmp_path, *sources("cpp", hooks + single), options=EMULATED)
    emulated(tmp_path, program)
    table = sound((tmp_path / "param.7").read_bytes())
    assert set(table.time.tolist()) == {5}
    assert set(table.time_unit) == {TimeUnit.CYCLES}
    assert table.seb.tolist() == [1, 2, 4, 5, 7, 8]


def test_an_emulation_with_counters_writes_them_into_its_param_lines(tmp_path: Path) -> None:
    """A model of counters had none to predict from."""
    single = PROGRAM.replace(f"{THREADS}, run", "1, run")
    written(tmp_path, "papi.h", PAPI)
    options = [*EMULATED, "-DTRACEBIGSIM_PAPI", "-I", str(tmp_path)]
    program = build(tmp_path, *sources("cpp", single), ("stub.c", PAPI_STUB), options=options)
    _, printed = emulated(tmp_path, program, TRACEBIGSIM_PAPI_EVENTS="PAPI_TOT_INS,PAPI_L2_TCM")
    assert printed.err == ""
    table = sound((tmp_path / "param.7").read_bytes())
    assert table.counters.tolist() == [100, 200] * 6
    assert set(table.time_unit) == {TimeUnit.NONE}


WRONG = """
#include "tracebigsim.h"
#include "emulator.h"
static void run(int pe, int seb) {
  if (seb == -1) { startTraceBigSim(); endTraceBigSim("no SEB"); }
  if (pe == 0) return;
  if (seb == 0) endTraceBigSim("alone");
  if (seb == 1) startTraceBigSim();
  if (seb == 2) endTraceBigSim("late");
  if (seb == 3) { startTraceBigSim(); startTraceBigSim(); endTraceBigSim("inner"); }
  if (seb == 4) { startTraceBigSim(); endTraceBigSim("a{"); }
  if (seb == 5) { startTraceBigSim(); endTraceBigSim("good", 1); }
}
int main(void) { emulate(2, 6, 1, run); return 0; }
"""


@pytest.mark.long
@pytest.mark.parametrize("suffix", ["c", "cpp"])
def test_what_does_not_pair_up_is_reported(suffix: str, tmp_path: Path) -> None:
    program = build(tmp_path, *sources(suffix, WRONG), options=EMULATED)
    _, printed = emulated(tmp_path, program)
    assert [line.split(": ", 1)[1] for line in printed.err.splitlines()] == [
        "start: no SEB is running, so the bracket is left out",
        "alone: an end without a start",
        "late: a bracket begins in one SEB and ends in another",
        "start: within an open bracket, which is dropped",
        "a{: the braces in the name do not pair up",
    ]
    assert sound((tmp_path / "param.1").read_bytes()).seb.tolist() == [3, 5]
    assert not (tmp_path / "param.0").exists()


GUARD = """
#include "tracebigsim.h"
#include "emulator.h"
static void run(int, int seb) {
  if (seb < 0) return;
  try {
    tracebigsim::Bracket bracket("guarded", seb);
    if (seb == 1) throw 1;
  } catch (int) {
  }
}
int main() { emulate(1, 3, 1, run); return 0; }
"""


@pytest.mark.long
def test_a_guard_in_an_emulation(tmp_path: Path) -> None:
    timelines, printed = emulated(
        tmp_path, build(tmp_path, *sources("cpp", GUARD), options=EMULATED)
    )
    assert sound((tmp_path / "param.0").read_bytes()).seb.tolist() == [0, 2]
    assert [len(emulated_seb.marks) for emulated_seb in timelines[0]] == [2, 1, 2]
    assert printed.err == ""


FORTRAN = """
subroutine bracketed(pe, seb) bind(c)
  use, intrinsic :: iso_c_binding, only: c_int
  use tracebigsim
  integer(c_int), value :: pe, seb
  if (seb < 0) return
  call startTraceBigSim()
  call endTraceBigSim("fortran", pe, seb)
end subroutine
"""


@pytest.mark.long
def test_a_fortran_program_in_an_emulation(tmp_path: Path) -> None:
    folder = SOURCE.parent
    main = '#include "emulator.h"\nvoid bracketed(int, int);\n'
    main += "int main(void) { emulate(2, 2, 1, bracketed); return 0; }\n"
    program = build(
        tmp_path,
        folder / "tracebigsim.f90",
        ("bracketed.f90", FORTRAN),
        ("main.c", main),
        folder / "tracebigsim_fortran.c",
        SOURCE,
        EMULATOR / "emulator.cpp",
        options=EMULATED,
    )
    emulated(tmp_path, program)
    assert params_of(sound((tmp_path / "param.1").read_bytes())) == [[1, 0], [1, 1]]
