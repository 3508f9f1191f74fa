"""The lock on an output folder: a locked file beside it, which names the process that holds it.

Where the file system has locks, they distinguish dead runs from running ones: the system releases
the locks of a process that ends. Where it has none, or none that other hosts see, the process
named in the file is looked up, and undecidable cases are left to the user.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import warnings
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from rewritelog.errors import OutputError, OutputWarning

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
_LOCAL_OPTIONS = {"nolock", "localflock", "local_lock=flock", "local_lock=all"}
"""Mount options of network file systems whose locks other hosts do not see."""

_MOST_BYTES = 1000
_LARGEST_PROCESS = (1 << 31) - 1
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class _Locked(Enum):
    MINE = auto()
    TAKEN = auto()
    UNKNOWN = auto()
    """The file system has no locks."""


@dataclass(frozen=True)
class _Owner:
    """The process that holds, or held, the lock."""

    host: str
    process: int

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"

    @property
    def is_here(self) -> bool:
        return self.host == os.uname().nodename

    @property
    def is_dead(self) -> bool:
        """Whether the process is known to have ended; unknown for one on another host."""
        if not self.is_here:
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


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
        """Open, lock and sign the file; return False if it has vanished."""
        self._open()
        if self._fd < 0:
            return False
        _check_lock_file(self._fd, self._out, self._path)
        if not self._is_mine(self._fd):
            return False
        self._mine = True
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()} {os.uname().nodename}\n".encode(), 0)
        return True

    def _open(self) -> None:
        self._created = True
        try:
            self._fd = os.open(self._path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            self._created = False
            with suppress(FileNotFoundError):
                self._fd = os.open(self._path, _FLAGS)

    def _release(self) -> None:
        """Remove the file if it belongs to this process, even if it is still empty."""
        if self._fd < 0 and self._created:
            with suppress(OSError):
                self._fd = os.open(self._path, _FLAGS)
        if self._fd < 0:
            return
        try:
            unsigned = (
                self._created and _lock(self._fd) is _Locked.MINE and _owner(self._fd) is None
            )
            if (self._mine or unsigned) and _is_at(self._fd, self._path):
                self._path.unlink(missing_ok=True)
        finally:
            self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def _is_mine(self, fd: int) -> bool:
        """Return whether this process holds the lock; False means to try again."""
        locked = _lock(fd)
        owner = _owner(fd)
        if locked is _Locked.TAKEN:
            raise OutputError(f"{self._out}: {owner or 'another run'} is writing it")
        if not _is_at(fd, self._path):
            return False
        if self._created:
            return True
        if locked is _Locked.MINE and (owner is None or owner.is_here or _locks_are_shared(fd)):
            return True
        if owner is not None and owner.is_dead:
            self._remove(fd)
            return False
        raise OutputError(
            f"{self._out}: {owner or 'another run'} is writing it, or was killed and left "
            f"{self._path}: remove that file if no such run exists any more"
        )

    def _remove(self, fd: int) -> None:
        """Remove the file of a dead process, but not one that another process has just created."""
        aside = self._path.with_name(f"{self._path.name}-{secrets.token_hex(4)}")
        self._path.rename(aside)
        if not _is_at(fd, aside):
            os.link(aside, self._path)
        aside.unlink()


def _check_lock_file(fd: int, out: Path, path: Path) -> None:
    """Raise `OutputError` for a file that is no lock file, since it would be overwritten."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        problem = "is not a regular file"
    elif found.st_nlink > 1:
        problem = "is a hard link to another file"
    elif found.st_size > _MOST_BYTES:
        problem = "is too large for a lock"
    else:
        return
    raise OutputError(f"{out}: its lock {path} {problem}: remove it")


def _lock(fd: int) -> _Locked:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _Locked.TAKEN
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return _Locked.UNKNOWN
        raise
    return _Locked.MINE


def _owner(fd: int) -> _Owner | None:
    """Return the process that the file names; None if it names none, or not yet."""
    process, _, host = os.pread(fd, _MOST_BYTES, 0).decode(errors="replace").strip().partition(" ")
    known = process.isascii() and process.isdecimal() and 0 < int(process) <= _LARGEST_PROCESS
    return _Owner(host, int(process)) if known else None


def _is_at(fd: int, path: Path) -> bool:
    """Return whether an open file still is the one at a path."""
    try:
        return os.path.samestat(os.fstat(fd), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


def _locks_are_shared(fd: int) -> bool:
    """Return whether other hosts see the locks of a file, according to its mount options."""
    device = os.fstat(fd).st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    fields = [line.split() for line in mounts.splitlines()]
    options = [f"{words[5]},{words[-1]}" for words in fields if len(words) > 5 and words[2] == name]
    return not any(_LOCAL_OPTIONS.intersection(text.split(",")) for text in options)
