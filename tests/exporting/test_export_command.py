"""The command `rewritelog export`: what it takes, what it refuses, what it leaves behind."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import rewritelog as run
from logbuilder import bracket, message, seb, write_logs

import rewritelog
from rewritelog import open_logs
from rewritelog.commands.logs import Target
from rewritelog.progress import listening


def test_each_target_is_written_and_reported(sample_logs: Path, tmp_path: Path) -> None:
    files = {"chrome": "trace.json", "csv": "sebs.csv", "goal": "program.goal",
             "simgrid": "traces.txt"}  # fmt: skip
    for target, name in files.items():
        out = tmp_path / target
        done = run("export", sample_logs / "cells", out, "--to", target, "--json")
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert (report["to"], report["pes"]) == (target, 16)
        assert (out / name).stat().st_size > 0
        assert not [path for path in out.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        ([], 2, "missing option '--to'; choose from chrome, parquet, csv, goal, simgrid\n"),
        (["--to", "nothing"], 2, "nothing"),
        (["--to", "csv", "--pes", "99"], 2, "--pes 99: the PEs are 0 to 15"),
        (
            ["--to", "csv", "--from", "2", "--until", "1ms"],
            2,
            "--from 2 s is not before --until 0.001 s",
        ),
        (["--to", "goal", "--pes", "1"], 2, "cannot be combined with --to goal"),
        (["--to", "simgrid", "--from", "1"], 2, "cannot be combined with --to simgrid"),
        (["--to", "csv", "--replayed"], 2, "--replayed is for goal and simgrid, not for csv"),
        (["--to", "goal", "--latency", "1us"], 2, "a network is for --replayed"),
        (["--to", "csv", "--params", "nowhere"], 1, "nowhere: does not exist"),
    ],
)
def test_wrong_usage_leaves_nothing(
    args: list[str], code: int, error: str, sample_logs: Path, tmp_path: Path
) -> None:
    done = run("export", sample_logs / "cells", tmp_path / "out", *args)
    assert done.returncode == code
    assert error in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_standard_output_is_no_folder(sample_logs: Path) -> None:
    done = run("export", sample_logs / "cells", "-", "--to", "csv")
    assert done.returncode == 2
    assert "is a folder, and cannot be standard output" in done.stderr


def test_a_folder_cannot_command_the_terminal(sample_logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "red\x1b[31m"
    assert "red\\x1b[31m: 16 PEs" in rewritelog.export(sample_logs / "cells", out, to="csv").text()


def test_an_interval_without_sebs_is_told(sample_logs: Path, tmp_path: Path) -> None:
    words = ("export", sample_logs / "cells", tmp_path / "out", "--to", "chrome", "--from", "1s")
    assert "nothing runs between --from and --until" in run(*words).stderr


def test_out_is_replaced_only_when_asked(sample_logs: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/kept").touch()
    command = ["export", sample_logs / "cells", tmp_path / "out", "--to", "csv"]
    done = run(*command)
    assert (done.returncode, "--force replaces it" in done.stderr) == (1, True)
    assert run(*command, "--force").returncode == 0
    assert not (tmp_path / "out/kept").exists()


@pytest.mark.parametrize("target", ["chrome", "csv", "goal", "simgrid"])
def test_damaged_logs_leave_nothing(target: Target, tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "logs", [[seb(0, 1)], [seb(0, 1)]])
    raw = bytearray((logs / "bgTrace0").read_bytes())
    raw[-12:-8] = (-5).to_bytes(4, "little", signed=True)
    (logs / "bgTrace0").write_bytes(raw)
    done = run("export", logs, tmp_path / "out", "--to", target)
    assert done.returncode == 1
    assert "PE 1, SEB 0" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_parquet_without_pyarrow_says_what_to_install(
    sample_logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = run("export", sample_logs / "cells", tmp_path / "out", "--to", "parquet")
    assert done.returncode == 1
    assert "pip install 'rewritelog[parquet]'" in done.stderr


@pytest.mark.parametrize("target", ["chrome", "goal", "simgrid"])
def test_a_timeline_in_parts_gives_the_same_program(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[list[dict[str, Any]]] = [[], []]
    for step in range(8):
        cause = {"src_pe": 1 - step % 2, "msg_id": step - 1} if step else {}
        sent = message(10.0 * step + 1, msg_id=step, dst_node=1 - step % 2)
        own = {"messages": [sent], "events": bracket(0.5, 1.5), "backward": [*range(step // 2)]}
        lines[step % 2].append(seb(10.0 * step, 10.0 * step + 2, **own, **cause))
    logs = write_logs(tmp_path / "logs", lines)
    texts = []
    for part_bytes in (1 << 20, 200):
        monkeypatch.setattr("rewritelog.exporting.contents.PART_BYTES", part_bytes)
        monkeypatch.setattr("rewritelog.exporting.programs._PART_SEBS", part_bytes // 200)
        out = tmp_path / f"out{part_bytes}"
        rewritelog.export(logs, out, target)
        texts.append({path.name: path.read_text() for path in out.iterdir()})
    if target == "chrome":  # its events are in no order
        events = [json.loads(text["trace.json"])["traceEvents"] for text in texts]
        assert sorted(map(str, events[0])) == sorted(map(str, events[1]))
    else:
        assert texts[0] == texts[1]


@pytest.mark.parametrize("target", ["goal", "chrome", "simgrid"])
def test_warnings_count_what_has_no_counterpart(target: Target, tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "logs", [[seb(0, 1, src_pe=0, msg_id=5)]])
    done: Any = rewritelog.export(logs, tmp_path / "out", target)
    assert bool(done.warnings) == (target != "chrome")


def test_progress_counts_the_bytes_of_the_exported_pes(sample_logs: Path, tmp_path: Path) -> None:
    stages: list[tuple[str, int, int, str]] = []
    opened = open_logs(sample_logs / "cells")
    sizes = [opened.timeline_block(pe).size_bytes for pe in range(16)]
    with listening(lambda *stage: stages.append(stage)):
        rewritelog.export(opened, tmp_path / "out", "chrome", pes="3-5")
    assert stages[0] == ("exporting", 0, sum(sizes[3:6]), "bytes")
    assert ("exporting", sum(sizes[3:6]), sum(sizes[3:6]), "bytes") in stages
