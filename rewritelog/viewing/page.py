"""Pages of plots in one HTML file, which opens from disk and asks no network for anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from rewritelog.viewing.extra import require

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
)
"""What the page may load: only what it holds. Bokeh's callbacks are compiled in the page."""

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.2rem auto; max-width: 1400px;
  padding: 0 1rem; color: #1a1a1a; background: #fff; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 1.6rem 0 .4rem; }
.verdict { border-left: 5px solid #0072B2; background: #f2f6fa; padding: .5rem .9rem; }
.verdict p { margin: .15rem 0; } .warning { border-left: 5px solid #D55E00; padding: .2rem .9rem;
  margin: .3rem 0; background: #fdf3ec; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .15rem .6rem; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; max-width: 32rem; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
details { margin: .3rem 0 .8rem; } summary { cursor: pointer; color: #333; }
figure { margin: .4rem 0 1rem; } figcaption { color: #333; font-size: .9rem; }
@media print { body { max-width: none; margin: 0; } figure { break-inside: avoid; }
  details:not([open]) { display: none; } .bk-toolbar, .screen { display: none; } }
"""


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


@dataclass(frozen=True)
class Page:
    """All that a page says."""

    title: str
    verdict: Sequence[str]
    sections: Sequence[Section]
    warnings: Sequence[str] = field(default=())


def page_text(page: Page) -> str:
    """Return a page as HTML with Bokeh's scripts in it."""
    require("bokeh", "a page")
    from bokeh.embed import components  # noqa: PLC0415 - an extra
    from bokeh.resources import INLINE  # noqa: PLC0415

    plots = {str(number): section.plot for number, section in enumerate(page.sections)
             if section.plot is not None}  # fmt: skip
    script, divs = components(plots) if plots else ("", {})
    body = [
        f"<h1>{escape(page.title)}</h1>",
        '<div class="verdict">',
        *(f"<p>{escape(line)}</p>" for line in page.verdict),
        "</div>",
        *(f'<p class="warning">{escape(line)}</p>' for line in page.warnings),
    ]
    for number, section in enumerate(page.sections):
        body += _section_lines(section, divs.get(str(number)))
    scripts = INLINE.render() if plots else ""
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{escape(page.title)}</title>\n<style>{_STYLE}</style>",
            f"{scripts}\n</head>\n<body>\n<main>",
            *body,
            f"</main>\n{script}\n</body>\n</html>\n",
        ]
    )


def _section_lines(section: Section, div: str | None) -> Iterable[str]:
    yield f"<section><h2>{escape(section.heading)}</h2>"
    yield from (f"<p>{escape(text)}</p>" for text in section.paragraphs)
    table = "" if section.table is None else section.table.html()
    if div is None:
        yield table
    else:
        behind = f"<details><summary>the numbers as a table</summary>{table}</details>"
        label = escape(section.heading, quote=True)
        yield f'<figure role="group" aria-label="{label}">{div}</figure>{behind if table else ""}'
    yield "</section>"
