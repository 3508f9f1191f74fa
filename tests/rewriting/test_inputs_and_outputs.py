"""Inputs that outputs must not touch, and outputs that must not be lost."""

import errno
import hashlib
import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from chosen import by_tier
from commands import rewritelog
from faulty import SCRIPT, content
from logbuilder import bracket, seb, write_logs, write_params, write_timings
from users import heeding_modes

from rewritelog.commands.durations import RewriteOptions
from rewritelog.errors import OutputError, OutputWarning
from rewritelog.output.files import check_outputs, write_text_file
from rewritelog.rewriting.run import rewrite

TWICE = RewriteOptions(dilation=2)
AGAIN = RewriteOptions(dilation=2, force=True)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    timelines = [[seb(k, k + 1, events=bracket(0.2, 0.6)) for k in range(9)] for _ in range(4)]
    folder = write_logs(tmp_path / "in", timelines, files=2)
    for pe in range(4):
        write_params(folder, pe, (1, "k", 2))
    write_timings(tmp_path / "timings", ("k", 1.0, 1.0), ("k", 2.0, 2.0))
    return folder


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("kind", ["hard link", "long", "fifo", "symlink"])
def test_a_planted_lock_file_touches_no_input(kind: str, logs: Path, tmp_path: Path) -> None:
    before = content(logs)
    lock = tmp_path / ".out.rewritelog.lock"
    if kind == "hard link":
        os.link(logs / "bgTrace1", lock)
    elif kind == "long":
        lock.write_text("my notes, " * 200)
    elif kind == "fifo":
        os.mkfifo(lock)
    else:
        lock.symlink_to(logs / "bgTrace1")
    with pytest.raises(OutputError, match=r"out\.rewritelog\.lock"):
        rewrite(logs, tmp_path / "out", TWICE)
    assert content(logs) == before
    assert os.path.lexists(lock)


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("name", ["bgTrace1", "report.json", "deep/report.json"])
def test_a_report_within_out_is_refused(
    name: str, exists: bool, logs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    if exists:
        rewrite(logs, out, TWICE)
    before = content(out)
    done = rewritelog("rewrite", logs, out, "--dilation", 2, "--force", "--report", out / name)
    assert done.returncode == 1
    assert "which is the output folder" in done.stderr
    assert content(out) == before


REPORT_PLACES = {
    "missing folder": "nowhere/report.json",
    "folder": "in",
    "file as folder": "timings/report.json",
    "long name": "r" * 300,
}


@pytest.mark.parametrize("where", REPORT_PLACES)
def test_a_report_that_cannot_be_written_is_known_before_the_work(
    where: str, logs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    report = tmp_path / REPORT_PLACES[where]
    done = rewritelog("rewrite", logs, out, "--dilation", 2, "--report", report)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert not out.exists()
    assert names(tmp_path) == {"in", "timings"}


def test_a_long_name_of_an_output_has_room_for_what_stands_beside_it(
    logs: Path, tmp_path: Path
) -> None:
    out = tmp_path / ("o" * 250)
    rewrite(logs, out, TWICE)
    rewrite(logs, out, AGAIN)
    write_text_file(tmp_path / ("é" * 125), "{}")
    assert names(tmp_path) == {"in", "timings", "o" * 250, "é" * 125}


@pytest.mark.parametrize("stdout", ["a pipe", "a file"])
@pytest.mark.parametrize(
    "name",
    by_tier(["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"], ["link"], ["/dev/stdout"]),
)
def test_a_report_to_standard_output_is_written_and_replaces_nothing(
    name: str, stdout: str, logs: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("/dev/stdout")
    words: list[str | Path] = [SCRIPT, "info", logs, "--report", tmp_path / name]
    if stdout == "a pipe":
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        printed = done.stdout
    else:
        kept = tmp_path / "kept"
        kept.write_text("before\n")
        with kept.open("a") as stream:
            number = kept.stat().st_ino
            subprocess.run(words, stdout=stream, check=True)
        printed = kept.read_text()
        assert kept.stat().st_ino == number
        assert printed.startswith("before\n")
    assert "little-endian" in printed
    assert printed.rstrip().endswith("}")
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
@pytest.mark.parametrize("linked", [False, True])
def test_a_file_or_folder_that_is_replaced_keeps_its_mode(
    mode: int, linked: bool, logs: Path, tmp_path: Path
) -> None:
    report, out = tmp_path / "report", tmp_path / "out"
    written = tmp_path / "linked" if linked else report
    if linked:
        report.symlink_to(written)
    for path, some in ((written, mode), (out, mode | 0o700)):
        path.touch() if path == written else path.mkdir()
        path.chmod(some)
    done = rewritelog("rewrite", logs, out, "--dilation", 2, "--report", report)
    assert done.returncode == 0, done.stderr
    assert len(written.read_text()) > 1000
    assert stat.S_IMODE(written.stat().st_mode) == mode
    assert stat.S_IMODE(out.stat().st_mode) == (mode | 0o700) & ~umask()


def test_a_folder_that_is_replaced_keeps_its_group(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    out.chmod(0o2775)
    assert rewritelog("rewrite", logs, out, "--dilation", 2).returncode == 0
    assert out.stat().st_mode & stat.S_ISGID


@pytest.mark.slow
def test_provenance_tells_model_files_apart(sample_logs: Path, tmp_path: Path) -> None:
    logs, model, digests = sample_logs / "cells", tmp_path / "m.json", []
    for number, share in enumerate(("1", "0.5")):
        words = ("--model", "sampled", "--fraction", share, "-o", model)
        assert rewritelog("fit", logs / "timings.txt", *words).returncode == 0
        assert (
            rewritelog("rewrite", logs, tmp_path / f"{number}", "--fitted", model).returncode == 0
        )
        provenance = json.loads((tmp_path / f"{number}" / "rewritelog.json").read_text())
        digests.append(provenance["sha256"]["model_file"])
        assert digests[-1] == hashlib.sha256(model.read_bytes()).hexdigest()
    assert digests[0] != digests[1]


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    write_text_file(tmp_path / "new", "text")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o666 & ~umask()


def umask() -> int:
    old = os.umask(0o022)
    os.umask(old)
    return old


def test_an_output_that_is_a_pipe_is_written_to_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        check_outputs([tmp_path / "pipe"], [])
        write_text_file(tmp_path / "pipe", "text")
        assert reader.communicate()[0] == b"text"
    assert (tmp_path / "pipe").is_fifo()


def test_a_companion_that_links_out_of_its_folder_is_not_copied(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key")
    (logs / "real.sts").write_text("PROJECTIONS")
    (logs / "near.sts").symlink_to("real.sts")
    (logs / "far.sts").symlink_to("../secret")
    (logs / "param.3").unlink()
    (logs / "param.3").symlink_to(tmp_path / "secret")
    done = rewritelog("rewrite", logs, tmp_path / "out", "--dilation", 2, "--copy-params")
    assert done.returncode == 0
    for name in ("far.sts", "param.3"):
        assert (
            f"warning: {logs / name} is a link to a file outside of the log folders" in done.stderr
        )
    copied = {"bgTrace", "bgTrace0", "bgTrace1", "real.sts", "near.sts"}
    written = {path.name for path in (tmp_path / "out").iterdir() if path.name != "rewritelog.json"}
    assert written == copied | {"param.0", "param.1", "param.2"}
    assert all("key" not in path.read_text("latin-1") for path in (tmp_path / "out").iterdir())


def test_a_read_only_folder_in_an_old_output_does_not_stay(tmp_path: Path) -> None:
    write_logs(tmp_path / "in", [[seb(0, 1)]])
    (tmp_path / "out/sub/deeper").mkdir(parents=True)
    (tmp_path / "out/sub/file").write_text("x")
    (tmp_path / "out/sub/deeper").chmod(0)
    (tmp_path / "out/sub").chmod(0o555)
    with heeding_modes():
        rewrite(tmp_path / "in", tmp_path / "out", AGAIN)
        assert names(tmp_path) == {"in", "out"}
        rewrite(tmp_path / "in", tmp_path / "out", AGAIN)


def test_a_signal_during_the_trial_of_a_report_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = os.open

    def interrupted(*args: Any, **more: Any) -> None:
        os.close(plain(*args, **more))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", interrupted)
        with pytest.raises(KeyboardInterrupt):
            check_outputs([tmp_path / "report.json"], [])
    assert not list(tmp_path.iterdir())


def failing_after(monkeypatch: pytest.MonkeyPatch, function: str, when: Any) -> None:
    """Make a function of `os` fail once the condition holds."""
    plain = getattr(os, function)

    def fails(*args: Any, **more: Any) -> Any:
        if when(*args):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return plain(*args, **more)

    monkeypatch.setattr(os, function, fails)


def test_an_old_set_that_cannot_be_removed_is_a_warning(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite(logs, tmp_path / "out", RewriteOptions(dilation=3))
    with monkeypatch.context() as patched:
        failing_after(patched, "unlink", lambda path, *_: str(path).endswith("bgTrace1"))
        with pytest.warns(OutputWarning, match=r"old folder .*could not be removed.*by hand"):
            rewrite(logs, tmp_path / "out", AGAIN)
    rewrite(logs, tmp_path / "other", TWICE)
    assert content(tmp_path / "out") == content(tmp_path / "other")
    assert len(names(tmp_path)) == 5
    rewrite(logs, tmp_path / "out", AGAIN)
    assert names(tmp_path) == {"in", "timings", "out", "other"}


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_that_cannot_be_flushed_after_the_rename_is_a_warning(
    force: bool, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    if force:
        rewrite(logs, out, RewriteOptions(dilation=3))
    renamed = [out.stat().st_ino if force else 0]

    def after(*_args: Any) -> bool:
        return out.exists() and out.stat().st_ino != renamed[0]

    failing_after(monkeypatch, "fsync", after)
    with pytest.warns(OutputWarning, match="is written, but a power cut may undo it"):
        rewrite(logs, out, AGAIN)
    assert names(tmp_path) == {"in", "timings", "out"}


def test_a_lock_that_cannot_be_removed_is_a_warning(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        failing_after(patched, "unlink", lambda path, *_: str(path).endswith(".lock"))
        with pytest.warns(OutputWarning, match="lock .* could not be removed"):
            rewrite(logs, tmp_path / "out", TWICE)
    assert (tmp_path / "out/bgTrace").exists()
    rewrite(logs, tmp_path / "out", AGAIN)
    assert names(tmp_path) == {"in", "timings", "out"}
