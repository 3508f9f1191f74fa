"""Each call of a run fails in turn: the output is whole or as it was, and the error names a file.

A shim in C, preloaded, makes the nth call of a function fail on files of the test, for every n that
a run comes to.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from building import tool
from chakrabuilder import node, write_traces
from chosen import by_tier
from faulty import content
from logbuilder import bracket, seb, write_logs, write_params, write_timings

HALF = 0
"""Not an errno: the call does half of what it was asked for."""

WRITING = ("write", "pwrite", "pwritev")
READING = ("read", "preadv")
OTHERS = ("open", "close", "fstat", "fsync", "ftruncate", "rename", "renameat2", "unlink",
    "mkdir", "mmap")  # fmt: skip
CASES = [
    *((call, error) for call in WRITING for error in (errno.ENOSPC, errno.EIO, errno.EINTR, HALF)),
    *((call, error) for call in READING for error in (errno.EIO, errno.EINTR, HALF)),
    *((call, errno.EIO) for call in OTHERS),
    *((call, errno.ENOSPC) for call in ("open", "fsync", "ftruncate", "rename", "mkdir")),
    *((call, errno.EINTR) for call in ("open", "fsync", "close")),
]


def _name(case: tuple[str, int]) -> str:
    call, error = case
    return f"{call}-{errno.errorcode.get(error, 'half')}"


ALWAYS = [
    ("rewrite", ("pwritev", errno.ENOSPC)),
    ("rewrite --force", ("renameat2", errno.EIO)),
]


@dataclass(frozen=True)
class Driver:
    """Runs commands in processes that a fault is armed in."""

    process: subprocess.Popen[str]
    folder: Path

    def run(
        self, words: Sequence[str], call: str = "", number: int = 0, error: int = 0
    ) -> tuple[int, int, str]:
        """Return the exit code, how often the call came, and what was printed."""
        printed = self.folder.parent / "printed"
        case = {"words": words, "call": call, "number": number, "errno": error,
                "folder": str(self.folder), "printed": str(printed)}  # fmt: skip
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(case) + "\n")
        self.process.stdin.flush()
        code, seen = self.process.stdout.readline().split()
        return int(code), int(seen), printed.read_text()


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    folder = tmp_path_factory.mktemp("injection")
    shim, work = folder / "shim.so", folder / "work"
    source = Path(__file__).with_name("shim.c")
    subprocess.run([tool("gcc"), "-shared", "-fPIC", "-O1", source, "-o", shim, "-ldl"], check=True)
    work.mkdir()
    timelines = [[seb(k, k + 1, events=bracket(0.2, 0.6)) for k in range(9)] for _ in range(4)]
    write_logs(work / "in", timelines, files=2)
    for pe in range(4):
        write_params(work / "in", pe, *[(k, "k", k) for k in range(9)])
    write_timings(work / "timings", ("k", 1.0, 1.0), ("k", 2.0, 2.0), ("k", 4.0, 4.0))
    write_traces(work / "traces", [[node(k) for k in range(9)] for _ in range(2)], packed=True)
    environment = {**os.environ, "LD_PRELOAD": str(shim)}
    script: list[str | Path] = [
        sys.executable,
        Path(__file__).with_name("driver.py"),
        work / "in",
        work / "timings",
    ]
    process = subprocess.Popen(
        script,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    yield Driver(process, work)
    process.communicate()


def command(name: str, folder: Path) -> list[str]:
    logs, out = str(folder / "in"), str(folder / "out")
    return {
        "rewrite": ["rewrite", logs, out, "--model=least-squares", "--timings",
                    str(folder / "timings"), "--quiet", "--jobs=1"],
        "rewrite --force": ["rewrite", logs, out, "--dilation=2", "--force", "--quiet", "--jobs=1"],
        "convert": ["convert", logs, out, "--byte-order=big"],
    }[name]  # fmt: skip


def prepare(name: str, folder: Path) -> None:
    """Put the output into the state before."""
    out = folder / "out"
    if out.is_file():  # of another test, in the same folder
        out.unlink()
    shutil.rmtree(out, ignore_errors=True)
    if "--force" in name:
        shutil.copytree(folder / "in", folder / "out")


NAMES = ("rewrite", "rewrite --force", "convert")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "case"),
    by_tier([(name, case) for name in NAMES for case in CASES], ALWAYS),
    ids=lambda part: part if isinstance(part, str) else _name(part),
)
def test_a_call_that_fails_leaves_the_output_whole_or_as_it_was(
    name: str, case: tuple[str, int], driver: Driver
) -> None:
    call, error = case
    folder, words = driver.folder, command(name, driver.folder)
    prepare(name, folder)
    old = content(folder / "out")
    code, _, printed = driver.run(words)
    assert code == 0, printed
    new, source = content(folder / "out"), content(folder / "in")
    beside = {path.name for path in folder.iterdir()}
    for number in range(1, 10_000):
        prepare(name, folder)
        code, seen, printed = driver.run(words, call, number, error)
        if seen < number:
            break
        where = f"{call} {number} of {name} with {errno.errorcode.get(error, 'half')}: {printed}"
        assert code in (0, 1), where
        assert content(folder / "out") == (new if code == 0 else old), where
        if code == 1:
            assert printed.startswith("rewritelog: error: "), where
            assert str(folder) in printed, where
            assert "Traceback" not in printed, where
            assert error not in (HALF, errno.EINTR) or call not in (*WRITING, *READING), where
            prepare(name, folder)
            again, _, printed = driver.run(words)
            assert (again, content(folder / "out")) == (0, new), f"after {where}: {printed}"
        left = {path.name for path in folder.iterdir()} - beside
        assert all(str(folder / name) in printed for name in left), f"{where}: {left} is left"
        if left:
            prepare(name, folder)
            again, _, printed = driver.run(words)
            assert (again, content(folder / "out")) == (0, new), f"after {where}: {printed}"
            assert {path.name for path in folder.iterdir()} == beside, f"after {where}"
        assert content(folder / "in") == source, where
    if (name, case) in ALWAYS:
        assert number > 1, f"no {call} was seen, so none failed"


def other_commands(folder: Path) -> dict[str, list[str]]:
    """The other commands that read or write logs or timings; each writes at most `out`.

    Pictures have a suffix.
    """
    logs, timings, out = str(folder / "in"), str(folder / "timings"), str(folder / "out")
    traces, model = str(folder / "traces"), str(folder.parent / "model.json")
    return {
        "check": ["check", logs, "-j1"],
        "check of traces": ["check", traces, "-j1"],
        "info of traces": ["info", traces, "-j1"],
        "diff of traces": ["diff", traces, traces, "-j1"],
        "rewrite of traces": ["rewrite", traces, out, "--dilation=2", "--quiet", "-j1"],
        "info": ["info", logs, "-j1"],
        "dump": ["dump", logs, "--pe=1"],
        "diff": ["diff", logs, logs, "-j1"],
        "export chrome": ["export", logs, out, "--to=chrome"],
        "export csv": ["export", logs, out, "--to=csv"],
        "export goal": ["export", logs, out, "--to=goal"],
        "export simgrid": ["export", logs, out, "--to=simgrid"],
        "replay": ["replay", logs, "--latency=1us", "--bandwidth=1GB/s", "-j1"],
        "replay --write": ["replay", logs, "--write", out, "-j1"],
        "lost-cycles": ["lost-cycles", logs, "-j1"],
        "synth": ["synth", out, "--pes=2", "--sebs=20", "-j1"],
        "fit": ["fit", timings, "-o", out, "--model=least-squares"],
        "predict": ["predict", model, timings, "-o", out],
        "verify": ["verify", model, timings],
        "sample": ["sample", logs, "--fraction=0.5", "-o", out],
        "compare": ["compare", timings, "--models=least-squares,constant", "--folds=3"],
        "compare -o": ["compare", timings, "--models=least-squares", "--folds=3", "--report", out],
        "sweep": ["sweep", logs, "--vary=latency=1us,2us", "-o", out, "-j1"],
        "timeline": ["timeline", logs, "-o", f"{out}.svg"],
        "timeline page": ["timeline", logs, "-o", f"{out}.html"],
    }


def remove_outputs(folder: Path) -> None:
    """Remove what a command wrote."""
    for out in [folder / "out", *folder.glob("out.*")]:
        shutil.rmtree(out, ignore_errors=True)
        out.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def model(driver: Driver) -> Path:
    """A model file beside the folder whose files fail."""
    path = driver.folder.parent / "model.json"
    fit = ["fit", str(driver.folder / "timings"), "-o", str(path), "--model=least-squares"]
    code, _, printed = driver.run(fit)
    assert code == 0, printed
    return path


@pytest.mark.long
@pytest.mark.parametrize("call", ["read", "preadv", "open", "write", "pwritev", "close"])
@pytest.mark.parametrize("name", other_commands(Path()))
def test_an_input_or_output_error_is_one_line(
    name: str, call: str, driver: Driver, model: Path
) -> None:
    folder = driver.folder
    words = other_commands(folder)[name]
    if name.startswith("timeline"):
        pytest.importorskip("bokeh" if "page" in name else "matplotlib")
    remove_outputs(folder)
    source, beside = content(folder / "in"), {path.name for path in folder.iterdir()}
    assert model.exists()
    for number in range(1, 10_000):
        remove_outputs(folder)
        code, seen, printed = driver.run(words, call, number, errno.EIO)
        if seen < number:
            assert code == 0, printed
            break
        where = f"{call} {number} of {name}: {printed}"
        assert "Traceback" not in printed, where
        assert content(folder / "in") == source, where
        entries = {path.name for path in folder.iterdir()}
        assert {name for name in entries if name.partition(".")[0] != "out"} == beside, where
        if name.startswith("check") and code == 1:  # what cannot be read is among its findings
            assert "Input/output error" in printed, where
        elif code != 0:
            assert code == (2 if name.startswith("diff") else 1), where
            assert printed.count("rewritelog: error: ") == 1, where
            assert str(folder) in printed, where
            assert entries == beside, where


def test_a_file_has_its_name_whatever_can_no_longer_be_removed(driver: Driver) -> None:
    """The model was written, and the run ended with an error that said it was not."""
    remove_outputs(driver.folder)
    words = other_commands(driver.folder)["fit"]
    code, _, printed = driver.run(words, "unlink", 1, errno.EIO)
    assert code == 0, printed
    assert (driver.folder / "out").is_file()
