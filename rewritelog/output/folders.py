"""Output folders that are complete or do not exist.

While OUT is written, and after a run that was killed, these may exist beside it:

- `.OUT.rewritelog.lock`: names the process and host that write OUT, and is locked by that process
- `.OUT.rewritelog-TOKEN`: the folder that becomes OUT
- `.OUT.rewritelog-TOKEN.old`: the previous OUT, during its replacement on systems that cannot
  exchange two folders atomically

A process that gets the lock knows that the other two are the remains of a killed run. The system
releases the lock of a process that ends, so a lock file that nobody has locked is such a remnant,
too. On a file system without locks, an existing lock file is left to the user.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from rewritelog.errors import OutputError, RewriteLogError, spelled, warn_of_output
from rewritelog.output.files import (
    FILE_THREADS,
    are_same,
    check_can_make_files,
    check_can_replace,
    flush_files,
    name_beside,
)
from rewritelog.progress import report_progress
from rewritelog.running.engines import Threads
from rewritelog.stopping import raise_if_stopped

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2

_BATCH_FILES = 64


@contextmanager
def new_folder(out: Path, *, force: bool = False, flush: bool = True) -> Iterator[Path]:
    """Yield a temporary folder to write into; it becomes `out` if the block does not raise.

    With `flush`, everything in it is on the disk before that. Call `check_new_folder` beforehand,
    which compares `out` with the inputs.

    `out` has to be absent or empty. With `force` it may exist, and is removed after the new folder
    has replaced it; a failure to do so is an `OutputWarning`. If the block raises, `out` is not
    changed. The remains of a killed process are removed by the next one that writes `out`. Raise
    `OutputError` if it exists and is not empty, if another process is writing it, and if it cannot
    be written.
    """
    target = Path(os.path.realpath(out))
    try:
        with _parents(target), OutputLock(out, name_beside(target, ".lock")):
            _clear_up(target)
            _check_free(out, target, force=force)
            draft = name_beside(target, f"-{secrets.token_hex(4)}")
            try:  # a signal may come as soon as the folder is made
                draft.mkdir(_mode(target))
                if _mode(target) & stat.S_ISGID:  # which `mkdir` leaves out
                    with suppress(OSError):  # some file systems have no modes
                        draft.chmod(stat.S_IMODE(draft.stat().st_mode) | stat.S_ISGID)
                yield draft
                if flush:
                    report_progress("flushing the output to the disk")
                    flush_files([*draft.iterdir(), draft])
                raise_if_stopped()
                _replace(out, target, draft, force=force)
            except BaseException:
                _remove(draft)
                raise
            _finish(out, target, draft, flush=flush)
    except OSError as error:
        raise _unwritable(out, error) from error


def _unwritable(out: Path, error: OSError) -> OutputError:
    """Return the error for a failure to write `out`, which names another file that it is about."""
    about = "" if error.filename in (None, str(out)) else f" ({error.filename})"
    if error.errno == errno.EXDEV:
        about += "; it is of a lower layer of an overlay file system: remove it first"
    if error.errno == errno.EBUSY:
        about += "; if it is a mount point, name a folder in it"
    return OutputError(f"{out}: cannot be written: {error.strerror or error}{about}")


def check_new_folder(out: Path, inputs: Iterable[Path], *, force: bool = False) -> None:
    """Raise `OutputError` if `new_folder` would refuse `out`, so that it is known beforehand.

    Raise it, too, if `out` is or contains an input, or a file that a link in an input leads to.
    """
    try:
        target = Path(os.path.realpath(out))
        for path in (path for path in inputs if path.exists()):  # standard input is no file
            if _holds(target, path) or _is_linked_from(path, target):
                raise OutputError(f"{out}: the output would replace its own input {path}")
        _check_free(out, target, force=force)
        if (lock := name_beside(target, ".lock")).exists():
            with OutputLock(out, lock):  # of a killed run; raises if another is writing `out`
                pass
        check_can_replace(target)
        check_can_make_files(next(folder for folder in target.parents if folder.exists()))
    except OSError as error:
        raise _unwritable(out, error) from error


@contextmanager
def _parents(target: Path) -> Iterator[None]:
    """Make the folders above an output that do not exist; remove them if the block raises."""
    missing = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for folder in missing:  # the innermost first
            with suppress(OSError):
                folder.rmdir()
        raise


def _mode(target: Path) -> int:
    """Return the mode of a folder to be replaced; all permissions if it does not exist."""
    return stat.S_IMODE(target.stat().st_mode) | stat.S_IRWXU if target.exists() else 0o777


def _finish(out: Path, target: Path, draft: Path, *, flush: bool) -> None:
    """Remove the old folder and flush its parent, after the exchange; failures are warnings."""
    _remove_old(draft)
    if not flush:
        return
    try:
        flush_files([target.parent])
    except OSError as error:
        warn_of_output(
            f"{out} is written, but a power cut may undo it: {target.parent} could not be flushed "
            f"to the disk: {error.strerror}"
        )


def _remove_old(folder: Path) -> None:
    """Remove an old output, or the remains of a killed run; warn if that fails."""
    if problem := _remove(folder):
        warn_of_output(
            f"the old folder {folder} could not be removed: {problem}; remove it by hand"
        )


def _unlink_files(folder: Path) -> None:
    """Remove files of a folder, several at a time; if the system denies the threads, not all."""

    def unlink(path: Path) -> None:
        with suppress(OSError):
            path.unlink()

    paths = folder.iterdir()
    with suppress(RewriteLogError), Threads(FILE_THREADS) as pool:
        while batch := list(islice(paths, _BATCH_FILES)):
            list(pool.map(unlink, batch))


def _remove(folder: Path) -> str:
    """Remove a folder, with read-only folders in it; return why that failed, or ""."""
    problems: list[str] = []

    def note(_function: object, path: str, info: tuple[type, BaseException, object]) -> None:
        if not isinstance(info[1], FileNotFoundError):
            problems.append(f"{path}: {getattr(info[1], 'strerror', None) or info[1]}")

    with suppress(OSError):
        folder.chmod(stat.S_IRWXU)
        for above, names, _ in os.walk(folder):
            for path in (Path(above, name) for name in names):
                if not path.is_symlink():
                    path.chmod(stat.S_IRWXU)
        _unlink_files(folder)
        folder.rmdir()  # `rmtree` refuses a folder whose inode number changes
        return ""
    try:
        shutil.rmtree(folder, onerror=note)
    except OSError as error:  # of a descriptor, for which `onerror` is not called
        problems.append(error.strerror or str(error))
    return problems[0] if problems else ""


def _holds(folder: Path, path: Path) -> bool:
    """Return whether a path is a folder or lies in it, through links and mounts too."""
    real = Path(os.path.realpath(path))
    return any(are_same(above, folder) for above in (real, *real.parents))


def _is_linked_from(path: Path, folder: Path) -> bool:
    """Return whether links in an input lead to files in a folder."""
    if not (path.is_dir() and folder.is_dir()):
        return False
    with os.scandir(path) as entries:
        links = [entry.path for entry in entries if entry.is_symlink()]
    return any(folder in Path(os.path.realpath(link)).parents for link in links)


def _check_free(out: Path, target: Path, *, force: bool) -> None:
    """Raise `OutputError` if `out` is not a folder, is not empty, or must not be replaced."""
    if not target.name:
        raise OutputError(f"{out}: cannot be the output folder")
    if (target.exists() or target.is_symlink()) and not target.is_dir():
        raise OutputError(f"{out}: exists and is not a folder")
    if not target.is_dir():
        return
    if target.is_mount():
        raise OutputError(f"{out}: is a mount point, which no folder can replace: name one in it")
    if not force and any(target.iterdir()):
        raise _not_empty_error(out)
    with suppress(OSError, RuntimeError):  # a folder that was removed, a user without a home
        for name, place in (("current", Path.cwd()), ("home", Path.home())):
            if _holds(target, place):
                raise OutputError(f"{out}: is or holds the {name} folder, and would be replaced")


def _not_empty_error(out: Path) -> OutputError:
    return OutputError(f"{out}: exists and is not empty ({spelled('force', True)} replaces it)")


def _clear_up(target: Path) -> None:
    """Remove the remains of killed runs; restore an old output that such a run had moved away."""
    beside = re.escape(name_beside(target, "-").name)
    remains_pattern = re.compile(beside + r"[0-9a-f]{8}(\.old)?")
    for path in target.parent.iterdir():
        if remains := remains_pattern.fullmatch(path.name):
            if remains[1] and not target.exists():
                path.rename(target)
            else:
                _remove_old(path)


def _replace(out: Path, target: Path, draft: Path, *, force: bool) -> None:
    """Rename the draft to the output's name; an old output then has the draft's name."""
    try:
        draft.rename(target)  # over nothing or an empty folder
    except OSError:  # with any number: over a folder, sshfs answers EPERM
        if not target.is_dir():
            raise
    else:
        return
    if not force and any(target.iterdir()):
        raise _not_empty_error(out)
    if not _exchange(draft, target):
        _rename_in_turn(target, draft, draft.with_name(f"{draft.name}.old"))


def _exchange(draft: Path, target: Path) -> bool:
    """Exchange two folders atomically; return whether the system supports that."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    names = (os.fsencode(draft), os.fsencode(target))
    if rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(target))


def _rename_in_turn(target: Path, draft: Path, aside: Path) -> None:
    try:
        target.rename(aside)
        draft.rename(target)
    finally:
        if target.exists():
            _remove_old(aside)
        else:
            aside.rename(target)


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
                warn_of_output(
                    f"{self._out} is written, but its lock {self._path} could not be removed: "
                    f"{problem.strerror}"
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
    """Raise `OutputError` for a file that is not a lock file, since it would be overwritten."""
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
    """Return whether an open file still is the one at a path, as far as inode numbers tell."""
    status = os.fstat(fd)
    try:
        is_same = os.path.samestat(status, path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False
    return is_same or not os.path.samestat(status, os.fstat(fd))  # numbers that change tell nothing
