"""The fields that are compared: their names in the format, kinds, and values as text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from rewritelog.arrays import Bytes
from rewritelog.diffing.kernels.interface import Field
from rewritelog.format import Layout, Record, format_names, layout
from rewritelog.format.declaration import COUNT_BYTES, LOG_VERSIONS, NAME_BYTES
from rewritelog.text import printable

ABSENT = "absent"
_TEXT_SHOWN = 60
_ENTRIES_SHOWN = 5


class FieldKind(Enum):
    """The significance of a difference."""

    TIME = "time"
    """Times, which a rewrite changes."""
    CONTENT = "content"
    """Content, which a rewrite must not change."""
    MEANINGLESS = "meaningless"
    """Bytes that no reader interprets."""


@dataclass(frozen=True)
class About:
    """The description of a field."""

    label: str
    of: str
    """The records with the field: `SEBs`, `messages` or `events`."""
    number: str = ""
    """Its numpy type without the byte order; empty if it is not a number."""
    kind: FieldKind = FieldKind.CONTENT


_OTHERS = {
    Field.MESSAGES: About("number of messages", "SEBs", "i4"),
    Field.EVENTS: About("number of events", "SEBs", "i4"),
    Field.BACKWARD: About("backward dependencies", "SEBs"),
    Field.FORWARD: About("forward dependencies", "SEBs"),
    Field.EVENT_TIME: About("event rTime", "events", "f8", FieldKind.TIME),
    Field.EVENT_INDEX: About("event index", "events", "i4"),
    Field.EVENT_TEXT: About("event text", "events"),
    Field.NAME_REST: About("bytes after the name's NUL", "SEBs", "", FieldKind.MEANINGLESS),
    Field.MPI_SIZE_IDLE: About(
        "mpiSize without an MPI operation", "SEBs", "u4", FieldKind.MEANINGLESS
    ),
}
"""Fields outside of the fixed part of a record, or special cases of others."""


_PREFIXED: tuple[Record, ...] = ("message", "event")
"""The records whose fields have the record as a prefix of their names."""


def _about(field: Field) -> About:
    """Return the description of a field, derived from the declaration of the format."""
    if field in _OTHERS:
        return _OTHERS[field]
    record: Record = "seb"
    name = field.name.lower()
    for other in _PREFIXED:
        if name.startswith(f"{other}_"):
            record, name = other, name.removeprefix(f"{other}_")
    newest = layout(LOG_VERSIONS[-1], "little")
    number = getattr(newest, record)[name].base
    label = format_names(record)[name]
    return About(
        label if record == "seb" else f"{record} {label}",
        f"{record}s" if record != "seb" else "SEBs",
        "" if number.kind == "V" else number.str[1:],
        FieldKind.TIME if number.kind == "f" else FieldKind.CONTENT,
    )


ABOUT = {field: _about(field) for field in Field}
"""The description of each field, in the order of the format."""


def value_text(buf: Bytes, lay: Layout, field: Field, at: int) -> str:
    """Return the value of a field at an offset as text; a negative offset means absent."""
    if at < 0:
        return ABSENT
    if ABOUT[field].number:
        return _number_text(buf, at, np.dtype(ABOUT[field].number).newbyteorder(lay.order))
    if field in (Field.NAME, Field.NAME_REST):
        raw = buf[at : at + NAME_BYTES].tobytes()
        return repr(printable(raw.partition(b"\0")[0])) if field is Field.NAME else raw.hex(" ")
    after = at + COUNT_BYTES
    count = int(buf[at:after].view(lay.count)[0])
    if field is Field.EVENT_TEXT:
        text = buf[after : after + min(count, _TEXT_SHOWN)].tobytes()
        return repr(printable(text.rstrip(b"\0")))
    shown = buf[after : after + COUNT_BYTES * min(count, _ENTRIES_SHOWN)]
    entries = shown.view(lay.count).tolist()
    more = ["…"] if count > _ENTRIES_SHOWN else []
    return f"[{', '.join([*map(str, entries), *more])}]"


def _number_text(buf: Bytes, at: int, kind: np.dtype[Any]) -> str:
    value = buf[at : at + kind.itemsize].view(kind)[0].item()
    return f"{value:.17g}" if isinstance(value, float) else str(value)
