"""Output files: written in pieces and by many, copied, made whole at once, flushed."""

from __future__ import annotations

import errno
import os
import secrets
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rewritelog.errors import OutputError
from rewritelog.logs.files import InputFile, OpenFile

_COPY_BYTES = 1 << 20

_CACHED_WRITE_BYTES = 1 << 18
"""As cp does: for longer writes a system looks for memory in larger pieces, and may lack them."""

_RWF_DONTCACHE = 0x80
"""A flag of pwritev2 (Linux 6.14 and newer, some file systems), which Python does not name."""
_NO_SUCH_WAY = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}


def name_beside(target: Path, ending: str) -> Path:
    """Return where something that belongs to an output stands while that is written."""
    return target.with_name(f".{target.name}.rewritelog{ending}")


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


def check_outputs(
    outputs: Iterable[Path | None],
    inputs: Iterable[Path | None],
    folders: Iterable[Path | None] = (),
) -> None:
    """Raise `OutputError` where a file to be written is an input, a folder or another output.

    Whatever there is in one of the input folders is an input. None stands for a file or folder
    that was not named.
    """
    files = [path for path in inputs if path is not None]
    within = [path for path in folders if path is not None]
    wanted = [path for path in outputs if path is not None]
    for number, output in enumerate(wanted):
        if output.is_dir():
            raise OutputError(f"{output}: is a folder")
        in_folder = output.exists() and any(
            _same(Path(os.path.realpath(output)).parent, folder) for folder in within
        )
        if in_folder or any(_same(output, path) for path in files):
            raise OutputError(f"{output}: the output would replace an input")
        if any(_same(output, other) for other in wanted[:number]):
            raise OutputError(f"{output}: cannot be two outputs at once")


def _same(one: Path, other: Path) -> bool:
    """Return whether two paths lead to the same file or folder, through links of any kind too."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return one.samefile(other) and not _is_stream(one)
    except OSError:  # what is not there is not the same
        return False


def _is_stream(path: Path) -> bool:
    """Return whether a path is a pipe, a terminal or another device, which is not replaced."""
    return not (path.is_file() or path.is_dir())


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


def write_text_file(path: Path, text: str) -> None:
    """Write a file so that it is whole or as it was; a pipe or a device is written as it is.

    Raise `OutputError` where it cannot be written.
    """
    target = Path(os.path.realpath(path))
    draft = name_beside(target, f"-{secrets.token_hex(4)}")
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(target)
        finally:
            with suppress(FileNotFoundError):
                draft.unlink()
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


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
