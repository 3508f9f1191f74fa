"""The location of a formula's text, and the error that names it."""

from __future__ import annotations

from dataclasses import dataclass

from rewritelog.errors import ModelError
from rewritelog.text import printable


class FormulaError(ModelError):
    """An invalid formula; file, line and column are part of the message.

    Lines and columns count from 1, columns in characters. The line is None for a text that is not
    in a file; both are None for a problem of the file as a whole.
    """

    def __init__(self, name: str, line: int | None, column: int | None, problem: str) -> None:
        super().__init__(f"{_location_text(name, line, column)}: {problem}")
        self.name = name
        self.line = line
        self.column = column
        self.problem = problem

    def __reduce__(self) -> tuple[type[FormulaError], tuple[str, int | None, int | None, str]]:
        """Pickle the arguments, so that the error passes between processes without loss."""
        return (type(self), (self.name, self.line, self.column, self.problem))


@dataclass(frozen=True)
class Origin:
    """The location of an expression's text; by default of a text that is not in a file."""

    name: str = "expression"
    """The name of the file, or of the text."""
    line: int | None = None
    """The line of its first character, from 1; None if it is not in a file."""
    column: int = 1
    """The column of its first character, from 1."""
    positions: tuple[tuple[int, int], ...] = ()
    """Line and column of each character and of the end, for a text with escapes or of several
    lines; empty if its characters follow each other in one line."""

    def error(self, problem: str, offset: int = 0) -> FormulaError:
        """Return the error for a problem with the character at `offset`, counted from 0."""
        if self.positions:
            line, column = self.positions[min(offset, len(self.positions) - 1)]
            return FormulaError(self.name, line, column, problem)
        return FormulaError(self.name, self.line, self.column + offset, problem)


def _location_text(name: str, line: int | None, column: int | None) -> str:
    """Return the location in the style of compilers, as in `formulas.toml:3:14`."""
    if line is None:
        return printable(name) + (f", column {column}" if column is not None else "")
    return f"{printable(name)}:{line}" + (f":{column}" if column is not None else "")
