"""Killed, crowded out, out of room: a rewrite is whole or not there, and says why not.

What takes longer than seconds is done by `python -m benchmarks.faults`: hundreds of moments, disks
of every size.
"""

import errno
import os
import pkgutil
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from blocks import in_blocks
from chosen import by_tier
from faulty import (
    HANGS_S,
    SCRIPT,
    Killing,
    Zygote,
    content,
    make_read_only,
    ran,
    small_disk,
    started,
)
from logbuilder import bracket, seb, write_logs, write_params, write_timings
from users import heeding_modes
from watching import watched_rewrite

import rewritelog
from rewritelog.commands.durations import RewriteOptions
from rewritelog.errors import OutputError, RewriteLogError
from rewritelog.output.folders import OutputLock
from rewritelog.rewriting.run import rewrite

TWICE = RewriteOptions(dilation=2)


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of some megabytes, whose timings are `timings.txt`."""
    folder = tmp_path_factory.mktemp("made") / "logs"
    rewritelog.synth(folder, pes=16, sebs=1500, files=4)
    return folder


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    timelines = [[seb(k, k + 1, events=bracket(0.2, 0.6)) for k in range(20)] for _ in range(4)]
    folder = write_logs(tmp_path / "in", timelines, files=2)
    for pe in range(4):
        write_params(folder, pe, *[(k, "k", k) for k in range(20)])
    write_timings(tmp_path / "timings", ("k", 1.0, 1.0), ("k", 2.0, 2.0), ("k", 4.0, 4.0))
    return folder


def fitted(folder: Path, **more: Any) -> RewriteOptions:
    return RewriteOptions(model="least-squares", timings=(folder / "timings",), **more)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# Killed


@pytest.mark.long
@pytest.mark.parametrize("replacing", [False, True])
def test_killed_at_random_moments_nothing_is_lost(
    replacing: bool, synthetic: Path, tmp_path: Path
) -> None:
    words = ("--model", "least-squares", "--timings", synthetic / "timings.txt")
    with Zygote(synthetic, synthetic / "timings.txt") as zygote:
        killing = Killing(synthetic, tmp_path / "work/out", words, zygote.start, replacing)
        outcomes = killing.run(10, seed=1 + replacing)
    assert (outcomes["lost"], outcomes["not run again"]) == (0, 0), outcomes


def killed_when(place: str, folder: Path, *, force: bool = False, before: str = "") -> None:
    """Rewrite `in` into `out` in a process that ends as by SIGKILL where it calls a function."""
    program = textwrap.dedent(f"""
        import os, pkgutil, signal, sys
        from pathlib import Path
        from unittest import mock
        from rewritelog.commands.durations import RewriteOptions
        from rewritelog.rewriting.run import rewrite
        {before}
        def die(*_args, **_more):
            os.kill(os.getpid(), signal.SIGKILL)
        with mock.patch({place!r}, die):
            rewrite("in", "out", RewriteOptions(dilation=2, force={force}))
    """)
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    "place",
    by_tier(
        ("os.pwrite", "os.pwritev", "os.fsync", "rewritelog.output.folders._replace"),
        ("os.pwritev",),
    ),
)
def test_what_a_killed_run_left_is_removed_by_the_next(
    place: str, logs: Path, tmp_path: Path
) -> None:
    killed_when(place, tmp_path)
    assert any(name.startswith(".out.rewritelog") for name in names(tmp_path))
    assert not (tmp_path / "out").exists()
    rewrite(logs, tmp_path / "out", TWICE)
    assert names(tmp_path) == {"in", "out", "timings"}


ASIDE = textwrap.dedent("""
        import rewritelog.output.folders as folders
        folders._exchange = lambda *_names: False
        renames, plain = [], Path.rename
        def rename(path, to):
            renames.append(path)
            if len(renames) == 3:
                die()
            return plain(path, to)
        Path.rename = rename
""").replace("\n", "\n        ")


def test_an_old_set_that_a_killed_run_had_set_aside_is_put_back(logs: Path, tmp_path: Path) -> None:
    """Only where the file system cannot exchange folders: there is a moment without `out`."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("x")
    killed_when("os.getpgid", tmp_path, force=True, before=ASIDE)
    assert not (tmp_path / "out").exists()
    with pytest.raises(OutputError, match="exists and is not empty"):
        rewrite(logs, tmp_path / "out", TWICE)
    assert names(tmp_path / "out") == {"mine"}
    rewrite(logs, tmp_path / "out", RewriteOptions(force=True))
    assert names(tmp_path) == {"in", "out", "timings"}


def test_a_stranger_beside_the_output_is_left_alone(logs: Path, tmp_path: Path) -> None:
    kept = {".out.rewritelog-notes", ".output.rewritelog-0123abcd", "out.rewritelog-0123abcd"}
    for name in kept:
        (tmp_path / name).mkdir()
    rewrite(logs, tmp_path / "out", TWICE)
    assert names(tmp_path) == {"in", "out", "timings", *kept}


@pytest.mark.parametrize("function", ["os.open", "fcntl.flock", "os.ftruncate", "os.pwrite"])
def test_ctrl_c_while_the_lock_is_taken_leaves_none(
    function: str, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = pkgutil.resolve_name(function)

    def interrupted(*args: Any, **more: Any) -> Any:
        done = plain(*args, **more)
        if function != "os.open" or str(args[0]).endswith(".lock"):
            monkeypatch.setattr(function, plain)
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(function, interrupted)
    with pytest.raises(KeyboardInterrupt):
        rewrite(logs, tmp_path / "out", TWICE)
    assert names(tmp_path) == {"in", "timings"}
    rewrite(logs, tmp_path / "out", TWICE)


# Two at a time


def test_a_second_rewrite_to_one_output_says_who_has_it(logs: Path, tmp_path: Path) -> None:
    refused: list[tuple[int, str]] = []

    def meanwhile(_done: int, _total: int) -> None:
        if not refused:
            refused.append(ran(["rewrite", logs, tmp_path / "out", "--dilation", "3"]))

    watched_rewrite(logs, tmp_path / "out", TWICE, meanwhile)
    ((code, errors),) = refused
    assert code == 1
    assert f"out: process {os.getpid()} on {os.uname().nodename} is writing it" in errors
    assert names(tmp_path) == {"in", "out", "timings"}


@pytest.mark.slow
def test_an_output_that_another_run_writes_is_known_before_the_fit(
    logs: Path, tmp_path: Path
) -> None:
    """A user waited for the whole fit to hear it."""
    (tmp_path / "empty").touch()
    timings = ("--timings", tmp_path / "empty")
    command: list[str | Path] = ["rewrite", logs, tmp_path / "out", *timings]
    with OutputLock(tmp_path / "out", tmp_path / ".out.rewritelog.lock"):
        code, errors = ran(command)
    assert (code, errors.count("is writing it")) == (1, 1)
    assert "empty: no timing line found" in ran(command)[1]


@pytest.mark.long
def test_of_rewrites_that_start_at_once_one_wins(synthetic: Path, tmp_path: Path) -> None:
    outputs = {}
    for factor in ("2", "3", "4"):
        rewrite(synthetic, tmp_path / factor, RewriteOptions(dilation=float(factor)))
        outputs[factor] = content(tmp_path / factor)
    running = {
        factor: started(["rewrite", synthetic, tmp_path / "out", "--dilation", factor, "--quiet"])
        for factor in outputs
    }
    errors = {
        factor: process.communicate(timeout=HANGS_S)[1] for factor, process in running.items()
    }
    (winner,) = [factor for factor, process in running.items() if process.returncode == 0]
    assert content(tmp_path / "out") == outputs[winner]
    for factor in running.keys() - {winner}:
        assert re.search("is writing it|is not empty", errors[factor])
    assert names(tmp_path) == {"2", "3", "4", "out"}


def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)


@pytest.mark.parametrize("owner", ["living", "far away", "unsigned", "nonsense"])
def test_without_locks_the_file_of_another_run_is_named(
    owner: str, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_locks(monkeypatch)
    texts = {
        "living": f"{os.getppid()} {os.uname().nodename}",
        "far away": "7 \x1b[31mnode0815",
        "unsigned": "",
        "nonsense": "9" * 999,
    }
    left = tmp_path / ".out.rewritelog.lock"
    left.write_text(texts[owner])
    with pytest.raises(OutputError, match=r"is writing it, or was killed .*out\.rewritelog\.lock"):
        rewrite(logs, tmp_path / "out", TWICE)
    assert left.exists()
    assert not (tmp_path / "out").exists()


def test_a_file_that_nobody_has_locked_is_what_a_killed_run_left(
    logs: Path, tmp_path: Path
) -> None:
    (tmp_path / ".out.rewritelog.lock").write_text("7 another-host\n")
    rewrite(logs, tmp_path / "out", TWICE)
    assert names(tmp_path) == {"in", "out", "timings"}


# No room


@contextmanager
def disk_or_skip(folder: Path, size_bytes: int) -> Iterator[Path]:
    try:
        disk = small_disk(folder, size_bytes)
        mounted = disk.__enter__()
    except OSError as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    try:
        yield mounted
    finally:
        disk.__exit__(None, None, None)


@pytest.mark.parametrize("pages", by_tier([2, 3, 8, 100, 500], [2, 3, 8], [100, 500]))
def test_a_full_disk_leaves_nothing(pages: int, synthetic: Path, tmp_path: Path) -> None:
    with disk_or_skip(tmp_path / "disk", pages * 4096) as disk:
        with pytest.raises(OutputError, match="cannot be written: No space left on device"):
            rewrite(synthetic, disk / "out", RewriteOptions(dilation=2, copy_params=True))
        assert names(disk) == set()


@pytest.mark.slow
def test_a_full_disk_keeps_the_old_set(logs: Path, synthetic: Path, tmp_path: Path) -> None:
    with disk_or_skip(tmp_path / "disk", 1 << 20) as disk:
        rewrite(logs, disk / "out", TWICE)
        before = content(disk / "out")
        with pytest.raises(OutputError, match="No space left on device"):
            rewrite(synthetic, disk / "out", RewriteOptions(force=True))
        assert names(disk) == {"out"}
        assert content(disk / "out") == before


def test_a_report_that_does_not_fit_keeps_the_old_one(logs: Path, tmp_path: Path) -> None:
    with disk_or_skip(tmp_path / "disk", 8192) as disk:
        (disk / "report.json").write_text("{}")
        (disk / "filler").write_bytes(b"x" * 4096)
        words = ("rewrite", logs, tmp_path / "out", "--report", disk / "report.json")
        code, errors = ran(words)
        assert code == 1
        assert "report.json: cannot be written: No space left on device" in errors
        assert (disk / "report.json").read_text() == "{}"
        assert names(disk) == {"report.json", "filler"}


def test_a_read_only_file_system_is_named(logs: Path, tmp_path: Path) -> None:
    with disk_or_skip(tmp_path / "disk", 1 << 20) as disk:
        make_read_only(disk)
        with pytest.raises(OutputError, match="out: cannot be written: Read-only file system"):
            rewrite(logs, disk / "out", TWICE)


def test_a_limit_on_file_size_is_named(synthetic: Path, tmp_path: Path) -> None:
    """As a batch system sets it: SIGXFSZ, which must not end the process without a word."""
    done = subprocess.run(
        [
            "sh",
            "-c",
            'ulimit -f 100; exec "$@"',
            "sh",
            SCRIPT,
            "rewrite",
            synthetic,
            tmp_path / "out",
            "--dilation",
            "2",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "out: cannot be written: File too large" in done.stderr
    assert names(tmp_path) == set()


@pytest.mark.parametrize(
    ("function", "flush"),
    [
        ("os.pwritev", True),
        ("os.pwrite", False),
        ("os.fsync", True),
        ("os.ftruncate", True),
        ("os.open", True),
    ],
)
@pytest.mark.parametrize("number", [1, 2, 4])
def test_a_quota_that_is_hit_leaves_nothing(
    function: str,
    flush: bool,
    number: int,
    logs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain, calls = getattr(os, function[3:]), []

    def full(*args: Any, **more: Any) -> Any:
        written = function != "os.open" or ".rewritelog" in str(args[0])
        if written:
            calls.append(args)
        if written and len(calls) == number:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
        return plain(*args, **more)

    monkeypatch.setattr(function, full)
    if function == "os.ftruncate" and number > 1:
        return  # the lock alone is cut
    opened = in_blocks(logs, 1000)
    options = RewriteOptions(dilation=2, jobs=1, no_flush=not flush)
    with pytest.raises(OutputError, match="out: cannot be written: Disk quota exceeded"):
        rewrite(opened, tmp_path / "out", options)
    assert names(tmp_path) == {"in", "timings"}


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS])
def test_a_system_that_cannot_write_past_its_cache_writes_the_same(
    number: int, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As systems before Linux 6.14 and many file systems are."""
    opened = in_blocks(logs, 1000)
    rewrite(opened, tmp_path / "out", RewriteOptions(dilation=2))

    def refused(*_args: Any) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.pwritev", refused)
    rewrite(opened, tmp_path / "again", RewriteOptions(dilation=2))
    assert content(tmp_path / "again") == content(tmp_path / "out")


def test_a_write_that_the_system_cuts_short_goes_on(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite(logs, tmp_path / "out", RewriteOptions(dilation=2, no_flush=True))
    plain = os.pwritev

    def some(file: int, views: list[memoryview], *more: int) -> int:
        return plain(file, [views[0][:999]], *more)

    monkeypatch.setattr("os.pwritev", some)
    rewrite(logs, tmp_path / "again", RewriteOptions(dilation=2))
    assert content(tmp_path / "again") == content(tmp_path / "out")


# Inputs that go away or are no files


def after_the_first_block(change: Callable[[], None]) -> Callable[[int, int], None]:
    done: list[int] = []

    def progress(size: int, _total: int) -> None:
        if not done:
            change()
        done.append(size)

    return progress


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("bgTrace1", "removed"),
        ("bgTrace1", "cut"),
        ("bgTrace1", "emptied"),
        ("bgTrace1", "grown"),
        ("param.3", "removed"),
    ],
)
def test_a_file_that_goes_away_meanwhile_is_named(
    name: str, change: str, logs: Path, tmp_path: Path
) -> None:
    path = logs / name
    if name == "param.3":  # large, so that it is read in parts
        write_params(logs, 3, *[(k % 20, "k", k) for k in range(20, 40_000)])
    half = path.stat().st_size // 2
    changes: dict[str, Callable[[], None]] = {
        "removed": path.unlink,
        "cut": lambda: os.truncate(path, half),
        "emptied": lambda: os.truncate(path, 0),
        "grown": lambda: os.truncate(path, 4 * half),
    }
    options = fitted(tmp_path, jobs=1)
    progress = after_the_first_block(changes[change])
    with pytest.raises(RewriteLogError, match=re.escape(name)):
        watched_rewrite(in_blocks(logs, 700), tmp_path / "out", options, progress)
    assert names(tmp_path) == {"in", "timings"}


KINDS: dict[str, Callable[[Path], object]] = {
    "folder": Path.mkdir,
    "fifo": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "nowhere": lambda path: path.symlink_to("missing"),
    "loop": lambda path: path.symlink_to(path.name),
}


@pytest.fixture
def _alarm() -> Iterator[None]:
    """End a test that waits for a pipe's other end."""

    def ring(_signal: int, _frame: object) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(HANGS_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_alarm")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["bgTrace", "bgTrace1", "param.2", "../timings"])
def test_what_is_no_file_is_named_and_not_waited_for(
    name: str, kind: str, logs: Path, tmp_path: Path
) -> None:
    if (name, kind) == ("../timings", "fifo"):
        pytest.skip("timings may come through a pipe")
    (logs / name).unlink()
    KINDS[kind](logs / name)
    with pytest.raises(RewriteLogError, match=re.escape(name.removeprefix("../"))):
        rewrite(logs, tmp_path / "out", fitted(tmp_path))
    assert names(tmp_path) == {"in", "timings"}


@pytest.mark.parametrize("name", ["bgTrace", "bgTrace1", "param.2", "timings", "p.sts"])
def test_an_input_that_may_not_be_read_is_named(name: str, tmp_path: Path) -> None:
    folder = tmp_path
    timelines = [[seb(k, k + 1, events=bracket(0.2, 0.6)) for k in range(9)] for _ in range(4)]
    write_logs(folder / "in", timelines, files=2)
    for pe in range(4):
        write_params(folder / "in", pe, (1, "k", 2))
    (folder / "in/p.sts").write_text("PROJECTIONS")
    write_timings(folder / "timings", ("k", 1.0, 1.0), ("k", 2.0, 2.0))
    (folder / "in" / name if name != "timings" else folder / name).chmod(0)
    with (
        heeding_modes(),
        pytest.raises(RewriteLogError, match=f"{name}: (cannot be read: )?Permission denied"),
    ):
        rewrite(folder / "in", folder / "out", fitted(folder))
    assert names(folder) == {"in", "timings"}


def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    write_logs(tmp_path / "in", [[seb(0, 1)]])
    tmp_path.chmod(0o555)
    with (
        heeding_modes(),
        pytest.raises(OutputError, match="out: cannot be written: Permission denied"),
    ):
        rewrite(tmp_path / "in", tmp_path / "out", TWICE)


@pytest.mark.parametrize(
    "number", by_tier([signal.SIGINT, signal.SIGTERM], [signal.SIGTERM], [signal.SIGINT])
)
@pytest.mark.parametrize(
    "command", by_tier(["rewrite", "convert", "synth"], ["rewrite"], ["convert", "synth"])
)
def test_a_signal_while_threads_work_leaves_nothing(
    command: str, number: signal.Signals, synthetic: Path, tmp_path: Path
) -> None:
    words: dict[str, list[str | Path]] = {
        "rewrite": [synthetic, tmp_path / "out", "--dilation", "2"],
        "convert": [synthetic, tmp_path / "out", "--byte-order", "big"],
        "synth": [tmp_path / "out", "--pes", "64"],
    }
    process = started([command, *words[command]])
    while not any(name.startswith(".out.rewritelog-") for name in names(tmp_path)):
        if process.poll() is not None:
            pytest.skip("the command was done before the signal was sent")
        time.sleep(0.001)
    process.send_signal(number)
    process.communicate(timeout=HANGS_S)
    assert process.returncode in (0, -number, 128 + number)
    assert names(tmp_path) <= {"out"}
