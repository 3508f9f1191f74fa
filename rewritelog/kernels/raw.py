"""Loads and stores of unaligned numbers in either byte order, each one machine instruction.

Each function is plain Python, for readers and for runs without compilation; its compiled form in
`raw_compiled` works on the memory of the array.
"""

from __future__ import annotations

import struct
import sys

from rewritelog.arrays import Bytes
from tracebigsim.compiled import compiled_form_in

_NATIVE, _FOREIGN = ("<", ">") if sys.byteorder == "little" else (">", "<")
_I2, _I2_SWAPPED = struct.Struct(f"{_NATIVE}h"), struct.Struct(f"{_FOREIGN}h")
_I4, _I4_SWAPPED = struct.Struct(f"{_NATIVE}i"), struct.Struct(f"{_FOREIGN}i")
_F8, _F8_SWAPPED = struct.Struct(f"{_NATIVE}d"), struct.Struct(f"{_FOREIGN}d")


@compiled_form_in("rewritelog.kernels.raw_compiled")
def load_i2(buf: Bytes, at: int, swap: bool) -> int:
    """Return the 16-bit integer at `at`; `swap` where the bytes are in foreign order."""
    value: int = (_I2_SWAPPED if swap else _I2).unpack_from(buf, at)[0]  # type: ignore[arg-type]
    return value


@compiled_form_in("rewritelog.kernels.raw_compiled")
def load_i4(buf: Bytes, at: int, swap: bool) -> int:
    """Return the 32-bit integer at `at`; `swap` where the bytes are in foreign order."""
    value: int = (_I4_SWAPPED if swap else _I4).unpack_from(buf, at)[0]  # type: ignore[arg-type]
    return value


@compiled_form_in("rewritelog.kernels.raw_compiled")
def load_f8(buf: Bytes, at: int, swap: bool) -> float:
    """Return the 64-bit float at `at`; `swap` where the bytes are in foreign order."""
    value: float = (_F8_SWAPPED if swap else _F8).unpack_from(buf, at)[0]  # type: ignore[arg-type]
    return value


@compiled_form_in("rewritelog.kernels.raw_compiled")
def store_f8(buf: Bytes, at: int, value: float, swap: bool) -> None:
    """Write a 64-bit float at `at`; `swap` where the bytes are in foreign order."""
    (_F8_SWAPPED if swap else _F8).pack_into(buf, at, value)  # type: ignore[arg-type]
