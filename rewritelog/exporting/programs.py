"""SEBs as steps of a program for a simulator: what each one waits for, computes and sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints, Table
from rewritelog.exporting.contents import Contents, durations_of
from rewritelog.exporting.matching import Matching

_NOT_RECEIVED = -1.0
"""The recvTime of a SEB that is not resumed by a message."""


class Steps(NamedTuple):
    """Successive SEBs of a PE as columns; `first_…` is the index of the first entry of a list."""

    pe: int
    seb: Ints
    duration_s: Floats
    cause_pe: Ints
    """The PE that sends the starting message, −1 for none."""
    cause_seb: Ints
    cause_number: Ints
    cause_bytes: Ints
    first_required: Ints
    """Shape (SEBs + 1,)."""
    required: Ints
    """SEBs of the same PE that have to have ended, ascending for each step."""
    first_send: Ints
    """Shape (SEBs + 1,)."""
    offset_s: Floats
    """Send times since the start of the SEB, from 0 to its duration, ascending for each step."""
    number: Ints
    size_bytes: Ints
    first_receiver: Ints
    """Shape (messages + 1,)."""
    receiver_pe: Ints
    """The PE of each SEB that a message starts."""


@dataclass
class StepMaker:
    """Converts SEBs to steps, and counts what cannot be represented in a simulation."""

    matching: Matching
    steps: int = 0
    not_received: int = 0
    """The number of messages that start no SEB, which are left out."""
    not_sent: int = 0
    """The number of SEBs whose starting message was never sent, which do not wait for it."""
    invalid_dependencies: int = 0
    """The number of backward dependencies that do not refer to an earlier SEB."""

    def steps_of(self, contents: Contents) -> Steps:
        """Return the steps of successive SEBs of a PE, in the order of the timeline."""
        sebs = contents.tables.sebs
        causes, sent = self.matching.causes(sebs)
        self.steps += len(sebs)
        self.not_sent += int(np.count_nonzero((sebs["msg_id"] >= 0) & ~sent))
        durations = durations_of(sebs)
        first_required, required = self._required(contents, sent)
        sends = self._sends(contents, durations)
        return Steps(
            contents.pe,
            sebs["seb"].astype(np.int64),
            durations,
            np.where(sent, sebs["src_pe"], -1).astype(np.int64),
            causes["seb"].astype(np.int64),
            causes["msg_id"].astype(np.int64),
            np.maximum(causes["size"], 0).astype(np.int64),
            first_required,
            required,
            *sends,
        )

    def _required(self, contents: Contents, sent: Flags) -> tuple[Ints, Ints]:
        """Return the SEBs of the same PE that each SEB requires."""
        sebs, rows = contents.tables.sebs, contents.tables.dependencies
        rows = rows[~rows["forward"]]
        valid = (rows["other"] >= 0) & (rows["other"] < rows["seb"])
        self.invalid_dependencies += int(np.count_nonzero(~valid))
        row = np.searchsorted(sebs["seb"], rows["seb"][valid])
        depends = np.bincount(row, minlength=len(sebs)) > 0
        follows = ~sent & (sebs["seb"] > 0) & (~depends | (sebs["recv_time"] != _NOT_RECEIVED))
        follower = np.flatnonzero(follows)
        other = np.concatenate([rows["other"][valid], sebs["seb"][follower] - 1]).astype(np.int64)
        pairs = np.unique(np.concatenate([row, follower]) << 32 | other)
        return _begins(pairs >> 32, len(sebs)), pairs & 0xFFFFFFFF

    def _sends(
        self, contents: Contents, durations: Floats
    ) -> tuple[Ints, Floats, Ints, Ints, Ints, Ints]:
        """Return the messages of each SEB that start others, in order of sending, and receivers."""
        messages, sebs = contents.tables.messages, contents.tables.sebs
        begins, ends = self.matching.receivers_of(contents.pe, messages)
        row = np.searchsorted(sebs["seb"], messages["seb"])
        offsets = np.nan_to_num(messages["send_time"] - sebs["start_time"][row])
        offsets = np.clip(offsets, 0.0, durations[row])
        chosen = np.flatnonzero(ends > begins)
        self.not_received += len(messages) - len(chosen)
        chosen = chosen[np.lexsort((offsets[chosen], row[chosen]))]
        counts = ends[chosen] - begins[chosen]
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        receiver = np.repeat(begins[chosen] - first[:-1], counts) + np.arange(first[-1])
        return (
            _begins(row[chosen], len(sebs)),
            offsets[chosen],
            messages["msg_id"][chosen].astype(np.int64),
            np.maximum(messages["size"][chosen], 0).astype(np.int64),
            first,
            self.matching.receivers.of(contents.pe)["pe"][receiver].astype(np.int64),
        )


def _begins(rows: Ints | Table, count: int) -> Ints:
    """Return the first entry of each row, given the ascending rows of all entries."""
    return np.searchsorted(rows, np.arange(count + 1)).astype(np.int64)
