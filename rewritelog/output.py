"""Output folders that are whole or not there, and the files in them."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from rewritelog.errors import OutputError


@contextmanager
def new_folder(
    out: Path, inputs: Sequence[Path] = (), *, force: bool = False, flush: bool = True
) -> Iterator[Path]:
    """Yield a folder beside `out` to write into; it becomes `out` when the block ends well.

    What was written is on the disk before it does, unless not to `flush` is what is wanted.

    `out` must be absent or empty unless `force`, and then what it held is removed after the new
    folder has taken its place. Whatever else ends the block leaves `out` as it was. Raise
    `OutputError` where `out` is or holds one of `inputs`, is taken, or cannot be written.
    """
    target = out.resolve()
    _check_target(out, target, [path.resolve() for path in inputs], force=force)
    token = secrets.token_hex(4)
    draft = target.with_name(f".{target.name}.rewritelog-{token}")
    try:
        try:  # a signal may come as soon as the folder is made
            draft.mkdir()
            yield draft
            if flush:
                _flush(*draft.iterdir(), draft)
            _replace(target, draft, target.with_name(f".{target.name}.replaced-{token}"))
            if flush:
                _flush(target.parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        about = error.filename or out
        raise OutputError(f"{about}: cannot be written: {error.strerror or error}") from error


def _check_target(out: Path, target: Path, inputs: Sequence[Path], *, force: bool) -> None:
    for path in inputs:
        if path == target or target in path.parents:
            raise OutputError(f"{out}: the output would replace its own input {path}")
    if not target.parent.is_dir():
        raise OutputError(f"{out}: the folder {target.parent} does not exist")
    if target.exists() and not target.is_dir():
        raise OutputError(f"{out}: exists and is no folder")
    if not force and target.is_dir() and any(target.iterdir()):
        raise OutputError(f"{out}: exists and is not empty (--force replaces it)")


def _replace(target: Path, draft: Path, aside: Path) -> None:
    if target.is_dir() and any(target.iterdir()):
        try:
            target.rename(aside)
            draft.rename(target)
        finally:
            if target.exists():
                shutil.rmtree(aside, ignore_errors=True)
            else:
                aside.rename(target)
    else:
        draft.rename(target)


def _flush(*paths: Path) -> None:
    """Wait until files and folders are on the disk, so that a power cut leaves them whole."""
    for path in paths:
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def create_file(path: Path, size_bytes: int, head: bytes = b"") -> None:
    """Make a file of the size that it will have, beginning with `head`."""
    with path.open("xb") as file:
        file.write(head)
        file.truncate(size_bytes)


class OutputFile:
    """A file that was created before, written in any order and by many threads or processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)

    def write(self, data: NDArray[np.uint8] | bytes, offset: int) -> None:
        """Write all of `data` at `offset`; raise `OSError` where the system will not."""
        view = data.data if isinstance(data, np.ndarray) else memoryview(data)
        done = 0
        while done < len(view):
            done += os.pwrite(self._fd, view[done:], offset + done)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
