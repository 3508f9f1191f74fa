"""The coefficients of chosen terms: weighted, robust where wanted, for any number of samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting.candidates import columns_of, lengths_of
from rewritelog.models.fitting.function import FittedFunction
from rewritelog.models.fitting.samples import Samples

Loss: TypeAlias = Literal["huber", "squares"]

HUBER = 1.345
"""Residuals beyond this many standard deviations count by their size, not by its square.

Huber, "Robust estimation of a location parameter" (1964); at 1.345 the estimate has 95 % of the
efficiency of least squares on normal residuals.
"""

ROUNDS = 6
"""How often the weights of a robust fit are made anew at the most."""

SETTLED = 1e-4
"""Coefficients that change by less than this share have settled."""

LARGE = 1 << 16
"""More samples than these are gone through fewer times."""

_LEAST_SPREAD = 1e-12


@dataclass(frozen=True)
class Solved:
    """Coefficients, and how far the samples lie from what they give."""

    coefficients: Floats
    spread: float
    """Robust standard deviation of the residuals in units of each sample's scale."""


def solve(
    terms: Sequence[Expression], samples: Samples, loss: Loss, *, non_negative: bool
) -> Solved:
    """Fit the sum of the terms to the times, each residual divided by its sample's scale.

    Memory does not grow with the samples: each pass reduces them block by block to a triangle.
    """
    spread = np.inf
    coefficients = np.zeros(len(terms))
    robust = loss == "huber" and len(samples) > len(terms) + 2
    rounds = (ROUNDS if len(samples) <= LARGE else 3) if robust else 1
    blocks = _Blocks(terms, samples)
    for _ in range(rounds):
        before = coefficients
        rows = _triangle(blocks, coefficients, HUBER * spread)
        coefficients = _least_squares(rows[:, :-1], rows[:, -1], non_negative=non_negative)
        if np.allclose(coefficients, before, rtol=SETTLED, atol=0):
            break
        spread = residual_spread(terms, coefficients, samples)
    return Solved(coefficients, spread)


def robust_weights(function: FittedFunction, samples: Samples) -> Floats:
    """Return what to multiply each sample's weight by: 1, or less where the function is far off."""
    errors = np.abs(function.predict(samples.params) - samples.seconds) / samples.scale_s
    corner = HUBER * (1.4826 * float(np.median(errors)) + _LEAST_SPREAD)
    weights: Floats = np.sqrt(np.minimum(1.0, corner / np.maximum(errors, 1e-300)))
    return weights


def residual_spread(terms: Sequence[Expression], coefficients: Floats, samples: Samples) -> float:
    """Return the residuals' standard deviation in units of the scale, from their median size."""
    some = samples.drawn(LARGE)
    errors = np.abs(columns_of(terms, some.params) @ coefficients - some.seconds) / some.scale_s
    return 1.4826 * float(np.median(errors)) + _LEAST_SPREAD


class _Blocks:
    """The samples block by block with the columns of their terms, kept where they are few."""

    def __init__(self, terms: Sequence[Expression], samples: Samples) -> None:
        self._terms = terms
        self._samples = samples
        self._kept = list(self._made()) if len(samples) <= LARGE else None
        self.width = len(terms) + 1

    def __iter__(self) -> Iterator[tuple[Samples, Floats]]:
        return iter(self._made() if self._kept is None else self._kept)

    def _made(self) -> Iterator[tuple[Samples, Floats]]:
        for block in self._samples.blocks():
            yield block, columns_of(self._terms, block.params)


def _triangle(blocks: _Blocks, coefficients: Floats, corner: float) -> Floats:
    """Return R of the QR decomposition of [weighted columns | weighted times].

    Samples whose residual from `coefficients` exceeds `corner` scales have less weight.
    """
    triangle = np.zeros((0, blocks.width))
    for block, columns in blocks:
        weights = 1 / block.scale_s
        if np.isfinite(corner):
            errors = np.abs(columns @ coefficients - block.seconds) / block.scale_s
            weights *= np.sqrt(np.minimum(1.0, corner / np.maximum(errors, 1e-300)))
        rows = np.column_stack((columns, block.seconds)) * weights[:, None]
        rows[~np.isfinite(rows).all(axis=1)] = 0.0
        triangle = np.asarray(np.linalg.qr(np.vstack((triangle, rows)), mode="r"))
    return triangle


def _least_squares(columns: Floats, target: Floats, *, non_negative: bool) -> Floats:
    lengths = lengths_of(columns)
    lengths[lengths == 0] = 1.0
    if non_negative:
        from scipy.optimize import nnls  # noqa: PLC0415 - heavy, and needed by fits only

        scaled = nnls(columns / lengths, target)[0]
    else:
        scaled = np.linalg.lstsq(columns / lengths, target, rcond=1e-11)[0]
    return np.asarray(scaled / lengths)
