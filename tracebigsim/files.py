"""Files of timing or param lines, plain or gzip, read in pieces that end where lines end."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final, cast

import numpy as np
from numpy.typing import NDArray

from tracebigsim._grammar import MAX_LINE_BYTES
from tracebigsim.errors import TraceFileError
from tracebigsim.lines import LineTable, scan

CHUNK_BYTES: Final = 16 << 20
_GZIP_MAGIC: Final = b"\x1f\x8b"


@dataclass(frozen=True, eq=False)
class TextChunk:
    """Whole lines of a file, in the order of the file.

    The last line of a chunk may be the first MAX_LINE_BYTES + 1 bytes of one that is longer, whose
    rest no chunk holds: `scan` makes it a fault.
    """

    text: NDArray[np.uint8]
    first_line: int
    """1-based number of the first line in the file."""
    offset_bytes: int
    """Where the chunk begins in the (decompressed) file."""


def read_text_chunks(
    path: str | os.PathLike[str], chunk_bytes: int = CHUNK_BYTES
) -> Iterator[TextChunk]:
    """Read a file in pieces of about `chunk_bytes`; whether it is gzip is told by its first bytes.

    Holds some chunks and MAX_LINE_BYTES, whatever the file holds. Raises TraceFileError where the
    file is not there, is not a regular file, cannot be read, or is corrupt or cut gzip data, and
    ValueError for a chunk of less than 1 byte.
    """
    if chunk_bytes < 1:
        raise ValueError(f"a chunk has at least 1 byte, not {chunk_bytes}")
    with _problems_named(path), _opened(path) as stream:
        yield from _whole_lines(stream, chunk_bytes)


def scan_file(path: str | os.PathLike[str], chunk_bytes: int = CHUNK_BYTES) -> Iterator[LineTable]:
    """Scan a file, one table a chunk; `line` and `offset`, and those of faults, are the file's.

    Each table has its own `events`. Raises what `read_text_chunks` raises.
    """
    for _, table in scan_chunks(path, chunk_bytes):
        yield table


def scan_chunks(
    path: str | os.PathLike[str], chunk_bytes: int = CHUNK_BYTES
) -> Iterator[tuple[TextChunk, LineTable]]:
    """Scan a file as `scan_file` does, and give each table with the text that it was read from."""
    for chunk in read_text_chunks(path, chunk_bytes):
        yield chunk, _placed(scan(chunk.text), chunk)


def _placed(table: LineTable, chunk: TextChunk) -> LineTable:
    """Count a chunk's lines and bytes from the file's start."""
    lines_before = chunk.first_line - 1
    faults = (
        replace(
            fault,
            line=fault.line + lines_before,
            offset_bytes=fault.offset_bytes + chunk.offset_bytes,
        )
        for fault in table.faults
    )
    return replace(
        table,
        line=table.line + lines_before,
        offset=table.offset + chunk.offset_bytes,
        faults=tuple(faults),
    )


@contextmanager
def _problems_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what reading a file may raise into a TraceFileError that names it."""
    try:
        yield
    except EOFError as error:
        raise TraceFileError(path, "the gzip data end too early; is the file cut?") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TraceFileError(path, f"corrupt gzip data: {error}") from error
    except OSError as error:
        raise TraceFileError(path, error.strerror or str(error)) from error


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a regular file for reading, through gzip where its first bytes say so."""
    mode = Path(path).stat().st_mode
    if stat.S_ISDIR(mode):
        raise TraceFileError(path, "is a folder, not a file")
    if not stat.S_ISREG(mode):
        raise TraceFileError(path, "is not a regular file (a pipe, socket or device)")
    with Path(path).open("rb") as raw:
        if raw.peek(2)[:2] == _GZIP_MAGIC:
            with gzip.GzipFile(fileobj=raw) as unpacked:
                yield cast(BinaryIO, unpacked)
        else:
            yield raw


def _whole_lines(stream: BinaryIO, chunk_bytes: int) -> Iterator[TextChunk]:
    """Cut a stream at line ends; what is longer than a line may be is passed over to its end."""
    line, offset = 1, 0
    pending = b""
    in_long_line = False
    while piece := stream.read(chunk_bytes):
        if in_long_line:
            skipped = piece.find(b"\n") + 1 or len(piece)
            in_long_line = piece[skipped - 1] != ord("\n")
            offset += skipped
            line += not in_long_line
            piece = piece[skipped:]
        data = pending + piece
        cut = data.rfind(b"\n") + 1
        in_long_line = in_long_line or len(data) - cut > MAX_LINE_BYTES
        kept = cut + MAX_LINE_BYTES + 1 if in_long_line else cut
        if data[:kept]:
            yield TextChunk(np.frombuffer(data, np.uint8)[:kept], line, offset)
        line += data.count(b"\n")
        offset += len(data) if in_long_line else cut
        pending = b"" if in_long_line else data[cut:]
    if pending:
        yield TextChunk(np.frombuffer(pending, np.uint8), line, offset)
