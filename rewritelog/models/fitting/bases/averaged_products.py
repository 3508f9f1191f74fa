"""The family for few samples: products of factors that programs have, averaged over what is likely.

A handful of samples cannot tell which terms a sum has, but often which of some thousand products
the time is, if usual products are more probable a priori.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from rewritelog.arrays import Floats, Ints, median
from rewritelog.models.expressions import Expression, constant, parse
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.design import (
    ONE,
    Parameters,
    SelectionSamples,
    logarithm,
    may_be_depth,
    product_of,
)
from rewritelog.models.fitting.regression import HUBER, huber_weights

NO_FACTOR = 0.36
"""Prior probability that a parameter does not matter, to which those of factors are relative."""

POSITIVE = (
    ("{p}", 0.3),
    ("{p}^2", 0.06),
    ("sqrt({p})", 0.06),
    ("{log}", 0.06),
    ("{p}*{log}", 0.05),
    ("{p}^1.5", 0.02),
    ("{p}^3", 0.02),
    ("1/{bounded}", 0.03),
    ("{bounded}^(-0.5)", 0.01),
)
WITH_ZEROS = (
    ("{p}", 0.15),
    ("(1 + {p})", 0.2),
    ("{p}^2", 0.03),
    ("sqrt(1 + {p})", 0.05),
    ("log1p({p})", 0.06),
    ("1/(1 + {p})", 0.03),
)
WITH_NEGATIVES = (("abs({p})", 0.3), ("(1 + abs({p}))", 0.1), ("sqrt(abs({p}))", 0.03))
"""Factors of one parameter that is positive, may be 0 or may be negative, with their priors."""

TREE = 0.08
"""Prior probability of the factor 2^p."""

INDICATOR = 0.4
INDICATOR_RATIOS = np.exp(np.linspace(np.log(1.3), np.log(16), 8))
"""Prior probability that a parameter with two values is an indicator; its factor is one of these
ratios or an inverse of one."""

PAIR_FACTORS = (
    ("({p} + {q})", 0.05),
    ("max({p}, {q})", 0.04),
    ("min({p}, {q})", 0.03),
    ("({p} + {q})*log1p({p} + {q})", 0.02),
)
DIFFERENCE = ("abs({p} - {q})", 0.05)
"""Factors of two parameters with their prior probabilities."""

SECOND_TERM = 0.1
"""Prior probability of a second term, to be multiplied by that of the factor G in this term."""

BEAM_WIDTH = 24
"""How many products of n factors are tried with one more factor."""


MOST_FACTORS = 5
"""The most factors of a product."""

MOST_WITH_SECOND = 8
"""How many products are tried in sums of two terms that both depend on parameters."""

NOISES = np.array([0.01, 0.04, 0.1, 0.25, 0.6])
"""Standard deviations of log t about the product, each as probable as the others."""

DEGREES_OF_FREEDOM = 4.0
"""Degrees of freedom of Student's t distribution of the errors of log t."""

LARGEST_ERROR, LARGEST_LOG = 5.0, 700.0
"""A larger error of log t counts as this; the exponential of a larger logarithm overflows."""

LEAST_DEVIATION = 1e-3
"""The least standard deviation of relative errors."""

CHUNK = 32
"""The product of so many densities does not overflow."""

LEAST_SHARE = 1e-9
"""Two terms are collinear if their determinant is less than this share of its largest value."""


class _Factor(Struct, frozen=True):
    expression: Expression
    prior: float
    """Log prior probability, relative to a product without these parameters."""
    parameters: tuple[int, ...]
    indicator: bool = False
    """Whether its parameter is taken as an indicator."""
    plain: bool = False
    """Whether it is itself one of the parameters that most matter."""


class _Candidates(NamedTuple):
    """Functions c·F or c·F + d·G: F is a product of factors, G a factor or the constant."""

    log_posteriors: Floats
    """Log posterior probabilities, shape (functions,)."""
    products: Ints
    """The indices of the factors of F, padded with −1, shape (functions, most factors)."""
    second_terms: Ints
    """The index of the factor G, −1 for the constant."""
    ratios: Floats
    """d/c, 0 without G."""

    def best(self, count: int) -> _Candidates:
        """Return the most probable ones, the best first."""
        order = np.argsort(-self.log_posteriors, kind="stable")[:count]
        return _Candidates(
            self.log_posteriors[order],
            self.products[order],
            self.second_terms[order],
            self.ratios[order],
        )

    @classmethod
    def together(cls, parts: Sequence[_Candidates]) -> _Candidates:
        """Return the functions of all parts."""
        return cls._make(map(np.concatenate, zip(*parts, strict=True)))


def averaged_products(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose the geometric mean of probable functions, each c·F, c·F + d or c·F + d·G.

    They are weighted by their posterior probabilities: Bayesian model averaging (J. Hoeting et al.,
    "Bayesian model averaging: a tutorial", Statistical Science 14, 1999).
    """
    numbers = selection.most_correlated()
    factors, columns = selection.table.candidates(
        ("factors", *numbers), lambda params: _factors(params, selection.parameters, numbers)
    )
    if not factors:
        return (ONE,)
    times = selection.samples.times_s / median(selection.samples.times_s)
    with np.errstate(all="ignore"):
        logs = np.log(np.maximum(columns[selection.rows].T, 0.0))
        likeliest = _BeamSearch(factors, logs, times).most_probable(len(selection.parameters.used))
        return (_average(factors, likeliest),)


class _BeamSearch:
    """A beam search: larger products are made of the most probable smaller ones, and of plain ones.

    Of p1·p2·p3, p1·p2 is less probable than many a product with p3 in it, such as p1·max(p2, p3).
    """

    def __init__(self, factors: Sequence[_Factor], logs: Floats, times: Floats) -> None:
        """Take the logarithms of the factors, shape (factors, samples), and positive times."""
        self._times = times
        # the last row of each, index −1, stands for no factor
        self._logs = np.vstack((logs, np.zeros(len(times))))
        self._prior = np.array([*(factor.prior for factor in factors), 0.0])
        uses = [sum(1 << number for number in factor.parameters) for factor in factors]
        self._uses = np.array([*uses, 0])
        self._plain = np.array([*(factor.plain for factor in factors), True])
        self._usable_as_second = np.flatnonzero([not factor.indicator for factor in factors])
        self._single = self._shapes(np.arange(len(self._logs))[:, None])

    def most_probable(self, parameters: int) -> _Candidates:
        """Return the most probable functions of this many parameters, the best first."""
        depth = min(MOST_FACTORS, parameters)
        products = np.full((1, depth), -1)
        candidates = [self._functions(products, self._shapes(products), 1)]
        singles = list[_Candidates]()
        for size in range(depth):
            products = self._extended(products, size)
            shapes = self._shapes(products)
            alone, with_constant = (self._functions(products, shapes, terms) for terms in (1, 2))
            candidates += [alone, with_constant]
            log_posteriors = np.maximum(alone.log_posteriors, with_constant.log_posteriors)
            singles.append(alone._replace(log_posteriors=log_posteriors).best(BEAM_WIDTH))
            plain = products[self._plain[products].all(axis=1)]
            products = np.concatenate((singles[-1].products, plain))
        most = _Candidates.together(singles).best(MOST_WITH_SECOND).products
        second_terms = np.tile(self._usable_as_second, len(most))
        products = np.repeat(most, len(self._usable_as_second), axis=0)
        candidates.append(self._functions(products, self._shapes(products), 2, second_terms))
        return _Candidates.together(candidates).best(tuning.MOST_AVERAGED)

    def _extended(self, products: Ints, size: int) -> Ints:
        """Return each product of `size` factors times each factor of other parameters, once."""
        used = np.bitwise_or.reduce(self._uses[products], axis=1)
        old, new = np.nonzero((used[:, None] & self._uses[:-1]) == 0)
        larger = products[old]
        larger[:, size] = new
        keys = np.sort(larger, axis=1) @ len(self._uses) ** np.arange(larger.shape[1])
        return np.asarray(larger[np.sort(np.unique(keys, return_index=True)[1])])

    def _functions(
        self,
        products: Ints,
        shapes: tuple[Floats, Floats],
        terms: int,
        second_terms: Ints | None = None,
    ) -> _Candidates:
        """Return the functions c·F of one term or, of two, c·F + d·G.

        `shapes` are those of the products F. The factors G are `second_terms` or the constant.
        """
        (firsts, scales), (singles, single_scales) = shapes, self._single
        others = np.full(len(products), -1) if second_terms is None else second_terms
        logs, ratios = _evidence(firsts, singles[others] if terms == 2 else None)
        logs += self._prior[products].sum(axis=1)
        if second_terms is not None:
            logs += self._prior[second_terms] + np.log(SECOND_TERM)
        ratios *= np.exp(np.minimum(scales - single_scales[others], LARGEST_LOG))
        return _Candidates(np.where(np.isfinite(logs), logs, -np.inf), products, others, ratios)

    def _shapes(self, products: Ints) -> tuple[Floats, Floats]:
        """Return each product over its largest value and the times, and the log of that value."""
        logs = self._logs[products[:, 0]]
        for column in products.T[1:]:
            logs += self._logs[column]
        largest = logs.max(axis=1)
        return np.exp(logs - largest[:, None]) / self._times, largest


def _evidence(first: Floats, second: Floats | None) -> tuple[Floats, Floats]:
    """Return the log marginal likelihood of c·first or c·first + d·second for each row, and d/c.

    `first` and `second` are over the times. c and d are those of a robust fit; each one costs
    log(noise / √n), the width of its posterior relative to that of its prior (Laplace's
    approximation). The likelihood is NaN without a fit.
    """
    count, terms = first.shape[1], 1 if second is None else 2
    _, _, relative = _nearest_to_one(first, second, np.ones_like(first))
    errors = np.abs(relative - 1)
    medians = np.partition(errors, count // 2, axis=1)[:, count // 2, None]
    corners = HUBER * (1.4826 * medians + LEAST_DEVIATION)
    c, d, relative = _nearest_to_one(first, second, np.sqrt(huber_weights(errors, corners)))
    logs = np.log(np.maximum(relative, np.exp(-LARGEST_ERROR)))
    squares = np.minimum(logs, LARGEST_ERROR) ** 2
    noises = NOISES[:, None]
    densities = 1 + squares / (DEGREES_OF_FREEDOM * noises**2)[:, :, None]
    densities = np.multiply.reduceat(densities, np.arange(0, count, CHUNK), axis=2)
    likelihoods = np.log(densities).sum(axis=2) * (-(DEGREES_OF_FREEDOM + 1) / 2)
    likelihoods += (terms - count) * np.log(noises)
    return np.logaddexp.reduce(likelihoods) - terms / 2 * np.log(count), d / c


def _nearest_to_one(
    first: Floats, second: Floats | None, weights: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return c, d and c·first + d·second nearest to 1 in each row; NaN unless both c, d > 0."""
    ones = first * weights
    square, along = np.einsum("ij,ij->i", ones, ones), np.einsum("ij,ij->i", ones, weights)
    if second is None:
        c = along / square
        return c, np.zeros(len(c)), c[:, None] * first
    others = second * weights
    own, level = np.einsum("ij,ij->i", others, others), np.einsum("ij,ij->i", others, weights)
    cross = np.einsum("ij,ij->i", ones, others)
    determinant = own * square - cross * cross
    c, d = (
        (own * along - cross * level) / determinant,
        (square * level - cross * along) / determinant,
    )
    c[~((determinant > LEAST_SHARE * own * square) & (c > 0) & (d > 0))] = np.nan
    return c, d, c[:, None] * first + d[:, None] * second


def _average(factors: Sequence[_Factor], functions: _Candidates) -> Expression:
    """Return the geometric mean of the functions, up to a constant factor.

    c·F + d·G and c·G + d·F are the same function, and have the sum of their weights.
    """
    relative = np.exp(functions.log_posteriors - functions.log_posteriors[0])
    weights = relative[relative >= tuning.LEAST_PROBABILITY]
    weights /= weights.sum()
    members = dict[frozenset[tuple[int, ...]], tuple[Expression, float]]()
    columns = (
        functions.products.tolist(),
        functions.second_terms.tolist(),
        functions.ratios.tolist(),
    )
    for places, second, offset, weight in zip(*columns, weights.tolist(), strict=False):
        product = tuple(sorted(place for place in places if place >= 0))
        function, terms = product_of([factors[place].expression for place in product]), {product}
        if offset > 0:
            added = (second,) if second >= 0 else ()
            ratio = constant(float(f"{offset:.4g}"))
            function = function.applied(
                "+", product_of([ratio, *(factors[place].expression for place in added)])
            )
            terms.add(added)
        same, known = members.get(frozenset(terms), (function, 0.0))
        members[frozenset(terms)] = same, known + weight
    return product_of(
        [
            function.applied("^", constant(float(f"{weight:.4g}")))
            if len(members) > 1
            else function
            for function, weight in members.values()
            if function != ONE  # as all of its powers
        ]
    )


def _factors(params: Floats, parameters: Parameters, paired: Sequence[int]) -> Iterator[_Factor]:
    """Yield the factors of one parameter, and those of two of the parameters `paired`."""
    for number in parameters.used:
        for text, probability in _single_factors(number, params[:, number - 1], parameters):
            log = float(np.log(probability / NO_FACTOR))
            plain = text == f"p{number}" and number in paired
            yield _Factor(parse(text), log, (number,), indicator=">=" in text, plain=plain)
    several = [number for number in paired if len(np.unique(params[:, number - 1])) > 2]
    for first, second in combinations(several, 2):
        lowest = min(parameters.lowest[first - 1], parameters.lowest[second - 1])
        for text, probability in (*(PAIR_FACTORS if lowest >= 0 else ()), DIFFERENCE):
            expression = parse(text.format(p=f"p{first}", q=f"p{second}"))
            yield _Factor(expression, float(np.log(probability / NO_FACTOR)), (first, second))


def _single_factors(
    number: int, column: Floats, parameters: Parameters
) -> Iterator[tuple[str, float]]:
    """Yield the texts of the factors of one parameter, each with its prior probability."""
    low, high = float(parameters.lowest[number - 1]), float(parameters.highest[number - 1])
    name, values = f"p{number}", np.unique(column)
    if len(values) == 2 < len(column):
        for ratio in (*INDICATOR_RATIOS, *(1 / INDICATOR_RATIOS)):
            yield (
                f"{ratio:.3g}^({name} >= {constant(values[1])})",
                INDICATOR / (2 * len(INDICATOR_RATIOS)),
            )
        if low > 0:
            yield name, 0.2
        return
    kinds = POSITIVE if low > 0 else WITH_ZEROS if low == 0 else WITH_NEGATIVES
    log, bounded = logarithm(name, low), parameters.divisor(number)
    for text, probability in kinds:
        yield text.format(p=name, log=log, bounded=bounded), probability
    if may_be_depth(values):
        yield f"2^min({name}, {2 * high - low:.6g})", TREE
