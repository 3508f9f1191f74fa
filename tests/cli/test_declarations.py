"""One declaration a command: the command line, Python and the pages say the same."""

from __future__ import annotations

import ast
import inspect
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import rewritelog as run
from oracle import SAMPLE_LOGS

import rewritelog
from rewritelog import commands
from rewritelog.commands.logs import ConvertCommand, SynthCommand
from rewritelog.formats.bgtrace.declaration import LOG_VERSIONS
from rewritelog.replaying import replay, run_time

CELLS = SAMPLE_LOGS / "cells"
FUNCTIONS = [name for name in commands.NAMES if name.replace("-", "_") in rewritelog.__all__]


@pytest.mark.parametrize("command", FUNCTIONS)
def test_a_function_refuses_an_option_that_its_command_does_not_have(command: str) -> None:
    function: Any = getattr(rewritelog, command.replace("-", "_"))
    declared = list(inspect.signature(function).parameters)
    with pytest.raises(rewritelog.UsageTypeError, match=f"^{function.__name__}: .*'optoin'"):
        function(**dict.fromkeys(declared), optoin=1)


def test_a_value_that_is_no_choice_is_refused_from_python_and_on_the_command_line() -> None:
    public: Any = rewritelog
    for options, problem in (
        ({"recv": "drop"}, "recv must be 'shift' or 'keep', not 'drop'"),
        ({"total": "loud"}, "total must be 'measured' or 'typical', not 'loud'"),
        ({"spread": "all"}, "spread must be 'none' or 'residual', not 'all'"),
    ):
        with pytest.raises(rewritelog.UsageError, match=problem):
            public.rewrite(CELLS, **options)
    done = run("rewrite", CELLS, "--dry-run", "--recv", "drop")
    assert done.returncode == 2
    assert "--recv must be 'shift' or 'keep', not 'drop'" in done.stderr


def test_models_say_when_to_choose_them_and_which_options_they_have() -> None:
    listed = run("models")
    assert listed.returncode == 0
    for name in ("auto", "constant", "counters", "least-squares", "sampled"):
        assert f"\n{name} " in f"\n{listed.stdout}"
        assert "Choose it " in run("models", name).stdout
    description = run("models", "least-squares").stdout
    assert "  --basis quadratic|linear\n" in description
    assert "[default: squares]" in " ".join(description.split())
    unknown = run("models", "nonsense")
    assert unknown.returncode == 2
    assert "unknown model 'nonsense'" in unknown.stderr


def test_options_of_models_are_in_no_command_s_help_and_all_take_them() -> None:
    for command in ("rewrite", "fit", "compare", "replay"):
        assert "--basis" not in run(command, "--help-all").stdout
    words = ("rewrite", CELLS, "--dry-run", "--timings", CELLS / "timings.txt", "--dilation", "1")
    done = run(*words, "-v", "--model", "least-squares", "--basis", "linear", "--loss=huber")
    assert done.returncode == 0
    assert "basis linear" in done.stdout
    twice = run(*words, "--loss", "huber", "--model-option", "loss=squares")
    assert twice.returncode == 2
    assert "--model-option loss is given more than once" in twice.stderr


def test_what_is_left_out_of_the_help_is_counted_and_listed() -> None:
    usual, everything = (run("rewrite", flag).stdout for flag in ("--help", "--help-all"))
    assert "--copy-params" not in usual
    assert "--copy-params" in everything
    left_out = sum(line.startswith("  -") for line in everything.splitlines()) - sum(
        line.startswith("  -") for line in usual.splitlines()
    )
    assert f"--help-all shows {left_out} more options." in usual


def test_nothing_but_the_public_interface_of_typer_is_imported() -> None:
    for path in Path(rewritelog.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.split(".")[0] not in {"pydantic", "click"}, path
                assert not name.startswith("typer.") or name == "typer.core", path


def test_a_command_starts_without_pydantic() -> None:
    code = (
        "import sys; from rewritelog.cli import app; code = app.run();"
        "sys.exit(code or 'pydantic' in sys.modules)"
    )
    words = ("rewrite", CELLS, "--dry-run", "--dilation=2", "-v")
    subprocess.run([sys.executable, "-c", code, *words], check=True, stdout=subprocess.DEVNULL)


def test_log_versions_to_write_are_those_of_the_format() -> None:
    for command in (ConvertCommand, SynthCommand):
        (declared,) = [each for each in command.own() if each.field == "log_version"]
        assert (declared.least, declared.most) == (LOG_VERSIONS[0], LOG_VERSIONS[-1])


@pytest.mark.parametrize("words", [{"dilation": 1}, {"dilation": 2}])
def test_a_rewrite_that_changes_nothing_replays_once(
    words: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    replays = []

    def noted(*arguments: Any) -> Any:
        replays.append(arguments)
        return replay.run_time(*arguments)

    monkeypatch.setattr(run_time, "run_time", noted)
    report = rewritelog.rewrite(CELLS, **words)
    assert report.run_time is not None
    assert (report.run_time.before_s == report.run_time.after_s) == (words["dilation"] == 1)
    assert len(replays) == words["dilation"]


@pytest.mark.parametrize(
    "words",
    [
        ["info", "LOGS", "--report", "LOGS/timings.txt"],
        ["fit", "TIMINGS", "-o", "TIMINGS"],
        ["fit", "TIMINGS", "-o", "OUT", "--html", "OUT"],
        ["timeline", "LOGS", "-o", "LOGS/timings.txt"],
        ["replay", "LOGS", "--machine", "OUT.toml", "--report", "OUT.toml"],
        ["replay", "LOGS", "--write", "OUT", "--report", "OUT/report.json"],
        ["sweep", "LOGS", "--vary", "dilation=1,2", "-o", "OUT", "--report", "OUT"],
        ["lost-cycles", "LOGS", "--timings-out", "OUT", "--report", "OUT"],
        ["rewrite", "LOGS", "OUT", "--html", "OUT/page.html"],
    ],
)
def test_no_output_is_an_input_or_another_output(words: list[str], tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(CELLS, logs)
    (tmp_path / "out.toml").write_text('latency = "1us"\n')
    before = {path: path.read_bytes() for path in logs.glob("*.*")}
    places = {"LOGS": logs, "TIMINGS": logs / "timings.txt", "OUT": tmp_path / "out"}
    for name, path in places.items():
        words = [word.replace(name, str(path)) for word in words]
    done = run(*words)
    assert done.returncode == 1
    problems = ("would replace an input", "is given for two outputs", "which is the output folder")
    assert any(problem in done.stderr for problem in problems)
    assert {path: path.read_bytes() for path in logs.glob("*.*")} == before
    assert {path.name for path in tmp_path.iterdir()} == {"logs", "out.toml"}


@pytest.mark.parametrize(
    ("command", "job"),
    [
        (["replay", "LOGS", "--write", "OUT"], "replaying.run.replay_whole"),
        (["rewrite", "LOGS", "OUT"], "rewriting.run.rewrite"),
        (["export", "LOGS", "OUT", "--to", "goal", "--replayed"], "exporting.run.load_program"),
        (["convert", "LOGS", "OUT"], "converting.convert"),
    ],
)
def test_a_folder_that_exists_is_refused_before_the_work(
    command: list[str], job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worked(*_: object) -> None:
        raise AssertionError("it has begun")

    monkeypatch.setattr(f"rewritelog.{job}", worked)
    (tmp_path / "kept").write_text("x")
    places = {"LOGS": str(CELLS), "OUT": str(tmp_path)}
    done = run(*(places.get(word, word) for word in command))
    assert done.returncode == 1
    assert "exists and is not empty" in done.stderr
