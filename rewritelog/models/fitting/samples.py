"""The usable samples of an event, and the scale that each one's residual is divided by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints, column_range, median
from rewritelog.hashing import sequence

Weighting: TypeAlias = Literal["relative", "uniform"]

BLOCK_ROWS = 1 << 16
"""Rows that are processed at a time, so that memory does not grow with the samples."""

LEAST_SHARE = 1e-3
"""A time below this share of the median has this share as its scale.

The scale of a time of 0, which is the result of rounding, is the median itself.
"""

LEAST_SCALE_S = 1e-280
"""The least scale: the inverse of a smaller one could overflow."""


@dataclass(frozen=True)
class Samples:
    """Parameters and times of one event, all of them finite, in the order of measurement."""

    params: Floats
    """Shape (samples, parameters)."""
    seconds: Floats
    """Shape (samples,)."""
    sigma_s: Floats
    """What the residual of each sample is divided by, in seconds, shape (samples,): the time itself
    with relative weights, the mean of all times with uniform ones."""
    first: Flags
    """True for the event's first call, which pays for cold caches."""
    relative: bool
    """Whether weights are relative."""

    def __len__(self) -> int:
        return len(self.seconds)

    @classmethod
    def weighted(
        cls, params: Floats, seconds: Floats, weighting: Weighting, *, slow_first: bool = True
    ) -> Samples:
        """Return the samples with scales for relative or uniform weights.

        Relative weights are Foster's *scaled* least squares, "Designing and Building Parallel
        Programs" (1995), 3.5.3: each residual is divided by its observation. `slow_first` says
        whether the first sample is the event's first call.
        """
        first = np.zeros(len(seconds), dtype=np.bool_)
        first[:1] = slow_first
        size = np.abs(seconds)
        if weighting == "uniform":
            mean = float(size.mean()) if len(size) else 0.0
            return cls(params, seconds, np.full(len(size), mean or 1.0), first, relative=False)
        positive = size[size > 0]
        middle = max(median(positive), LEAST_SCALE_S) if len(positive) else 1.0
        scale = np.where(size > 0, np.maximum(size, LEAST_SHARE * middle), middle)
        return cls(params, seconds, scale, first, relative=True)

    @cached_property
    def range(self) -> tuple[Floats, Floats]:
        """The lowest and the highest value of each parameter; there must be a sample."""
        return column_range(self.params)

    @property
    def weights(self) -> Floats:
        """The factor of each sample's residual, scaled to at most 1 so that none overflows."""
        weights: Floats = self.sigma_s.min(initial=np.inf) / self.sigma_s
        return weights

    def part(self, rows: Flags | Ints | slice) -> Samples:
        """Return the samples that a mask, indices or a slice select, in their order."""
        return replace(
            self,
            params=self.params[rows],
            seconds=self.seconds[rows],
            sigma_s=self.sigma_s[rows],
            first=self.first[rows],
        )

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Samples]:
        """Yield all samples in blocks of at most this many."""
        for start in range(0, len(self), rows):
            yield self.part(slice(start, start + rows))

    def drawn(self, most: int) -> Samples:
        """Return a pseudo-random part of at most this many samples, always the same one."""
        return self if len(self) <= most else self.part(self.drawn_rows(most))

    def drawn_rows(self, many: int) -> Ints:
        """Return the rows of a pseudo-random part of `many` samples, fewer than all."""
        return _drawn_rows(len(self), many)


@lru_cache(maxsize=8)
def _drawn_rows(count: int, many: int) -> Ints:
    """Return the rows of the `many` smallest of the first `count` pseudo-random numbers."""
    numbers = sequence(count)
    # those that may be among the smallest: of uniform numbers, twice as many as are wanted
    likely = np.flatnonzero(numbers <= np.uint64((1 << 64) // count * min(2 * many, count - 1)))
    if len(likely) <= many:
        likely = np.arange(count)
    rows = np.sort(likely[np.argpartition(numbers[likely], many)[:many]])
    rows.flags.writeable = False
    return np.asarray(rows)
