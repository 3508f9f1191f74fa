"""Brackets in Python programs."""

from __future__ import annotations

import asyncio
import io
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from building import environment, events_of, forks, params_of
from chosen import by_tier
from faulty import HANGS_S

import tracebigsim
from tracebigsim import (
    BracketError,
    BracketWarning,
    LineFormatError,
    TraceFileError,
    format_chosen,
)
from tracebigsim.chosen import read_chosen
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
    assert 0 <= table.time[0] < 60


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


def test_what_does_not_pair_up_is_a_warning_and_goes_on(lines: io.StringIO) -> None:
    with pytest.warns(BracketWarning, match=r"end\('first'\) without start") as warned:
        tracebigsim.end("first")
    assert warned[0].filename == __file__
    outer, inner = tracebigsim.bracket("outer"), tracebigsim.bracket("inner")
    with pytest.warns(BracketWarning) as warned, outer, inner:
        pass
    assert [str(warning.message) for warning in warned] == [
        "start() within an open bracket, which is dropped",
        "end('outer') without start()",
    ]
    assert [warning.filename for warning in warned] == [__file__] * 2
    assert scanned(lines).events == ("inner",)


def test_a_block_does_not_close_the_bracket_of_another_task(lines: io.StringIO) -> None:
    async def task(number: int, seconds: float, fails: bool = False) -> None:
        with tracebigsim.bracket("task", number):
            await asyncio.sleep(seconds)
            if fails:
                raise KeyError(number)

    async def tasks() -> None:
        short, failing = task(0, 0), task(1, 0, fails=True)
        await asyncio.gather(short, failing, task(2, 0.01), return_exceptions=True)

    with pytest.warns(BracketWarning) as warned:
        asyncio.run(tasks())
    assert str(warned[-1].message) == "end('task') without start()"
    assert scanned(lines).params.tolist() == [2]
    assert scanned(lines).time[0] >= 0.01


def test_parameters_in_place_of_the_event_are_refused(lines: io.StringIO) -> None:
    """With a list of chosen SEBs `start(8)` chose nothing, and a list was a bare `TypeError`."""
    start: Any = tracebigsim.start
    for wrong in (8, [8]):
        with pytest.raises(LineFormatError, match="an event name must be a text, not"):
            start(wrong)
        with pytest.raises(LineFormatError, match="an event name must be a text, not"):
            tracebigsim.bracket(wrong).__enter__()  # type: ignore[arg-type]


def test_wrong_params_close_the_bracket_too(lines: io.StringIO) -> None:
    tracebigsim.start()
    with pytest.raises(LineFormatError, match="at most 20"):
        tracebigsim.end("k", *range(21))
    for wrong in ("x", None, 10**400):
        tracebigsim.start()
        with pytest.raises(LineFormatError, match="a parameter must be a number: "):
            tracebigsim.end("k", wrong)  # type: ignore[arg-type]
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
    monkeypatch.setenv("TRACEBIGSIM_OUTPUT", str(tmp_path / "by variable of %p on %h"))
    with tracebigsim.bracket("a"):
        pass
    tracebigsim.output(tmp_path / "by call")
    for _ in range(2):
        with tracebigsim.bracket("b"):
            pass
    tracebigsim.output(None)
    named = f"by variable of {os.getpid()} on {os.uname().nodename}"
    assert scan((tmp_path / named).read_bytes()).events == ("a",)
    assert len(scan((tmp_path / "by call").read_bytes())) == 2


def test_a_program_that_changes_its_folder_keeps_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("TRACEBIGSIM_OUTPUT", "by variable")
    for target in (None, "by call"):
        monkeypatch.chdir(tmp_path)
        tracebigsim.output(target)
        for folder in (".", "run"):
            monkeypatch.chdir(folder)
            with tracebigsim.bracket("k"):
                pass
        tracebigsim.output(None)
    assert len(scan((tmp_path / "by variable").read_bytes())) == 2
    assert len(scan((tmp_path / "by call").read_bytes())) == 2


def test_standard_output_is_the_default(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRACEBIGSIM_OUTPUT", raising=False)
    with tracebigsim.bracket("k"):
        pass
    assert scan(capsys.readouterr().out.encode()).events == ("k",)


def ends_well(program: str, **process: Any) -> tuple[str, str]:
    """Run a program with brackets; return what it prints on its two streams."""
    process.setdefault("stdout", subprocess.PIPE)
    program = f"import os, sys, tracebigsim\n{program}"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, **process)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


TWO_LINES = """for n in (1, 2):
    with tracebigsim.bracket("k", n): pass
"""


@pytest.mark.parametrize("buffer", ["", "1000"])
def test_lines_that_cannot_be_written_are_counted_and_the_program_goes_on(buffer: str) -> None:
    """A run of hours ended with an error when its disk was full."""
    more = {"TRACEBIGSIM_BUFFER_BYTES": buffer}
    full = "tracebigsim: 2 lines are lost: No space left on device\n"
    named = environment(**more, TRACEBIGSIM_OUTPUT="/dev/full")
    assert ends_well(TWO_LINES + "print('done')", env=named) == ("done\n", full)
    with Path("/dev/full").open("w") as stdout:
        assert ends_well(TWO_LINES, stdout=stdout, env=environment(**more))[1] == full
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, "w") as stdout:  # noqa: PTH123 - a descriptor
        reported = ends_well(TWO_LINES, stdout=stdout, env=environment(**more))[1]
    assert reported == "tracebigsim: 2 lines are lost: Broken pipe\n"


def test_an_output_that_cannot_be_opened_is_a_warning_and_lines_go_to_standard_output(
    tmp_path: Path,
) -> None:
    problem = f"BracketWarning: {tmp_path}: Is a directory; lines go to standard output\n"
    for more in ({}, {"TRACEBIGSIM_BUFFER_BYTES": "1000"}):
        named = environment(TRACEBIGSIM_OUTPUT=str(tmp_path), **more)
        printed, reported = ends_well(TWO_LINES, env=named)
        assert events_of(scan(printed.encode())) == ["k", "k"]
        assert reported.endswith(problem)
        assert reported.count("BracketWarning") == 1


def test_lines_that_a_stream_does_not_take_are_counted() -> None:
    closed = ends_well(f"os.close(1)\nsys.stdout = None\n{TWO_LINES}", env=environment())
    assert closed == ("", "tracebigsim: 2 lines are lost: Bad file descriptor\n")
    program = f"""import io
stream = io.StringIO()
stream.close()
tracebigsim.output(stream)
{TWO_LINES}
sys.stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
tracebigsim.output(None)
with tracebigsim.bracket("é"): pass
"""
    reported = ends_well(program, env=environment())[1]
    assert reported.startswith("tracebigsim: 3 lines are lost: 'ascii' codec can't encode")


def test_a_child_reports_only_the_lines_that_it_loses_itself(tmp_path: Path) -> None:
    program = """tracebigsim.output("/dev/full")
with tracebigsim.bracket("parent"): pass
if os.fork() == 0:
    with tracebigsim.bracket("child"): pass
    tracebigsim.flush()
    sys.exit()
os.wait()
"""
    reported = ends_well(program, env=environment())[1]
    assert reported == 2 * "tracebigsim: 1 line is lost: No space left on device\n"


def test_lines_that_the_system_cuts_short_are_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program ended with an error, where one in C went on."""
    plain = os.write
    monkeypatch.setattr(os, "write", lambda file, data: plain(file, data[:13]))
    tracebigsim.output(tmp_path / "lines")
    for name in ("a", "b"):
        with tracebigsim.bracket(name):
            pass
    tracebigsim.output(None)
    assert events_of(scan((tmp_path / "lines").read_bytes())) == ["a", "b"]


def test_a_line_after_one_that_was_cut_off_is_whole(tmp_path: Path) -> None:
    program = """plain, most = os.write, [13, 0, 999]
os.write = lambda file, data: plain(file, data[: most.pop(0) if len(most) > 1 else 999])
tracebigsim.output("lines")
with tracebigsim.bracket("torn"): pass
with tracebigsim.bracket("whole"): pass
"""
    reported = ends_well(program, cwd=tmp_path, env=environment())[1]
    assert reported == "tracebigsim: 1 line is lost: Input/output error\n"
    assert events_of(scan((tmp_path / "lines").read_bytes())) == ["whole"]


@pytest.mark.parametrize(
    "buffer", by_tier(["", "300", "100000000", "nonsense"], ["300"], ["", "100000000", "nonsense"])
)
def test_lines_of_processes_with_one_output_do_not_tear(buffer: str, tmp_path: Path) -> None:
    program = "import tracebigsim\nfor i in range(300):\n  with tracebigsim.bracket('k', i): pass"
    for name in ("by name", "by redirection"):
        out = tmp_path / name
        more = {"TRACEBIGSIM_BUFFER_BYTES": buffer}
        if name == "by name":
            more["TRACEBIGSIM_OUTPUT"] = str(out)
        with out.open("ab") as stream:
            running = [
                subprocess.Popen(
                    [sys.executable, "-c", program], stdout=stream, env=environment(**more)
                )
                for _ in range(3)
            ]
        assert [process.wait() for process in running] == [0, 0, 0]
        table = scan(out.read_bytes())
        assert (len(table), table.fault_count) == (900, 0)


def test_a_buffer_of_no_number_of_bytes_is_a_warning_and_goes_on(
    lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines were not buffered, without a word."""
    monkeypatch.setenv("TRACEBIGSIM_BUFFER_BYTES", "64k")
    kernel = tracebigsim.bracketed("k")(lambda: 0)
    with pytest.warns(BracketWarning) as warned:
        assert [kernel(), kernel()] == [0, 0]
    problem = "64k: TRACEBIGSIM_BUFFER_BYTES is no number of bytes: lines are not buffered"
    assert [str(warning.message) for warning in warned] == [problem]
    assert warned[0].filename == __file__
    assert len(scanned(lines)) == 2


def test_buffered_lines_do_not_tear_in_a_named_pipe(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    program = "import tracebigsim\nfor i in range(2000):\n  with tracebigsim.bracket('k', i): pass"
    more = {"TRACEBIGSIM_BUFFER_BYTES": "65536", "TRACEBIGSIM_OUTPUT": str(fifo)}
    running = [
        subprocess.Popen([sys.executable, "-c", program], env=environment(**more)) for _ in range(3)
    ]
    data = bytearray()
    kept = os.open(fifo, os.O_RDWR)  # it never ends, although each program opens and closes it
    try:
        while data.count(b"\n") < 6000 and select.select([kept], [], [], HANGS_S)[0]:
            data += os.read(kept, 1000)  # less than what is written at once
    finally:
        os.close(kept)
    assert [process.wait() for process in running] == [0, 0, 0]
    table = scan(bytes(data))
    assert (len(table), table.fault_count) == (6000, 0)


def test_a_named_pipe_ends_when_the_program_does(tmp_path: Path) -> None:
    """Its reader found the end after the first line, and the program waited for another reader."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    program = """import os, time, tracebigsim
for i in range(10):
    with tracebigsim.bracket("parent", i): pass
    time.sleep(0.01)
if os.fork() == 0:
    with tracebigsim.bracket("child"): pass
    os._exit(0)
os.wait()
"""
    more = {"TRACEBIGSIM_OUTPUT": str(fifo)}
    with subprocess.Popen([sys.executable, "-c", program], env=environment(**more)) as process:
        table = scan(fifo.read_bytes())
        if len(table) < 11:
            process.kill()
    assert events_of(table) == [*10 * ["parent"], "child"]


def test_another_output_ends_a_named_pipe(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(fifo.read_bytes)
        tracebigsim.output(fifo)
        with tracebigsim.bracket("k"):
            pass
        tracebigsim.output(None)
        assert scan(read.result()).events == ("k",)


def test_buffered_lines_are_written_once_by_a_program_that_forks(tmp_path: Path) -> None:
    program = """import os, tracebigsim
with tracebigsim.bracket("parent"): pass
if os.fork() == 0:
    with tracebigsim.bracket("child"): pass
    tracebigsim.flush()
    os._exit(0)
os.wait()
"""
    more = {"TRACEBIGSIM_BUFFER_BYTES": "1000", "TRACEBIGSIM_OUTPUT": str(tmp_path / "out")}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment(**more))
    table = scan((tmp_path / "out").read_bytes())
    assert (len(table), table.events) == (2, ("parent", "child"))


@pytest.mark.parametrize(
    "method", by_tier(["fork", "spawn", "forkserver"], ["fork"], ["spawn", "forkserver"])
)
def test_workers_of_multiprocessing_write_buffered_lines_when_they_end(
    method: str, tmp_path: Path
) -> None:
    program = f"""import multiprocessing, tracebigsim
def work():
    with tracebigsim.bracket("worker"):
        pass
if __name__ == "__main__":
    worker = multiprocessing.get_context({method!r}).Process(target=work)
    worker.start()
    worker.join()
"""
    (tmp_path / "program.py").write_text(program)
    more = {"TRACEBIGSIM_BUFFER_BYTES": "1000", "TRACEBIGSIM_OUTPUT": str(tmp_path / "out")}
    command = [sys.executable, str(tmp_path / "program.py")]
    subprocess.run(command, check=True, env=environment(**more))
    assert scan((tmp_path / "out").read_bytes()).events == ("worker",)


def test_a_child_of_a_program_with_threads_has_brackets() -> None:
    """Its lock was that of a thread that was writing during the fork, and is not in the child."""
    forks("""import io
class Slow(io.StringIO):
    def flush(self):
        writing.set()
        time.sleep(0.2)
def work():
    with tracebigsim.bracket("k"): pass
def right_before_fork():
    threading.Thread(target=work).start()
    writing.wait(0.5)
writing = threading.Event()
os.register_at_fork(before=right_before_fork)  # the first one registered is the last one called
import tracebigsim
tracebigsim.output(Slow())
""")


def test_a_decorated_function_takes_params_from_its_arguments(lines: io.StringIO) -> None:
    def add(atoms: list[int], *, cutoff: float = 2.5) -> int:
        """Add."""
        return sum(atoms)

    def count(atoms: list[int], cutoff: float) -> int:
        return len(atoms)

    decorate: Any = tracebigsim.bracketed("f", "cutoff", count)
    pair_forces = decorate(add)
    assert pair_forces([1, 2]) == 3
    assert pair_forces(atoms=[1], cutoff=1) == 1
    assert pair_forces.__doc__ == "Add."
    with pytest.raises(TypeError):
        pair_forces(["1"])
    assert params_of(scanned(lines)) == [[2.5, 2], [1, 1]]


TYPED = """
import numpy as np
import tracebigsim

@tracebigsim.bracketed("by name", "n")
def by_name(n: int, atoms: list[float]) -> float:
    return sum(atoms[:n])

@tracebigsim.bracketed("both", "n", lambda n, atoms: len(atoms))
def both(n: int, atoms: list[float]) -> float:
    return by_name(n, atoms) + np.float64(1)

with tracebigsim.bracket("of numpy", np.int64(3), np.float32(2.5), True):
    total: float = both(1, [1.0, 2.0])
"""


@pytest.mark.slow
def test_a_typed_program_passes_its_type_check(tmp_path: Path) -> None:
    """Names alone were refused as parameters of a decorator, and so were numpy's integers."""
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "program.py"]
    checked = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stdout


def test_a_function_that_does_not_say_what_it_takes_is_refused() -> None:
    """It was a `ValueError` that named neither the bracket nor this package."""
    decorate: Any = tracebigsim.bracketed("largest")
    with pytest.raises(BracketError, match=r"bracketed\('largest'\): no signature found for"):
        decorate(max)
    with pytest.raises(BracketError, match=r"bracketed\('largest'\): <classmethod.* is not a call"):
        decorate(classmethod(lambda cls: None))


def test_functions_that_cannot_be_decorated() -> None:
    decorated: Any = tracebigsim.bracketed("k", "b")
    with pytest.raises(BracketError, match="has no argument 'b'"):
        decorated(lambda a: a)
    decorated = tracebigsim.bracketed("k", 8)  # type: ignore[arg-type]
    with pytest.raises(BracketError, match="8 is neither the name of an argument nor a function"):
        decorated(lambda a: a)

    def generates() -> Iterator[int]:
        yield 1

    decorated = tracebigsim.bracketed("k")

    class Generates:
        def __call__(self) -> Iterator[int]:
            yield 1

    for function in (generates, staticmethod(generates), Generates(), Generates().__call__):
        with pytest.raises(BracketError, match="generator or coroutine"):
            decorated(function)
    assert decorated(staticmethod(len))([1]) == 1


def test_a_decorator_of_what_no_line_can_hold_is_refused_before_any_call() -> None:
    """A decorator without its brackets passed, and its function came back undecorated."""
    without_brackets: Any = tracebigsim.bracketed
    with pytest.raises(LineFormatError, match="must be a text, not <built-in function len>"):
        without_brackets(len)
    with pytest.raises(LineFormatError, match="is empty"):
        tracebigsim.bracketed("")
    with pytest.raises(LineFormatError, match="at most 20 parameters, not 21"):
        tracebigsim.bracketed("k", *"n" * 21)


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list of two SEBs, which the environment names."""
    path = tmp_path / "chosen"
    path.write_text(
        "# two\n\n" + format_chosen(3, 19, "a {b}", (53, 0.1)) + format_chosen(0, 2, "none", ())
    )
    monkeypatch.setenv("TRACEBIGSIM_CHOSEN", str(path))
    return path


@pytest.mark.usefixtures("chosen")
def test_only_chosen_brackets_print_lines(lines: io.StringIO) -> None:
    for params in ((53, 0.1), (53,), (53, 0.100000000001), (0.1, 53)):
        with tracebigsim.bracket("a {b}", *params):
            pass
        tracebigsim.start()
        tracebigsim.end("a {b}", *params)
    tracebigsim.start("none")
    tracebigsim.end("none")
    assert params_of(scanned(lines)) == [[53, 0.1], [53, 0.1], []]


def test_a_list_that_cannot_be_read(chosen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEBIGSIM_CHOSEN", str(chosen / "none"))
    with pytest.raises(TraceFileError, match="Not a directory"):
        tracebigsim.start("k")
    wrong = chosen.with_name("wrong")
    for text in (
        "3 k",
        "3 2 TRACEBIGSIM: event:{ k } seqno: { 2 } params:{ 1_0 }",
        "\xff" * 9,
        "3 2 TRACEBIGSIM: event:{ k } seqno: { 2 } params:{ " + "1 " * 21 + "}",
        "3 2 TRACEBIGSIM: event:{ k } seqno: { 2 } params:{ 1e999 }",
    ):
        wrong.write_text(chosen.read_text() + text)
        with pytest.raises(TraceFileError, match="wrong: line 5: not a chosen SEB"):
            read_chosen(wrong)
    wrong.write_bytes(b"\xff")
    with pytest.raises(TraceFileError, match="not a list of chosen SEBs"):
        read_chosen(wrong)


def test_a_list_comes_back_as_it_was(chosen: Path) -> None:
    assert read_chosen(chosen) == ((3, 19, "a {b}", (53.0, 0.1)), (0, 2, "none", ()))


def test_the_package_is_light(chosen: Path) -> None:
    """A program that only prints lines loads neither numpy nor the core, nor rewritelog."""
    program = "import sys, tracebigsim\nwith tracebigsim.bracket('k', 1): pass\n"
    program += "print({'numpy', 'ctypes', 'rewritelog'} & set(sys.modules))"
    more = {"TRACEBIGSIM_CHOSEN": str(chosen)}
    command = [sys.executable, "-c", program]
    printed = subprocess.check_output(command, env=environment(**more), text=True)
    assert printed == "set()\n"
