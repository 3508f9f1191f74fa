"""The timeline files `bgTraceN`: their heads, and where the timeline of each PE is."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rewritelog.arrays import Flags, Ints
from rewritelog.errors import DamagedLogError, Location
from rewritelog.formats.bgtrace import ByteOrder, number_type
from rewritelog.formats.bgtrace.declaration import COUNT_BYTES, MACHINE_HEADER_BYTES
from rewritelog.formats.bgtrace.faults import FaultHandler, raise_first
from rewritelog.formats.bgtrace.summary import Summary, byte_order
from rewritelog.formats.files import InputFile
from rewritelog.text import count_text

_WRAP = 1 << 32
_OFFSETS_AT = MACHINE_HEADER_BYTES + COUNT_BYTES
"""The file offset of the list of timeline offsets."""


@dataclass(frozen=True)
class TimelineFile:
    """One `bgTraceN`, with the offsets of its timelines from its head."""

    path: Path
    index: int
    """N of `bgTraceN`."""
    size_bytes: int
    order: ByteOrder
    machine: bytes
    """The machine header; empty if it is invalid."""
    pes: Ints
    """The PE of each timeline, in the order of the file."""
    borders: Ints
    """The offset of each timeline, and the size of the file; shape (timelines + 1,)."""
    known: Flags
    """Whether the offset of each timeline is valid; all are in an undamaged file."""
    closed: Flags
    """Whether the end of each timeline is known."""

    @property
    def head_bytes(self) -> int:
        """The size of the head, which precedes the first timeline."""
        return _OFFSETS_AT + COUNT_BYTES * len(self.pes)


def pe_count_of_file(summary: Summary, index: int) -> int:
    """Return the number of PEs with timelines in file `index`, according to the summary."""
    return max(0, -((index - summary.nodes) // summary.files)) * summary.num_wth


def pes_of_file(summary: Summary, index: int, most: int | None = None) -> Ints:
    """Return the PEs with timelines in file `index`, in the order of the file; at most `most`."""
    count = pe_count_of_file(summary, index)
    slots = np.arange(count if most is None else min(count, most), dtype=np.int64)
    nodes = index + slots // summary.num_wth * summary.files
    return nodes * summary.num_wth + slots % summary.num_wth


def read_timeline_file(
    path: Path, index: int, summary: Summary, on_faults: FaultHandler = raise_first
) -> TimelineFile:
    """Read the head of a timeline file and find its timelines.

    Faults are invalid fields, and contradictions to the summary; if the handler tolerates them, as
    many timelines as possible are found.
    """
    with InputFile(path) as file:
        order, machine = _read_machine(file, summary, on_faults)
        offsets = _read_offsets(file, order, index, summary, on_faults)
    pes = pes_of_file(summary, index, len(offsets))
    first = _OFFSETS_AT + COUNT_BYTES * len(offsets)
    borders, known = timeline_borders(offsets, first, file.size_bytes)
    _report_offsets(path, offsets, pes, borders, known, on_faults)
    return TimelineFile(
        path=path,
        index=index,
        size_bytes=file.size_bytes,
        order=order,
        machine=machine,
        pes=pes,
        borders=borders[: len(pes) + 1],
        known=known[: len(pes)],
        closed=np.append(known[1:], True)[: len(pes)],
    )


def _read_machine(
    file: InputFile, summary: Summary, on_faults: FaultHandler
) -> tuple[ByteOrder, bytes]:
    """Return the byte order, the summary's if the file's is invalid, and the machine header."""
    machine = file.read(0, min(file.size_bytes, MACHINE_HEADER_BYTES)).tobytes()
    try:
        order, _ = byte_order(machine, file.path)
    except DamagedLogError as error:
        on_faults([error])
        return summary.order, b""
    if order != summary.order:
        location = Location(file.path, field="integer format")
        problem = f"{order}-endian, but the summary is {summary.order}-endian"
        on_faults([DamagedLogError(location, problem, "byte-order")])
    return order, machine


def _report_offsets(
    path: Path, offsets: Ints, pes: Ints, borders: Ints, known: Flags, on_faults: FaultHandler
) -> None:
    invalid = ~known
    invalid[:1] |= offsets[:1] != borders[0]
    contiguous = f"the timelines are contiguous from byte {borders[0]} to byte {borders[-1]}"

    def fault(k: int) -> DamagedLogError:
        pe = int(pes[k]) if k < len(pes) else None
        location = Location(path, _OFFSETS_AT + COUNT_BYTES * k, pe, field="offset")
        problem = f"invalid timeline offset {offsets[k]}: {contiguous}"
        return DamagedLogError(location, problem, "offset")

    on_faults(map(fault, np.flatnonzero(invalid).tolist()), int(np.count_nonzero(invalid)))


def _read_offsets(
    file: InputFile, order: ByteOrder, index: int, summary: Summary, on_faults: FaultHandler
) -> Ints:
    """Return the offsets as recorded in the file; an empty array if the list is damaged."""
    none = np.zeros(0, dtype=np.int64)
    number = number_type(order, "u4")
    location = Location(file.path, MACHINE_HEADER_BYTES, field="number of timelines")
    if file.size_bytes < _OFFSETS_AT:
        if file.size_bytes >= MACHINE_HEADER_BYTES:
            problem = "the file ends within its header"
            on_faults([DamagedLogError(location, problem, "cut-off")])
        return none
    count = int(file.read(MACHINE_HEADER_BYTES, COUNT_BYTES).view(number)[0])
    expected = pe_count_of_file(summary, index)
    if count != expected:
        pes_expected = count_text(expected, "PE")
        problem = (
            f"{count_text(count, 'timeline')}, but the summary puts {pes_expected} into this file"
        )
        on_faults([DamagedLogError(location, problem, "timeline-count")])
        if file.size_bytes >= _OFFSETS_AT + COUNT_BYTES:
            first = int(file.read(_OFFSETS_AT, COUNT_BYTES).view(number)[0])
            count = expected if first == _OFFSETS_AT + COUNT_BYTES * expected else count
    left = file.size_bytes - _OFFSETS_AT
    if count > left // COUNT_BYTES:
        problem = f"{count} offsets do not fit in the file"
        on_faults([DamagedLogError(location, problem, "cut-off")])
        return none
    if count == 0 and left > 0:
        location = Location(file.path, _OFFSETS_AT)
        problem = f"{left} bytes after the last timeline"
        on_faults([DamagedLogError(location, problem, "left-over")])
    return file.read(_OFFSETS_AT, count * COUNT_BYTES).view(number).astype(np.int64)


def timeline_borders(offsets: Ints, first: int, size_bytes: int) -> tuple[Ints, Flags]:
    """Return the borders of timelines, given their offsets modulo 2³², and which are valid.

    The timelines are contiguous from byte `first`, in order and each shorter than 4 GiB. Therefore
    each one begins at the lowest byte after the beginning of the previous one that is equal to its
    offset modulo 2³². A timeline with an invalid offset, except the first, gets no bytes.
    """
    count = len(offsets)
    steps = np.diff(offsets) % _WRAP
    borders = np.concatenate([[first], first + np.cumsum(steps), [size_bytes]]).astype(np.int64)
    if count == 0:
        return borders[:1], np.zeros(0, dtype=np.bool_)
    begins = borders[:-1]
    valid = begins + COUNT_BYTES * np.arange(count, 0, -1) <= size_bytes
    valid[1:] &= np.diff(begins) >= COUNT_BYTES
    if valid.all() and offsets[0] == first:
        return borders, valid
    return _damaged_borders(offsets, first, size_bytes)


def _damaged_borders(offsets: Ints, first: int, size_bytes: int) -> tuple[Ints, Flags]:
    """Return borders for offsets that are not all valid, and which of them are considered valid.

    In a file above 4 GiB wrapped offsets are unwrapped. A longest increasing subsequence counts as
    valid.
    """
    begins = offsets.copy()
    begins[0] = first
    if size_bytes >= _WRAP:
        begins[1:] = first + np.cumsum(np.diff(begins) % _WRAP)
    inside = begins + COUNT_BYTES <= size_bytes
    inside[1:] &= begins[1:] >= first + COUNT_BYTES
    known = np.zeros(len(offsets), dtype=np.bool_)
    known[np.flatnonzero(inside)[_longest_increasing(begins[inside])]] = True
    borders = np.append(np.where(known, begins, size_bytes), size_bytes)
    borders = np.minimum.accumulate(borders[::-1])[::-1]
    borders[0] = first
    return borders, known


def _longest_increasing(values: Ints) -> list[int]:
    """Return the indices of a longest strictly increasing subsequence (patience sorting)."""
    tails: list[int] = []
    tail_indices: list[int] = []
    before = [-1] * len(values)
    for k, value in enumerate(values.tolist()):
        at = bisect_left(tails, value)
        before[k] = tail_indices[at - 1] if at else -1
        tails[at : at + 1] = [value]
        tail_indices[at : at + 1] = [k]
    chosen = []
    k = tail_indices[-1] if tail_indices else -1
    while k >= 0:
        chosen.append(k)
        k = before[k]
    return chosen[::-1]
