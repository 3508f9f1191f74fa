"""`rewritelog check` as a user runs it: what it prints, and its exit codes."""

import json
import re
import struct
from functools import partial
from pathlib import Path

import commands
import pytest
from logbuilder import message, seb, write_logs

run = partial(commands.rewritelog, "check")


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    late = [message(0.5, 0.25, msg_id=k) for k in range(7)]
    odd = [message(0.5), message(0.5)]
    return write_logs(tmp_path / "in", [[seb(0, 1, messages=late)], [seb(0, 1, messages=odd)]])


def test_a_sound_log(sample_logs: Path) -> None:
    done = run(sample_logs / "cells")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"{sample_logs / 'cells'}: log version 6, little-endian, 16 PEs, 676 SEBs, "
        "80 param records\nnothing found\n"
    )


def test_findings_the_worst_first_and_the_first_few(broken: Path) -> None:
    done = run(broken / "bgTrace")
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert lines[1].startswith("would stop the simulator: recv-before-send: No message arrives")
    assert lines[2].startswith(
        f"  {broken / 'bgTrace0'}, byte 137, PE 0, SEB 0: message 0: recvTime"
    )
    assert lines[7] == "  and 2 more"
    assert lines[8].startswith("odd: message-number: ")
    assert lines[-1] == "findings: 7 would stop the simulator; 1 odd"


def test_json(broken: Path) -> None:
    done = run(broken, "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["format"] == "bgTrace logs"
    assert report["sound"] is False
    assert report["counts"] == {"stop": 7, "mislead": 0, "odd": 1}
    first, second = report["findings"]
    assert (first["rule"], first["severity"], first["count"]) == ("recv-before-send", "stop", 7)
    assert len(first["shown"]) == 5
    assert first["shown"][1] == {
        "file": str(broken / "bgTrace0"),
        "offset": 171,
        "pe": 0,
        "seb": 0,
        "field": None,
        "message": "message 1: recvTime 0.25 s is before sendTime 0.5 s",
    }
    assert second["rule"] == "message-number"


def test_what_is_only_odd_is_no_failure(tmp_path: Path) -> None:
    twice = [message(0.5), message(0.5)]
    done = run(write_logs(tmp_path / "in", [[seb(0, 1, messages=twice)]]))
    assert done.returncode == 0
    assert done.stdout.endswith("findings: 1 odd\n")


def test_a_torn_summary_is_a_finding_and_no_error(sample_logs: Path, tmp_path: Path) -> None:
    (tmp_path / "bgTrace").write_bytes((sample_logs / "cells/bgTrace").read_bytes()[:17])
    done = run(tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "summary" in done.stdout
    assert "not checked: the timelines" in done.stdout


def test_names_cannot_command_a_terminal(tmp_path: Path) -> None:
    folder = write_logs(tmp_path / "\x1b[31m\nred", [[seb(0, 1)]])
    (folder / "param.0").write_text(
        "9 TRACEBIGSIM: event:{ \x1b]0;owned\x07 } params:{ 1 }\n9 TRACEBIGSIM: \x1b[2J\n"
        "9 TRACEBIGSIM: event:{ \u202eowned } params:{ 1 }\n"
    )
    for flags in ([], ["--json"]):
        done = run(folder, *flags)
        assert done.returncode == 1
        assert done.stdout.replace("\n", "").isprintable()
        assert "owned" in done.stdout


def test_explain_and_the_list_of_rules() -> None:
    listed = commands.rewritelog("rules")
    assert listed.returncode == 0
    names = re.findall("^  (\\S+)", listed.stdout, re.MULTILINE)
    assert max(map(len, listed.stdout.splitlines())) <= 80
    assert {"recv-before-send", "dependency-cycle", "log-version", "marks"} <= set(names)
    protected = {
        "log-version": "The version is in the summary only",
        "marks": "The simulator ignores",
    }
    for name, why in protected.items():
        explained = commands.rewritelog("rules", name).stdout
        assert explained.startswith(f"{name} (")
        assert f"\n{why}" in explained
    unknown = commands.rewritelog("rules", "nonsense")
    assert unknown.returncode == 2
    assert "unknown rule 'nonsense'; the rules are unreadable" in unknown.stderr


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        ([], 2, "missing argument 'LOGS'"),
        (["nowhere"], 1, "nowhere: does not exist"),
        ([".", "--jobs", "-1"], 2, "--jobs"),
    ],
)
def test_wrong_usage(args: list[str], code: int, error: str) -> None:
    done = run(*args)
    assert done.returncode == code
    assert error in done.stderr
    assert "Traceback" not in done.stderr


def test_a_params_folder_that_is_not_there(broken: Path, tmp_path: Path) -> None:
    done = run(broken, "--params", tmp_path / "none")
    assert done.returncode == 1
    assert "none: does not exist" in done.stderr


def test_jobs_name_the_version_that_fits(sample_logs: Path, tmp_path: Path) -> None:
    for path in (sample_logs / "cells-version-3").glob("bgTrace*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    summary = bytearray((tmp_path / "bgTrace").read_bytes())
    summary[52:56] = struct.pack("<i", 5)
    (tmp_path / "bgTrace").write_bytes(summary)
    for words in (("rewrite", tmp_path, "--dry-run"), ("info", tmp_path), ("replay", tmp_path)):
        done = commands.rewritelog(*words)
        assert done.returncode == 1
        assert "the summary says log version 5, but the timelines fit version 3" in done.stderr
