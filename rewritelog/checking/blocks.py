"""The check of one block: read, walk, and collect findings."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from rewritelog.checking.cycles import add_cycles
from rewritelog.checking.findings import SHOWN, Finding, Findings
from rewritelog.checking.kernels import check as kernels
from rewritelog.checking.kernels.violations import (
    EXAMPLES,
    MOST_LINKS,
    CarriedState,
    Machine,
    MessageFlags,
    RecordedSebs,
    Timelines,
    Violation,
    Violations,
)
from rewritelog.checking.messages import FoundViolation, message_of
from rewritelog.checking.params import NO_RECORDS, check_params
from rewritelog.checking.rules import RULE_OF
from rewritelog.errors import DamagedLogError, Location, RewriteLogError
from rewritelog.format import layout
from rewritelog.kernels import walk
from rewritelog.logs.blocks import Block, Buffer, LoadedBlock, fault_error, load_blocks
from rewritelog.logs.files import InputFile
from rewritelog.logs.params import ParamFolder
from rewritelog.logs.summary import Summary
from rewritelog.logs.timelines import TimelineFile


@dataclass(frozen=True)
class CheckTask:
    """What is needed to check any block of a log set."""

    summary: Summary
    params: ParamFolder | None
    message_flags: MessageFlags
    key: int
    """A random 64-bit hash key."""
    block_bytes: int

    @property
    def machine(self) -> Machine:
        """The emulated machine."""
        s = self.summary
        return Machine(s.total_pes, s.nodes, s.num_wth)


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

    def add_faults(self, faults: Iterable[DamagedLogError], count: int = 1) -> None:
        """Add `count` faults of a reader, all of one rule."""
        shown = list(islice(faults, SHOWN))
        self.whole &= all(fault.rule == "left-over" for fault in shown)
        self.findings.add_faults(shown, count)

    def add(self, other: Checked) -> None:
        """Add the results of a later block."""
        self.findings.add_all(other.findings)
        self.sebs += other.sebs
        self.records += other.records
        self.whole &= other.whole


_local = threading.local()


def check_block(task: CheckTask, file: TimelineFile, block: Block) -> Checked:
    """Check a block; all damage is in the result, none is raised."""
    checked = Checked()
    state: CarriedState | None = None
    for loaded in _load(task, file, block, checked):
        state = state or _carried_state(task, loaded)
        _check_part(task, loaded, state, checked)
    return checked


def find_not_sent(task: CheckTask, file: TimelineFile, block: Block) -> Findings:
    """Return findings of the SEBs in a block whose starting message was never sent."""
    findings = Findings()
    for loaded in _load(task, file, block, Checked()):
        found = _no_violations(loaded)
        fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
        kernels.find_not_sent(
            loaded.buffer,
            _timelines(loaded),
            loaded.layout.kernel,
            task.machine,
            task.message_flags,
            found,
            fault,
        )
        _add_found(task, loaded, found, findings)
    return findings


def _load(
    task: CheckTask, file: TimelineFile, block: Block, checked: Checked
) -> Iterator[LoadedBlock]:
    """Yield a block, or the parts of a long timeline, as far as they can be walked."""
    if not hasattr(_local, "buffer"):
        _local.buffer = Buffer()
    try:
        with InputFile(file.path) as source:
            yield from load_blocks(
                source,
                file,
                block,
                layout(task.summary.log_version, file.order),
                _local.buffer,
                task.block_bytes,
                checked.add_faults,
            )
    except RewriteLogError as error:
        checked.whole = False
        checked.findings.add_unreadable(file.path, error)


def _timelines(loaded: LoadedBlock) -> Timelines:
    return Timelines(loaded.pieces, loaded.pes, loaded.totals, loaded.closed)


def _carried_state(task: CheckTask, loaded: LoadedBlock) -> CarriedState:
    """Return the state at the start of the timelines of a block."""
    longest = int(loaded.totals.max(initial=1))
    shift = max(0, (longest - 1).bit_length() - (MOST_LINKS - 1).bit_length())
    links = np.zeros(((longest - 1) >> shift) + 1, dtype=np.uint64)
    return CarriedState(links, shift, np.uint64(task.key), np.zeros(1, dtype=np.int64))


def _no_violations(loaded: LoadedBlock) -> Violations:
    return Violations(
        np.zeros(len(Violation), dtype=np.int64),
        np.zeros((len(Violation), EXAMPLES, 4), dtype=np.int64),
        np.zeros(len(loaded.totals), dtype=np.bool_),
        np.zeros(len(loaded.totals), dtype=np.int64),
    )


def _check_part(
    task: CheckTask, loaded: LoadedBlock, state: CarriedState, checked: Checked
) -> None:
    """Run the kernel over a block or part, and add its findings."""
    found, many = _no_violations(loaded), len(loaded.pes)
    records = RecordedSebs(wanted=False, begins=np.zeros(many + 1, dtype=np.int64), sebs=NO_RECORDS)
    if task.params is not None:
        records, count = check_params(task.params, loaded, checked.findings)
        checked.records += count
    faults = np.zeros((many, walk.FAULT_SIZE), dtype=np.int64)
    kernels.check(
        loaded.buffer,
        _timelines(loaded),
        loaded.layout.kernel,
        task.machine,
        records,
        state,
        task.message_flags,
        found,
        faults,
    )
    damaged = faults[:, walk.FAULT_CODE] != walk.OK
    walked = np.where(
        damaged, faults[:, walk.FAULT_SEB] - loaded.pieces.firsts, loaded.pieces.counts
    )
    checked.sebs += int(walked.sum())
    for fault in faults[damaged]:
        checked.add_faults([fault_error(fault, loaded, absolute=True)])
    _add_found(task, loaded, found, checked.findings, state.shift)
    disordered = np.flatnonzero(found.disordered & ~damaged)
    if len(disordered) and loaded.block.part is None:
        add_cycles(loaded, disordered, int(found.waits[disordered].sum()), checked.findings)


def _add_found(
    task: CheckTask, loaded: LoadedBlock, found: Violations, findings: Findings, shift: int = 0
) -> None:
    """Add the violations that the kernel counted, with messages for the examples."""
    for violation in Violation:
        count = int(found.counts[violation])
        shown = [
            _finding(task.summary, loaded, violation, example, shift)
            for example in found.examples[violation, : min(count, EXAMPLES)].tolist()
        ]
        findings.add_many(RULE_OF[violation], count, shown)


def _finding(
    summary: Summary, loaded: LoadedBlock, violation: Violation, example: list[int], shift: int
) -> Finding:
    piece, seb, at, item = example
    at = _offset_of(loaded, piece, seb) if at < 0 else at
    found = FoundViolation(
        loaded.buffer, loaded.layout, int(loaded.totals[piece]), at, item, summary
    )
    offset = None if at < 0 else loaded.block.offset + at
    message = message_of(violation, found)
    if violation is Violation.DEPENDENCIES_DISAGREE and shift > 0:
        message += f", or those of one of the {(1 << shift) - 1} SEBs after it"
    return Finding(Location(loaded.file.path, offset, int(loaded.pes[piece]), seb), message)


def _offset_of(loaded: LoadedBlock, piece: int, seb: int) -> int:
    """Return the offset of a SEB in the buffer, −1 if it is not in this part."""
    pieces = loaded.pieces
    first = int(pieces.firsts[piece])
    if not first <= seb < first + pieces.counts[piece]:
        return -1
    fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
    begin, end = int(pieces.starts[piece]), int(pieces.ends[piece])
    lay = loaded.layout.kernel
    return int(walk.advance(loaded.buffer, begin, end, seb - first, lay, fault)[1])
