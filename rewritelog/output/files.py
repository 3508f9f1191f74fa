"""Files of an output folder: written in pieces and by several workers, copied, flushed."""

from __future__ import annotations

import errno
import hashlib
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Bytes
from rewritelog.cores import in_order
from rewritelog.formats.files import InputFile, OpenFile
from rewritelog.running.engines import Gathered

_COPY_BYTES = 1 << 20

_CACHED_WRITE_BYTES = 1 << 18
"""The size of cached writes, as in cp: longer ones need larger contiguous pieces of memory."""

_NAME_BYTES = 200
"""Longer names are shortened: file systems allow 255 bytes, and the longest ending has 35."""

AT_ONCE = 8
"""Files that are flushed or removed at a time; one by one, each takes up to 5 ms on a disk."""
_AHEAD = 64

_RWF_DONTCACHE = 0x80
"""A flag of pwritev2 (Linux 6.14 and newer, some file systems) without a constant in Python."""
_UNSUPPORTED = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}


def name_beside(target: Path, ending: str) -> Path:
    """Return the path of a temporary file or folder that belongs to an output.

    A name that is too long for an ending is shortened, with a digest of the whole.
    """
    name = target.name
    if len(os.fsencode(name)) > _NAME_BYTES:
        digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
        name = f"{os.fsdecode(os.fsencode(name)[:100])}-{digest}"
    return target.with_name(f".{name}.rewritelog{ending}")


def flush_files(paths: Iterable[Path]) -> None:
    """Wait until files and folders are on the disk, so that they survive a power failure.

    Several wait at a time, since journals of file systems write them together. All is certain for
    what this process has written; on a shared file system each host has to call it.
    """
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in in_order(pool, _flush, paths, _AHEAD):
            pass


def _flush(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(opened)


def create_file(path: Path, size_bytes: int, head: bytes = b"") -> None:
    """Create a file of its final size, beginning with `head`."""
    with path.open("xb") as file:
        file.write(head)
        file.truncate(size_bytes)


def copy_file(source: Path, target: Path) -> None:
    """Copy a regular file; raise `RewriteLogError` if it cannot be read completely."""
    buffer = np.empty(_COPY_BYTES, dtype=np.uint8)
    with InputFile(source) as file, target.open("xb") as copy:
        for at in range(0, file.size_bytes, _COPY_BYTES):
            piece = buffer[: file.size_bytes - at]
            file.read_into(piece, at)
            copy.write(piece.data)


class OutputFile(OpenFile):
    """An existing file, written in any order and by several threads or processes."""

    def __init__(self, path: Path, *, flush: bool) -> None:
        """Open a file; `flush` says that it will be flushed in the end.

        Its bytes are then written to the disk at once and do not stay in the page cache, if the
        system supports that. Flushing everything at the end, and filling the page cache with the
        whole output, take several times as long.
        """
        self.path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        self._uncached = flush and sys.platform == "linux"

    def write(self, data: NDArray[np.uint8] | bytes, offset: int) -> None:
        """Write all of `data` at `offset`; raise `OSError` if that fails."""
        view = data.data if isinstance(data, np.ndarray) else memoryview(data)
        done = 0
        while done < len(view):
            done += self._write_some(view[done:], offset + done)

    def _write_some(self, view: memoryview, offset: int) -> int:
        if self._uncached:
            try:
                return os.pwritev(self._fd, [view], offset, _RWF_DONTCACHE)
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    raise
                self._uncached = False
        return os.pwrite(self._fd, view[:_CACHED_WRITE_BYTES], offset)


Item = TypeVar("Item")
Result = TypeVar("Result")


class FlushingWork(Gathered[Item, Result]):
    """Work that writes files; each process flushes those that it wrote, as no other host can."""

    def __init__(self, folder: Path | None, *, flush: bool) -> None:
        """Begin with the folder of the files, which exist; None to write nothing."""
        self._folder, self._flush = folder, flush
        self._written: set[Path] = set()

    def write(self, name: str, data: Bytes, offset: int) -> None:
        """Write into a file of the folder; raise `OSError` if that fails."""
        if self._folder is not None:
            path = self._folder / name
            self._written.add(path)
            with OutputFile(path, flush=self._flush) as file:
                file.write(data, offset)

    def state(self) -> OSError | None:
        """Flush the files; return the error if that fails."""
        if self._flush:
            try:
                flush_files(sorted(self._written))
            except OSError as error:
                return error
        return None

    def gather(self, state: OSError | None) -> None:
        """Raise the error of a process that could not flush its files."""
        if state is not None:
            raise state
