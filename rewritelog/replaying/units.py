"""Parsing of quantities with units: `1us`, `10GB/s`, `64KiB`; plain numbers are in base units."""

from __future__ import annotations

import re

from rewritelog.errors import UsageError

_NUMBER = re.compile(r"([+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?|[+-]?inf)\s*(.*)", re.ASCII)

_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
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
_BYTES = {"": 1.0, **{f"{prefix}B": factor for prefix, factor in _PREFIXES.items()}}
_RATES = {
    "": 1.0,
    **{f"{prefix}B/s": factor for prefix, factor in _PREFIXES.items()},
    **{f"{prefix}bit/s": factor / 8 for prefix, factor in _PREFIXES.items()},
}
_UNITS = {
    "a time": (_SECONDS, "s, ms, us or ns"),
    "a size": (_BYTES, "B, kB, MB, GB, KiB, MiB or GiB"),
    "a bandwidth": (_RATES, "B/s, MB/s, GB/s, MiB/s, GiB/s or Gbit/s"),
}


def seconds(text: str, what: str) -> float:
    """Return a time in seconds; raise `UsageError` naming `what` for anything else."""
    return _quantity(text, what, "a time")


def size_bytes(text: str, what: str) -> float:
    """Return a size in bytes; raise `UsageError` naming `what` for anything else."""
    return _quantity(text, what, "a size")


def bytes_per_s(text: str, what: str) -> float:
    """Return a bandwidth in bytes per second; raise `UsageError` naming `what` otherwise."""
    return _quantity(text, what, "a bandwidth")


def number(text: str, what: str) -> float:
    """Return a plain number; raise `UsageError` naming `what` for anything else."""
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f"{what}: {text!r} is not a number") from error


def _quantity(text: str, what: str, kind: str) -> float:
    units, known = _UNITS[kind]
    found = _NUMBER.fullmatch(text.strip())
    if found is None or found[2] not in units:
        raise UsageError(f"{what}: {text!r} is not {kind}: a number, with or without {known}")
    return float(found[1]) * units[found[2]]
