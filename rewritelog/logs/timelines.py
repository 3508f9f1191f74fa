"""The timeline files `bgTraceN`: which PE's timeline stands where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rewritelog.errors import DamagedLogError, Location
from rewritelog.format.declaration import MACHINE_HEADER_BYTES, PRIMITIVES
from rewritelog.logs.files import InputFile
from rewritelog.logs.summary import Summary, byte_order

_WRAP = 1 << 32
_COUNT_BYTES = int(PRIMITIVES["little"].i4.sizeof())


@dataclass(frozen=True)
class TimelineFile:
    """One `bgTraceN` and the places of its timelines."""

    path: Path
    index: int
    """N of `bgTraceN`."""
    size_bytes: int
    pes: NDArray[np.int64]
    """The PE of each timeline, in the file's order."""
    borders: NDArray[np.int64]
    """Where each timeline begins, and the file's end; shape (timelines + 1,)."""

    @property
    def head_bytes(self) -> int:
        """The size of what stands before the first timeline."""
        return MACHINE_HEADER_BYTES + _COUNT_BYTES * (1 + len(self.pes))


def pe_count_of_file(summary: Summary, index: int) -> int:
    """Return how many PEs have their timelines in file `index`; a summary may claim any number."""
    return max(0, -((index - summary.nodes) // summary.files)) * summary.num_wth


def pes_of_file(summary: Summary, index: int, most: int | None = None) -> NDArray[np.int64]:
    """Return the PEs whose timelines stand in file `index`, in the file's order, or the first."""
    count = pe_count_of_file(summary, index)
    slots = np.arange(count if most is None else min(count, most), dtype=np.int64)
    nodes = index + slots // summary.num_wth * summary.files
    return nodes * summary.num_wth + slots % summary.num_wth


def read_timeline_file(path: Path, index: int, summary: Summary) -> TimelineFile:
    """Read the head of a timeline file and find its timelines.

    Raise `DamagedLogError` where the head does not agree with the summary or with the file's size.
    """
    with InputFile(path) as file:
        head = file.read(0, min(file.size_bytes, MACHINE_HEADER_BYTES)).tobytes()
        order, _ = byte_order(head, path)
        if order != summary.order:
            raise DamagedLogError(
                Location(path, field="integer format"),
                f"{order}-endian, but the summary is {summary.order}-endian",
            )
        number = np.dtype("<u4" if order == "little" else ">u4")
        count = int(file.read(MACHINE_HEADER_BYTES, number.itemsize).view(number)[0])
        if count != pe_count_of_file(summary, index):
            raise DamagedLogError(
                Location(path, MACHINE_HEADER_BYTES, field="number of timelines"),
                f"{count} timelines, but the summary puts {pe_count_of_file(summary, index)} PEs "
                "into this file",
            )
        start = MACHINE_HEADER_BYTES + number.itemsize
        offsets = file.read(start, count * number.itemsize).view(number).astype(np.int64)
        pes = pes_of_file(summary, index)
        borders = true_borders(offsets, start + count * number.itemsize, file.size_bytes, path, pes)
        return TimelineFile(path, index, file.size_bytes, pes, borders)


def true_borders(
    offsets: NDArray[np.int64], first: int, size_bytes: int, path: Path, pes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return where the timelines begin and end, given their offsets modulo 2³².

    The timelines are contiguous from byte `first`, in order and each shorter than 4 GiB, so each
    begins at the smallest place after the one before it that its offset allows. Raise
    `DamagedLogError` where that cannot be.
    """
    if len(offsets) == 0:
        if size_bytes != first:
            problem = f"{size_bytes - first} bytes after the last timeline"
            raise DamagedLogError(Location(path, first), problem)
        return np.array([first], dtype=np.int64)
    steps = np.diff(offsets) % _WRAP
    borders = np.concatenate([[first], first + np.cumsum(steps), [size_bytes]]).astype(np.int64)
    places = borders[:-1]
    room_needed = _COUNT_BYTES * np.arange(len(offsets), 0, -1)
    wrong = places + room_needed > size_bytes
    wrong[1:] |= np.diff(places) < _COUNT_BYTES
    wrong[0] |= offsets[0] != first
    if wrong.any():
        stray = int(np.argmax(wrong))
        at = first - _COUNT_BYTES * (len(offsets) - stray)
        raise DamagedLogError(
            Location(path, at, int(pes[stray]), field="offset"),
            f"{offsets[stray]} is no place of a timeline: they stand one after the other from "
            f"byte {first} to the file's end at {size_bytes}",
        )
    return borders
