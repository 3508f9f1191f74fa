"""What surrounds a run may fail it, in a line that says what: folders, limits, others' settings."""

from __future__ import annotations

import filecmp
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from chosen import by_tier
from commands import rewritelog as run
from faulty import HANGS_S, SCRIPT
from logbuilder import write_timings
from oracle import SAMPLE_LOGS
from users import heeding_modes

from rewritelog.running import engines

CELLS = SAMPLE_LOGS / "cells"


def started(*words: object, cwd: Path, within: str = "") -> subprocess.CompletedProcess[str]:
    """Run the installed command after some statements of its process."""
    code = f"import os, resource, sys\n{within}\nos.execv(sys.argv[1], sys.argv[1:])"
    return subprocess.run(
        [sys.executable, "-c", code, str(SCRIPT), *map(str, words)],
        cwd=cwd, capture_output=True, text=True, check=False, timeout=HANGS_S,
    )  # fmt: skip


def test_a_current_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    done = started("info", CELLS, cwd=tmp_path, within="os.chdir('gone'); os.rmdir(os.getcwd())")
    assert done.returncode == 1
    assert done.stderr == "rewritelog: error: the current folder no longer exists\n"


def test_too_little_address_space_is_said_before_libraries_wait_for_more(tmp_path: Path) -> None:
    limit = f"resource.setrlimit(resource.RLIMIT_AS, ({400 << 20}, {resource.RLIM_INFINITY}))"
    done = started("fit", CELLS / "timings.txt", cwd=tmp_path, within=limit)
    assert done.returncode == 1
    assert done.stderr == (
        "rewritelog: error: not enough address space: the limit (ulimit -v) is 0.4 GB; "
        "at least 1.6 GB are needed\n"
    )


@pytest.mark.slow
def test_systems_without_the_calls_of_linux_do(tmp_path: Path) -> None:
    """As on macOS, as far as that can be had on Linux."""
    code = (
        "import os, sys, sysconfig\n"
        "sysconfig.get_config_vars()  # they are in a file of the system's name\n"
        "for name in ('sched_getaffinity', 'O_TMPFILE'):\n"
        "    hasattr(os, name) and delattr(os, name)\n"
        "sys.platform = 'darwin'\n"
        "from rewritelog.cli import main\n"
        "main()"
    )
    for words in (
        ("rewrite", CELLS, "out", "--timings", CELLS / "timings.txt", "--dilation", 1, "-q"),
        ("rewrite", CELLS, "out", "--force", "--dilation", 1, "-q"),
    ):
        command = [sys.executable, "-c", code, *map(str, words)]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=HANGS_S)
    names = [path.name for path in CELLS.glob("bgTrace*")]
    assert filecmp.cmpfiles(CELLS, tmp_path / "out", names, shallow=False)[0] == names


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "max 100000\n"}, 64),
        ("0::/\n", {"cpu.max": "250000 100000\n"}, 3),
        ("0::/a/b\n", {"a/cpu.max": "400000 100000\n", "a/b/cpu.max": "max 100000\n"}, 4),
        ("0::/\n", {"cpu.max": ""}, 64),
        ("0::/outside\n", {"cpu.max": "50000 100000\n"}, 1),
        (
            "5:cpuset:/\n4:cpu,cpuacct:/pod\n0::/\n",
            {"cpu/pod/cpu.cfs_quota_us": "-1\n", "cpu/pod/cpu.cfs_period_us": "100000\n",
             "cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"},
            2,
        ),
        ("", {}, 64),
    ],
)  # fmt: skip
def test_no_more_cores_are_used_than_the_container_has_a_quota_for(
    groups: str,
    files: dict[str, str],
    expected: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    for name, text in {"proc/self/cgroup": groups, **system}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(engines, "_SYSTEM", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    assert engines.cores() == expected


@pytest.mark.long
def test_the_address_space_that_is_asked_for_is_enough(tmp_path: Path) -> None:
    limit = f"resource.setrlimit(resource.RLIMIT_AS, ({3 << 29}, {resource.RLIM_INFINITY}))"
    words = ("rewrite", CELLS, "out", "--timings", CELLS / "timings.txt", "-q", "--dilation", 1)
    done = started(*words, cwd=tmp_path, within=limit)
    assert (done.returncode, done.stderr) == (0, "")


WRITERS: dict[str, list[str | Path]] = {
    "rewrite": [CELLS, "out"],
    "convert": [CELLS, "out"],
    "synth": ["out"],
}


@pytest.mark.parametrize("command", by_tier(WRITERS, ["rewrite"], ["synth"]))
def test_a_thread_that_the_system_denies_is_said_and_leaves_nothing(
    command: str, tmp_path: Path
) -> None:
    """It was a traceback, with the draft beside OUT, since removing it takes threads, too."""
    stack, space = f"({4 << 30}, {resource.RLIM_INFINITY})", f"({2 << 30}, {2 << 30})"
    limits = (
        f"resource.setrlimit(resource.RLIMIT_STACK, {stack})\n"
        f"resource.setrlimit(resource.RLIMIT_AS, {space})"
    )
    done = started(command, *WRITERS[command], cwd=tmp_path, within=limits)
    assert done.returncode == 1
    assert done.stderr == (
        "rewritelog: error: a thread could not be started: too many threads and processes, or "
        "too little memory\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_may_not_be_searched_is_named(tmp_path: Path) -> None:
    logs = shutil.copytree(CELLS, tmp_path / "in")
    logs.chmod(0o600)
    try:
        for words in (("info", logs), ("check", logs), ("rewrite", logs, tmp_path / "out")):
            with heeding_modes():
                done = run(*words)
            assert done.returncode == 1
            assert f"{logs}" in done.stderr
            assert "ermission denied" in done.stderr
            assert len(done.stderr.splitlines()) == 1
    finally:
        logs.chmod(0o700)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("typed", ["x" * 300, "folder/" * 700])
@pytest.mark.parametrize("command", ["info", "check", "replay"])
def test_a_path_that_is_too_long_is_named_as_typed(command: str, typed: str) -> None:
    """The error named the summary in it."""
    done = run(command, typed)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"rewritelog: error: {Path(typed)}: File name too long\n"


def test_a_read_only_file_is_kept_by_every_output(tmp_path: Path) -> None:
    """`fit -o` replaced it, since its folder could be written."""
    lines, kept = CELLS / "timings.txt", tmp_path / "kept"
    model = tmp_path / "m.json"
    assert run("fit", lines, "-o", model).returncode == 0
    kept.write_text("x")
    kept.chmod(0o444)
    for words in (
        ("fit", lines, "-o", kept),
        ("fit", lines, "--report", kept),
        ("predict", model, lines, "-o", kept),
        ("sweep", CELLS, "--vary", "dilation=1,2", "-o", kept),
        ("merge", lines, "-o", kept, "--force"),
    ):
        with heeding_modes():
            done = run(*words)
        assert done.returncode != 0, words
        assert f"{kept}: cannot be written: Permission denied" in done.stderr
        assert kept.read_text() == "x"


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("out", ["rewrite", CELLS, "out", "--dilation", "2", "--force"]),
        ("model", ["fit", CELLS / "timings.txt", "-o", "model"]),
    ],
)
def test_what_another_user_has_in_a_sticky_folder_is_refused_before_the_work(
    out: str, words: list[str | Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rename failed in the end, when all the work had been done."""
    (tmp_path / "out").mkdir()
    (tmp_path / "model").write_text("theirs")
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    done = run(*words, cwd=tmp_path)
    problem = f"{out}: cannot be written: Operation not permitted"
    assert (done.returncode, done.stderr) == (1, f"rewritelog: error: {problem}\n")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["model", "out"]
    assert (tmp_path / "model").read_text() == "theirs"


@pytest.mark.slow
def test_a_name_of_any_length_in_a_model_file_is_read_back(tmp_path: Path) -> None:
    timings = write_timings(tmp_path / "t", *[("x" * 20_000, 1.0 + n, float(n)) for n in range(9)])
    assert run("fit", timings, "-o", tmp_path / "m.json").returncode == 0
    done = run("predict", tmp_path / "m.json", timings)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_settings_in_the_working_directory_steer_no_picture(tmp_path: Path) -> None:
    """matplotlib reads a file of this name from the working directory."""
    pytest.importorskip("matplotlib")
    plain, planted = tmp_path / "plain", tmp_path / "planted"
    for folder in (plain, planted):
        folder.mkdir()
    (planted / "matplotlibrc").write_text("savefig.dpi: 11\nfigure.facecolor: red\n")
    for folder in (plain, planted):
        done = started("timeline", CELLS, "-o", folder / "a.png", cwd=folder)
        assert done.returncode == 0, done.stderr
    assert (plain / "a.png").read_bytes() == (planted / "a.png").read_bytes()


def test_a_module_in_the_working_directory_is_not_imported(
    sample_logs: Path, tmp_path: Path
) -> None:
    for name in ("numpy", "typer", "construct", "yaml"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('planted')\n")
    logs = sample_logs / "cells"
    for words in (
        ["-m", "rewritelog", "info", logs],
        ["-Pm", "tracebigsim", "stats", logs / "timings.txt"],  # it becomes another command
    ):
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "planted" not in done.stderr
        assert done.returncode == 0
        (tmp_path / "rewritelog").mkdir(exist_ok=True)
        (tmp_path / "rewritelog" / "__init__.py").write_text("raise SystemExit('planted')\n")
