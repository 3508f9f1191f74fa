"""What a run costs before it has read anything: imports, kernels, the first run of all."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.logs import SAMPLE, Workshop, fitted
from benchmarks.process import PYTHON, Job, in_turns, median_s, rewritelog, run, walls
from benchmarks.results import Result, Row, ratio_text, verdict

ROUNDS = 15
LATER_RUNS = 5
FIRST_RUN_LIMIT_S = 15


def start_up(shop: Workshop) -> Result:
    """Measure the smallest sample and the help text against their imports alone."""
    sample = shop.rewriting(SAMPLE)
    return Result(
        [
            _against_imports(
                "smallest sample, warm, constant model", sample, "numpy, numba, typer"
            ),
            _against_imports("`rewritelog --help`", partial(run, rewritelog("--help")), "typer"),
        ]
    )


def _against_imports(what: str, job: Job, names: str) -> Row:
    jobs: dict[str, Job] = {"job": job, "imports": partial(run, [PYTHON, "-c", f"import {names}"])}
    ran = in_turns(jobs, ROUNDS)
    ratios = [a / b for a, b in zip(walls(ran["job"]), walls(ran["imports"]), strict=True)]
    middle = statistics.median(ratios)
    seconds = f"{median_s(ran['job']):.3f} s, the imports {median_s(ran['imports']):.3f} s"
    return Row(
        what,
        f"{ratio_text(ratios, middle)}; {seconds}",
        f"≤ 2 × `python -c 'import {names}'`",
        verdict(ratios, 2),
    )


def first_run(shop: Workshop) -> Result:
    """Measure what compiling costs, and that later runs compile nothing."""
    cache = shop.folder / "kernels"
    env = {"NUMBA_CACHE_DIR": str(cache), "TRACEBIGSIM_KERNELS": "compiled"}
    first_s = _sample_s(shop, env)
    kept = _files(cache)
    later_s = statistics.median(_sample_s(shop, env) for _ in range(LATER_RUNS))
    compiled = len(_files(cache) - kept)
    shutil.rmtree(cache)
    more = first_s - later_s
    return Result(
        [
            Row(
                "first run, which compiles kernels, minus later ones",
                f"{more:.1f} s; later runs compiled {compiled} kernels",
                f"≤ {FIRST_RUN_LIMIT_S} s; nothing compiled later",
                more <= FIRST_RUN_LIMIT_S and not compiled,
            )
        ]
    )


def _sample_s(shop: Workshop, env: dict[str, str]) -> float:
    out = shop.folder / "first"
    ran = run(rewritelog("rewrite", SAMPLE, out, *fitted(SAMPLE)), env)
    shutil.rmtree(out)
    return ran.wall_s


def _files(folder: Path) -> set[tuple[Path, int]]:
    """Return the files below a folder with their times of change."""
    found: Sequence[Path] = [path for path in folder.rglob("*") if path.is_file()]
    return {(path, path.stat().st_mtime_ns) for path in found}
