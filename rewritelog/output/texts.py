"""Single output files: checked before the work begins, and replaced atomically."""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from rewritelog.errors import OutputError
from rewritelog.output.files import name_beside

_MOST_LINKS = 40
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


def check_outputs(
    outputs: Iterable[Path | None],
    inputs: Iterable[Path | None],
    folders: Iterable[Path | None] = (),
    replaced: Iterable[Path | None] = (),
) -> None:
    """Raise `OutputError` if a file to be written is an input, a folder or another output.

    It is also raised if the file lies in a folder that is `replaced` as a whole, and if it cannot
    be written, so that this is known before the work begins. All files in `folders` are inputs.
    None stands for a file or folder that was not given.
    """
    files = [path for path in inputs if path is not None]
    within = [path for path in folders if path is not None]
    paths = [path for path in outputs if path is not None]
    for number, output in enumerate(paths):
        try:
            _check_output(output, files, within, [path for path in replaced if path is not None])
            if any(_same(output, other) for other in paths[:number]):
                raise OutputError(f"{output}: is given for two outputs")
            _check_writable(output)
        except OSError as error:
            raise _unwritable(output, error) from error


def _check_output(
    output: Path, files: list[Path], folders: list[Path], replaced: list[Path]
) -> None:
    if output.is_dir():
        raise OutputError(f"{output}: is a folder")
    real = Path(os.path.realpath(output))
    for folder in replaced:
        if Path(os.path.realpath(folder)) in (real, *real.parents):
            raise OutputError(f"{output}: lies in {folder}, which is the output folder")
    in_folder = output.exists() and any(_same(real.parent, folder) for folder in folders)
    if in_folder or any(_same(output, path) for path in files):
        raise OutputError(f"{output}: the output would replace an input")


def _same(path: Path, other: Path) -> bool:
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
    """Raise `OSError` if a file cannot be written; the trial leaves no file behind."""
    descriptor = descriptor_of(path)
    if descriptor is not None:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise PermissionError(0, "it is open for reading only")
    elif path.exists() and _is_stream(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(0, "Permission denied")
    else:
        draft = _draft_beside(Path(os.path.realpath(path)))
        try:  # a signal may come as soon as the file is made
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
        finally:
            draft.unlink(missing_ok=True)


def _draft_beside(target: Path) -> Path:
    return name_beside(target, f"-{secrets.token_hex(4)}")


def descriptor_of(path: Path) -> int | None:
    """Return the descriptor of this process that a path such as `/dev/stdout` refers to.

    Even if it is a file, it is written at its position, and not replaced.
    """
    own = Path(f"/proc/{os.getpid()}/fd")
    name = Path.cwd() / path if not path.is_absolute() else path
    for _ in range(_MOST_LINKS):
        if str(name) in _STANDARD:
            return _STANDARD[str(name)]
        folder = Path(os.path.realpath(name.parent))
        if folder == own and name.name.isdecimal():
            return int(name.name)
        if not name.is_symlink():
            return None
        name = folder / name.readlink()
    return None


def write_text_file(path: Path, text: str, *, through_links: bool = True) -> None:
    """Write text in UTF-8, as `write_file` writes bytes."""
    write_file(path, text.encode(), through_links=through_links)


def write_file(path: Path, data: bytes, *, through_links: bool = True) -> None:
    """Replace a file atomically, and keep its mode; a pipe or a device is written to directly.

    What is at `path` may be a link to any of these; unless `through_links`, it is itself replaced.
    Raise `OutputError` if the file cannot be written.
    """
    try:
        if not through_links:
            _replace(path, data)
            return
        descriptor = descriptor_of(path)
        if descriptor == 1:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
        elif descriptor is not None:
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                stream.write(data)
        elif path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            _replace(Path(os.path.realpath(path)), data)
    except OSError as error:
        raise _unwritable(path, error) from error


def _replace(target: Path, data: bytes) -> None:
    """Replace a file by one of its mode, or create it; a link at this very path is replaced."""
    draft, mode = _draft_beside(target), _mode_of(target)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(draft, flags, 0o666 if mode is None else 0o600), "wb") as file:
            if mode is not None:
                with suppress(PermissionError):  # some file systems have no modes
                    os.fchmod(file.fileno(), mode)
            file.write(data)
        draft.replace(target)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()


def _mode_of(path: Path) -> int | None:
    """Return the permissions of a file, None if there is no file at this very path."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return None
    return mode & 0o777 if stat.S_ISREG(mode) else None


def _unwritable(path: Path, error: OSError) -> OutputError:
    return OutputError(f"{path}: cannot be written: {error.strerror or error}")
