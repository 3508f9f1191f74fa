"""The command `tracebigsim`, and what finds the header for CMake and pkg-config."""

from __future__ import annotations

import gzip
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import tracemalloc
from functools import partial
from importlib.metadata import version
from pathlib import Path
from unittest import mock

import commands
import pytest
from building import PROGRAMS, run, sound, tool, tracebigsim_command
from faulty import HANGS_S

import tracebigsim
from rewritelog.commands.fits import MergeCommand, StatsCommand
from rewritelog.errors import OutputError
from rewritelog.timings import merge, read, stats
from tracebigsim import format_line
from tracebigsim.files import scan_chunks, scan_file
from tracebigsim.lines import TimeUnit


def test_where_the_header_is(tmp_path: Path) -> None:
    for option, folder, file in [
        ("--include-dir", tracebigsim.include_dir(), "tracebigsim.h"),
        ("--cmake-dir", tracebigsim.cmake_dir(), "tracebigsim-config.cmake"),
        ("--pkg-config-dir", tracebigsim.pkg_config_dir(), "tracebigsim.pc"),
    ]:
        printed = commands.tracebigsim(option, cwd=tmp_path)
        assert printed.stdout == folder + "\n"
        assert (Path(folder) / file).is_file()


def test_the_version_needs_no_metadata() -> None:
    """A checkout on PYTHONPATH has none, and the command ended in a traceback."""
    printed = run([sys.executable, "-S", "-m", "tracebigsim", "--version"])
    assert printed.out.decode() == f"tracebigsim {version('rewritelog')}\n"


def test_pkg_config_finds_the_header() -> None:
    more = {"PKG_CONFIG_PATH": tracebigsim.pkg_config_dir()}

    def asked(*words: str) -> str:
        return run([tool("pkg-config"), *words, "tracebigsim"], more=more).out.decode().strip()

    (flag,) = asked("--cflags").split()
    assert Path(flag.removeprefix("-I")).samefile(tracebigsim.include_dir())
    sources = asked("--variable=fortran_sources").split()
    assert len(sources) == 2
    assert all(Path(source).is_file() for source in sources)
    assert Path(asked("--variable=emulation_source")).is_file()
    assert asked("--modversion") == version("rewritelog")


def test_the_guide_names_what_is_there() -> None:
    guide = (PROGRAMS.parents[1] / "docs" / "instrumenting.md").read_text()
    header = (Path(tracebigsim.include_dir()) / "tracebigsim.h").read_text()
    names = set(re.findall(r"(?:TRACEBIGSIM|CMK)_[A-Z_]+|[a-z]+TraceBigSim(?:For)?", guide))
    assert {"TRACEBIGSIM_CHOSEN", "CMK_BIGSIM_CHARM", "flushTraceBigSim"} <= names
    assert [name for name in sorted(names) if name not in header] == []
    for option in re.findall(r"tracebigsim (--[a-z-]+)", guide):
        assert commands.tracebigsim(option).returncode == 0
    for file in re.findall(r"`(tracebigsim[_a-z]*\.[a-z0-9]+)`", guide):
        assert (Path(tracebigsim.include_dir()) / file).is_file()
    for name in re.findall(r"tracebigsim\.([a-z_]+)\(", guide):
        assert name in tracebigsim.__all__


CMAKE = """cmake_minimum_required(VERSION 3.13)
project(programs C CXX Fortran)
find_package(tracebigsim CONFIG REQUIRED)
add_executable(stencil {0}/stencil.cpp)
target_link_libraries(stencil tracebigsim::tracebigsim)
add_executable(solver {0}/solver.f90)
target_link_libraries(solver tracebigsim::fortran)
add_library(other_part OBJECT other_part.f90)
target_link_libraries(other_part PUBLIC tracebigsim::fortran)
add_executable(other other.f90)
target_link_libraries(other other_part)
"""


@pytest.mark.slow
def test_cmake_finds_the_header_and_the_fortran_module_for_several_programs(tmp_path: Path) -> None:
    for needed in ("gcc", "g++", "gfortran", "ninja"):
        tool(needed)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE.format(PROGRAMS))
    calls = 'use tracebigsim\ncall startTraceBigSim()\ncall endTraceBigSim("other", 1)\n'
    (tmp_path / "other.f90").write_text(f"{calls}call part()\nend\n")
    (tmp_path / "other_part.f90").write_text(f"subroutine part()\n{calls}end\n")
    where = f"-Dtracebigsim_DIR={tracebigsim.cmake_dir()}"
    run([tool("cmake"), "-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "built", where])
    run([tool("cmake"), "--build", tmp_path / "built"])
    for program, lines in (("stencil", 6), ("solver", 6), ("other", 2)):
        assert len(run([tmp_path / "built" / program, "3", "1"]).table()) == lines


@pytest.mark.slow
def test_cmake_says_which_language_a_fortran_project_lacks(tmp_path: Path) -> None:
    """The Fortran module's C source was left out, and the linker missed its functions."""
    tool("gfortran")
    project = CMAKE.format(PROGRAMS).replace("C CXX Fortran", "Fortran").splitlines()
    kept = [line for line in project if "stencil" not in line and "other" not in line]
    (tmp_path / "CMakeLists.txt").write_text("\n".join(kept))
    where = f"-Dtracebigsim_DIR={tracebigsim.cmake_dir()}"
    command: list[str | Path] = [tool("cmake"), "-S", tmp_path, "-B", tmp_path / "built", where]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert asked.returncode != 0
    assert "tracebigsim::fortran is left out: it needs the project's languages C" in asked.stdout
    assert "tracebigsim::fortran\n\n  but the target was not found" in asked.stderr


@pytest.mark.slow
def test_cmake_gives_the_fortran_target_to_a_subproject_that_adds_the_language(
    tmp_path: Path,
) -> None:
    """The call in the project around it was one for C alone, and the second one did nothing."""
    (tmp_path / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.13)
project(all C)
find_package(tracebigsim CONFIG REQUIRED)
add_subdirectory(solver)
""")
    (tmp_path / "solver").mkdir()
    (tmp_path / "solver" / "CMakeLists.txt").write_text(f"""project(solver C Fortran)
find_package(tracebigsim CONFIG REQUIRED COMPONENTS fortran)
add_executable(solver {PROGRAMS}/solver.f90)
target_link_libraries(solver tracebigsim::fortran)
""")
    tool("gfortran")
    where = f"-Dtracebigsim_DIR={tracebigsim.cmake_dir()}"
    run([tool("cmake"), "-S", tmp_path, "-B", tmp_path / "built", where])
    run([tool("cmake"), "--build", tmp_path / "built"])
    assert len(run([tmp_path / "built" / "solver" / "solver", "3", "1"]).table()) == 6


def test_cmake_takes_any_version_from_the_one_that_is_asked_for(tmp_path: Path) -> None:
    """Without a version file, it refused all of them; ranges had no end."""
    installed = version("rewritelog")
    expected = {"": True, "0.0.1": True, installed: True, f"{installed} EXACT": True}
    expected |= {f"{installed}.1": False, "0.0.1 EXACT": False}
    ranges = {f"0.0.1...{installed}": True, f"0.0.1...<{installed}.1": True, "0...0.0.9": False}
    expected |= ranges | {f"0.0.1...<{installed}": False}
    lines = ["cmake_minimum_required(VERSION 3.13)", "project(versions NONE)"]
    for asked in expected:
        lines += [
            "unset(tracebigsim_VERSION)",
            f"find_package(tracebigsim {asked} CONFIG QUIET)",
            'message(STATUS "found: ${tracebigsim_FOUND}, ${tracebigsim_VERSION}")',
            f"set(tracebigsim_DIR {tracebigsim.cmake_dir()})",  # it is reset by a refusal
        ]
    (tmp_path / "CMakeLists.txt").write_text("\n".join(lines))
    where = f"-Dtracebigsim_DIR={tracebigsim.cmake_dir()}"
    printed = run([tool("cmake"), "-S", tmp_path, "-B", tmp_path / "built", where]).out.decode()
    answers = [f"1, {installed}" if taken else "0, " for taken in expected.values()]
    assert re.findall("found: (.*)", printed) == answers


def test_cmake_takes_targets_as_components_and_no_others(tmp_path: Path) -> None:
    """It found whatever component was asked for."""
    missing = "There is no target tracebigsim::{} for the languages of this project"
    for asked, problem in [
        ("COMPONENTS tracebigsim emulation", ""),
        ("OPTIONAL_COMPONENTS nonsense", ""),
        ("COMPONENTS emulation nonsense", missing.format("nonsense")),
        ("COMPONENTS fortran", missing.format("fortran")),
    ]:
        (tmp_path / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.13)
project(components NONE)
find_package(tracebigsim CONFIG REQUIRED {asked})
""")
        where = f"-Dtracebigsim_DIR={tracebigsim.cmake_dir()}"
        command: list[str | Path] = [tool("cmake"), "-S", tmp_path, "-B", tmp_path / "built", where]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode == 0, problem in done.stderr) == (problem == "", True)


@pytest.fixture
def outputs(tmp_path: Path) -> list[Path]:
    """Outputs of three processes among their text, one of them gzip, with torn and param lines."""
    draw = random.Random(3)  # noqa: S311
    paths = []
    for process in range(3):
        lines = [b"Charm++> started\n"]
        for _ in range(200):
            params = (draw.randrange(5), draw.choice([-2.5, 0.1, 7]))
            times = {"time_s": 2.0 + draw.random()} if process else {"time_cycles": 5}
            lines.append(format_line(draw.choice("ab"), params, **times).encode())
            lines.append(b"iteration done\n")
        lines.append(f"rank {process}: {format_line('c', time_s=1)}".encode())
        paths.append(tmp_path / f"out.{process}")
        paths[-1].write_bytes(b"".join(lines))
    with paths[1].open("ab") as stream:
        stream.write(b"TRACEBIGSIM: event:{ a }  time:{ 0.1\n")
        stream.write(format_line("a", (1, 2), seb=3, seqno=3).encode())
    paths[2].write_bytes(gzip.compress(paths[2].read_bytes().removesuffix(b"\n")))
    return paths


def test_stats_of_a_file_worked_out_by_hand(tmp_path: Path) -> None:
    times = [(3, 2), (3, 3), (3, 30), (5, 7), (-4, 5)]
    lines = [format_line("k", (1, p), time_s=t) for p, t in times]
    lines += [format_line("k", (2,), time_cycles=10), format_line("m", seb=0)]
    path = tmp_path / "out"
    path.write_text("".join(lines) + "TRACEBIGSIM: event:{ k\n")
    printed = commands.tracebigsim("stats", path)
    assert printed.stdout == (
        "k(p1): 1 line, 10 cycles in all, 10 cycles on average\n"
        "  range: p1 2 to 2\n"
        "k(p1, p2): 5 lines, 47.00 s in all, 9.400 s on average\n"
        "  range: p1 1 to 1, p2 -4 to 5\n"
        "  variation among identical parameters: 28.28 % (2 lines at 1 point without 1 outlier)\n"
        "m(): 1 line, without times\n"
    )
    assert printed.stderr == (
        f"warning: 1 malformed line left out: {path}:8: a closing brace is missing: a torn line: "
        "'TRACEBIGSIM: event:{ k'\n"
    )
    assert commands.tracebigsim("stats", path, "--fail-on-warning").returncode == 1
    names = tmp_path / "names.toml"
    names.write_text('k = ["flag", "size"]\nn = ["x"]\n')
    named = commands.tracebigsim("stats", path, "--param-names", names)
    assert "k(flag, size): 5 lines" in named.stdout
    assert "range: flag 1 to 1, size -4 to 5" in named.stdout
    assert "k(p1): 1 line" in named.stdout
    assert "parameter names for 'n' are not used" in named.stderr
    first, second, third = json.loads(commands.tracebigsim("stats", path, "--json").stdout)[
        "events"
    ]
    assert (first["unit"], second["mean"], third["total"]) == ("cycles", 9.4, None)


def test_stats_do_not_depend_on_how_lines_are_cut_into_files_and_chunks(
    outputs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    uncut = StatsCommand(outputs).run()
    assert sum(kind.lines for kind in uncut.events) == 3 * 201 + 1
    assert {kind.unit for kind in uncut.events} == set(TimeUnit)
    monkeypatch.setattr(read, "scan_chunks", partial(scan_chunks, chunk_bytes=1000))
    cut = StatsCommand(outputs).run()
    assert cut.malformed.count == uncut.malformed.count
    for kind, cut_kind in zip(uncut.events, cut.events, strict=True):
        assert kind.to_json().keys() == cut_kind.to_json().keys()
        for name, value in kind.to_json().items():
            is_number = isinstance(value, float)
            assert cut_kind.to_json()[name] == (pytest.approx(value) if is_number else value)


def test_stats_keep_a_bounded_number_of_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stats, "LINES_KEPT", 10)
    monkeypatch.setattr(read, "scan_chunks", partial(scan_chunks, chunk_bytes=1000))
    path = tmp_path / "out"
    path.write_text("".join(format_line("k", (i % 4,), time_s=1) for i in range(1000)))
    report = StatsCommand(path).run()
    (kind,) = report.events
    assert (kind.lines, kind.total) == (1000, 1000)
    assert kind.spread is not None
    assert (kind.spread.relative, kind.spread.points) == (0.0, 4)
    assert 10 <= kind.spread.lines < 100
    assert f"the variation is that of the first {kind.spread.lines} lines" in report.text()
    path.write_text("".join(format_line("k", (1,), time_s=1) for _ in range(10)))
    assert "the first" not in StatsCommand(path).run().text()  # all of them were kept


def test_stats_hold_little_for_each_of_many_events(tmp_path: Path) -> None:
    """Those of 300,000 events took 560 MB: arrays for each, most of them of one line."""
    path, events = tmp_path / "out", 4000
    path.write_text("".join(format_line(f"k{n}", (n, 1), time_s=1) for n in range(events)))
    tracemalloc.start()
    report = StatsCommand(path).run()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(report.events) == events
    assert held < 800 * events


def sorted_records(path: Path) -> list[tuple[str, list[float], int, float]]:
    """The timing records of a clean file, which are to be in order."""
    table = sound(path.read_bytes())
    bounds = table.param_start
    return [
        (
            table.events[table.event[i]],
            table.params[bounds[i] : bounds[i + 1]].tolist(),
            int(table.time_unit[i]),
            float(table.time[i]),
        )
        for i in range(len(table))
    ]


def test_merge_makes_one_clean_sorted_file(outputs: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "merged"
    printed = run(tracebigsim_command("merge", *outputs, "-o", out))
    lines = out.read_bytes().splitlines()
    assert all(line.startswith(b"TRACEBIGSIM: event:{ ") for line in lines)
    records = sorted_records(out)
    assert records == sorted(records)
    assert len(records) == 603
    assert printed.out == b"timing lines: 603\nleft out, without a time: 1\n"
    assert printed.err.startswith("warning: 1 malformed line left out: ")
    assert run(tracebigsim_command("merge", *reversed(outputs))).out == out.read_bytes()
    with pytest.raises(OutputError, match=r"exists \(force=True"):
        MergeCommand(outputs, output=out).run()
    with pytest.raises(OutputError, match="is a folder"):
        MergeCommand(outputs, output=tmp_path).run()
    MergeCommand(out, output=out, force=True).run()
    assert out.read_bytes().splitlines() == lines
    assert sorted(path.name for path in tmp_path.iterdir()) == ["merged", "out.0", "out.1", "out.2"]


def test_a_merge_keeps_the_seb_before_a_line(tmp_path: Path) -> None:
    """It was lost, or that of `seqno` took its place."""
    source, out = tmp_path / "printed", tmp_path / "merged"
    lines = [f"{seb} TRACEBIGSIM: event:{{ k }} time:{{ {seb} }} params:{{ 1 }}" for seb in (0, 19)]
    source.write_text("\n".join([f"{lines[1]} seqno:{{ 20 }}", lines[0]]))
    MergeCommand(source, output=out).run()
    (table,) = scan_file(out)
    assert (table.seb.tolist(), table.seqno.tolist()) == ([0, 19], [-1, 20])


def test_merge_of_more_than_fits_memory(
    outputs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of a few lines give the same file."""
    MergeCommand(outputs, output=tmp_path / "whole").run()
    monkeypatch.setattr(merge, "RUN_BYTES", 1000)
    monkeypatch.setattr(merge, "MERGED_RUNS", 3)
    monkeypatch.setattr(read, "scan_chunks", partial(scan_chunks, chunk_bytes=3000))
    made = mock.Mock(wraps=tempfile.TemporaryFile)
    monkeypatch.setattr(tempfile, "TemporaryFile", made)
    MergeCommand(outputs, output=tmp_path / "by runs").run()
    assert made.call_count > 10
    assert (tmp_path / "by runs").read_bytes() == (tmp_path / "whole").read_bytes()


def test_what_cannot_be_read_or_written(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    cases: list[tuple[list[str | Path], int, str]] = [
        ([], 2, "usage: tracebigsim OPTION"),
        (["stat", "x"], 2, "error: no such command 'stat'; did you mean 'stats'?\n"),
        (["x"], 2, "error: no such command 'x'\n"),
        (["stats"], 2, "FILE"),
        (["--include-dir", "stats", "x"], 2, "no such option: --include-dir"),
        (["stats", tmp_path / "none"], 1, "none: does not exist"),
        (["merge", tmp_path], 1, "is a folder"),
        (["merge", tmp_path / "empty", "-o", tmp_path / "no" / "out"], 1, "No such file"),
        (["stats", tmp_path / "empty"], 0, ""),
        (["merge", tmp_path / "empty"], 0, "warning: no timing line found: the output is empty\n"),
    ]
    for words, code, message in cases:
        ran = commands.tracebigsim(*words)
        assert (ran.returncode, message in ran.stderr) == (code, True), ran.stderr
        assert "Traceback" not in ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty"]


def test_its_streams_and_signals_are_as_those_of_rewritelog(tmp_path: Path) -> None:
    lines = "".join(format_line("k", (n,), time_s=1) for n in range(9))
    merged = subprocess.run(
        tracebigsim_command("merge", "-", "-o", "-"), input=lines.encode(), capture_output=True,
        check=True,
    )  # fmt: skip
    assert merged.stdout == lines.encode()
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            tracebigsim_command("--version"), stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    words = [sys.executable, "-m", "tracebigsim", "--include-dir"]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *words], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"tracebigsim: error: Bad file descriptor\n")
    out = tmp_path / "out"
    waits = subprocess.Popen(
        tracebigsim_command("merge", "-", "-o", out), stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not list(tmp_path.iterdir()):
        time.sleep(0.01)
    waits.send_signal(signal.SIGTERM)
    _, errors = waits.communicate(timeout=HANGS_S)
    assert (waits.returncode, errors) == (143, b"rewritelog: ended by SIGTERM\n")
    assert list(tmp_path.iterdir()) == []
