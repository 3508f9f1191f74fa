"""Names that a terminal, a JSON reader or a page would obey, in logs and of files: all are spelled.

Through the commands themselves, with everything that they print.
"""

import json
import os
import re
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import commands
import pytest
from logbuilder import bracket, mark, seb, write_logs, write_params, write_timings

SCRIPT = Path(sysconfig.get_path("scripts")) / "rewritelog"

ESCAPES = "\x1b[31m\x1b]0;title\x07\x9b2J\x7f\b\r\u202e<b>&\u2028"
"""Colours, a window's title, a clear screen, deletions, text that runs backwards, markup."""

OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What a terminal obeys, but for the end of a line."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    name = ESCAPES.encode()
    timeline = [
        seb(k, k + 1, name=name[3 * k : 3 * k + 20], events=bracket(0.2, 0.6)) for k in range(8)
    ]
    timeline.append(seb(9, 10, events=[mark(name + b"\0", 0.5), mark(b"startTraceBigSim\0", 0.6)]))
    logs = write_logs(folder / f"in{ESCAPES.replace('/', '')}", [timeline, []])
    event = "\x9b2J\u202e<b>&"  # the grammar refuses the others in an event's name
    write_params(logs, 0, *[(k, event, k) for k in range(6)], (6, "other" + event, 1))
    with (logs / "param.0").open("a", encoding="utf-8") as file:
        file.write(f"7 TRACEBIGSIM: event:{{ {ESCAPES} }} params:{{ x{ESCAPES} }}\n")
    (logs / f"p{ESCAPES}.sts").write_text("PROJECTIONS")
    timings = [(event, 0.1 * k, float(k), 2.0)[: 3 + k % 2] for k in range(8)]
    write_timings(folder / f"timings{ESCAPES}", *timings)
    with (folder / f"timings{ESCAPES}").open("a", encoding="utf-8") as file:
        file.write(f"TRACEBIGSIM: event:{{ {ESCAPES} }} time:{{ x{ESCAPES} }}\n")
    return folder


Printed = Callable[[list[str]], tuple[str, str]]


@pytest.fixture
def printed(folder: Path) -> Printed:
    """What a command prints."""
    logs = str(next(path for path in folder.iterdir() if path.name.startswith("in")))

    def printed(words: list[str]) -> tuple[str, str]:
        words = [logs if word == "LOGS" else word for word in words]
        done = commands.rewritelog(*words, cwd=folder)
        return done.stdout, done.stderr

    return printed


FIT = ["--model", "least-squares", "--timings", f"timings{ESCAPES}"]

COMMANDS = {
    "rewrite": ["rewrite", "LOGS", "--dry-run", *FIT, "--dilation-for", f"{ESCAPES}=2"],
    "a torn line, strict": ["rewrite", "LOGS", "--dry-run", "--strict", *FIT],
    "a folder that is not there": ["rewrite", "LOGS", f"no{ESCAPES}/out"],
    "its traceback": ["--debug", "rewrite", "LOGS", f"no{ESCAPES}/out"],
    "info": ["info", "LOGS"],
    "info --json": ["info", "LOGS", "--json"],
    "dump": ["dump", "LOGS", "--pe", "0"],
    "dump --json": ["dump", "LOGS", "--pe", "0", "--json"],
    "check": ["check", "LOGS"],
    "check --json": ["check", "LOGS", "--json"],
    "diff": ["diff", "LOGS", "LOGS"],
    "diff --json": ["diff", "LOGS", "LOGS", "--json"],
    "convert": ["convert", f"no{ESCAPES}", "out"],
    "wrong usage": ["info", "LOGS", f"extra{ESCAPES}"],
    "no such command": [f"none{ESCAPES}"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_name_is_printed_as_it_is(command: str, printed: Printed) -> None:
    out, errors = printed(COMMANDS[command])
    assert out + errors
    for text in (out, errors):
        sequence = OBEYED.search(text)
        assert sequence is None, text[max(0, sequence.start() - 100) : sequence.end() + 20]


@pytest.mark.parametrize(
    ("command", "path", "names"),
    [("info", "folder", "names"), ("diff", "a", "durations_by_name"), ("check", "logs", "")],
)
def test_json_holds_names_as_they_are(
    command: str, path: str, names: str, folder: Path, printed: Printed
) -> None:
    report = json.loads(printed(COMMANDS[f"{command} --json"])[0])
    assert (folder / report[path]).is_dir()
    if names:
        first = ESCAPES.encode()[:20].decode(errors="backslashreplace")
        assert first in [row["name"] for row in report[names]]  # its backslashes were escaped again


def test_the_report_is_json_of_printable_characters(printed: Printed, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    out, errors = printed([*COMMANDS["rewrite"], "--report", str(report)])
    assert OBEYED.search(out + errors) is None
    text = report.read_bytes().decode("ascii")
    assert OBEYED.search(text) is None
    document = json.loads(text)
    assert any("\u202e" in line["event"] for line in document["events"])
    assert document["warnings"]


@pytest.mark.slow
def test_a_terminal_of_few_characters_is_served(folder: Path) -> None:
    for encoding in ("ascii", "latin-1"):
        done = subprocess.run(
            [SCRIPT, "rewrite", next(folder.glob("in*")), "--dry-run"],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONIOENCODING": encoding},
        )
        assert b"nothing written" in done.stdout
