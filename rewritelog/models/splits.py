"""Splits of timing lines into those that a model is fitted to, and those it is tested on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Flags, Ints
from rewritelog.hashing import draw_numbers
from rewritelog.models.base import EventTimings, Timings


@dataclass(frozen=True)
class Split:
    """One division of the lines; a mask for each event, in their order."""

    left_out: tuple[Flags, ...]

    def fitted_to(self, timings: Timings) -> list[EventTimings]:
        """Return the samples for the fit, without events that have none left."""
        parts = [samples.part(~rows) for samples, rows in zip(timings, self.left_out, strict=True)]
        return [part for part in parts if len(part.seconds)]


def folds(timings: Timings, count: int, seed: int) -> Iterator[Split]:
    """Yield the splits of a `count`-fold cross-validation, stratified by event."""
    ranks = [random_ranks(samples.event, len(samples.seconds), seed) for samples in timings]
    for fold in range(count):
        yield Split(tuple(rank % count == fold for rank in ranks))


def fraction(timings: Timings, share: float, seed: int) -> Split:
    """Return a split with a random share of each event's lines, at least one, in the fit."""
    ranks = [random_ranks(samples.event, len(samples.seconds), seed) for samples in timings]
    return Split(tuple(rank >= max(1, round(share * len(rank))) for rank in ranks))


def random_ranks(label: str, count: int, seed: int) -> Ints:
    """Return the rank of each of `count` lines in a random order, the same on every machine.

    It depends on nothing but seed, label and count. With the event as the label, models of
    parameters and of counters get the same lines if all lines have both.
    """
    ranks = np.empty(count, dtype=np.int64)
    ranks[np.argsort(draw_numbers(label, count, seed), kind="stable")] = np.arange(count)
    return ranks
