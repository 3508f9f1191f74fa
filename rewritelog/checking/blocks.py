"""The check of one block, on its own: read, walk, and say what is wrong with it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Ints
from rewritelog.checking.cycles import add_cycles
from rewritelog.checking.findings import SHOWN, Finding, Findings
from rewritelog.checking.heads import KnownFile, without_path
from rewritelog.checking.kernels import check as kernels
from rewritelog.checking.kernels.violations import (
    EXAMPLES,
    MOST_LINKS,
    CarriedState,
    Found,
    Machine,
    MessageFlags,
    Records,
    Timelines,
    Violation,
)
from rewritelog.checking.messages import Noted, say
from rewritelog.checking.params import NO_RECORDS, check_params
from rewritelog.checking.rules import RULE_OF
from rewritelog.errors import DamagedLogError, Location, RewriteLogError
from rewritelog.format import ByteOrder, Layout, layout
from rewritelog.kernels import walk
from rewritelog.logs.blocks import (
    MOST_SEB_BYTES,
    Block,
    Buffer,
    Cut,
    LoadedBlock,
    fault_kind,
    oversized,
)
from rewritelog.logs.files import InputFile
from rewritelog.logs.params import ParamFolder
from rewritelog.logs.summary import Summary
from rewritelog.logs.tables import gather

_COUNT_BYTES = 4

_FAULT_RULES = {
    walk.SEB_CUT: "cut-off",
    walk.EVENT_TYPE: "event-type",
    walk.BYTES_LEFT_OVER: "left-over",
}
"""The rules that faults of the walk break, where it is not `count`."""


@dataclass(frozen=True)
class CheckTask:
    """All that the check of any block of a log set needs."""

    summary: Summary
    params: ParamFolder | None
    mail: MessageFlags
    key: int
    """A random number of 64 bits."""
    block_bytes: int

    @property
    def machine(self) -> Machine:
        """The emulated machine."""
        s = self.summary
        return Machine(s.total_pes, s.nodes, s.num_wth)

    def layout(self, order: ByteOrder) -> Layout:
        """Return the layout of a file's records."""
        return layout(self.summary.log_version, order)


@dataclass
class Checked:
    """What a block has, and what is wrong with it."""

    findings: Findings = field(default_factory=Findings)
    sebs: int = 0
    """Those that could be walked."""
    records: int = 0
    """Param records read."""
    whole: bool = True
    """Whether every timeline could be walked to its end."""

    def add(self, other: Checked) -> None:
        """Add what a later block has."""
        self.findings.add_all(other.findings)
        self.sebs += other.sebs
        self.records += other.records
        self.whole &= other.whole


@dataclass(frozen=True)
class Part:
    """Some timelines of a block, or a part of a long one, with their bytes."""

    loaded: LoadedBlock
    totals: Ints
    """SEBs of each timeline."""
    closed: NDArray[np.bool_]
    layout: Layout

    @property
    def timelines(self) -> Timelines:
        """The part as the kernels take it."""
        return Timelines(self.loaded.pieces, self.loaded.pes, self.totals, self.closed)


_local = threading.local()


def check_block(task: CheckTask, known: KnownFile, block: Block) -> Checked:
    """Check a block; whatever is wrong with it is in the result."""
    checked = Checked()
    trail: CarriedState | None = None
    for part in load_parts(task, known, block, checked):
        trail = trail or _trail(task, part)
        _check_part(task, part, trail, checked)
    return checked


def find_not_sent(task: CheckTask, known: KnownFile, block: Block) -> Findings:
    """Return the SEBs of a block that wait for a message that was not sent."""
    findings = Findings()
    for part in load_parts(task, known, block, Checked()):
        found = _room(part)
        fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
        kernels.find_not_sent(part.loaded.buffer, part.timelines, part.layout.kernel, task.machine,
                              task.mail, found, fault)  # fmt: skip
        _add_found(task, part, found, findings)
    return findings


def load_parts(task: CheckTask, known: KnownFile, block: Block, checked: Checked) -> Iterator[Part]:
    """Yield a block, or where it is a long timeline its parts, as far as they can be walked."""
    if not hasattr(_local, "buffer"):
        _local.buffer = Buffer()
    loader = _Loader(known, block, task.layout(known.order), _local.buffer, checked)
    try:
        with InputFile(known.file.path) as source:
            if block.timelines == 1 and block.size_bytes > task.block_bytes:
                yield from loader.parts(source, task.block_bytes)
            else:
                yield from loader.whole(source)
    except DamagedLogError as error:
        checked.whole = False
        checked.findings.add_damage("unreadable", error)
    except RewriteLogError as error:
        checked.whole = False
        path = known.file.path
        checked.findings.add("unreadable", Location(path), without_path(error, path))


@dataclass(frozen=True)
class _Loader:
    """How the timelines of one block are brought into memory."""

    known: KnownFile
    block: Block
    layout: Layout
    buffer: Buffer
    checked: Checked

    @property
    def _number(self) -> np.dtype[np.int32]:
        return np.dtype("<i4" if self.known.order == "little" else ">i4")

    @property
    def _smallest(self) -> int:
        """The bytes of a SEB that holds nothing."""
        return self.layout.kernel.seb_bytes + 4 * _COUNT_BYTES

    def whole(self, source: InputFile) -> Iterator[Part]:
        """Yield the timelines whose counts can be."""
        file, block = self.known.file, self.block
        window = self.buffer.take(block.size_bytes)
        source.read_into(window, block.offset)
        inside = slice(block.first_timeline, block.first_timeline + block.timelines)
        pes = file.pes[inside]
        starts = file.borders[:-1][inside] - block.offset
        ends = file.borders[1:][inside] - block.offset
        room = ends - starts - _COUNT_BYTES
        counts = np.zeros_like(starts)
        counts[room >= 0] = gather(window, starts[room >= 0], self._number)
        good = (room >= 0) & (counts >= 0) & (counts * self._smallest <= room)
        bad = ~good & self.known.known[inside]
        self._refuse(pes[bad], starts[bad] + block.offset, counts[bad], room[bad])
        good &= self.known.known[inside]
        pieces = walk.Pieces(starts[good] + _COUNT_BYTES, ends[good], counts[good],
                             np.zeros_like(counts[good]))  # fmt: skip
        loaded = LoadedBlock(block, file, window, pieces, pes[good])
        yield Part(loaded, pieces.counts, self.known.closed[inside][good], self.layout)

    def parts(self, source: InputFile, part_bytes: int) -> Iterator[Part]:
        """Yield a long timeline in parts that end at SEB borders, up to where it is damaged."""
        block, file = self.block, self.known.file
        pe = file.pes[block.first_timeline : block.first_timeline + 1]
        total = self._claimed(source, pe)
        begin, skip, seb = block.offset, _COUNT_BYTES, 0
        while seb < total:
            fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
            window = self.buffer.take(min(part_bytes, block.end - begin))
            source.read_into(window, begin)
            sebs, used = walk.advance(
                window, skip, len(window), total - seb, self.layout.kernel, fault
            )
            more = fault_kind(fault).cut and begin + len(window) < block.end
            if more and sebs == 0 and part_bytes < MOST_SEB_BYTES:
                part_bytes *= 2
                continue
            part = Block(block.file, begin, begin + used, block.first_timeline, 1,
                         Cut(seb, sebs, seb + sebs == total))  # fmt: skip
            pieces = walk.Pieces(*(np.array([n]) for n in (skip, used, sebs, seb)))
            loaded = LoadedBlock(part, file, window, pieces, pe)
            yield Part(loaded, np.array([total]), np.zeros(1, dtype=np.bool_), self.layout)
            begin, skip, seb = part.end, 0, seb + sebs
            if fault[walk.FAULT_CODE] != walk.OK and not (more and sebs > 0):
                self._stop(fault, loaded, oversized_at=begin if more else None)
                return
        self._check_end(begin + skip, int(pe[0]), total)

    def _stop(self, fault: Ints, loaded: LoadedBlock, oversized_at: int | None) -> None:
        """Note why a long timeline cannot be walked on beyond a part."""
        seb = int(loaded.pieces.firsts[0] + loaded.pieces.counts[0])
        if oversized_at is None:
            fault[walk.FAULT_SEB] = seb
            add_fault(fault, loaded, self.checked)
        else:
            error = oversized(loaded.file, oversized_at, int(loaded.pes[0]), seb)
            self.checked.whole = False
            self.checked.findings.add_damage("count", error)

    def _claimed(self, source: InputFile, pe: Ints) -> int:
        """Return how many SEBs the long timeline says it has; −1 where that cannot be."""
        total = int(source.read(self.block.offset, _COUNT_BYTES).view(self._number)[0])
        room = self.block.size_bytes - _COUNT_BYTES
        if total >= 0 and total * self._smallest <= room:
            return total
        self._refuse(pe, np.array([self.block.offset]), np.array([total]), np.array([room]))
        return -1

    def _check_end(self, end: int, pe: int, total: int) -> None:
        if total >= 0 and end != self.block.end and self.known.closed[self.block.first_timeline]:
            place = Location(self.known.file.path, end, pe, total, "count")
            problem = walk.FAULTS[walk.BYTES_LEFT_OVER].problem.format(self.block.end - end)
            self.checked.findings.add("left-over", place, problem)

    def _refuse(self, pes: Ints, offsets: Ints, counts: Ints, room: Ints) -> None:
        """Note timelines whose counts cannot be."""
        self.checked.whole &= len(pes) == 0
        found = []
        for k in range(min(SHOWN, len(pes))):
            place = Location(self.known.file.path, int(offsets[k]), int(pes[k]), field="count")
            problem = f"{counts[k]} SEBs do not fit into the timeline's {room[k]} bytes"
            if room[k] < 0:
                problem = f"the timeline has {room[k] + _COUNT_BYTES} bytes, too few for a count"
            elif counts[k] < 0:
                problem = f"{counts[k]} SEBs cannot be"
            found.append(Finding(place, problem))
        self.checked.findings.add_many("count", len(pes), found)


def _trail(task: CheckTask, part: Part) -> CarriedState:
    """Return the trail of the timelines of a block."""
    longest = int(part.totals.max(initial=1))
    shift = max(0, (longest - 1).bit_length() - (MOST_LINKS - 1).bit_length())
    links = np.zeros(((longest - 1) >> shift) + 1, dtype=np.uint64)
    return CarriedState(links, shift, np.uint64(task.key), np.zeros(1, dtype=np.int64))


def _room(part: Part) -> Found:
    return Found(
        np.zeros(len(Violation), dtype=np.int64),
        np.zeros((len(Violation), EXAMPLES, 4), dtype=np.int64),
        np.zeros(len(part.totals), dtype=np.bool_),
        np.zeros(len(part.totals), dtype=np.int64),
    )


def _check_part(task: CheckTask, part: Part, trail: CarriedState, checked: Checked) -> None:
    """Run the kernel over a part, and bring what it found into words."""
    loaded, found = part.loaded, _room(part)
    records = Records(wanted=False, begins=np.zeros(len(loaded.pes) + 1, dtype=np.int64),
                              sebs=NO_RECORDS)  # fmt: skip
    if task.params is not None:
        records, count = check_params(task.params, loaded, part.totals, checked.findings)
        checked.records += count
    faults = np.zeros((len(loaded.pes), walk.FAULT_SIZE), dtype=np.int64)
    kernels.check(loaded.buffer, part.timelines, part.layout.kernel, task.machine, records, trail,
                  task.mail, found, faults)  # fmt: skip
    damaged = faults[:, walk.FAULT_CODE] != walk.OK
    checked.sebs += int(np.where(damaged, faults[:, walk.FAULT_SEB] - loaded.pieces.firsts,
                                 loaded.pieces.counts).sum())  # fmt: skip
    for fault in faults[damaged]:
        add_fault(fault, loaded, checked)
    _add_found(task, part, found, checked.findings, trail)
    disordered = np.flatnonzero(found.disordered & ~damaged)
    if len(disordered) and loaded.block.cut is None:
        waits = int(found.waits[disordered].sum())
        add_cycles(loaded, disordered, waits, part.layout, checked.findings)


def add_fault(fault: Ints, loaded: LoadedBlock, checked: Checked) -> None:
    """Add what made a timeline impossible to walk."""
    code = int(fault[walk.FAULT_CODE])
    kind = fault_kind(fault)
    checked.whole &= code == walk.BYTES_LEFT_OVER
    place = Location(
        loaded.file.path, loaded.block.offset + int(fault[walk.FAULT_AT]),
        int(loaded.pes[fault[walk.FAULT_PIECE]]), int(fault[walk.FAULT_SEB]), kind.field,
    )  # fmt: skip
    problem = kind.problem.format(int(fault[walk.FAULT_VALUE]))
    checked.findings.add(_FAULT_RULES.get(code, "count"), place, problem)


def _add_found(
    task: CheckTask, part: Part, found: Found, findings: Findings, trail: CarriedState | None = None
) -> None:
    """Add what the kernel counted, with words for what it noted."""
    for broken in Violation:
        count = int(found.counts[broken])
        shown = [
            _finding(task, part, broken, place, 0 if trail is None else trail.shift)
            for place in found.examples[broken, : min(count, EXAMPLES)].tolist()
        ]
        findings.add_many(RULE_OF[broken], count, shown)


def _finding(
    task: CheckTask, part: Part, broken: Violation, noted: list[int], shift: int
) -> Finding:
    loaded, s = part.loaded, task.summary
    piece, seb, at, item = noted
    at = _offset_of(part, piece, seb) if at < 0 else at
    where = Noted(loaded.buffer, part.layout, seb, int(part.totals[piece]), at, item, s.total_pes,
                  s.num_wth, s.nodes)  # fmt: skip
    offset = None if at < 0 else loaded.block.offset + at
    message = say(broken, where)
    if broken is Violation.DEPENDENCIES_DISAGREE and shift > 0:
        message += f", or those of one of the {(1 << shift) - 1} SEBs after it"
    return Finding(Location(loaded.file.path, offset, int(loaded.pes[piece]), seb), message)


def _offset_of(part: Part, piece: int, seb: int) -> int:
    """Return where a SEB stands in the buffer; −1 where it is not in this part."""
    pieces = part.loaded.pieces
    first = int(pieces.firsts[piece])
    if not first <= seb < first + pieces.counts[piece]:
        return -1
    fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
    _, at = walk.advance(part.loaded.buffer, int(pieces.starts[piece]), int(pieces.ends[piece]),
                         seb - first, part.layout.kernel, fault)  # fmt: skip
    return int(at)
