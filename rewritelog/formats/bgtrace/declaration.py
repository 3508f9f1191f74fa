"""The declaration of the bgTrace format: the only module with the order and sizes of fields.

Numpy dtypes and the constants of kernels are derived from these structs in `layout`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any, Literal, TypeAlias

import construct as c

ByteOrder: TypeAlias = Literal["little", "big"]

LOG_VERSIONS = range(7)
"""All log versions; 4 and 5 have the same layout."""

MAGIC = bytes.fromhex("10eabdf9")

NAME_BYTES = 20


@dataclass(frozen=True)
class Primitives:
    """The primitive types in one byte order, as construct fields."""

    i1: Any
    i2: Any
    u2: Any
    i4: Any
    u4: Any
    f8: Any


PRIMITIVES: dict[ByteOrder, Primitives] = {
    "little": Primitives(c.Int8sl, c.Int16sl, c.Int16ul, c.Int32sl, c.Int32ul, c.Float64l),
    "big": Primitives(c.Int8sb, c.Int16sb, c.Int16ub, c.Int32sb, c.Int32ub, c.Float64b),
}

INTEGER_FORMATS: dict[ByteOrder, int] = {"big": 0, "little": 1}
"""The values of `integer_format` and `float_format` in a machine header."""

COUNT_BYTES = int(c.Int32sl.sizeof())
"""The size in bytes of counts, offsets, indices and dependencies."""


class EventType(IntEnum):
    """The type of a log event; other values are invalid."""

    PROJECTIONS = 1
    PRINT = 2
    MARK = 3


def _field(name: str, kind: Any, documented: str) -> Any:
    """Declare a field that the documentation of the format calls `documented`."""
    return c.Renamed(kind, newname=name, newdocs=documented)


_SIZES_AFTER_LONG = (
    "integer_format" / c.Byte,
    "float_size" / c.Byte,
    "double_size" / c.Byte,
    "float_format" / c.Byte,
    "bool_size" / c.Byte,
    "pointer_size" / c.Byte,
)

_SIZES_TO_LONG = (
    "char_size" / c.Byte,
    "short_size" / c.Byte,
    "int_size" / c.Byte,
    "long_size" / c.Byte,
)

MachineHeader = c.Struct(
    "magic" / c.Bytes(len(MAGIC)),
    "header_version" / c.Byte,
    "sizes"
    / c.Switch(
        c.this.header_version,
        {
            0: c.Struct(*_SIZES_TO_LONG, *_SIZES_AFTER_LONG, "padding" / c.Bytes(1)),
            1: c.Struct(*_SIZES_TO_LONG, "int128_size" / c.Byte, *_SIZES_AFTER_LONG),
        },
        default=c.Error,
    ),
)
"""The 16 bytes at the start of every binary file, which contain its byte order."""

MACHINE_HEADER_BYTES = 16


@cache
def summary_struct(order: ByteOrder) -> c.Struct:
    """Return the struct of `bgTrace`, whose last two fields may be absent."""
    i4 = PRIMITIVES[order].i4
    return c.Struct(
        "machine" / MachineHeader,
        "total_pes" / i4,
        "x" / i4,
        "y" / i4,
        "z" / i4,
        "num_cth" / i4,
        "num_wth" / i4,
        "stack_size" / i4,
        "timing_method" / i4,
        "files" / i4,
        "log_version" / c.Optional(i4),
        "thread_entry_point" / c.Optional(i4),
        c.Terminated,
    )


@cache
def timeline_file_struct(order: ByteOrder) -> c.Struct:
    """Return the struct of the head of a `bgTraceN`: the number and offsets of its timelines."""
    types = PRIMITIVES[order]
    return c.Struct(
        "machine" / MachineHeader,
        "count" / types.i4,
        "offsets" / c.Array(c.this.count, types.u4),
    )


@cache
def message_struct(log_version: int, order: ByteOrder) -> c.Struct:
    """Return the struct of a message in a log version."""
    t = PRIMITIVES[order]
    fields = [
        _field("msg_id", t.i4, "msgID"),
        _field("dst_node", t.i4, "dstNode"),
        _field("send_time", t.f8, "sendTime"),
        _field("recv_time", t.f8, "recvTime"),
        _field("tid", t.i2, "tID"),
        "size" / t.i4,
    ]
    if log_version >= 1:
        fields.append("group" / t.i4)
    return c.Struct(*fields)


@cache
def event_struct(order: ByteOrder) -> c.Struct:
    """Return the struct of a log event; its type determines what follows its time."""
    t = PRIMITIVES[order]
    text = c.Prefixed(t.i4, c.GreedyBytes)
    data = {EventType.PROJECTIONS: t.i4, EventType.PRINT: text, EventType.MARK: text}
    return c.Struct(
        "type" / t.i1,
        _field("r_time", t.f8, "rTime"),
        "data" / c.Switch(c.this.type, data, default=c.Error),
    )


@cache
def seb_head_struct(log_version: int, order: ByteOrder) -> c.Struct:
    """Return the struct of the fixed part of a SEB, which precedes its messages."""
    t = PRIMITIVES[order]
    fields = [
        "ep" / t.i4,
        "seqno" / t.i4,
        _field("src_pe", t.i4, "msgId source PE"),
        _field("msg_id", t.i4, "msgId number"),
    ]
    if log_version >= 6:
        fields += [_field("mpi_op", t.u2, "mpiOp"), _field("mpi_size", t.u4, "mpiSize")]
    if log_version >= 4:
        fields += ["charm_ep" / t.i2]
    fields += [
        _field("recv_time", t.f8, "recvTime"),
        _field("eff_recv_time", t.f8, "effRecvTime"),
        _field("start_time", t.f8, "startTime"),
        _field("exec_time", t.f8, "execTime"),
        _field("end_time", t.f8, "endTime"),
        "flag" / t.i1,
        "name" / c.Bytes(NAME_BYTES),
    ]
    if log_version >= 2:
        fields += [_field("obj_id", c.Array(4 if log_version >= 3 else 3, t.i4), "objId")]
    return c.Struct(*fields)


@cache
def seb_struct(log_version: int, order: ByteOrder) -> c.Struct:
    """Return the struct of a whole SEB."""
    i4 = PRIMITIVES[order].i4
    return c.Struct(
        *seb_head_struct(log_version, order).subcons,
        "messages" / c.PrefixedArray(i4, message_struct(log_version, order)),
        "events" / c.PrefixedArray(i4, event_struct(order)),
        "backward" / c.PrefixedArray(i4, i4),
        "forward" / c.PrefixedArray(i4, i4),
    )


@cache
def timeline_struct(log_version: int, order: ByteOrder) -> c.Struct:
    """Return the struct of the timeline of one PE."""
    i4 = PRIMITIVES[order].i4
    return c.Struct("sebs" / c.PrefixedArray(i4, seb_struct(log_version, order)))


MISSING: dict[str, Any] = {
    "mpi_op": 0,
    "mpi_size": 0,
    "charm_ep": -1,
    "obj_id": (-1, -1, -1, -1),
    "group": 1,
}
"""The values of fields that a log version lacks, which a conversion to a newer one writes."""
