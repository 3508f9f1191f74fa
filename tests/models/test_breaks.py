"""Power laws with breaks."""

from __future__ import annotations

import numpy as np
import pytest

from rewritelog.models.base import EventTimings
from rewritelog.models.fitting.bases.breaks import power_law_with_breaks
from rewritelog.models.fitting.design import SelectionSamples
from rewritelog.models.fitting.samples import Samples


@pytest.mark.parametrize("seed", [1, 4, 22])
def test_the_terms_do_not_depend_on_the_unit_of_the_times(seed: int) -> None:
    """In seconds and in units of 1/1024 s, other terms stood for the mean logarithm."""
    rng = np.random.default_rng(seed)
    n, m = np.rint(10 ** rng.uniform(1, 4, (2, 40)))
    seconds = 1e-6 * (n / 300) ** np.where(n > 1000, 1.5, 0.5) * m**0.7
    seconds *= np.exp(0.05 * rng.normal(size=40))
    laws = set()
    for unit in (1.0, 1024.0):
        timings = EventTimings("kernel", np.column_stack((n, m)), seconds * unit)
        samples = Samples.of(timings, np.zeros(40, dtype=np.bool_), "relative")
        laws.add(power_law_with_breaks(SelectionSamples.of(samples, "huber")))
    assert len(laws) == 1
