"""Whose turn it is to write an output folder: a locked file beside it, which says who has it.

Where the file system has locks, they tell a run that is dead from one that is alive: the system
drops a lock with its process. Where it has none, or none that other hosts see, the host and the
process that the file names are asked instead, and what cannot be told is left to the user.
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
"""Options of mounts of network file systems whose locks other hosts do not see."""

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
    """The process that has, or had, the turn."""

    host: str
    process: int

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"

    @property
    def is_here(self) -> bool:
        return self.host == os.uname().nodename

    @property
    def is_dead(self) -> bool:
        """Whether this is known to run no more; it never is of another host's process."""
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
    """The turn to write `out`, from entering to leaving; the file is `path`.

    Raise `OutputError` where another process has it, or may have it.
    """

    def __init__(self, out: Path, path: Path) -> None:
        self._out, self._path = out, path
        self._fd = -1
        self._making = self._mine = False

    def __enter__(self) -> OutputLock:
        try:
            while not self._take():
                self._close()
        except BaseException:  # a signal may come as soon as the file is made
            self._give_back()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self._give_back()
        except OSError as problem:
            if kind is None:
                warnings.warn(
                    f"{self._out} is written, but its lock {self._path} could not be removed: "
                    f"{problem.strerror}",
                    OutputWarning,
                    stacklevel=2,
                )

    def _take(self) -> bool:
        """Open, lock and sign the file; return False where it has just gone."""
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
        self._making = True
        try:
            self._fd = os.open(self._path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            self._making = False
            with suppress(FileNotFoundError):
                self._fd = os.open(self._path, _FLAGS)

    def _give_back(self) -> None:
        """Remove the file where it is this process's, signed or not yet."""
        if self._fd < 0 and self._making:
            with suppress(OSError):
                self._fd = os.open(self._path, _FLAGS)
        if self._fd < 0:
            return
        try:
            unsigned = self._making and _lock(self._fd) is _Locked.MINE and _owner(self._fd) is None
            if (self._mine or unsigned) and _is_at(self._fd, self._path):
                self._path.unlink(missing_ok=True)
        finally:
            self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def _is_mine(self, fd: int) -> bool:
        """Return whether it is this process's turn, False where that is to be asked again."""
        locked = _lock(fd)
        owner = _owner(fd)
        if locked is _Locked.TAKEN:
            raise OutputError(f"{self._out}: {owner or 'another run'} is writing it")
        if not _is_at(fd, self._path):
            return False
        if self._making:
            return True
        if locked is _Locked.MINE and (owner is None or owner.is_here or _locks_reach_far(fd)):
            return True
        if owner is not None and owner.is_dead:
            self._remove(fd)
            return False
        raise OutputError(
            f"{self._out}: {owner or 'another run'} is writing it, or was killed and left "
            f"{self._path}: remove that file once no such run is there"
        )

    def _remove(self, fd: int) -> None:
        """Remove the file of a dead process, and not one that another has made instead."""
        aside = self._path.with_name(f"{self._path.name}-{secrets.token_hex(4)}")
        self._path.rename(aside)
        if not _is_at(fd, aside):
            os.link(aside, self._path)
        aside.unlink()


def _check_lock_file(fd: int, out: Path, path: Path) -> None:
    """Refuse a file that no run has left, since it is to be written to."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        problem = "is not a regular file"
    elif found.st_nlink > 1:
        problem = "is a hard link to another file"
    elif found.st_size > _MOST_BYTES:
        problem = "holds more than a lock does"
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
    """Return whom the file names; None where it names nobody, or not yet."""
    process, _, host = os.pread(fd, _MOST_BYTES, 0).decode(errors="replace").strip().partition(" ")
    known = process.isascii() and process.isdecimal() and 0 < int(process) <= _LARGEST_PROCESS
    return _Owner(host, int(process)) if known else None


def _is_at(fd: int, path: Path) -> bool:
    """Return whether an opened file still has a name."""
    try:
        return os.path.samestat(os.fstat(fd), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


def _locks_reach_far(fd: int) -> bool:
    """Return whether other hosts see the locks of a file, as far as its mount says."""
    device = os.fstat(fd).st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    fields = [line.split() for line in mounts.splitlines()]
    options = [f"{words[5]},{words[-1]}" for words in fields if len(words) > 5 and words[2] == name]
    return not any(_LOCAL_OPTIONS.intersection(text.split(",")) for text in options)
