"""The page of the session: overview and plots as in saved pages, with controls to change fits."""

from __future__ import annotations

from rewritelog.text import count_text, some_text
from rewritelog.viewing.event_plots import event_sections
from rewritelog.viewing.explorer.session import Session
from rewritelog.viewing.fit_pages import OWN_LINES, events_page, quality_lines
from rewritelog.viewing.page import POLICY, Embedded, Page, asset, page_text


class Document:
    """The page of a session, whose plots are made once; only their data change."""

    def __init__(self, session: Session, dilation: float | None) -> None:
        self._session = session
        self._dilation = dilation
        """The dilation that the page offers; None without logs to rewrite."""
        self._plots = event_sections(editor=asset("explore.html"))
        self._embedded: Embedded | None = None
        self._kept: tuple[int, str, str] | None = None
        """The session's version, the origin, and the text that was made for them last."""

    def text(self, origin: str) -> str:
        """Return the page as HTML; its policy allows connections to `origin` only."""
        if self._kept is None or self._kept[:2] != (self._session.version, origin):
            self._kept = self._session.version, origin, self._made(origin)
        return self._kept[2]

    def _made(self, origin: str) -> str:
        page = self._page(f"{POLICY}; connect-src {origin.replace('http:', 'ws:')}")
        if self._embedded is None:
            self._embedded = Embedded.of(page.sections)
        return page_text(page, self._embedded)

    def _page(self, policy: str) -> Page:
        session = self._session
        views = [session.view(number) for number in session.numbers]
        verdict = self.verdict()
        page = events_page(
            f"Fit of {self._files()}",
            verdict,
            session.warnings,
            views,
            OWN_LINES,
            live_plots=self._plots,
        )
        state = {
            "count": len(session.numbers),
            "changed": [number for number in session.numbers if session.is_changed(number)],
            "steps": session.steps,
            "fitted": session.fitted_events,
            "fitting": session.fitting,
            "version": session.version,
            "dilation": self._dilation,
        }
        return Page(
            page.title,
            verdict,
            page.sections,
            page.warnings,
            (*page.scripts, "explore.js"),
            {**page.data, "explore-data": state},
            policy=policy,
            head=asset("explore_bar.html"),
        )

    def verdict(self) -> list[str]:
        """Return the summary of the current fits at the top of the page."""
        views = [self._session.view(number) for number in self._session.numbers]
        lines = count_text(self._session.read.lines, "timing line")
        return [f"{lines} of {self._files()}; {self._left_out()}.", *quality_lines(views, ())]

    def _files(self) -> str:
        return some_text([path.name for path in self._session.read.files], 3)

    def _left_out(self) -> str:
        left_out = sum(len(result.choices.left_out) for result in self._session.results if result)
        return f"{left_out:,} left out" if left_out else "none left out"
