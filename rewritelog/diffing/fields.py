"""The fields that are compared, derived from the declaration of the format, and their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from rewritelog.arrays import Flags, Ints, Table
from rewritelog.formats.bgtrace.declaration import LOG_VERSIONS, Record, format_names, layout
from rewritelog.formats.bgtrace.records import Records, names_of
from rewritelog.formats.traces import NUMBERS
from rewritelog.text import printable

ABSENT = "absent"


class FieldKind(Enum):
    """The significance of a difference."""

    TIME = "time"
    """Times, which a rewrite changes."""
    CONTENT = "content"
    """Content, which a rewrite must not change."""
    MEANINGLESS = "meaningless"
    """Bytes that no reader interprets."""


@dataclass(frozen=True)
class Field:
    """A field; a list or text counts once per SEB or log event."""

    label: str
    of: str = "SEBs"
    """The records with the field: `SEBs`, `messages` or `log events`."""
    kind: FieldKind = FieldKind.CONTENT


def _declared(record: Record, prefix: str = "", of: str = "SEBs") -> dict[str, Field]:
    """Return the fields of a record's fixed part by name, in the order of the format."""
    newest = getattr(layout(LOG_VERSIONS[-1], "little"), record)
    labels = format_names(record)
    return {
        name: Field(
            prefix + labels[name],
            of,
            FieldKind.TIME if newest[name].base.kind == "f" else FieldKind.CONTENT,
        )
        for name in newest.names
    }


SEB_FIELDS = _declared("seb")
LIST_LENGTHS = {
    "messages": Field("number of messages"),
    "events": Field("number of log events"),
}
DEPENDENCIES = {
    "backward": Field("backward dependencies"),
    "forward": Field("forward dependencies"),
}
MESSAGE_FIELDS = _declared("message", "message ", "messages")
EVENT_FIELDS = _declared("event", "log event ", "log events")
EVENT_INDEX = Field("log event index", "log events")
EVENT_TEXT = Field("log event text", "log events")
NAME_REST = Field("bytes after the name's NUL", kind=FieldKind.MEANINGLESS)
IDLE_MPI_SIZE = Field("mpiSize without an MPI operation", kind=FieldKind.MEANINGLESS)

NODE_FIELDS = {
    name: Field(name, kind=FieldKind.TIME if name in ("duration", "start") else FieldKind.CONTENT)
    for name in (
        "only in A", "only in B", "place among the nodes", "duration", "start", "type", "name",
        "dependencies", "CPU or device", "thread or stream", *NUMBERS,
    )
}  # fmt: skip
"""The fields of traces' nodes."""

FIELDS = dict.fromkeys(
    (
        *SEB_FIELDS.values(),
        *LIST_LENGTHS.values(),
        *DEPENDENCIES.values(),
        *MESSAGE_FIELDS.values(),
        *EVENT_FIELDS.values(),
        EVENT_INDEX,
        EVENT_TEXT,
        NAME_REST,
        IDLE_MPI_SIZE,
        *NODE_FIELDS.values(),
    )
)
"""All fields, in the order of reports."""


def _names_agree(a: Records, b: Records, rows: Ints) -> Flags:
    old, new = (names_of(side.raw("name")[rows]) for side in (a, b))
    return np.asarray(old == new)


def _no_operation(a: Records, b: Records, rows: Ints) -> Flags:
    return np.asarray((a["mpi_op"][rows] == 0) & (b["mpi_op"][rows] == 0))


MEANINGLESS: dict[str, tuple[Callable[[Records, Records, Ints], Flags], Field]] = {
    "name": (_names_agree, NAME_REST),
    "mpi_size": (_no_operation, IDLE_MPI_SIZE),
}
"""Where a difference of a field has no meaning, and what it counts as if both sides have it."""


def has(side: Records, name: str) -> bool:
    """Return whether the log version of a side has a field."""
    return name in (side.dtype.names or ())


def differing(a: Records, b: Records, name: str) -> Flags:
    """Return in which records the bits of a field differ; a field absent in one has its default.

    Shape (records,), or (records, elements) for an array field or a name.
    """
    old, new = (_bits(side.raw(name) if _is_name(side, name) else side[name]) for side in (a, b))
    return np.asarray(old != new)


def _is_name(side: Records, name: str) -> bool:
    return side.newest[name].base.kind == "V" and has(side, name)


def _bits(column: Table) -> Table:
    """Return a column as unsigned integers, so that equal NaNs are equal and −0 is not 0."""
    if column.dtype.kind == "V":
        return column.view(np.uint8).reshape(len(column), column.itemsize)
    return column.view(f"u{column.itemsize}")


def field_texts(a: Records, b: Records, field: Field, name: str, row: int) -> tuple[str, str]:
    """Return both values of a record's field; of an array, the first elements that differ."""
    element = int(np.argmax(np.atleast_1d(differing(a, b, name)[row])))
    return _field_text(a, field, name, row, element), _field_text(b, field, name, row, element)


def _field_text(side: Records, field: Field, name: str, row: int, element: int) -> str:
    if not has(side, name):
        return ABSENT
    value = side.raw(name)[row]
    if value.dtype.kind == "V":
        raw = value.tobytes()
        return raw.hex(" ") if field is NAME_REST else repr(printable(raw.partition(b"\0")[0]))
    if value.ndim:
        if element >= len(value):
            return ABSENT
        value = value[element]
    return f"{value:.17g}" if value.dtype.kind == "f" else str(value)
