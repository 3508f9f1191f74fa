"""The output folder: whole or not there, and never at the cost of an input."""

import itertools
import os
import pkgutil
from pathlib import Path
from typing import Any

import pytest
from logbuilder import seb, write_logs, write_params
from watching import watched_rewrite

import rewritelog
from rewritelog.commands.durations import RewriteOptions
from rewritelog.errors import OutputError, RewriteLogError
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
    assert names(tmp_path / "out") == {
        "bgTrace", "bgTrace0", "p.sts", "p.0.log.gz", "rewritelog.json",
    }  # fmt: skip
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
    with pytest.raises(OutputError, match=r"not empty \(force=True"):
        rewrite(logs, tmp_path / "out", TWICE)
    assert names(tmp_path / "out") == {"mine"}


def test_force_replaces_the_old_set(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("x")
    rewrite(logs, tmp_path / "out", RewriteOptions(force=True))
    assert "mine" not in names(tmp_path / "out")
    assert names(tmp_path) == {"in", "out"}


@pytest.mark.parametrize("place", ["current", "home"])
def test_force_does_not_replace_the_folder_somebody_works_in(
    place: str, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out/deeper").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / ("out" if place == "home" else "in")))
    monkeypatch.chdir(tmp_path / ("out/deeper" if place == "current" else "in"))
    for options in (RewriteOptions(force=True), RewriteOptions(dilation=2, force=True)):
        with pytest.raises(OutputError, match=f"holds the {place} folder, and would"):
            rewrite(logs, tmp_path / "out", options)
    assert names(tmp_path / "out") == {"deeper"}


def test_the_empty_folder_somebody_works_in_is_kept(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new folder of its name would leave the shell, and relative paths, in one that is gone."""
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    with pytest.raises(OutputError, match="is or holds the current folder, and would be replaced"):
        rewrite(logs, Path(), TWICE)
    assert names(Path()) == set()
    assert Path.cwd() == tmp_path / "out"


def test_an_output_within_a_deleted_current_folder_is_named(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was a bare FileNotFoundError without a name."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(OutputError, match="out: cannot be written: No such file or directory"):
        rewritelog.rewrite(logs, "out", dilation=2)


def test_force_keeps_the_old_set_where_the_rewrite_fails(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("x")
    (logs / "bgTrace0").write_bytes((logs / "bgTrace0").read_bytes()[:-1])
    with pytest.raises(RewriteLogError):
        rewrite(logs, tmp_path / "out", RewriteOptions(force=True))
    assert names(tmp_path / "out") == {"mine"}
    assert names(tmp_path) == {"in", "out"}


CALLS = {
    "exchanged": ("rewritelog.output.folders._exchange", 1),
    "moved aside": ("pathlib.Path.rename", 2),
    "moved in": ("pathlib.Path.rename", 3),
}


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_at_a_rename_leaves_the_old_set_or_the_new(
    call: str, done: bool, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("x")
    name, number = CALLS[call]
    if call != "exchanged":
        monkeypatch.setattr("rewritelog.output.folders._exchange", lambda *_names: False)
    interrupt_call(monkeypatch, name, number, done=done)
    with pytest.raises(KeyboardInterrupt):
        rewrite(logs, tmp_path / "out", RewriteOptions(force=True))
    new = done and call != "moved aside"
    assert ("bgTrace" in names(tmp_path / "out")) == new
    assert ("mine" in names(tmp_path / "out")) != new
    assert names(tmp_path) == {"in", "out"}


def interrupt_call(monkeypatch: pytest.MonkeyPatch, name: str, number: int, *, done: bool) -> None:
    """Raise as Ctrl-C does at the call of that number of a function, or just after it."""
    function = pkgutil.resolve_name(name)
    calls = itertools.count(1)

    def interrupted(*args: Any) -> Any:
        if next(calls) != number:
            return function(*args)
        if done:
            function(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(name, interrupted)


def test_a_file_system_without_exchange_is_served_too(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("x")
    monkeypatch.setattr("rewritelog.output.folders._exchange", lambda *_names: False)
    rewrite(logs, tmp_path / "out", RewriteOptions(force=True))
    assert "bgTrace" in names(tmp_path / "out")
    assert names(tmp_path) == {"in", "out"}


def test_files_that_appear_while_it_runs_are_kept(logs: Path, tmp_path: Path) -> None:
    def appear(_done: int, _total: int) -> None:
        (tmp_path / "out").mkdir(exist_ok=True)
        (tmp_path / "out/mine").write_text("x")

    with pytest.raises(OutputError, match=r"not empty \(force=True"):
        watched_rewrite(logs, tmp_path / "out", TWICE, appear)
    assert names(tmp_path / "out") == {"mine"}
    assert names(tmp_path) == {"in", "out"}


def test_the_input_is_never_the_output(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(logs)
    for out in (logs, tmp_path / "link", logs / "../in", tmp_path):
        with pytest.raises(OutputError, match="would replace its own input"):
            rewritelog.rewrite(logs, out, force=True)
    assert "bgTrace0" in names(logs)


@pytest.mark.parametrize("out", ["/", "loop"])
def test_a_place_that_can_be_no_folder_is_refused(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    with pytest.raises(OutputError, match=r"cannot be the output folder|is not a folder"):
        rewritelog.synth(Path(out), pes=1, files=1, sebs=1, force=True)
    assert names(tmp_path) == {"loop"}


def test_files_that_the_input_links_to_are_never_replaced(logs: Path, tmp_path: Path) -> None:
    logs.rename(tmp_path / "store")
    logs.mkdir()
    for path in (tmp_path / "store").iterdir():
        (logs / path.name).symlink_to(path)
    for out in (tmp_path / "store", tmp_path):
        with pytest.raises(OutputError, match="would replace its own input"):
            rewritelog.rewrite(logs, out, force=True)
    rewrite(logs, tmp_path / "out", TWICE)
    assert "bgTrace0" in names(tmp_path / "store")


def test_an_output_that_is_a_link_keeps_it(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/mine").write_text("x")
    (tmp_path / "out").symlink_to("elsewhere")
    rewrite(logs, tmp_path / "out", RewriteOptions(force=True))
    assert (tmp_path / "out").is_symlink()
    assert "bgTrace" in names(tmp_path / "elsewhere")
    assert names(tmp_path) == {"in", "out", "elsewhere"}


def test_params_and_timings_are_inputs_too(logs: Path, tmp_path: Path) -> None:
    other = tmp_path / "params"
    other.mkdir()
    timings = other / "timings"
    timings.write_text("TRACEBIGSIM: event:{ k } time:{ 1 } params:{ 1 }\n")
    options: dict[str, Any] = {"timings": timings, "params": other, "force": True}
    with pytest.raises(OutputError, match="would replace its own input"):
        rewritelog.rewrite(logs, other, model="least-squares", **options)
    assert timings.exists()


def test_files_that_timings_and_models_at_hand_were_read_from_are_inputs(
    logs: Path, tmp_path: Path
) -> None:
    """The output replaced the folder with the user's measurements, or the model file."""
    other = tmp_path / "other"
    other.mkdir()
    lines, file = other / "timings", other / "m.json"
    lines.write_text("TRACEBIGSIM: event:{ k } time:{ 1 } params:{ 1 }\n")
    timings = rewritelog.read_timings(lines)
    rewritelog.fit(timings, "least-squares").save(file)
    fitted = rewritelog.load_model(file)
    inputs: list[dict[str, Any]] = [{"timings": timings}, {"fitted": fitted}, {"model": fitted}]
    for options in inputs:
        with pytest.raises(OutputError, match="would replace its own input"):
            rewritelog.rewrite(logs, other, force=True, **options)
    assert names(other) == {"timings", "m.json"}
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"event": "k", "inputs": [1, 2, 4, 8], "seconds": [1, 2, 4, 8]})
    rewritelog.rewrite(logs, tmp_path / "out", timings=frame)


def test_a_file_in_the_way_is_named(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(OutputError, match="is not a folder"):
        rewrite(logs, tmp_path / "out", RewriteOptions(force=True))


def test_ctrl_c_leaves_nothing(logs: Path, tmp_path: Path) -> None:
    def interrupt(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watched_rewrite(logs, tmp_path / "out", TWICE, interrupt)
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


def test_a_companion_that_cannot_be_copied_is_named(logs: Path, tmp_path: Path) -> None:
    os.mkfifo(logs / "pipe.sts")
    with pytest.raises(RewriteLogError, match=r"pipe\.sts: not a regular file, but a pipe"):
        rewrite(logs, tmp_path / "out", TWICE)
    assert names(tmp_path) == {"in"}


def test_the_report_alone_writes_nothing(logs: Path, tmp_path: Path) -> None:
    report = rewrite(logs, None, TWICE)
    assert report.out is None
    assert names(tmp_path) == {"in"}
