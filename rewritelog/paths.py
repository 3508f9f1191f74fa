"""Paths given in any accepted form: of inputs, which exist, and of outputs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeGuard

from rewritelog.errors import MissingFileError, UsageError, UsageTypeError
from rewritelog.options import PathLike

STANDARD_STREAM = Path("-")
"""Means stdin as an input, and stdout as an output."""


def to_path(given: object, what: str) -> Path:
    """Return a path; raise `UsageTypeError` naming `what` for anything else."""
    if isinstance(given, str | os.PathLike):
        found = os.fspath(given)
        if isinstance(found, str):
            return Path(found)
    raise UsageTypeError(f"{what} must be a path, not {type(given).__name__}")


def to_input(given: object, what: str) -> Path:
    """Return the path of an input; raise `MissingFileError` if it does not exist."""
    path = to_path(given, what)
    if path != STANDARD_STREAM and not path.exists():
        raise MissingFileError(f"{path}: does not exist")
    return path


def to_output(given: object, what: str) -> Path | None:
    """Return the path of an output, standard output for `-`, and None for None."""
    path = None if given is None else to_path(given, what)
    return Path("/dev/stdout") if path == STANDARD_STREAM else path


def are_paths(given: object) -> TypeGuard[PathLike | Sequence[PathLike]]:
    """Return whether timings are given as files."""
    if isinstance(given, str | os.PathLike):
        return True
    return isinstance(given, list | tuple) and all(
        isinstance(one, str | os.PathLike) for one in given
    )


def to_inputs(given: object, what: str) -> tuple[Path, ...]:
    """Return the paths of one or more inputs; raise as `to_input` does."""
    if isinstance(given, str | os.PathLike):
        return (to_input(given, what),)
    if not isinstance(given, Iterable):
        raise UsageTypeError(f"{what} must be a path or several, not {type(given).__name__}")
    paths = tuple(to_input(one, what) for one in given)
    if not paths:
        raise UsageError(f"{what}: name at least one file")
    return paths
