"""Checks of paths given in any accepted form: of inputs, which must exist, and of outputs."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rewritelog.errors import MissingFileError, RewriteLogError, UsageError, UsageTypeError
from rewritelog.units import items_of

STANDARD_STREAM = Path("-")
"""Means stdin as an input, and stdout as an output."""


def to_path(value: object, what: str) -> Path:
    """Return a path; raise `UsageError` naming `what` for an empty text or anything else."""
    if isinstance(value, str | os.PathLike):
        path = os.fspath(value)
        if path == "":  # which would be the current folder
            raise UsageError(f"{what}: the path is empty")
        if isinstance(path, str):
            with suppress(UnicodeEncodeError):
                if b"\0" not in os.fsencode(path):
                    return Path(path)
            raise UsageError(f"{what}: no file can have the name {path!r}")
    raise UsageTypeError(f"{what} must be a path, not {type(value).__name__}")


def exists(path: Path) -> bool:
    """Return whether a path exists; raise `OSError` if that cannot be determined.

    In that case, `Path.exists` returns False from Python 3.14 on.
    """
    try:
        path.stat()
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return False
        raise
    return True


def input_exists(path: Path) -> bool:
    """Return whether an input exists; raise `RewriteLogError` if that cannot be determined."""
    try:
        return exists(path)
    except OSError as error:
        raise RewriteLogError(f"{path}: {error.strerror}") from error


def to_input(value: object, what: str) -> Path:
    """Return the path of an input; raise `MissingFileError` if it does not exist."""
    path = to_path(value, what)
    if path != STANDARD_STREAM and not input_exists(path):
        raise MissingFileError(f"{path}: does not exist")
    return path


def to_output(value: Any, what: str) -> Path:
    """Return the path of a file to write, standard output for `-`.

    Raise `UsageError` for a text that ends as a folder's does, which a `Path` no longer shows.
    """
    path = to_path(value, what)
    if os.fspath(value).endswith(os.sep):
        raise UsageError(f"{what}: {value} ends with {os.sep}, as a folder does: name a file")
    return Path("/dev/stdout") if path == STANDARD_STREAM else path


def to_folder(value: object, what: str) -> Path:
    """Return the path of a folder to write; raise `UsageError` for `-`."""
    path = to_path(value, what)
    if is_stdout(path):
        raise UsageError(f"{what}: is a folder, and cannot be standard output")
    return path


def is_stdout(output: object) -> bool:
    """Return whether an output is standard output, which reports are printed to."""
    return output is not None and str(output) in ("-", "/dev/stdout", "/dev/fd/1")


def to_inputs(value: object, what: str) -> tuple[Path, ...]:
    """Return the paths of one or more inputs; raise as `to_input` does."""
    if isinstance(value, str | os.PathLike):
        return (to_input(value, what),)
    listed = items_of(value)
    if listed is None:
        raise UsageTypeError(f"{what} must be a path or several, not {type(value).__name__}")
    paths = tuple(to_input(path, what) for path in listed)
    if not paths:
        raise UsageError(f"{what}: name at least one file")
    if paths.count(STANDARD_STREAM) > 1:
        raise UsageError(f"{what}: standard input (-) can be read only once")
    return paths


def relative_paths(paths: Sequence[Path]) -> list[str]:
    """Return paths without the folder that they share.

    A single path, and paths that share only the root, stay as they are.
    """
    common = os.path.commonpath([path.absolute().parent for path in paths])
    if len(set(paths)) == 1 or common == os.sep:
        return [str(path) for path in paths]
    return [os.path.relpath(path, common) for path in paths]
