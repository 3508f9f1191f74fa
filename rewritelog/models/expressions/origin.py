"""Where a text of formulas is, and the error that names the place."""

from __future__ import annotations

from dataclasses import dataclass

from rewritelog.errors import ModelError
from rewritelog.text import printable


class FormulaError(ModelError):
    """A formula cannot be used; file, line and column are part of the message.

    Lines and columns count from 1, columns in characters; line is None where the text has none of
    its own, and both are None where the problem is the file's as a whole.
    """

    def __init__(self, name: str, line: int | None, column: int | None, problem: str) -> None:
        super().__init__(f"{_spell(name, line, column)}: {problem}")
        self.name = name
        self.line = line
        self.column = column
        self.problem = problem

    def __reduce__(self) -> tuple[type[FormulaError], tuple[str, int | None, int | None, str]]:
        """Pickle by what it was made of, so that it crosses process borders whole."""
        return (type(self), (self.name, self.line, self.column, self.problem))


@dataclass(frozen=True)
class Origin:
    """Where an expression's text is; the default is a text that no file holds."""

    name: str = "expression"
    """The file's name, or what the text is called."""
    line: int | None = None
    """The line of its first character, from 1; None where the text is in no lines."""
    column: int = 1
    """The column of its first character, from 1."""
    places: tuple[tuple[int, int], ...] = ()
    """Line and column of each character and of the end, for a text that was written with escapes
    or over several lines; empty for one that is in its line as it is."""

    def error(self, problem: str, offset: int = 0) -> FormulaError:
        """Return the error that the problem is, of the character at `offset`, counted from 0."""
        if self.places:
            line, column = self.places[min(offset, len(self.places) - 1)]
            return FormulaError(self.name, line, column, problem)
        return FormulaError(self.name, self.line, self.column + offset, problem)


def _spell(name: str, line: int | None, column: int | None) -> str:
    """Return the place as compilers name it, as in `formulas.toml:3:14`."""
    if line is None:
        return printable(name) + (f", column {column}" if column is not None else "")
    return f"{printable(name)}:{line}" + (f":{column}" if column is not None else "")
