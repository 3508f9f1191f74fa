"""A plot below a drop-down list: a script fills the plot with the data of the chosen option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from rewritelog.arrays import Floats
from rewritelog.viewing.page import Section
from rewritelog.viewing.sampled import SEED


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
    logarithmic: str = ""
    """The axes with a logarithmic scale: `x`, `y` or `xy`."""
    text: str = ""
    """The text above the plot."""


def swap_section(
    heading: str, what: str, plot: Any, options: Sequence[Option], *, of_overview: bool = False
) -> tuple[Section, dict[str, Any]]:
    """Return the section of a plot, which has a name, with a list of `what`, and the page's data.

    `of_overview`: choosing a row of the overview, whose rows are numbered as the options are,
    chooses the option in the list.
    """
    html = (
        f'<p class="screen"><label>{escape(what)} <select id="{plot.name}-of"></select></label></p>'
        f'<p id="{plot.name}-of-text"></p>'
    )
    section = Section(heading, html=html, plot=plot, table_name=f"{plot.name}-table")
    swap = {"plot": plot.name, "of_overview": of_overview, "options": options}
    return section, {"swap-data": swap}


def drawn_text(parts: Sequence[str]) -> str:
    """Return the text above a plot in which only a part is drawn, as in `3 of 9 lines`."""
    return f"Drawn, chosen at random (seed {SEED}): {', '.join(parts)}." if parts else ""
