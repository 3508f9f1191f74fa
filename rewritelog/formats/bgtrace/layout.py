"""Byte layouts derived from the declaration: numpy dtypes, and offsets for the compiled core."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

import construct as c
import numpy as np

from rewritelog.core import core
from rewritelog.formats.bgtrace import declaration
from rewritelog.formats.bgtrace.declaration import ByteOrder

Record: TypeAlias = Literal["seb", "message", "event"]

_KINDS = {"b": "i1", "B": "u1", "h": "i2", "H": "u2", "l": "i4", "L": "u4", "d": "f8"}


@dataclass(frozen=True)
class Layout:
    """The layout of one log version in one byte order."""

    log_version: int
    order: ByteOrder
    seb: np.dtype[Any]
    """The fixed part of a SEB, up to the number of its messages."""
    message: np.dtype[Any]
    event: np.dtype[Any]
    """The fixed part of an event, up to its index or text."""
    count: np.dtype[Any]
    """The type of counts, indices and dependencies."""
    core: np.ndarray[Any, Any]
    """The struct `layout` of the compiled core."""


def dtype_of(struct: c.Struct) -> np.dtype[Any]:
    """Return the packed numpy dtype of a construct struct of fixed size.

    Raise `TypeError` naming the field for one without a fixed size.
    """
    dtype = np.dtype([_dtype_field(part) for part in struct.subcons])
    if dtype.itemsize != struct.sizeof():
        raise TypeError(f"numpy packs {struct} into {dtype.itemsize} bytes, not {struct.sizeof()}")
    return dtype


def _dtype_field(part: Any) -> tuple[Any, ...]:
    kind = part.subcon
    if isinstance(kind, c.Array):
        return (part.name, _dtype_text(part.name, kind.subcon), (kind.count,))
    return (part.name, _dtype_text(part.name, kind))


def _dtype_text(name: str, kind: Any) -> str:
    if isinstance(kind, c.FormatField):
        order, letter = kind.fmtstr
        return str(order + _KINDS[letter])
    if isinstance(kind, c.Bytes):
        return f"V{kind.length}"
    raise TypeError(f"field {name} has no fixed size: {kind}")


def number_type(order: ByteOrder, name: str) -> np.dtype[Any]:
    """Return the numpy type of a primitive type, as in `number_type("big", "u4")`."""
    return np.dtype(_dtype_text(name, getattr(declaration.PRIMITIVES[order], name)))


@cache
def format_names(record: Record) -> dict[str, str]:
    """Return the names of a record's fields in the documentation of the format."""
    newest = declaration.LOG_VERSIONS[-1]
    structs = {
        "seb": declaration.seb_head_struct(newest, "little"),
        "message": declaration.message_struct(newest, "little"),
        "event": declaration.event_struct("little"),
    }
    return {part.name: part.docs or part.name for part in structs[record].subcons}


@cache
def layout(log_version: int, order: ByteOrder) -> Layout:
    """Return the layout of a log version in a byte order, derived from the declaration."""
    seb = dtype_of(declaration.seb_head_struct(log_version, order))
    message = dtype_of(declaration.message_struct(log_version, order))
    event = dtype_of(c.Struct(*declaration.event_struct(order).subcons[:2]))
    count = number_type(order, "i4")
    offsets = {
        f"{record}_{name}": int(offset)
        for record, dtype in (("seb", seb), ("message", message), ("event", event))
        for name, (_, offset, *_) in (dtype.fields or {}).items()
    }
    offsets |= {
        "swap": not event["r_time"].isnative,
        "seb_bytes": seb.itemsize,
        "name_bytes": declaration.NAME_BYTES,
        "count_bytes": declaration.COUNT_BYTES,
        "message_bytes": message.itemsize,
        "event_bytes": event.itemsize,
        "index_bytes": declaration.COUNT_BYTES,
        "dependency_bytes": declaration.COUNT_BYTES,
    }
    struct = core.structs["layout"]
    values = np.array(tuple(offsets[name] for name in struct.names or ()), dtype=struct)
    return Layout(log_version, order, seb, message, event, count, values)
