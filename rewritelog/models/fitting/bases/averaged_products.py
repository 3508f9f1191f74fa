"""The family for few samples: products of factors that programs have, averaged over what is likely.

A handful of samples cannot tell which terms a sum has, but often which of some thousand products it
is, if usual ones count more from the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from rewritelog.arrays import Floats, Ints, median
from rewritelog.core import core
from rewritelog.hashing import sequence
from rewritelog.models.expressions import Expression, constant, parse
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.bases.program_terms import most_correlated
from rewritelog.models.fitting.design import (
    ONE,
    Parameters,
    SelectionSamples,
    bounded_below,
    logarithm,
    product_of,
)

NONE = 0.36
"""Prior probability that a parameter does not matter, and of what has none of its own."""

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
"""Factors of one parameter with their prior probabilities."""

TREE = 0.08
"""Prior probability of the factor 2^p."""

INDICATOR = 0.4
INDICATOR_RATIOS = np.exp(np.linspace(np.log(1.3), np.log(16), 8))
"""A parameter with two values may be an indicator, with a factor that is one of these or its
inverse."""

OF_TWO = (
    ("({p} + {q})", 0.05),
    ("max({p}, {q})", 0.04),
    ("min({p}, {q})", 0.03),
    ("({p} + {q})*log1p({p} + {q})", 0.02),
)
DIFFERENCE = ("abs({p} - {q})", 0.05)
"""Factors of two parameters with their prior probabilities."""

SECOND = 0.1
"""Prior probability of a second term, times that of the factor which it is."""

LEAST_INTEGERS = 3
"""The depth of a tree has at least this range."""

WIDTH = 24
"""How many products of n factors are tried with one more factor."""


@dataclass(frozen=True)
class _Factor:
    column: Expression
    prior: float
    """Log prior probability, relative to none of the parameters."""
    parameters: tuple[int, ...]
    indicator: bool = False
    """Whether it is the factor of an indicator."""


def averaged_products(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose the geometric mean of probable functions, each c·F or c0 + c·F with a product F.

    They are weighted by their posterior probabilities: Bayesian model averaging (J. Hoeting et al.,
    "Bayesian model averaging: a tutorial", Statistical Science 14, 1999).
    """
    factors, columns = selection.table.candidates(
        "factors", lambda params: _factors(params, selection.parameters, most_correlated(selection))
    )
    if not factors:
        return (ONE,)
    logs, *rest = selection.table.once(
        "factor logs", lambda: _arrays(factors, columns, selection.parameters)
    )
    times = selection.samples.sigma_s / median(selection.samples.sigma_s)
    depth = min(core.MOST_FACTORS, len(selection.parameters.used))
    functions, figures = _most_probable(logs[:, selection.rows], rest, times, depth)
    return (_average(factors, functions.tolist(), figures),)


def _most_probable(
    logs: Floats, rest: Sequence[Any], times: Floats, depth: int
) -> tuple[Ints, Floats]:
    """Return the most probable functions of up to `depth` factors, as the core fills them in."""
    factors, samples = logs.shape
    seen = np.zeros(4 * WIDTH * factors * depth + 64, dtype=np.int64)
    rows = 2 * WIDTH + core.MOST_WITH_SECOND + 1
    beam, beam_figures = np.empty((rows, 2 + depth), np.int64), np.empty((rows, 2 + samples))
    functions, figures = (
        np.empty((tuning.MOST_AVERAGED, 1 + depth), np.int64),
        np.empty((tuning.MOST_AVERAGED, 2)),
    )
    count = core.most_probable_products(
        np.ascontiguousarray(logs),
        *rest,
        times,
        WIDTH,
        depth,
        seen,
        beam,
        beam_figures,
        np.empty((5, samples)),
        functions,
        figures,
        tuning.MOST_AVERAGED,
    )
    return functions[:count], figures[:count]


def _arrays(
    factors: Sequence[_Factor], columns: Floats, parameters: Parameters
) -> tuple[Floats, Floats, Floats, Ints, Ints]:
    """Return what the core needs of the factors, their logarithms over all samples first."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.maximum(columns.T, 0.0))
    prior = np.array([factor.prior for factor in factors])
    places = {number: place for place, number in enumerate(parameters.used)}
    uses = [sum(1 << places[number] for number in factor.parameters) for factor in factors]
    marks = (sequence(len(factors)) >> np.uint64(2)).astype(np.int64)
    second = np.where([factor.indicator for factor in factors], -np.inf, prior + np.log(SECOND))
    return logs, prior, second, np.array(uses, dtype=np.int64), marks


def _average(
    factors: Sequence[_Factor], functions: Sequence[Sequence[int]], figures: Floats
) -> Expression:
    """Return the geometric mean of the functions, up to a constant factor."""
    relative = np.exp(figures[:, 0] - figures[0, 0])
    shares = relative[relative >= tuning.LEAST_PROBABILITY]
    shares /= shares.sum()
    means = []
    for (second, *places), (_, offset), share in zip(
        functions, figures.tolist(), shares.tolist(), strict=False
    ):
        own = [factors[place].column for place in sorted(places) if place >= 0]
        function = product_of(own)
        if offset > 0:
            added = constant(float(f"{offset:.4g}"))
            added = added.times(factors[second].column) if second >= 0 else added
            function = function.applied("+", added)
        if len(shares) > 1:
            function = function.applied("^", constant(float(f"{share:.4g}")))
        means.append(function)
    return product_of(means)


def _factors(params: Floats, parameters: Parameters, paired: Sequence[int]) -> Iterator[_Factor]:
    """Yield the factors of one parameter, and those of two of the parameters `paired`."""
    for number in parameters.used:
        for text, probability in _single_factors(number, params[:, number - 1], parameters):
            log = float(np.log(probability / NONE))
            yield _Factor(parse(text), log, (number,), indicator="==" in text)
    several = [number for number in paired if len(np.unique(params[:, number - 1])) > 2]
    for first, second in combinations(several, 2):
        lowest = min(parameters.lowest[first - 1], parameters.lowest[second - 1])
        for text, probability in (*(OF_TWO if lowest >= 0 else ()), DIFFERENCE):
            column = parse(text.format(p=f"p{first}", q=f"p{second}"))
            yield _Factor(column, float(np.log(probability / NONE)), (first, second))


def _single_factors(
    number: int, column: Floats, parameters: Parameters
) -> Iterator[tuple[str, float]]:
    """Yield the texts of the factors of one parameter, each with its prior probability."""
    low, high = float(parameters.lowest[number - 1]), float(parameters.highest[number - 1])
    name, values = f"p{number}", np.unique(column)
    if len(values) == 2:
        for ratio in (*INDICATOR_RATIOS, *(1 / INDICATOR_RATIOS)):
            yield (
                f"{ratio:.3g}^({name} == {values[1]:.6g})",
                INDICATOR / (2 * len(INDICATOR_RATIOS)),
            )
        if low > 0:
            yield name, 0.2
        return
    kinds = POSITIVE if low > 0 else WITH_ZEROS if low == 0 else WITH_NEGATIVES
    for text, probability in kinds:
        parts = {"p": name, "log": logarithm(name, low), "bounded": bounded_below(name, low)}
        yield text.format(**parts), probability
    whole = bool((column == np.floor(column)).all())
    if low >= 0 and whole and LEAST_INTEGERS <= high - low <= high <= tuning.DEEPEST:
        yield f"2^min({name}, {2 * high - low:.6g})", TREE
