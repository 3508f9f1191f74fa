"""Accuracy on kernels of many kinds, under four protocols, set beside figures kept from before.

- 3 folds: a permutation of each event's lines, fits to two thirds of them
- 5 % and 2 %: that share of each event's lines drawn at random, at least 4, with 3 seeds
- extrapolation: a fit to the smaller half by the parameter whose ranks correlate most with the
  times' predicts the largest quarter

Errors are means of |predicted − measured| / measured over lines with a time above 0; sums leave out
each event's first line. Events are fitted on all cores, one in each process.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from rewritelog.arrays import Flags, Floats
from rewritelog.models.base import EventTimings
from rewritelog.models.registry import load_model
from rewritelog.text import percent_text
from rewritelog.timings.read import read_timings

PROTOCOLS = ("3 folds", "5 %", "2 %", "extrapolation")
SEEDS = 3
FEWEST = 4
WORSE = 1.05
"""An event whose error is larger than before by more than this factor is named."""

LEAST_ERROR = 1e-4
"""An error counts as this at least in the geometric mean."""

BEFORE = Path(__file__).parent / "kernels_before.json"
"""Mean errors of `auto` by event and protocol, before its families of breaks and mixtures."""


@dataclass
class Tally:
    """What one event's fits under one protocol add up to."""

    errors: list[float] = field(default_factory=list)
    predicted_s: float = 0.0
    total_s: float = 0.0
    """The same with the factors that keep measured totals."""
    measured_s: float = 0.0
    inside: int = 0
    with_interval: int = 0

    def add(self, samples: EventTimings, fitted_to: Flags, tried: Flags, model: str) -> None:
        """Fit to some lines of the event and compare with others."""
        part = samples.part(fitted_to)
        params, measured = samples.params[tried], samples.seconds[tried]
        fitted = load_model(model, {}).fit((part,))
        seconds = np.maximum(fitted.predict(samples.event, params), 0.0)
        known = np.where(np.isfinite(seconds), seconds, 0.0)
        factors = fitted.retransformation(samples.event, params)
        positive = measured > 0
        self.errors += (np.abs(known - measured)[positive] / measured[positive]).tolist()
        later = np.flatnonzero(tried) > 0
        self.predicted_s += float(known[later].sum())
        self.total_s += float((known * (1.0 if factors is None else factors))[later].sum())
        self.measured_s += float(measured[later].sum())
        low, high = fitted.interval(samples.event, params)
        self.inside += int(((measured >= low) & (measured <= high)).sum())
        self.with_interval += int(np.isfinite(low).sum())

    def result(self) -> dict[str, float | None]:
        """Return the figures of the event."""
        total = self.measured_s
        return {
            "error": float(np.mean(self.errors)) if self.errors else None,
            "sum_error": self.predicted_s / total - 1 if total > 0 else None,
            "total_error": self.total_s / total - 1 if total > 0 else None,
            "coverage": self.inside / self.with_interval if self.with_interval else None,
        }


Results = dict[str, dict[str, dict[str, float | None]]]
"""Figures by event and protocol."""


def measure_kernels(folder: Path, model: str = "auto") -> Results:
    """Return the figures of every event of a folder."""
    jobs = [(path, model) for path in sorted(folder.glob("*.txt"))]
    with get_context("fork").Pool(os.cpu_count()) as pool:
        return dict(pool.imap(_measure, jobs))


def _measure(job: tuple[Path, str]) -> tuple[str, dict[str, dict[str, float | None]]]:
    path, model = job
    (samples,) = read_timings([path]).timings
    tallies = {name: Tally() for name in PROTOCOLS}
    for name, fitted_to, tried in _splits(samples):
        tallies[name].add(samples, fitted_to, tried, model)
    return path.stem, {name: tally.result() for name, tally in tallies.items()}


def _splits(samples: EventTimings) -> Iterator[tuple[str, Flags, Flags]]:
    """Yield protocol, lines of the fit and lines that it is tried on."""
    count = len(samples.seconds)
    fold = np.empty(count, dtype=np.int64)
    fold[np.random.default_rng([0, count]).permutation(count)] = np.arange(count) % 3
    for number in range(3):
        yield "3 folds", fold != number, fold == number
    for name, share in (("5 %", 0.05), ("2 %", 0.02)):
        for seed in range(SEEDS):
            chosen = np.zeros(count, dtype=np.bool_)
            order = np.random.default_rng([seed, count]).permutation(count)
            chosen[order[: max(FEWEST, round(share * count))]] = True
            yield name, chosen, ~chosen
    order = np.argsort(samples.params[:, strongest_parameter(samples)], kind="stable")
    small, large = np.zeros((2, count), dtype=np.bool_)
    small[order[: count // 2]] = True
    large[order[count - count // 4 :]] = True
    yield "extrapolation", small, large


def strongest_parameter(samples: EventTimings) -> int:
    """Return the parameter, from 0, whose ranks correlate most with the times'."""
    times = _ranks(samples.seconds)
    correlations = [
        abs(float(np.corrcoef(_ranks(column), times)[0, 1])) if np.ptp(column) > 0 else 0.0
        for column in samples.params.T
    ]
    return int(np.argmax(np.nan_to_num(correlations)))


def _ranks(values: Floats) -> Floats:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts + 1) / 2)[place])


def geometric_mean(results: Results, protocol: str) -> float:
    """Return the geometric mean over events of their mean errors."""
    errors = [value for value in _column(results, protocol, "error") if value is not None]
    return float(np.exp(np.mean(np.log(np.maximum(errors, LEAST_ERROR)))))


def worst(results: Results, protocol: str) -> float:
    """Return the largest mean error of an event."""
    return max(value for value in _column(results, protocol, "error") if value is not None)


def sums_off(results: Results, protocol: str, figure: str = "total_error") -> int:
    """Return how many events' sums are off by more than 10 %."""
    return sum(abs(value or 0.0) > 0.1 for value in _column(results, protocol, figure))


def coverage(results: Results, protocol: str) -> float:
    """Return the mean share of lines within their intervals."""
    known = [value for value in _column(results, protocol, "coverage") if value is not None]
    return float(np.mean(known)) if known else float("nan")


def before() -> Mapping[str, Mapping[str, float | None]]:
    """Return the errors kept from before, by event and protocol."""
    kept: Mapping[str, Mapping[str, float | None]] = json.loads(BEFORE.read_text())
    return kept


def got_worse(results: Results, protocol: str) -> list[str]:
    """Return the events whose error grew by more than `WORSE`, each with both errors."""
    kept = before()
    worse = []
    for event, figures in results.items():
        old, new = kept.get(event, {}).get(protocol), figures[protocol]["error"]
        if old and new and new > WORSE * old:
            worse.append(f"{event} {percent_text(old, 1)} to {percent_text(new, 1)}")
    return worse


def _column(results: Results, protocol: str, figure: str) -> list[float | None]:
    return [figures[protocol][figure] for figures in results.values()]
