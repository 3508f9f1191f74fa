"""The compiled core: what is sequential over bytes or events. `core.h` declares its functions."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rewritelog.arrays import Bytes, Ints
from tracebigsim.core import Library

core: Any = Library(Path(__file__).parent)
"""The functions, structs and constants that `core.h` declares."""


class NumberedTexts(NamedTuple):
    """Texts, of which equal ones have the same number, in order of first appearance."""

    first: Ints
    """The first row of each distinct text."""
    numbers: Ints
    """The number of each text."""
    key: int
    slots: Any
    """The hash table, for `core.find_texts`."""

    @classmethod
    def of(
        cls, buffer: Bytes, at: Ints, lengths: Ints, *, are_names: bool = False
    ) -> NumberedTexts:
        """Return the numbers of texts at offsets of a buffer; names end before any NUL.

        They are hashed with a random key, so that no log can make all collide.
        """
        slots = np.zeros(2 << len(at).bit_length(), dtype=np.int32)
        first, numbers = np.empty((2, len(at)), dtype=np.int64)
        key = secrets.randbits(64)
        count = core.number_texts(buffer, at, lengths, are_names, key, slots, first, numbers)
        return cls(first[:count].copy(), numbers, key, slots)
