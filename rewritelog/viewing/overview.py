"""The table of all events by parameters: how much of the time a law explains."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rewritelog.text import NO_VALUE, percent_text
from rewritelog.viewing.events import EventView

GOOD, FAIR = 0.9, 0.5
"""From these R² on a law explains most of the time, or some of it."""


def worst_first(views: Sequence[EventView]) -> list[EventView]:
    """Return the events in rising order of R², those without one last."""
    return sorted(views, key=lambda view: (view.r2 is None, view.r2 or 0.0))


def overview_html(views: Sequence[EventView], seen: str) -> str:
    """Return the table, one row an event, as HTML; `seen` says of which lines the law's R² is."""
    most = max((view.parameters for view in views), default=0)
    heads = [
        "event",
        "lines",
        *(f"p{number}" for number in range(1, most + 1)),
        "law: R²",
        "law: mean error",
        "warnings",
    ]
    cells = "".join(
        f'<th scope="col"><button type="button">{escape(head)}</button></th>' for head in heads
    )
    rows = "".join(row_html(view, number, most) for number, view in enumerate(views))
    return (
        '<p class="note">In a parameter\'s column: R² of the best law in that parameter alone, '
        f"over lines left out of its fit (cross-validation). {escape(seen)} Choose a cell to see "
        "its event below; choose a head to sort.</p>"
        f'<p class="legend note"><span class="good">● from {GOOD:g}</span>'
        f'<span class="fair">◐ from {FAIR:g}</span><span class="poor">○ below</span></p>'
        '<p class="screen"><label>events whose name contains '
        '<input id="filter" type="search" autocomplete="off" maxlength="200"></label>'
        '<span id="filtered" role="status"></span></p>'
        '<div class="scroll" tabindex="0" role="region" aria-label="overview">'
        '<table class="overview" id="overview">'
        f"<thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def row_html(view: EventView, number: int, most: int) -> str:
    """Return an event's row; `most` is the number of parameters that the table has columns for."""
    ignored = {one.parameter: one.reason for one in view.laws.ignored}
    cells = [
        (
            f'<td data-v="{escape(view.label, quote=True)}"><button type="button">'
            f"{escape(view.label)}</button></td>"
        ),
        f'<td data-v="{len(view.timings.seconds)}">{len(view.timings.seconds):,}</td>',
    ]
    for parameter in range(1, most + 1):
        best = next(iter(view.laws.of(parameter)), None)
        if best is None:
            title = escape(ignored.get(parameter, ""), quote=True)
            cells.append(f'<td class="unknown" title="{title}">{_reason(title)}</td>')
        else:
            cells.append(_cell(best.held_out_r2, str(best.term), f' data-p="{parameter}"'))
    cells.append(_cell(view.r2, "the law of all parameters", ""))
    cells.append(_value_cell(view.error))
    warnings = len(view.warnings)
    cells.append(f'<td data-v="{warnings}">{warnings or ""}</td>')
    return f'<tr data-e="{number}">{"".join(cells)}</tr>'


def _reason(title: str) -> str:
    """Return in a word why there is no law in a parameter."""
    if "constant" in title:
        return "constant"
    return "copy" if "follows" in title else ""


def _cell(r2: float | None, title: str, more: str) -> str:
    if r2 is None:
        return f'<td class="unknown"{more}>{NO_VALUE}</td>'
    kind, mark = ("good", "●") if r2 >= GOOD else ("fair", "◐") if r2 >= FAIR else ("poor", "○")
    text = f"{r2:.3f}" if r2 >= -1 else "< −1"
    return (
        f'<td class="{kind}" data-v="{r2:.5g}"{more} title="{escape(title, quote=True)}">'
        f'<button type="button">{mark} {text}</button></td>'
    )


def _value_cell(error: float | None) -> str:
    if error is None:
        return f'<td class="unknown">{NO_VALUE}</td>'
    return f'<td data-v="{error:.5g}">{percent_text(error, 1)}</td>'
