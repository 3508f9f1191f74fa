"""What is chosen of a run, seen as a user of the choice sees it."""

from typing import Any

import numpy as np
import pytest
from kinds import ReferenceTimings
from oracle import SAMPLE_LOGS

import rewritelog
from rewritelog.arrays import Floats
from rewritelog.commands.fits import SampleMethod
from rewritelog.errors import UsageError
from rewritelog.models.expressions import parse
from rewritelog.sampling.selection import Plan, Stratum, choose


def stratum(params: Floats, *, timed: Any = None, **fields: Any) -> Any:
    params = np.array(params, dtype=float)
    known = np.zeros((0, params.shape[1])) if timed is None else np.array(timed, dtype=float)
    return Stratum(fields.pop("event", "kernel"), params, known, **fields)


def choice_of(params: Floats, plan: Plan, **fields: Any) -> Any:
    (choice,) = choose([stratum(params, **fields)], plan)
    return choice


def lognormal(rows: int, parameters: int, seed: int = 0) -> Any:
    return np.round(np.exp(np.random.default_rng(seed).normal(4, 1.2, (rows, parameters)))) + 1


METHODS = ["design", "coverage", "random"]


@pytest.mark.parametrize("method", METHODS)
def test_the_fraction_is_kept_over_all_strata_together(method: SampleMethod) -> None:
    strata = [stratum(lognormal(rows, 3, rows), event=str(rows)) for rows in (870, 112, 18)]
    choices = choose(strata, Plan(0.05, method))
    chosen = [len(choice.rows) for choice in choices]
    assert sum(chosen) == 50
    assert min(chosen) >= 5
    assert chosen == sorted(chosen, reverse=True)


def test_shares_are_as_the_roots_of_rows_times_coefficients() -> None:
    one, three = lognormal(800, 1), np.random.default_rng(1).uniform(1, 2, (100, 3))
    one += np.arange(800)[:, None] / 1000  # different points
    strata = [stratum(one, event="one"), stratum(three, event="three")]
    chosen = [len(choice.rows) for choice in choose(strata, Plan(1 / 15))]
    assert chosen == [40, 20], "the roots of 800 · 2 and of 100 · 4"


@pytest.mark.parametrize("method", METHODS)
def test_rows_are_rising_and_none_is_there_twice(method: SampleMethod) -> None:
    choice = choice_of(lognormal(500, 2), Plan(0.3, method))
    assert (np.diff(choice.rows) > 0).all()
    assert len(choice.rows) == 150


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_decides_and_nothing_else(method: SampleMethod) -> None:
    params = lognormal(400, 4)
    first, again, other = (choice_of(params, Plan(0.1, method, seed)).rows for seed in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()


def test_each_stratum_has_its_floor() -> None:
    strata = [stratum(lognormal(rows, 1, rows), event=str(rows)) for rows in (1000, 9, 3)]
    chosen = [len(choice.rows) for choice in choose(strata, Plan(0.001, floor=4))]
    assert chosen == [4, 4, 3]


@pytest.mark.parametrize("method", ["design", "coverage"])
def test_different_parameters_are_preferred(method: SampleMethod) -> None:
    params = np.repeat(np.arange(1.0, 21), 50)[:, None]
    choice = choice_of(params, Plan(0.01, method))
    assert len(set(params[choice.rows, 0])) == len(choice.rows) == 10
    assert (choice.points, choice.measured_points, choice.replicates) == (20, 10, 0)


def test_more_rows_than_points_are_chosen_for_the_floor_only() -> None:
    params = np.repeat([[1.0], [2.0]], 50, axis=0)
    choice = choice_of(params, Plan(0.5, floor=5))
    assert len(choice.rows) == 5
    assert set(params[choice.rows, 0]) == {1, 2}
    assert len(choice_of(np.zeros((30, 0)), Plan(0.5)).rows) == 5


def test_the_design_leaves_little_to_extrapolate() -> None:
    for seed in range(5):
        params = lognormal(2000, 3, seed)
        by_design, by_chance = (
            choice_of(params, Plan(0.01, method, seed)) for method in ("design", "random")
        )
        assert by_design.extrapolated < 0.1 * len(params) < by_chance.extrapolated / 2


def test_a_design_for_a_formula_leaves_less() -> None:
    """Half of its points are where the fit is least certain, and not a third."""
    for seed in range(5):
        params = lognormal(2000, 3, seed)
        terms = (parse("p1"), parse("p2"), parse("p3"))
        by_design = choice_of(params, Plan(0.01, "design", seed), terms=terms)
        assert by_design.extrapolated < 0.02 * len(params)


def test_the_ranges_are_those_of_the_chosen_rows() -> None:
    params = lognormal(300, 2)
    choice = choice_of(params, Plan(0.05, "random"))
    chosen = params[choice.rows]
    outside = ((params < chosen.min(axis=0)) | (params > chosen.max(axis=0))).any(axis=1)
    assert choice.outside == np.count_nonzero(outside)
    assert max(choice.outside, choice.beyond) <= choice.extrapolated
    assert choice.extrapolated <= choice.outside + choice.beyond


def errors(method: SampleMethod, kernel: Any, parameters: int, formula: str) -> Any:
    """Return the mean relative error of fits to 1 % of the rows under 5 % noise, over 20 seeds."""
    terms = tuple(map(parse, formula.split(" + ")))
    mean_errors = []
    for seed in range(20):
        params = lognormal(1500, parameters, seed)
        noise = np.exp(np.random.default_rng(seed + 100).normal(0, 0.05, len(params)))
        seconds = kernel(params) * noise
        rows = choice_of(params, Plan(0.01, method, seed), terms=terms).rows
        columns = np.column_stack([term.evaluate(params) for term in terms])
        solved = np.linalg.lstsq(
            columns[rows] / seconds[rows, None], np.ones(len(rows)), rcond=None
        )
        mean_errors.append(np.abs(columns @ solved[0] / kernel(params) - 1).mean())
    return np.mean(mean_errors)


@pytest.mark.parametrize(
    ("kernel", "parameters", "formula"),
    [
        (lambda p: 30 + p[:, 0], 1, "1 + p1 + p1^2"),
        (lambda p: 100 + p[:, 0] * p[:, 1], 3, "1 + p1 + p2 + p3 + p1*p2"),
        (lambda p: 50 + p[:, 0] + 0.3 * p[:, 2], 4, "1 + p1 + p2 + p3 + p4"),
    ],
    ids=["one parameter", "product", "sum"],
)
def test_fits_to_a_design_predict_better_than_fits_to_random_rows(
    kernel: Any, parameters: int, formula: str
) -> None:
    by_design, by_chance = (
        errors(method, kernel, parameters, formula) for method in ("design", "random")
    )
    assert by_design < 0.8 * by_chance


def test_what_is_timed_is_not_chosen_and_counts_as_known() -> None:
    params = np.arange(1.0, 101)[:, None]
    ends = [[1.0], [100.0]] * 3
    choice = choice_of(params, Plan(0.03), timed=ends)
    assert len(choice.rows) == 3
    assert not {1.0, 100.0} & set(params[choice.rows, 0])
    assert (choice.outside, choice.measured_points) == (0, 5)
    assert len(choice_of(params, Plan(0.5), timed=params).rows) == 0


def test_a_timed_line_far_beyond_the_run_spoils_no_design() -> None:
    """Its logarithms were infinite, all variances NaN, and the first rows were taken."""
    params = 1e-9 * lognormal(500, 2)
    choice = choice_of(params, Plan(0.02), timed=np.array([[1e300, 1e-8]]))
    without = choice_of(params, Plan(0.02))
    assert len(choice.rows) == 10
    assert len(np.intersect1d(choice.rows, without.rows)) >= 5


def test_replicates_are_of_points_that_are_chosen() -> None:
    params = np.repeat(np.arange(1.0, 41), 10)[:, None]
    choice = choice_of(params, Plan(0.05), replicates=4)
    points, counts = np.unique(params[choice.rows, 0], return_counts=True)
    assert len(points) == 20
    assert sorted(counts)[-5:] == [4] * 5
    assert sorted(counts)[:-5] == [1] * 15
    assert (choice.replicates, choice.replicated_points) == (15, 5)


def test_replicates_are_found_where_only_other_points_recur() -> None:
    params = np.concatenate([np.arange(1.0, 1001), [500.0, 500.0]])[:, None]
    choice = choice_of(params, Plan(0.005), replicates=3)
    assert np.count_nonzero(params[choice.rows, 0] == 500) == 3
    assert choice.replicated_points == 1
    assert choice_of(params[:900], Plan(0.01), replicates=3).replicated_points == 0


def test_a_formula_says_what_is_spanned() -> None:
    rng = np.random.default_rng(4)
    params = np.column_stack([rng.permutation(np.arange(1.0, 501)), lognormal(500, 6)])
    terms = (parse("1"), parse("p1^2"))
    with_formula = choice_of(params, Plan(0.02), terms=terms)
    without = choice_of(params, Plan(0.02))
    chosen = params[with_formula.rows, 0]
    assert {chosen.min(), chosen.max()} == {1, 500}
    assert with_formula.outside == 0 < without.outside
    assert (with_formula.coefficients, without.coefficients) == (2, 8)


def test_a_term_without_a_value_is_passed_over() -> None:
    params = np.arange(0.0, 100)[:, None]
    choice = choice_of(params, Plan(0.1), terms=(parse("log(p1)"), parse("p1")))
    assert choice.coefficients == 1
    assert len(choice.rows) == 10


def test_a_formula_has_a_constant_only_among_its_terms() -> None:
    params = np.arange(1.0, 101)[:, None]
    for texts, coefficients in (
        (["p1"], 1),
        (["1", "p1"], 2),
        (["p1", "p1^2"], 2),
        (["1"], 1),
        (["log(-p1)"], 1),
    ):
        choice = choice_of(params, Plan(0.1), terms=tuple(map(parse, texts)))
        assert choice.coefficients == coefficients, texts


def test_many_points_are_chosen_among_a_pool_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewritelog.sampling.selection.POOL_POINTS", 50)
    params = lognormal(3000, 2)
    choice = choice_of(params, Plan(0.1))
    assert len(choice.rows) == len(set(map(tuple, params[choice.rows]))) > 250
    assert choice.outside == 0


@pytest.mark.parametrize(
    "plan",
    [{"fraction": 0}, {"fraction": 1.1}, {"fraction": 0.5, "floor": 0}, {"fraction": float("nan")}],
)
def test_plans_that_cannot_be_meant(plan: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{[*plan][-1]} must be"):
        rewritelog.sample(SAMPLE_LOGS / "cells", **plan)


def test_real_lines_are_spanned_better_than_by_chance(reference_timings: ReferenceTimings) -> None:
    samples = [kernel for kernel in reference_timings("namd") if kernel.event.startswith("calc_")]
    strata = [stratum(kernel.params, event=kernel.event) for kernel in samples]
    shares = {}
    for method in ("design", "random"):
        choices = choose(strata, Plan(0.02, method))
        assert sum(len(choice.rows) for choice in choices) == 20
        shares[method] = sum(choice.outside for choice in choices)
    assert shares["design"] < 0.6 * shares["random"]
