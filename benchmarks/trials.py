"""How far models are off on lines that they were not fitted to, over splits that are seeded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Flags, Ints
from rewritelog.errors import ModelError
from rewritelog.evaluation.compare import Split
from rewritelog.models.base import EventTimings
from rewritelog.models.metrics import relative_errors
from rewritelog.models.registry import load_model
from rewritelog.sampling.selection import Plan, Stratum, choose

FEWEST = 2
"""A random draw takes at least this many lines of each event."""


@dataclass(frozen=True)
class Contender:
    """A model with its options."""

    model: str
    options: Mapping[str, object] = field(default_factory=dict)
    needs: Callable[[int], int] = lambda _parameters: 1
    """The lines without which a fit to so many parameters cannot be determined."""

    def with_option(self, name: str, value: object) -> Contender:
        """Return it with one more option."""
        return Contender(self.model, {**self.options, name: value}, self.needs)


ORIGINAL = Contender(
    "least-squares",
    {"weights": "uniform", "loss": "squares", "exact_match": "never"},
    lambda parameters: 1 + 2 * parameters,
)
"""The original tool's fit, over 1, p and p² of each parameter."""

AUTO = Contender("auto", {"exact_match": "never"})


@dataclass(frozen=True)
class Scores:
    """What came of some trials: means over the seeds, and counts over all of them."""

    error: float
    """Mean of |predicted − measured| / measured."""
    sum_error: float
    """|Σ predicted / Σ measured − 1|; the first line of each event is in neither sum."""
    covered: float
    """Share of the lines within the 90 % intervals; NaN where a model has none."""
    predictions: int
    negative: int
    missing: int
    """Lines for which no finite time was predicted."""
    fits: int
    failed: int
    """Fits that raised an error or had fewer lines than coefficients."""


def k_folds(timings: Sequence[EventTimings], seed: int, folds: int = 10) -> list[Split]:
    """Return the splits that leave out each fold of every event once."""
    parts = []
    for place, samples in enumerate(timings):
        count = len(samples.seconds)
        part = np.empty(count, dtype=np.int64)
        part[np.random.default_rng([seed, place]).permutation(count)] = np.arange(count) % folds
        parts.append(part)
    return [tuple(part == fold for part in parts) for fold in range(folds)]


def random_split(timings: Sequence[EventTimings], seed: int, share: float) -> list[Split]:
    """Return the split that fits to a share of each event's lines, drawn by chance."""
    split = []
    for place, samples in enumerate(timings):
        count = len(samples.seconds)
        order = np.random.default_rng([seed, place]).permutation(count)
        split.append(_all_but(count, order[: max(FEWEST, round(share * count))]))
    return [tuple(split)]


def chosen_split(timings: Sequence[EventTimings], seed: int, share: float) -> list[Split]:
    """Return the split that fits to the lines that `rewritelog sample` would choose."""
    strata = [Stratum(samples.event, samples.params, samples.params[:0]) for samples in timings]
    choices = choose(strata, Plan(share, "design", seed))
    chosen = zip(timings, choices, strict=True)
    return [tuple(_all_but(len(samples.seconds), choice.rows) for samples, choice in chosen)]


def small_to_large(timings: Sequence[EventTimings], parameter: int) -> list[Split]:
    """Return the split that fits to the smaller three quarters by a parameter, counted from 1."""
    split = []
    for samples in timings:
        rising = np.argsort(samples.params[:, parameter - 1], kind="stable")
        split.append(_all_but(len(rising), rising[: int(0.75 * len(rising))]))
    return [tuple(split)]


def score(
    contender: Contender, timings: Sequence[EventTimings], seeds: Sequence[list[Split]]
) -> Scores:
    """Try a model on the splits of each seed."""
    trials = [_Trial(contender, timings, splits) for splits in seeds]
    held_out = [np.concatenate(trial.errors) for trial in trials]
    covered = np.concatenate([part for trial in trials for part in trial.covered])
    return Scores(
        error=float(np.mean([errors.mean() for errors in held_out])),
        sum_error=float(np.mean([abs(trial.predicted / trial.measured - 1) for trial in trials])),
        covered=float(covered.mean()),
        predictions=sum(map(len, held_out)),
        negative=sum(trial.negative for trial in trials),
        missing=sum(trial.missing for trial in trials),
        fits=sum(trial.fits for trial in trials),
        failed=sum(trial.failed for trial in trials),
    )


class _Trial:
    """The splits of one seed, added up."""

    def __init__(
        self, contender: Contender, timings: Sequence[EventTimings], splits: list[Split]
    ) -> None:
        self.errors: list[NDArray[np.float64]] = []
        self.covered: list[NDArray[np.float64]] = []
        self.predicted = self.measured = 0.0
        self.negative = self.missing = self.fits = self.failed = 0
        for split in splits:
            for samples, left_out in zip(timings, split, strict=True):
                self._add(contender, samples, left_out)

    def _add(self, contender: Contender, samples: EventTimings, left_out: Flags) -> None:
        """Fit to some lines of an event and compare with the others."""
        part, others = samples.part(~left_out), samples.part(left_out)
        params, measured = others.params, others.seconds
        self.fits += 1
        self.failed += len(part.seconds) < contender.needs(params.shape[1])
        try:
            fitted = load_model(contender.model, contender.options).fit((part,))
        except ModelError:
            self.failed += 1
            self.missing += len(measured)
            return
        predicted = fitted.predict(samples.event, params)
        self.negative += int((predicted < 0).sum())
        self.missing += int((~np.isfinite(predicted)).sum())
        self.errors.append(relative_errors(predicted, measured))
        warm = np.flatnonzero(left_out) > 0
        self.predicted += float(predicted[warm].sum())
        self.measured += float(measured[warm].sum())
        low, high = fitted.interval(samples.event, params)
        inside = (measured >= low) & (measured <= high)
        self.covered.append(np.where(np.isnan(low), np.nan, inside))


def _all_but(count: int, rows: Ints) -> Flags:
    left_out = np.ones(count, dtype=np.bool_)
    left_out[rows] = False
    return left_out
