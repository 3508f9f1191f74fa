"""The errors of rewritelog: one root, which the command line catches once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class RewriteLogError(Exception):
    """Something is wrong with the input, the options or the system, and the message says what."""


class UsageError(RewriteLogError, ValueError):
    """The arguments or options of a call are invalid (exit code 2 on the command line)."""


class UsageTypeError(UsageError, TypeError):
    """An argument is of a type that is not accepted, or has an unknown name."""


class MissingFileError(RewriteLogError, FileNotFoundError):
    """An input file or folder does not exist."""


class NotComparableError(UsageError):
    """Two log sets cannot be compared, so that there is no answer (exit code 2, as of diff)."""


class ModelError(RewriteLogError):
    """A model cannot be found, cannot be fitted or gives values that cannot be used."""


class TimingError(RewriteLogError):
    """Timing lines or param records cannot be used; the message names file, line and text."""


class OutputError(RewriteLogError):
    """The output cannot be written where it was asked for."""


class OutputWarning(UserWarning):
    """An output is written, and something around it is not as it should be."""


@dataclass(frozen=True)
class Location:
    """Where in a log set something is: every part that is known."""

    file: Path | None = None
    offset_bytes: int | None = None
    pe: int | None = None
    seb: int | None = None
    field: str | None = None

    def __str__(self) -> str:
        """Spell the location as a message does, as in `bgTrace0, byte 20, PE 3, SEB 7`."""
        named = (
            (str(self.file) if self.file is not None else None),
            (f"byte {self.offset_bytes}" if self.offset_bytes is not None else None),
            (f"PE {self.pe}" if self.pe is not None else None),
            (f"SEB {self.seb}" if self.seb is not None else None),
            (f"field {self.field}" if self.field is not None else None),
        )
        return ", ".join(part for part in named if part is not None)


class DamagedLogError(RewriteLogError):
    """A log violates its own format: `location` says where, `rule` which rule of `check`."""

    def __init__(self, location: Location, problem: str, rule: str = "unreadable") -> None:
        super().__init__(f"{location}: {problem}")
        self.location = location
        self.problem = problem
        self.rule = rule

    def __reduce__(self) -> tuple[type[DamagedLogError], tuple[Location, str, str]]:
        """Pickle by what it was made of, so that it crosses process borders whole."""
        return (type(self), (self.location, self.problem, self.rule))
