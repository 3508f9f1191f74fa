"""The links between SEBs: starting messages, found by their numbers, and inverted links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.core import core
from rewritelog.replaying.workload import NO_MESSAGE, NOT_SENT, Numbers
from rewritelog.stopping import in_steps


def spans(firsts: Any, counts: Any) -> Ints:
    """Return `counts[k]` consecutive indices from `firsts[k]` on, for each k."""
    indices = np.repeat(firsts - (np.cumsum(counts) - counts), counts).astype(np.int64)
    indices += np.arange(len(indices))
    return indices


def grouped(keys: Numbers, values: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """Group values by keys below `count`; return where each key's values begin, and the values.

    The first result has an element more, the end of the last group.
    """
    first = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(np.bincount(keys, minlength=count), out=first[1:])
    places, by_group = first[:-1].copy(), np.empty_like(values)
    for step in in_steps(len(keys)):
        core.place(keys[step], values[step], places, by_group)
    return first, by_group


@dataclass(frozen=True)
class Starters:
    """The messages of all PEs, to be found by sender and number."""

    keys: Ints
    """Sender and number of each message, ascending."""
    order: Ints | None
    """The message of each key; None if messages are in this order."""
    bounds: Ints
    """The first key of each PE, shape (PEs + 1,)."""
    repeated: int
    """How many messages have the number of an earlier one."""

    @classmethod
    def of(cls, number: Numbers, bounds: Ints) -> Starters:
        """Sort messages, given their numbers and the first message of each PE."""
        keys = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)) << 32
        keys += number
        order = None
        if (keys[1:] < keys[:-1]).any():
            order = np.argsort(keys, kind="stable")
            keys = keys[order]
        return cls(keys, order, bounds, int(np.count_nonzero(keys[1:] == keys[:-1])))

    def find(self, source: Numbers, number: Numbers) -> Numbers:
        """Return the message that starts each SEB, `NO_MESSAGE` or `NOT_SENT`.

        Of messages with the same number the first one is found.
        """
        starter = np.full(len(source), NO_MESSAGE, dtype=np.int32)
        for step in in_steps(len(source)):
            told = np.flatnonzero(number[step] >= 0)
            starters = np.full(len(told), NOT_SENT, dtype=np.int32)
            pes = source[step][told]
            known = np.flatnonzero((pes >= 0) & (pes < len(self.bounds) - 1))
            if len(self.keys):
                starters[known] = self._find(pes[known].astype(np.int64), number[step][told[known]])
            starter[step][told] = starters
        return starter

    def _find(self, pes: Ints, number: Numbers) -> Ints:
        """Find messages of PEs that exist.

        Numbers mostly have no gaps, so the place that follows from a PE's first one is tried first.
        """
        keys, last = self.keys, len(self.keys) - 1
        sought = (pes << 32) + number
        low = np.minimum(self.bounds[pes], last)
        at = np.clip(low + (sought - keys[low]), 0, last)
        missed = np.flatnonzero(
            (keys[at] != sought) | ((at > 0) & (keys[np.maximum(at - 1, 0)] == sought))
        )
        at[missed] = np.minimum(np.searchsorted(keys, sought[missed]), last)
        rows = at if self.order is None else self.order[at]
        return np.where(keys[at] == sought, rows, NOT_SENT)

    @staticmethod
    def misaddressed(
        starter: Numbers, pe: Numbers, node: Numbers, worker: Any, workers: int
    ) -> Ints:
        """Return the SEBs that are started by a message that is not for their PE."""
        parts = []
        for step in in_steps(len(starter)):
            sebs = np.flatnonzero(starter[step] >= 0)
            message = starter[step][sebs]
            to = pe[step][sebs]
            wrong = ~_addresses(node[message].astype(np.int64), worker[message], to, workers)
            parts.append(sebs[wrong] + step.start)
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _addresses(node: Ints, worker: Any, to: Numbers, workers: int) -> Any:
    """Return whether the destinations of messages include PEs (FORMAT 4).

    The list of a multicast is not in the log, so that such a message may be for any PE.
    """
    any_worker = (worker == -1) | (worker == to % workers)
    excepted = (-100 - node == to // workers) & any_worker
    that_node = (node == to // workers) & any_worker
    return np.select([node == -2, node == -1, node >= 0], [True, any_worker, that_node], ~excepted)
