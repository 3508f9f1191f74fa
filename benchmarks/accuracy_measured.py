"""Accuracy on kernels that others measured, beside what opaque models reach on the same lines.

One fit to the lines of `NAME.train.txt` predicts those of `NAME.test.txt`. The errors of a random
forest, of gradient boosting and of a Gaussian process on logarithms, all of scikit-learn, are kept
in `peers.json` of the reference data.
"""

from __future__ import annotations

import copy
import json
import time
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.base import ModelFit
from rewritelog.models.registry import load_model
from rewritelog.timings.read import read_timings

RECORDS, ROWS = 1_000_000, 20_000
"""Records of a large log, with the rows of the test lines, and rows of which few are equal."""

AHEAD = 1.05
"""A peer is ahead on a set if the error of `auto` is larger than its own by this factor."""


@dataclass(frozen=True)
class MeasuredSet:
    """The figures of one set; errors are shares."""

    name: str
    error: float
    """Mean of |predicted − measured| / measured over the test lines."""
    plain_error: float
    """The same with `--correction none`."""
    sum_error: float
    """Σ predicted / Σ measured − 1."""
    coverage: float
    """Share of the test lines within their 90 % intervals."""
    record_s: float
    """CPU time of a prediction on one core, of `RECORDS` with the rows of the test lines."""
    row_s: float
    """The same of `ROWS` with parameters drawn one by one from the lines."""
    peers: dict[str, float]
    """The mean error of each peer."""

    @property
    def behind(self) -> bool:
        """Whether a peer is ahead by more than the factor `AHEAD`."""
        return self.error > AHEAD * min(self.peers.values())


def measure_sets(folder: Path) -> list[MeasuredSet]:
    """Return the figures of every set of a folder, in the order of their names."""
    names = sorted(path.name.removesuffix(".train.txt") for path in folder.glob("*.train.txt"))
    with get_context("fork").Pool() as pool:
        return pool.starmap(_measure, [(folder, name) for name in names])


def mean_error(sets: list[MeasuredSet], peer: str = "") -> float:
    """Return the geometric mean over sets of the errors of `auto`, or of a peer."""
    errors = [kernel.peers[peer] if peer else kernel.error for kernel in sets]
    return float(np.exp(np.mean(np.log(errors))))


def mean_plain_error(sets: list[MeasuredSet]) -> float:
    """Return the geometric mean over sets of the errors without correction."""
    return float(np.exp(np.mean(np.log([kernel.plain_error for kernel in sets]))))


def _measure(folder: Path, name: str) -> MeasuredSet:
    (train,) = read_timings([folder / f"{name}.train.txt"]).timings
    (test,) = read_timings([folder / f"{name}.test.txt"]).timings
    peers = json.loads((folder / "peers.json").read_text())[name]
    fitted, plain = (
        load_model("auto", {"correction": correction}).fit((train,))
        for correction in ("auto", "none")
    )
    errors = [
        float((np.abs(model.predict(test.event, test.params) - test.seconds) / test.seconds).mean())
        for model in (fitted, plain)
    ]
    low, high = fitted.interval(test.event, test.params)
    inside = (test.seconds >= low) & (test.seconds <= high)
    rng = np.random.default_rng(1)
    records = test.params[rng.integers(0, len(test.params), RECORDS)]
    rows = np.column_stack([rng.choice(column, ROWS) for column in train.params.T])
    predicted_s = float(fitted.predict(test.event, test.params).sum())
    return MeasuredSet(
        name=name,
        error=errors[0],
        plain_error=errors[1],
        sum_error=predicted_s / float(test.seconds.sum()) - 1,
        coverage=float(inside.mean()),
        record_s=_prediction_s(fitted, test.event, records),
        row_s=_prediction_s(fitted, test.event, rows),
        peers={peer: percent / 100 for peer, percent in peers.items()},
    )


def _prediction_s(fitted: ModelFit, event: str, params: Floats) -> float:
    """Return the CPU time of a prediction, the least of three tries with all else warm."""
    times_s = []
    for _ in range(3):
        fresh = copy.deepcopy(fitted)  # which has kept no prediction
        fresh.predict(event, params[:1])
        began_s = time.process_time()
        fresh.predict(event, params)
        times_s.append(time.process_time() - began_s)
    return min(times_s) / len(params)
