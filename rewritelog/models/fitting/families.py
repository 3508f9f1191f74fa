"""The families of functions among which the model `auto` chooses."""

from __future__ import annotations

from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.bases.averaged_products import averaged_products
from rewritelog.models.fitting.bases.breaks import power_law_with_breaks
from rewritelog.models.fitting.bases.power_laws import power_law, sum_of_power_laws
from rewritelog.models.fitting.bases.products import product_terms
from rewritelog.models.fitting.bases.program_terms import program_terms
from rewritelog.models.fitting.bases.sums import (
    crossed_terms,
    short_sum,
    signed_terms,
    single_terms,
)
from rewritelog.models.fitting.design import Family

FAMILIES = {
    "single terms": Family(single_terms),
    "short sum": Family(short_sum),
    "product": Family(product_terms, most=tuning.ENOUGH - 1),
    "crossed terms": Family(crossed_terms),
    "signed terms": Family(signed_terms, non_negative=False),
    "power law": Family(power_law, prior_weight=tuning.POWER_LAW_PRIOR_WEIGHT),
    "program terms": Family(program_terms),
    "averaged products": Family(
        averaged_products,
        prior_weight=tuning.AVERAGE_PRIOR_WEIGHT,
        fewest=1,
        most=tuning.ENOUGH - 1,
    ),
    "power law with breaks": Family(power_law_with_breaks, fewest=tuning.ENOUGH_FOR_BREAKS),
    "sum of power laws": Family(sum_of_power_laws, fewest=tuning.ENOUGH_FOR_BREAKS),
}
"""By the names in reports, simple ones first: a later one is taken only if it predicts clearly
better."""


def automatic_families(samples: int) -> dict[str, Family]:
    """Return the families among which the model `auto` chooses with this number of samples."""
    return {
        name: family for name, family in FAMILIES.items() if family.fewest <= samples <= family.most
    }
