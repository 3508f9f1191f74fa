"""The summary file `bgTrace`, and the machine header at the start of every file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import construct

from rewritelog.errors import DamagedLogError, Location
from rewritelog.formats.bgtrace import ByteOrder
from rewritelog.formats.bgtrace.declaration import (
    COUNT_BYTES,
    INTEGER_FORMATS,
    LOG_VERSIONS,
    MACHINE_HEADER_BYTES,
    MAGIC,
    MachineHeader,
    summary_struct,
)
from rewritelog.formats.bgtrace.faults import raise_first
from rewritelog.formats.files import InputFile

_ABSENT = {"log_version": 0, "thread_entry_point": -1}
"""The values of fields that older summaries lack."""

LOG_VERSION_AT = 52
_LENGTHS = (LOG_VERSION_AT, LOG_VERSION_AT + COUNT_BYTES, LOG_VERSION_AT + 2 * COUNT_BYTES)
_REQUIRED_SIZES = {"short_size": 2, "int_size": 4, "double_size": 8}


@dataclass(frozen=True)
class Summary:
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
    for name in ("total_pes", "x", "y", "z", "num_wth", "files"):
        value = getattr(summary, name)
        if value < 1:
            rule = "pe-count" if name == "total_pes" else "summary"
            yield DamagedLogError(Location(path, field=name), f"{value} is not positive", rule)
    if summary.total_pes != summary.nodes * summary.num_wth:
        shape = f"{summary.x} × {summary.y} × {summary.z} nodes × {summary.num_wth} worker threads"
        yield DamagedLogError(
            Location(path, field="total PEs"),
            f"{summary.total_pes} PEs, but {shape} are {summary.nodes * summary.num_wth}",
            "pe-count",
        )
    if summary.log_version not in LOG_VERSIONS:
        yield DamagedLogError(
            Location(path, LOG_VERSION_AT, field="log version"),
            f"unknown version {summary.log_version}; versions {LOG_VERSIONS[0]} to "
            f"{LOG_VERSIONS[-1]} are known",
            "log-version",
        )
