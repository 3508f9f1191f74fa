"""The page of the session: overview and plots as in saved pages, with controls to change fits."""

from __future__ import annotations

from dataclasses import replace

from rewritelog.text import count_text, some_text
from rewritelog.viewing.explorer.session import Session
from rewritelog.viewing.fit_pages import OWN_LINES, events_page, quality_lines
from rewritelog.viewing.page import POLICY, asset, page_text


def document_text(session: Session, dilation: float | None, origin: str) -> str:
    """Return the page as HTML; its policy allows connections to `origin` only.

    `dilation` is the one that the page offers; None without logs to rewrite.
    """
    views = [session.view(number) for number in session.numbers]
    page = events_page(
        f"Fit of {_files(session)}",
        verdict_of(session),
        session.warnings,
        views,
        OWN_LINES,
        editor=asset("explore.html"),
    )
    state = {
        "count": len(session.numbers),
        "changed": [number for number in session.numbers if session.is_changed(number)],
        "steps": session.steps,
        "fitted": session.fitted_events,
        "fitting": session.fitting,
        "version": session.version,
        "dilation": dilation,
    }
    page = replace(
        page,
        scripts=(*page.scripts, "explore.js"),
        data={**page.data, "explore-data": state},
        policy=f"{POLICY}; connect-src {origin.replace('http:', 'ws:')}",
        head=asset("explore_bar.html"),
    )
    return page_text(page)


def verdict_of(session: Session) -> list[str]:
    """Return the summary of the current fits at the top of the page."""
    views = [session.view(number) for number in session.numbers]
    lines = count_text(session.read.lines, "timing line")
    left_out = sum(len(result.choices.left_out) for result in session.results if result)
    words = f"{left_out:,} left out" if left_out else "none left out"
    return [f"{lines} of {_files(session)}; {words}.", *quality_lines(views, ())]


def _files(session: Session) -> str:
    return some_text([path.name for path in session.read.files], 3)
