"""Conversion of paths, tables and options from all accepted types."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from rewritelog.errors import MissingFileError, UsageError, UsageTypeError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rewritelog.arrays import Floats
    from rewritelog.formats.bgtrace.logset import LogSet
    from rewritelog.formats.traces import Traces

PathLike: TypeAlias = "str | os.PathLike[str]"
InputPath: TypeAlias = PathLike
OutputPath: TypeAlias = PathLike
"""The path of a file or folder that is read, and of one that is written."""
PathsLike: TypeAlias = "PathLike | Iterable[PathLike]"
LogsLike: TypeAlias = "LogSet | PathLike"
ManyLogsLike: TypeAlias = "LogSet | PathLike | Sequence[LogSet | PathLike]"
TracesLike: TypeAlias = "LogSet | Traces | PathLike"
"""Logs or traces in any format."""
UncheckedLike: TypeAlias = TracesLike
"""Logs or traces that may be too damaged to open."""
LogFolder: TypeAlias = LogsLike
"""A log set that may be too damaged to open."""

STANDARD_STREAM = Path("-")
"""Means stdin as an input, and stdout as an output."""

Options = TypeVar("Options")


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


def optional_path(given: object, what: str) -> Path | None:
    """Return None for None, or else what `to_path` returns."""
    return None if given is None else to_path(given, what)


def to_output(given: object, what: str) -> Path | None:
    """Return the path of an output, standard output for `-`, and None for None."""
    path = optional_path(given, what)
    return Path("/dev/stdout") if path == STANDARD_STREAM else path


def are_paths(given: object) -> bool:
    """Return whether timings are given as files."""
    if isinstance(given, str | os.PathLike):
        return True
    return isinstance(given, list | tuple) and all(
        isinstance(one, str | os.PathLike) for one in given
    )


def optional_input(given: object, what: str) -> Path | None:
    """Return None for None, or else what `to_input` returns."""
    return None if given is None else to_input(given, what)


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


def to_table(given: ArrayLike, columns: int | None, what: str = "X") -> Floats:
    """Return an array, lists or a DataFrame as a table of floats, shape (rows, columns).

    The columns of a DataFrame with exactly the names p1, p2, … are taken in that order. Raise
    `UsageError` for values of one dimension, which might be a row or a column.
    """
    names = getattr(given, "columns", None)
    if names is not None and len(names):
        ordered = [f"p{number}" for number in range(1, len(names) + 1)]
        if set(names) == set(ordered):
            given = given[ordered]  # type: ignore[call-overload,index]
    table = to_floats(given, what)
    if table.ndim != 2:
        raise UsageError(
            f"{what} must have two dimensions, a row for each sample and a column for each "
            f"parameter, as in [[8, 1], [16, 1]]; it has {table.ndim}"
        )
    if columns is not None and table.shape[1] != columns:
        raise UsageError(f"{what} must have {columns} columns, not {table.shape[1]}")
    return table


def to_column(given: ArrayLike, rows: int, what: str = "y") -> Floats:
    """Return values as floats of shape (rows,); raise `UsageError` for another shape."""
    column = to_floats(given, what)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.shape != (rows,):
        raise UsageError(f"{what} must have {rows} values, but has shape {column.shape}")
    return column


def to_floats(given: ArrayLike, what: str) -> Floats:
    """Return values as an array of floats; raise `UsageTypeError` if any is not a number."""
    import numpy as np  # noqa: PLC0415 - paths need none

    try:
        raw = np.asarray(given)
        floats = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageTypeError(f"{what} must be a table of numbers: {error}") from error
    if raw.dtype.kind in "USc":
        raise UsageTypeError(f"{what} must hold numbers, not {raw.dtype.name}")
    return floats


def make_options(kind: type[Options], given: Mapping[str, Any]) -> Options:
    """Return an options dataclass with these values; raise `UsageTypeError` for unknown names."""
    known = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(given.keys() - known)
    if unknown:
        names = ", ".join(sorted(known))
        raise UsageTypeError(f"unknown option {unknown[0]!r}; the options are {names}")
    return kind(**given)
