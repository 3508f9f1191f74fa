"""The lock on an output folder: a file beside it, locked by the process that writes the folder.

The system releases the lock of a process that ends, so a file that nobody has locked is what a
killed run left. On a file system without locks, an existing file is left to the user.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import warnings
from contextlib import suppress
from pathlib import Path

from rewritelog.errors import OutputError, OutputWarning

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
_MOST_BYTES = 1000
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class OutputLock:
    """The lock for writing `out`, held within a `with` block; `path` is the lock file.

    Raise `OutputError` if another process holds it, or may hold it.
    """

    def __init__(self, out: Path, path: Path) -> None:
        self._out, self._path = out, path
        self._fd = -1
        self._created = self._mine = False

    def __enter__(self) -> OutputLock:
        try:
            while not self._acquire():
                self._close()
        except BaseException:  # a signal may come as soon as the file is made
            self._release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self._release()
        except OSError as problem:
            if kind is None:
                warnings.warn(
                    f"{self._out} is written, but its lock {self._path} could not be removed: "
                    f"{problem.strerror}",
                    OutputWarning,
                    stacklevel=2,
                )

    def _acquire(self) -> bool:
        """Open, lock and sign the file; return False if it has vanished meanwhile."""
        self._created = True
        try:
            self._fd = os.open(self._path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            self._created = False
            try:
                self._fd = os.open(self._path, _FLAGS)
            except FileNotFoundError:
                return False
        _check_lock_file(self._fd, self._out, self._path)
        self._lock()
        if not _is_at(self._fd, self._path):
            return False
        self._mine = True
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()} {os.uname().nodename}\n".encode(), 0)
        return True

    def _lock(self) -> None:
        """Lock the open file; raise `OutputError` if another run has, or may have."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(f"{self._out}: {_owner(self._fd)} is writing it") from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            if not self._created:
                raise OutputError(
                    f"{self._out}: {_owner(self._fd)} is writing it, or was killed and left "
                    f"{self._path}: remove that file if no such run exists any more"
                ) from None

    def _release(self) -> None:
        """Remove the file if it belongs to this process, even if it is still empty."""
        if self._fd < 0 and self._created:
            with suppress(OSError):
                self._fd = os.open(self._path, _FLAGS)
        if self._fd < 0:
            return
        try:
            if (self._mine or self._is_unsigned()) and _is_at(self._fd, self._path):
                self._path.unlink(missing_ok=True)
        finally:
            self._close()

    def _is_unsigned(self) -> bool:
        """Return whether this process made the file, and was interrupted before it signed it."""
        if not self._created or os.fstat(self._fd).st_size:
            return False
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


def _check_lock_file(fd: int, out: Path, path: Path) -> None:
    """Raise `OutputError` for a file that is no lock file, since it would be overwritten."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        problem = "is not a regular file"
    elif status.st_nlink > 1:
        problem = "is a hard link to another file"
    elif status.st_size > _MOST_BYTES:
        problem = "is too large for a lock"
    else:
        return
    raise OutputError(f"{out}: its lock {path} {problem}: remove it")


def _owner(fd: int) -> str:
    """Return the process and host that the file names."""
    process, _, host = os.pread(fd, _MOST_BYTES, 0).decode(errors="replace").strip().partition(" ")
    known = process.isascii() and process.isdecimal() and host
    return f"process {process} on {host}" if known else "another run"


def _is_at(fd: int, path: Path) -> bool:
    """Return whether an open file still is the one at a path."""
    try:
        return os.path.samestat(os.fstat(fd), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False
