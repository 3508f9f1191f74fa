"""Texts by their numbers: what no input may do to the table."""

from __future__ import annotations

from itertools import product

import numpy as np

from rewritelog.core import NumberedTexts


def longest_run(slots: np.ndarray) -> int:
    """The most slots in a row that are taken: what a search may have to pass."""
    taken = np.flatnonzero(slots)
    return max(map(len, np.split(taken, np.flatnonzero(np.diff(taken) > 1) + 1)))


def test_texts_that_meet_whatever_the_key_is_cannot_be_made_of_highest_bits() -> None:
    """A product of numbers that differ in the highest bit does so with any factor.

    Where the next word undoes that difference, pairs of words could be exchanged at will.
    """
    for undone in (1 << 63, 1 << 63 | 1 << 31):
        pairs = np.array([[0, 0], [1 << 63, undone]], dtype=np.uint64)
        texts = np.array([pairs[list(chosen)].ravel() for chosen in product((0, 1), repeat=12)])
        buffer, lengths = texts.view(np.uint8).reshape(-1), np.full(len(texts), 8 * texts.shape[1])
        numbered = NumberedTexts.of(buffer, np.arange(len(texts)) * lengths, lengths)
        assert len(numbered.first) == len(texts) == 4096
        assert longest_run(numbered.slots) < 100


def test_rows_of_whole_numbers_are_spread_over_the_table() -> None:
    """Their bits differ in the upper half of the last word alone."""
    rows = np.column_stack((np.full(4096, 7.0), np.arange(4096.0)))
    lengths = np.full(4096, 16)
    numbered = NumberedTexts.of(rows.view(np.uint8).reshape(-1), np.arange(4096) * 16, lengths)
    assert len(numbered.first) == 4096
    assert longest_run(numbered.slots) < 100


def test_a_text_differs_from_those_that_it_begins_with() -> None:
    lengths = np.arange(1000)
    numbered = NumberedTexts.of(np.full(1000, ord("a"), np.uint8), np.zeros(1000, int), lengths)
    assert numbered.numbers.tolist() == list(range(1000))
