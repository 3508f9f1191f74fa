"""Fixtures of timings, for tests of models and of sampling: made ones and real ones."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from kinds import MakeTimings, ReferenceTimings
from oracle import REFERENCE, SAMPLE_LOGS

from rewritelog.models.base import EventTimings

LINE = re.compile(
    r"event:\{ (?P<event>.*?) \}.* time:\{ (?P<time>\S+) \}.*params:\{(?P<params>.*?)\}"
)


def read_timings(path: Path) -> list[EventTimings]:
    """Read well-formed timing lines; the real reader is another package's business."""
    lines: dict[tuple[str, int], list[list[float]]] = {}
    for found in LINE.finditer(path.read_text()):
        params = [float(text) for text in found["params"].split()]
        lines.setdefault((found["event"], len(params)), []).append([float(found["time"]), *params])
    arrays = [(event, np.array(rows)) for (event, _), rows in lines.items()]
    return [EventTimings(event, rows[:, 1:], rows[:, 0]) for event, rows in arrays]


@pytest.fixture
def reference_timings() -> ReferenceTimings:
    """Return the timings of a reference set, by its folder's name."""

    def read(name: str) -> list[EventTimings]:
        path = REFERENCE / name / "timings.txt"
        if not path.exists():
            pytest.skip(f"no reference data: {path}")
        return read_timings(path)

    return read


@pytest.fixture
def sample_timings() -> list[EventTimings]:
    """Return the timings of the project's own kernels."""
    return read_timings(SAMPLE_LOGS / "cells" / "timings.txt")


@pytest.fixture
def event() -> MakeTimings:
    """Return a maker of the samples of `kernel`: columns of parameters, then seconds."""

    def make(*columns: object, seconds: object, name: str = "kernel") -> EventTimings:
        times = np.array(seconds, dtype=np.float64)
        params = np.empty((len(times), len(columns)))
        for place, column in enumerate(columns):
            params[:, place] = column
        return EventTimings(name, params, times)

    return make
