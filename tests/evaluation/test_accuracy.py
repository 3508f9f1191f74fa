"""A gate on accuracy: fits of the project's own samples, on lines that they were not fitted to.

The bounds are twice what was measured or more: a change that passes them is not thereby good, but
one that does not is bad. `benchmarks/accuracy.py` measures with more data.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rewritelog.commands.fits import CompareCommand
from rewritelog.evaluation.compare import compare

BOUNDS = {"Cell::pairForces": (0.05, 0.02), "Cell::bonded": (0.04, 0.02)}
"""By event: the largest mean relative error, and the largest error of the sum."""


@pytest.mark.slow
@pytest.mark.parametrize("fraction", [None, 0.1])
def test_lines_that_are_held_out_are_predicted_well(
    fraction: float | None, sample_logs: Path
) -> None:
    split = {"folds": 5} if fraction is None else {"fraction": fraction}
    request = CompareCommand((sample_logs / "cells/timings.txt",), ("auto",), seed=1, **split)
    (auto,) = compare(request).tried
    assert auto.failed_fits == 0
    assert {event for (event, _), _ in auto.events} == BOUNDS.keys()
    factor = 1 if fraction is None else 2
    for (event, _), score in auto.events:
        mean, total = BOUNDS[event]
        assert score.predicted == score.lines
        assert score.mean_relative_error is not None
        assert score.sum_error is not None
        assert score.mean_relative_error < factor * mean
        assert abs(score.sum_error) < factor * total
