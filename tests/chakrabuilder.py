"""Chakra traces made byte by byte, without the code under test."""

import gzip
import struct
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from oracle import REFERENCE

COMP, SEND, RECV, COLL = 4, 5, 6, 7

FIELD_OF = {
    "double": 3, "float": 5, "int32": 7, "int64": 9, "uint32": 11, "uint64": 13, "sint32": 15,
    "sint64": 17, "fixed32": 19, "fixed64": 21, "sfixed32": 23, "sfixed64": 25, "bool": 27,
    "string": 29, "bytes": 31,
}  # fmt: skip
_PACKED = {"double": "<d", "float": "<f", "fixed32": "<I", "fixed64": "<Q", "sfixed32": "<i",
           "sfixed64": "<q"}  # fmt: skip


def varint(value: int) -> bytes:
    """A number in groups of seven bits."""
    value %= 1 << 64
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | bytes) -> bytes:
    """A number, or bytes after their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def group(number: int, *fields: bytes) -> bytes:
    """A group, protobuf's older form of a message: fields between two tags."""
    return b"".join((varint(number << 3 | 3), *fields, varint(number << 3 | 4)))


def groups(depth: int) -> bytes:
    """Groups within each other."""
    body = b""
    for number in range(depth):
        body = group(40 + number, body)
    return body


def attribute(name: str, kind: str, value: object) -> bytes:
    """An attribute of a node with one value, or a list for `KIND list`."""
    kind, _, is_list = kind.partition(" ")
    number = FIELD_OF[kind]
    if is_list:
        values = b"".join(_value(1, kind, element) for element in value)  # type: ignore[attr-defined]
        return field(10, field(1, name.encode()) + field(number + 1, values))
    return field(10, field(1, name.encode()) + _value(number, kind, value))


def _value(number: int, kind: str, value: object) -> bytes:
    if kind in _PACKED:
        packed = struct.pack(_PACKED[kind], value)
        return varint(number << 3 | (1 if len(packed) == 8 else 5)) + packed
    if isinstance(value, str | bytes):
        return field(number, value.encode() if isinstance(value, str) else value)
    assert isinstance(value, int)
    return field(number, value * 2 if kind.startswith("sint") and value >= 0 else value)


def node(
    number: int,
    name: str = "aten::mm",
    duration: int = 10,
    *,
    kind: int = COMP,
    deps: Iterable[int] = (),
    control: Iterable[int] = (),
    start: int = 0,
    shapes: str = "",
    attributes: Mapping[str, tuple[str, object]] | None = None,
    extra: bytes = b"",
) -> bytes:
    """A node as protobuf writes it: fields of value 0 are left out."""
    body = b"".join(
        field(place, value)
        for place, value in ((1, number), (2, name.encode()), (3, kind))
        if value
    )
    for place, ids in ((4, control), (5, deps)):
        if packed := b"".join(varint(dep) for dep in ids):
            body += field(place, packed)
    body += b"".join(field(place, value) for place, value in ((6, start), (7, duration)) if value)
    if shapes:
        body += field(8, field(2, shapes.encode()))
    for key, (type_, value) in (attributes or {}).items():
        body += attribute(key, type_, value)
    return body + extra


METADATA = field(2, field(1, b"schema") + field(29, b"1.0.1"))


def trace(nodes: Iterable[bytes], metadata: bytes = METADATA) -> bytes:
    """A file."""
    return b"".join(varint(len(record)) + record for record in (metadata, *nodes))


def write_traces(
    folder: Path, ranks: Iterable[Iterable[bytes]], name: str = "run", *, packed: bool = False
) -> Path:
    """Write the file of each rank into a new folder."""
    folder.mkdir(parents=True)
    for rank, nodes in enumerate(ranks):
        data = trace(nodes)
        path = folder / f"{name}.{rank}.et"
        path.write_bytes(gzip.compress(data, mtime=0) if packed else data)
    return folder


def unpacked(name: str, folder: Path) -> Path:
    """The files of a reference archive, in a folder."""
    archive = REFERENCE / "chakra" / name
    if not archive.exists():
        pytest.skip(f"no reference data: {archive}")
    with tarfile.open(archive) as tar:
        for member in tar:
            if (file := tar.extractfile(member)) is not None:
                path = folder / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.read())
    return folder
