"""Sets of Chakra traces on disk: found by their names, and read in parts."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from rewritelog.arrays import Bytes, Ints
from rewritelog.core import core
from rewritelog.errors import DamagedLogError, Location, RewriteLogError
from rewritelog.formats.chakra.nodes import NODE_TYPES, PROBLEMS, NodePart
from rewritelog.formats.files import InputFile, paths_in
from rewritelog.formats.traces import Traces, Unit

PART_BYTES = 8 << 20
"""The bytes that are read at a time; a part has no more, unless one node has."""

_PART_NODES = 1 << 15
_FILE = re.compile(r"(?P<name>.+)\.(?P<rank>[0-9]+)\.et(\.gz)?", re.DOTALL)
_ENDS = (".et", ".et.gz")
_MOST_RANK = (1 << 31) - 1


def _chunks(unit: Unit) -> Iterator[Bytes]:
    """Yield the bytes of a unit, unpacked; raise `DamagedLogError` if its size has changed."""
    with InputFile(unit.path) as file, file.stream() as raw:
        file.check_size(unit.size_bytes)
        stream = gzip.GzipFile(fileobj=raw) if unit.is_packed else raw
        try:
            while chunk := stream.read(PART_BYTES):
                yield np.frombuffer(chunk, dtype=np.uint8)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            problem = f"damaged gzip data ({error})"
            if isinstance(error, EOFError):
                problem = "the gzip data end too early"
            raise DamagedLogError(Location(unit.path, raw.tell()), problem) from error
        except OSError as error:
            raise RewriteLogError(f"{unit.path}: cannot be read: {error.strerror}") from error


class ChakraTraces(Traces):
    """Chakra execution traces, the file of each rank being a unit."""

    title = "Chakra execution traces"
    types = NODE_TYPES
    computing = "COMP"
    communicating = ("COLL", "SEND", "RECV")

    def read(self, unit: Unit) -> Iterator[NodePart]:
        """Yield the parts of a unit, the first with the metadata before its nodes."""
        nodes = np.empty(_PART_NODES, dtype=core.structs["trace_node"])
        fault = np.zeros(core.FAULT_SIZE, dtype=np.int64)
        buffer, at, offset, first = np.zeros(0, dtype=np.uint8), 0, 0, -1
        for chunk in _chunks(unit):
            offset, at, buffer = offset + at, 0, np.concatenate([buffer[at:], chunk])
            while count := core.walk_nodes(buffer, at, first < 0, nodes, fault):
                heads = int(first < 0)
                begin = int(nodes["end"][0]) if heads else at
                of_part = nodes[heads:count].copy()
                yield NodePart(unit, max(first, 0), buffer[at:begin], buffer, of_part)
                first, at = first + count, int(nodes["end"][count - 1])
            if fault[core.FAULT_CODE] not in (core.WIRE_OK, core.MESSAGE_CUT):
                raise _damage(unit, first, offset, fault)
        if at < len(buffer):
            raise _damage(unit, first, offset, fault)
        if first < 0:
            raise DamagedLogError(Location(unit.path, 0), "the file is empty: it has no metadata")


def _damage(unit: Unit, node: int, offset: int, fault: Ints) -> DamagedLogError:
    """Return the error of a fault in a node, or in the metadata before the first one."""
    problem = PROBLEMS[int(fault[core.FAULT_CODE])].format(int(fault[core.FAULT_VALUE]))
    if node < 0:
        problem = f"the metadata, its first message: {problem} (is it a trace in binary form?)"
    if unit.is_packed:
        problem += "; the byte is one of the unpacked data"
    place = Location(
        unit.path, offset + int(fault[core.FAULT_AT]), node=node if node >= 0 else None
    )
    return DamagedLogError(place, problem)


def open_chakra(path: Path) -> ChakraTraces | None:
    """Open traces given their folder, one file, or the beginning of their names before the rank.

    Return None if there are none. Raise `RewriteLogError` for a folder with traces of several
    names, of one rank twice, or of none.
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
