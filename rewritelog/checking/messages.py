"""Messages for violations that a kernel has found, from the record at their offset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Bytes
from rewritelog.checking.kernels.violations import OTHER, SEB_ITSELF, Violation
from rewritelog.format import Layout, format_names
from rewritelog.logs.summary import Summary
from rewritelog.text import count_text


@dataclass(frozen=True)
class FoundViolation:
    """A violation that a kernel has found, with the location of its record."""

    buffer: Bytes
    layout: Layout
    total: int
    """The number of SEBs of the timeline."""
    at: int
    """The offset in the buffer, −1 for none."""
    item: int
    """See `violations.ITEM`."""
    summary: Summary

    def _record(self, dtype: np.dtype[Any], at: int) -> Any:
        return self.buffer[at : at + dtype.itemsize].view(dtype)[0]

    @property
    def number(self) -> int:
        """The integer at the offset."""
        return int(self._record(self.layout.count, self.at))

    @property
    def message(self) -> Any:
        """The message at the offset."""
        return self._record(self.layout.message, self.at)

    @property
    def event(self) -> Any:
        """The log event at the offset."""
        return self._record(self.layout.event, self.at)

    @property
    def seb(self) -> Any:
        """The SEB at the offset, or the one of the message there."""
        lay, at = self.layout.kernel, self.at
        if self.item >= 0:
            at -= self.item * lay.message_bytes + lay.count_bytes + lay.seb_bytes
        return self._record(self.layout.seb, at)

    @property
    def cause(self) -> str:
        """The message that starts the SEB."""
        return f"message {self.seb['msg_id']} of PE {self.seb['src_pe']}"


def message_of(violation: Violation, found: FoundViolation) -> str:
    """Return the message of a violation."""
    return MESSAGES[violation](found)


def _not_finite(found: FoundViolation) -> str:
    if found.item <= OTHER:
        return f"log event {OTHER - found.item}: {_times_not_finite(found.event, 'event')}"
    if found.item == SEB_ITSELF:
        return _times_not_finite(found.seb, "seb")
    return f"message {found.item}: {_times_not_finite(found.message, 'message')}"


def _times_not_finite(record: Any, kind: Any) -> str:
    times = [name for name in record.dtype.names if record.dtype[name].kind == "f"]
    named = format_names(kind)
    return ", ".join(
        f"{named[name]} {float(record[name])}" for name in times if not np.isfinite(record[name])
    )


def _exec_time(found: FoundViolation) -> str:
    executed, start, end = (float(found.seb[f"{name}_time"]) for name in ("exec", "start", "end"))
    return f"execTime {executed} s, but endTime − startTime is {end - start} s"


def _recv_before_send(found: FoundViolation) -> str:
    received, sent = float(found.message["recv_time"]), float(found.message["send_time"])
    return f"message {found.item}: recvTime {received} s is before sendTime {sent} s"


def _send_outside(found: FoundViolation) -> str:
    sent = float(found.message["send_time"])
    start, end = float(found.seb["start_time"]), float(found.seb["end_time"])
    return f"message {found.item}: sendTime {sent} s, in a SEB from {start} s to {end} s"


def _message_target(found: FoundViolation) -> str:
    nodes = count_text(found.summary.nodes, "node")
    workers = count_text(found.summary.num_wth, "worker thread")
    target = f"dstNode {found.message['dst_node']}, tID {found.message['tid']}"
    return f"message {found.item}: {target}; there are {nodes} with {workers}"


def _dependency_order(found: FoundViolation) -> str:
    if found.item > OTHER:
        return f"backward dependency {found.item}: SEB {found.number}, which is not an earlier one"
    return (
        f"forward dependency {OTHER - found.item}: SEB {found.number}, which is not a later one "
        f"of the timeline's {count_text(found.total, 'SEB')}"
    )


def _param_records(found: FoundViolation) -> str:
    records, brackets = found.item >> 32, found.item & 0xFFFFFFFF
    return f"{count_text(records, 'param record')} and {count_text(brackets, 'bracket')}"


MESSAGES: dict[Violation, Callable[[FoundViolation], str]] = {
    Violation.SEQNO: lambda found: f"seqno {found.seb['seqno']}",
    Violation.NOT_FINITE: _not_finite,
    Violation.EXEC_TIME: _exec_time,
    Violation.TWO_CAUSES: lambda found: (
        f"it is started by {found.cause}, and depends on SEBs as well"
    ),
    Violation.FLOATING: lambda _: (
        "neither a starting message nor a backward dependency, and recvTime −1"
    ),
    Violation.STARTING_MESSAGE: lambda found: (
        f"it is started by {found.cause}, but the PEs are 0 to {found.summary.total_pes - 1}"
    ),
    Violation.NOT_SENT: lambda found: f"it is started by {found.cause}, which is never sent",
    Violation.RECV_BEFORE_SEND: _recv_before_send,
    Violation.MESSAGE_SIZE: lambda found: (
        f"message {found.item}: negative size, {found.message['size']} bytes"
    ),
    Violation.SEND_OUTSIDE: _send_outside,
    Violation.MESSAGE_TARGET: _message_target,
    Violation.MESSAGE_NUMBER: lambda found: (
        f"message {found.item}: its number {found.message['msg_id']} does not exceed the last one"
    ),
    Violation.MARKS: lambda _: "its marks do not pair up inside the SEB",
    Violation.EVENT_OUTSIDE: lambda found: (
        f"log event {found.item}: rTime {float(found.event['r_time'])} s"
    ),
    Violation.DEPENDENCY_ORDER: _dependency_order,
    Violation.DEPENDENCIES_DISAGREE: lambda _: (
        "its forward dependencies do not match the backward dependencies on it"
    ),
    Violation.PARAM_RECORDS: _param_records,
}
"""The function that makes the message of each violation."""
