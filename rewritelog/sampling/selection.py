"""Which rows of a run to measure: how many of each stratum, and which, by design or by chance.

A stratum is an event with one number of parameters, or one category of it. All that is known of a
row is its parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from rewritelog.arrays import Floats, Ints, Keys, random_keys, spans
from rewritelog.commands.fits import SampleMethod
from rewritelog.core import DistinctPoints
from rewritelog.models.expressions import Expression
from rewritelog.progress import report_progress
from rewritelog.sampling.design import Coordinates, DesignTerms, cover, design, leverages
from rewritelog.text import exact_number

_ROUNDING = 1 + 1e-9
_HALVINGS = 200


def allocate(total: int, weights: Floats, least: Ints, most: Ints) -> Ints:
    """Divide `total` in proportion to the weights, each share being between `least` and `most`.

    Weights are positive. The shares, integers of shape (groups,), add up to `total` unless the
    bounds do not allow that; then all of them are at their lower, or upper, bounds.
    """
    if least.sum() >= total:
        return least
    if most.sum() <= total:
        return most
    low, factor = 0.0, float((most / weights).max())
    for _ in range(_HALVINGS):  # the factor of the weights with which bounded shares sum to total
        middle = (low + factor) / 2
        enough = np.clip(middle * weights, least, most).sum() >= total
        low, factor = (low, middle) if enough else (middle, factor)
    shares = np.clip(factor * weights, least, most)
    floors = np.minimum(np.floor(shares * _ROUNDING).astype(np.int64), most)
    fraction = np.where(floors < most, shares - floors, -np.inf)
    floors[np.argsort(-fraction, kind="stable")[: total - int(floors.sum())]] += 1
    return floors


COVERAGE_SHARE, COVERAGE_SHARE_WITH_FORMULA = 2 / 3, 1 / 2
"""The share of a design's points that are spread over the run, for effects that no term covers.

Without a formula more are needed: the errors of `auto` on 70 kernels after 9, 15 and 30 lines are
22.0, 16.4 and 11.4 % with two thirds, 24.3, 17.1 and 11.8 % with a half, and 22.9, 16.4 and 11.4 %
with three quarters.
"""

POINTS_PER_TERM = 4
"""The most points of a design per term; further points are spread."""

POOL_POINTS = 1 << 14
"""A design chooses among this many points drawn at random, and the extremes."""

REPLICATED_POINTS = 5
"""The number of chosen points with replicates."""

LARGEST_TERM = 1e150
"""A term with larger values is left out: its square would overflow."""


class Plan(Struct, frozen=True):
    """The number of rows to choose, and the method."""

    fraction: float
    """The fraction of all rows, in (0, 1]."""
    method: SampleMethod = "design"
    seed: int = 1
    floor: int = 5
    """The least number of rows for each stratum, or all that it has."""


class Stratum(Struct, frozen=True):
    """The rows of an event with one number of parameters, or of one category of it."""

    event: str
    params: Floats
    """Shape (rows, parameters)."""
    timed: Floats
    """Parameters that are timed already, shape (lines, parameters)."""
    terms: tuple[Expression, ...] = ()
    """The terms of a formula, which the choice then covers in place of the parameters."""
    replicates: int = 1
    """How often to measure some of the points."""
    category: float | None = None
    """The value of the formula's category; None for an event without categories."""
    records: Ints | None = None
    """The indices of the rows among the records of the run, ascending."""
    label: str = ""
    """Determines the random numbers, with the seed; the event if it is empty."""
    names: tuple[str, ...] = ()
    """The names of the parameters; empty if they have none."""

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return int(self.params.shape[1])


class Choice(Struct, frozen=True):
    """The rows chosen of a stratum, and how well they cover it."""

    stratum: Stratum
    rows: Ints
    """The chosen rows, ascending, including replicates."""
    replicates: int
    """The number of chosen rows that are only replicates."""
    replicated_points: int
    points: int
    """The number of distinct parameter points among all rows."""
    measured_points: int
    """The number of distinct points that are chosen or timed already."""
    coefficients: int
    """The number of coefficients of a plain fit: a constant, and one for each parameter that
    varies; with a formula, one for each term that varies, and one if any term is constant."""
    outside: int
    """The number of rows with a parameter, or a term of the formula, outside the range of the
    points chosen or timed."""
    beyond: int
    """The number of rows with more leverage on a fit to the measured points than any of them."""
    extrapolated_rows: Ints
    """The rows that are outside, beyond or both, ascending."""

    @property
    def extrapolated(self) -> int:
        """The number of rows that are outside, beyond or both."""
        return len(self.extrapolated_rows)

    @property
    def most_times(self) -> int:
        """How often the chosen rows have the same parameters, at most."""
        chosen = DistinctPoints.of_rows(self.stratum.params[self.rows])
        return int(chosen.counts.max(initial=0))

    def to_json(self) -> dict[str, Any]:
        """Return all counts and shares as a JSON object."""
        stratum = self.stratum
        return {
            "event": stratum.event,
            "parameters": stratum.parameters,
            "category": None if stratum.category is None else exact_number(stratum.category),
            "records": len(stratum.params),
            "timed": len(stratum.timed),
            **{name: count for name, count in asdict(self).items() if isinstance(count, int)},
            "chosen": len(self.rows),
            "extrapolated": self.extrapolated,
            "extrapolated_share": self.extrapolated / len(stratum.params),
        }


def choose(strata: Sequence[Stratum], plan: Plan) -> tuple[Choice, ...]:
    """Choose rows of each stratum: `plan.fraction` of all rows, and at least the floor of each.

    The variance of a fit is proportional to k/n for n samples and k coefficients. The sum of N·k/n
    over strata with N rows to predict is smallest if n is proportional to √(N·k), which is the
    allocation used (as in Neyman's optimal allocation). Replicates are additional. The choice
    depends on nothing but strata and plan.
    """
    tasks = [_StratumChoice(stratum, plan) for stratum in strata]
    rows = [len(stratum.params) for stratum in strata]
    weights = np.sqrt([n * task.coefficients for n, task in zip(rows, tasks, strict=True)])
    least, most = np.array([task.bounds for task in tasks], dtype=np.int64).reshape(-1, 2).T
    shares = allocate(round(plan.fraction * sum(rows)), weights, least, most)
    choices = []
    for number, (task, n) in enumerate(zip(tasks, shares, strict=True)):
        report_progress("choosing SEBs, strata done", number, len(tasks))
        choices.append(task.choice(int(n)))
    return tuple(choices)


class _StratumChoice:
    """A stratum with everything that is needed to choose from it."""

    def __init__(self, stratum: Stratum, plan: Plan) -> None:
        self.stratum, self.plan = stratum, plan
        self.points = points = DistinctPoints.of_rows(stratum.params)
        self.spanned, self.timed = _spanned(stratum, points.params)
        """The values to cover at each point, and at those that are timed already: the parameters,
        or the terms of a formula."""
        self.free = DistinctPoints.of_rows(stratum.timed).find(points.params) < 0
        """Which points are not timed already."""
        self.coordinates = Coordinates(self.spanned, points.counts)
        label = stratum.label or stratum.event
        self.numbers = random_keys(label, len(stratum.params), plan.seed)
        """Random numbers of the rows; among equivalent rows the one with the smallest is taken."""
        self.order, self.starts = points.in_order(self.numbers)
        """The rows sorted by point and number, and where each point begins in them."""

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the most rows to choose.

        Existing timing lines count towards the floor. The most are one row of each point, unless
        the floor requires more, or all rows with the method random.
        """
        free_rows = int(self.points.counts[self.free].sum())
        least = min(max(self.plan.floor - len(self.timed), 0), free_rows)
        points = free_rows if self.plan.method == "random" else int(np.count_nonzero(self.free))
        return least, max(least, points)

    @property
    def coefficients(self) -> int:
        """The number of coefficients of a plain fit, without products and powers.

        A formula has a constant only among its terms.
        """
        varying = len(self.coordinates.unit)
        has_constant = not self.stratum.terms or varying < self.spanned.shape[1]
        return max(varying + has_constant, 1)

    def choice(self, number: int) -> Choice:
        """Choose rows, and measure by point how well they cover all rows."""
        points, counts = self.points, self.points.counts
        smallest = self.numbers[self.order[self.starts[:-1]]]
        pool = np.arange(len(points))
        if len(points) > POOL_POINTS:  # a random sample, and the extremes
            at_random = np.argpartition(smallest, POOL_POINTS)[:POOL_POINTS]
            extremes = np.concatenate([self.spanned.argmin(axis=0), self.spanned.argmax(axis=0)])
            pool = np.union1d(at_random, extremes)
        terms = DesignTerms(self.coordinates, self.spanned[pool], counts[pool])
        if self.plan.method == "random":
            rows = np.flatnonzero(self.free[points.point_of_row])
            rows = rows[np.argsort(self.numbers[rows], kind="stable")[:number]]
            chosen = np.unique(points.point_of_row[rows])
        else:
            chosen = self._points(number, terms, pool, smallest)
            rows = self._rows_of(chosen, number)
        replicate_rows, replicated_points = self._replicates(chosen)
        with_replicates = np.union1d(rows, replicate_rows)
        chosen = np.unique(points.point_of_row[with_replicates])
        measured = np.concatenate([self.spanned[chosen], self.timed])
        lowest, highest = measured.min(axis=0), measured.max(axis=0)
        outside = ((self.spanned < lowest) | (self.spanned > highest)).any(axis=1)
        most = leverages(terms, measured, measured).max()
        beyond = leverages(terms, measured, self.spanned) > _ROUNDING * most
        return Choice(
            stratum=self.stratum,
            rows=with_replicates,
            replicates=len(with_replicates) - len(rows),
            replicated_points=replicated_points,
            points=len(points),
            measured_points=len(DistinctPoints.of_rows(measured)),
            coefficients=self.coefficients,
            outside=int(counts[outside].sum()),
            beyond=int(counts[beyond].sum()),
            extrapolated_rows=np.flatnonzero((outside | beyond)[points.point_of_row]),
        )

    def _points(self, number: int, terms: DesignTerms, pool: Ints, numbers: Keys) -> Ints:
        """Return `number` of the free points, or all of them, in the order of their choice."""
        number = min(number, int(np.count_nonzero(self.free)))
        designed = np.zeros(0, dtype=np.int64)
        if self.plan.method == "design":
            most = POINTS_PER_TERM * terms.count
            share = COVERAGE_SHARE_WITH_FORMULA if self.stratum.terms else COVERAGE_SHARE
            count = min(number - round(share * number), most)
            values, known = terms.values(self.spanned[pool]), terms.values(self.timed)
            designed = pool[design(values, self.free[pool], known, count)]
        taken = ~self.free
        number += int(np.count_nonzero(taken))
        taken[designed] = True
        coordinates = self.coordinates.of(self.spanned)
        spread = cover(coordinates, self.points.counts, taken, number, numbers)
        return np.concatenate([designed, spread])

    def _rows_of(self, chosen: Ints, number: int) -> Ints:
        """Return one row of each chosen point, then a second one and so on, up to `number`."""
        if len(chosen) >= number:
            return self.order[self.starts[chosen]]
        point = self.points.point_of_row[self.order]
        places = np.flatnonzero(np.isin(point, chosen))
        rank = places - self.starts[point[places]]
        in_turn = np.lexsort((self.numbers[self.order[places]], rank))
        return self.order[places[in_turn[:number]]]

    def _replicates(self, chosen: Ints) -> tuple[Ints, int]:
        """Return up to `replicates` rows of each point to measure again, and the number of points.

        These are the first chosen points with several rows, or else the point with the most rows.
        """
        counts = self.points.counts
        times = min(self.stratum.replicates, int(counts.max()))
        recurring = chosen[counts[chosen] > 1][:REPLICATED_POINTS]
        if len(recurring) == 0:
            recurring = np.array([np.argmax(counts)])
        if times < 2:
            return np.zeros(0, dtype=np.int64), 0
        places = spans(self.starts[recurring], np.minimum(counts[recurring], times))
        return self.order[places], len(recurring)


def _spanned(stratum: Stratum, params: Floats) -> tuple[Floats, Floats]:
    """Return the values to cover at the points and at those that are timed already.

    Without a formula these are the parameters. A term that is not finite everywhere, or has values
    beyond `LARGEST_TERM`, is left out.
    """
    if not stratum.terms:
        return params, stratum.timed
    points = np.concatenate([params, stratum.timed])
    columns = np.column_stack([term.evaluate(points) for term in stratum.terms])
    usable = (np.abs(columns) <= LARGEST_TERM).all(axis=0)
    return columns[: len(params), usable], columns[len(params) :, usable]
