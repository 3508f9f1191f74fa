"""Files of an output folder: written in pieces and by many, copied, flushed."""

from __future__ import annotations

import errno
import hashlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rewritelog.logs.files import InputFile, OpenFile

_COPY_BYTES = 1 << 20

_CACHED_WRITE_BYTES = 1 << 18
"""As cp does: for longer writes a system looks for memory in larger pieces, and may lack them."""

_NAME_BYTES = 200
"""File systems take names of 255 bytes, and the longest ending has 35."""

_RWF_DONTCACHE = 0x80
"""A flag of pwritev2 (Linux 6.14 and newer, some file systems), which Python does not name."""
_NO_SUCH_WAY = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}


def name_beside(target: Path, ending: str) -> Path:
    """Return where something that belongs to an output is while that is written.

    A name that leaves no room for more beside it is shortened, with a digest for the rest.
    """
    name = target.name
    if len(os.fsencode(name)) > _NAME_BYTES:
        digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
        name = f"{os.fsdecode(os.fsencode(name)[:100])}-{digest}"
    return target.with_name(f".{name}.rewritelog{ending}")


def flush_files(paths: Iterable[Path]) -> None:
    """Wait until files and folders are on the disk, so that a power cut leaves them whole.

    It is sure for what this process wrote; on a file system of several hosts, each must do it.
    """
    for path in paths:
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(opened)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error
        finally:
            os.close(opened)


def create_file(path: Path, size_bytes: int, head: bytes = b"") -> None:
    """Make a file of the size that it will have, beginning with `head`."""
    with path.open("xb") as file:
        file.write(head)
        file.truncate(size_bytes)


def copy_file(source: Path, target: Path) -> None:
    """Copy a regular file; raise `RewriteLogError` where it cannot be read as a whole."""
    buffer = np.empty(_COPY_BYTES, dtype=np.uint8)
    with InputFile(source) as file, target.open("xb") as copy:
        for at in range(0, file.size_bytes, _COPY_BYTES):
            piece = buffer[: file.size_bytes - at]
            file.read_into(piece, at)
            copy.write(piece.data)


class OutputFile(OpenFile):
    """A file that was created before, written in any order and by many threads or processes."""

    def __init__(self, path: Path, *, flush: bool) -> None:
        """Open a file; `flush` says that it will be flushed when it is written.

        Its bytes then begin to go to the disk at once and do not stay in the system's cache, where
        the system can do so. Waiting for the disk at the end, and taking from the system all the
        memory that the whole output needs, cost several times as much.
        """
        self.path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        self._uncached = flush and sys.platform == "linux"

    def write(self, data: NDArray[np.uint8] | bytes, offset: int) -> None:
        """Write all of `data` at `offset`; raise `OSError` where the system will not."""
        view = data.data if isinstance(data, np.ndarray) else memoryview(data)
        done = 0
        while done < len(view):
            done += self._write_some(view[done:], offset + done)

    def _write_some(self, view: memoryview, offset: int) -> int:
        if self._uncached:
            try:
                return os.pwritev(self._fd, [view], offset, _RWF_DONTCACHE)
            except OSError as error:
                if error.errno not in _NO_SUCH_WAY:
                    raise
                self._uncached = False
        return os.pwrite(self._fd, view[:_CACHED_WRITE_BYTES], offset)
