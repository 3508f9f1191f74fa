"""A plot below a drop-down list: a script fills the plot with the data of the chosen option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

from rewritelog.arrays import Floats
from rewritelog.viewing.event_data import SEED, packed


@dataclass(frozen=True)
class Option:
    """The data of one entry of the list."""

    label: str
    sources: Mapping[str, Mapping[str, Floats]]
    """Columns of numbers, by the name of the data source that they replace."""
    heads: Sequence[str]
    """Heads of the plot's table, one for each column of a source."""
    names: Mapping[str, str]
    """The labels of sources in the table, which has the rows of the sources named here."""
    axes: Mapping[str, str] = field(default_factory=dict)
    """Labels of the axes `below` and `left`."""
    logarithmic: Sequence[Literal["x", "y"]] = ()
    """The axes with a logarithmic scale."""
    text: str = ""
    """The text above the plot."""

    def to_json(self) -> dict[str, Any]:
        """Return the option as JSON types."""
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
    """Return the script data of the list above the plot of that name.

    `of_overview`: choosing a row of the overview, whose rows are numbered as the options are,
    chooses the option in the list.
    """
    return {
        "of_overview": of_overview,
        "plot": plot,
        "select": f"{plot}-of",
        "table": f"{plot}-table",
        "options": [option.to_json() for option in options],
    }


def drawn_text(parts: Sequence[str]) -> str:
    """Return the text above a plot in which only a part is drawn, as in `3 of 9 lines`."""
    return f"Drawn, chosen at random (seed {SEED}): {', '.join(parts)}." if parts else ""


def select_html(plot: str, label: str) -> str:
    """Return the list above the plot of that name, as HTML."""
    return (
        f'<p class="screen"><label>{escape(label)} <select id="{plot}-of"></select></label></p>'
        f'<p id="{plot}-of-text"></p>'
    )
