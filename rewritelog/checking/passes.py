"""The work on one block: a pass that checks all rules, and one for messages that nobody sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rewritelog.checking.block import CheckedBlock
from rewritelog.checking.findings import Findings
from rewritelog.checking.message_flags import MessageFlags, NeverSent
from rewritelog.checking.params import params_of
from rewritelog.checking.rules import RULES
from rewritelog.errors import DamagedLogError, RewriteLogError
from rewritelog.formats.bgtrace import layout
from rewritelog.formats.bgtrace.blocks import Block, read_block
from rewritelog.formats.bgtrace.faults import FaultHandler
from rewritelog.formats.bgtrace.params import ParamFolder
from rewritelog.formats.bgtrace.records import BlockRecords, records_of
from rewritelog.formats.bgtrace.summary import Summary
from rewritelog.formats.bgtrace.timelines import TimelineFile
from rewritelog.running.engine import Gathered


@dataclass(frozen=True)
class CheckTask:
    """What is needed to check any block of a log set."""

    summary: Summary
    files: dict[int, TimelineFile]
    """The timeline files that can be read, by their index."""
    params: ParamFolder | None
    key: int
    """A random number of 64 bits."""
    block_bytes: int

    def read(self, block: Block, on_faults: FaultHandler) -> Iterator[BlockRecords]:
        """Yield the records of a block, or of the parts of a long timeline, before any damage."""
        file = self.files[block.file]
        lay = layout(self.summary.log_version, file.order)
        for loaded in read_block(file, block, lay, self.block_bytes, on_faults):
            yield records_of(loaded, on_faults)


@dataclass
class Checked:
    """The findings of a block, and counts of what was checked."""

    findings: Findings = field(default_factory=Findings)
    sebs: int = 0
    """The number of SEBs that could be walked."""
    records: int = 0
    """The number of param records read."""
    whole: bool = True
    """Whether all timelines could be walked to their ends."""

    def add_faults(self, faults: Iterable[DamagedLogError], count: int = 1) -> None:  # noqa: ARG002
        """Add the faults of a reader."""
        for fault in faults:
            self.whole &= fault.rule == "left-over"
            self.findings.add_faults([fault])

    def add(self, other: Checked) -> None:
        """Add the results of a later block."""
        self.findings.add_all(other.findings)
        self.sebs += other.sebs
        self.records += other.records
        self.whole &= other.whole


@dataclass
class CheckPass(Gathered[Block, Checked]):
    """The check of a block; all damage is in the result, none is raised."""

    task: CheckTask
    flags: MessageFlags

    def __call__(self, block: Block) -> Checked:
        """Return the findings of a block."""
        task, checked = self.task, Checked()
        state: dict[str, Any] = {}
        try:
            for records in task.read(block, checked.add_faults):
                params = None if task.params is None else params_of(task.params, records.loaded)
                whole = CheckedBlock(records, task.summary, params, None, state, task.key)
                with np.errstate(all="ignore"):
                    for rule in RULES.values():
                        rule.check(whole, checked.findings)
                self.flags.add(records, task.summary.total_pes)
                checked.sebs += len(records.sebs)
                checked.records += 0 if params is None else len(params.records)
        except RewriteLogError as error:
            checked.whole = False
            checked.findings.add_unreadable(task.files[block.file].path, error)
        return checked

    def state(self) -> Any:
        """Return the flags of the messages of this process."""
        return self.flags.state

    def gather(self, state: Any) -> None:
        """Add the flags of another process."""
        self.flags.add_state(state)


@dataclass
class NotSentPass:
    """The search in a block for SEBs whose starting message is never sent."""

    task: CheckTask
    never_sent: NeverSent

    def __call__(self, block: Block) -> Findings:
        """Return the findings of a block."""
        findings = Findings()
        try:
            for records in self.task.read(block, Checked().add_faults):
                checked = CheckedBlock(records, self.task.summary, never_sent=self.never_sent)
                RULES["not-sent"].check(checked, findings)
        except RewriteLogError as error:
            findings.add_unreadable(self.task.files[block.file].path, error)
        return findings
