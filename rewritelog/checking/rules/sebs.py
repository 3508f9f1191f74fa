"""Rules of SEBs: their index, their times and what starts them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from rewritelog.arrays import Flags
from rewritelog.checking.block import CheckedBlock, Violations
from rewritelog.checking.message_flags import names_message
from rewritelog.checking.rules.rule import Rule, Severity
from rewritelog.formats.bgtrace.declaration import Record, format_names
from rewritelog.formats.bgtrace.records import LISTS, Records

EXEC_SLACK_S = 1e-6
"""The tolerance of execTime = endTime − startTime (FORMAT 7, rule 4)."""

_TIMED: dict[str, Record] = {"sebs": "seb", "messages": "message", "events": "event"}
"""The records that have times."""


@Rule(
    "seqno",
    Severity.MISLEAD,
    "The seqno of a SEB is its index in the timeline.",
    "Dependencies and params refer to SEBs by index. Any other seqno means that SEBs are "
    "missing or in another order, or that the bytes do not have the layout of the log "
    "version.",
)
def _seqno(block: CheckedBlock) -> Iterator[Violations]:
    seqno = block.records.sebs["seqno"]
    yield block.where("sebs", seqno != block.records.index, lambda k: f"seqno {seqno[k]}")


@Rule(
    "not-finite",
    Severity.MISLEAD,
    "Times are finite numbers.",
    "Every time that is computed from a non-finite one is not finite either.",
)
def _not_finite(block: CheckedBlock) -> Iterator[Violations]:
    for kind in _TIMED:
        records: Records = getattr(block.records, kind)
        yield block.where(kind, ~_finite(records), partial(_times_not_finite, kind, records))


def _times_not_finite(kind: str, records: Records, row: int) -> str:
    documented = format_names(_TIMED[kind])
    values = {documented[name]: records[name][row] for name in _times_of(records)}
    return ", ".join(f"{name} {value}" for name, value in values.items() if not np.isfinite(value))


@Rule(
    "exec-time",
    Severity.MISLEAD,
    "execTime is endTime − startTime, to 1e-6 s.",
    "The simulator takes execTime as the SEB's duration, other tools take the difference. An "
    "unclosed SEB (endTime before startTime) is not a finding: it is the one in which the "
    "program ended.",
)
def _exec_time(block: CheckedBlock) -> Iterator[Violations]:
    sebs = block.records.sebs
    executed, length = sebs["exec_time"], sebs["end_time"] - sebs["start_time"]
    differs = (length >= 0.0) & (np.abs(executed - length) > EXEC_SLACK_S)
    yield block.where(
        "sebs",
        differs & _finite(sebs),
        lambda k: f"execTime {executed[k]} s, but endTime − startTime is {length[k]} s",
    )


@Rule(
    "two-causes",
    Severity.MISLEAD,
    "A SEB is started by a message or depends on other SEBs, but not both.",
    "The simulator starts a SEB when its message has arrived or when the SEBs before it are "
    "done; with both it runs too early, or twice.",
)
def _two_causes(block: CheckedBlock) -> Iterator[Violations]:
    yield block.where(
        "sebs",
        (block.records.sebs["msg_id"] >= 0) & _depends(block),
        lambda k: f"it is started by {_cause(block, k)}, and depends on SEBs as well",
    )


@Rule(
    "floating",
    Severity.MISLEAD,
    "A SEB with neither starting message nor backward dependency has a recvTime.",
    "Nothing says when a floating SEB begins.",
)
def _floating(block: CheckedBlock) -> Iterator[Violations]:
    sebs = block.records.sebs
    yield block.where(
        "sebs",
        (sebs["msg_id"] < 0) & (sebs["recv_time"] == -1.0) & ~_depends(block),
        lambda _: "neither a starting message nor a backward dependency, and recvTime −1",
    )


@Rule(
    "starting-message",
    Severity.MISLEAD,
    "A SEB names its starting message by PE and number, or both are −1.",
    "A message from a PE that does not exist never arrives, and the SEB never runs.",
)
def _starting_message(block: CheckedBlock) -> Iterator[Violations]:
    source, number = block.records.sebs["src_pe"], block.records.sebs["msg_id"]
    pes = block.summary.total_pes
    yield block.where(
        "sebs",
        ~names_message(block.records, pes) & ((number != -1) | (source != -1)),
        lambda k: f"it is started by {_cause(block, k)}, but the PEs are 0 to {pes - 1}",
    )


@Rule(
    "not-sent",
    Severity.MISLEAD,
    "The message that starts a SEB is among those that its source PE sent.",
    "A message that no PE sends never arrives, and the SEB and everything that depends on it "
    "never run. Sent messages are kept in a table of limited size, so in large logs a missing "
    "message may go unnoticed, but a sent one is never reported. Nothing is checked where "
    "timelines cannot be read to their end, nor in logs of version 0 with several worker "
    "threads per node, where the number may be that of a node.",
)
def _not_sent(block: CheckedBlock) -> Iterator[Violations]:
    if block.never_sent is None:
        return
    source, number = block.records.sebs["src_pe"], block.records.sebs["msg_id"]
    missing = names_message(block.records, block.summary.total_pes)
    missing[missing] = block.never_sent.has(source[missing], number[missing])
    yield block.where(
        "sebs", missing, lambda k: f"it is started by {_cause(block, k)}, which is never sent"
    )


def _finite(records: Records) -> Flags:
    """Return whether all times of each record are finite."""
    finite = np.ones(len(records), dtype=np.bool_)
    for name in _times_of(records):
        finite &= np.isfinite(records[name])
    return finite


def _times_of(records: Records) -> list[str]:
    """Return the names of the fields that are times."""
    return [name for name in records.newest.names or () if records.newest[name].kind == "f"]


def _depends(block: CheckedBlock) -> Flags:
    """Return whether each SEB has backward dependencies."""
    return np.asarray(block.records.counts[:, LISTS.index("backward")] > 0)


def _cause(block: CheckedBlock, seb: int) -> str:
    """Return the message that starts a SEB."""
    sebs = block.records.sebs
    return f"message {sebs['msg_id'][seb]} of PE {sebs['src_pe'][seb]}"
