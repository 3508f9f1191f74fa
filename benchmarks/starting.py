"""What a run costs before it has read anything: imports and reading."""

from __future__ import annotations

import statistics
from functools import partial

from benchmarks.logs import SAMPLE, Workshop
from benchmarks.process import PYTHON, Job, in_turns, median_s, rewritelog, run, walls
from benchmarks.results import Result, Row, ratio_text, verdict

ROUNDS = 15


def start_up(shop: Workshop) -> Result:
    """Measure the smallest sample and the help text against their imports alone."""
    sample = shop.rewriting(SAMPLE)
    return Result(
        [
            _against_imports("smallest sample, constant model", sample, "numpy, typer"),
            _against_imports("`rewritelog --help`", partial(run, rewritelog("--help")), "typer"),
        ]
    )


def _against_imports(quantity: str, job: Job, names: str) -> Row:
    jobs: dict[str, Job] = {"job": job, "imports": partial(run, [PYTHON, "-c", f"import {names}"])}
    ran = in_turns(jobs, ROUNDS)
    ratios = [a / b for a, b in zip(walls(ran["job"]), walls(ran["imports"]), strict=True)]
    middle = statistics.median(ratios)
    seconds = f"{median_s(ran['job']):.3f} s, the imports {median_s(ran['imports']):.3f} s"
    return Row(
        quantity,
        f"{ratio_text(ratios, middle)}; {seconds}",
        f"≤ 2 × `python -c 'import {names}'`",
        verdict(ratios, 2),
    )
