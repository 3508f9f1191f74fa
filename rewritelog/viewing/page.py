"""Pages of plots in one HTML file, which opens from disk and asks no network for anything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import Any

from rewritelog.text import count_text
from rewritelog.viewing.extra import require

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
)
"""What the page may load: only what it holds, and no script that is made of text while it runs."""

MOST_BYTES = 6_000_000
"""No page is larger."""

WARNINGS_SHOWN = 6
"""Of more warnings the others are folded away."""

MOST_WARNINGS = 1_000
"""A page has at most this many; the report has all."""


@dataclass(frozen=True)
class TextTable:
    """A table that a page shows, or holds behind a plot for screen readers."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    def html(self) -> str:
        """Return the table as HTML; all text in it is escaped."""
        heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in self.heads)
        lines = [
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        ]
        return (
            f"<table><caption>{escape(self.caption)}</caption>"
            f"<thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
        )


@dataclass(frozen=True)
class Section:
    """A part of a page: a heading, some paragraphs, and plots or tables."""

    heading: str
    paragraphs: Sequence[str] = ()
    plot: Any = None
    """A Bokeh model."""
    table: TextTable | None = None
    """What the plot shows, in numbers; in a section without a plot it is shown at once."""
    html: str = ""
    """What comes before the plot, as HTML in which all text is escaped."""
    table_name: str = ""
    """Names the table behind the plot for a script that fills it."""
    in_grid: bool = False
    """Whether it is beside its neighbours where the window is wide."""


@dataclass(frozen=True)
class Page:
    """All that a page says."""

    title: str
    verdict: Sequence[str]
    sections: Sequence[Section]
    warnings: Sequence[str] = ()
    scripts: Sequence[str] = ()
    """Names of scripts in `assets` that the page runs, after the one that all of them use."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What the scripts work on: the ids of JSON texts in the page with their values."""
    policy: str = POLICY
    """What the page may load."""
    head: str = ""
    """More of the page's body, as HTML, before the sections."""


@dataclass(frozen=True)
class Embedded:
    """The plots of a page as HTML: as long as the same ones are shown it can be used again."""

    script: str
    divs: Mapping[int, str]
    """By the number of the section."""
    resources: str
    """Bokeh's own scripts; empty without plots."""

    @classmethod
    def of(cls, sections: Sequence[Section]) -> Embedded:
        """Return the plots of sections; raise `UsageError` without the extra `[view]`."""
        require("bokeh", "a page")
        from bokeh.embed import components  # noqa: PLC0415 - an extra
        from bokeh.resources import Resources  # noqa: PLC0415

        plots = {
            str(number): section.plot
            for number, section in enumerate(sections)
            if section.plot is not None
        }
        if not plots:
            return cls("", {}, "")
        script, divs = components(plots)
        resources = Resources(mode="inline", components=["bokeh"], log_level="error")
        return cls(script, {int(key): div for key, div in divs.items()}, resources.render())


def page_text(page: Page, embedded: Embedded | None = None) -> str:
    """Return a page as HTML; `embedded` are its plots where known.

    Bokeh's scripts come last, so that verdict and tables are seen before they are read.
    """
    plots = embedded or Embedded.of(page.sections)
    body = [*_heading(page), page.head, *_sections(page.sections, plots.divs)]
    names = ("print.js", *(("pages.js", *page.scripts) if page.scripts else ()))
    scripts = "".join(f"<script>{asset(name)}</script>\n" for name in names)
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{page.policy}">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{escape(page.title)}</title>\n<style>{asset('page.css')}</style>",
            "</head>\n<body>\n<main>",
            *body,
            *(_json_script(name, value) for name, value in page.data.items()),
            f"</main>\n{plots.resources}\n{plots.script}\n{scripts}</body>\n</html>\n",
        ]
    )


def asset(name: str) -> str:
    """Return the text of a file in `assets`."""
    return files("rewritelog.viewing").joinpath("assets", name).read_text(encoding="utf-8")


def _json_script(name: str, value: Any) -> str:
    text = json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'


def _heading(page: Page) -> Iterator[str]:
    yield f"<h1>{escape(page.title)}</h1>"
    yield '<div class="verdict">'
    yield from (f"<p>{escape(line)}</p>" for line in page.verdict)
    yield "</div>"
    said = [f'<p class="warning">{escape(line)}</p>' for line in page.warnings[:MOST_WARNINGS]]
    yield from said[:WARNINGS_SHOWN]
    more = said[WARNINGS_SHOWN:]
    if more:
        many = len(page.warnings) - WARNINGS_SHOWN
        only = "" if many == len(more) else f", of which {len(more):,} are here: the report has all"
        yield f"<details><summary>{count_text(many, 'more warning')}{only}</summary>"
        yield from more
        yield "</details>"


def _sections(sections: Sequence[Section], divs: Mapping[int, str]) -> Iterator[str]:
    """Yield the sections, those of a grid in a block of their own."""
    numbered = enumerate(sections)
    for in_grid, run in groupby(numbered, key=lambda one: one[1].in_grid):
        yield '<div class="plots">' if in_grid else ""
        for number, section in run:
            yield from _section_lines(section, divs.get(number))
        yield "</div>" if in_grid else ""


def _section_lines(section: Section, div: str | None) -> Iterable[str]:
    yield f"<section><h2>{escape(section.heading)}</h2>"
    yield from (f"<p>{escape(text)}</p>" for text in section.paragraphs)
    yield section.html
    table = "" if section.table is None else section.table.html()
    if div is None:
        yield table
    else:
        label = escape(section.heading, quote=True)
        yield f'<figure role="group" aria-label="{label}">{div}</figure>'
        if table or section.table_name:
            yield (
                "<details><summary>the numbers as a table</summary>"
                f'<div id="{section.table_name}">{table}</div></details>'
            )
    yield "</section>"
