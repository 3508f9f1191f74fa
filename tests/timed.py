"""Timing lines read in the simplest way."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from rewritelog.models.base import EventTimings

LINE = re.compile(
    r"event:\{ (?P<event>.*?) \}.* time:\{ (?P<time>\S+) \}.*params:\{(?P<params>.*?)\}"
)


def read_timings(path: Path) -> list[EventTimings]:
    """Read well-formed timing lines; the real reader is another package's business."""
    lines: dict[tuple[str, int], list[list[float]]] = {}
    for match in LINE.finditer(path.read_text()):
        params = [float(text) for text in match["params"].split()]
        lines.setdefault((match["event"], len(params)), []).append([float(match["time"]), *params])
    arrays = [(event, np.array(rows)) for (event, _), rows in lines.items()]
    return [EventTimings(event, rows[:, 1:], rows[:, 0]) for event, rows in arrays]
