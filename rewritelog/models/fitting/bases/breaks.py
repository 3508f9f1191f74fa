"""Power laws with breaks: hinges and levels of single parameters, beside a constant part.

On logarithmic scales a flag, a threshold or a change of slope is one more factor of a power law:
regression splines of degree 1, selected forward (J. Friedman, "Multivariate adaptive regression
splines", Annals of Statistics 19, 1991). In logarithms a constant, such as the overhead of a call,
cannot be a summand. So it is estimated first, and the rest of each time is regressed: a generalized
linear model with a logarithmic link and a constant coefficient of variation (P. McCullagh and
J. Nelder, *Generalized Linear Models*, 1989, chapter 8), fitted by iteratively reweighted least
squares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rewritelog.arrays import Floats, median
from rewritelog.models.expressions import Expression, constant, parse
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.bases.power_laws import LogTerm, power_of, product_of_powers
from rewritelog.models.fitting.design import ONE, Parameters, SelectionSamples, knots_of
from rewritelog.models.fitting.regression import least_squares, row_weights
from rewritelog.models.fitting.selection import Stepwise, select_columns

NEW_SHARE = 1e-8
"""A column is tried beside others only if at least this share of its squared length is orthogonal
to them."""

LOGS = -400.0, 700.0
"""Logarithms of times are limited to these: no exponential, and no quotient, overflows."""


def power_law_with_breaks(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose powers with breaks, and factors for single values and beyond thresholds.

    A constant part of the times is the term 1 beside their product.
    """
    parameters = selection.parameters
    # in seconds, a search that begins without the constant would depend on the unit
    times = selection.samples.times_s / median(selection.samples.times_s)
    terms, columns = selection.table.candidates(
        "breaks",
        lambda params: [*smooth_factors(params, parameters), *breaks(params, parameters)],
    )
    columns = np.column_stack([np.ones(len(times)), columns[selection.rows]])
    response = working_response(columns[:, : 1 + len(parameters.used)], times)
    for _ in range(3):
        taken, coefficients = _selected(columns, response)
        response = response.updated(columns[:, taken] @ coefficients, times)
    chosen = [terms[index - 1] for index in taken[1:]]
    steep = [True]
    while any(steep):
        chosen = _with_moved_breaks(chosen, selection, response)
        taken, coefficients = _selected(
            selection.values([ONE, *(term.expression for term in chosen)]), response
        )
        chosen = [chosen[index - 1] for index in taken[1:]]
        # an exponent beyond the bounds would not stay as fitted: so steep a slope is a jump
        least, most = tuning.EXPONENTS
        steep = [
            term.hinge and not least <= exponent <= most
            for term, exponent in zip(chosen, coefficients[1:].tolist(), strict=True)
        ]
        chosen = [
            break_at(term.broken, term.knot, hinge=False) if is_steep else term
            for term, is_steep in zip(chosen, steep, strict=True)
        ]
    law = product_of_powers(chosen, coefficients[1:])
    return (law, ONE) if response.constant_part and chosen else (law,)


def _selected(columns: Floats, response: WorkingResponse) -> tuple[list[int], Floats]:
    """Return the columns that are taken, the constant first, and their coefficients."""
    rows, target = columns * response.weights[:, None], response.logs * response.weights
    chosen = select_columns(rows, target, Stepwise(non_negative=False))
    taken = [0, *(index for index in chosen if index)]
    return taken, least_squares(rows[:, taken], target)


def _with_moved_breaks(
    terms: Sequence[LogTerm], selection: SelectionSamples, response: WorkingResponse
) -> list[LogTerm]:
    """Return the terms with each break moved to where it explains most beside the other terms."""
    moved, weights = list(terms), response.weights
    columns = selection.values([ONE, *(term.expression for term in terms)]) * weights[:, None]
    for index, term in enumerate(terms):
        if not term.broken:
            continue
        values = selection.values([parse(term.broken)])[:, 0]
        knots = _break_positions(values, term.knot)
        knots = knots[knots > 0] if term.hinge else knots
        if term.hinge:
            rows = np.log(np.maximum(values[:, None] / knots, 1.0))
        else:
            rows = (values[:, None] > knots).astype(np.float64)
        tried = np.column_stack((columns[:, index + 1], rows * weights[:, None]))
        best = _best_beside(np.delete(columns, index + 1, axis=1), tried, response.logs * weights)
        if best:
            moved[index] = break_at(term.broken, float(knots[best - 1]), hinge=term.hinge)
            columns[:, index + 1] = tried[:, best]
    return moved


def _break_positions(sizes: Floats, knot: float) -> Floats:
    """Return possible positions of a break: midpoints between sample values near `knot`.

    They are at most `MOST_POSITIONS`, spread evenly, with enough samples on either side of each.
    """
    rising = np.sort(sizes)
    count, index = len(rising), int(np.searchsorted(rising, knot))
    fewest, near = fewest_beyond(count), int(tuning.NEAR_BREAK * count)
    first, last = max(fewest - 1, index - near), min(count - fewest, index + near)
    inner = np.unique(rising[first : last + 1])
    between = (inner[1:] + inner[:-1]) / 2
    indices = np.linspace(0, len(between) - 1, min(len(between), tuning.MOST_POSITIONS))
    return np.asarray(between[np.round(indices).astype(np.int64)])


def _best_beside(columns: Floats, tried: Floats, target: Floats) -> int:
    """Return which column of `tried` explains most of the target beside `columns`; all weighted.

    The gain is the reduction of the residual sum of squares, (r·target)² / |r|², r being the part
    of the column that is orthogonal to `columns`.
    """
    basis = np.linalg.qr(columns)[0]
    new = tried - basis @ (basis.T @ tried)
    shares = np.einsum("ij,ij->j", new, new)
    usable = shares > NEW_SHARE * np.einsum("ij,ij->j", tried, tried)
    gains = np.where(usable, (new.T @ target) ** 2 / np.where(usable, shares, 1.0), -1.0)
    return int(np.argmax(gains))


def smooth_factors(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield factors without a break, the power of each parameter first.

    With few samples there are only powers: further factors would be chosen by chance.
    """
    yield from (power_of(number, parameters) for number in parameters.used)
    if len(params) < tuning.ENOUGH:
        return
    fewest = fewest_beyond(len(params))
    for number in parameters.used:
        column = params[:, number - 1]
        if len(np.unique(column)) <= tuning.MOST_VALUES or (column % 1 != 0).any():
            continue
        for size in tuning.ALIGNMENTS:
            if fewest <= (column % size == 0).sum() <= len(params) - fewest:
                yield LogTerm(parse(f"p{number}/{size} == floor(p{number}/{size})"))
    for first, second in combinations(parameters.positive(), 2):
        larger = params[:, first - 1] > params[:, second - 1]
        if fewest <= larger.sum() <= len(params) - fewest:
            ratio = parse(f"max(p{first}, p{second})/min(p{first}, p{second})")
            yield LogTerm(ratio.applied("log"), ratio)


def breaks(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield changes of an exponent, thresholds, and factors for single values."""
    dense = len(params) >= tuning.ENOUGH and len(parameters.used) <= tuning.MOST_DENSELY_BROKEN
    for number in parameters.used:
        column = params[:, number - 1]
        values = np.unique(column)
        if len(values) <= tuning.MOST_VALUES:
            yield from map(LogTerm, parameters.value_terms(number, values))
        else:
            for knot in knots_of(column, tuning.DENSE_KNOTS if dense else tuning.KNOTS):
                yield from _breaks_at(f"p{number}", knot, float(values[0]))
    for first, second in combinations(parameters.positive(), 2):
        for knot in knots_of(params[:, first - 1] * params[:, second - 1], tuning.KNOTS):
            yield from _breaks_at(f"(p{first}*p{second})", knot, 1.0)


def _breaks_at(name: str, knot: float, lowest: float) -> Iterator[LogTerm]:
    if lowest >= 0 and knot > 0:
        yield break_at(name, knot, hinge=True)
    yield break_at(name, knot, hinge=False)


def break_at(name: str, knot: float, *, hinge: bool) -> LogTerm:
    """Return the term of a break at `knot`: a `hinge` of the exponent, or a factor beyond it."""
    own, size = parse(name), constant(float(f"{knot:.6g}"))
    if hinge:
        base = own.applied("/", size).applied("max", ONE)
        return LogTerm(base.applied("log"), base, broken=name, knot=knot, hinge=True)
    beyond = own.applied(">", size)
    return LogTerm(beyond, broken=name, knot=knot)


def fewest_beyond(count: int) -> int:
    """Return the least number of samples on either side of a break."""
    return max(tuning.FEWEST_BEYOND, int(tuning.LEAST_BEYOND * count))


class WorkingResponse(Struct, frozen=True):
    """The regressand in logarithms: the times, in units of their median, less a constant part."""

    constant_part: float
    logs: Floats
    """Logarithms of the rest, and from the second round on the working response."""
    weights: Floats
    """The factor of each residual: the share of the rest in the time, times Huber's weight.

    An error of the logarithm of the rest thus counts as a relative error of the time.
    """

    def updated(self, fitted: Floats, times: Floats) -> WorkingResponse:
        """Return the regressand for the next round, given the fitted logarithms of this one."""
        if not self.constant_part:
            return replace(self, weights=row_weights(fitted - self.logs))
        fitted_rest = np.exp(fitted.clip(*LOGS))
        ratios = (times - self.constant_part) / fitted_rest
        # below the fit, where noise may leave less than nothing, the logarithm is linearized
        errors = np.where(ratios > 1, np.log(np.maximum(ratios, 1.0)), ratios - 1)
        shares = np.minimum(fitted_rest * np.maximum(ratios, 1.0) / times, 1.0)
        weights = shares * row_weights(errors * shares)
        return WorkingResponse(self.constant_part, fitted + errors, weights)


def working_response(columns: Floats, times: Floats) -> WorkingResponse:
    """Return the times less the constant part that leaves the rest nearest to a power law.

    `columns` are 1 and the logarithms of the parameters, shape (samples, 1 + parameters). Their
    squares are regressors too, since exponents may change with the size.
    """
    best = np.inf
    chosen = plain = WorkingResponse(0.0, np.log(times), np.ones(len(times)))
    if len(times) < tuning.FEWEST_PER_NUMBER * (2 * columns.shape[1] - 1):
        return plain
    curved = np.hstack((columns, columns[:, 1:] ** 2))
    shortest = float(np.quantile(times, tuning.SHORTEST_QUANTILE))
    for share in tuning.CONSTANT_SHARES:
        constant_part = share * shortest
        rest = np.maximum(times - constant_part, tuning.LEAST_REST * times)
        tried = WorkingResponse(constant_part, np.log(rest), rest / times)
        fitted = tried.logs
        for _ in range(2):
            rows, target = curved * tried.weights[:, None], tried.logs * tried.weights
            fitted = curved @ least_squares(rows, target)
            tried = tried.updated(fitted, times)
        predicted = constant_part + np.exp(fitted.clip(*LOGS))
        errors = np.minimum(np.abs(predicted / times - 1), tuning.LARGEST_ERROR)
        if errors.mean() < best * (1 - tuning.LEAST_GAIN_OF_CONSTANT):
            best, chosen = float(errors.mean()), tried if share else plain
    return chosen
