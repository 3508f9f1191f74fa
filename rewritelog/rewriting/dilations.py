"""Dilation factors by patterns of names, resolved for a block of SEBs or a part of nodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.records import NameTable, records_of
from rewritelog.formats.traces import Part
from rewritelog.text import matches


@dataclass(frozen=True)
class DilationRules:
    """The general dilation factor, and factors for certain names."""

    factor: float
    by_name: tuple[tuple[str, float], ...] = ()
    """Pairs of a pattern with `*` wildcards and a factor; the last match wins."""

    def factor_for(self, name: str) -> float:
        """Return the factor of a name."""
        for pattern, factor in reversed(self.by_name):
            if matches(pattern, name):
                return factor
        return self.factor

    def for_block(self, loaded: LoadedBlock) -> tuple[Floats, frozenset[str]]:
        """Return the factor of each SEB, and the patterns that match any of their names.

        Raise `DamagedLogError` if the block is damaged.
        """
        if not self.by_name:
            return np.full(int(loaded.pieces.counts.sum()), float(self.factor)), frozenset()
        table = NameTable()
        numbers = table.add(records_of(loaded).sebs)
        names = [name.decode("utf-8", "replace") for name in table.names]
        return self._of(names, numbers)

    def for_part(self, part: Part) -> tuple[Floats, frozenset[str]]:
        """Return the factor of each event, and the patterns that match any of their names."""
        if not self.by_name:
            return np.full(len(part), float(self.factor)), frozenset()
        return self._of(*part.names)

    def _of(self, names: Sequence[str], number: Ints) -> tuple[Floats, frozenset[str]]:
        """Return the factor of each item, given the number of its name, and the patterns."""
        factors = np.array([self.factor_for(name) for name in names], dtype=np.float64)
        return factors[number], self.matching(names)

    def matching(self, names: Collection[str]) -> frozenset[str]:
        """Return the patterns that match any of the names."""
        return frozenset(
            pattern for pattern, _ in self.by_name if any(matches(pattern, name) for name in names)
        )
