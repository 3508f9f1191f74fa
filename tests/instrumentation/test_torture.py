"""Brackets in threads that are cancelled, children, signal handlers and on bad outputs.

They never hang or end the program that they measure; what cannot be written is counted.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from building import environment, sound
from chosen import by_tier
from faulty import HANGS_S

import tracebigsim

SOURCE = Path(__file__).with_name("torture.c")
COMPILERS = ("gcc", "clang", "g++", "clang++")
SANITIZERS = ("thread", "address", "undefined")
SCENARIOS = ("cancel", "fork", "exit", "handle", "write")
TIMES = {"": 150, "address": 20, "undefined": 20, "thread": 5}
"""How often a scenario is repeated, by sanitizer: under one for threads, a fork takes a second."""
EXPECTED = {
    "tracebigsim: N lines are lost: Resource deadlock avoided",
    "tracebigsim: k: an end without a start",
    "tracebigsim: start: within an open bracket, which is dropped",
    "tracebigsim: start: within an open bracket, which is dropped (further reports are left out)",
    "tracebigsim: k: an end without a start (further reports are left out)",
}
"""What may be said of brackets in the handler of a signal that interrupts another one."""

long = pytest.mark.long


def compiled(folder: Path, compiler: str = "gcc", sanitizer: str = "") -> Path:
    """Compile the program; skip where the compiler or its sanitizer is not here."""
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    program = folder / "torture"
    options = [f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"] if sanitizer else []
    language = ["-x", "c++"] if compiler.endswith("++") else []
    compilation = subprocess.run(
        [compiler, *language, "-D_GNU_SOURCE", "-DTRACEBIGSIM_WARNINGS", "-Wall", "-Wextra",
         "-Werror", "-O1", "-g", "-pthread", *options, "-I", tracebigsim.include_dir(), SOURCE,
         "-o", program],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if sanitizer and re.search(r"cannot find|unsupported", compilation.stderr):
        pytest.skip(f"{compiler} has no sanitizer for {sanitizer} here")
    assert compilation.returncode == 0, compilation.stderr
    return program


def ran(
    program: Path, scenario: str, times: int, buffer: str, out: Path
) -> subprocess.CompletedProcess[str]:
    """Run a scenario of the program, which must end by itself."""
    command: list[str | Path] = [program, scenario, str(times)]
    if shutil.which("setarch"):  # sanitizers have their own idea of where memory is
        command = ["setarch", platform.machine(), "-R", *command]
    more = environment(TRACEBIGSIM_OUTPUT=str(out), TRACEBIGSIM_BUFFER_BYTES=buffer)
    more["TSAN_OPTIONS"] = "report_signal_unsafe=0"  # an exit() in a handler is
    more["ASAN_OPTIONS"] = "detect_leaks=0"  # it looks for the parent's threads in a child
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=HANGS_S, env=more
    )


@pytest.mark.parametrize(
    ("compiler", "sanitizer"),
    [
        pytest.param("gcc", "", marks=pytest.mark.slow),
        *(
            pytest.param(compiler, sanitizer, marks=long)
            for compiler in COMPILERS
            for sanitizer in SANITIZERS
        ),
    ],
)
def test_brackets_never_hang_or_end_their_program(
    compiler: str, sanitizer: str, tmp_path: Path
) -> None:
    program = compiled(tmp_path, compiler, sanitizer)
    times = TIMES[sanitizer]
    for scenario in SCENARIOS:
        if (scenario, sanitizer) == ("exit", "address"):
            continue  # it may interrupt that sanitizer's own runtime, which waits for itself
        for buffer in ("", "4000"):
            out = tmp_path / "lines"
            out.unlink(missing_ok=True)
            done = ran(program, scenario, times, buffer, out)
            assert done.returncode == 0, (scenario, buffer, done.stderr)
            assert set(re.sub(r"[0-9]+", "N", done.stderr).splitlines()) <= EXPECTED, scenario
            lines = sound(out.read_bytes())
            if scenario == "write":
                assert len(lines) == times


def test_a_pipe_that_does_not_block_loses_no_line(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with subprocess.Popen(
        [compiled(tmp_path), "write", "5000"], stdout=writer, env=environment()
    ) as process:
        os.close(writer)
        time.sleep(0.2)  # the pipe fills
        with os.fdopen(reader, "rb") as stream:
            printed = stream.read()
    assert process.returncode == 0
    assert len(sound(printed)) == 5000


@pytest.mark.parametrize("buffer", by_tier(["", "4000"], ["4000"], [""]))
def test_a_closed_pipe_ends_no_program(buffer: str, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [compiled(tmp_path), "write", "1000"], stdout=writer, stderr=subprocess.PIPE, text=True,
        env=environment(TRACEBIGSIM_BUFFER_BYTES=buffer), check=False,
    )  # fmt: skip
    os.close(writer)
    assert done.returncode == 0
    assert done.stderr == "tracebigsim: 1000 lines are lost: Broken pipe\n"


def test_a_limit_on_file_size_ends_no_program(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words: list[str | Path] = [
        "sh",
        "-c",
        'ulimit -f 8; exec "$@"',
        "sh",
        compiled(tmp_path),
        "write",
        "1000",
    ]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False,
        env=environment(TRACEBIGSIM_OUTPUT=str(out)),
    )  # fmt: skip
    assert done.returncode == 0
    lost = re.fullmatch(r"tracebigsim: ([0-9]+) lines are lost: File too large\n", done.stderr)
    assert lost is not None
    lines = out.read_bytes().rpartition(b"\n")[0] + b"\n"
    assert len(sound(lines)) + int(lost[1]) == 1000
