"""The errors of rewritelog: one root class, and how messages name options and places in logs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar


class RewriteLogError(Exception):
    """The root of all errors: a problem of the input, the options or the system."""


class UsageError(RewriteLogError, ValueError):
    """The arguments or options of a call are invalid (exit code 2 on the command line)."""


class UsageTypeError(UsageError, TypeError):
    """An argument has a type that is not accepted, or an unknown name."""


class MissingFileError(RewriteLogError, FileNotFoundError):
    """An input file or folder does not exist."""


class ModelError(RewriteLogError):
    """A model cannot be found or fitted, or returns values that cannot be used."""


class TimingError(RewriteLogError):
    """Timing lines or param records cannot be used; the message names file, line and text."""


class OutputError(RewriteLogError):
    """The output cannot be written to the given path."""


class OutputWarning(UserWarning):
    """An output is written, but something related to it failed, such as removing old files."""


def warn_of_output(message: str) -> None:
    """Issue an `OutputWarning`."""
    warnings.warn(message, OutputWarning, stacklevel=3)


class Spelling:
    """How messages of this process name options."""

    as_flags: ClassVar[bool] = False
    """Whether they are spelled as on the command line, not as in Python."""
    flags: ClassVar[dict[str, str]] = {}
    """The flags that are not named after their field, by field."""


@contextmanager
def spelled_as_flags() -> Iterator[None]:
    """Let messages name options as the command line spells them."""
    Spelling.as_flags = True
    try:
        yield
    finally:
        Spelling.as_flags = False


def spelled(field: str, value: object = None) -> str:
    """Return an option, with a value if one is given, as the reader of a message would write it.

    On the command line that is `--total typical`, in Python `total='typical'`.
    """
    if not Spelling.as_flags:
        return field if value is None else f"{field}={value!r}"
    flag = Spelling.flags.get(field, f"--{field.replace('_', '-')}")
    return flag if value is None or value is True else f"{flag} {value}"


@dataclass(frozen=True)
class Location:
    """A location in a log set; parts that are unknown are None."""

    file: Path | None = None
    offset_bytes: int | None = None
    pe: int | None = None
    seb: int | None = None
    field: str | None = None
    node: int | None = None

    def __str__(self) -> str:
        """Return the location as in messages: `bgTrace0, byte 20, PE 3, SEB 7`."""
        parts = {
            "": self.file,
            "byte ": self.offset_bytes,
            "PE ": self.pe,
            "SEB ": self.seb,
            "field ": self.field,
            "node ": self.node,
        }
        return ", ".join(f"{what}{part}" for what, part in parts.items() if part is not None)


class DamagedLogError(RewriteLogError):
    """A log violates the format: `location` says where, `rule` which rule of `check`."""

    def __init__(self, location: Location, problem: str, rule: str = "unreadable") -> None:
        super().__init__(f"{location}: {problem}")
        self.location = location
        self.problem = problem
        self.rule = rule

    def __reduce__(self) -> tuple[type[DamagedLogError], tuple[Location, str, str]]:
        """Pickle the arguments, so that the error passes between processes without loss."""
        return (type(self), (self.location, self.problem, self.rule))
