"""Ordinary least squares for one event, whatever its samples look like.

The samples are reduced, block by block, to the triangle R of a QR decomposition of all columns
and the times: everything else happens on R, which has a few dozen rows (Golub and Van Loan,
Matrix Computations, 4th ed., 5.3 and 5.2). Terms are taken in their order of preference, and one
that adds nothing to those taken before it is dropped and named; the system that is left is solved
by a singular value decomposition. Many equal, few or odd samples therefore give fewer terms, never
an error or huge coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rewritelog.models.base import EventTimings, Flags, Floats
from rewritelog.models.basis import CONSTANT, Scaling, Term, design_matrix, evaluate, terms_of

COLLINEAR = 1e-7
"""The smallest singular value that the terms may have together, their columns having length 1.

Parameters that follow from one another, printed with six decimals, differ by less than this.
"""

BLOCK_BYTES = 8 << 20
"""Size of the block of columns that is decomposed at a time."""


@dataclass(frozen=True)
class Dropped:
    """A term that the samples cannot determine, and why."""

    term: Term
    reason: str


@dataclass(frozen=True)
class Coefficient:
    """One term of the fit in the parameters as given, in seconds for each unit of the term."""

    term: Term
    value: float
    standard_error: float | None
    """None without degrees of freedom."""


@dataclass(frozen=True)
class EventFit:
    """The fit of one event with one number of parameters, and how good it is."""

    event: str
    samples: int
    unusable: int
    """Samples left aside because a number in them is not finite."""
    lowest: Floats
    highest: Floats
    """The range of each parameter over the samples, shape (parameters,)."""
    terms: tuple[Term, ...]
    scaled_coefficients: Floats
    """Seconds for each term in scaled parameters; what predictions are computed from."""
    scaling: Scaling
    coefficients: tuple[Coefficient, ...]
    dropped: tuple[Dropped, ...]
    chi2: float
    """Sum of the squared residuals, s²."""
    freedom: int
    """Degrees of freedom: samples less terms."""
    r2: float | None
    """Share of the variation of the times that is explained; None where they do not vary."""

    @property
    def parameters(self) -> int:
        """Return the number of parameters."""
        return len(self.lowest)

    @property
    def chi2_per_freedom(self) -> float | None:
        """Return χ² per degree of freedom in s², None without any."""
        return self.chi2 / self.freedom if self.freedom else None

    def predict(self, params: Floats) -> Floats:
        """Return the seconds of each row, maybe below zero; NaN where they are not finite."""
        return evaluate(self.terms, self.scaled_coefficients, params, self.scaling)

    def outside(self, params: Floats) -> Flags:
        """Return which rows have a parameter outside its range over the samples."""
        flags = np.zeros(len(params), dtype=np.bool_)
        for which in range(self.parameters):
            column = params[:, which]
            flags |= ~((column >= self.lowest[which]) & (column <= self.highest[which]))
        return flags


def usable(timings: EventTimings) -> EventTimings:
    """Return the samples in which all numbers are finite."""
    finite = np.isfinite(timings.seconds) & np.isfinite(timings.params).all(axis=1)
    if finite.all():
        return timings
    return replace(timings, params=timings.params[finite], seconds=timings.seconds[finite])


def fit_event(timings: EventTimings, basis: str) -> EventFit:
    """Fit one event's times over the basis; at least one sample must be `usable`."""
    finite = usable(timings)
    params, seconds = finite.params, finite.seconds
    lowest, highest = params.min(axis=0), params.max(axis=0)
    scaling = Scaling.of_range(lowest, highest)
    constant, candidates = _split(terms_of(basis, params.shape[1]), lowest, scaling)
    level = seconds.min() / 2 + seconds.max() / 2
    triangle = _triangle(candidates, params, seconds - level, scaling)
    choice = _choose(triangle[:, :-1], candidates, scaling, len(seconds))
    solution = _solve(choice, triangle[:, -1], level, len(seconds))
    variation = float(np.sum(triangle[1:, -1] ** 2))
    return EventFit(
        event=timings.event,
        samples=len(seconds),
        unusable=len(timings.seconds) - len(seconds),
        lowest=lowest,
        highest=highest,
        terms=choice.terms,
        scaled_coefficients=solution.scaled,
        scaling=choice.scaling,
        coefficients=solution.coefficients,
        dropped=tuple(sorted((*constant, *choice.dropped), key=lambda dropped: dropped.term)),
        chi2=solution.chi2,
        freedom=len(seconds) - len(choice.terms),
        r2=1 - solution.chi2 / variation if variation > 0 else None,
    )


def _split(
    terms: Sequence[Term], lowest: Floats, scaling: Scaling
) -> tuple[list[Dropped], list[Term]]:
    """Part the terms into those of constant parameters and those that can be fitted."""
    constant: list[Dropped] = []
    candidates: list[Term] = []
    for term in terms:
        which = term.parameter - 1
        if term == CONSTANT or scaling.varies[which]:
            candidates.append(term)
        else:
            value = lowest[which] + 0.0  # -0 is 0
            reason = f"p{term.parameter} is constant {value:.6g} in all samples"
            constant.append(Dropped(term, reason))
    return constant, candidates


def _triangle(terms: Sequence[Term], params: Floats, seconds: Floats, scaling: Scaling) -> Floats:
    """Return R of the QR decomposition of [columns of the terms | seconds].

    Lengths of columns and angles between them are R's, so that a fit to R is the fit to the rows.
    Row 0 is the part along the constant; the memory needed does not grow with the rows.
    """
    width = len(terms) + 1
    rows = max(width, BLOCK_BYTES // (8 * width))
    triangle = np.zeros((0, width))
    for start in range(0, len(params), rows):
        block = slice(start, start + rows)
        columns = design_matrix(terms, params[block], scaling)
        stacked = np.vstack((triangle, np.column_stack((columns, seconds[block]))))
        triangle = np.asarray(np.linalg.qr(stacked, mode="r"), dtype=np.float64)
    return triangle


@dataclass(frozen=True)
class _Choice:
    """The terms that are fitted, in their own order, and their columns of the triangle."""

    terms: tuple[Term, ...]
    columns: Floats
    scaling: Scaling
    dropped: tuple[Dropped, ...]


def _choose(
    triangle: Floats, candidates: Sequence[Term], scaling: Scaling, samples: int
) -> _Choice:
    """Take each candidate in turn unless the ones taken before it say all that it says."""
    taken: dict[Term, Floats] = {}
    units = np.zeros((len(triangle), 0))
    dropped: list[Dropped] = []
    centre = scaling.centre.copy()
    for place, term in enumerate(candidates):
        if len(taken) == samples:
            dropped.append(Dropped(term, f"{samples} samples allow no more terms"))
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
            dropped.append(Dropped(term, _relation(plain, taken)))
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
    chi2: float


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
        Coefficient(term, float(value), float(error) if freedom else None)
        for term, value, error in zip(choice.terms, values, errors, strict=True)
    )
    return _Solution(scaled, coefficients, chi2)


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
