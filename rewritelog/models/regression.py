"""Least squares over a fixed basis for one event, whatever its samples look like.

The samples are reduced, block by block, to the triangle R of a QR decomposition of all columns
and the times: everything else happens on R, which has a few dozen rows (Golub and Van Loan,
Matrix Computations, 4th ed., 5.3 and 5.2). Terms are taken in their order of preference, and one
that adds nothing to those taken before it is dropped and named; the system that is left is solved
by a singular value decomposition. Many equal, few or odd samples therefore give fewer terms, never
an error or huge coefficients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.basis import CONSTANT, Scaling, Term, design_matrix, terms_of
from rewritelog.models.fitting.diagnosis import Coefficient, Dropped
from rewritelog.models.fitting.function import FittedFunction
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.fitting.solving import ROUNDS, Loss, robust_weights

Left: TypeAlias = tuple[Term, str]
"""A term that the samples cannot determine, and why."""

COLLINEAR = 1e-7
"""The smallest singular value that the terms may have together, their columns having length 1.

Parameters that follow from one another, printed with six decimals, differ by less than this.
"""

BLOCK_BYTES = 8 << 20
"""Size of the block of columns that is decomposed at a time."""


@dataclass(frozen=True)
class Regression:
    """The fit of one event's times over a basis."""

    function: FittedFunction
    """Over scaled parameters, in which it is well conditioned."""
    coefficients: tuple[Coefficient, ...]
    """In the parameters as given."""
    dropped: tuple[Dropped, ...]


def regress(samples: Samples, basis: str, loss: Loss) -> Regression:
    """Fit the times over the basis, each residual divided by its sample's scale."""
    lowest, highest = samples.params.min(axis=0), samples.params.max(axis=0)
    scaling = Scaling.of_range(lowest, highest)
    constant, candidates = _split(terms_of(basis, samples.params.shape[1]), lowest, scaling)
    level = float(samples.seconds.min() / 2 + samples.seconds.max() / 2)
    weights = samples.weights
    for last in _rounds(loss, len(samples)):
        triangle = _triangle(candidates, samples, level, scaling, weights)
        choice = _choose(triangle[:, :-1], candidates, scaling, len(samples))
        solution = _solve(choice, triangle[:, -1], level, len(samples))
        function = FittedFunction(
            tuple(choice.scaling.expression(term) for term in choice.terms), solution.scaled
        )
        if not last:
            weights = samples.weights * robust_weights(function, samples)
    dropped = sorted((*constant, *choice.dropped), key=lambda one: one[0])
    return Regression(
        function,
        solution.coefficients,
        tuple(Dropped(str(term), reason) for term, reason in dropped),
    )


def _rounds(loss: Loss, samples: int) -> Iterator[bool]:
    """Yield, for each round of a fit, whether it is the last."""
    rounds = ROUNDS if loss == "huber" and samples > 2 else 1
    yield from (number == rounds - 1 for number in range(rounds))


def _split(
    terms: Sequence[Term], lowest: Floats, scaling: Scaling
) -> tuple[list[Left], list[Term]]:
    """Part the terms into those of constant parameters and those that can be fitted."""
    constant: list[Left] = []
    candidates: list[Term] = []
    for term in terms:
        which = term.parameter - 1
        if term == CONSTANT or scaling.varies[which]:
            candidates.append(term)
        else:
            value = lowest[which] + 0.0  # -0 is 0
            reason = f"p{term.parameter} is constant {value:.6g} in all samples"
            constant.append((term, reason))
    return constant, candidates


def _triangle(
    terms: Sequence[Term], samples: Samples, level: float, scaling: Scaling, weights: Floats
) -> Floats:
    """Return R of the QR decomposition of [columns of the terms | seconds − level], weighted.

    Lengths of columns and angles between them are R's, so that a fit to R is the fit to the rows.
    The memory needed does not grow with the rows.
    """
    width = len(terms) + 1
    rows = max(width, BLOCK_BYTES // (8 * width))
    triangle = np.zeros((0, width))
    for start in range(0, len(samples), rows):
        block = slice(start, start + rows)
        columns = design_matrix(terms, samples.params[block], scaling)
        both = np.column_stack((columns, samples.seconds[block] - level))
        stacked = np.vstack((triangle, both * weights[block, None]))
        triangle = np.asarray(np.linalg.qr(stacked, mode="r"), dtype=np.float64)
    return triangle


@dataclass(frozen=True)
class _Choice:
    """The terms that are fitted, in their own order, and their columns of the triangle."""

    terms: tuple[Term, ...]
    columns: Floats
    scaling: Scaling
    dropped: tuple[Left, ...]


def _choose(
    triangle: Floats, candidates: Sequence[Term], scaling: Scaling, samples: int
) -> _Choice:
    """Take each candidate in turn unless the ones taken before it say all that it says."""
    taken: dict[Term, Floats] = {}
    units = np.zeros((len(triangle), 0))
    dropped: list[Left] = []
    centre = scaling.centre.copy()
    for place, term in enumerate(candidates):
        if len(taken) == samples:
            dropped.append((term, f"{samples} samples allow no more terms"))
            continue
        column, plain = triangle[:, place], triangle[:, place]
        if term.power == 2:
            linear = Term(term.parameter, 1)
            plain = _uncentred(triangle, place, candidates.index(linear), term, scaling)
            if linear not in taken:
                column = plain
                centre[term.parameter - 1] = 0
        more = _with_unit(units, column)
        if more is None:
            dropped.append((term, _relation(plain, taken)))
        else:
            taken[term] = column
            units = more
    terms = tuple(sorted(taken))
    columns = np.column_stack([taken[term] for term in terms])
    return _Choice(terms, columns, replace(scaling, centre=centre), tuple(dropped))


def _with_unit(units: Floats, column: Floats) -> Floats | None:
    """Return the columns, at length 1 each, with one more; None where it says nothing new.

    Their smallest singular value bounds the coefficients: no fit to the scaled parameters has
    larger ones than the times divided by it.
    """
    more = np.column_stack((units, column / np.linalg.norm(column)))
    smallest = np.linalg.svd(more, compute_uv=False)[-1]
    return more if smallest > COLLINEAR else None


def _uncentred(triangle: Floats, square: int, linear: int, term: Term, scaling: Scaling) -> Floats:
    """Return the column of (p / scale)² from those of u², u and 1.

    With p itself in the fit, u² and p² are the same choice; without it u² would bring p back.
    """
    ratio = scaling.centre[term.parameter - 1] / scaling.scale[term.parameter - 1]
    column: Floats = triangle[:, square] + ratio * (
        2 * triangle[:, linear] + ratio * triangle[:, 0]
    )
    return column


def _relation(column: Floats, taken: dict[Term, Floats]) -> str:
    """Say which of the terms taken the column is a combination of."""
    terms, columns = tuple(taken), np.column_stack(list(taken.values()))
    weights = np.linalg.lstsq(columns, column, rcond=None)[0]
    shares = np.abs(weights) * np.linalg.norm(columns, axis=0)
    involved = sorted(
        term
        for term, share in zip(terms, shares, strict=True)
        if share > 1e-6 * shares.max() and term != CONSTANT
    )
    if not involved:
        return "constant in all samples"
    if len(involved) > 4:
        return "a linear combination of the other terms"
    return f"a linear combination of the other terms ({', '.join(map(str, involved))})"


@dataclass(frozen=True)
class _Solution:
    """The coefficients in scaled parameters and in those given, and what the fit leaves."""

    scaled: Floats
    coefficients: tuple[Coefficient, ...]


def _solve(choice: _Choice, times: Floats, level: float, samples: int) -> _Solution:
    """Solve for the terms chosen; `level` seconds were taken off the times and are put back.

    Standard errors are the roots of the diagonal of s² (XᵀX)⁻¹, s² being χ² per degree of freedom.
    """
    inverse = np.linalg.pinv(choice.columns, rcond=1e-15)
    scaled: Floats = np.linalg.lstsq(choice.columns, times, rcond=None)[0].astype(np.float64)
    chi2 = float(np.sum((times - choice.columns @ scaled) ** 2))
    scaled[0] += level
    freedom = samples - len(choice.terms)
    with np.errstate(all="ignore"):  # reports have null where a coefficient leaves the range
        back = _to_given(choice)
        values = back @ scaled
        spread = np.linalg.norm(back @ inverse, axis=1)
        errors = spread * np.sqrt(chi2 / freedom) if freedom else np.full(len(values), np.nan)
    coefficients = tuple(
        Coefficient(str(term), float(value), float(error) if freedom else None)
        for term, value, error in zip(choice.terms, values, errors, strict=True)
    )
    return _Solution(scaled, coefficients)


def _to_given(choice: _Choice) -> Floats:
    """Return the matrix from coefficients of scaled terms to those of 1, p and p².

    u = p/s − c/s and u² = p²/s² − 2c p/s² + c²/s², c and s being centre and scale.
    """
    place = {term: index for index, term in enumerate(choice.terms)}
    matrix = np.zeros((len(place), len(place)))
    matrix[0, 0] = 1
    for term, column in place.items():
        if term == CONSTANT:
            continue
        centre = choice.scaling.centre[term.parameter - 1]
        scale = choice.scaling.scale[term.parameter - 1]
        matrix[column, column] = (1 / scale) ** term.power
        matrix[0, column] = (-centre / scale) ** term.power
        if term.power == 2 and centre:
            matrix[place[Term(term.parameter, 1)], column] = -2 * (centre / scale) / scale
    return matrix
