"""The complete check of a log set: heads, blocks, then references between PEs, then params."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rewritelog.checking.block import CheckedBlock, params_of
from rewritelog.checking.findings import SHOWN, Finding, Findings
from rewritelog.checking.heads import Heads, read_heads
from rewritelog.checking.message_flags import MessageFlags, NeverSent
from rewritelog.checking.report import CheckReport
from rewritelog.checking.rules import RULES
from rewritelog.checking.trace_rules import check_traces
from rewritelog.cores import limited_to
from rewritelog.errors import DamagedLogError, Location, RewriteLogError
from rewritelog.formats.bgtrace.blocks import BLOCK_BYTES, Block, plan_blocks, read_block
from rewritelog.formats.bgtrace.declaration import FaultHandler, layout
from rewritelog.formats.bgtrace.heads import Summary, TimelineFile
from rewritelog.formats.bgtrace.logset import log_folder
from rewritelog.formats.bgtrace.params import ParamFolder, list_params
from rewritelog.formats.bgtrace.records import BlockRecords, records_of
from rewritelog.formats.traces import Traces
from rewritelog.running.engines import Gathered, map_blocks, map_over


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


def check_logs(
    path: str | Path,
    params: Path | None = None,
    *,
    jobs: int = 0,
    block_bytes: int = BLOCK_BYTES,
) -> CheckReport:
    """Check a log set and its params, by default those in the same folder.

    All damage is in the report. Raise `RewriteLogError` if there is no log set at all, or if the
    folder of the params cannot be read.
    """
    with limited_to(jobs):
        return _check(log_folder(path), params, block_bytes)


def _check(folder: Path, params: Path | None, block_bytes: int) -> CheckReport:
    folder_params = list_params(params or folder)
    source = folder_params if folder_params.pes or params is not None else None
    heads = read_heads(folder)
    if heads.summary is None:
        unread = ("the timelines: the summary cannot be used",)
        return CheckReport(folder, None, None, 0, 0, heads.findings, unread)
    files = {file.index: file for file in heads.files}
    task = CheckTask(heads.summary, files, source, secrets.randbits(64), block_bytes)
    size = sum(file.size_bytes for file in heads.files)
    checked, flags = Checked(findings=heads.findings, whole=heads.whole), MessageFlags(size)
    blocks = _blocks(heads, block_bytes)
    for _, of_block in map_blocks(CheckPass(task, flags), blocks, "checking", size):
        checked.add(of_block)
    why_not = _not_checked(heads.summary, checked)
    missing = flags.never_sent()
    if not why_not and len(missing.flags):
        for more in map_over(NotSentPass(task, missing), _blocks(heads, block_bytes)):
            checked.findings.add_all(more)
    if source is not None:
        _check_folder(source, heads.summary, checked.findings)
    return CheckReport(
        folder=folder,
        summary=heads.summary,
        params=None if source is None else source.folder,
        sebs=checked.sebs,
        records=checked.records,
        findings=checked.findings,
        not_checked=why_not,
    )


def _blocks(heads: Heads, block_bytes: int) -> Iterator[Block]:
    for file in heads.files:
        yield from plan_blocks(file, block_bytes)


def _not_checked(summary: Summary, checked: Checked) -> tuple[str, ...]:
    """Return why the rule not-sent is not checked, as a tuple of at most one sentence."""
    if not checked.whole:
        return ("not-sent: some timelines cannot be read to their end",)
    if summary.log_version == 0 and summary.num_wth > 1:
        return ("not-sent: in logs of version 0 a message may be named by its node",)
    return ()


def _check_folder(source: ParamFolder, summary: Summary, findings: Findings) -> None:
    unknown = sorted(pe for pe in source.pes if pe >= summary.total_pes)
    problem = f"the log has PEs 0 to {summary.total_pes - 1}"
    shown = [Finding(Location(source.path(pe)), problem) for pe in unknown[:SHOWN]]
    findings.add("param-pe", shown, len(unknown))


def check_opened(
    source: Path | Traces, params: Path | None = None, *, jobs: int = 0
) -> CheckReport:
    """Check the log set of a path, or traces."""
    if isinstance(source, Traces):
        return check_traces(source, params, jobs=jobs)
    return check_logs(source, params, jobs=jobs)
