"""Chakra execution traces: a file of protobuf messages for each rank, read in parts and rewritten.

A file is a sequence of messages, each after its length as a varint: the metadata, then a message
for each node. `core/nodes.c` declares their fields and walks them.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rewritelog.arrays import Bytes, Floats, Ints, Keys, Table, Texts, numbered
from rewritelog.core import NumberedTexts, core
from rewritelog.errors import DamagedLogError, Location, RewriteLogError
from rewritelog.formats.files import InputFile, paths_in
from rewritelog.formats.traces import COMMUNICATION, Part, Traces, Unit
from rewritelog.text import bytes_text, count_text

PART_BYTES = 8 << 20
"""The bytes that are read at a time; a part has no more, unless one node has."""

_PART_NODES = 1 << 15
_FILE = re.compile(r"(?P<name>.+)\.(?P<rank>[0-9]+)\.et(\.gz)?", re.DOTALL)
_ENDS = (".et", ".et.gz")
_MOST_RANK = (1 << 31) - 1

NODE_TYPES = (
    "INVALID", "METADATA", "MEM_LOAD", "MEM_STORE", "COMP", "SEND", "RECV", "COLL", "UNKNOWN",
)  # fmt: skip
"""The types of nodes, by the values of the field; the last stands for all other values."""

PROBLEMS: dict[int, str] = {
    core.MESSAGE_CUT: "the file ends within a message",
    core.MESSAGE_TOO_LONG: (
        f"a message of more than {bytes_text(core.MOST_MESSAGE_BYTES)}: the file is damaged, or "
        "is no Chakra trace"
    ),
    core.MESSAGE_EMPTY: "an empty message: a node has fields",
    core.FIELD_DAMAGED: "a field is damaged, or reaches beyond its message",
    core.FIELD_TYPE: "the field with the number {} has another type than the schema says",
}
"""A message for each fault code of the compiled core; `{}` is its value."""

_PER_S = 1e6
_MOST_LANE = 2.0**53
"""Larger thread numbers, which float64 rounds, are cut to this; those of pthreads are addresses."""
_MOST_INSERTED = 20
"""The most bytes by which a new duration makes a node longer."""


_COMMON = (
    "is_cpu_op", "stream", "tid", "pg_name", "num_ops", "tensor_size", *COMMUNICATION,
)  # fmt: skip


class NodePart(Part):
    """Consecutive nodes of a file, with their bytes."""

    def __init__(self, unit: Unit, first: int, head: Bytes, buffer: Bytes, nodes: Table) -> None:
        super().__init__(unit, first, head)
        self.buffer = buffer
        self.nodes = nodes
        """The core's struct `trace_node` for each node."""
        self._attributes: dict[str, Table] = {}

    @property
    def size_bytes(self) -> int:
        """The bytes of the part, unpacked."""
        return len(self.head) + int((self.nodes["end"] - self.nodes["at"]).sum())

    def made(self, name: str) -> Any:
        """Return a column that `_COLUMNS` makes, or else a numeric attribute."""
        make = _COLUMNS.get(name)
        return self.number(name) if make is None else make(self)

    def texts(self, name: str, spans: Table) -> Texts:
        """Return a column of texts.

        The fields `{name}at` and `{name}bytes` of `spans` are the offset and length of each text.
        """
        at, lengths = (np.ascontiguousarray(spans[f"{name}{of}"]) for of in ("at", "bytes"))
        distinct = NumberedTexts.of(self.buffer, at, lengths)
        places = zip(at[distinct.first].tolist(), lengths[distinct.first].tolist(), strict=True)
        raw = self.buffer.data
        texts, same = numbered(
            str(raw[begin : begin + length], "utf-8", "backslashreplace")
            for begin, length in places
        )
        return Texts(texts, same[distinct.numbers])

    def attributes(self, name: str) -> Table:
        """Return the core's struct `attribute` for each node; common ones are read together."""
        if name not in self._attributes:
            names = _COMMON if name in _COMMON else (name,)
            encoded = [text.encode() for text in names]
            texts = np.frombuffer(b"".join(encoded), dtype=np.uint8)
            ends = np.cumsum([*map(len, encoded)])
            attributes = np.empty((len(self), len(names)), dtype=core.structs["attribute"])
            core.read_attributes(self.buffer, self.nodes, texts, ends, attributes)
            self._attributes |= zip(names, attributes.T, strict=True)
        return self._attributes[name]

    def number(self, name: str) -> Floats:
        """Return a numeric attribute, NaN for nodes without it."""
        numbers: Floats = self.attributes(name)["number"].copy()
        return numbers

    def written(self, duration_us: Keys) -> Bytes:
        """Return the bytes of the part with new durations."""
        head = len(self.head)
        most = head + len(self.buffer) + _MOST_INSERTED * len(self.nodes)
        room = np.empty(most, dtype=np.uint8)
        room[:head] = self.head
        size: int = core.write_nodes(self.buffer, self.nodes, duration_us, room[head:])
        return room[: head + size]


def _types(part: NodePart) -> Ints:
    kind, last = part.nodes["type"], len(NODE_TYPES) - 1
    return np.where((kind < 0) | (kind > last), last, kind)


def _lanes(part: NodePart) -> Ints:
    """Return the stream of each node, or its thread on the host or without a stream; 0 for none."""
    stream, thread = part.number("stream"), part.number("tid")
    lane: Floats = np.where(np.isnan(stream) | part["on_host"], thread, stream)
    return np.clip(np.nan_to_num(lane), -_MOST_LANE, _MOST_LANE).astype(np.int64)


def _filled(part: NodePart, fill: Callable[..., None], length: int) -> Keys:
    """Return words that a function of the core fills in."""
    words = np.empty(length, dtype=np.uint64)
    fill(part.buffer, part.nodes, words)
    return words


_COLUMNS: dict[str, Callable[[NodePart], Any]] = {
    "id": lambda part: part.nodes["id"].copy(),
    "type": _types,
    "name": lambda part: part.texts("name_", part.nodes),
    "duration_us": lambda part: part.nodes["duration_us"].copy(),
    "duration_s": lambda part: part.nodes["duration_us"] / _PER_S,
    "start_us": lambda part: part.nodes["start_us"].copy(),
    "shapes": lambda part: part.texts("shapes_", part.nodes),
    "on_host": lambda part: part.number("is_cpu_op") > 0,
    "lane": _lanes,
    "group": lambda part: part.texts("", part.attributes("pg_name")),
    "waits": lambda part: part.nodes["deps"].copy(),
    "data_waits": lambda part: part.nodes["data_deps"].copy(),
    "waited_for": lambda part: _filled(part, core.read_deps, int(part.nodes["deps"].sum())),
    "rest": lambda part: _filled(part, core.hash_nodes, len(part)),
}
"""The functions that make columns; all other columns are attributes."""


def _chunks(unit: Unit) -> Iterator[Bytes]:
    """Yield the bytes of a unit, unpacked, `PART_BYTES` at a time.

    Raise `DamagedLogError` if its size has changed, and `_GzipError`.
    """
    try:
        with InputFile(unit.path) as file, file.stream() as raw:
            file.check_size(unit.size_bytes)
            chunks = _unpacked(raw) if unit.is_packed else iter(partial(raw.read, PART_BYTES), b"")
            for chunk in chunks:
                yield np.frombuffer(chunk, dtype=np.uint8)
    except OSError as error:
        raise RewriteLogError(f"{unit.path}: cannot be read: {error.strerror}") from error


class _GzipError(Exception):
    """Gzip data are damaged, or end too early."""


def _unpacked(raw: BinaryIO) -> Iterator[bytearray]:
    """Yield unpacked bytes, before a `_GzipError` those that came before it.

    If data are cut, these are all; of damaged ones, what the last call has unpacked is lost.
    """
    chunk = bytearray()
    try:
        packed = gzip.GzipFile(fileobj=raw)
        while piece := packed.read1(PART_BYTES - len(chunk)):
            chunk += piece
            if len(chunk) == PART_BYTES:
                yield chunk
                chunk = bytearray()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        yield chunk
        raise _GzipError(str(error)) from error
    yield chunk


class ChakraTraces(Traces):
    """Chakra execution traces, the file of each rank being a unit."""

    title = "Chakra execution traces"
    types = NODE_TYPES
    ending = ".et"
    computing = NODE_TYPES.index("COMP")
    communicating = tuple(map(NODE_TYPES.index, ("COLL", "SEND", "RECV")))

    def read(self, unit: Unit) -> Iterator[NodePart]:
        """Yield the parts of a unit, the first with the metadata before its nodes."""
        nodes = np.empty(_PART_NODES, dtype=core.structs["trace_node"])
        fault = np.zeros(core.FAULT_SIZE, dtype=np.int64)
        buffer, at, offset, first = np.zeros(0, dtype=np.uint8), 0, 0, -1
        try:
            for chunk in _chunks(unit):
                offset, at, buffer = offset + at, 0, np.concatenate([buffer[at:], chunk])
                while count := core.walk_nodes(buffer, at, first < 0, nodes, fault):
                    heads = int(first < 0)
                    begin = int(nodes["end"][0]) if heads else at
                    of_part = nodes[heads:count].copy()
                    yield NodePart(unit, max(first, 0), buffer[at:begin], buffer, of_part)
                    first, at = first + count, int(nodes["end"][count - 1])
                if fault[core.FAULT_CODE] not in (core.WIRE_OK, core.MESSAGE_CUT):
                    raise _fault(unit, first, offset, fault)
        except _GzipError as error:
            problem = f"damaged gzip data ({error}) after {count_text(max(first, 0), 'node')}"
            raise _damage(unit, None, offset + len(buffer), problem) from error
        if at < len(buffer):
            raise _fault(unit, first, offset, fault)
        if first < 0:
            raise DamagedLogError(Location(unit.path, 0), "the file is empty: it has no metadata")


def _fault(unit: Unit, node: int, offset: int, fault: Ints) -> DamagedLogError:
    """Return a fault of the walk in a node, or in the metadata (−1), as an error.

    `offset` is where the walked buffer begins.
    """
    problem = PROBLEMS[int(fault[core.FAULT_CODE])].format(int(fault[core.FAULT_VALUE]))
    at = offset + int(fault[core.FAULT_AT])
    if node >= 0:
        return _damage(unit, node, at, problem)
    hint = "is it a trace in binary form, made since October 2023?"
    return _damage(unit, None, at, f"the metadata, its first message: {problem} ({hint})")


def _damage(unit: Unit, node: int | None, at: int, problem: str) -> DamagedLogError:
    """Return the error for damage at a byte of the unpacked data, in a node if that is known."""
    if unit.is_packed:
        problem += "; the byte is one of the unpacked data"
    return DamagedLogError(Location(unit.path, at, node=node), problem)


def open_chakra(path: Path) -> ChakraTraces | None:
    """Open traces given their folder, one file, or the beginning of their names before the rank.

    Return None if there are none. Raise `RewriteLogError` for a folder with traces of several
    names, with two files of one rank, or only with files whose names have no rank.
    """
    if path.exists() and not path.is_dir():
        match = _FILE.fullmatch(path.name)
        rank = int(match["rank"]) if match else 0
        return ChakraTraces(path, (_unit(path, rank),)) if path.name.endswith(_ENDS) else None
    folder = path if path.is_dir() else path.parent
    paths = paths_in(folder) if folder.is_dir() else []
    files = [file.name for file in paths if file.name.endswith(_ENDS) and not file.is_dir()]
    matches = [match for file in files if (match := _FILE.fullmatch(file))]
    if files and not matches and path.is_dir():
        raise RewriteLogError(f"{path}: {files[0]} is not named NAME.RANK.et: give the file itself")
    if not path.is_dir():
        matches = [match for match in matches if match["name"] == path.name]
    names = sorted({match["name"] for match in matches})
    if not names:
        return None
    if len(names) > 1:
        listed = ", ".join(names[:3])
        raise RewriteLogError(
            f"{path}: traces of several names, {listed}: give one as {path / names[0]}"
        )
    units = sorted(
        (_unit(folder / match.string, int(match["rank"])) for match in matches),
        key=lambda unit: unit.rank,
    )
    for before, after in pairwise(units):
        if before.rank == after.rank:
            other = before.path
            raise RewriteLogError(f"{after.path}: rank {after.rank} has another file, {other}")
    return ChakraTraces(path, tuple(units))


def _unit(path: Path, rank: int) -> Unit:
    if rank > _MOST_RANK:
        raise RewriteLogError(f"{path}: a rank above {_MOST_RANK:,}")
    return Unit(path, rank, path.stat().st_size if path.exists() else 0)
