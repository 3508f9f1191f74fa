"""The kinds of damage in logs, and handlers of faults: most raise the first, `check` goes on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from rewritelog.core import core
from rewritelog.errors import DamagedLogError


class FaultKind(NamedTuple):
    """A kind of damage: the field, and a message in which `{}` is the value of the field."""

    field: str
    problem: str
    truncated: bool = False
    """Whether the fault may only mean that the buffer ends within a SEB."""
    rule: str = "count"
    """The rule of `check` that is violated."""


_MESSAGES, _EVENTS, _TEXT = "number of messages", "number of events", "event text length"
_BACKWARD, _FORWARD = "number of backward dependencies", "number of forward dependencies"

FAULTS: dict[int, FaultKind] = {
    core.SEB_TRUNCATED: FaultKind("ep", "the SEB is truncated", truncated=True, rule="cut-off"),
    core.MESSAGE_COUNT_NEGATIVE: FaultKind(_MESSAGES, "negative message count {}"),
    core.MESSAGES_TRUNCATED: FaultKind(_MESSAGES, "{} messages do not fit", truncated=True),
    core.EVENT_COUNT_NEGATIVE: FaultKind(_EVENTS, "negative event count {}"),
    core.EVENTS_TRUNCATED: FaultKind(_EVENTS, "{} events do not fit", truncated=True),
    core.EVENT_TYPE: FaultKind(
        "event type", "invalid event type {}; it is 1, 2 or 3", rule="event-type"
    ),
    core.TEXT_NEGATIVE: FaultKind(_TEXT, "negative text length {}"),
    core.TEXT_TRUNCATED: FaultKind(_TEXT, "a text of {} bytes does not fit", truncated=True),
    core.BACKWARD_NEGATIVE: FaultKind(_BACKWARD, "negative count {} of backward dependencies"),
    core.BACKWARD_TRUNCATED: FaultKind(
        _BACKWARD, "{} backward dependencies do not fit", truncated=True
    ),
    core.FORWARD_NEGATIVE: FaultKind(_FORWARD, "negative count {} of forward dependencies"),
    core.FORWARD_TRUNCATED: FaultKind(
        _FORWARD, "{} forward dependencies do not fit", truncated=True
    ),
    core.SEB_COUNT_NEGATIVE: FaultKind("count", "negative SEB count {}"),
    core.SEB_COUNT_TOO_LARGE: FaultKind("count", "{} SEBs do not fit in the timeline"),
    core.BYTES_LEFT_OVER: FaultKind(
        "count", "{} bytes left over after the last SEB", rule="left-over"
    ),
    core.TIME_NOT_FINITE: FaultKind("startTime, endTime", "the time is not a finite number"),
    core.SEND_NOT_FINITE: FaultKind("sendTime", "the time is not a finite number"),
    core.DURATION_OVERFLOW: FaultKind("endTime", "the new duration is too large for a number"),
    core.SEND_OVERFLOW: FaultKind("sendTime", "the new time is too large for a number"),
    core.RECV_OVERFLOW: FaultKind("recvTime", "the new time is too large for a number"),
    core.EVENT_OVERFLOW: FaultKind("event rTime", "the new time is too large for a number"),
    core.SEQNO_WRONG: FaultKind(
        "seqno", "{} is not the SEB's index: SEBs are missing, or this is another log version"
    ),
    core.LOG_CHANGED: FaultKind(
        _MESSAGES, "{} messages now, not as many as when it was read first"
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
