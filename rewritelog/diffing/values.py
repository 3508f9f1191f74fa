"""The fields that are compared: what FORMAT calls them, their kind, and their values in words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from rewritelog.arrays import Bytes
from rewritelog.diffing.kernels.interface import Field
from rewritelog.format import Layout
from rewritelog.format.declaration import NAME_BYTES
from rewritelog.text import printable

ABSENT = "absent"
_TEXT_SHOWN = 60
_ENTRIES_SHOWN = 5


class Kind(Enum):
    """What it means that a field differs."""

    TIME = "time"
    """A rewrite changes these."""
    CONTENT = "content"
    """Nothing that rewrites durations may change these."""
    MEANINGLESS = "meaningless"
    """Bytes that no reader looks at."""


@dataclass(frozen=True)
class About:
    """What is known of a field."""

    label: str
    of: str
    """What has the field: `SEBs`, `messages` or `events`."""
    number: str
    """Its numpy type without the byte order; empty where it is no number."""
    kind: Kind = Kind.CONTENT


def _seb(label: str, number: str = "i4", kind: Kind = Kind.CONTENT) -> About:
    return About(label, "SEBs", number, kind)


def _message(label: str, number: str = "i4", kind: Kind = Kind.CONTENT) -> About:
    return About(label, "messages", number, kind)


def _event(label: str, number: str, kind: Kind = Kind.CONTENT) -> About:
    return About(label, "events", number, kind)


ABOUT = {
    Field.EP: _seb("ep"),
    Field.SEQNO: _seb("seqno"),
    Field.SRC_PE: _seb("msgId source PE"),
    Field.MSG_ID: _seb("msgId number"),
    Field.MPI_OP: _seb("mpiOp", "u2"),
    Field.MPI_SIZE: _seb("mpiSize", "u4"),
    Field.CHARM_EP: _seb("charm_ep", "i2"),
    Field.RECV_TIME: _seb("recvTime", "f8", Kind.TIME),
    Field.EFF_RECV_TIME: _seb("effRecvTime", "f8", Kind.TIME),
    Field.START_TIME: _seb("startTime", "f8", Kind.TIME),
    Field.EXEC_TIME: _seb("execTime", "f8", Kind.TIME),
    Field.END_TIME: _seb("endTime", "f8", Kind.TIME),
    Field.FLAG: _seb("flag", "i1"),
    Field.NAME: _seb("name", ""),
    Field.OBJ_ID: _seb("objId"),
    Field.MESSAGES: _seb("number of messages"),
    Field.EVENTS: _seb("number of events"),
    Field.BACKWARD: _seb("backward dependencies", ""),
    Field.FORWARD: _seb("forward dependencies", ""),
    Field.MESSAGE_MSG_ID: _message("message msgID"),
    Field.MESSAGE_DST_NODE: _message("message dstNode"),
    Field.MESSAGE_SEND_TIME: _message("message sendTime", "f8", Kind.TIME),
    Field.MESSAGE_RECV_TIME: _message("message recvTime", "f8", Kind.TIME),
    Field.MESSAGE_TID: _message("message tID", "i2"),
    Field.MESSAGE_SIZE: _message("message size"),
    Field.MESSAGE_GROUP: _message("message group"),
    Field.EVENT_TYPE: _event("event type", "i1"),
    Field.EVENT_TIME: _event("event rTime", "f8", Kind.TIME),
    Field.EVENT_INDEX: _event("event index", "i4"),
    Field.EVENT_TEXT: _event("event text", ""),
    Field.NAME_REST: _seb("bytes after the name's NUL", "", Kind.MEANINGLESS),
    Field.MPI_SIZE_IDLE: _seb("mpiSize without an MPI operation", "u4", Kind.MEANINGLESS),
}
"""In the order of a SEB."""


def value_text(buf: Bytes, layout: Layout, field: Field, at: int) -> str:
    """Return the value of a field that stands at a byte, for reading; below 0 it is absent."""
    if at < 0:
        return ABSENT
    order = "<" if layout.order == "little" else ">"
    if ABOUT[field].number:
        return _number(buf, at, order + ABOUT[field].number)
    if field in (Field.NAME, Field.NAME_REST):
        raw = buf[at : at + NAME_BYTES].tobytes()
        return repr(printable(raw.partition(b"\0")[0])) if field is Field.NAME else raw.hex(" ")
    count = int(buf[at : at + 4].view(order + "i4")[0])
    if field is Field.EVENT_TEXT:
        text = buf[at + 4 : at + 4 + min(count, _TEXT_SHOWN)].tobytes()
        return repr(printable(text.rstrip(b"\0")))
    entries = buf[at + 4 : at + 4 + 4 * min(count, _ENTRIES_SHOWN)].view(order + "i4").tolist()
    more = ["…"] if count > _ENTRIES_SHOWN else []
    return f"[{', '.join([*map(str, entries), *more])}]"


def _number(buf: Bytes, at: int, dtype: str) -> str:
    kind = np.dtype(dtype)
    value = buf[at : at + kind.itemsize].view(kind)[0].item()
    return f"{value:.17g}" if isinstance(value, float) else str(value)
