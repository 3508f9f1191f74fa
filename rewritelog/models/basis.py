"""The terms of a fit, and their columns over whole arrays of parameters.

Columns are computed from scaled parameters u = (p − centre) / scale, which lie in [−1, 1] on the
samples: 1, u, u² span what 1, p, p² span, and stay well conditioned for p = 10⁶ ± 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Flags, Floats
from rewritelog.errors import UsageError
from rewritelog.models.expressions import Expression, parse

HIGHEST_POWER = {"linear": 1, "quadratic": 2}
"""The bases by name, with the highest power of a parameter in each."""

NARROWEST_RANGE = 1e-12
"""A parameter whose half range is at most this share of its largest value counts as constant."""


@dataclass(frozen=True, order=True)
class Term:
    """One term: a power of one parameter, the parameters being numbered from 1.

    The constant is `Term(0, 0)`. Sorted, terms stand as 1, p1, p1², p2, p2², …
    """

    parameter: int
    power: int

    def __str__(self) -> str:
        """Spell the term as reports name it: `1`, `p1`, `p1^2`."""
        if self.power == 0:
            return "1"
        return f"p{self.parameter}" if self.power == 1 else f"p{self.parameter}^{self.power}"


CONSTANT = Term(0, 0)


def terms_of(basis: str, parameters: int) -> tuple[Term, ...]:
    """Return the basis's terms of so many parameters, in the order in which a fit prefers them.

    Lower powers come first: 1, p1, p2, …, p1², p2², … Raise `UsageError` for an unknown basis.
    """
    if basis not in HIGHEST_POWER:
        raise UsageError(f"unknown basis {basis!r}; known: {', '.join(sorted(HIGHEST_POWER))}")
    powers = range(1, HIGHEST_POWER[basis] + 1)
    return (CONSTANT, *(Term(p, power) for power in powers for p in range(1, parameters + 1)))


@dataclass(frozen=True)
class Scaling:
    """How parameters become scaled ones; both arrays have shape (parameters,)."""

    centre: Floats
    scale: Floats
    """Half of the range over the samples."""
    varies: Flags
    """False where the parameter is the same in all samples but for rounding."""

    @classmethod
    def of_range(cls, lowest: Floats, highest: Floats) -> Scaling:
        """Return the scaling that maps [lowest, highest] of each parameter onto [−1, 1]."""
        scale = highest / 2 - lowest / 2
        largest = np.maximum(np.abs(lowest), np.abs(highest))
        return cls(lowest / 2 + highest / 2, scale, scale > NARROWEST_RANGE * largest)

    def column(self, term: Term, params: Floats) -> Floats:
        """Return the term's column over the rows of `params`, in the scaled parameter."""
        if term.power == 0:
            return np.ones(len(params))
        which = term.parameter - 1
        scaled: Floats = (params[:, which] - self.centre[which]) / self.scale[which]
        return scaled if term.power == 1 else scaled * scaled

    def expression(self, term: Term) -> Expression:
        """Return the term as an expression that evaluates to its `column`."""
        if term.power == 0:
            return parse("1")
        which = term.parameter - 1
        centre, scale = float(self.centre[which]), float(self.scale[which])
        moved = f"p{term.parameter} {'+' if centre < 0 else '-'} {abs(centre)!r}"
        scaled = f"({moved})/{scale!r}"
        return parse(scaled if term.power == 1 else f"({scaled})^{term.power}")


def design_matrix(terms: Sequence[Term], params: Floats, scaling: Scaling) -> Floats:
    """Return the columns of the terms, shape (rows, terms), in scaled parameters."""
    matrix = np.empty((len(params), len(terms)), order="F")
    for place, term in enumerate(terms):
        matrix[:, place] = scaling.column(term, params)
    return matrix
