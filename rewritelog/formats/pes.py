"""Parser of lists of PEs as users write them, such as `0-31,40`."""

from __future__ import annotations

from collections.abc import Sequence

from rewritelog.errors import UsageError

_LONGEST_RANGE = 24
"""Maximum characters of a range, enough for the PE numbers of any log."""


def chosen_pes(pes: str | Sequence[int] | None, total: int) -> tuple[int, ...] | None:
    """Return PEs given as a list, or as a text for `parse_pes`; None for all."""
    if isinstance(pes, str):
        return parse_pes(pes, total)
    return None if pes is None else tuple(pes)


def parse_pes(text: str, total: int) -> tuple[int, ...]:
    """Return the PEs of a list such as `0-31,40` in ascending order.

    Raise `UsageError` for invalid lists, and for PEs that are not among the first `total`.
    """
    chosen: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        ends = (first, last) if dash else (first, first)
        is_range = all(number.isascii() and number.isdecimal() for number in ends)
        if not is_range or len(part) > _LONGEST_RANGE or int(ends[0]) > int(ends[1]):
            raise UsageError(f"--pes {text}: {part.strip()!r} is not a PE or a range of PEs")
        begin, end = map(int, ends)
        if end >= total:
            raise UsageError(f"--pes {text}: the PEs are 0 to {total - 1}")
        chosen.update(range(begin, end + 1))
    return tuple(sorted(chosen))
