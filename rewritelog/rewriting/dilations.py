"""Dilation factors by patterns of SEB names, resolved for the names in a block."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from rewritelog.format import KernelLayout
from rewritelog.kernels.names import NameTable, names_of, names_of_block, new_table
from rewritelog.logs.blocks import LoadedBlock
from rewritelog.rewriting.kernels.interface import Dilation
from rewritelog.text import matches


@dataclass(frozen=True)
class DilationRules:
    """The general dilation factor, and factors for SEBs with certain names."""

    factor: float
    by_name: tuple[tuple[str, float], ...] = ()
    """Pairs of a pattern with `*` wildcards and a factor; the last match wins."""

    def factor_for(self, name: str) -> float:
        """Return the factor of SEBs with a name."""
        for pattern, factor in reversed(self.by_name):
            if matches(pattern, name):
                return factor
        return self.factor

    def for_block(self, loaded: LoadedBlock, lay: KernelLayout) -> Dilation:
        """Return the factors for the names in a block, in the form that the kernel takes."""
        if not self.by_name:
            return Dilation(float(self.factor), new_table(lay.name_bytes, 0), np.zeros(0))
        table = names_of_block(loaded.buffer, loaded.pieces, lay)
        factors = np.array([self.factor_for(text) for text in _texts(table)], dtype=np.float64)
        return Dilation(float(self.factor), table, factors)

    def matched(self, dilation: Dilation) -> frozenset[str]:
        """Return the patterns that match any name in a block, given the block's factors."""
        if not self.by_name:
            return frozenset()
        return self.matching(_texts(dilation.names))

    def matching(self, names: Collection[str]) -> frozenset[str]:
        """Return the patterns that match any of the names."""
        return frozenset(
            pattern for pattern, _ in self.by_name if any(matches(pattern, name) for name in names)
        )


def _texts(table: NameTable) -> list[str]:
    """Return the names of a table as text."""
    return [name.decode("utf-8", "replace") for name in names_of(table)]
