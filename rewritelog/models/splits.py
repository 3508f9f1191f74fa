"""Which timing lines a model is fitted to, and which it is then tried on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Flags, Ints
from rewritelog.hashing import draw_numbers
from rewritelog.models.base import EventTimings, Timings


@dataclass(frozen=True)
class Split:
    """Which lines of each event are left out of a fit, in the order of the events."""

    left_out: tuple[Flags, ...]

    def fitted_to(self, timings: Timings) -> list[EventTimings]:
        """Return the samples of the fit; events that keep none are not among them."""
        parts = [samples.part(~rows) for samples, rows in zip(timings, self.left_out, strict=True)]
        return [part for part in parts if len(part.seconds)]


def folds(timings: Timings, count: int, seed: int) -> Iterator[Split]:
    """Yield splits that leave out each line once, an equal share of each event at a time."""
    ranks = [random_ranks(one.event, len(one.seconds), seed) for one in timings]
    for fold in range(count):
        yield Split(tuple(rank % count == fold for rank in ranks))


def fraction(timings: Timings, share: float, seed: int) -> Split:
    """Return the split that fits to a random share of each event's lines, at least to one."""
    ranks = [random_ranks(one.event, len(one.seconds), seed) for one in timings]
    return Split(tuple(rank >= max(1, round(share * len(rank))) for rank in ranks))


def random_ranks(label: str, count: int, seed: int) -> Ints:
    """Return the rank of each of `count` lines in a random order, the same on every machine.

    It depends on seed, label and count alone. With an event for label, models of parameters and of
    counters get the same lines where all lines have both.
    """
    ranks = np.empty(count, dtype=np.int64)
    ranks[np.argsort(draw_numbers(label, count, seed), kind="stable")] = np.arange(count)
    return ranks
