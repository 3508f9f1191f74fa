"""Files and streams of timing or param lines, read in chunks that end at line ends.

They may be plain, or compressed by gzip, bzip2, xz or Zstandard, recognized by their first bytes.
`-` is standard input. Zstandard needs Python 3.14 or the package backports.zstd.
"""

from __future__ import annotations

import os
import stat
import sys
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from io import BufferedReader, FileIO, RawIOBase
from pathlib import Path
from select import select
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

import numpy as np
from numpy.typing import NDArray

from tracebigsim.errors import TraceFileError
from tracebigsim.lines import LineTable, scan
from tracebigsim.writing import MAX_LINE_BYTES

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK_BYTES: Final = 4 << 20
STANDARD_INPUT: Final = "-"
_MAGICS: Final = {
    b"\x1f\x8b": ("gzip", "gzip"),
    b"BZh": ("bzip2", "bz2"),
    b"\xfd7zXZ\0": ("xz", "lzma"),
    b"\x28\xb5\x2f\xfd": ("Zstandard", "compression.zstd"),
}
"""The first bytes of compressed data, their kind, and the module that reads them."""
_DECOMPRESSORS: Final = {"bz2": "BZ2Decompressor", "lzma": "LZMADecompressor"}
"""Used in place of the modules' own files, which take damage after a stream for the file's end."""
_PACKED_BYTES: Final = 1 << 16
"""How many bytes are decompressed at a time."""
_LONGEST_MAGIC: Final = max(map(len, _MAGICS))


@dataclass(frozen=True, eq=False)
class TextChunk:
    """Whole lines of a file, in file order.

    The last line of a chunk may be the first MAX_LINE_BYTES + 1 bytes of a longer line, whose rest
    is in no chunk: `scan` reports it as a fault.
    """

    text: NDArray[np.uint8]
    first_line: int
    """1-based number, in the file, of the chunk's first line."""
    offset_bytes: int
    """Where the chunk begins in the (decompressed) file, in bytes."""


def read_text_chunks(
    path: str | os.PathLike[str], chunk_bytes: int = CHUNK_BYTES
) -> Iterator[TextChunk]:
    """Read a file, a pipe or (`-`) standard input in chunks of about `chunk_bytes`.

    Memory is bounded by a few chunks and MAX_LINE_BYTES. Raises TraceFileError if the
    file does not exist, is neither a regular file nor a pipe, cannot be read, or holds compressed
    data that are corrupt or cut short, and ValueError for a chunk of less than 1 byte.
    """
    if chunk_bytes < 1:
        raise ValueError(f"a chunk has at least 1 byte, not {chunk_bytes}")
    with _errors_as_trace_errors(path), _opened(path) as stream:
        yield from _whole_lines(stream, chunk_bytes)


def scan_file(path: str | os.PathLike[str], chunk_bytes: int = CHUNK_BYTES) -> Iterator[LineTable]:
    """Scan a file; yield a table per chunk, whose lines and offsets count from the file's start.

    Each table has its own `events`. Raises what `read_text_chunks` raises.
    """
    for _, table in scan_chunks(path, chunk_bytes):
        yield table


def scan_chunks(
    path: str | os.PathLike[str], chunk_bytes: int = CHUNK_BYTES
) -> Iterator[tuple[TextChunk, LineTable]]:
    """Scan a file as `scan_file` does; yield each table with the text that it was read from."""
    for chunk in read_text_chunks(path, chunk_bytes):
        yield chunk, scan(chunk.text, chunk.first_line, chunk.offset_bytes)


@contextmanager
def _errors_as_trace_errors(path: str | os.PathLike[str], kind: str = "") -> Iterator[None]:
    """Turn errors of the system, and of decompressing data of `kind`, into a TraceFileError."""
    try:
        yield
    except EOFError as error:
        raise TraceFileError(path, f"the {kind} data are truncated") from error
    except OSError as error:
        corrupt = kind and error.errno is None
        problem = f"corrupt {kind} data: {error}" if corrupt else error.strerror or str(error)
        raise TraceFileError(path, problem) from error
    except _decompression_errors() as error:
        raise TraceFileError(path, f"corrupt {kind} data: {error}") from error


def _decompression_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that the loaded decompressors raise for corrupt data."""
    errors: list[type[Exception]] = [zlib.error]
    for module, name in (
        ("lzma", "LZMAError"),
        ("compression.zstd", "ZstdError"),
        ("backports.zstd", "ZstdError"),
    ):
        if module in sys.modules:
            errors.append(getattr(sys.modules[module], name))
    return tuple(errors)


def compression_of(start: bytes) -> tuple[str, str] | None:
    """Return the kind of compressed data and its module by the first bytes; None for other data."""
    return next((names for magic, names in _MAGICS.items() if start.startswith(magic)), None)


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file or a pipe for reading, through a decompressor if its first bytes call for one."""
    with _opened_raw(path) as raw:
        start = raw.peek(_LONGEST_MAGIC)
        kind = compression_of(start)
        if start.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            raise TraceFileError(
                path, "is UTF-16: convert it to UTF-8, as by iconv -f UTF-16 -t UTF-8"
            )
        if kind is None:
            yield raw
        else:
            with (
                _errors_as_trace_errors(path, kind[0]),
                closing(_decompressed(path, raw, *kind)) as unpacked,
            ):
                yield unpacked


def _opened_raw(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a regular file, a pipe or standard input."""
    if os.fspath(path) == STANDARD_INPUT:
        return BufferedReader(_FilledReads(0, closefd=False))
    mode = Path(path).stat().st_mode
    if stat.S_ISDIR(mode):
        raise TraceFileError(path, "is a folder, not a file")
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        raise TraceFileError(path, "is not a regular file or a pipe")
    return BufferedReader(_FilledReads(os.fspath(path)))


class _FilledReads(FileIO):
    """A file or a pipe whose reads are complete, except for the last one.

    Other reads of a pipe return what is there, which may be too little to tell compressed data; if
    the pipe is non-blocking, they may return nothing before its end.
    """

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill the buffer; return how many bytes were read: all that fit, except at the end."""
        room, filled = memoryview(buffer).cast("B"), 0
        while filled < len(room):
            count = super().readinto(room[filled:])
            if count == 0:
                break
            if count is None:
                select([self], [], [])
            else:
                filled += count
        return filled


def _decompressed(
    path: str | os.PathLike[str], raw: BufferedReader, kind: str, module: str
) -> BinaryIO:
    """Return the decompressed stream; from Python 3.14 on, its own library reads all kinds."""
    package = module.replace("compression.", "backports.")
    for name in (module, package):
        with suppress(ImportError):
            library = import_module(name)
            if module in _DECOMPRESSORS:
                return BufferedReader(_Streams(raw, getattr(library, _DECOMPRESSORS[module])))
            return cast(BinaryIO, library.open(raw))
    advice = f"install the package {package}" if package != module else "decompress it"
    raise TraceFileError(path, f"is compressed by {kind}, which this Python cannot read: {advice}")


class _Streams(RawIOBase):
    """The decompressed bytes of consecutive streams, with or without zeros between them."""

    def __init__(self, raw: BinaryIO, new_decompressor: Callable[[], Any]) -> None:
        self._raw = raw
        self._new = new_decompressor
        self._decompressor = new_decompressor()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Return the number of bytes filled in, 0 at the end; raise `EOFError` if cut short."""
        room, data = memoryview(buffer).cast("B"), b""
        while not data:
            packed = b""
            if self._decompressor.eof:
                packed = self._next_stream()
                if not packed:
                    return 0
                self._decompressor = self._new()
            elif self._decompressor.needs_input:
                packed = self._raw.read(_PACKED_BYTES)
                if not packed:
                    raise EOFError
            data = self._decompressor.decompress(packed, len(room))
        room[: len(data)] = data
        return len(data)

    def _next_stream(self) -> bytes:
        """Return the first compressed bytes of the next stream, none at the end of the file."""
        packed: bytes = self._decompressor.unused_data.lstrip(b"\0")
        while not packed and (more := self._raw.read(_PACKED_BYTES)):
            packed = more.lstrip(b"\0")
        return packed


def _whole_lines(stream: BinaryIO, chunk_bytes: int) -> Iterator[TextChunk]:
    """Cut a stream at line ends, skipping the rest of a line that is too long."""
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
        end = cut + MAX_LINE_BYTES + 1 if in_long_line else cut
        if data[:end]:
            yield TextChunk(np.frombuffer(data, np.uint8)[:end], line, offset)
        line += data.count(b"\n")
        offset += len(data) if in_long_line else cut
        pending = b"" if in_long_line else data[cut:]
    if pending:
        yield TextChunk(np.frombuffer(pending, np.uint8), line, offset)
