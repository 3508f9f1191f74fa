"""A plot with a list above it: what is chosen there is put into the plot by a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

from rewritelog.arrays import Floats
from rewritelog.viewing.event_data import SEED, packed


@dataclass(frozen=True)
class Option:
    """What one line of the list shows."""

    label: str
    sources: Mapping[str, Mapping[str, Floats]]
    """Columns of numbers by the name of the source that they are put into."""
    heads: Sequence[str]
    """Heads of the table behind the plot, one for each column of a source."""
    names: Mapping[str, str]
    """What the table calls the sources; it has the rows of those that are here."""
    axes: Mapping[str, str] = field(default_factory=dict)
    """Labels of the axes `below` and `left`."""
    logarithmic: Sequence[Literal["x", "y"]] = ()
    """The axes that have a logarithmic scale."""
    text: str = ""
    """The text above the plot."""

    def to_json(self) -> dict[str, Any]:
        """Return it in types that JSON has."""
        sources = {
            name: {column: packed(values) for column, values in columns.items()}
            for name, columns in self.sources.items()
        }
        return {
            "label": self.label,
            "sources": sources,
            "heads": list(self.heads),
            "axes": dict(self.axes),
            "logarithmic": list(self.logarithmic),
            "names": dict(self.names),
            "text": self.text,
        }


def swap_json(plot: str, options: Sequence[Option], *, of_overview: bool = False) -> dict[str, Any]:
    """Return the data of a list with the plot of that name.

    `of_overview`: what is chosen in the overview's rows, which have the numbers of the options, is
    chosen in the list.
    """
    return {
        "of_overview": of_overview,
        "plot": plot,
        "select": f"{plot}-of",
        "table": f"{plot}-table",
        "options": [option.to_json() for option in options],
    }


def drawn_text(parts: Sequence[str]) -> str:
    """Return what is said above a plot in which not all is drawn, as in `3 of 9 lines`."""
    return f"Drawn, chosen at random (seed {SEED}): {', '.join(parts)}." if parts else ""


def select_html(plot: str, label: str) -> str:
    """Return the list above the plot of that name."""
    return (
        f'<p class="screen"><label>{escape(label)} <select id="{plot}-of"></select></label></p>'
        f'<p id="{plot}-of-text"></p>'
    )
