"""The model of performance counters: linear in them, in per cent, and never below zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kinds import MakeTimings
from models.laws import relative_errors

from rewritelog.models.base import EventTimings
from rewritelog.models.counters import Counters, CountersOptions
from rewritelog.models.fitted import Fitted, Source
from rewritelog.models.model_file import model_file_text, parse_model


def by_counters(*timings: EventTimings, **options: Any) -> Any:
    return Counters(CountersOptions(**options)).fit(timings)


def counted(rng: np.random.Generator, count: int) -> Any:
    """Instructions, misses and branches of calls over two decades."""
    size = 10 ** rng.uniform(4, 6, count)
    return size * rng.uniform(0.9, 1.1, count), size**0.5 * rng.uniform(1, 9, count), size / 7


def test_the_cost_of_each_counter_comes_back(event: MakeTimings) -> None:
    rng = np.random.default_rng(1)
    instructions, misses, branches = counted(rng, 200)
    seconds = 2e-6 + 3e-10 * instructions + 1e-7 * misses
    fitted = by_counters(event(instructions, misses, branches, seconds=seconds))
    law = fitted.fits["kernel", 3].whole.function
    costs = dict(zip(map(str, law.terms), law.coefficients * law.calibration, strict=True))
    assert costs["p1"] == pytest.approx(3e-10, rel=1e-3)
    assert costs["p2"] == pytest.approx(1e-7, rel=1e-3)
    assert costs.get("p3", 0.0) == pytest.approx(0, abs=1e-12)


def test_no_counter_has_a_negative_cost(event: MakeTimings) -> None:
    rng = np.random.default_rng(2)
    instructions, misses, branches = counted(rng, 60)
    seconds = 3e-10 * instructions * np.exp(rng.normal(0, 0.1, 60))
    fitted = by_counters(event(instructions, misses, branches, seconds=seconds))
    assert (fitted.fits["kernel", 3].whole.function.coefficients >= 0).all()
    assert (fitted.predict("kernel", np.zeros((1, 3))) >= 0).all()


def test_errors_count_in_per_cent(event: MakeTimings) -> None:
    rng = np.random.default_rng(3)
    instructions, misses, branches = counted(rng, 200)
    truth = 3e-10 * instructions + 2e-7 * misses
    seconds = truth * np.exp(rng.normal(0, 0.05, 200))
    fitted = by_counters(event(instructions, misses, branches, seconds=seconds))
    table = np.column_stack((instructions, misses, branches))
    assert relative_errors(fitted.predict("kernel", table), truth).mean() < 0.02


def test_its_tables_have_counters_for_columns() -> None:
    assert Counters.columns == "counters"


def test_identical_counters_are_no_measurement_unless_asked(event: MakeTimings) -> None:
    timings = event([1e6, 1e6, 2e6, 3e6, 4e6], seconds=[1.0, 3.0, 4.0, 6.0, 8.0])
    row = np.array([[1e6]])
    assert not by_counters(timings).predict_detailed("kernel", row).exact.any()
    assert by_counters(timings, exact_match="always").predict("kernel", row)[0] == 2.0


def test_lines_with_another_number_of_counters_are_a_fit_of_their_own(event: MakeTimings) -> None:
    single = event([1e6, 2e6, 3e6], seconds=[1e-3, 2e-3, 3e-3])
    double = event([1e6, 2e6, 3e6], [5.0, 5.0, 5.0], seconds=[2e-3, 4e-3, 6e-3])
    fitted = by_counters(single, double)
    assert fitted.predict("kernel", np.array([[1.5e6]])) == pytest.approx([1.5e-3], rel=1e-6)
    assert fitted.predict("kernel", np.array([[1.5e6, 5.0]])) == pytest.approx([3e-3], rel=1e-6)
    assert np.isnan(fitted.predict("kernel", np.zeros((1, 3)))).all()


def test_a_fit_to_the_least_numbers_has_a_model_file(event: MakeTimings) -> None:
    """Leverages overflowed: `the fit cannot be written: Expected float, got str`."""
    counters = np.random.default_rng(4).uniform(0, 1e-320, (50, 2))
    fitted = by_counters(event(*counters.T, seconds=np.linspace(1, 2, 50)))
    source = Source("1", ("t",), 50, None, "0" * 64)
    text = model_file_text(Fitted("counters", fitted, "counters", source))
    assert model_file_text(parse_model(text, "m.json")) == text
