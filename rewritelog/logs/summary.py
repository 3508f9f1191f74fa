"""The summary file `bgTrace`, and the machine header that every file starts with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import construct

from rewritelog.errors import DamagedLogError, Location
from rewritelog.format import ByteOrder
from rewritelog.format.declaration import (
    LOG_VERSIONS,
    MACHINE_HEADER_BYTES,
    MAGIC,
    MachineHeader,
    summary_struct,
)
from rewritelog.logs.files import InputFile

_LENGTHS = {52: "no log version", 56: "no thread entry point", 60: "whole"}
_REQUIRED_SIZES = {"short_size": 2, "int_size": 4, "double_size": 8}
_ORDERS: dict[int, ByteOrder] = {0: "big", 1: "little"}


@dataclass(frozen=True)
class Summary:
    """What `bgTrace` says of the emulated machine and of the log set."""

    order: ByteOrder
    header_version: int
    total_pes: int
    x: int
    y: int
    z: int
    """Nodes in each direction."""
    num_cth: int
    """Communication threads a node."""
    num_wth: int
    """Worker threads a node."""
    stack_size: int
    timing_method: int
    files: int
    """Number of timeline files."""
    log_version: int
    """0 where the file does not say."""
    thread_entry_point: int
    """−1 where the file does not say."""

    @property
    def nodes(self) -> int:
        """The number of emulated nodes."""
        return self.x * self.y * self.z


def byte_order(head: bytes, path: Path) -> tuple[ByteOrder, int]:
    """Return the byte order and the version of the machine header that a file starts with.

    Raise `DamagedLogError` that names the field for a header that nobody has written.
    """
    if len(head) < MACHINE_HEADER_BYTES:
        raise DamagedLogError(Location(path, len(head)), "the machine header is cut off")
    if head[: len(MAGIC)] != MAGIC:
        place = Location(path, 0, field="magic")
        raise DamagedLogError(place, f"not a bgTrace file: it begins with {head[:4].hex(' ')}")
    try:
        header = MachineHeader.parse(head[:MACHINE_HEADER_BYTES])
    except construct.ConstructError as error:
        place = Location(path, len(MAGIC), field="header version")
        raise DamagedLogError(place, f"version {head[4]} is unknown, only 0 and 1 are") from error
    sizes = header.sizes
    for name, wanted in _REQUIRED_SIZES.items():
        if sizes[name] != wanted:
            place = Location(path, field=name.replace("_", " "))
            raise DamagedLogError(place, f"{sizes[name]} bytes; every known log has {wanted}")
    if sizes.integer_format not in _ORDERS:
        place = Location(path, field="integer format")
        raise DamagedLogError(place, f"{sizes.integer_format} is neither 0 (big) nor 1 (little)")
    if sizes.float_format != sizes.integer_format:
        place = Location(path, field="float format")
        raise DamagedLogError(place, "floats are in another byte order than integers")
    return _ORDERS[sizes.integer_format], header.header_version


def read_summary(path: Path) -> Summary:
    """Read and check a `bgTrace` file.

    Raise `DamagedLogError` naming the field for one that cannot be, `RewriteLogError` for one that
    cannot be read.
    """
    summary = parse_summary(path)
    for fault in summary_faults(summary, path):
        raise fault
    return summary


def parse_summary(path: Path) -> Summary:
    """Read a `bgTrace` file whose fields may be anything; raise as `read_summary` does."""
    with InputFile(path) as file:
        head = file.read(0, min(file.size_bytes, max(_LENGTHS) + 1)).tobytes()
        length = file.size_bytes
    order, header_version = byte_order(head, path)
    if length not in _LENGTHS:
        raise DamagedLogError(
            Location(path, min(length, max(_LENGTHS))),
            f"a summary has 52, 56 or 60 bytes, and this file has {length}",
        )
    parsed = summary_struct(order).parse(head)
    return Summary(
        order=order,
        header_version=header_version,
        log_version=0 if parsed.log_version is None else parsed.log_version,
        thread_entry_point=-1 if parsed.thread_entry_point is None else parsed.thread_entry_point,
        **{
            name: parsed[name]
            for name in (
                "total_pes", "x", "y", "z", "num_cth", "num_wth", "stack_size", "timing_method",
                "files",
            )
        },
    )  # fmt: skip


def summary_faults(summary: Summary, path: Path) -> Iterator[DamagedLogError]:
    """Yield what cannot be of a summary, the fields that nothing can be done without first."""
    for name in ("total_pes", "x", "y", "z", "num_wth", "files"):
        value = getattr(summary, name)
        if value < 1:
            yield DamagedLogError(Location(path, field=name), f"{value} cannot be")
    if summary.total_pes != summary.nodes * summary.num_wth:
        shape = f"{summary.x} × {summary.y} × {summary.z} nodes × {summary.num_wth} worker threads"
        yield DamagedLogError(
            Location(path, field="total PEs"),
            f"{summary.total_pes} PEs, but {shape} are {summary.nodes * summary.num_wth}",
        )
    if summary.log_version not in LOG_VERSIONS:
        yield DamagedLogError(
            Location(path, 52, field="log version"),
            f"version {summary.log_version} is unknown; {LOG_VERSIONS[0]} to "
            f"{LOG_VERSIONS[-1]} are known",
        )
