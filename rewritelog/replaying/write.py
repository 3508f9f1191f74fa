"""Writing of a log set with replayed times, in which the SEBs of a PE do not overlap.

The new log set keeps every rule of `check` that the old one keeps.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rewritelog.arrays import Flags, Floats, Ints, spans
from rewritelog.commands.durations import OutputOptions
from rewritelog.errors import DamagedLogError, Location, RewriteLogError, UsageError, spelled
from rewritelog.formats.bgtrace.blocks import Block
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.records import EXEC_SLACK_S, ROUNDING, BlockRecords, records_of
from rewritelog.formats.files import PROVENANCE_NAME
from rewritelog.output.files import FlushingWork, copy_companions
from rewritelog.replaying.replay import Prepared, ReplayedRun, Times
from rewritelog.replaying.workload import Numbers
from rewritelog.rewriting.block import RewriteTask, rewrite_part
from rewritelog.rewriting.run import new_output, write_provenance
from rewritelog.running.engines import map_blocks

_UNCLOSED_S = -1.0
"""An end before any start."""


class _BlockTimes(Struct, frozen=True):
    """A block, and what a replay has for its SEBs and messages, in the order of the file.

    A worker gets only these, since a replay takes memory for all SEBs.
    """

    block: Block
    messages: Ints
    """The number of messages of each SEB."""
    ready_s: Floats
    start_s: Floats
    end_s: Floats
    durations_s: Floats
    sent_s: Floats
    received_s: Floats
    """When the last receiver of a message has it."""

    @property
    def size_bytes(self) -> int:
        """The size of the block."""
        return self.block.size_bytes


def _write(task: RewriteTask, times: _BlockTimes, files: FlushingWork[_BlockTimes, None]) -> None:
    """Write a block; the task first rewrites durations if they change."""
    file, seb, message = task.logs.files[times.block.file], 0, 0
    for loaded in task.logs.read(times.block):
        if task.changes_durations:
            rewrite_part(task, loaded)
        block = records_of(loaded)
        sebs = slice(seb, seb + len(block.sebs))
        sent = slice(message, message + len(block.messages))
        changed = not np.array_equal(block.walked["messages"], times.messages[sebs])
        if changed:
            break
        block.messages.put("send_time", times.sent_s[sent])
        block.messages.put("recv_time", times.received_s[sent])
        _write_sebs(times, block, sebs)
        files.write(file.path.name, loaded.buffer, loaded.block.offset)
        seb, message = sebs.stop, sent.stop
    if changed or seb < len(times.messages):
        location = Location(file.path, loaded.block.offset, int(loaded.pes[0]))
        raise DamagedLogError(location, "the file changed during the run")


def write_replayed(
    prepared: Prepared, outcome: ReplayedRun, out: Path, options: OutputOptions
) -> None:
    """Write the logs of a replay to the folder `out`, with the replayed times.

    SEBs that never ran are placed after the end of the run. Raise `OutputError` if `out` exists and
    may not be replaced, or cannot be written; it is then not changed. Raise `RewriteLogError` if a
    duration is lost by rounding, and `UsageError` for traces of events.
    """
    task, durations_s = prepared.task, outcome.durations_s
    if not isinstance(task, RewriteTask):
        raise UsageError(f"{spelled('write')} is for bgTrace logs")
    logs = task.logs
    if outcome.never_ran:
        outcome = replace(outcome, times=_all_times(outcome, durations_s))
    with new_output(logs, out, options) as draft:
        if task.changes_durations:
            write_provenance(draft, logs, options, task.predictor.fitted, prepared.timings)
        else:
            copy_companions(logs, draft, (PROVENANCE_NAME,))
        work = FlushingWork(partial(_write, task), draft, flush=not options.no_flush)
        blocks = (
            _times_of(logs, outcome, durations_s, block) for block in logs.units(in_turn=True)
        )
        for _ in map_blocks(work, blocks, "writing", logs.units_bytes):
            pass


def _all_times(outcome: ReplayedRun, durations_s: Floats) -> Times:
    """Return the times of all SEBs; those of a PE that never ran follow the end, one by one."""
    never = np.flatnonzero(np.isnan(outcome.times.ready_s))
    ready_s, start_s, end_s = (times.copy() for times in outcome.times[:3])
    for sebs in np.split(never, np.flatnonzero(np.diff(outcome.workload.sebs.pe[never])) + 1):
        ends = np.cumsum(np.append(outcome.predicted_s, durations_s[sebs]))
        ready_s[sebs] = start_s[sebs] = ends[:-1]
        end_s[sebs] = ends[1:]
    return Times(ready_s, start_s, end_s, outcome.times.order)


def _times_of(logs: LogSet, outcome: ReplayedRun, durations_s: Floats, block: Block) -> _BlockTimes:
    first_of_pe, times = outcome.workload.sebs.first_of_pe, outcome.times
    pes = logs.files[block.file].pes[block.first_timeline :][: block.timelines]
    seb = spans(first_of_pe[pes], first_of_pe[pes + 1] - first_of_pe[pes])
    first = outcome.workload.sebs.first_message
    messages = first[seb + 1] - first[seb]
    message = spans(first[seb], messages)
    sender = np.repeat(seb, messages).astype(np.int32)
    sent_s = outcome.sent_s(sender, message)
    return _BlockTimes(
        block,
        messages,
        ready_s=times.ready_s[seb],
        start_s=times.start_s[seb],
        end_s=times.end_s[seb],
        durations_s=durations_s[seb],
        sent_s=sent_s,
        received_s=sent_s + _delays_s(outcome, message, sender),
    )


def _write_sebs(times: _BlockTimes, block: BlockRecords, seb: slice) -> None:
    """Write the times of SEBs; an unclosed one stays so, and a receive time of −1 stays."""
    sebs = block.sebs
    start_s, end_s, durations_s = times.start_s[seb], times.end_s[seb], times.durations_s[seb]
    closed = sebs["end_time"] >= sebs["start_time"]
    lost = np.flatnonzero(closed & (np.abs(end_s - start_s - durations_s) > EXEC_SLACK_S))
    if len(lost):
        raise RewriteLogError(
            f"SEB {block.index[lost[0]]} of PE {block.pe[lost[0]]} starts at "
            f"{start_s[lost[0]]:.6g} s, where the rounding of times exceeds {EXEC_SLACK_S:g} s: "
            "no logs are written"
        )
    _cut_events(block, closed, start_s, end_s)
    received = sebs["recv_time"] != -1.0
    unclosed_s = np.where(sebs["end_time"] < start_s, sebs["end_time"], _UNCLOSED_S)
    ready_s = times.ready_s[seb]
    sebs.put("start_time", start_s)
    sebs.put("eff_recv_time", ready_s)
    sebs.put("recv_time", ready_s[received], np.flatnonzero(received))
    sebs.put("exec_time", durations_s[closed], np.flatnonzero(closed))
    sebs.put("end_time", np.where(closed, end_s, unclosed_s))


def _rounding_s(start_s: Floats, end_s: Floats) -> Floats:
    """Return the largest rounding errors of the durations of SEBs."""
    return np.asarray(ROUNDING * np.maximum(abs(start_s), abs(end_s)))


@np.errstate(over="ignore")
def _cut_events(block: BlockRecords, closed: Flags, start_s: Floats, end_s: Floats) -> None:
    """Cut log events to the new durations, which may be shorter than old end − old start."""
    sebs, events = block.sebs, block.events
    old_s = (
        sebs["end_time"] - sebs["start_time"] + _rounding_s(sebs["start_time"], sebs["end_time"])
    )
    new_s = end_s - start_s
    most_s = (new_s + _rounding_s(start_s, end_s))[events.seb]
    inside = closed[events.seb] & (events["r_time"] <= old_s[events.seb])
    late = np.flatnonzero(inside & (events["r_time"] > most_s))
    events.put("r_time", new_s[events.seb[late]], late)


def _delays_s(outcome: ReplayedRun, message: Ints, sender: Numbers) -> Floats:
    """Return the delay of messages to their slowest receivers; between nodes if there are none."""
    workload, between_s = outcome.workload, outcome.sent["delay_s"][message]
    workers, first = workload.workers, workload.messages.first_receiver
    counts = first[message + 1] - first[message]
    row = np.repeat(np.arange(len(message)), counts)
    to = workload.sebs.pe[workload.messages.receivers[spans(first[message], counts)]]
    by = workload.sebs.pe[sender[row]]
    near_s = np.where(to == by, 0.0, outcome.case.network.node_latency)
    longest_s = np.where(counts > 0, 0.0, between_s)
    same_node = to // workers == by // workers
    np.maximum.at(longest_s, row, np.where(same_node, near_s, between_s[row]))
    return longest_s
