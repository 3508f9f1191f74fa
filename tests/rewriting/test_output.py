"""The output folder: whole or not there, and never at the cost of an input."""

from pathlib import Path

import pytest
from logbuilder import seb, write_logs, write_params

from rewritelog.errors import OutputError, RewriteLogError
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.rewriting.run import rewrite

TWICE = RewriteOptions(dilation=2)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = write_logs(tmp_path / "in", [[seb(0, 1)]])
    write_params(folder, 0, (0, "k", 1))
    (folder / "p.sts").write_text("PROJECTIONS")
    (folder / "p.0.log.gz").write_bytes(b"\x1f\x8b")
    (folder / "notes.txt").write_text("not for a simulator")
    return folder


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_companions_of_a_simulator_are_copied(logs: Path, tmp_path: Path) -> None:
    rewrite(logs, tmp_path / "out", TWICE)
    assert names(tmp_path / "out") == {"bgTrace", "bgTrace0", "p.sts", "p.0.log.gz"}
    assert names(tmp_path) == {"in", "out"}


def test_params_are_copied_when_asked_for(logs: Path, tmp_path: Path) -> None:
    rewrite(logs, tmp_path / "out", RewriteOptions(copy_params=True))
    assert (tmp_path / "out/param.0").read_bytes() == (logs / "param.0").read_bytes()


def test_an_empty_folder_is_filled(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    rewrite(logs, tmp_path / "out", TWICE)
    assert "bgTrace" in names(tmp_path / "out")


def test_a_folder_with_something_in_it_is_kept(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("x")
    with pytest.raises(OutputError, match=r"not empty \(--force"):
        rewrite(logs, tmp_path / "out", TWICE)
    assert names(tmp_path / "out") == {"mine"}


def test_force_replaces_the_old_set(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("x")
    rewrite(logs, tmp_path / "out", RewriteOptions(force=True))
    assert "mine" not in names(tmp_path / "out")
    assert names(tmp_path) == {"in", "out"}


def test_force_keeps_the_old_set_where_the_rewrite_fails(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("x")
    (logs / "bgTrace0").write_bytes((logs / "bgTrace0").read_bytes()[:-1])
    with pytest.raises(RewriteLogError):
        rewrite(logs, tmp_path / "out", RewriteOptions(force=True))
    assert names(tmp_path / "out") == {"mine"}
    assert names(tmp_path) == {"in", "out"}


@pytest.mark.parametrize("call", [1, 2, 3])
@pytest.mark.parametrize("done", [False, True])
def test_ctrl_c_at_a_rename_leaves_the_old_set_or_the_new(
    call: int, done: bool, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("x")
    calls, rename = [], Path.rename

    def interrupted(path: Path, to: Path) -> Path:
        calls.append(path)
        if len(calls) != call:
            return rename(path, to)
        if done:
            rename(path, to)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", interrupted)
    if call < 3:
        with pytest.raises(KeyboardInterrupt):
            rewrite(logs, tmp_path / "out", RewriteOptions(force=True))
    else:
        rewrite(logs, tmp_path / "out", RewriteOptions(force=True))
    new = (call, done) in ((2, True), (3, False), (3, True))
    assert ("bgTrace" in names(tmp_path / "out")) == new
    assert ("mine" in names(tmp_path / "out")) != new
    assert names(tmp_path) == {"in", "out"}


def test_the_input_is_never_the_output(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(logs)
    for out in (logs, tmp_path / "link", logs / "../in", tmp_path):
        with pytest.raises(OutputError, match="would replace its own input"):
            rewrite(logs, out, RewriteOptions(force=True))
    assert "bgTrace0" in names(logs)


def test_params_and_timings_are_inputs_too(logs: Path, tmp_path: Path) -> None:
    other = tmp_path / "params"
    other.mkdir()
    timings = other / "timings"
    timings.write_text("TRACEBIGSIM: event:{ k } time:{ 1 } params:{ 1 }\n")
    options = RewriteOptions("least-squares", timings=(timings,), params=other, force=True)
    with pytest.raises(OutputError, match="would replace its own input"):
        rewrite(logs, other, options)
    assert timings.exists()


def test_a_missing_parent_is_named(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="does not exist"):
        rewrite(logs, tmp_path / "no/out", TWICE)


def test_a_file_in_the_way_is_named(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(OutputError, match="is no folder"):
        rewrite(logs, tmp_path / "out", RewriteOptions(force=True))


def test_ctrl_c_leaves_nothing(logs: Path, tmp_path: Path) -> None:
    def interrupt(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rewrite(logs, tmp_path / "out", TWICE, interrupt)
    assert names(tmp_path) == {"in"}


def test_a_full_disk_is_a_clear_error(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)
    with pytest.raises(OutputError, match="out: cannot be written: No space left on device"):
        rewrite(logs, tmp_path / "out", TWICE)
    assert names(tmp_path) == {"in"}


def test_the_report_alone_writes_nothing(logs: Path, tmp_path: Path) -> None:
    report = rewrite(logs, None, TWICE)
    assert report.out is None
    assert names(tmp_path) == {"in"}
