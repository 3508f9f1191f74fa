"""Names that differ from call to call are no events: too many of them are refused at once."""

from pathlib import Path

import pytest
from commands import rewritelog
from oracle import SAMPLE_LOGS

CELLS = SAMPLE_LOGS / "cells"


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "LINES", "-o", "m.json"],
        ["compare", "LINES"],
        ["verify", "m.json", "LINES"],
        ["rewrite", str(CELLS), "out", "--timings", "LINES"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_more_events_than_a_program_has_are_refused(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"TRACEBIGSIM: event:{{ call-{n} }}  time:{{ 1 }}  params:{{ {n} }}" for n in range(9)]
    eight, nine = tmp_path / "few", tmp_path / "many"
    eight.write_text("\n".join(lines[:8]) + "\n")
    nine.write_text("\n".join(lines) + "\n")
    assert rewritelog("fit", eight, "-o", tmp_path / "m.json").returncode == 0
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr("rewritelog.timings.read.MOST_EVENTS", 8)
    done = rewritelog(*["many" if word == "LINES" else word for word in arguments])
    assert done.returncode == 1
    assert (
        "many: more than 8 different events, such as 'call-8': what differs from call to call"
        in done.stderr
    )
    assert sorted(tmp_path.iterdir()) == before
