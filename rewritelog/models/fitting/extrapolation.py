"""Extrapolation: predictions beyond the range of the samples.

A function that is best within the range may explode beyond it: a high power of a parameter that
hardly matters there explains some noise, and no sample contradicts its growth. Each family is
therefore also tested in a trial: fitted to the samples with small values of a parameter, and tested
on those with large ones. Beyond the range, predictions start from the value at its edge and grow as
the families do that were good both in the trial and in cross-validation. Of two equally good
families the one that grows less has more weight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints, column_range
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.design import SelectionSamples, log_log_slopes, may_be_depth
from rewritelog.models.fitting.diagnosis import are_usual, ratios_of, widening_rate
from rewritelog.models.fitting.function import (
    AnyFunction,
    CorrectedFunction,
    Formula,
    growth_between,
)
from rewritelog.models.fitting.validation import CrossValidation, fit_family, map_trials, shares_of
from rewritelog.models.form import Form
from rewritelog.progress import report_progress

LEAST_S = 1e-300
"""The least time, and range of a parameter, of which logarithms and quotients are taken."""

LEAST_ERROR = 1e-6
"""Smaller errors count as this."""


class Growth(Form, frozen=True, rename={"widening_rate": "error"}):
    """How a fit is extrapolated beyond the range of the samples."""

    function: Formula | None = None
    """The function whose growth from the edge of the range is used; None for the fit's own formula.

    A correction is learnt from samples nearby, and there may be none near the point at the edge
    that a row is extrapolated from. So the farther away the row is, the more the value at the edge
    is that of this function, without a correction.
    """
    widening_rate: float | None = None
    """How fast intervals widen with the `distance`, from the trial (`widening_rate`); None without
    one."""
    most_s: float | None = None
    """The longest measured time; None for no upper bound. A prediction is at most the larger of
    this and the value at the edge, times the growth that each parameter outside its range allows:
    above it p/highest, both less an offset, to the function's local power at the edge, at least 1,
    or as much as a constant and a power grow, if `dense` has the parameter, or an exponential, if
    `depths` does; below it lowest/p to that power, at least 0. Negative parameters count by size
    (`_largest_growth`)."""
    dense: tuple[int, ...] = ()
    """The numbers of the parameters with several values in the upper half of their range, which
    show the shape of the growth there; of all if the trial was good, which shows it too."""
    depths: tuple[int, ...] = ()
    """Those of the parameters that may be depths of trees."""

    @np.errstate(all="ignore")  # extreme numbers may overflow
    def predict(
        self, inner: AnyFunction, params: Floats, lowest: Floats, highest: Floats
    ) -> Floats:
        """Return the seconds of rows beyond the range; NaN where numbers are not finite."""
        edge = np.clip(params, lowest, highest)
        at_edge, function = inner.predict(edge), self.function
        if isinstance(inner, CorrectedFunction):
            function = function or inner.formula
            plain = function.predict(edge)
            sizes = _sizes_of(edge, lowest, highest)
            nearness = (sizes / (sizes + np.abs(params - edge))).prod(axis=1)
            at_edge = plain * (at_edge / plain) ** nearness**tuning.FADING
        # how much less work there may be; unlike p/lowest, above 0 for a p of 0
        shares = (1 + np.maximum(params, 0.0)) / (1 + np.maximum(lowest, 0.0))
        below = (lowest > 0) & (params < lowest)
        smaller = np.asarray(np.where(below, shares, 1.0).prod(axis=1))
        # a power of 0 is 0 or infinite, however little the parameter matters: 0 is replaced, if all
        # samples are above it, by half of their least value or, if that is large, by nearly 1
        least = lowest / (1 + np.maximum(lowest, 1.0))
        rows = np.where((lowest > 0) & (params <= 0), least, params)
        if function is None:
            seconds = inner.predict(rows)
        else:
            seconds = at_edge * growth_between(function, edge, rows)
        known = np.where(
            seconds > 0, seconds, at_edge * np.maximum(smaller, tuning.LEAST_SHARE_OF_TIME)
        )
        if self.most_s is not None:
            growth = self._largest_growth(function or inner, rows, edge, lowest, highest)
            limit = np.fmax(at_edge, self.most_s) * growth
            known = np.fmin(known, limit)
        return np.where(np.isfinite(params).all(axis=1) & np.isfinite(known), known, np.nan)

    def _largest_growth(
        self, function: AnyFunction, params: Floats, edge: Floats, lowest: Floats, highest: Floats
    ) -> Floats:
        """Return the largest factor by which each row may exceed the times within the range.

        A function that grows with the power s of a parameter at the edge of the range may go on
        doing so; a steeper term that hardly contributes there must not take over: at 360 times its
        range, the error of a modelled kernel was 11,435 % without this limit, and 356 % with it. A
        steeper power beside a constant may go on growing if it has a fifth of the time, and `dense`
        the parameter. With a parameter that may be a depth, the growth may be exponential. A range
        narrower than its least value, as of step numbers that begin at a million, is shifted to
        begin at its width: relative to a million nothing in it grows.
        """
        factor = np.ones(len(params))

        def growth_to_edge(rows: Ints, column: int, start: float) -> Floats:
            inside = edge[rows].copy()
            inside[:, column] = start
            return np.log(growth_between(function, inside, edge[rows]))

        for column, sign in product(range(params.shape[1]), (1, -1)):  # negative ones by their size
            sizes = sign * params[:, column]
            low, high = sorted((sign * lowest[column], sign * highest[column]))
            if high <= 0:
                continue
            above = np.flatnonzero(sizes > high)
            if len(above):
                offset = max(2 * low - high, 0.0) if low < high else 0.0
                largest = high - offset
                starts = [sign * (offset + tuning.WITHIN**steps * largest) for steps in (1, 2, 3)]
                growth = growth_to_edge(above, column, starts[0])
                further = (sizes[above] - offset) / largest
                power = np.fmax(growth / -math.log(tuning.WITHIN), 1.0)
                most = further**power
                if sign > 0 and column + 1 in self.dense:
                    of_two, of_three = (growth_to_edge(above, column, at) for at in starts[1:])
                    of_power = _growth_beside_a_constant(growth, of_two, of_three, further)
                    most = np.fmax(most, of_power)
                if sign > 0 and column + 1 in self.depths:
                    rate = np.fmax(growth, 0.0) / (1 - tuning.WITHIN)
                    most = np.fmax(most, np.exp(rate * (further - 1)))
                factor[above] *= most
            below = np.flatnonzero((sizes > 0) & (sizes < low))
            if len(below):
                growth = growth_to_edge(below, column, sign * low / tuning.WITHIN)
                power = np.fmax(growth / -math.log(tuning.WITHIN), 0.0)
                factor[below] *= (low / sizes[below]) ** power
        return factor


def _growth_beside_a_constant(
    growth: Floats, of_two: Floats, of_three: Floats, further: Floats
) -> Floats:
    """Return the growth of c + a·p^k to `further` times the edge; 0 where times grow otherwise.

    The first three are the logarithms of the growth in one, two and three steps to the edge, each
    to 1 / `WITHIN` times the parameter. One and two tell k, and the share of a·p^k in the time at
    the edge; three have to agree with these, as in a step of the times they do not.
    """
    near, far, farthest = np.exp(-growth), np.exp(-of_two), np.exp(-of_three)
    power = np.log((1 - near) / (near - far)) / -math.log(tuning.WITHIN)
    share = (1 - near) / (1 - tuning.WITHIN**power)
    expected = 1 - share + share * tuning.WITHIN ** (3 * power)
    known = (near > far) & (share >= tuning.LEAST_GROWING) & (power <= tuning.STEEPEST)
    known &= np.abs(farthest - expected) <= tuning.AGREEMENT
    return np.where(known, 1 + share * (further**power - 1), 0.0)


def is_outside(params: Floats, lowest: Floats, highest: Floats) -> Flags:
    """Return which rows have a parameter outside its range over the samples, or NaN."""
    return np.asarray(~((params >= lowest) & (params <= highest)).all(axis=1))


@np.errstate(all="ignore")  # extreme numbers may overflow
def distance(params: Floats, lowest: Floats, highest: Floats) -> Floats:
    """Return how far each row lies beyond the range: Σ log(1 + |p − bound|/size).

    The size is the lesser of |p| and |bound|, but at most twice the width of the range, which is
    narrow for step numbers that begin at a million. The distance is 0 within the range, and log 2
    for one parameter at twice its largest value or half its least.
    """
    edge = np.clip(params, lowest, highest)
    sizes = np.where((params > 0) & (params < edge), params, _sizes_of(edge, lowest, highest))
    widths = highest - lowest
    sizes = np.minimum(sizes, np.where(widths > 0, 2 * widths, np.inf))
    return np.asarray(np.log1p(np.abs(params - edge) / sizes).sum(axis=1))


def _sizes_of(edge: Floats, lowest: Floats, highest: Floats) -> Floats:
    """Return how large the parameters at the edge of the range are: |p|, or the range for 0."""
    return np.where(edge != 0, np.abs(edge), np.maximum(highest - lowest, LEAST_S))


def growth_of(
    selected: Mapping[str, float], validation: CrossValidation, held_out_s: Floats | None
) -> Growth:
    """Return how to extrapolate, from trials on the samples with large parameters.

    `selected` are the weights of the families that predict within the range, and `held_out_s` the
    seconds that they predict, corrected or not, for held-out samples; None with too few samples for
    a cross-validation, which are too few for a trial too.
    """
    samples = validation.selection.samples
    most_s = float(samples.seconds.max()) if (samples.seconds > 0).any() else None
    weights, rate, good = selected, None, False
    splits = list(_trial_splits(validation.selection))
    if splits and held_out_s is not None:
        report_progress("extrapolation")
        logs, distances = _logs_in_trials(splits, validation)
        weights = _growth_weights(selected, validation, logs)
        residual = np.asarray(sum(weight * logs[name] for name, weight in weights.items()))
        points = samples.points
        usual = are_usual(samples, held_out_s)
        ratios = ratios_of(samples.seconds[usual], held_out_s[usual], points.count_of_row[usual])
        rate = widening_rate(ratios, min(len(points), len(ratios)), np.exp(-residual), distances)
        good = _trial_error(residual) <= tuning.GOOD_TRIAL * _trial_error(np.log(ratios))
    function = None if weights == selected else validation.solve(weights)
    values = dict(enumerate(map(np.unique, samples.params.T), 1))
    dense = tuple(number for number, of_one in values.items() if good or _are_dense(of_one))
    depths = tuple(number for number, of_one in values.items() if may_be_depth(of_one))
    return Growth(function, rate, most_s, dense, depths)


def _are_dense(values: Floats) -> bool:
    """Return whether several of a parameter's values are in the upper half of its range."""
    middle = values[0] / 2 + values[-1] / 2
    return bool(np.count_nonzero(values >= middle) >= tuning.FEWEST_IN_UPPER_HALF)


def _trial_splits(selection: SelectionSamples) -> Iterator[tuple[Ints, Ints]]:
    """Yield the rows of samples with small and with large values of each parameter for a trial."""
    samples = selection.samples
    count = len(samples)
    if count < tuning.FEWEST_FOR_TRIAL:
        return
    correlations = selection.parameters.correlations
    strongest = sorted(correlations, key=lambda number: -abs(correlations[number]))
    for number in strongest[: tuning.MOST_TRIALS]:
        if abs(correlations[number]) >= tuning.LEAST_CORRELATION:
            order = np.argsort(samples.params[:, number - 1], kind="stable")
            first_large = int(tuning.LARGE_FROM * count)
            yield np.sort(order[:first_large]), np.sort(order[first_large:])


def _logs_in_trials(
    splits: list[tuple[Ints, Ints]], validation: CrossValidation
) -> tuple[dict[str, Floats], Floats]:
    """Return log predicted / measured time of the large samples of all trials, by family.

    Families are fitted to the samples with small values. Also return how far the large ones lie
    beyond these (`distance`).
    """
    families, selection = validation.families, validation.selection

    def trial(rows: tuple[Ints, Ints]) -> dict[str, Floats]:
        small, large = selection.part(rows[0]), selection.samples.part(rows[1])
        logs = {}
        for name, family in families.items():
            grown = Growth().predict(fit_family(family, small), large.params, *small.samples.range)
            logs[name] = np.log(np.maximum(grown, LEAST_S) / large.times_s)
        return logs

    by_trial = list(map_trials(trial, splits, families, selection))
    params = selection.samples.params
    distances = [distance(params[large], *column_range(params[small])) for small, large in splits]
    logs = {name: np.concatenate([logs[name] for logs in by_trial]) for name in families}
    return logs, np.concatenate(distances)


def _trial_error(logs: Floats) -> float:
    """Return the error of a family in the trial, as a difference of logarithms.

    It is the power mean of the errors with exponent ½: a few interrupted calls, which every family
    misses, hide less than in the mean which of them is right about the others.
    """
    roots = np.sqrt(np.minimum(np.abs(logs), tuning.LARGEST_LOG_ERROR))
    return float((roots.sum() / len(roots)) ** 2)


def _growth_weights(
    selected: Mapping[str, float], validation: CrossValidation, logs: Mapping[str, Floats]
) -> Mapping[str, float]:
    """Return the weights of families for the growth beyond the range.

    They follow from the errors in the trial, whose logarithms are `logs`, those in the
    cross-validation, and the sum of the squares of the slopes beyond the range. Families that
    choose the same terms are one, with the mean of their weights.
    """
    selection = validation.selection
    by_errors: dict[str, float] = {}
    for name, predictions in validation.predictions.items():
        held_out = max(predictions.mean_error, LEAST_ERROR)
        in_trial = max(_trial_error(logs[name]), LEAST_ERROR)
        by_errors[name] = -tuning.POWER_OF_ERRORS * math.log(in_trial * held_out)
        by_errors[name] += math.log1p((tuning.PRIOR_OF_SELECTED - 1) * selected.get(name, 0.0))
    log_weights: dict[str, list[float]] = {}
    first: dict[frozenset[Expression], str] = {}
    least = -math.inf
    for name in sorted(by_errors, key=lambda name: (-by_errors[name], name not in selected)):
        if by_errors[name] < least:
            break
        fitted = fit_family(validation.families[name], selection)
        slopes = log_log_slopes(fitted.predict(selection.parameters.corners())[None])
        log = by_errors[name] - float((slopes**2).sum())
        log_weights.setdefault(first.setdefault(frozenset(fitted.terms), name), []).append(log)
        least = max(least, log + math.log(tuning.LEAST_PART))
    largest = max(log for family_logs in log_weights.values() for log in family_logs)
    weights = {
        name: float(np.exp(np.array(family_logs) - largest).mean())
        for name, family_logs in log_weights.items()
    }
    return shares_of(weights, tuning.LEAST_PART * max(weights.values()))
