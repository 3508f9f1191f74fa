"""What precedes the timelines: the summary `bgTrace`, and the heads of the files `bgTraceN`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import construct
import numpy as np
from msgspec import Struct

from rewritelog.arrays import Flags, Ints
from rewritelog.errors import DamagedLogError, Location
from rewritelog.formats.bgtrace.declaration import (
    COUNT_BYTES,
    INTEGER_FORMATS,
    LOG_VERSIONS,
    MACHINE_HEADER_BYTES,
    MAGIC,
    ByteOrder,
    FaultHandler,
    MachineHeader,
    format_names,
    number_type,
    raise_first,
    summary_struct,
    timeline_file_struct,
)
from rewritelog.formats.files import InputFile
from rewritelog.text import count_text

SUMMARY_NAME = "bgTrace"
"""The name of the file by which bgTrace logs are known."""

_ABSENT = {"log_version": 0, "thread_entry_point": -1}
"""The values of fields that older summaries lack."""

LOG_VERSION_AT = 52
_LENGTHS = (LOG_VERSION_AT, LOG_VERSION_AT + COUNT_BYTES, LOG_VERSION_AT + 2 * COUNT_BYTES)
_REQUIRED_SIZES = {"short_size": 2, "int_size": 4, "double_size": 8}


class Summary(Struct, frozen=True):
    """The contents of `bgTrace`: the emulated machine, the number of files and the log version."""

    order: ByteOrder
    header_version: int
    total_pes: int
    x: int
    y: int
    z: int
    """The number of nodes in each dimension."""
    num_cth: int
    """The number of communication threads per node."""
    num_wth: int
    """The number of worker threads per node."""
    stack_size: int
    timing_method: int
    files: int
    """The number of timeline files."""
    log_version: int
    """0 if the file has no such field."""
    thread_entry_point: int
    """−1 if the file has no such field."""

    @property
    def nodes(self) -> int:
        """The number of emulated nodes."""
        return self.x * self.y * self.z

    def timeline_of(self, pes: Any) -> tuple[Any, Any]:
        """Return the index of the file with a PE's timeline, and the timeline's index in it.

        `pes` is one PE or an array of PEs.
        """
        node, worker = divmod(pes, self.num_wth)
        return node % self.files, node // self.files * self.num_wth + worker


def byte_order(head: bytes, path: Path) -> tuple[ByteOrder, int]:
    """Return the byte order and the version of the machine header at the start of a file.

    Raise `DamagedLogError` naming the field if the header is invalid or not supported.
    """

    def fault(problem: str, field: str | None = None, at: int | None = None) -> DamagedLogError:
        return DamagedLogError(Location(path, at, field=field), problem, "machine-header")

    if len(head) < MACHINE_HEADER_BYTES:
        raise fault("the machine header is truncated", at=len(head))
    if head[: len(MAGIC)] != MAGIC:
        raise fault(f"not a bgTrace file: it begins with {head[:4].hex(' ')}", "magic", 0)
    try:
        header = MachineHeader.parse(head[:MACHINE_HEADER_BYTES])
    except construct.ConstructError as error:
        problem = f"unknown version {head[4]}; versions 0 and 1 are known"
        raise fault(problem, "header version", len(MAGIC)) from error
    sizes = header.sizes
    for name, required in _REQUIRED_SIZES.items():
        if sizes[name] != required:
            raise fault(f"{sizes[name]} bytes instead of {required}", name.replace("_", " "))
    orders = {number: order for order, number in INTEGER_FORMATS.items()}
    if sizes.integer_format not in orders:
        problem = f"{sizes.integer_format} is neither 0 (big-endian) nor 1 (little-endian)"
        raise fault(problem, "integer format")
    if sizes.float_format != sizes.integer_format:
        raise fault("floats and integers differ in byte order", "float format")
    return orders[sizes.integer_format], header.header_version


def read_summary(path: Path) -> Summary:
    """Read a `bgTrace` file; raise `DamagedLogError` for the first of its `summary_faults`."""
    summary = parse_summary(path)
    raise_first(summary_faults(summary, path))
    return summary


def parse_summary(path: Path) -> Summary:
    """Read a `bgTrace` file without checking its values.

    Raise `DamagedLogError` if its length or its machine header is invalid, and `RewriteLogError` if
    it cannot be read.
    """
    with InputFile(path) as file:
        head = file.read(0, min(file.size_bytes, max(_LENGTHS) + 1)).tobytes()
        length = file.size_bytes
    order, header_version = byte_order(head, path)
    if length not in _LENGTHS:
        location = Location(path, min(length, max(_LENGTHS)))
        problem = f"the summary has {length} bytes instead of 52, 56 or 60"
        raise DamagedLogError(location, problem, "summary")
    parsed = summary_struct(order).parse(head)
    fields = {name: parsed[name] for name in parsed if name not in ("machine", "_io", None)}
    for name, absent in _ABSENT.items():
        fields[name] = absent if fields[name] is None else fields[name]
    return Summary(order=order, header_version=header_version, **fields)


def summary_faults(summary: Summary, path: Path) -> Iterator[DamagedLogError]:
    """Yield the faults of a summary, the fields on which others depend first."""
    names = format_names("summary")
    for name in ("x", "y", "z", "num_wth", "files"):
        value = getattr(summary, name)
        if value < 1:
            location = Location(path, field=names[name])
            yield DamagedLogError(location, f"{value} is not positive", "summary")
    if summary.total_pes != summary.nodes * summary.num_wth:
        workers = count_text(summary.num_wth, "worker thread")
        shape = f"{summary.x} × {summary.y} × {summary.z} nodes × {workers}"
        yield DamagedLogError(
            Location(path, field=names["total_pes"]),
            f"{count_text(summary.total_pes, 'PE')}, but {shape} are "
            f"{summary.nodes * summary.num_wth}",
            "pe-count",
        )
    if summary.log_version not in LOG_VERSIONS:
        yield DamagedLogError(
            Location(path, LOG_VERSION_AT, field="log version"),
            f"unknown version {summary.log_version}; versions {LOG_VERSIONS[0]} to "
            f"{LOG_VERSIONS[-1]} are known",
            "log-version",
        )


OFFSET_RANGE = 1 << 32
"""Offsets are recorded modulo this, so that a timeline of this size would look empty."""
_OFFSETS_AT = MACHINE_HEADER_BYTES + COUNT_BYTES
"""The file offset of the list of timeline offsets."""


def timeline_file_head(machine: Any, begins: Iterable[int], order: ByteOrder) -> bytes:
    """Return the head of a timeline file with a machine header and the offsets of timelines."""
    offsets = [begin % OFFSET_RANGE for begin in begins]
    fields = {"machine": machine, "count": len(offsets), "offsets": offsets}
    return bytes(timeline_file_struct(order).build(fields))


class TimelineFile(Struct, frozen=True):
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

    @property
    def closed(self) -> Flags:
        """Whether the end of each timeline is known: the beginning of the next one."""
        return np.append(self.known[1:], True)

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
    steps = np.diff(offsets) % OFFSET_RANGE
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
    if size_bytes >= OFFSET_RANGE:
        begins[1:] = first + np.cumsum(np.diff(begins) % OFFSET_RANGE)
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
