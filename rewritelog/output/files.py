"""Output files: written in pieces by several workers, copied, flushed; or replaced as a whole."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from rewritelog.arrays import Bytes
from rewritelog.errors import OutputError, RewriteLogError, UsageError, warn_of_output
from rewritelog.formats.files import InputFile, paths_in
from rewritelog.paths import exists
from rewritelog.running.engines import Gathered, in_threads
from rewritelog.text import matches

if TYPE_CHECKING:
    from rewritelog.formats.bgtrace.logset import LogSet

_COPY_BYTES = 1 << 20

_CACHED_WRITE_BYTES = 1 << 18
"""The size of cached writes, as in cp: longer ones need larger contiguous pieces of memory."""

_NAME_BYTES = 200
"""Longer names are shortened: file systems allow 255 bytes, and the longest ending has 35."""

FILE_THREADS = 8
"""Files that are flushed or removed at a time; one by one, each takes up to 5 ms on a disk."""

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

    Several are flushed at a time, since journals of file systems write them together. This covers
    what this process has written; on a shared file system each host has to call it.
    """
    for _ in in_threads(_flush, paths, FILE_THREADS, ahead=8):
        pass


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:  # some file systems cannot flush folders
            raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(descriptor)


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


def write_at(path: Path, data: Bytes, offset: int, *, flush: bool) -> None:
    """Write data into an existing file, which others may do at the same time; raise `OSError`.

    With `flush`, which says that the file will be flushed in the end, the bytes are written to the
    disk at once and do not stay in the page cache, if the system supports that. Flushing everything
    at the end, and filling the page cache with the whole output, take several times as long.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    uncached, view = flush and sys.platform == "linux", data.data
    try:
        while view:
            try:
                if uncached:
                    written = os.pwritev(descriptor, [view], offset, _RWF_DONTCACHE)
                else:
                    written = os.pwrite(descriptor, view[:_CACHED_WRITE_BYTES], offset)
            except OSError as error:
                if not uncached or error.errno not in _UNSUPPORTED:
                    raise
                uncached, written = False, 0
            view, offset = view[written:], offset + written
    finally:
        _close(descriptor, path)


def _close(descriptor: int, path: Path) -> None:
    """Close a file; raise `OSError` with its name if data that was written is lost."""
    try:
        os.close(descriptor)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


Item = TypeVar("Item")
Result = TypeVar("Result")


class FlushingWork(Gathered[Item, Result]):
    """Work that writes files; each process flushes those that it wrote, as no other host can."""

    def __init__(
        self,
        work: Callable[[Item, FlushingWork[Item, Result]], Result],
        folder: Path | None,
        *,
        flush: bool,
    ) -> None:
        """Take the function, and the folder of the files; None to write nothing.

        The function gets an item and this object, whose `write` it calls. The files must exist.
        """
        self.folder = folder
        self._work, self._flush = work, flush
        self._written: set[Path] = set()

    def __call__(self, block: Item, /) -> Result:
        """Return the result of one item."""
        return self._work(block, self)

    def write(self, name: str, data: Bytes, offset: int) -> None:
        """Write into a file of the folder; raise `OSError` if that fails."""
        if self.folder is not None:
            path = self.folder / name
            self._written.add(path)
            write_at(path, data, offset, flush=self._flush)

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


_MOST_LINKS = 40
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


def check_outputs(
    outputs: Iterable[Path | None],
    inputs: Sequence[Path],
    replaced: Sequence[Path] = (),
    others: Sequence[Path] = (),
) -> None:
    """Raise `OutputError` if a file to be written is an input, a folder or another output.

    It is also raised if the file lies in a folder that is `replaced` as a whole, and if it cannot
    be written, so that this is known before the work begins. All files in folders among the inputs
    are inputs; `others` are outputs too, which are checked elsewhere. None stands for an output
    that was not given.
    """
    paths = [path for path in outputs if path is not None]
    for number, output in enumerate(paths):
        try:
            _check_output(output, inputs, replaced)
            if any(are_same(output, other) for other in (*others, *paths[:number])):
                raise OutputError(f"{output}: is given for two outputs")
            _check_writable(output)
        except OSError as error:
            raise _unwritable(output, error) from error


def check_page(path: Path) -> None:
    """Raise `UsageError` for an ending that is not a page's, unless the path is a stream."""
    is_stream = descriptor_of(path) is not None or (exists(path) and _is_stream(path))
    if not is_stream and path.suffix.lower() != ".html":
        raise UsageError(f"{path}: a page needs the ending .html")


def _check_output(output: Path, inputs: Sequence[Path], replaced: Sequence[Path]) -> None:
    if output.is_dir():
        raise OutputError(f"{output}: is a folder")
    real = Path(os.path.realpath(output))
    for folder in replaced:
        if Path(os.path.realpath(folder)) in (real, *real.parents):
            raise OutputError(f"{output}: lies in {folder}, which is the output folder")
    in_folder = output.exists() and any(are_same(real.parent, folder) for folder in inputs)
    if in_folder or any(are_same(output, path) for path in inputs):
        raise OutputError(f"{output}: the output would replace an input")


def are_same(path: Path, other: Path) -> bool:
    """Return whether two paths lead to the same file or folder, through links too."""
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    try:
        return path.samefile(other) and not _is_stream(path)
    except OSError:  # a file that does not exist is not the same
        return False


def _is_stream(path: Path) -> bool:
    """Return whether a path is a pipe, a terminal or another device, which cannot be replaced."""
    return not (path.is_file() or path.is_dir())


def _check_writable(path: Path) -> None:
    """Raise `OSError` if a file cannot be written."""
    descriptor = descriptor_of(path)
    if descriptor is not None:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            closed = os.fstat(descriptor).st_rdev == Path(os.devnull).stat().st_rdev
            raise PermissionError(0, "it is closed" if closed else "it is open for reading only")
    elif exists(path) and _is_stream(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(0, "Permission denied")
    else:
        target = Path(os.path.realpath(path))
        _check_mode(target)
        check_can_replace(target)
        check_can_make_files(target.parent)


def check_can_replace(target: Path) -> None:
    """Raise `OSError` for another user's file or folder in one where only owners may rename."""
    if target.exists():
        above = target.parent.stat()
        owners = (0, above.st_uid, target.stat().st_uid)
        if above.st_mode & stat.S_ISVTX and os.geteuid() not in owners:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def check_can_make_files(folder: Path) -> None:
    """Raise `OSError` if no file can be created in a folder.

    Where the system has files without a name, one is made, so that a signal at any moment leaves
    nothing behind.
    """
    if sys.platform == "linux":
        try:
            os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        except OSError as error:
            if error.errno not in (*_UNSUPPORTED, errno.EISDIR):  # some file systems have none
                raise
        else:
            return
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def _check_mode(target: Path) -> None:
    """Raise `OSError` for a read-only file, although it could be replaced in its folder."""
    if target.is_file() and not target.is_symlink():
        os.close(os.open(target, os.O_WRONLY | os.O_CLOEXEC))


def descriptor_of(path: Path) -> int | None:
    """Return the descriptor of this process that a path such as `/dev/stdout` refers to.

    Such an output is written at the descriptor's position and not replaced, even if it is a file.
    """
    descriptors = Path(f"/proc/{os.getpid()}/fd")
    name = Path.cwd() / path if not path.is_absolute() else path
    for _ in range(_MOST_LINKS):
        if str(name) in _STANDARD:
            return _STANDARD[str(name)]
        folder = Path(os.path.realpath(name.parent))
        if folder == descriptors and name.name.isdecimal():
            return int(name.name)
        if not name.is_symlink():
            return None
        name = folder / name.readlink()
    return None


def write_text_file(path: Path, text: str, *, through_links: bool = True) -> None:
    """Write text in UTF-8, as `write_file` writes bytes."""
    write_file(path, text.encode(), through_links=through_links)


def write_file(path: Path, data: bytes | Iterable[bytes], *, through_links: bool = True) -> None:
    """Replace a file atomically, and keep its mode; a pipe or a device is written to directly.

    Data in pieces are written as they come; an error that they raise leaves the file as it was.

    A link at `path` is followed; unless `through_links`, it is itself replaced. Raise `OutputError`
    if the file cannot be written.
    """
    pieces = [data] if isinstance(data, bytes) else data
    try:
        if not through_links:
            _replace(path, pieces)
            return
        descriptor = descriptor_of(path)
        if descriptor == 1 and not hasattr(sys.stdout, "buffer"):  # as in a notebook
            sys.stdout.write(b"".join(pieces).decode(errors="backslashreplace"))
        elif descriptor == 1:
            sys.stdout.flush()
            sys.stdout.buffer.writelines(pieces)
            sys.stdout.flush()
        elif descriptor is not None:
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                stream.writelines(pieces)
        elif exists(path) and not path.is_file():
            with path.open("wb") as stream:
                stream.writelines(pieces)
        else:
            _replace(Path(os.path.realpath(path)), pieces)
    except RewriteLogError:  # raised by what makes the pieces
        raise
    except OSError as error:
        raise _unwritable(path, error) from error


def _replace(target: Path, pieces: Iterable[bytes]) -> None:
    """Replace a file by one with its mode, or create it; a link at `target` is itself replaced."""
    _check_mode(target)
    draft, mode = name_beside(target, f"-{secrets.token_hex(4)}"), _mode_of(target)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(draft, flags, 0o666 if mode is None else 0o600), "wb") as file:
            if mode is not None:
                with suppress(OSError):  # some file systems have no modes
                    os.fchmod(file.fileno(), mode)
            file.writelines(pieces)
        draft.replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            draft.unlink()
        raise


def _mode_of(path: Path) -> int | None:
    """Return the permissions of a regular file; None for anything else, links included."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return None
    return mode & 0o777 if stat.S_ISREG(mode) else None


def _unwritable(path: Path, error: OSError) -> OutputError:
    return OutputError(f"{path}: cannot be written: {error.strerror or error}")


COMPANIONS = ("*.sts", "*.log.gz")
"""Files of Projections, which simulators read together with the logs."""


def copy_companions(logs: LogSet, target: Path, patterns: tuple[str, ...] = COMPANIONS) -> None:
    """Copy the files of the log folder whose names match a pattern, as `copy_own_files` does."""
    chosen = (
        path
        for path in paths_in(logs.folder)
        if any(matches(pattern, path.name) for pattern in patterns)
    )
    copy_own_files(logs, (path for path in chosen if not path.is_dir()), target)


def copy_own_files(logs: LogSet, paths: Iterable[Path], target: Path) -> None:
    """Copy files, except links that lead out of both their own folder and those of the logs.

    Logs may come from untrusted sources, and a link among them may lead to a private file. Links
    that are not copied cause a warning.
    """
    files = (logs.summary_path, *(file.path for file in logs.files))
    own = {Path(os.path.realpath(path)).parent for path in files}
    for path in paths:
        folders = {*own, Path(os.path.realpath(path.parent))}
        if path.is_symlink() and folders.isdisjoint(Path(os.path.realpath(path)).parents):
            warn_of_output(
                f"{path} is a link to a file outside of the log folders: it is not copied"
            )
        else:
            copy_file(path, target / path.name)
