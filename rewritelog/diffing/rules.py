"""The rules that compare records of two layouts: the offsets of each field on both sides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rewritelog.arrays import Bytes
from rewritelog.diffing.kernels.interface import Field, Rules
from rewritelog.format import ByteOrder, Layout
from rewritelog.format.declaration import MISSING

_SEPARATE = "name"
"""A field without a rule: the kernel compares it up to its NUL, and after it."""

_MEANINGLESS = {"mpi_size": ("mpi_op", Field.MPI_SIZE_IDLE)}
"""Fields that are only meaningful if another one is not 0, and what they count as otherwise."""


@dataclass
class _Builder:
    """Builds the rules of one kind of record, and the defaults that they refer to."""

    order_a: ByteOrder
    order_b: ByteOrder
    defaults_a: bytearray
    defaults_b: bytearray
    rows: list[list[int]] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, kind: Field, in_a: int, in_b: int, number: np.dtype[Any]) -> None:
        """Add the rule of a field or array element; a negative offset means that it is absent."""
        default = -1
        if in_a < 0 or in_b < 0:
            default = self._default(name, number, absent_in_a=in_a < 0)
        guard, idle = -1, -1
        if name in _MEANINGLESS:
            needed, counted = _MEANINGLESS[name]
            guard = self.known[needed]
            idle = int(counted) if in_a >= 0 and in_b >= 0 else -1
        self.known.setdefault(name, len(self.rows))
        self.rows.append([in_a, in_b, number.itemsize, default, int(kind), guard, idle])

    def _default(self, name: str, number: np.dtype[Any], *, absent_in_a: bool) -> int:
        """Add the default of an absent field in the byte order of the other side."""
        value = MISSING[name][0] if isinstance(MISSING[name], tuple) else MISSING[name]
        to, order = (
            (self.defaults_b, self.order_b) if absent_in_a else (self.defaults_a, self.order_a)
        )
        at = len(to)
        to += np.array(value).astype(number.newbyteorder(order)).tobytes()
        return at


def rules_of(a: Layout, b: Layout) -> Rules:
    """Return the rules that compare records of layout `a` with those of layout `b`."""
    defaults_a, defaults_b = bytearray(), bytearray()
    tables = []
    for one, other, prefix in ((a.seb, b.seb, ""), (a.message, b.message, "MESSAGE_")):
        builder = _Builder(a.order, b.order, defaults_a, defaults_b)
        names = [*(one.names or ()), *(n for n in other.names or () if n not in (one.names or ()))]
        for name in names:
            if name != _SEPARATE:
                _add_field(builder, name, Field[prefix + name.upper()], one, other)
        tables.append(np.array(builder.rows, dtype=np.int64))
    return Rules(
        alike=a.seb == b.seb and a.message == b.message,
        reverse=a.order != b.order,
        sebs=tables[0],
        messages=tables[1],
        defaults_a=_bytes(defaults_a),
        defaults_b=_bytes(defaults_b),
    )


def _add_field(
    builder: _Builder, name: str, kind: Field, one: np.dtype[Any], other: np.dtype[Any]
) -> None:
    here, number = _elements(one, name)
    there, also = _elements(other, name)
    for k in range(max(len(here), len(there))):
        in_a = here[k] if k < len(here) else -1
        in_b = there[k] if k < len(there) else -1
        builder.add(name, kind, in_a, in_b, number or also)


def _elements(dtype: np.dtype[Any], name: str) -> tuple[list[int], Any]:
    """Return the offset of each number of a field, and its type; none if the field is absent."""
    if name not in (dtype.names or ()):
        return [], None
    fields: Any = dtype.fields
    kind, offset = fields[name][:2]
    number = kind.base
    many = kind.itemsize // number.itemsize
    return [int(offset) + k * number.itemsize for k in range(many)], number


def _bytes(data: bytearray) -> Bytes:
    return np.frombuffer(bytes(data), dtype=np.uint8)
