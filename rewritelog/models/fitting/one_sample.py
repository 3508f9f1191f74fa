"""The fit of a single sample, for which only one function is possible: its time, a constant.

A run may time each of many thousand events once. There is nothing to choose, solve or hold out
then; the result is bit for bit the one that the pipeline would find, in a fraction of the time.
"""

from __future__ import annotations

import numpy as np

from rewritelog.models.base import EventTimings, has_slow_first_call
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.candidates import ONE, Parameters
from rewritelog.models.fitting.diagnosis import UNSEEN, Coefficient, Dropped, Quality
from rewritelog.models.fitting.event_fit import ClassFit
from rewritelog.models.fitting.extrapolation import Growth
from rewritelog.models.fitting.function import FittedFunction, PredictionBounds
from rewritelog.models.fitting.samples import LEAST_SCALE_S, Weighting


def is_one_sample(usable: EventTimings) -> bool:
    """Return whether there is one sample, whose time has an inverse that does not overflow."""
    return len(usable.seconds) == 1 and LEAST_SCALE_S <= usable.seconds[0] <= 1 / LEAST_SCALE_S


def fit_one_sample(
    usable: EventTimings, family: str, weights: Weighting, value: float | None
) -> ClassFit:
    """Return the fit of a sample for which `is_one_sample` holds.

    `family` is the name that the fit reports, `value` that of the category expression. The pipeline
    solves 1/t · c = 1, so that c may differ from t in its last bit and χ² from 0.
    """
    time_s = float(usable.seconds[0])
    constant_s = 1.0 / (1.0 / time_s)
    parameters = Parameters.of_samples(usable.params)
    chi2 = ((time_s - constant_s) / time_s) ** 2
    relative = weights == "relative"
    quality = Quality(
        r2=None,
        held_out_r2=None,
        held_out_error=None,
        held_out_rms=None,
        held_out_sum_error=None,
        coverage=None,
        chi2=chi2 if relative else chi2 * time_s * time_s,
        relative=relative,
        dof=0,
        rank=1,
        condition=1.0,
        largest_leverage=(1.0 / constant_s * constant_s) ** 2,
        effective_sample_size=1.0,
        outliers=0,
        first_call=time_s / constant_s if has_slow_first_call(usable.event) else None,
        negative=0,
    )
    return ClassFit(
        value=value,
        samples=1,
        family=family,
        function=FittedFunction(
            (ONE,),
            np.array([constant_s]),
            bounds=PredictionBounds(parameters.lowest, parameters.highest, 0.0, None),
        ),
        formula_error=None,
        growth=Growth(None, None, tuning.LEAST_SHARE_OF_TIME * time_s, time_s),
        total_ratio=UNSEEN.total_ratio,
        coefficients=(Coefficient("1", constant_s, None),),
        dropped=tuple(
            Dropped(f"p{ignored.parameter}", f"p{ignored.parameter} {ignored.reason}")
            for ignored in parameters.ignored
        ),
        quality=quality,
        leverage_root=np.array([[constant_s]]),
        ratios=UNSEEN.ratios,
    )
