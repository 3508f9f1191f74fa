"""Plain text: every form of the grammar, param files, and a fit to a million lines."""

from __future__ import annotations

import json
from functools import partial

from benchmarks.logs import FIT_LINES, FIT_PARAMS, Workshop
from benchmarks.process import median_s, module, peak, run
from benchmarks.results import Result, Row, Table

MB_S, LINES_S = 250, 3e6
FIT_S, FIT_BYTES = 3, 512e6
FIT_RUNS = 3


def reading(shop: Workshop) -> Result:
    """Measure how fast one core reads each form of the grammar, and param files in a rewrite."""
    logs = shop.logs(shop.small_scale)
    forms = json.loads(run(module("child_reading", shop.folder, logs)).output)
    slowest = min(forms, key=lambda form: form["mb_s"])
    two = next(form for form in forms if form["form"] == "timing, 2 params")
    rows = [
        Row(
            "reading text, the slowest form",
            f"{slowest['mb_s']:.0f} MB/s ({slowest['form']})",
            f"≥ {MB_S} MB/s per core in every form",
            slowest["mb_s"] >= MB_S,
        ),
        Row(
            "reading timing lines with 2 params",
            f"{two['lines_s'] / 1e6:.1f} million lines/s",
            "≥ 3 million lines/s",
            two["lines_s"] >= LINES_S,
        ),
    ]
    head = ["form", "bytes per line", "MB/s", "million lines/s"]
    cells = [
        [
            form["form"],
            f"{form['line_bytes']:.0f}",
            f"{form['mb_s']:.0f}",
            f"{form['lines_s'] / 1e6:.1f}",
        ]
        for form in forms
    ]
    return Result(rows, [Table("Reading text on one core, in memory unless stated:", head, cells)])


def fitting(shop: Workshop) -> Result:
    """Measure an ordinary least-squares fit to a million lines of 8 parameters."""
    path = shop.timing_lines()
    job = partial(run, module("child_fitting", path))
    job()
    runs = [job() for _ in range(FIT_RUNS)]
    parts = json.loads(runs[-1].output)
    path.unlink()
    measured = (
        f"{median_s(runs):.2f} s with start-up (reading {parts['read_s']:.2f} s, fit "
        f"{parts['fit_s']:.2f} s), {peak(runs) / 1e6:.0f} MB"
    )
    return Result(
        [
            Row(
                f"least squares on {FIT_LINES:,} lines of {FIT_PARAMS} parameters",
                measured,
                "≤ 3 s, ≤ 512 MB",
                median_s(runs) <= FIT_S and peak(runs) <= FIT_BYTES,
            )
        ]
    )
