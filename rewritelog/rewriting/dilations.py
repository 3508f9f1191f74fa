"""Which SEB is dilated by which factor: patterns of names, resolved for the names of a block."""

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
    """The factor for all SEBs, and those for some by name."""

    factor: float
    by_name: tuple[tuple[str, float], ...] = ()
    """Pattern with `*` wildcards, and factor; the last that matches wins."""

    def factor_for(self, name: str) -> float:
        """Return the factor of SEBs of a name."""
        for pattern, factor in reversed(self.by_name):
            if matches(pattern, name):
                return factor
        return self.factor

    def for_block(self, loaded: LoadedBlock, lay: KernelLayout) -> Dilation:
        """Return the factors as the kernel takes them, for the names that the block has."""
        if not self.by_name:
            return Dilation(float(self.factor), new_table(lay.name_bytes, 0), np.zeros(0))
        table = names_of_block(loaded.buffer, loaded.pieces, lay)
        factors = np.array([self.factor_for(text) for text in _texts(table)], dtype=np.float64)
        return Dilation(float(self.factor), table, factors)

    def matched(self, dilation: Dilation) -> frozenset[str]:
        """Return the patterns that match a name of a block, given the block's factors."""
        if not self.by_name:
            return frozenset()
        return self.matching(_texts(dilation.names))

    def matching(self, names: Collection[str]) -> frozenset[str]:
        """Return the patterns that match one of the names."""
        return frozenset(
            pattern for pattern, _ in self.by_name if any(matches(pattern, name) for name in names)
        )


def _texts(table: NameTable) -> list[str]:
    """Return the names of a table as text."""
    return [name.decode("utf-8", "replace") for name in names_of(table)]
