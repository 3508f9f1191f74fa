"""Parsing of what users write: quantities with units (`1us`, `10GB/s`), lists of PEs (`0-31,40`).

Only 0 and inf need no unit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Context, Decimal
from numbers import Integral
from typing import Any

from rewritelog.errors import UsageError, UsageTypeError, spelled

_NUMBER = re.compile(r"([+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?|[+-]?inf)\s*(.*)", re.ASCII)

_EXACT = Context(prec=60, traps=[])
"""Multiplies units in decimals: `5us` has to be 5e-6, from which the float 5 * 1e-6 differs."""

_SECONDS = {"s": "1", "ms": "1e-3", "us": "1e-6", "µs": "1e-6", "μs": "1e-6", "ns": "1e-9"}
_PREFIXES = {
    "": 1.0,
    "k": 1e3,
    "K": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
}
_BYTES = {f"{prefix}B": factor for prefix, factor in _PREFIXES.items()}
_RATES = {
    f"{prefix}{unit}": factor * size
    for prefix, factor in _PREFIXES.items()
    for unit, size in (
        *((bytes_per_s, 1.0) for bytes_per_s in ("B/s", "Bps")),
        *((bits_per_s, 1 / 8) for bits_per_s in ("bit/s", "bits/s", "b/s", "bps")),
    )
}
_HERTZ = {f"{prefix}Hz": _PREFIXES[prefix] for prefix in ("", "k", "M", "G")}
_UNITS: dict[str, tuple[Mapping[str, float | str], str, str]] = {
    "a time": (_SECONDS, "s, ms, us or ns", "{0}us or {0}s"),
    "a size": (_BYTES, "B, kB, MB, GB, KiB, MiB or GiB", "{0}B or {0}kB"),
    "a clock rate": (_HERTZ, "Hz, kHz, MHz or GHz", "{0}Hz"),
    "a bandwidth": (_RATES, "B/s, MB/s, GB/s, MiB/s, GiB/s or Gbit/s", "{0}GB/s or {0}Gbit/s"),
}
_LARGE = 1e6
"""For a number without a unit that is this large, messages suggest units without a prefix."""


def seconds(value: object, what: str) -> float:
    """Return the length of a time, given in seconds or as a text with a unit."""
    return _finite(_quantity(value, what, "a time"), what)


def size_bytes(value: object, what: str) -> float:
    """Return a size, given in bytes or as a text with a unit."""
    return _finite(_quantity(value, what, "a size"), what)


def bytes_per_s(value: object, what: str) -> float:
    """Return a bandwidth, given in bytes per second or as a text with a unit; inf is allowed."""
    rate = _quantity(value, what, "a bandwidth")
    if rate <= 0:
        raise UsageError(f"{what} must be above 0, not {rate}")
    return rate


def _finite(quantity: float, what: str) -> float:
    if not 0 <= quantity < math.inf:
        raise UsageError(f"{what} must be finite and not negative, not {quantity}")
    return quantity


def number(value: object, what: str) -> float:
    """Return a number, or a text of one; raise `UsageError` naming `what` for anything else."""
    with suppress(TypeError, ValueError, OverflowError):
        if not isinstance(value, bool):
            return float(with_plain_digits(value))
    raise UsageError(f"{what}: {value_text(value)} is not a number")


def with_plain_digits(value: Any) -> Any:
    """Return a value; raise `ValueError` for a text that only Python reads as a number.

    Python reads `6_4` as 64, and the digits of all scripts; timing lines and formulas do not.
    """
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        raise ValueError(f"{value!r} is not a number")
    return value


def value_text(value: object) -> str:
    """Return a value's text for messages; the type if it has several lines, as a table has."""
    text = repr(value)
    return f"a {type(value).__name__}" if "\n" in text else text


def moment(value: object, what: str) -> float:
    """Return a time in seconds, given as a number or as a text with or without a unit."""
    moment_s = _number_or_quantity(value, what, "a time")
    if math.isnan(moment_s):
        raise UsageError(f"{what}: {value} is not a time in seconds")
    return moment_s


def hertz(value: object, what: str) -> float:
    """Return a clock rate in Hz, given as a number or as a text with or without a unit."""
    rate = _number_or_quantity(value, what, "a clock rate")
    if not 0 < rate < math.inf:
        raise UsageError(f"{what} must be a finite number above 0, not {value}")
    return rate


def _number_or_quantity(value: object, what: str, kind: str) -> float:
    try:
        return number(value, what)
    except UsageError:
        return _quantity(str(value), what, kind)


def _quantity(value: object, what: str, kind: str) -> float:
    """Return a quantity in its base unit; raise `UsageError` naming `what` for anything else."""
    if not isinstance(value, str):
        if math.isnan(quantity := number(value, what)):
            raise UsageError(f"{what}: {value!r} is not a number")
        return quantity
    units, known, examples = _UNITS[kind]
    match = _NUMBER.fullmatch(value.strip())
    if match is None or match[2] not in ("", *units):
        raise UsageError(f"{what}: {value!r} is not {kind}: a number with one of {known}")
    if match[2]:
        factor = Decimal(units[match[2]])
        return float(_EXACT.multiply(_EXACT.create_decimal(match[1]), factor))
    quantity = float(match[1])
    if quantity and not math.isinf(quantity):
        written = (examples if quantity < _LARGE else examples.replace("G", "")).format(match[1])
        raise UsageError(f"{what}: {value!r} has no unit: write {written}")
    return quantity


_LONGEST_RANGE = 24
"""Maximum characters of a range, enough for the PE numbers of any log."""


def items_of(values: Any) -> list[Any] | None:
    """Return the items of an iterable; None for anything else.

    None also for bytes, open files and tables, whose items are numbers, lines and column names.
    """
    if isinstance(values, bytes) or hasattr(values, "read") or hasattr(values, "columns"):
        return None
    try:
        return list(values)
    except TypeError:  # also for an array without dimensions, though it is an `Iterable`
        return None


def pes(value: object, what: str) -> str | tuple[int, ...]:
    """Return PEs as a text for `parse_pes`, or as numbers; raise `UsageError` otherwise."""
    if isinstance(value, str):
        return value
    numbers = [value] if isinstance(value, Integral) else items_of(value)
    if numbers == []:
        raise UsageError(f"{what}: no PE is chosen")
    are_numbers = (isinstance(n, Integral) and not isinstance(n, bool) for n in numbers or [None])
    if numbers is None or not all(are_numbers):
        raise UsageTypeError(f"{what} must be a text such as 0-31,40 or integers, not {value!r}")
    return tuple(map(int, numbers))


def chosen_pes(
    pes: str | Sequence[int] | None, known: Sequence[int], lane: str = "PE"
) -> tuple[int, ...] | None:
    """Return the chosen PEs in ascending order; None for all.

    `known` are the PEs of the log, ascending. Raise `UsageError` for an invalid text and for
    unknown PEs; a text that names known PEs may name unknown ones, too.
    """
    if pes is None:
        return None
    known_pes, first, last = set(known), known[0], known[-1]
    if isinstance(pes, str):
        pes = parse_pes(pes, last + 1, first, lane)
        pes = sorted(known_pes.intersection(pes)) or pes
    for pe in pes:
        if pe not in known_pes:
            raise UsageError(f"{lane} {pe} is not in the log: it has {lane}s {first} to {last}")
    return tuple(sorted(set(pes)))


def parse_pes(text: str, end: int, least: int = 0, lane: str = "PE") -> tuple[int, ...]:
    """Return the PEs of a list such as `0-31,40` in ascending order.

    Raise `UsageError` for invalid lists, and for PEs below `least` or not below `end`.
    """
    named = f"{spelled('pes')} {text}".rstrip()
    chosen: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        ends = (first, last) if dash else (first, first)
        is_range = all(number.isascii() and number.isdecimal() for number in ends)
        if not is_range or len(part) > _LONGEST_RANGE or int(ends[0]) > int(ends[1]):
            raise UsageError(f"{named}: {part.strip()!r} is not a {lane} or a range of {lane}s")
        from_pe, to_pe = map(int, ends)
        if from_pe < least or to_pe >= end:
            raise UsageError(f"{named}: the {lane}s are {least} to {end - 1}")
        chosen.update(range(from_pe, to_pe + 1))
    return tuple(sorted(chosen))
