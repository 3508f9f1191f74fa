"""The declaration of the bgTrace format: the only module with the order and sizes of fields.

Numpy dtypes and the offsets that the compiled core takes are derived from its structs. The kinds of
damage are declared here too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from enum import IntEnum
from functools import cache
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import construct as c
import numpy as np
from msgspec import Struct

from rewritelog.core import core
from rewritelog.errors import DamagedLogError

ByteOrder: TypeAlias = Literal["little", "big"]

LOG_VERSIONS = range(7)
"""All log versions; 4 and 5 have the same layout."""

MAGIC = bytes.fromhex("10eabdf9")

NAME_BYTES = 20


_TYPES = {"i1": "b", "i2": "h", "u2": "H", "i4": "l", "u4": "L", "f8": "d"}
"""The primitive types, and construct's letters for them."""


def _primitives(mark: str) -> SimpleNamespace:
    return SimpleNamespace(**{name: c.FormatField(mark, _TYPES[name]) for name in _TYPES})


PRIMITIVES: dict[ByteOrder, SimpleNamespace] = {"little": _primitives("<"), "big": _primitives(">")}
"""The primitive types in each byte order, as construct fields."""

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


MachineHeader = c.Struct(
    "magic" / c.Bytes(len(MAGIC)),
    "header_version" / c.OneOf(c.Byte, (0, 1)),
    "sizes"
    / c.Struct(
        "char_size" / c.Byte,
        "short_size" / c.Byte,
        "int_size" / c.Byte,
        "long_size" / c.Byte,
        "int128_size" / c.If(c.this._.header_version == 1, c.Byte),
        "integer_format" / c.Byte,
        "float_size" / c.Byte,
        "double_size" / c.Byte,
        "float_format" / c.Byte,
        "bool_size" / c.Byte,
        "pointer_size" / c.Byte,
        "padding" / c.If(c.this._.header_version == 0, c.Default(c.Bytes(1), bytes(1))),
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
        _field("total_pes", i4, "total PEs"),
        "x" / i4,
        "y" / i4,
        "z" / i4,
        _field("num_cth", i4, "communication threads per node"),
        _field("num_wth", i4, "worker threads per node"),
        _field("stack_size", i4, "stack size"),
        _field("timing_method", i4, "timing method"),
        _field("files", i4, "timeline files"),
        _field("log_version", c.Optional(i4), "log version"),
        _field("thread_entry_point", c.Optional(i4), "thread entry point"),
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


Record: TypeAlias = Literal["summary", "seb", "message", "event"]


class Layout(Struct, frozen=True):
    """The layout of one log version in one byte order."""

    log_version: int
    order: ByteOrder
    seb: np.dtype[Any]
    """The fixed part of a SEB, up to the number of its messages."""
    message: np.dtype[Any]
    event: np.dtype[Any]
    """The fixed part of an event: up to `number`, its index or the length of its text."""
    dependency: np.dtype[Any]
    count: np.dtype[Any]
    """The type of counts, indices and dependencies."""
    core: np.ndarray[Any, Any]
    """The struct `layout` of the compiled core."""

    @property
    def least_seb_bytes(self) -> int:
        """The size of a SEB whose lists are empty."""
        return self.seb.itemsize + 4 * COUNT_BYTES


def dtype_of(struct: c.Struct) -> np.dtype[Any]:
    """Return the packed numpy dtype of a construct struct of fixed size.

    Raise `TypeError` naming the field for one without a fixed size.
    """
    dtype = np.dtype([(part.name, _numpy_type(part.name, part.subcon)) for part in struct.subcons])
    if dtype.itemsize != struct.sizeof():
        raise TypeError(f"numpy packs {struct} into {dtype.itemsize} bytes, not {struct.sizeof()}")
    return dtype


def _numpy_type(name: str, kind: Any) -> Any:
    if isinstance(kind, c.Array):
        return _numpy_type(name, kind.subcon), (kind.count,)
    if isinstance(kind, c.FormatField):
        order, letter = kind.fmtstr
        return order + next(name for name, known in _TYPES.items() if known == letter)
    if isinstance(kind, c.Bytes):
        return f"V{kind.length}"
    raise TypeError(f"field {name} has no fixed size: {kind}")


def number_type(order: ByteOrder, name: str) -> np.dtype[Any]:
    """Return the numpy type of a primitive type, as in `number_type("big", "u4")`."""
    return np.dtype(str(_numpy_type(name, getattr(PRIMITIVES[order], name))))


@cache
def format_names(record: Record) -> dict[str, str]:
    """Return the names of a record's fields in the documentation of the format."""
    newest = LOG_VERSIONS[-1]
    structs = {
        "summary": summary_struct("little"),
        "seb": seb_head_struct(newest, "little"),
        "message": message_struct(newest, "little"),
        "event": event_struct("little"),
    }
    return {part.name: part.docs or part.name for part in structs[record].subcons}


def is_time(field: str) -> bool:
    """Return whether a field is a time in seconds, as the names of all times say."""
    return field.endswith("_time")


def newest_layout() -> Layout:
    """Return the layout of the newest log version in the byte order of this machine."""
    return layout(LOG_VERSIONS[-1], sys.byteorder)


@cache
def layout(log_version: int, order: ByteOrder) -> Layout:
    """Return the layout of a log version in a byte order, derived from the declaration."""
    seb = dtype_of(seb_head_struct(log_version, order))
    message = dtype_of(message_struct(log_version, order))
    i4 = PRIMITIVES[order].i4
    event = dtype_of(c.Struct(*event_struct(order).subcons[:2], "number" / i4))
    dependency = dtype_of(c.Struct("other" / i4))
    count = number_type(order, "i4")
    offsets = {
        f"{record}_{name}": int(offset)
        for record, dtype in (("seb", seb), ("message", message), ("event", event))
        for name, (_, offset, *_) in (dtype.fields or {}).items()
    }
    offsets |= {
        "swap": not event["r_time"].isnative,
        "seb_bytes": seb.itemsize,
        "name_bytes": NAME_BYTES,
        "count_bytes": COUNT_BYTES,
        "message_bytes": message.itemsize,
        "event_bytes": event.itemsize - COUNT_BYTES,
    }
    struct = core.structs["layout"]
    values = np.array(tuple(offsets[name] for name in struct.names or ()), dtype=struct)
    return Layout(log_version, order, seb, message, event, dependency, count, values)


class FaultKind(NamedTuple):
    """A kind of damage: the field, and a message in which `{}` is the value of the field."""

    field: str
    problem: str
    truncated: bool = False
    """Whether the fault may only mean that the buffer ends within a SEB."""
    rule: str = "count"
    """The rule of `check` that is violated."""


_MESSAGES, _EVENTS, _TEXT = "number of messages", "number of log events", "log event text length"
_BACKWARD, _FORWARD = "number of backward dependencies", "number of forward dependencies"

FAULTS: dict[int, FaultKind] = {
    core.SEB_TRUNCATED: FaultKind("ep", "the SEB is truncated", truncated=True, rule="cut-off"),
    core.MESSAGE_COUNT_NEGATIVE: FaultKind(_MESSAGES, "negative message count {}"),
    core.MESSAGES_TRUNCATED: FaultKind(_MESSAGES, "message count {} does not fit", truncated=True),
    core.EVENT_COUNT_NEGATIVE: FaultKind(_EVENTS, "negative log event count {}"),
    core.EVENTS_TRUNCATED: FaultKind(_EVENTS, "log event count {} does not fit", truncated=True),
    core.EVENT_TYPE: FaultKind(
        "log event type", "invalid log event type {}; it is 1, 2 or 3", rule="event-type"
    ),
    core.TEXT_NEGATIVE: FaultKind(_TEXT, "negative text length {}"),
    core.TEXT_TRUNCATED: FaultKind(_TEXT, "a text of {} bytes does not fit", truncated=True),
    core.BACKWARD_NEGATIVE: FaultKind(_BACKWARD, "negative count {} of backward dependencies"),
    core.BACKWARD_TRUNCATED: FaultKind(
        _BACKWARD, "count {} of backward dependencies does not fit", truncated=True
    ),
    core.FORWARD_NEGATIVE: FaultKind(_FORWARD, "negative count {} of forward dependencies"),
    core.FORWARD_TRUNCATED: FaultKind(
        _FORWARD, "count {} of forward dependencies does not fit", truncated=True
    ),
    core.SEB_COUNT_NEGATIVE: FaultKind("count", "negative SEB count {}"),
    core.SEB_COUNT_TOO_LARGE: FaultKind("count", "SEB count {} does not fit in the timeline"),
    core.BYTES_LEFT_OVER: FaultKind(
        "count", "bytes left over after the last SEB: {}", rule="left-over"
    ),
    core.TIME_NOT_FINITE: FaultKind("startTime, endTime", "the time is not a finite number"),
    core.SEND_NOT_FINITE: FaultKind("sendTime", "the time is not a finite number"),
    core.DURATION_OVERFLOW: FaultKind("endTime", "the new duration is too large for a number"),
    core.SEND_OVERFLOW: FaultKind("sendTime", "the new time is too large for a number"),
    core.RECV_OVERFLOW: FaultKind("recvTime", "the new time is too large for a number"),
    core.EVENT_OVERFLOW: FaultKind("log event rTime", "the new time is too large for a number"),
    core.SEQNO_WRONG: FaultKind(
        "seqno", "{} is not the SEB's index: SEBs are missing, or this is another log version"
    ),
}
"""The kind of each fault code of the compiled core."""


class FaultHandler(Protocol):
    """A function that takes the faults of a reader, which continues if the function returns."""

    def __call__(self, faults: Iterable[DamagedLogError], count: int = 1) -> None:
        """Take `count` faults of the same rule; errors are created during the iteration."""


def raise_first(faults: Iterable[DamagedLogError], count: int = 1) -> None:  # noqa: ARG001
    """Raise the first fault."""
    for fault in faults:
        raise fault
