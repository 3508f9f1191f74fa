"""Strata: the records of a run by event, number of parameters and category."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.errors import ModelError
from rewritelog.models.base import EventKey, Timings
from rewritelog.models.formulas import EventFormula, Formulas
from rewritelog.sampling.records import RunRecords
from rewritelog.sampling.replicates import ReplicateSpread
from rewritelog.sampling.selection import Stratum
from rewritelog.text import printable

MOST_CATEGORIES = 1000
"""An event with more categories probably has the wrong formula."""


@dataclass(frozen=True)
class RunStratum:
    """Records of one event with one number of parameters, or one category of them."""

    event: str
    parameters: int
    category: float | None
    """The value of the formula's category; None for an event without categories."""
    records: Ints
    """The indices of the records in the run, ascending."""
    stratum: Stratum


def strata_of(
    run: RunRecords,
    timings: Timings,
    spreads: Mapping[EventKey, ReplicateSpread],
    formulas: Formulas | None,
    replicates: int,
) -> tuple[RunStratum, ...]:
    """Return the strata of a run: events in order of appearance, categories ascending.

    Points are measured `replicates` times, or more often if the spread calls for it. Raise
    `ModelError` for a formula that divides an event into too many categories.
    """
    timed = {samples.key: samples.params for samples in timings}
    strata: list[RunStratum] = []
    for key, rows in _by_event(run):
        event, parameters = key
        spread = spreads.get(key)
        group = _Group(
            event,
            rows,
            run.table(rows, parameters),
            timed.get(key, np.zeros((0, parameters))),
            formulas.for_event(event, parameters) if formulas is not None else None,
            max(replicates, spread.replicates if spread is not None else 1),
        )
        strata.extend(group.strata())
    return tuple(strata)


def _by_event(run: RunRecords) -> Iterator[tuple[EventKey, Ints]]:
    """Yield the records of each event and number of parameters."""
    kinds, kind = run.kinds()
    order = np.argsort(kind, kind="stable")
    yield from zip(kinds, np.split(order, np.cumsum(np.bincount(kind))[:-1]), strict=True)


@dataclass(frozen=True)
class _Group:
    """The records of one event with one number of parameters."""

    event: str
    rows: Ints
    params: Floats
    timed: Floats
    formula: EventFormula | None
    replicates: int

    def strata(self) -> Iterator[RunStratum]:
        if self.formula is None or self.formula.category is None:
            yield self._stratum(None, np.arange(len(self.rows)), self.timed)
            return
        of_rows = self.formula.category.evaluate(self.params)
        of_timed = self.formula.category.evaluate(self.timed)
        values, category_index = np.unique(of_rows, return_inverse=True)
        if len(values) > MOST_CATEGORIES:
            raise ModelError(
                f"{self.formula.where}: the category splits the event {printable(self.event)!r} "
                f"into {len(values)} classes; at most {MOST_CATEGORIES}"
            )
        order = np.argsort(category_index, kind="stable")
        counts = np.bincount(category_index, minlength=len(values))
        for value, members in zip(values, np.split(order, np.cumsum(counts)[:-1]), strict=True):
            same = np.isnan(of_timed) if np.isnan(value) else of_timed == value
            yield self._stratum(float(value), members, self.timed[same])

    def _stratum(self, category: float | None, members: Ints, timed: Floats) -> RunStratum:
        parameters = self.params.shape[1]
        label = f"{parameters} {'' if category is None else repr(category)} {self.event}"
        terms = self.formula.terms if self.formula is not None else ()
        stratum = Stratum(label, self.params[members], timed, terms, self.replicates)
        return RunStratum(self.event, parameters, category, self.rows[members], stratum)


def formula_warnings(formulas: Formulas, strata: tuple[RunStratum, ...]) -> Iterator[str]:
    """Yield a sentence for each formula that matches an event, but not its parameters."""
    for event, parameters in dict.fromkeys((of_run.event, of_run.parameters) for of_run in strata):
        yield from formulas.misfits(event, parameters)
    yield from formulas.unused({stratum.event for stratum in strata})
