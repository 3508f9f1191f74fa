"""SEBs as steps of a program for a simulator: what each one waits for, computes and sends.

They come from the workload of a replay, which has all SEBs and messages in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from msgspec import Struct

from rewritelog.arrays import Floats, Ints
from rewritelog.errors import RewriteLogError
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.progress import report_progress
from rewritelog.replaying.network import Network
from rewritelog.replaying.replay import Case, load_recorded, replay_workload
from rewritelog.replaying.workload import NOT_SENT, Numbers, Workload
from rewritelog.running.engines import engine

Part = TypeVar("Part")

_PART_SEBS = 1 << 15
"""The most SEBs of a part, which has whole PEs, unless it has only one PE."""


class Steps(Struct, frozen=True):
    """All SEBs of successive PEs as columns; what they require and send has columns of its own."""

    pes: range
    pe: Ints
    seb: Ints
    """The index of each SEB in its timeline."""
    order: Ints
    """The steps in the order in which their PEs run them."""
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

    def scaled(self, seconds: Floats, steps: Ints, per_s: float, below: float, what: str) -> Floats:
        """Return times in a format's unit; raise `RewriteLogError` unless all are below `below`.

        `steps` are the steps of the times; the error names the step, and ends with `what`.
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


class Program(Struct, frozen=True):
    """The SEBs of a log set, to be converted to steps."""

    workload: Workload
    order: Numbers | None
    """All SEBs, PE by PE in the order in which they run; None for any order that links allow."""
    never_ran: int = 0
    """The number of SEBs that the replay for that order could not run."""

    def parts(self, make: Callable[[Steps], Part]) -> Iterator[Part]:
        """Yield what `make` returns for the steps of successive PEs, on the engine of the job."""
        ranges = list(self._ranges())
        parts = engine().map(make, map(self._steps, ranges))
        for pes, part in zip(ranges, parts, strict=True):
            report_progress("exporting PE", pes.stop, self.workload.pes)
            yield part

    def _ranges(self) -> Iterator[range]:
        first, begin = self.workload.sebs.first_of_pe, 0
        while begin < self.workload.pes:
            end = int(np.searchsorted(first, first[begin] + _PART_SEBS, side="right")) - 1
            yield range(begin, max(begin + 1, end))
            begin = max(begin + 1, end)

    @property
    def lacking(self) -> Counter[str]:
        """The numbers of links and SEBs that a simulation does not have as recorded.

        - `not sent`: SEBs whose starting message was never sent, which do not wait for it
        - `not received`: messages that start no SEB, which are left out
        - `invalid`: backward dependencies that do not refer to an earlier SEB
        - `never ran`: SEBs that the replay for their order could not run
        """
        sebs, messages = self.workload.sebs, self.workload.messages
        awaited, waiting = sebs.waits(0, len(sebs))
        started = np.flatnonzero(sebs.starter >= 0)
        invalid = np.count_nonzero(waiting <= awaited)
        by_itself = np.count_nonzero(sebs.senders(sebs.starter[started]) == started)
        return Counter({
            "not sent": len(self.workload.not_sent),
            "not received": int(np.count_nonzero(np.diff(messages.first_receiver) == 0)),
            "invalid": len(self.workload.beyond) + int(invalid + by_itself),
            "never ran": self.never_ran,
        })  # fmt: skip

    def _steps(self, pes: range) -> Steps:
        sebs, messages = self.workload.sebs, self.workload.messages
        low, high = sebs.first_of_pe[[pes.start, pes.stop]].tolist()
        own, seb = slice(low, high), np.arange(low, high)
        pe = sebs.pe[own].astype(np.int64)
        sent = np.flatnonzero(sebs.starter[own] >= 0)
        starter = sebs.starter[own][sent]
        sender, number, size = (np.full(len(seb), unknown) for unknown in (-1, 0, 1))
        sender[sent] = sebs.senders(starter)
        number[sent] = messages.number[starter]
        size[sent] = np.maximum(messages.size_bytes[starter], 1)
        by_other = (sender >= 0) & (sebs.pe[sender] != pe)
        order = seb if self.order is None else self.order[own].astype(np.int64)
        first = sebs.first_of_pe[pe].astype(np.int64)
        required_by, required = self._required(low, pe, np.where(by_other, -1, sender), order)
        return Steps(
            pes,
            pe,
            seb - first,
            order - low,
            self.workload.seconds[0].of_sebs[own],
            np.where(by_other, sebs.pe[sender], -1).astype(np.int64),
            number,
            size,
            required_by,
            required - first[required_by],
            *self._sends(low, high),
        )

    def _required(self, low: int, pe: Ints, sender: Ints, order: Ints) -> tuple[Ints, Ints]:
        """Return the steps of SEBs that require another one of their PE, and the required SEBs.

        `low` is the first SEB, `pe` the PE of each one, and `sender` the SEB of the same PE that
        sends the starting message, −1 for none.
        """
        sebs, seb = self.workload.sebs, low + np.arange(len(pe))
        awaited, waiting = sebs.waits(low, low + len(seb))
        earlier = awaited < waiting
        unsent = sebs.starter[low : low + len(seb)] == NOT_SENT
        alone = seb[unsent & (seb > sebs.first_of_pe[pe])]
        own = np.flatnonzero((sender >= 0) & (sender != seb))
        pairs = [(waiting[earlier], awaited[earlier]), (alone, alone - 1), (seb[own], sender[own])]
        if self.order is not None:
            after = np.flatnonzero(pe[1:] == pe[:-1]) + 1
            pairs.append((order[after], order[after - 1]))
        unique = np.unique(np.concatenate([(by - low) << 32 | other for by, other in pairs]))
        return unique >> 32, unique & 0xFFFFFFFF

    def _sends(self, low: int, high: int) -> tuple[Ints, Floats, Ints, Ints, Ints]:
        """Return the transfers of messages to other PEs, in the order of sending."""
        sebs, messages = self.workload.sebs, self.workload.messages
        bounds = sebs.first_message[low : high + 1]
        first, last = int(bounds[0]), int(bounds[-1])
        step = np.repeat(np.arange(high - low), np.diff(bounds))
        receiver = messages.first_receiver[first : last + 1]
        message = np.repeat(np.arange(last - first), np.diff(receiver))
        receiver_pe = sebs.pe[messages.receivers[receiver[0] : receiver[-1]]].astype(np.int64)
        other = np.flatnonzero(receiver_pe != sebs.pe[low:high][step[message]])
        offset_s = self.workload.seconds[0].until_sent[first:last][message]
        other = other[np.lexsort((offset_s[other], step[message[other]]))]
        message = message[other]
        size = np.maximum(messages.size_bytes[first:last][message], 1).astype(np.int64)
        number = messages.number[first:last][message].astype(np.int64)
        return step[message], offset_s[other], number, size, receiver_pe[other]


def load_program(logs: LogSet, network: Network | None) -> Program:
    """Load a log set; with a network its SEBs run in the order of a replay over it.

    SEBs that never run are the last of their PE. Raise a `RewriteLogError` for damaged logs.
    """
    workload = load_recorded(logs)
    if network is None:
        return Program(workload, None)
    run = replay_workload(workload, Case(network, workload.seconds[0]))
    place_in_order = np.full(len(workload.sebs), len(workload.sebs))
    place_in_order[run.times.order] = np.arange(len(run.times.order))
    return Program(workload, np.lexsort((place_in_order, workload.sebs.pe)), run.never_ran)
