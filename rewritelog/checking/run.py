"""The complete check of a log set: heads, blocks, then references between PEs."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rewritelog.arrays import Flags, Ints, mix
from rewritelog.checking.findings import (
    SHOWN,
    BlockParams,
    CheckedBlock,
    CheckReport,
    Finding,
    Findings,
    names_message,
)
from rewritelog.checking.heads import read_heads
from rewritelog.checking.rules import RULES
from rewritelog.commands.logs import CheckCommand
from rewritelog.errors import Location, RewriteLogError
from rewritelog.formats.bgtrace.blocks import BLOCK_BYTES, Block, plan_blocks, read_block
from rewritelog.formats.bgtrace.declaration import layout
from rewritelog.formats.bgtrace.heads import Summary, TimelineFile
from rewritelog.formats.bgtrace.logset import log_folder
from rewritelog.formats.bgtrace.params import ParamFolder, list_params, read_params
from rewritelog.formats.bgtrace.records import BlockRecords, records_of
from rewritelog.formats.traces import Traces
from rewritelog.running.engines import Gathered, engine, map_blocks

_FEWEST_FLAGS, _MOST_FLAGS = 1 << 10, 1 << 25
_BYTES_A_FLAG = 32


def _no_flags(size_bytes: int) -> Flags:
    """Return unset flags, as many as files of this size may contain messages, up to a limit.

    Row 0 is for the messages that are sent, and row 1 for those that SEBs await.
    """
    fitting = 1 << (size_bytes // _BYTES_A_FLAG).bit_length()
    return np.zeros((2, min(max(_FEWEST_FLAGS, fitting), _MOST_FLAGS)), dtype=np.bool_)


@dataclass
class CheckPass(Gathered[Block, Findings]):
    """The check of blocks; all damage is in the results, none is raised."""

    summary: Summary
    files: dict[int, TimelineFile]
    """The timeline files that can be read, by their index."""
    params: ParamFolder | None
    key: int
    """A random number of 64 bits."""
    block_bytes: int
    flags: Flags
    """The flags of messages, which threads may set concurrently."""
    unsent_flags: Ints | None = None
    """The flags of awaited, unsent messages for a second pass, which checks `not-sent` alone."""

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks of all files."""
        for file in self.files.values():
            yield from plan_blocks(file, self.block_bytes)

    def __call__(self, block: Block) -> Findings:
        """Return the findings of a block, or of the parts of a long timeline."""
        findings, state = Findings(), dict[str, Any]()
        is_first_pass, file = self.unsent_flags is None, self.files[block.file]
        on_faults = findings.add_faults if is_first_pass else Findings().add_faults
        lay = layout(self.summary.log_version, file.order)
        try:
            for loaded in read_block(file, block, lay, self.block_bytes, on_faults):
                records = records_of(loaded, on_faults)
                params = None
                if self.params and is_first_pass:
                    read = read_params(self.params, loaded, strict=False, leave_out=True)
                    params = BlockParams(self.params, *read)
                awaits_unsent = self._note_messages(records)
                checked = CheckedBlock(
                    records, self.summary, params, awaits_unsent, state, self.key
                )
                with np.errstate(all="ignore"):
                    for rule in RULES.values() if is_first_pass else [RULES["not-sent"]]:
                        rule.check(checked, findings)
                if is_first_pass:
                    findings.sebs += len(records.sebs)
                    findings.records += 0 if params is None else len(params.records)
        except RewriteLogError as error:
            findings.add_unreadable(file.path, error)
        return findings

    def _note_messages(self, block: BlockRecords) -> Flags | None:
        """Set the flags of messages that are sent, and of those that SEBs await.

        In a second pass, return which SEBs await a message that is never sent.
        """
        source, number = block.sebs["src_pe"], block.sebs["msg_id"]
        named = names_message(block, self.summary.total_pes)
        awaited = self._flags_of(source[named], number[named])
        if self.unsent_flags is not None:
            named[named] = np.isin(awaited, self.unsent_flags)
            return named
        sender, sent = block.pe[block.messages.seb], block.messages["msg_id"]
        self.flags[0, self._flags_of(sender[sent >= 0], sent[sent >= 0])] = True
        self.flags[1, awaited] = True
        return None

    def _flags_of(self, pe: Ints, number: Ints) -> Ints:
        """Return the index of each message's flag, given its source PE and number."""
        messages = pe.astype(np.uint64) << np.uint64(32) | number.astype(np.uint64)
        return (mix(messages) & np.uint64(self.flags.shape[1] - 1)).astype(np.int64)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with only the shape of the flags: a process keeps those that it sets."""
        return {**vars(self), "flags": self.flags.shape}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin with no flags set."""
        vars(self).update(state, flags=np.zeros(state["flags"], dtype=np.bool_))

    def state(self) -> Flags:
        """Return the flags of the messages of this process."""
        return self.flags

    def gather(self, state: Flags) -> None:
        """Add the flags of another process."""
        self.flags |= state


def check_logs(
    path: str | Path,
    params: Path | None = None,
    *,
    block_bytes: int = BLOCK_BYTES,
) -> CheckReport:
    """Check a log set and its params, by default those in the same folder.

    All damage is in the report. Raise `RewriteLogError` if there is no log set at all, or if the
    folder of the params cannot be read.
    """
    folder = log_folder(Path(path))
    folder_params = list_params(params or folder)
    source = folder_params if folder_params.pes or params is not None else None
    findings = Findings()
    heads = read_heads(folder, findings)
    if heads is None:
        unread = ("the timelines: the summary cannot be used",)
        return CheckReport(folder, findings, RULES, not_checked=unread)
    summary, files = heads
    size = sum(file.size_bytes for file in files)
    by_index = {file.index: file for file in files}
    key = secrets.randbits(64)
    work = CheckPass(summary, by_index, source, key, block_bytes, _no_flags(size))
    for _, of_block in map_blocks(work, work.blocks(), "checking", size):
        findings.add_all(of_block)
    why_not = _not_checked(summary, findings)
    unsent_flags = np.flatnonzero(work.flags[1] > work.flags[0])
    if not why_not and len(unsent_flags):
        for of_block in engine().map(replace(work, unsent_flags=unsent_flags), work.blocks()):
            findings.add_all(of_block)
    if source is not None:
        unknown = sorted(pe for pe in source.pes if pe >= summary.total_pes)
        problem = f"the log has PEs 0 to {summary.total_pes - 1}"
        shown = [Finding(Location(source.path(pe)), problem) for pe in unknown[:SHOWN]]
        findings.add("param-pe", shown, len(unknown))
    params = None if source is None else source.folder
    return CheckReport(folder, findings, RULES, summary, params, why_not)


def _not_checked(summary: Summary, findings: Findings) -> tuple[str, ...]:
    """Return why the rule not-sent is not checked, as a tuple of at most one sentence."""
    if not findings.whole:
        return ("not-sent: some timelines cannot be read to their end",)
    if summary.log_version == 0 and summary.num_wth > 1:
        return ("not-sent: in logs of version 0 a message may be named by its node",)
    return ()


def check_opened(command: CheckCommand) -> CheckReport:
    """Check logs or traces; damage is a finding, and not raised."""
    if isinstance(command.logs, Traces):
        from rewritelog.checking.traces import check_traces  # noqa: PLC0415 - not of logs

        return check_traces(command.logs)
    return check_logs(command.logs, command.params)
