"""The model `constant`: it covers nothing, so that every region is scaled by the dilation."""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.base import Model, ModelFit, NoOptions, Timings


class FittedConstant(ModelFit):
    """A fit that covers no event."""

    def predict(self, event: str, params: Floats) -> Floats:  # noqa: ARG002 - none is covered
        """Return NaN for every row."""
        return np.full(len(params), np.nan)

    def summary(self) -> tuple[str, ...]:
        """Return one line, which says so."""
        return ("no model: every region is multiplied by the dilation",)


class Constant(Model[NoOptions]):
    """Scale everything by the dilation factor, without timings.

    Choose it if nothing is known of the target but how much faster it is.
    """

    Options = NoOptions
    needs_timings = False
    uses_params = False

    def fit(self, timings: Timings) -> FittedConstant:  # noqa: ARG002 - ignored
        """Return the fitted model that covers nothing."""
        return FittedConstant()
