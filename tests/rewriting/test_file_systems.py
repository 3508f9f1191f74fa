"""File systems that lack something, as sshfs and others in FUSE do."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faulty import content
from logbuilder import seb, write_logs

from rewritelog.commands.durations import RewriteOptions
from rewritelog.errors import OutputError
from rewritelog.output.files import write_text_file
from rewritelog.output.folders import check_new_folder, new_folder
from rewritelog.rewriting.run import rewrite

TWICE = RewriteOptions(dilation=2)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return write_logs(tmp_path / "in", [[seb(k, k + 1) for k in range(5)] for _ in range(2)])


def refuses(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, number: int, when: Callable[..., bool]
) -> None:
    """Let a function fail with an errno on some arguments."""
    plain = getattr(owner, name)

    def refusing(*args: Any, **more: Any) -> Any:
        if when(*args):
            raise OSError(number, os.strerror(number))
        return plain(*args, **more)

    monkeypatch.setattr(owner, name, refusing)


def is_folder(descriptor: int) -> bool:
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS])
def test_folders_that_cannot_be_flushed_are_written(
    number: int, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite(logs, tmp_path / "flushed", TWICE)
    refuses(monkeypatch, os, "fsync", number, is_folder)
    rewrite(logs, tmp_path / "out", TWICE)
    assert content(tmp_path / "out") == content(tmp_path / "flushed")


def onto_folder(_path: Path, target: Path) -> bool:
    return target.is_dir()


@pytest.mark.parametrize("exchanges", [False, True])
@pytest.mark.parametrize(("old", "number"), [("nothing", errno.EEXIST), ("a set", errno.EPERM)])
def test_a_folder_is_replaced_where_none_is_renamed_over_another(
    old: str,
    number: int,
    exchanges: bool,
    logs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over sshfs, --force was refused: Operation not permitted."""
    out = tmp_path / "out"
    out.mkdir()
    if old == "a set":
        (out / "mine").write_text("x")
    refuses(monkeypatch, Path, "rename", number, onto_folder)
    if not exchanges:
        monkeypatch.setattr("rewritelog.output.folders._exchange", lambda *_names: False)
    rewrite(logs, out, RewriteOptions(dilation=2, force=old == "a set"))
    assert {path.name for path in out.iterdir()} == {"bgTrace", "bgTrace0", "rewritelog.json"}
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out"}


def test_a_mount_point_is_refused_before_the_work(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last rename failed: Device or resource busy."""
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.setattr(Path, "is_mount", lambda path: path == out)
    with pytest.raises(OutputError, match="out: is a mount point"):
        check_new_folder(out, [logs])


def test_a_folder_of_a_lower_layer_stays_and_the_error_says_what_to_do(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine").write_text("x")
    refuses(monkeypatch, Path, "rename", errno.EXDEV, lambda *paths: out in paths)
    monkeypatch.setattr("rewritelog.output.folders._exchange", lambda *_names: False)
    with pytest.raises(OutputError, match="lower layer of an overlay file system: remove it"):
        rewrite(logs, out, RewriteOptions(dilation=2, force=True))
    assert [path.name for path in out.iterdir()] == ["mine"]


def test_files_that_appear_are_kept_where_no_folder_is_renamed_over_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    refuses(monkeypatch, Path, "rename", errno.EPERM, onto_folder)
    with pytest.raises(OutputError, match="is not empty"), new_folder(out):
        (out / "mine").write_text("x")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [path.name for path in out.iterdir()] == ["mine"]


def test_a_lock_and_an_old_folder_are_removed_where_inode_numbers_change(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rewrite looked for ever for the file that it had locked; an empty folder stayed."""
    numbers, plain = iter(range(1, 100)), os.fstat

    def changing(descriptor: int) -> os.stat_result:
        status = list(plain(descriptor))
        status[stat.ST_INO] = -next(numbers)
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", changing)
    rewrite(logs, tmp_path / "out", TWICE)
    rewrite(logs, tmp_path / "out", RewriteOptions(dilation=3, force=True))
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out"}


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_files_and_folders_are_replaced_where_modes_cannot_be_set(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, out = tmp_path / "file", tmp_path / "out"
    file.write_text("old")
    out.mkdir()
    out.chmod(0o2777)
    for owner, name in ((os, "fchmod"), (Path, "chmod")):
        refuses(monkeypatch, owner, name, number, lambda *_args: True)
    write_text_file(file, "new")
    assert file.read_text() == "new"
    check_new_folder(out, [])
    with new_folder(out) as draft:
        (draft / "file").write_text("new")
    assert {path.name for path in tmp_path.iterdir()} == {"file", "out"}
