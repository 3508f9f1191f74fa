"""What the declaration means in bytes: numpy dtypes, and the offsets that the kernels work with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import construct as c
import numpy as np

from rewritelog.format import declaration
from rewritelog.format.declaration import ByteOrder

_KINDS = {"b": "i1", "B": "u1", "h": "i2", "H": "u2", "l": "i4", "L": "u4", "d": "f8"}


class KernelLayout(NamedTuple):
    """Sizes and offsets in bytes of one log version, for the kernels; `swap` is foreign order."""

    swap: bool
    seb_head: int
    seb_seqno: int
    seb_source: int
    seb_number: int
    seb_recv: int
    seb_effective: int
    seb_start: int
    seb_exec: int
    seb_end: int
    seb_name: int
    name_bytes: int
    count_bytes: int
    message: int
    message_number: int
    message_node: int
    message_send: int
    message_recv: int
    message_worker: int
    message_size: int
    event_head: int
    event_time: int
    event_index: int
    dependency: int


@dataclass(frozen=True)
class Layout:
    """One log version in one byte order."""

    log_version: int
    order: ByteOrder
    seb: np.dtype[Any]
    """The fixed part of a SEB, up to where the number of its messages stands."""
    message: np.dtype[Any]
    event: np.dtype[Any]
    """The fixed part of an event, up to its index or text."""
    kernel: KernelLayout


def dtype_of(struct: c.Struct) -> np.dtype[Any]:
    """Return the packed numpy dtype of a construct struct of fixed size.

    Raise `TypeError` for a part that has no fixed size, by name.
    """
    dtype = np.dtype([_field(part) for part in struct.subcons])
    if dtype.itemsize != struct.sizeof():
        raise TypeError(f"numpy packs {struct} into {dtype.itemsize} bytes, not {struct.sizeof()}")
    return dtype


def _field(part: Any) -> tuple[Any, ...]:
    kind = part.subcon
    if isinstance(kind, c.Array):
        return (part.name, _scalar(part.name, kind.subcon), (kind.count,))
    return (part.name, _scalar(part.name, kind))


def _scalar(name: str, kind: Any) -> str:
    if isinstance(kind, c.FormatField):
        order, letter = kind.fmtstr
        return str(order + _KINDS[letter])
    if isinstance(kind, c.Bytes):
        return f"V{kind.length}"
    raise TypeError(f"field {name} has no fixed size: {kind}")


@cache
def layout(log_version: int, order: ByteOrder) -> Layout:
    """Return the layout of a log version in a byte order, computed from the declaration."""
    seb = dtype_of(declaration.seb_head_struct(log_version, order))
    message = dtype_of(declaration.message_struct(log_version, order))
    event = dtype_of(c.Struct(*declaration.event_struct(order).subcons[:2]))
    i4 = declaration.PRIMITIVES[order].i4.sizeof()
    kernel = KernelLayout(
        swap=not event["r_time"].isnative,
        seb_head=seb.itemsize,
        seb_seqno=_offset(seb, "seqno"),
        seb_source=_offset(seb, "src_pe"),
        seb_number=_offset(seb, "msg_id"),
        seb_recv=_offset(seb, "recv_time"),
        seb_effective=_offset(seb, "eff_recv_time"),
        seb_start=_offset(seb, "start_time"),
        seb_exec=_offset(seb, "exec_time"),
        seb_end=_offset(seb, "end_time"),
        seb_name=_offset(seb, "name"),
        name_bytes=declaration.NAME_BYTES,
        count_bytes=i4,
        message=message.itemsize,
        message_number=_offset(message, "msg_id"),
        message_node=_offset(message, "dst_node"),
        message_send=_offset(message, "send_time"),
        message_recv=_offset(message, "recv_time"),
        message_worker=_offset(message, "tid"),
        message_size=_offset(message, "size"),
        event_head=event.itemsize,
        event_time=_offset(event, "r_time"),
        event_index=i4,
        dependency=i4,
    )
    return Layout(log_version, order, seb, message, event, kernel)


def _offset(dtype: np.dtype[Any], name: str) -> int:
    fields = dtype.fields
    if fields is None:
        raise TypeError(f"{dtype} has no fields")
    return int(fields[name][1])
