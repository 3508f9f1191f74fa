"""Rules of the messages that SEBs send."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rewritelog.checking.block import CheckedBlock, Violations
from rewritelog.checking.rules.rule import Rule, Severity
from rewritelog.text import count_text


@Rule(
    "recv-before-send",
    Severity.STOP,
    "No message arrives before it is sent.",
    "The log library stops at such a message, by an assertion that default builds include.",
)
def _recv_before_send(block: CheckedBlock) -> Iterator[Violations]:
    sent, received = block.records.messages["send_time"], block.records.messages["recv_time"]
    yield block.where(
        "messages",
        received < sent,
        lambda k: f"recvTime {received[k]} s is before sendTime {sent[k]} s",
    )


@Rule(
    "message-size",
    Severity.STOP,
    "The size of a message is not negative.",
    "The log library stops at such a message.",
)
def _message_size(block: CheckedBlock) -> Iterator[Violations]:
    size = block.records.messages["size"]
    yield block.where("messages", size < 0, lambda k: f"negative size, {size[k]} bytes")


@Rule(
    "send-outside",
    Severity.MISLEAD,
    "A message is sent between its SEB's startTime and endTime.",
    "The simulator sends it at its recorded offset from the SEB's start, and so before or "
    "after the SEB runs. In an unclosed SEB it is not a finding.",
)
def _send_outside(block: CheckedBlock) -> Iterator[Violations]:
    sent, sebs = block.records.messages["send_time"], block.records.sebs
    seb = block.records.messages.seb
    start, end = sebs["start_time"][seb], sebs["end_time"][seb]
    yield block.where(
        "messages",
        (end >= start) & ((sent < start) | (sent > end)),
        lambda k: f"sendTime {sent[k]} s, in a SEB from {start[k]} s to {end[k]} s",
    )


@Rule(
    "message-target",
    Severity.STOP,
    "The node and the worker thread that a message is sent to exist, or dstNode is −1 (every "
    "node), −2 (a multicast) or −100 − N (all but node N).",
    "The simulator cannot deliver the message.",
)
def _message_target(block: CheckedBlock) -> Iterator[Violations]:
    node, worker = block.records.messages["dst_node"], block.records.messages["tid"]
    nodes, workers = block.summary.nodes, block.summary.num_wth
    there = (node >= -1) & (node < nodes) | (node <= -100) & (node > -100 - nodes)
    exists = (node == -2) | there & (worker >= -1) & (worker < workers)

    def says(message: int) -> str:
        there = f"there are {count_text(nodes, 'node')} with {count_text(workers, 'worker thread')}"
        return f"dstNode {node[message]}, tID {worker[message]}; {there}"

    yield block.where("messages", ~exists, says)


@Rule(
    "message-number",
    Severity.ODD,
    "The numbers of the messages that a PE sends increase.",
    "A SEB refers to its starting message by this number; a duplicated number is ambiguous.",
)
def _message_number(block: CheckedBlock) -> Iterator[Violations]:
    number = block.records.messages["msg_id"]
    last = np.concatenate([[-1], number])
    begun = block.records.loaded.pieces.firsts > 0
    timelines = block.records.first("messages")[block.begins]
    last[timelines] = np.where(begun, block.state.get("message-number", -1), -1)
    block.state["message-number"] = number[-1] if len(number) else last[0]
    yield block.where(
        "messages",
        number <= last[:-1],
        lambda k: f"its number {number[k]} does not exceed the last one",
    )
