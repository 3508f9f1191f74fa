"""What a listener hears while models are fitted: the event and what is being done."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import rewritelog
from rewritelog.progress import listening

LINE = "TRACEBIGSIM: event:{{ {} }}  time:{{ {:.9f} }}  params:{{ {:f} {:f} }}\n"


def _lines(path: Path, *events: str, count: int = 120) -> Path:
    """Write lines whose times no short formula explains, so that a correction is tried."""
    rng = np.random.default_rng(3)
    with path.open("w", encoding="utf-8") as file:
        for event in events:
            p, q = np.exp(rng.uniform(1, 6, (2, count)))
            seconds = 1e-6 * p * q**0.5 * (1.5 + np.sin(p / 20))
            file.writelines(LINE.format(event, *row) for row in zip(seconds, p, q, strict=True))
    return path


def test_a_long_fit_says_what_it_is_doing(tmp_path: Path) -> None:
    heard: list[tuple[str, int, int, str]] = []
    with listening(lambda *stage: heard.append(stage)):
        rewritelog.fit(_lines(tmp_path / "lines.txt", "work"))
    assert [stage for stage in heard if "held-out" in stage[0]] == [
        ("fitting work: held-out lines", fold, 5, "") for fold in range(5)
    ]
    corrections = [stage for stage in heard if stage[0] == "fitting work: corrections"]
    assert corrections == [
        ("fitting work: corrections", tried, len(corrections), "")
        for tried in range(len(corrections))
    ]
    assert len(corrections) >= 4


def test_several_events_and_parts_are_counted(tmp_path: Path) -> None:
    heard: list[tuple[str, int, int, str]] = []
    lines = _lines(tmp_path / "lines.txt", "one", "two", count=40)
    with listening(lambda *stage: heard.append(stage)):
        rewritelog.fit(lines)
        rewritelog.compare(lines, models=["least-squares"], folds=2)
    assert ("fitting two: held-out lines 3 of 5, events done", 1, 2, "") in heard
    assert ("least-squares, parts done", 1, 2, "") in heard
    assert any(
        stage.startswith("least-squares: fitting two") and stage.endswith("parts done")
        for stage, *_ in heard
    )


@pytest.mark.slow
def test_processes_leave_progress_to_their_parent(tmp_path: Path) -> None:
    path = tmp_path / "told"
    events = [f"work{k}" for k in range(9)]
    with listening(lambda stage, *_: os.write(file, f"{os.getpid()} {stage}\n".encode())):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        rewritelog.fit(_lines(tmp_path / "lines.txt", *events, count=10))
        os.close(file)
    lines = path.read_text().splitlines()
    assert {line.split()[0] for line in lines} == {str(os.getpid())}
    fitting = [line for line in lines if " fitting" in line]
    assert fitting
    assert all(line.endswith(", events done") for line in fitting)
