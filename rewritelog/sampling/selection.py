"""Which rows of a run to measure: how many of each stratum, and which, by design or by chance.

A stratum is an event with one number of parameters, or one category of it. All that is known of a
row is its parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints, Keys
from rewritelog.errors import UsageError
from rewritelog.hashing import draw_numbers
from rewritelog.models.distinct_points import DistinctPoints, is_among
from rewritelog.models.expressions import Expression
from rewritelog.models.options import SampleMethod
from rewritelog.progress import report_progress
from rewritelog.sampling.allocation import allocate
from rewritelog.sampling.coverage import cover
from rewritelog.sampling.design import Coordinates, Terms, design, leverages

COVERAGE_SHARE = 1 / 2
"""Share of the points of a design that are spread over the run instead, for what no term tells."""

POINTS_PER_DIRECTION = 4
"""The most points of a design for each direction of its terms; coverage is the rest."""

POOL_POINTS = 1 << 14
"""The number of points, drawn at random, that a design chooses among beside the extremes."""

REPLICATED_POINTS = 5
"""The number of chosen points at which replicates are asked for."""

LARGEST_TERM = 1e150

_ROUNDING = 1 + 1e-9


@dataclass(frozen=True)
class Plan:
    """How many rows to choose, and how."""

    fraction: float
    """Of all rows, in (0, 1]."""
    method: SampleMethod = "design"
    seed: int = 1
    floor: int = 5
    """The least number of rows that each stratum gets, as far as it has them."""

    def __post_init__(self) -> None:
        """Raise `UsageError` for a fraction outside (0, 1] and for a floor below 1."""
        if not 0 < self.fraction <= 1:
            raise UsageError(f"the fraction must lie in (0, 1], not {self.fraction!r}")
        if self.floor < 1:
            raise UsageError(f"the floor must be 1 or more, not {self.floor!r}")


@dataclass(frozen=True)
class Stratum:
    """Rows among which some are chosen."""

    label: str
    """What tells it from the other strata; with the seed it decides the random draws."""
    params: Floats
    """Shape (rows, parameters)."""
    timed: Floats
    """Parameters that are measured already, shape (lines, parameters); they count as known."""
    terms: tuple[Expression, ...] = ()
    """What a formula's fit has for terms, in place of the parameters: then these are spanned."""
    replicates: int = 1
    """How often to measure some of the points; 1 is once."""


@dataclass(frozen=True)
class Choice:
    """What was chosen of a stratum, and how well that spans its rows."""

    rows: Ints
    """The rows chosen, rising, replicates included."""
    replicates: int
    """How many of them are there for replication alone."""
    replicated_points: int
    points: int
    """Distinct parameter points of all rows."""
    measured_points: int
    """Of them, and of other parameters that are timed, those chosen or timed already."""
    coefficients: int
    """What a plain fit has: one for each parameter or term that varies, and one."""
    outside: int
    """Rows with a parameter, or a term of the formula, outside the range of the points chosen or
    timed."""
    beyond: int
    """Rows whose leverage on a fit to those points is above each of theirs."""
    extrapolated_rows: Ints
    """Rows that are one or both, rising."""

    @property
    def extrapolated(self) -> int:
        """Return how many rows are one or both."""
        return len(self.extrapolated_rows)


def choose(strata: Sequence[Stratum], plan: Plan) -> tuple[Choice, ...]:
    """Choose rows of each stratum: `plan.fraction` of all together, and at least the floor of each.

    A fit's error is some k/n for n samples and k coefficients. Where N rows are to be predicted,
    the sum of N·k/n over the strata is least for n in proportion to √(N·k), and that is how the
    rows are shared out (as in Neyman's allocation). Replicates come on top. The choice depends on
    nothing but strata and plan.
    """
    tasks = [_StratumChoice.of(stratum, plan) for stratum in strata]
    rows = [len(stratum.params) for stratum in strata]
    weights = np.sqrt([n * task.coefficients for n, task in zip(rows, tasks, strict=True)])
    least = np.array([task.least for task in tasks], dtype=np.int64)
    most = np.array([task.most for task in tasks], dtype=np.int64)
    wanted = allocate(round(plan.fraction * sum(rows)), weights, least, np.maximum(least, most))
    choices = []
    for number, (task, n) in enumerate(zip(tasks, wanted, strict=True)):
        report_progress("choosing SEBs, strata done", number, len(tasks))
        choices.append(task.choice(int(n)))
    return tuple(choices)


@dataclass(frozen=True)
class _StratumChoice:
    """A stratum with all that choosing from it needs."""

    stratum: Stratum
    plan: Plan
    points: DistinctPoints
    spanned: Floats
    """What the choice is to span, at each point: the parameters, or the terms of a formula."""
    timed: Floats
    """The same for what is measured already."""
    free: Flags
    """Which points are not measured already."""
    coordinates: Coordinates
    drawn: _RowDraws

    @classmethod
    def of(cls, stratum: Stratum, plan: Plan) -> _StratumChoice:
        points = DistinctPoints.of_rows(stratum.params)
        numbers = draw_numbers(stratum.label, len(stratum.params), plan.seed)
        spanned, timed = _spanned(stratum, points.params)
        return cls(
            stratum,
            plan,
            points,
            spanned,
            timed,
            ~is_among(points.params, stratum.timed),
            Coordinates.over(spanned, points.counts),
            _RowDraws.of(points, numbers),
        )

    @property
    def free_rows(self) -> int:
        return int(self.points.counts[self.free].sum())

    @property
    def least(self) -> int:
        """How many rows the floor asks for, together with the lines that are there."""
        return min(max(self.plan.floor - len(self.timed), 0), self.free_rows)

    @property
    def most(self) -> int:
        """How many rows are worth having: one of each point, and by chance any."""
        chance = self.plan.method == "random"
        return self.free_rows if chance else int(np.count_nonzero(self.free))

    @property
    def coefficients(self) -> int:
        """How many coefficients a plain fit has, before products and powers."""
        return 1 + len(self.coordinates.unit)

    def choice(self, wanted: int) -> Choice:
        pool = self._pool()
        terms = Terms.over(self.coordinates, self.spanned[pool], self.points.counts[pool])
        if self.plan.method == "random":
            rows = self.drawn.any(self.free, wanted)
            chosen = np.unique(self.points.point_of_row[rows])
        else:
            chosen = self._points(wanted, terms, pool)
            rows = self.drawn.first(chosen, wanted)
        again, twice = self.drawn.again(chosen, self.stratum.replicates)
        with_again = np.union1d(rows, again)
        return self._judged(with_again, terms, len(with_again) - len(rows), twice)

    def _points(self, wanted: int, terms: Terms, pool: Ints) -> Ints:
        """Return this many of the free points, or all of them, in the order of their choice."""
        wanted = min(wanted, int(np.count_nonzero(self.free)))
        designed = np.zeros(0, dtype=np.int64)
        if self.plan.method == "design":
            most = POINTS_PER_DIRECTION * terms.directions.shape[1]
            count = min(wanted - round(COVERAGE_SHARE * wanted), most)
            values, known = terms.values(self.spanned[pool]), terms.values(self.timed)
            designed = pool[design(values, self.free[pool], known, count)]
        taken = ~self.free
        measured = int(np.count_nonzero(taken))
        taken[designed] = True
        spread = self._spread(taken, wanted + measured)
        return np.concatenate([designed, spread])

    def _pool(self) -> Ints:
        """Return the points that stand for all in a design: a random draw, and the extremes."""
        if len(self.points) <= POOL_POINTS:
            return np.arange(len(self.points))
        drawn = np.argpartition(self.drawn.smallest, POOL_POINTS)[:POOL_POINTS]
        extremes = np.concatenate([self.spanned.argmin(axis=0), self.spanned.argmax(axis=0)])
        return np.union1d(drawn, extremes)

    def _spread(self, taken: Flags, wanted: int) -> Ints:
        """Return points that make the taken ones `wanted`, spread over the run."""
        coordinates = self.coordinates.of(self.spanned)
        return cover(coordinates, self.points.counts, taken, wanted, self.drawn.smallest)

    def _judged(self, rows: Ints, terms: Terms, replicates: int, replicated: int) -> Choice:
        """Return the choice with how well it spans the rows, judged point by point."""
        points = self.points
        chosen = np.unique(points.point_of_row[rows])
        measured = np.concatenate([self.spanned[chosen], self.timed])
        lowest, highest = measured.min(axis=0), measured.max(axis=0)
        outside = ((self.spanned < lowest) | (self.spanned > highest)).any(axis=1)
        most = leverages(terms, measured, measured).max()
        beyond = leverages(terms, measured, self.spanned) > _ROUNDING * most
        count = points.counts
        return Choice(
            rows=rows,
            replicates=replicates,
            replicated_points=replicated,
            points=len(points),
            measured_points=len(DistinctPoints.of_rows(measured)),
            coefficients=self.coefficients,
            outside=int(count[outside].sum()),
            beyond=int(count[beyond].sum()),
            extrapolated_rows=np.flatnonzero((outside | beyond)[points.point_of_row]),
        )


def _spanned(stratum: Stratum, params: Floats) -> tuple[Floats, Floats]:
    """Return the values of the terms at some parameters and at those that are timed.

    Without a formula the parameters stand for themselves. A term that is not finite everywhere, or
    so large that it cannot be scaled, is passed over.
    """
    if not stratum.terms:
        return params, stratum.timed
    both = np.concatenate([params, stratum.timed])
    columns = np.column_stack([term.evaluate(both) for term in stratum.terms])
    usable = (np.abs(columns) <= LARGEST_TERM).all(axis=0)
    return columns[: len(params), usable], columns[len(params) :, usable]


@dataclass(frozen=True)
class _RowDraws:
    """The rows of each point, in the order of random numbers of theirs."""

    numbers: Keys
    """A number for each row: of rows that are as good as one another the smallest is taken."""
    order: Ints
    """The rows by point and number."""
    starts: Ints
    """Point i has the rows `order[starts[i]:starts[i + 1]]`."""
    point: Ints
    """The point of each row of `order`."""

    @classmethod
    def of(cls, points: DistinctPoints, numbers: Keys) -> _RowDraws:
        order = np.lexsort((numbers, points.point_of_row))
        starts = np.concatenate([[0], np.cumsum(points.counts)])
        return cls(numbers, order, starts, points.point_of_row[order])

    @property
    def smallest(self) -> Keys:
        """The smallest number of each point."""
        found: Keys = self.numbers[self.order[self.starts[:-1]]]
        return found

    def any(self, free: Flags, wanted: int) -> Ints:
        """Return `wanted` rows of the free points, drawn by chance."""
        rows = self.order[free[self.point]]
        return rows[np.argsort(self.numbers[rows], kind="stable")[:wanted]]

    def first(self, chosen: Ints, wanted: int) -> Ints:
        """Return a row of each chosen point, and where more are wanted a second, and so on."""
        rows = self.order[self.starts[chosen]]
        if len(rows) >= wanted:
            return rows
        is_chosen = np.zeros(len(self.starts) - 1, dtype=np.bool_)
        is_chosen[chosen] = True
        rank = np.arange(len(self.order)) - self.starts[self.point]
        further = np.flatnonzero(is_chosen[self.point] & (rank > 0))
        in_turn = np.lexsort((self.numbers[self.order[further]], rank[further]))
        return np.concatenate([rows, self.order[further[in_turn[: wanted - len(rows)]]]])

    def again(self, chosen: Ints, times: int) -> tuple[Ints, int]:
        """Return rows that make some points measured `times` times, and how many points.

        They are points of the chosen that recur, or else the one that recurs most.
        """
        counts = np.diff(self.starts)
        recurring = chosen[counts[chosen] > 1][:REPLICATED_POINTS]
        if len(recurring) == 0:
            recurring = np.array([np.argmax(counts)])
        if times < 2 or counts[recurring].max() < 2:
            return np.zeros(0, dtype=np.int64), 0
        rows = [
            self.order[self.starts[i] : self.starts[i] + min(times, counts[i])] for i in recurring
        ]
        return np.concatenate(rows), len(recurring)
