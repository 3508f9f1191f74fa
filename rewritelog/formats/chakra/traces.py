"""Sets of Chakra traces on disk: found by their names, read in parts, and written anew."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np

from rewritelog.arrays import Bytes, Flags, Floats, Table
from rewritelog.core import core
from rewritelog.errors import DamagedLogError, Location, MissingFileError, RewriteLogError
from rewritelog.formats.chakra.nodes import (
    MESSAGE_NUMBERS,
    NODE_TYPES,
    PROBLEMS,
    NodePart,
    fields,
    schema,
)
from rewritelog.formats.files import InputFile, paths_in
from rewritelog.formats.traces import Part, Rounding, Sink, Traces, Unit, UnitWriter

_GZIP_MAGIC = b"\x1f\x8b"
PART_BYTES = 8 << 20
"""The bytes of a part, unless one node has more."""

_PART_NODES = 1 << 15
_FILE = re.compile(r"(?P<name>.+)\.(?P<rank>[0-9]+)\.et(\.gz)?", re.DOTALL)
_MOST_RANK = (1 << 31) - 1
_MOST_MICROS = 2.0**63
_PACKED_LEVEL = 6


@contextmanager
def _opened(unit: Unit) -> Iterator[Callable[[int], Bytes]]:
    """Yield a function that reads the next bytes of a unit, unpacked; fewer only at the end.

    Raise `DamagedLogError` if its size has changed.
    """
    with InputFile(unit.path) as file, file.stream() as raw:
        if file.size_bytes != unit.size_bytes:
            sizes = f"from {unit.size_bytes} to {file.size_bytes} bytes"
            problem = f"the file's size changed {sizes} during the run"
            raise DamagedLogError(Location(unit.path), problem)
        stream = gzip.GzipFile(fileobj=raw) if unit.is_packed else raw

        def read(size_bytes: int) -> Bytes:
            try:
                return np.frombuffer(stream.read(size_bytes), dtype=np.uint8)
            except EOFError as error:
                raise damaged("the gzip data end too early") from error
            except (zlib.error, gzip.BadGzipFile) as error:
                raise damaged(f"damaged gzip data ({error})") from error
            except OSError as error:
                raise RewriteLogError(f"{unit.path}: cannot be read: {error.strerror}") from error

        def damaged(problem: str) -> DamagedLogError:
            return DamagedLogError(Location(unit.path, raw.tell()), problem)

        yield read


class ChakraTraces(Traces):
    """Chakra execution traces, the file of each rank being a unit."""

    title = "Chakra execution traces"
    types = NODE_TYPES
    computing = "COMP"
    communicating = ("COLL", "SEND", "RECV")

    def read(self, unit: Unit) -> Iterator[NodePart]:
        """Yield the parts of a unit."""
        with _opened(unit) as read:
            buffer, offset = read(PART_BYTES), 0
            at = _metadata_bytes(unit, buffer)
            first, nodes = 0, np.empty(_PART_NODES, dtype=core.structs["trace_node"])
            is_last = len(buffer) < PART_BYTES
            while at < len(buffer) or not is_last:
                count = _walk(unit, buffer, at, nodes, first=first, offset=offset, is_last=is_last)
                if count:
                    end = int(nodes["end"][count - 1])
                    yield NodePart.of(unit, first, buffer, nodes[:count].copy())
                    first, at = first + count, end
                if count < _PART_NODES and not is_last:
                    more = read(max(PART_BYTES, len(buffer) - at))
                    is_last = len(more) < max(PART_BYTES, len(buffer) - at)
                    offset, buffer = offset + at, np.concatenate([buffer[at:], more])
                    at = 0

    def metadata(self, unit: Unit) -> Bytes:
        """Return the bytes of the first message of a unit."""
        with _opened(unit) as read:
            head = read(PART_BYTES)
        return head[: _metadata_bytes(unit, head)]

    def writer(self, unit: Unit, sink: Sink) -> UnitWriter:
        """Return what writes a unit to a sink."""
        return _NodeWriter(unit, self.metadata(unit), sink)


def _walk(
    unit: Unit,
    buffer: Bytes,
    at: int,
    nodes: Table,
    message: str = "Node",
    *,
    first: int | None = None,
    offset: int = 0,
    is_last: bool = True,
) -> int:
    """Walk messages of a buffer, which begins at an offset; return their number.

    Raise `DamagedLogError` if the first of them, the node of a number or the metadata, is damaged.
    """
    fault, number = np.zeros(core.FAULT_SIZE, dtype=np.int64), MESSAGE_NUMBERS[message]
    count: int = core.walk_nodes(
        buffer, at, is_last, schema(), number, fields(message), nodes, fault
    )
    if fault[core.FAULT_CODE] and not count:
        problem = PROBLEMS[int(fault[core.FAULT_CODE])].format(int(fault[core.FAULT_VALUE]))
        if first is None:
            problem = f"the metadata, its first message: {problem}"
        place = Location(unit.path, offset + int(fault[core.FAULT_AT]), node=first)
        raise DamagedLogError(place, problem)
    return count


def _metadata_bytes(unit: Unit, buffer: Bytes) -> int:
    """Return the size of the first message; raise `DamagedLogError` if it is no metadata."""
    if not len(buffer):
        raise DamagedLogError(Location(unit.path, 0), "the file is empty: it has no metadata")
    message = np.empty(1, dtype=core.structs["trace_node"])
    _walk(unit, buffer, 0, message, "GlobalMetadata")
    return int(message["end"][0])


class _NodeWriter(UnitWriter):
    """Writes nodes with whole microseconds; a sum of new durations is rounded, not each of them."""

    def __init__(self, unit: Unit, metadata: Bytes, sink: Sink) -> None:
        self._unit, self._sink = unit, sink
        self._packer = (
            zlib.compressobj(_PACKED_LEVEL, wbits=16 + zlib.MAX_WBITS) if unit.is_packed else None
        )
        self._carried = 0.0
        """The exact sum of new durations minus what is written, in microseconds."""
        self._put(metadata)

    def write(self, part: Part, duration_s: Floats, changes: Flags) -> Floats:
        """Write a part; return the durations as they are written."""
        if not isinstance(part, NodePart):
            raise TypeError("a part of another format")
        micros = np.where(changes, duration_s * 1e6, 0.0)
        bad = np.flatnonzero(~(micros < _MOST_MICROS))
        if len(bad):
            raise RewriteLogError(
                f"{Location(part.unit.path, node=part.first + int(bad[0]))}: the new duration "
                f"{duration_s[bad[0]]:g} s is no number of microseconds of 64 bits"
            )
        whole = np.floor(micros)
        rest = np.cumsum(np.concatenate([[self._carried], micros - whole]))
        whole += np.diff(np.floor(rest + 0.5))
        self._carried = float(rest[-1] - np.floor(rest[-1] + 0.5))
        self.rounding = Rounding(
            max(self.rounding.item_s, 1e-6 * float(np.abs(whole - micros).max(initial=0.0))),
            1e-6 * abs(self._carried),
            self.rounding.to_zero + int(np.count_nonzero((whole == 0) & (micros > 0))),
        )
        new = np.where(changes, np.maximum(whole, 0.0).astype(np.uint64), part.nodes["duration_us"])
        self._put(part.written(new))
        return new * 1e-6

    def close(self) -> None:
        """Write what is left."""
        if self._packer is not None:
            self._sink(np.frombuffer(self._packer.flush(), dtype=np.uint8))

    def _put(self, data: Bytes) -> None:
        if self._packer is not None:
            data = np.frombuffer(self._packer.compress(data.tobytes()), dtype=np.uint8)
        self._sink(data)


def open_chakra(path: Path) -> ChakraTraces | None:
    """Open traces given their folder, one file, or the beginning of their names before the rank.

    Return None if there are none. Raise `RewriteLogError` for a folder with traces of several
    names, or one rank twice.
    """
    if path.exists() and not path.is_dir():
        match = _FILE.fullmatch(path.name)
        is_named = path.name.endswith((".et", ".et.gz"))
        rank = int(match["rank"]) if match else 0
        return ChakraTraces(path, (_unit(path, rank),)) if is_named else None
    folder = path if path.is_dir() else path.parent
    files = paths_in(folder) if folder.is_dir() else []
    matches = [match for file in files if (match := _FILE.fullmatch(file.name))]
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
    missing = set(range(len(units))) - {unit.rank for unit in units}
    if len(units) > 1 and missing:
        raise MissingFileError(f"{path}: there is no file of rank {min(missing)}")
    return ChakraTraces(path, tuple(units))


def _unit(path: Path, rank: int) -> Unit:
    if rank > _MOST_RANK:
        raise RewriteLogError(f"{path}: a rank above {_MOST_RANK:,}")
    with InputFile(path) as file:
        head = file.read(0, min(len(_GZIP_MAGIC), file.size_bytes)).tobytes()
        return Unit(path, rank, file.size_bytes, head == _GZIP_MAGIC)
