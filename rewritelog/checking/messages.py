"""What a kernel noted of a broken rule, in words: the record is read again at its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Bytes
from rewritelog.checking.kernels.violations import OTHER, SEB_ITSELF, Violation
from rewritelog.format import Layout
from rewritelog.text import count_text


@dataclass(frozen=True)
class Noted:
    """Where a kernel saw a rule broken, and what the words need."""

    buffer: Bytes
    layout: Layout
    seb: int
    total: int
    """SEBs of the timeline."""
    at: int
    """Byte of the buffer, −1 for none."""
    item: int
    pes: int
    workers: int
    nodes: int

    def record(self, dtype: np.dtype[Any], at: int | None = None) -> Any:
        """Return the record that stands at the place."""
        begin = self.at if at is None else at
        return self.buffer[begin : begin + dtype.itemsize].view(dtype)[0]

    def number(self) -> int:
        """Return the integer that stands at the place."""
        order = "<i4" if self.layout.order == "little" else ">i4"
        return int(self.record(np.dtype(order)))

    def seb_head(self) -> Any:
        """Return the SEB's own fields, given the place of the SEB or of one of its messages."""
        lay = self.layout.kernel
        before = (
            0 if self.item < 0 else self.item * lay.message_bytes + lay.count_bytes + lay.seb_bytes
        )
        return self.record(self.layout.seb, self.at - before)


def say(broken: Violation, noted: Noted) -> str:
    """Return what is wrong, in words."""
    return _WORDS[broken](noted)


def _seqno(noted: Noted) -> str:
    return f"seqno {noted.seb_head()['seqno']}"


def _not_finite(noted: Noted) -> str:
    if noted.item <= OTHER:
        event = noted.record(noted.layout.event)
        return f"event {OTHER - noted.item}: rTime {float(event['r_time'])}"
    record = noted.seb_head() if noted.item == SEB_ITSELF else noted.record(noted.layout.message)
    named = ", ".join(
        f"{_TIMES[name]} {float(record[name])}"
        for name in _TIMES
        if name in (record.dtype.names or ()) and not np.isfinite(record[name])
    )
    return named if noted.item == SEB_ITSELF else f"message {noted.item}: {named}"


_TIMES = {
    "recv_time": "recvTime", "eff_recv_time": "effRecvTime", "start_time": "startTime",
    "exec_time": "execTime", "end_time": "endTime", "send_time": "sendTime",
}  # fmt: skip


def _exec_time(noted: Noted) -> str:
    head = noted.seb_head()
    duration = float(head["end_time"]) - float(head["start_time"])
    return f"execTime {float(head['exec_time'])} s, but endTime − startTime is {duration} s"


def _two_causes(noted: Noted) -> str:
    return f"it is started by {_message(noted)}, and depends on SEBs as well"


def _message(noted: Noted) -> str:
    head = noted.seb_head()
    return f"message {head['msg_id']} of PE {head['src_pe']}"


def _floating(_noted: Noted) -> str:
    return "neither a starting message nor a backward dependency, and recvTime −1"


def _starting_message(noted: Noted) -> str:
    return f"it is started by {_message(noted)}, where PEs are 0 to {noted.pes - 1}"


def _not_sent(noted: Noted) -> str:
    return f"it is started by {_message(noted)}, which is not sent"


def _recv_before_send(noted: Noted) -> str:
    message = noted.record(noted.layout.message)
    return (f"message {noted.item}: recvTime {float(message['recv_time'])} s is before sendTime "
            f"{float(message['send_time'])} s")  # fmt: skip


def _message_size(noted: Noted) -> str:
    return f"message {noted.item}: {noted.record(noted.layout.message)['size']} bytes"


def _send_outside(noted: Noted) -> str:
    sent = float(noted.record(noted.layout.message)["send_time"])
    head = noted.seb_head()
    return (f"message {noted.item}: sendTime {sent} s, in a SEB from {float(head['start_time'])} s "
            f"to {float(head['end_time'])} s")  # fmt: skip


def _message_target(noted: Noted) -> str:
    message = noted.record(noted.layout.message)
    machine = f"{count_text(noted.nodes, 'node')} with {count_text(noted.workers, 'worker thread')}"
    target = f"dstNode {message['dst_node']}, tID {message['tid']}"
    return f"message {noted.item}: {target}; there are {machine}"


def _message_number(noted: Noted) -> str:
    number = noted.record(noted.layout.message)["msg_id"]
    return f"message {noted.item}: its number {number} is not above the last one"


def _marks(_noted: Noted) -> str:
    return "its marks do not pair up inside the SEB"


def _event_outside(noted: Noted) -> str:
    return f"event {noted.item}: rTime {float(noted.record(noted.layout.event)['r_time'])} s"


def _dependency_order(noted: Noted) -> str:
    if noted.item <= OTHER:
        return (f"forward dependency {OTHER - noted.item}: SEB {noted.number()}, which is not a "
                f"later one of the timeline's {count_text(noted.total, 'SEB')}")  # fmt: skip
    return f"backward dependency {noted.item}: SEB {noted.number()}, which is not an earlier one"


def _dependencies_disagree(_noted: Noted) -> str:
    return "its forward dependencies are not the SEBs that name it as a backward one"


def _param_records(noted: Noted) -> str:
    records, brackets = noted.item >> 32, noted.item & 0xFFFFFFFF
    return f"{count_text(records, 'param record')} and {count_text(brackets, 'bracket')}"


_WORDS: dict[Violation, Callable[[Noted], str]] = {
    Violation.SEQNO: _seqno,
    Violation.NOT_FINITE: _not_finite,
    Violation.EXEC_TIME: _exec_time,
    Violation.TWO_CAUSES: _two_causes,
    Violation.FLOATING: _floating,
    Violation.STARTING_MESSAGE: _starting_message,
    Violation.NOT_SENT: _not_sent,
    Violation.RECV_BEFORE_SEND: _recv_before_send,
    Violation.MESSAGE_SIZE: _message_size,
    Violation.SEND_OUTSIDE: _send_outside,
    Violation.MESSAGE_TARGET: _message_target,
    Violation.MESSAGE_NUMBER: _message_number,
    Violation.MARKS: _marks,
    Violation.EVENT_OUTSIDE: _event_outside,
    Violation.DEPENDENCY_ORDER: _dependency_order,
    Violation.DEPENDENCIES_DISAGREE: _dependencies_disagree,
    Violation.PARAM_RECORDS: _param_records,
}
