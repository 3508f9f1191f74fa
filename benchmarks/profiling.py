"""Where the time goes: the steps of a start, and the stages of a rewrite."""

from __future__ import annotations

import json
import statistics
import time

from benchmarks.logs import Workshop
from benchmarks.process import module, run
from benchmarks.results import Result, Table

START_RUNS = 9
STAGE_RUNS = 3
END = "the process's end"


def profile(shop: Workshop) -> Result:
    """Measure the steps of a warm run of the smallest sample, and the stages of a large one."""
    return Result([], [_start(shop), _stages(shop)])


def _start(shop: Workshop) -> Table:
    runs = [_steps(shop) for _ in range(START_RUNS + 1)][1:]
    rows = [
        [step, f"{1e3 * statistics.median(steps[step] for steps in runs):.0f}"] for step in runs[0]
    ]
    return Table(
        f"A warm run of the smallest sample, medians of {START_RUNS}:", ["step", "ms"], rows
    )


def _steps(shop: Workshop) -> dict[str, float]:
    """Return the seconds that each step of a process took."""
    began = time.monotonic()
    ran = run(module("child_start", str(began), shop.folder / "started"))
    points = json.loads(ran.output)["points"]
    steps, last = {}, began
    for step, at in points:
        if step:
            steps[step] = at - last
        last = at
    return {**steps, END: began + ran.wall_s - last}


def _stages(shop: Workshop) -> Table:
    child = module("child_stages", shop.logs(shop.scale), shop.folder / "staged")
    runs = [json.loads(run(child).output) for _ in range(STAGE_RUNS)]
    models = list(runs[0])
    rows = []
    for stage in runs[0][models[0]]:
        seconds = [statistics.median(stages[model][stage] for stages in runs) for model in models]
        rows.append([stage, *(f"{value:.3f}" for value in seconds)])
    return Table(
        f"Stages of a rewrite of {shop.scale:g} GB on one thread, start-up apart, in "
        f"seconds, medians of {STAGE_RUNS}:",
        ["stage", *models],
        rows,
    )
