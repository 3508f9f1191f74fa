"""The constant model covers nothing."""

from __future__ import annotations

import numpy as np

from rewritelog.models.registry import load_model


def test_nothing_is_covered_so_that_everything_is_dilated() -> None:
    model = load_model("constant", {})
    assert not model.needs_timings
    judged = model.fit([]).predict_detailed("kernel", np.ones((3, 2)))
    assert np.isnan(judged.seconds).all()
    assert judged.seconds.shape == (3,)
    assert not judged.exact.any()
    assert not judged.outside.any()
    assert model.fit([]).describe() == {}
    assert "dilation" in model.fit([]).summary()[0]
