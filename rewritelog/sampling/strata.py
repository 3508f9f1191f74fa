"""Strata: the records of a run by event, number of parameters and category."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.errors import ModelError
from rewritelog.models.base import EventKey, Timings
from rewritelog.models.formulas import EventFormula, Formulas
from rewritelog.sampling.records import RunRecords
from rewritelog.sampling.selection import Stratum
from rewritelog.timings.spread import ReplicateSpread

MOST_CATEGORIES = 1000
"""An event with more categories probably has the wrong formula."""


def strata_of(
    run: RunRecords,
    timings: Timings,
    spreads: Mapping[EventKey, ReplicateSpread],
    formulas: Formulas | None,
    replicates: int,
) -> tuple[Stratum, ...]:
    """Return the strata of a run: events in order of appearance, categories ascending.

    Points are measured `replicates` times, or more often if the spread calls for it. Raise
    `ModelError` for a formula that divides an event into too many categories.
    """
    timed = {samples.key: samples.params for samples in timings}
    kinds, kind = run.kinds()
    groups = np.split(np.argsort(kind, kind="stable"), np.cumsum(np.bincount(kind))[:-1])
    strata: list[Stratum] = []
    for (event, parameters), rows in zip(kinds, groups, strict=True):
        formula = None if formulas is None else formulas.for_event(event, parameters)
        known = timed.get((event, parameters), np.zeros((0, parameters)))
        params, spread = run.table(rows, parameters), spreads.get((event, parameters))
        times = max(replicates, spread.replicates if spread is not None else 1)
        for category, members, same in _categories(event, formula, params, known):
            terms = () if formula is None else formula.terms
            label = f"{parameters} {'' if category is None else repr(category)} {event}"
            lines, records = (params[members], known[same]), rows[members]
            strata.append(Stratum(event, *lines, terms, times, category, records, label))
    return tuple(strata)


def _categories(
    event: str, formula: EventFormula | None, params: Floats, timed: Floats
) -> Iterator[tuple[float | None, Ints, Flags]]:
    """Yield each category of an event with the rows of `params` and `timed` that belong to it."""
    if formula is None or formula.category is None:
        yield None, np.arange(len(params)), np.ones(len(timed), dtype=np.bool_)
        return
    of_rows, of_timed = formula.category.evaluate(params), formula.category.evaluate(timed)
    values, category_index = np.unique(of_rows, return_inverse=True)
    if len(values) > MOST_CATEGORIES:
        raise ModelError(
            f"{formula.where}: the category splits the event {event!r} "
            f"into {len(values)} classes; at most {MOST_CATEGORIES}"
        )
    order = np.argsort(category_index, kind="stable")
    counts = np.bincount(category_index, minlength=len(values))
    for value, members in zip(values, np.split(order, np.cumsum(counts)[:-1]), strict=True):
        yield float(value), members, np.isnan(of_timed) if np.isnan(value) else of_timed == value
