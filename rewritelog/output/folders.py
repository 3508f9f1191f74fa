"""Output folders that are whole or not there.

Beside OUT there may be, while it is written and after a run that was killed:

- `.OUT.rewritelog.lock`: says which process of which host writes OUT, and is locked by it
- `.OUT.rewritelog-TOKEN`: the folder that becomes OUT
- `.OUT.rewritelog-TOKEN.old`: what OUT was, while it is replaced where two folders cannot be
  exchanged at once

Who has the lock knows that whatever else is there was left by a run that is dead.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import secrets
import shutil
import stat
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rewritelog.errors import OutputError, OutputWarning
from rewritelog.output.files import flush_files, name_beside
from rewritelog.output.lock import OutputLock
from rewritelog.progress import report_progress
from rewritelog.stopping import raise_if_stopped

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@contextmanager
def new_folder(
    out: Path, inputs: Sequence[Path] = (), *, force: bool = False, flush: bool = True
) -> Iterator[Path]:
    """Yield a folder beside `out` to write into; it becomes `out` when the block ends well.

    What was written is on the disk before it does, unless not to `flush` is what is wanted.

    `out` must be absent or empty unless `force`, and then what it held is removed after the new
    folder has taken its place; what cannot be done then is an `OutputWarning`. Whatever else ends
    the block leaves `out` as it was; what a killed process leaves, the next one that writes `out`
    removes. Raise `OutputError` where `out` is or holds one of `inputs`, or what they link to;
    where it is taken, or another process is writing it; and where it cannot be written.
    """
    target = Path(os.path.realpath(out))
    try:
        _check_place(out, target, inputs)
        with OutputLock(out, name_beside(target, ".lock")):
            _clear_up(target)
            _check_free(out, target, force=force)
            _check_links(out, target, inputs)
            draft = name_beside(target, f"-{secrets.token_hex(4)}")
            try:  # a signal may come as soon as the folder is made
                draft.mkdir()
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
        about = "" if error.filename in (None, str(out)) else f" ({error.filename})"
        raise OutputError(f"{out}: cannot be written: {error.strerror or error}{about}") from error


def _finish(out: Path, target: Path, draft: Path, *, flush: bool) -> None:
    """Do what is left when `out` is the new folder; what goes wrong then is a warning."""
    _remove_old(draft)
    if not flush:
        return
    try:
        flush_files([target.parent])
    except OSError as error:
        warnings.warn(
            f"{out} is written, but a power cut may undo it: {target.parent} could not be brought "
            f"to the disk: {error.strerror}",
            OutputWarning,
            stacklevel=2,
        )


def _remove_old(folder: Path) -> None:
    """Remove what an output was, or what a killed run has left; warn where that cannot be."""
    if problem := _remove(folder):
        warnings.warn(
            f"the old folder {folder} could not be removed: {problem}; remove it by hand",
            OutputWarning,
            stacklevel=2,
        )


def _remove(folder: Path) -> str:
    """Remove a folder, read-only folders in it too; return why it could not be, else nothing."""
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
    try:
        shutil.rmtree(folder, onerror=note)
    except OSError as error:  # of a descriptor, which it does not note
        problems.append(error.strerror or str(error))
    return problems[0] if problems else ""


def _check_place(out: Path, target: Path, inputs: Sequence[Path]) -> None:
    """Refuse a place that cannot be an output folder, or where an input is or would vanish."""
    for path in inputs:
        if _holds(target, path):
            raise OutputError(f"{out}: the output would replace its own input {path}")
    if not target.name:
        raise OutputError(f"{out}: cannot be the output folder")
    if not target.parent.is_dir():
        raise OutputError(f"{out}: the folder {target.parent} does not exist")
    if (target.exists() or target.is_symlink()) and not target.is_dir():
        raise OutputError(f"{out}: exists and is not a folder")


def _holds(folder: Path, path: Path) -> bool:
    """Return whether a path is a folder or lies in it, by whatever names both are reached."""
    real = Path(os.path.realpath(path))
    above = (real, *real.parents)
    if folder in above:
        return True
    try:
        wanted = folder.stat()
    except OSError:  # what is not there holds nothing
        return False
    return any(_is_same(one, wanted) for one in above)


def _is_same(path: Path, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), wanted)
    except OSError:  # an input that is not there is refused by who reads it
        return False


def _check_free(out: Path, target: Path, *, force: bool) -> None:
    if not force and target.is_dir() and any(target.iterdir()):
        raise _taken(out)


def _taken(out: Path) -> OutputError:
    return OutputError(f"{out}: exists and is not empty (--force replaces it)")


def _check_links(out: Path, target: Path, inputs: Sequence[Path]) -> None:
    """Refuse to replace a folder that holds the files which an input folder only links to."""
    if not (target.is_dir() and any(target.iterdir())):
        return
    for folder in inputs:
        if folder.is_dir():
            with os.scandir(folder) as entries:
                links = [Path(entry.path) for entry in entries if entry.is_symlink()]
            for path in links:
                if target in Path(os.path.realpath(path)).parents:
                    raise OutputError(f"{out}: the output would replace its own input {path}")


def _clear_up(target: Path) -> None:
    """Remove what killed runs left beside the output, and put back what one had set aside."""
    beside = re.escape(name_beside(target, "-").name)
    left = re.compile(beside + r"[0-9a-f]{8}(\.old)?")
    for path in target.parent.iterdir():
        if found := left.fullmatch(path.name):
            if found[1] and not target.exists():
                path.rename(target)
            else:
                _remove_old(path)


def _replace(out: Path, target: Path, draft: Path, *, force: bool) -> None:
    """Give the draft the output's name; what was there is then under the draft's, if at all."""
    try:
        draft.rename(target)  # over nothing or an empty folder
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    else:
        return
    if not force:
        raise _taken(out)
    if not _exchange(draft, target):
        _rename_in_turn(target, draft, draft.with_name(f"{draft.name}.old"))


def _exchange(one: Path, other: Path) -> bool:
    """Give each of two folders the other's name at once; return whether the system can."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    names = (os.fsencode(one), os.fsencode(other))
    if rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(other))


def _rename_in_turn(target: Path, draft: Path, aside: Path) -> None:
    try:
        target.rename(aside)
        draft.rename(target)
    finally:
        if target.exists():
            _remove_old(aside)
        else:
            aside.rename(target)
