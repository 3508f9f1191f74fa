"""The messages of a figure, as lines from the sending SEB to the receiving PE."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats, Ints, Table
from rewritelog.logs.logset import LogSet
from rewritelog.logs.tables import MESSAGE_ROW, Tables, tables_of
from rewritelog.viewing.timeline import TimelineView

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


def message_lines(logs: LogSet, view: TimelineView, seed: int = 1) -> MessageLines:
    """Return the lines of the messages sent within the view's time window and rows.

    Reads the log twice: for the messages, and for the SEBs that the chosen messages start.
    """
    rows = np.full(len(logs.pes), -1, dtype=np.int64)
    rows[list(view.pes)] = np.arange(len(view.pes)) // view.group
    chosen, messages = _chosen(logs, view, rows, seed)
    keys = np.sort(_keys(chosen["pe"], chosen["msg_id"]))
    order = np.argsort(_keys(chosen["pe"], chosen["msg_id"]), kind="stable")
    from_row, to_row, sent, arrived = [], [], [], []
    for tables in _tables(logs):
        sebs = tables.sebs[rows[tables.sebs["pe"]] >= 0]
        wanted = _keys(sebs["src_pe"], sebs["msg_id"])
        found = np.searchsorted(keys, wanted)
        hit = (found < len(keys)) & (keys[np.minimum(found, len(keys) - 1)] == wanted)
        message = chosen[order[found[hit]]]
        from_row.append(rows[message["pe"]])
        to_row.append(rows[sebs["pe"][hit]])
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


def _tables(logs: LogSet) -> Iterator[Tables]:
    return (tables_of(loaded) for loaded in logs.blocks())


def _chosen(logs: LogSet, view: TimelineView, rows: Ints, seed: int) -> tuple[Table, int]:
    """Return a sample without replacement of the window's messages, and the number of all."""
    draw = np.random.default_rng(seed)
    kept, numbers = np.empty(0, MESSAGE_ROW), np.empty(0)
    total = 0
    for tables in _tables(logs):
        sent = tables.messages["send_time"]
        inside = (sent >= view.from_s) & (sent <= view.to_s) & (rows[tables.messages["pe"]] >= 0)
        more = tables.messages[inside]
        total += len(more)
        kept = np.concatenate([kept, more])
        numbers = np.concatenate([numbers, draw.random(len(more))])
        first = np.argsort(numbers, kind="stable")[:MOST_MESSAGES]
        kept, numbers = kept[first], numbers[first]
    return kept, total


def _keys(pe: Ints, number: Ints) -> Ints:
    """Return the senders and numbers of messages combined into one key each."""
    return pe.astype(np.int64) << 32 | (number.astype(np.int64) & 0xFFFFFFFF)
