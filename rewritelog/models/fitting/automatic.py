"""The families that the automatic choice is among."""

from __future__ import annotations

import numpy as np

from rewritelog.models.fitting.cross_validation import solve_families
from rewritelog.models.fitting.families import FAMILIES, Family, SelectionSamples, proportional
from rewritelog.models.fitting.logarithmic import power_law_with_breaks, ridge_power_law
from rewritelog.models.fitting.product_shape import may_be_met
from rewritelog.models.fitting.program_terms import program_terms

ENOUGH_FOR_BREAKS = 20
"""With fewer samples a change of slope cannot be distinguished from noise."""

RIDGE_CREDIT = 8.0
"""The ridge power law knows beforehand what exponents there are; others must learn all."""

PROPORTIONAL = "proportional"
"""The family of two or three samples."""

EXACT = 0.01
"""Three samples that a power meets within this relative error are no coincidence."""


def automatic_families(samples: int) -> dict[str, Family]:
    """Return the families for a number of samples, simple ones first."""
    families = dict(FAMILIES)
    families["ridge power law"] = Family(ridge_power_law, credit=RIDGE_CREDIT)
    families["program terms"] = Family(program_terms)
    if samples >= ENOUGH_FOR_BREAKS:
        families["power law with breaks"] = Family(power_law_with_breaks)
    return families


def few_families(given: SelectionSamples) -> dict[str, Family]:
    """Return the one family for samples too few to hold any out.

    A multiple of a parameter, or a constant; for three samples that a power meets, that power.
    """
    samples = given.samples
    if len(samples) == 3 and may_be_met(samples, given.parameters, EXACT):
        power = {"product": FAMILIES["product"]}
        function = solve_families({"product": 1.0}, power, given)
        errors = np.abs(function.predict(samples.params) - samples.seconds) / samples.scale_s
        if errors.max() < EXACT:
            return power
    return {PROPORTIONAL: Family(proportional)}
