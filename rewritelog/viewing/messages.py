"""The messages of a figure, as lines from the sending SEB to the receiving PE."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from rewritelog.arrays import Floats, Ints, Table
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.records import records_of
from rewritelog.formats.bgtrace.tables import MESSAGE_ROW, message_rows
from rewritelog.formats.traces import AnyTraces
from rewritelog.replaying.simulate import ReplayedRun

MOST_MESSAGES = 2_000
"""At most this many messages, a random sample by seed, are drawn."""


@dataclass(frozen=True)
class MessageLines:
    """Lines between rows of a figure, one for each PE on which a drawn message starts a SEB."""

    from_row: Ints
    to_row: Ints
    sent_s: Floats
    arrived_s: Floats
    messages: int
    """Messages in the window, drawn or not."""
    drawn: int
    """Messages chosen to be drawn."""


def message_lines(
    logs: AnyTraces, outcome: ReplayedRun | None, rows: Ints, window: tuple[float, float], seed: int
) -> MessageLines:
    """Return the lines of the messages sent in a time window, of the log or as in a replay.

    `rows` are the rows of the PEs, −1 for those that are not drawn. Reads the log twice: for the
    messages, and for the SEBs that the chosen messages start.
    """
    if outcome is not None:
        return _replayed_lines(outcome, rows, window, seed)
    draw, count = np.random.default_rng(seed), 0
    chosen, numbers = np.empty(0, MESSAGE_ROW), np.empty(0)
    for more in logs.map(partial(_sent, rows, window)):
        count += len(more)
        numbers = np.append(numbers, draw.random(len(more)))
        first = np.argsort(numbers, kind="stable")[:MOST_MESSAGES]
        chosen, numbers = np.append(chosen, more)[first], numbers[first]
    keys = _keys(chosen["pe"], chosen["msg_id"])
    order = np.argsort(keys, kind="stable")
    blocks = list(logs.map(partial(_started, keys[order], rows)))
    place, to_row = (np.concatenate(columns) for columns in zip(*blocks, strict=True))
    message = chosen[order[place]]
    times = message["send_time"], message["recv_time"]
    return MessageLines(rows[message["pe"]], to_row, *times, count, len(chosen))


def _sent(rows: Ints, window: tuple[float, float], parts: Iterator[LoadedBlock], /) -> Table:
    """Return the messages of a block sent in the time window by PEs that are drawn."""
    messages = []
    for part in parts:
        block = records_of(part)
        sent, in_rows = block.messages["send_time"], rows[block.pe[block.messages.seb]] >= 0
        inside = (sent >= window[0]) & (sent <= window[1])
        messages.append(message_rows(block)[inside & in_rows])
    return np.concatenate(messages)


def _started(keys: Ints, rows: Ints, parts: Iterator[LoadedBlock], /) -> tuple[Ints, Ints]:
    """Return the place of its message among keys, and the row, of each SEB that one starts."""
    places, to_rows = [], []
    for part in parts:
        block = records_of(part)
        own = _keys(block.sebs["src_pe"], block.sebs["msg_id"])
        place, row = np.searchsorted(keys, own), rows[block.pe]
        hit = (row >= 0) & (place < len(keys))
        hit[hit] = keys[place[hit]] == own[hit]
        places.append(place[hit])
        to_rows.append(row[hit])
    return np.concatenate(places), np.concatenate(to_rows)


def _keys(pe: Ints, number: Ints) -> Ints:
    """Return the senders and numbers of messages combined into one key each."""
    return pe.astype(np.int64) << 32 | (number.astype(np.int64) & 0xFFFFFFFF)


def _replayed_lines(
    outcome: ReplayedRun, rows: Ints, window: tuple[float, float], seed: int
) -> MessageLines:
    sebs, times = outcome.workload.sebs, outcome.times
    message = sebs.starter
    to = np.flatnonzero((message >= 0) & ~np.isnan(times.start_s))
    sender = np.searchsorted(sebs.first_message, message[to], side="right") - 1
    sent_s = outcome.sent_s(sender, message[to])
    from_row, to_row = rows[sebs.pe[sender]], rows[sebs.pe[to]]
    inside = (sent_s >= window[0]) & (sent_s <= window[1]) & (from_row >= 0) & (to_row >= 0)
    sent = np.unique(message[to[inside]])
    shown = sent
    if len(sent) > MOST_MESSAGES:
        shown = np.random.default_rng(seed).choice(sent, MOST_MESSAGES, replace=False)
    mine = np.flatnonzero(inside & np.isin(message[to], shown))
    arrived_s = times.ready_s[to[mine]]
    return MessageLines(
        from_row[mine], to_row[mine], sent_s[mine], arrived_s, len(sent), len(shown)
    )
