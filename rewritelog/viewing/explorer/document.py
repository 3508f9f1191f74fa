"""The page as the session stands: the overview and plots of saved pages, with what changes them."""

from __future__ import annotations

from collections.abc import Sequence

from rewritelog.text import count_text
from rewritelog.viewing.explorer.session import Session
from rewritelog.viewing.fit_pages import OWN_LINES, events_page, quality_lines
from rewritelog.viewing.page import POLICY, Page, Section, asset, page_text


def document(session: Session, origin: str, *, has_logs: bool) -> str:
    """Return the page; it may talk to the server at `origin` alone."""
    views = [session.view(number) for number in session.numbers]
    names = ", ".join(path.name for path in session.read.files)
    lines = count_text(session.read.lines, "timing line")
    verdict = [f"{lines} of {names}; {_left_out(session)}.", *quality_lines(views)]
    page = events_page(f"Fit of {names}", verdict, _warnings(session), views, OWN_LINES,
                       choosing=True)  # fmt: skip
    one_event = next(k for k, part in enumerate(page.sections) if part.heading == "One event")
    controls = asset("explore.html")
    sections = [
        *page.sections[: one_event + 1],
        Section("Change the fit", html=controls),
        *page.sections[one_event + 1 :],
    ]
    state = {
        "events": [session.event_state(number) for number in session.numbers],
        "steps": session.steps,
        "logs": has_logs,
    }
    return page_text(
        Page(
            page.title,
            verdict,
            sections,
            page.warnings,
            (*page.scripts, "explore.js"),
            {**page.data, "explore-data": state},
            policy=f"{POLICY}; connect-src {origin.replace('http:', 'ws:')}",
            head=asset("explore_bar.html"),
        )
    )


def _left_out(session: Session) -> str:
    left_out = sum(len(result.choices.left_out) for result in session.results)
    return f"{left_out:,} left out" if left_out else "none left out"


def _warnings(session: Session) -> Sequence[str]:
    return session.read.warnings()
