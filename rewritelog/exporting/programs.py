"""SEBs as steps of a program for a simulator: what each one waits for, computes and sends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints, Table
from rewritelog.commands.durations import DurationOptions
from rewritelog.errors import RewriteLogError
from rewritelog.exporting.contents import Contents, durations_of
from rewritelog.exporting.matching import Matching
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.replaying.network import Network
from rewritelog.replaying.simulate import prepare, simulate

Part = TypeVar("Part")

_NOT_RECEIVED = -1.0
"""The recvTime of a SEB that is not resumed by a message."""


@dataclass(frozen=True)
class Steps:
    """Successive SEBs as columns, with what they require and send as columns of their own."""

    pe: Ints
    seb: Ints
    duration_s: Floats
    cause_pe: Ints
    """The other PE that sends the starting message, −1 for none."""
    cause_number: Ints
    cause_bytes: Ints
    required_by: Ints
    """The step of each requirement, ascending."""
    required: Ints
    """A SEB of the same PE that has to have ended, ascending for each step.

    It is later than the step only where it sends the message that starts the step.
    """
    sender: Ints
    """The step of each transfer to another PE, ascending."""
    offset_s: Floats
    """Send times since the start of the SEB, from 0 to its duration, ascending for each step."""
    number: Ints
    size_bytes: Ints
    receiver_pe: Ints
    counts: Counter[str]
    """The number of steps, and of what a simulation lacks.

    - `not sent`: SEBs whose starting message was never sent, which do not wait for it
    - `not received`: messages that start no SEB, which are left out
    - `invalid`: backward dependencies that do not refer to an earlier SEB
    """

    def scaled(self, seconds: Floats, steps: Ints, per_s: float, below: float, what: str) -> Floats:
        """Return times as numbers of a format; raise `RewriteLogError` for one that it lacks.

        `steps` are the steps of the times; all numbers have to be below `below`.
        """
        with np.errstate(over="ignore"):
            numbers: Floats = seconds * per_s
        too_large = np.flatnonzero(~(numbers < below))
        if len(too_large):
            first = int(too_large[0])
            step = int(steps[first])
            raise RewriteLogError(
                f"PE {self.pe[step]}, SEB {self.seb[step]}: {float(seconds[first])!r} s cannot be "
                f"exported: {what}"
            )
        return numbers


@dataclass(frozen=True)
class ReplayedOrder:
    """The SEBs of each PE in the order in which they run; those that never run are the last."""

    first: Ints
    """The number of the first SEB of each PE, counted over all PEs; shape (PEs + 1,)."""
    order: Ints
    """SEBs in this numbering, in the order of PEs and then of running."""

    def of(self, pe: int) -> Ints:
        """Return the SEBs of a PE, by their indices in the timeline."""
        first = self.first[pe]
        return np.asarray(self.order[first : self.first[pe + 1]] - first)

    def previous(self, pe: Ints, seb: Ints) -> Ints:
        """Return the SEB that runs before each SEB on its PE, −1 for none."""
        return np.asarray(self._previous[self.first[pe] + seb])

    @cached_property
    def _previous(self) -> Ints:
        before = np.full(len(self.order), -1)
        pe = np.searchsorted(self.first, self.order, side="right") - 1
        same = np.flatnonzero(pe[1:] == pe[:-1]) + 1
        before[self.order[same]] = self.order[same - 1] - self.first[pe[same]]
        return before


def replayed_order(logs: LogSet, network: Network) -> ReplayedOrder:
    """Replay the recorded durations over a network, and return the order; all SEBs are in memory.

    Raise a `RewriteLogError` for damaged logs.
    """
    prepared = prepare(logs, DurationOptions(dilation=1.0))
    run = simulate(prepared.workload, prepared.case(network))
    sebs = prepared.workload.sebs
    turn = np.full(len(sebs), len(sebs))
    turn[run.times.order] = np.arange(run.run)
    return ReplayedOrder(sebs.first_of_pe.astype(np.int64), np.lexsort((turn, sebs.pe)))


@dataclass(frozen=True)
class StepMaker:
    """Converts SEBs to steps, and counts what cannot be represented in a simulation."""

    matching: Matching
    order: ReplayedOrder | None
    """The order in which each PE runs its SEBs; None for what messages and dependencies allow."""

    def steps_of(self, contents: Contents) -> Steps:
        """Return the steps of successive SEBs, in the order of the timelines."""
        sebs = contents["sebs"]
        causes, sent = self.matching.causes(sebs)
        to_itself = sent & (sebs["src_pe"] == sebs["pe"])
        durations = durations_of(sebs)
        sender = np.where(to_itself, causes["seb"], -1)
        required_by, required, invalid = self._required(contents, sent, sender)
        message, receiver = self.matching.receivers_of(contents["messages"])
        counts = {
            "steps": len(sebs),
            "not sent": int(np.count_nonzero((sebs["msg_id"] >= 0) & ~sent)),
            "not received": len(contents["messages"]) - len(np.unique(message)),
            "invalid": invalid,
        }
        return Steps(
            sebs["pe"],
            sebs["seb"],
            durations,
            np.where(sent & ~to_itself, sebs["src_pe"], -1).astype(np.int64),
            np.where(sent, sebs["msg_id"], 0).astype(np.int64),
            _sizes(causes),
            required_by,
            required,
            *_sends(contents, durations, message, receiver),
            counts=Counter(counts),
        )

    def _required(self, contents: Contents, sent: Flags, sender: Ints) -> tuple[Ints, Ints, int]:
        """Return the steps that require another SEB of their PE, these SEBs, and invalid ones.

        `sender` is the SEB of the same PE that sends the starting message, −1 for none.
        """
        sebs, rows = contents["sebs"], contents["dependencies"]
        rows = rows[~rows["forward"]]
        valid = (rows["other"] >= 0) & (rows["other"] < rows["seb"])
        itself = sender == sebs["seb"]
        invalid = int(np.count_nonzero(~valid) + np.count_nonzero(itself))
        row = contents.row_of(rows[valid])
        depends = np.bincount(row, minlength=len(sebs)) > 0
        follows = ~sent & (sebs["seb"] > 0) & (~depends | (sebs["recv_time"] != _NOT_RECEIVED))
        previous = np.where(follows, sebs["seb"] - 1, -1)
        pairs = [row << 32 | rows["other"][valid], _pairs(previous)]
        pairs.append(_pairs(np.where(itself, -1, sender)))
        if self.order is not None:
            pairs.append(_pairs(self.order.previous(sebs["pe"], sebs["seb"])))
        unique = np.unique(np.concatenate(pairs))
        return unique >> 32, unique & 0xFFFFFFFF, invalid


def _sends(
    contents: Contents, durations: Floats, message: Ints, receiver: Ints
) -> tuple[Ints, Floats, Ints, Ints, Ints]:
    """Return the transfers of messages to other PEs, in the order of sending."""
    messages, sebs = contents["messages"], contents["sebs"]
    row = contents.row_of(messages)
    with np.errstate(over="ignore", invalid="ignore"):
        offsets = np.nan_to_num(messages["send_time"] - sebs["start_time"][row])
    offsets = np.clip(offsets, 0.0, durations[row])
    other = receiver != messages["pe"][message]
    message, receiver = message[other], receiver[other]
    order = np.lexsort((offsets[message], row[message]))
    message, receiver = message[order], receiver[order]
    numbers = messages["msg_id"][message].astype(np.int64)
    return row[message], offsets[message], numbers, _sizes(messages[message]), receiver


def program_part(
    make: Callable[[Steps, Contents], Part], steps: StepMaker, contents: Contents
) -> tuple[Counter[str], Part]:
    """Return what `Steps` counts, and what a format makes of SEBs as steps."""
    block_steps = steps.steps_of(contents)
    return block_steps.counts, make(block_steps, contents)


def _pairs(other: Ints) -> Ints:
    """Return a number for each row with a SEB (−1: none), whose upper half is the row."""
    rows = np.flatnonzero(other >= 0)
    return np.asarray(rows << 32 | other[rows])


def _sizes(messages: Table) -> Ints:
    """Return the sizes in bytes, at least 1: simulators cannot send nothing."""
    return np.asarray(np.maximum(messages["size"], 1), dtype=np.int64)
