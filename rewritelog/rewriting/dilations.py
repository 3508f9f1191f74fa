"""Which SEB is dilated by which factor: patterns of names, resolved for the names of a block."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from rewritelog.format import KernelLayout
from rewritelog.kernels import names as kernel
from rewritelog.kernels.walk import FAULT_SIZE
from rewritelog.logs.blocks import LoadedBlock
from rewritelog.rewriting.kernels.interface import Dilation

_FEW_NAMES = 256


@dataclass(frozen=True)
class Dilations:
    """The factor for all SEBs, and those for some by name."""

    factor: float
    by_name: tuple[tuple[str, float], ...] = ()
    """Pattern with `*` wildcards, and factor; the last that matches wins."""

    def factor_for(self, name: str) -> float:
        """Return the factor of SEBs of a name."""
        for pattern, factor in reversed(self.by_name):
            if fnmatchcase(name, _star_only(pattern)):
                return factor
        return self.factor

    def for_block(self, loaded: LoadedBlock, lay: KernelLayout) -> Dilation:
        """Return the factors as the kernel takes them, for the names that the block has."""
        if not self.by_name:
            none = np.zeros(0)
            return Dilation(
                float(self.factor),
                np.zeros((0, lay.name_bytes), np.uint8),
                np.zeros(0, np.int32),
                none,
            )
        capacity = _FEW_NAMES
        while True:
            names = np.zeros((capacity, lay.name_bytes), dtype=np.uint8)
            slots = kernel.new_slots(capacity)
            fault = np.zeros(FAULT_SIZE, dtype=np.int64)
            pieces = loaded.pieces
            known = kernel.intern_names(
                loaded.buffer, pieces.starts, pieces.ends, pieces.counts, lay, names, slots, 0,
                fault,
            )  # fmt: skip
            if known != kernel.FULL:
                break
            capacity *= 4
        texts = (bytes(name).rstrip(b"\0").decode("utf-8", "replace") for name in names[:known])
        factors = np.array([self.factor_for(text) for text in texts], dtype=np.float64)
        return Dilation(float(self.factor), names, slots, factors)


def _star_only(pattern: str) -> str:
    """Return an fnmatch pattern in which only `*` is special."""
    return pattern.replace("[", "[[]").replace("?", "[?]")
