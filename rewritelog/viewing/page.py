"""Pages of plots in one HTML file, which opens from disk and loads nothing from a network."""

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
"""Content security policy: the page loads only what it contains, and may not use `eval`."""

MOST_BYTES = 6_000_000
"""The maximum size of a page."""

WARNINGS_SHOWN = 6
"""Further warnings are folded away."""

MOST_WARNINGS = 1_000
"""A page has at most this many warnings; the report has all."""


@dataclass(frozen=True)
class PageTable:
    """A table that a page shows, or includes with a plot for screen readers."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    def html(self) -> str:
        """Return the table as HTML, with all text escaped."""
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
    table: PageTable | None = None
    """The numbers that the plot shows; in a section without a plot, the table itself is shown."""
    html: str = ""
    """HTML before the plot, with all text escaped."""
    beside: str = ""
    """HTML beside the plot, below it in a narrow window."""
    name: str = ""
    """The id of the section for scripts; that of its heading begins with it."""
    table_name: str = ""
    """The id of the table for a script that fills it."""
    in_grid: bool = False
    """Whether it is placed beside its neighbours in a wide window."""


@dataclass(frozen=True)
class Page:
    """The content of a page."""

    title: str
    verdict: Sequence[str]
    sections: Sequence[Section]
    warnings: Sequence[str] = ()
    scripts: Sequence[str] = ()
    """Names of scripts in `assets` that the page runs, after the one that they all use."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Data of the scripts: JSON values of the page by element id."""
    policy: str = POLICY
    """The page's content security policy."""
    head: str = ""
    """Further HTML before the sections."""


@dataclass(frozen=True)
class Embedded:
    """The plots of a page as HTML, reusable as long as the same plots are shown."""

    script: str
    divs: Mapping[int, str]
    """The HTML element of each plot, by the number of its section."""
    resources: str
    """Bokeh's own scripts; empty if there are no plots."""

    @classmethod
    def of(cls, sections: Sequence[Section]) -> Embedded:
        """Return the plots of sections; raise `UsageError` if the extra `[view]` is missing."""
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
    """Return a page as HTML; `embedded` are its plots if they were made before.

    Bokeh's scripts come last, so that summary and tables are visible before they are loaded.
    """
    plots = embedded or Embedded.of(page.sections)
    body = [*_heading(page), page.head, *_sections(page.sections, plots.divs)]
    names = ("pages.js", *page.scripts)
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
    warnings = [f'<p class="warning">{escape(line)}</p>' for line in page.warnings[:MOST_WARNINGS]]
    yield from warnings[:WARNINGS_SHOWN]
    more = warnings[WARNINGS_SHOWN:]
    if more:
        count = len(page.warnings) - WARNINGS_SHOWN
        only = "" if count == len(more) else f", {len(more):,} of them shown: the report has all"
        yield f"<details><summary>{count_text(count, 'more warning')}{only}</summary>"
        yield from more
        yield "</details>"


def _sections(sections: Sequence[Section], divs: Mapping[int, str]) -> Iterator[str]:
    """Yield the HTML of the sections, those of a grid in an element of their own."""
    numbered = enumerate(sections)
    for in_grid, run in groupby(numbered, key=lambda pair: pair[1].in_grid):
        yield '<div class="plots">' if in_grid else ""
        for number, section in run:
            yield from _section_lines(section, divs.get(number))
        yield "</div>" if in_grid else ""


def _section_lines(section: Section, div: str | None) -> Iterable[str]:
    name = f' id="{section.name}"' if section.name else ""
    heading = f' id="{section.name}-name" tabindex="-1"' if section.name else ""
    yield f"<section{name}><h2{heading}>{escape(section.heading)}</h2>"
    yield from (f"<p>{escape(text)}</p>" for text in section.paragraphs)
    yield section.html
    table = "" if section.table is None else section.table.html()
    if div is None:
        yield table
    else:
        label = escape(section.heading, quote=True)
        yield f'<div class="sides"><figure role="group" aria-label="{label}">{div}</figure>'
        yield f"<div>{section.beside}</div></div>" if section.beside else "</div>"
        if table or section.table_name:
            yield (
                "<details><summary>the numbers as a table</summary>"
                f'<div id="{section.table_name}">{table}</div></details>'
            )
    yield "</section>"
