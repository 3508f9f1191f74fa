"""Brackets in Python programs, and in C++ ones through the header."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import tracebigsim
from tracebigsim import BracketError, LineFormatError, TraceFileError
from tracebigsim.lines import LineTable, TimeUnit, scan


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    tracebigsim.output(stream)
    yield stream
    tracebigsim.output(None)


def scanned(stream: io.StringIO) -> LineTable:
    table = scan(stream.getvalue().encode())
    assert table.faults == ()
    return table


def test_start_and_end_print_one_timing_line(lines: io.StringIO) -> None:
    tracebigsim.start()
    tracebigsim.end("Cell::pairForces", 53, 0.1)
    table = scanned(lines)
    assert table.events == ("Cell::pairForces",)
    assert table.params.tolist() == [53, 0.1]
    assert table.time_unit.tolist() == [TimeUnit.SECONDS]
    assert 0 <= table.time[0] < 1


def test_a_bracket_prints_its_line_after_the_block(lines: io.StringIO) -> None:
    with tracebigsim.bracket("k", 1):
        assert lines.getvalue() == ""
    assert len(scanned(lines)) == 1


def test_a_block_that_raises_prints_nothing_and_closes(lines: io.StringIO) -> None:
    with pytest.raises(KeyError), tracebigsim.bracket("k"):
        raise KeyError
    assert lines.getvalue() == ""
    with tracebigsim.bracket("k"):
        pass


def test_unmatched_calls_say_so(lines: io.StringIO) -> None:
    with pytest.raises(BracketError, match=r"end\('k'\) without start"):
        tracebigsim.end("k")
    with tracebigsim.bracket("k"), pytest.raises(BracketError, match="within an open bracket"):
        tracebigsim.start()
    assert len(scanned(lines)) == 1


def test_wrong_params_close_the_bracket_too(lines: io.StringIO) -> None:
    tracebigsim.start()
    with pytest.raises(LineFormatError, match="at most 20"):
        tracebigsim.end("k", *range(21))
    tracebigsim.start()
    tracebigsim.end("k")
    assert len(scanned(lines)) == 1


def test_threads_have_brackets_of_their_own(lines: io.StringIO) -> None:
    def work(number: int) -> None:
        for _ in range(50):
            with tracebigsim.bracket(f"thread {number}", number):
                pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(scanned(lines)) == 200


def test_lines_go_to_a_file_where_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEBIGSIM_OUTPUT", str(tmp_path / "by variable"))
    with tracebigsim.bracket("a"):
        pass
    tracebigsim.output(tmp_path / "by call")
    for _ in range(2):
        with tracebigsim.bracket("b"):
            pass
    tracebigsim.output(tmp_path)
    tracebigsim.start()
    with pytest.raises(TraceFileError, match="Is a directory"):
        tracebigsim.end("c")
    tracebigsim.output(None)
    assert scan((tmp_path / "by variable").read_bytes()).events == ("a",)
    assert len(scan((tmp_path / "by call").read_bytes())) == 2


def test_standard_output_is_the_default(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRACEBIGSIM_OUTPUT", raising=False)
    with tracebigsim.bracket("k"):
        pass
    assert scan(capsys.readouterr().out.encode()).events == ("k",)


def test_lines_of_processes_with_one_output_do_not_tear(tmp_path: Path) -> None:
    program = "import tracebigsim\nfor i in range(300):\n  with tracebigsim.bracket('k', i): pass"
    with (tmp_path / "out").open("ab") as stream:
        running = [
            subprocess.Popen([sys.executable, "-c", program], stdout=stream, env=environment())
            for _ in range(3)
        ]
    assert [process.wait() for process in running] == [0, 0, 0]
    table = scan((tmp_path / "out").read_bytes())
    assert (len(table), table.fault_count) == (900, 0)


def environment() -> dict[str, str]:
    """An environment in which a subprocess finds the same package."""
    package_folder = str(Path(tracebigsim.__file__).resolve().parents[1])
    return {**os.environ, "PYTHONPATH": package_folder, "TRACEBIGSIM_OUTPUT": ""}


def test_the_package_is_light() -> None:
    """A program that only prints lines loads neither numpy nor numba, nor rewritelog."""
    program = "import sys, tracebigsim; print({'numpy', 'numba', 'rewritelog'} & set(sys.modules))"
    printed = subprocess.check_output([sys.executable, "-c", program], env=environment(), text=True)
    assert printed == "set()\n"


def test_the_header_is_where_the_package_says(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tracebigsim", "--include"]
    printed = subprocess.check_output(command, env=environment(), text=True, cwd=tmp_path)
    assert printed.strip() == tracebigsim.include_dir()
    assert (Path(printed.strip()) / "traceBigSim.h").is_file()


CPP = r"""
#include "traceBigSim.h"
#include <clocale>
#include <thread>
int main() {
  std::setlocale(LC_ALL, "de_DE.UTF-8");
  startTraceBigSim();
  endTraceBigSim((char *)"no params");
  startTraceBigSim();
  endTraceBigSim("mixed", 1, 2.5f, 0.1, 3L, -1e-300);
  startTraceBigSim();
  std::thread([] { startTraceBigSim(); endTraceBigSim("thread", 7); }).join();
  endTraceBigSim("twenty", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20);
  endTraceBigSim("unmatched", 1);
}
"""


@pytest.fixture(scope="module")
def compiler() -> str:
    found = shutil.which("g++") or shutil.which("c++")
    if found is None:
        pytest.skip("no C++ compiler")
    return found


def compile_cpp(compiler: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    for name, source in (("main.cpp", CPP), ("unused.cpp", CPP[: CPP.index("int main")])):
        (folder / name).write_text(source)
    warnings = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    sources = [str(folder / "main.cpp"), str(folder / "unused.cpp")]
    command = [compiler, "-std=c++11", *warnings, "-pthread", "-I", tracebigsim.include_dir()]
    return subprocess.run(
        [*command, *options, *sources, "-o", str(folder / "main")],
        capture_output=True,
        text=True,
        check=False,
    )


def test_cpp_programs_print_lines_that_scan_reads(compiler: str, tmp_path: Path) -> None:
    built = compile_cpp(compiler, tmp_path)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([str(tmp_path / "main")], capture_output=True, check=True)
    table = scan(ran.stdout)
    assert table.faults == ()
    assert table.events == ("no params", "mixed", "thread", "twenty")
    assert table.params.tolist() == [1, 2.5, 0.1, 3, -1e-300, 7, *range(1, 21)]
    assert table.param_start.tolist() == [0, 0, 5, 6, 26]
    assert set(table.time_unit) == {TimeUnit.SECONDS}
    assert b'endTraceBigSim("unmatched") without a start' in ran.stderr


def test_the_header_refuses_an_emulation(compiler: str, tmp_path: Path) -> None:
    built = compile_cpp(compiler, tmp_path, "-DCMK_BIGSIM_CHARM=1")
    assert built.returncode != 0
    assert "traceBigSim.h of Charm++" in built.stderr
