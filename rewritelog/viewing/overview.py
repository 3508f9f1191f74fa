"""The table of events by parameters: how much of the variance of times a fit explains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from rewritelog.models import fit_report
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.text import NO_VALUE, event_label, parameter_names, percent_text
from rewritelog.viewing.events import EventView

GOOD, FAIR = 0.9, 0.5
"""R² from which on a fit is graded good, or fair; below it is poor."""

GRADES = (("good", "●"), ("fair", "◐"), ("poor", "○"))
"""CSS classes and marks of cells, by grade."""


def worst_first(views: Sequence[EventView]) -> list[EventView]:
    """Return the events in ascending order of R², those without one last."""
    return sorted(views, key=lambda view: (view.r2 is None, view.r2 or 0.0))


def event_table(note: str, grades: Sequence[str], heads: Sequence[str], rows: Iterable[str]) -> str:
    """Return a table of events as HTML, which a script sorts by column and filters by name.

    `grades` are the legends of the marks of good, fair and poor cells.
    """
    cells = "".join(
        f'<th scope="col"><button type="button">{escape(head)}</button></th>' for head in heads
    )
    legend = "".join(
        f'<span class="{kind}">{mark} {escape(text)}</span>'
        for (kind, mark), text in zip(GRADES, grades, strict=True)
    )
    return (
        f'<p class="note">{escape(note)} Click a heading to sort.</p>'
        f'<p class="legend note">{legend}</p>'
        '<p class="screen"><label>events whose name contains '
        '<input id="filter" type="search" autocomplete="off" maxlength="200"></label>'
        '<span id="filtered" role="status"></span></p>'
        '<div class="scroll" tabindex="0" role="region" aria-label="overview">'
        '<table class="overview" id="overview">'
        f"<thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def name_cell(name: str) -> str:
    """Return the cell of an event's name as HTML."""
    name = escape(name, quote=True)
    return f'<td data-v="{name}"><button type="button">{name}</button></td>'


def graded_cell(grade: int, value: float, text: str, more: str = "") -> str:
    """Return a cell with a grade (0 good, 1 fair, 2 poor); `more` are further HTML attributes."""
    kind, mark = GRADES[grade]
    return (
        f'<td class="{kind}" data-v="{value:.5g}"{more}>'
        f'<button type="button">{mark} {text}</button></td>'
    )


def unknown_cell(more: str = "", text: str = NO_VALUE) -> str:
    """Return a cell without a number."""
    return f'<td class="unknown"{more}>{text}</td>'


def overview_html(views: Sequence[EventView], seen: str) -> str:
    """Return the table as HTML, a row per event; `seen` tells which lines the fit's R² is of."""
    most = max((view.parameters for view in views), default=0)
    parameters = [f"p{number}" for number in range(1, most + 1)]
    return event_table(
        "A parameter's column shows the R² on held-out lines of the best function of that "
        f"parameter alone. {seen} Choose a cell to see its event below.",
        (f"from {GOOD:g}", f"from {FAIR:g}", "below"),
        ("event", "lines", "fit: R²", "fit: error", "warnings", *parameters),
        (row_html(view, number, most) for number, view in enumerate(views)),
    )


def fits_html(fitted: FittedEvents) -> str:
    """Return a table of fits without their timing lines, the worst first, as HTML."""
    fits = sorted(fitted.fits.values(), key=_held_out_r2)
    return event_table(
        "R² and mean error of the fit on held-out lines; the lines are not on this page.",
        (f"from {GOOD:g}", f"from {FAIR:g}", "below"),
        ("event", "lines", "fit: R²", "fit: error", "warnings"),
        map(_fit_row, fits),
    )


def _held_out_r2(fit: EventFit) -> tuple[bool, float]:
    r2 = fit.whole.quality.held_out_r2
    return r2 is None, r2 or 0.0


def _fit_row(fit: EventFit) -> str:
    quality, warnings = fit.whole.quality, fit_report.warn(fit)
    label = escape(event_label(fit.event, fit.parameters, names=fit.names), quote=True)
    function = escape("; ".join(fit_report.summarise(fit)[1:]), quote=True)
    words = escape("; ".join(warnings), quote=True)
    return (
        f'<tr><td data-v="{label}" title="{function}">{label}</td>'
        f'<td data-v="{fit.samples}">{fit.samples:,}</td>'
        f"{_r2_cell(quality.held_out_r2, '')}{_value_cell(quality.held_out_error)}"
        f'<td data-v="{len(warnings)}" title="{words}">{len(warnings) or ""}</td></tr>'
    )


def row_html(view: EventView, number: int, most: int) -> str:
    """Return an event's row as HTML; `most` is the table's number of parameter columns."""
    ignored = {parameter.parameter: parameter.reason for parameter in view.single_terms.ignored}
    cells = [
        name_cell(view.label),
        f'<td data-v="{len(view.timings.seconds)}">{len(view.timings.seconds):,}</td>',
        _r2_cell(view.r2, _title("the fit in all parameters")),
        _value_cell(view.error),
        f'<td data-v="{len(view.warnings)}">{len(view.warnings) or ""}</td>',
    ]
    for parameter in range(1, most + 1):
        best = next(iter(view.single_terms.of(parameter)), None)
        if best is None:
            reason = ignored.get(parameter, "")
            cells.append(unknown_cell(_title(reason), _reason(reason)))
        else:
            name = parameter_names(view.parameters, view.names)[parameter - 1]
            more = f' data-p="{parameter}"{_title(f"{name}: {best.term}")}'
            cells.append(_r2_cell(best.held_out_r2, more))
    return f'<tr data-e="{number}">{"".join(cells)}</tr>'


def _title(text: str) -> str:
    return f' title="{escape(text, quote=True)}"'


def _reason(text: str) -> str:
    """Return in a word why no term of a parameter was tried."""
    if "constant" in text:
        return "constant"
    return "copy" if "follows" in text else ""


def _r2_cell(r2: float | None, more: str) -> str:
    if r2 is None:
        return unknown_cell(more)
    grade = 0 if r2 >= GOOD else 1 if r2 >= FAIR else 2
    return graded_cell(grade, r2, f"{r2:.3f}" if r2 >= 0 else "&lt; 0", more)


def _value_cell(error: float | None) -> str:
    if error is None:
        return unknown_cell()
    return f'<td data-v="{error:.5g}">{percent_text(error, 1)}</td>'
