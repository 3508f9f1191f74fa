"""The lines of the table of accuracy: what is measured on which data, and what is aimed at."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.accuracy_kernels import (
    Results,
    before,
    coverage,
    geometric_mean,
    got_worse,
    measure_kernels,
    sums_off,
    worst,
)
from benchmarks.accuracy_measured import (
    RECORDS,
    ROWS,
    mean_error,
    mean_plain_error,
    measure_sets,
)
from benchmarks.process import ROOT, Ran, module, run
from benchmarks.trials import (
    AUTO,
    ORIGINAL,
    Contender,
    Scores,
    chosen_split,
    k_folds,
    random_split,
    score,
    small_to_large,
)
from rewritelog.models.base import EventTimings
from rewritelog.text import time_text
from rewritelog.timings.read import read_timings

REFERENCE = Path(os.environ.get("REWRITELOG_REFERENCE", ROOT.parent / "shared" / "reference"))
NAMD = REFERENCE / "namd" / "timings.txt"
KERNELS = REFERENCE / "kernels"
MEASURED = REFERENCE / "measured"
CELLS = ROOT / "sample_logs" / "cells" / "timings.txt"

KF_SEEDS, RS_SEEDS, SAMPLE_SEEDS = 5, 30, 10
MANY_LINES, FEW_LINES, FIT_PARAMS = 1_000_000, 1000, 8
MOST_S_OF_MANY, MOST_S_OF_FEW, MOST_MB = 4.0, 2.0, 512


@dataclass(frozen=True)
class Line:
    """A line of the table."""

    quantity: str
    original: str
    auto: str
    known_good: str
    aim: str
    met: bool | None
    """None where nothing is aimed at, or nothing was measured."""

    def cells(self) -> list[str]:
        """Return the cells of the line."""
        met = {True: "yes", False: "**no**", None: "–"}[self.met]
        return [self.quantity, self.original, self.auto, self.known_good, self.aim, met]


@dataclass(frozen=True)
class Effort:
    """How many seeds, and how many lines to fit."""

    kf: int
    rs: int
    sample: int
    lines: int


FULL = Effort(KF_SEEDS, RS_SEEDS, SAMPLE_SEEDS, MANY_LINES)
QUICK = Effort(1, 5, 2, MANY_LINES // 10)


def measure(name: str, *, quick: bool) -> list[Line]:
    """Return the lines of one measurement; one that says why, where its data is missing."""
    effort = QUICK if quick else FULL
    if name.startswith("namd") and not NAMD.exists():
        why = "skipped: no reference data (REWRITELOG_REFERENCE names the folder)"
        return [Line(name, "–", why, "–", "–", None)]
    return _MEASUREMENTS[name](effort)


def namd_k_folds(effort: Effort) -> list[Line]:
    """Measure KF on NAMD's two big events."""
    seeds = [k_folds(_namd(), seed) for seed in range(effort.kf)]
    old, new = (score(contender, _namd(), seeds) for contender in (ORIGINAL, AUTO))
    return [
        _error("NAMD KF", old, new, "4.55 %", 0.045),
        _percent_line("NAMD KF, the sum", old.sum_error, new.sum_error, "0.03 %", 0.0005),
        *_soundness("NAMD KF", old, new),
    ]


def namd_draws(effort: Effort) -> list[Line]:
    """Measure random shares of NAMD's lines."""
    aims = {0.02: 0.108, 0.05: 0.0745, 0.1: 0.06, 0.25: 0.051}
    return _draws("NAMD", _namd(), aims, effort)


def namd_sample(effort: Effort) -> list[Line]:
    """Measure 2 % of NAMD's lines as `rewritelog sample` chooses them."""
    seeds = [chosen_split(_namd(), seed, 0.02) for seed in range(effort.sample)]
    old, new = (score(contender, _namd(), seeds) for contender in (ORIGINAL, AUTO))
    return [_error("NAMD 2 %, chosen by `sample`", old, new, "–", 0.085)]


def namd_large(_effort: Effort) -> list[Line]:
    """Measure NAMD's largest calls by a fit to the others."""
    pair = [samples for samples in _namd() if samples.event.startswith("calc_pair")]
    lines = []
    for parameter in (9, 10):
        old, new = (
            score(contender, pair, [small_to_large(pair, parameter)])
            for contender in (ORIGINAL, AUTO)
        )
        lines.append(_error(f"NAMD pair XT by p{parameter}", old, new, "3.6 %", 0.04))
    return lines


def cells(effort: Effort) -> list[Line]:
    """Measure KF and random shares on the project's own kernels."""
    seeds = [k_folds(_cells(), seed) for seed in range(effort.kf)]
    old, new = (score(contender, _cells(), seeds) for contender in (ORIGINAL, AUTO))
    return [
        _error("cells KF", old, new, "1.73 %", 0.0173),
        _percent_line("cells KF, the sum", old.sum_error, new.sum_error, "–", None),
        *_soundness("cells KF", old, new),
        *_draws("cells", _cells(), {0.02: 0.053, 0.05: 0.022}, effort),
    ]


def exact_match(effort: Effort) -> list[Line]:
    """Measure what exact matches add to the fits on `cells`, where many parameters recur."""
    seeds = [k_folds(_cells(), seed) for seed in range(effort.kf)]
    errors = {
        mode: score(AUTO.with_option("exact_match", mode), _cells(), seeds).error
        for mode in ("auto", "always", "never")
    }
    best = min(errors["always"], errors["never"])
    aims = {"auto": ("as the better, within 1 %", errors["auto"] <= 1.01 * best)}
    return [
        Line(
            f"cells KF, `--exact-match {mode}`",
            "–",
            _percent(error),
            "–",
            *aims.get(mode, ("–", None)),
        )
        for mode, error in errors.items()
    ]


def fit_times(effort: Effort) -> list[Line]:
    """Measure how long fits to made lines take, each in a process of its own."""
    lines = []
    for count, most_s in ((FEW_LINES, MOST_S_OF_FEW), (effort.lines, MOST_S_OF_MANY)):
        old, new = (_fit_time(contender, count) for contender in (ORIGINAL, AUTO))
        figures = [
            f"{json.loads(ran.output)['fit_s']:.2f} s, {ran.peak_bytes / 1e6:.0f} MB"
            for ran in (old, new)
        ]
        met = json.loads(new.output)["fit_s"] <= most_s and new.peak_bytes <= MOST_MB << 20
        quantity = f"fit of {count:,} lines with {FIT_PARAMS} parameters"
        lines.append(
            Line(quantity, figures[0], figures[1], "–", f"≤ {most_s:g} s, {MOST_MB} MB", met)
        )
    return lines


KERNEL_AIMS = {"3 folds": 0.063, "5 %": 0.15, "2 %": 0.36, "extrapolation": 0.16}
MOST_SUMS_OFF, WORST_EXTRAPOLATION = 4, 3.0


def kernels(_effort: Effort) -> list[Line]:
    """Measure the events of many kinds; `original` is what `auto` gave before this table."""
    if not KERNELS.is_dir():
        why = "skipped: no reference data (REWRITELOG_REFERENCE names the folder)"
        return [Line("kernels", "–", why, "–", "–", None)]
    results, kept = measure_kernels(KERNELS), before()
    old: Results = {
        event: {protocol: {"error": error} for protocol, error in errors.items()}
        for event, errors in kept.items()
    }
    lines = []
    for protocol, aim in KERNEL_AIMS.items():
        quantity = f"{len(results)} kernels, {protocol}"
        new = geometric_mean(results, protocol)
        cells = _percent(geometric_mean(old, protocol)), _percent(new)
        lines.append(Line(quantity, *cells, "–", f"≤ {aim * 100:.3g} %", new <= aim))
        lines.append(_coverage(quantity, "–", coverage(results, protocol)))
        worse = "; ".join(got_worse(results, protocol)) or "none"
        lines.append(Line(f"{quantity}, worse than before by over 5 %", "–", worse, "–", "–", None))
    sums = sums_off(results, "3 folds"), sums_off(results, "3 folds", "sum_error")
    text = f"{sums[0]} with `--total measured`, {sums[1]} of single calls"
    met = sums[0] <= MOST_SUMS_OFF
    lines.append(
        Line("kernels, sums off by over 10 %, 3 folds", "10", text, "–", f"≤ {MOST_SUMS_OFF}", met)
    )
    worst_new = worst(results, "extrapolation")
    cells = _percent(worst(old, "extrapolation")), _percent(worst_new)
    met = worst_new <= WORST_EXTRAPOLATION
    lines.append(Line("kernels, worst extrapolation", *cells, "–", "≤ 300 %", met))
    return lines


MEASURED_AIM, RECORD_AIM_S = 0.05, 2e-6


def measured(_effort: Effort) -> list[Line]:
    """Measure kernels that others measured; `original` is `auto` without a correction."""
    if not MEASURED.is_dir():
        why = "skipped: no reference data (REWRITELOG_REFERENCE names the folder)"
        return [Line("measured", "–", why, "–", "–", None)]
    sets = measure_sets(MEASURED)
    lines = []
    for kernel in sets:
        best = min(kernel.peers, key=lambda peer: kernel.peers[peer])
        cells = _percent(kernel.plain_error), _percent(kernel.error)
        peer = f"{_percent(kernel.peers[best])} ({best})"
        quantity = (
            f"{kernel.name}, sum {kernel.sum_error * 100:+.1f} %, "
            f"in intervals {kernel.coverage:.0%}"
        )
        lines.append(Line(quantity, *cells, peer, "at most 5 % behind", not kernel.behind))
    every = ", ".join(f"{_percent(mean_error(sets, peer))} ({peer})" for peer in sets[0].peers)
    mean = mean_error(sets)
    cells = _percent(mean_plain_error(sets)), _percent(mean)
    met = mean <= MEASURED_AIM
    aim = f"≤ {MEASURED_AIM * 100:.3g} %"
    lines.append(Line(f"{len(sets)} measured kernels", *cells, every, aim, met))
    record_s, row_s = (
        max(getattr(kernel, name) for kernel in sets) for name in ("record_s", "row_s")
    )
    met = record_s <= RECORD_AIM_S
    quantity = f"a prediction, the slowest, of {RECORDS:,} records of their test lines"
    lines.append(Line(quantity, "–", time_text(record_s), "–", f"≤ {time_text(RECORD_AIM_S)}", met))
    quantity = f"a prediction, the slowest, of {ROWS:,} rows of which few are equal"
    return [*lines, Line(quantity, "–", time_text(row_s), "–", "–", None)]


_MEASUREMENTS: dict[str, Callable[[Effort], list[Line]]] = {
    "namd-kf": namd_k_folds,
    "namd-rs": namd_draws,
    "namd-sample": namd_sample,
    "namd-xt": namd_large,
    "cells": cells,
    "exact-match": exact_match,
    "kernels": kernels,
    "measured": measured,
    "time": fit_times,
}


def _namd() -> list[EventTimings]:
    """Return the two big events of NAMD."""
    read = read_timings([NAMD])
    return [samples for samples in read.timings if samples.event.startswith("calc_")]


def _cells() -> Sequence[EventTimings]:
    return read_timings([CELLS]).timings


def _fit_time(contender: Contender, lines: int) -> Ran:
    job = partial(run, module("child_fitting_made", str(lines), str(FIT_PARAMS), contender.model))
    return job()


def _draws(
    data: str, timings: Sequence[EventTimings], aims: dict[float, float], effort: Effort
) -> list[Line]:
    """Measure random shares, each with the error that is to be reached."""
    lines = []
    for share, aim in aims.items():
        seeds = [random_split(timings, seed, share) for seed in range(effort.rs)]
        old, new = (score(contender, timings, seeds) for contender in (ORIGINAL, AUTO))
        quantity = f"{data} RS{share * 100:g}"
        lines.append(_error(quantity, old, new, _percent(aim), aim))
        lines += _soundness(quantity, old, new)[:2]
    return lines


def _soundness(quantity: str, old: Scores, new: Scores) -> list[Line]:
    """Return the lines of negative predictions, fits that failed, and the intervals' coverage."""
    return [
        Line(
            f"{quantity}, negative predictions",
            f"{old.negative} of {old.predictions}",
            f"{new.negative} of {new.predictions}",
            "0",
            "0",
            new.negative == 0,
        ),
        Line(
            f"{quantity}, failures to fit",
            f"{old.failed + old.missing} of {old.fits}",
            f"{new.failed + new.missing} of {new.fits}",
            "0",
            "0",
            new.failed + new.missing == 0,
        ),
        _coverage(quantity, _percent(old.covered), new.covered),
    ]


def _coverage(quantity: str, old: str, covered: float) -> Line:
    what, met = f"{quantity}, in the 90 % intervals", 0.87 <= covered <= 0.93
    return Line(what, old, _percent(covered), "–", "87–93 %", met)


def _error(quantity: str, old: Scores, new: Scores, known_good: str, aim: float) -> Line:
    return _percent_line(quantity, old.error, new.error, known_good, aim)


def _percent_line(
    quantity: str, old: float, new: float, known_good: str, aim: float | None
) -> Line:
    if aim is None:
        return Line(quantity, _percent(old), _percent(new), known_good, "–", None)
    met = round(new, 4) <= aim
    return Line(quantity, _percent(old), _percent(new), known_good, f"≤ {aim * 100:.4g} %", met)


def _percent(share: float) -> str:
    """Return a share in per cent, with three figures that count."""
    return f"{share * 100:.2f} %" if share < 1 else f"{share * 100:.3g} %"
