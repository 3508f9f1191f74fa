"""What all regressions share, compared with scipy."""

import numpy as np
from scipy.special import huber

from rewritelog.models.fitting.regression import HUBER, huber_loss


def test_large_errors_count_linearly() -> None:
    errors = np.linspace(-5, 5, 101)
    np.testing.assert_allclose(huber_loss(errors), 2 * huber(HUBER, errors))
