"""The families of functions among which the model `auto` chooses."""

from __future__ import annotations

import numpy as np

from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.averaged_products import averaged_products
from rewritelog.models.fitting.cross_validation import solve_families
from rewritelog.models.fitting.design import SelectionSamples
from rewritelog.models.fitting.families import (
    Family,
    crossed_terms,
    power_law,
    product_terms,
    proportional,
    short_sum,
    signed_terms,
    single_terms,
)
from rewritelog.models.fitting.logarithmic import power_law_with_breaks, ridge_power_law
from rewritelog.models.fitting.power_sums import sum_of_power_laws
from rewritelog.models.fitting.product_shape import single_factor_may_fit
from rewritelog.models.fitting.program_terms import program_terms

PROPORTIONAL = "proportional"
"""The name of the family that is fitted to two or three samples."""


def automatic_families(samples: int) -> dict[str, Family]:
    """Return the families for this number of samples by name, simple ones first.

    A later one is taken only if it predicts clearly better.
    """
    families = {"single terms": Family(single_terms), "short sum": Family(short_sum)}
    if samples >= tuning.ENOUGH:
        families["power law"] = Family(power_law)
    families["crossed terms"] = Family(crossed_terms)
    families["signed terms"] = Family(signed_terms, non_negative=False)
    families["ridge power law"] = Family(ridge_power_law, prior_weight=tuning.RIDGE_PRIOR_WEIGHT)
    families["program terms"] = Family(program_terms)
    if samples < tuning.ENOUGH:
        families["averaged products"] = Family(
            averaged_products, prior_weight=tuning.AVERAGE_PRIOR_WEIGHT
        )
    if samples >= tuning.ENOUGH_FOR_BREAKS:
        families["power law with breaks"] = Family(power_law_with_breaks)
    if samples >= tuning.ENOUGH:
        families["sum of power laws"] = Family(sum_of_power_laws)
    return families


def few_families(selection: SelectionSamples) -> dict[str, Family]:
    """Return the only family for two or three samples, too few to hold any out.

    It is a multiple of one parameter, or a constant; for three samples that one power fits within
    `EXACT_POWER`, it is that power.
    """
    samples = selection.samples
    if len(samples) == 3 and single_factor_may_fit(
        samples, selection.parameters, tuning.EXACT_POWER
    ):
        power = {"product": Family(product_terms)}
        function = solve_families({"product": 1.0}, power, selection)
        errors = np.abs(function.predict(samples.params) - samples.seconds) / samples.sigma_s
        if errors.max() < tuning.EXACT_POWER:
            return power
    return {PROPORTIONAL: Family(proportional)}
