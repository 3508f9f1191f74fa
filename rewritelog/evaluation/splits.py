"""Which timing lines a model is fitted to, and which it is then tried on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Flags, Ints
from rewritelog.models.base import EventTimings, Timings
from rewritelog.models.distinct_points import draw_numbers


@dataclass(frozen=True)
class Split:
    """Which lines of each event are left out of a fit, in the order of the events."""

    left_out: tuple[Flags, ...]

    def fitted_to(self, timings: Timings) -> list[EventTimings]:
        """Return the samples of the fit; events that keep none are not among them."""
        parts = [
            EventTimings(samples.event, samples.params[~rows], samples.seconds[~rows])
            for samples, rows in zip(timings, self.left_out, strict=True)
        ]
        return [part for part in parts if len(part.seconds)]


def folds(timings: Timings, count: int, seed: int) -> Iterator[Split]:
    """Yield splits that leave out each line once, an equal share of each event at a time."""
    orders = _orders(timings, seed)
    for fold in range(count):
        yield Split(tuple(order % count == fold for order in orders))


def fraction(timings: Timings, share: float, seed: int) -> Split:
    """Return the split that fits to a random share of each event's lines, at least to one."""
    return Split(
        tuple(order >= max(1, round(share * len(order))) for order in _orders(timings, seed))
    )


def _orders(timings: Timings, seed: int) -> list[Ints]:
    """Return the place of each event's lines in a random order, the same on every machine.

    It depends on seed, event and number of lines alone, so that models of parameters and of
    counters get the same lines where all lines have both.
    """
    orders = []
    for samples in timings:
        numbers = draw_numbers(samples.event, len(samples.seconds), seed)
        order = np.empty(len(numbers), dtype=np.int64)
        order[np.argsort(numbers, kind="stable")] = np.arange(len(numbers))
        orders.append(order)
    return orders
