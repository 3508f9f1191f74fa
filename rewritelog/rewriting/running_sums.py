"""Sums of durations that are independent, to the last bit, of how the work is divided.

The durations of each timeline are added in the order of its SEBs, and so are the records of each
event and number of parameters in it; the sums of timelines are then added exactly, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.core import core
from rewritelog.models.base import EventKey
from rewritelog.rewriting.counts import DurationSum
from rewritelog.rewriting.statistics import EventSums
from rewritelog.sums import ExactSum

EventValues: TypeAlias = tuple[Floats, Floats, Floats, Floats, Floats, Floats, Floats, Floats]
"""The contribution of each record to the fields of `EventSums`."""

_NOTHING = (ExactSum(),) * len(DurationSum)


class RunningSums:
    """The sums of one block, carried from part to part of a long timeline."""

    def __init__(self) -> None:
        self._durations = np.zeros((len(DurationSum), 2))
        self._events: dict[EventKey, Floats] = {}
        """High and low part of the fields of `EventSums`, shape (fields, 2)."""

    def begin(self, pieces: int) -> Floats:
        """Return the initial sums of a part, shape (pieces, DurationSum, 2)."""
        sums = np.zeros((pieces, len(DurationSum), 2))
        sums[0] = self._durations
        return sums

    def durations(self, sums: Floats, *, done: bool) -> tuple[ExactSum, ...]:
        """Return the sums over the pieces of a part; zeros while the timeline is not `done`."""
        if not done:
            self._durations = sums[0]
            return _NOTHING
        return tuple(_exact(sums))

    def events(
        self,
        kinds: tuple[EventKey, ...],
        kind: Ints,
        piece: Ints,
        values: EventValues,
        *,
        done: bool,
    ) -> dict[EventKey, EventSums]:
        """Return the sums of the records of each kind; none as long as the timeline is not `done`.

        `kind` (index into `kinds`) and `piece` have one entry for each record.
        """
        pairs, groups = np.unique(piece * max(len(kinds), 1) + kind, return_inverse=True)
        group_kind = pairs % max(len(kinds), 1)
        sums = np.zeros((len(values), len(pairs), 2))
        for group, number in enumerate(group_kind if self._events else ()):
            sums[:, group] = self._events.get(kinds[number], 0.0)
        for column, value in zip(sums, values, strict=True):
            core.add_by_group(groups, np.ascontiguousarray(value), column)
        by_group = sums.swapaxes(0, 1)
        if not done:
            self._events |= {kinds[k]: row for k, row in zip(group_kind, by_group, strict=True)}
            return {}
        rows = {name: row[None] for name, row in self._events.items()}
        rows |= _by_kind(kinds, group_kind, by_group)
        return {name: EventSums(*_exact(row)) for name, row in rows.items()}


def _by_kind(kinds: tuple[EventKey, ...], group_kind: Ints, sums: Floats) -> dict[EventKey, Floats]:
    """Return the rows of each kind that has any."""
    order = np.argsort(group_kind, kind="stable")
    bounds = np.searchsorted(group_kind[order], np.arange(len(kinds) + 1)).tolist()
    return {
        kind: sums[order[begin:end]]
        for kind, begin, end in zip(kinds, bounds[:-1], bounds[1:], strict=True)
        if end > begin
    }


def _exact(sums: Floats) -> Iterator[ExactSum]:
    """Yield the total of each column of sums, shape (rows, columns, 2)."""
    return (ExactSum().plus(sums[:, k].ravel().tolist()) for k in range(sums.shape[1]))
