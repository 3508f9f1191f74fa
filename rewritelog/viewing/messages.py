"""The messages of a figure, as lines from the sending SEB to the receiving PE."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats, Ints, Table
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.records import BlockRecords, records_of
from rewritelog.formats.bgtrace.tables import MESSAGE_ROW, message_rows
from rewritelog.replaying.simulate import ReplayedRun
from rewritelog.viewing.timeline import Run, TimelineView

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


def message_lines(run: Run, view: TimelineView, seed: int = 1) -> MessageLines:
    """Return the lines of the messages sent within the view's time window and rows.

    Reads the log twice: for the messages, and for the SEBs that the chosen messages start.
    """
    if run.outcome is not None:
        return _replayed_lines(run.outcome, view, seed)
    logs = run.logs
    rows = np.full(len(logs.pes), -1, dtype=np.int64)
    rows[list(view.pes)] = np.arange(len(view.pes)) // view.group
    chosen, messages = _chosen(logs, view, rows, seed)
    keys = np.sort(_keys(chosen["pe"], chosen["msg_id"]))
    order = np.argsort(_keys(chosen["pe"], chosen["msg_id"]), kind="stable")
    from_row, to_row, sent, arrived = [], [], [], []
    for places, pe in logs.map(_Receivers(rows, keys)):
        message = chosen[order[places]]
        from_row.append(rows[message["pe"]])
        to_row.append(rows[pe])
        sent.append(message["send_time"])
        arrived.append(message["recv_time"])
    return MessageLines(
        np.concatenate([np.empty(0, np.int64), *from_row]),
        np.concatenate([np.empty(0, np.int64), *to_row]),
        np.concatenate([np.empty(0), *sent]),
        np.concatenate([np.empty(0), *arrived]),
        messages,
        len(chosen),
    )


def _replayed_lines(outcome: ReplayedRun, view: TimelineView, seed: int) -> MessageLines:
    """Return the lines of messages as they were sent in a replay."""
    sebs, times = outcome.workload.sebs, outcome.times
    rows = np.full(outcome.workload.pes, -1, dtype=np.int64)
    rows[list(view.pes)] = np.arange(len(view.pes)) // view.group
    message = sebs.starter
    to = np.flatnonzero((message >= 0) & ~np.isnan(times.start_s))
    sender = np.searchsorted(sebs.first_message, message[to], side="right") - 1
    sent_s = outcome.sent_s(sender, message[to])
    inside = (sent_s >= view.from_s) & (sent_s <= view.to_s)
    inside &= (rows[sebs.pe[sender]] >= 0) & (rows[sebs.pe[to]] >= 0)
    sent = np.unique(message[to[inside]])
    drawn = sent
    if len(sent) > MOST_MESSAGES:
        drawn = np.random.default_rng(seed).choice(sent, MOST_MESSAGES, replace=False)
    chosen = np.flatnonzero(inside & np.isin(message[to], drawn))
    to, sender = to[chosen], sender[chosen]
    return MessageLines(
        rows[sebs.pe[sender]],
        rows[sebs.pe[to]],
        sent_s[chosen],
        times.ready_s[to],
        len(sent),
        len(drawn),
    )


@dataclass(frozen=True)
class _Receivers:
    """Finds the SEBs of a block that chosen messages start."""

    rows: Ints
    """The row of each PE, −1 for PEs that are not drawn."""
    keys: Ints
    """The keys of the chosen messages, in ascending order."""

    def __call__(self, parts: Iterator[LoadedBlock], /) -> tuple[Ints, Ints]:
        """Return the place of the key, and the PE, of each such SEB."""
        places = [self._of_part(records_of(loaded)) for loaded in parts]
        place, pe = (np.concatenate(columns) for columns in zip(*places, strict=True))
        return place, pe

    def _of_part(self, block: BlockRecords) -> tuple[Ints, Ints]:
        keys = _keys(block.sebs["src_pe"], block.sebs["msg_id"])
        place = np.searchsorted(self.keys, keys)
        hit = (self.rows[block.pe] >= 0) & (place < len(self.keys))
        hit[hit] = self.keys[place[hit]] == keys[hit]
        return place[hit], block.pe[hit]


@dataclass(frozen=True)
class _Window:
    """Finds the messages of a block that are sent within a time window, by PEs that are drawn."""

    from_s: float
    to_s: float
    rows: Ints

    def __call__(self, parts: Iterator[LoadedBlock], /) -> Table:
        """Return rows of `MESSAGE_ROW`."""
        return np.concatenate([self._of_part(records_of(loaded)) for loaded in parts])

    def _of_part(self, block: BlockRecords) -> Table:
        sent, drawn = block.messages["send_time"], self.rows[block.pe] >= 0
        inside = (sent >= self.from_s) & (sent <= self.to_s)
        return message_rows(block)[inside & drawn[block.messages.seb]]


def _chosen(logs: LogSet, view: TimelineView, rows: Ints, seed: int) -> tuple[Table, int]:
    """Return a sample without replacement of the window's messages, and the number of all."""
    draw = np.random.default_rng(seed)
    kept, numbers = np.empty(0, MESSAGE_ROW), np.empty(0)
    total = 0
    for more in logs.map(_Window(view.from_s, view.to_s, rows)):
        total += len(more)
        kept = np.concatenate([kept, more])
        numbers = np.concatenate([numbers, draw.random(len(more))])
        first = np.argsort(numbers, kind="stable")[:MOST_MESSAGES]
        kept, numbers = kept[first], numbers[first]
    return kept, total


def _keys(pe: Ints, number: Ints) -> Ints:
    """Return the senders and numbers of messages combined into one key each."""
    return pe.astype(np.int64) << 32 | (number.astype(np.int64) & 0xFFFFFFFF)
