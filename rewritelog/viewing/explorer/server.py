"""Web server of the live page, and the messages to and from the page."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from signal import SIGINT
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPConnection, HTTPMessageDelegate
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from rewritelog.errors import RewriteLogError
from rewritelog.models.expressions import FormulaError
from rewritelog.progress import Unit, report_progress
from rewritelog.stopping import SIGNALS
from rewritelog.text import count_text, some_text
from rewritelog.viewing.explorer import requests
from rewritelog.viewing.explorer.requests import HOST, NOT_FOUND, WAIT_S, Access, Queue
from rewritelog.viewing.explorer.saving import Saving
from rewritelog.viewing.explorer.session import Result, Session, fitted
from rewritelog.viewing.explorer.workers import Workers, WorkStoppedError
from rewritelog.viewing.fit_pages import OWN_LINES, events_sections, quality_lines
from rewritelog.viewing.page import POLICY, asset, json_of, page_text


def verdict_of(session: Session) -> list[str]:
    """Return the summary of the current fits at the top of the page."""
    views = [session.view(number) for number in session.numbers]
    lines = count_text(len(session.read), "timing line")
    left_out = sum(len(result.choices.left_out) for result in session.results if result)
    words = f"{left_out:,} left out" if left_out else "none left out"
    return [f"{lines} of {_files(session)}; {words}.", *quality_lines(views, ())]


def _files(session: Session) -> str:
    return some_text([path.name for path in session.read.files], 3)


HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Server": "rewritelog",
}

Effect = Callable[[Session, float], dict[str, Any]]
"""Computes the effect of a session's fits on a rewrite, and on the run, with a dilation."""


class Explorer(Application):
    """The web application: one session, which all open pages show."""

    def __init__(
        self,
        session: Session,
        access: Access,
        saving: Saving,
        effect: Effect | None = None,
        dilation: float = 1.0,
    ) -> None:
        super().__init__(
            [(r"/[^/]+/", _Page), (r"/[^/]+/socket", _Socket)],
            default_handler_class=_Unknown,
            websocket_max_message_size=requests.MOST_CHARACTERS,
            log_function=lambda _handler: None,
        )
        self.session = session
        self.access = access
        self.worker, self.first_workers = Workers(), Workers()
        """The processes that carry out requests, and those that compute the first fits."""
        self.sockets: set[_Socket] = set()
        self.queue = Queue()
        self._saving = saving
        self._effect = effect
        self._dilation = dilation if effect else None

    def start_request(
        self, server_conn: object, request_conn: HTTPConnection
    ) -> HTTPMessageDelegate:
        """Wait for the next request of a connection."""
        self.queue.join(request_conn)
        return super().start_request(server_conn, request_conn)

    def document(self) -> str:
        """Return the page as HTML; its policy allows connections to its own origin only."""
        session = self.session
        views = [session.view(number) for number in session.numbers]
        *sections, last = events_sections(views, OWN_LINES, editor=asset("explore.html"))
        state = {
            "count": len(session.numbers),
            "changed": [number for number in session.numbers if session.is_changed(number)],
            "steps": session.steps,
            "fitted": session.fitted_events,
            "fitting": session.fitting,
            "version": session.version,
            "dilation": self._dilation,
        }
        return page_text(
            f"Fit of {_files(session)}",
            verdict_of(session),
            [*sections, replace(last, script="explore.js", data={"explore-data": state})],
            session.warnings,
            policy=f"{POLICY}; connect-src {self.access.origin.replace('http:', 'ws:')}",
            head=asset("explore_bar.html"),
        )

    async def fit_first(self) -> None:
        """Fit all events as `fit` does, and send each to the pages when it is done."""
        session, count = self.session, len(self.session.numbers)
        report_progress("fitting events", 0, count)

        def take(event: int, result: Result) -> None:
            session.take_first(event, result)
            report_progress("fitted events", session.fitted_events, count)
            if self.sockets:
                self.tell(self._first(event))

        try:
            await self.first_workers.run(session.first_fit, count, take, self._hear)
        finally:
            session.fitting = False
            session.version += 1
        self.tell(self._all_fitted())

    def _hear(self, stage: str, done: int, total: int, unit: Unit) -> None:
        """Report what a process that fits events is doing, and how many of several are fitted."""
        count = len(self.session.numbers)
        if count > 1:
            done, total, unit = self.session.fitted_events, count, ""
            stage = f"{stage}, events done"
        report_progress(stage, done, total, unit)

    def _all_fitted(self) -> dict[str, Any]:
        fitted = self.session.fitted_events
        return {"fitting": False, "fitted": fitted, "verdict": verdict_of(self.session)}

    def _first(self, event: int) -> dict[str, Any]:
        row, fitted = self.session.row(event), self.session.fitted_events
        return {"first": event, "row": row, "fitted": fitted}

    def catch_up(self, socket: _Socket) -> None:
        """Send a page the first fits, some of which were done after its text was made."""
        for event, first in enumerate(self.session.first):
            if first is not None:
                socket.send(self._first(event))
        if not self.session.fitting:
            socket.send(self._all_fitted())

    async def answer(self, socket: _Socket, text: str) -> None:
        """Carry out the request in a message, and send the result."""
        try:
            await self._do(socket, requests.read_request(text, self.session.events))
        except FormulaError as error:
            place = {"line": error.line, "column": error.column, "where": error.name}
            socket.send({"error": str(error), **place})
        except RewriteLogError as error:
            socket.send({"error": str(error)})
        except WorkStoppedError:
            self.tell({"stopped": True})

    async def _do(self, socket: _Socket, request: requests.Request) -> None:
        session = self.session
        match request:
            case requests.Check():
                request.choices.config(session.events[request.event].parameters)
                socket.send({"valid": True})
            case requests.Predict():
                socket.send({"predicted": session.predict(request.event, request.params)})
            case requests.Show():
                socket.send({"shown": session.state_of(request.event)})
            case requests.Refit():
                timings = session.events[request.event]
                request.choices.config(timings.parameters)
                result = await self._work("fitting", lambda: fitted(timings, request.choices))
                session.put(request.event, result)
                self._tell_step(request.event)
            case requests.Stop():
                (self.worker if self.worker.busy else self.first_workers).stop()
            case requests.Undo():
                self._check_idle()
                self._tell_step(session.undo())
            case requests.Redo():
                self._check_idle()
                self._tell_step(session.redo())
            case requests.Save():
                self._check_fitted()
                self.tell({"saved": self._saving.save(session)})
            case requests.Rewrite():
                self._check_fitted()
                await self._rewrite(request.dilation)

    async def _rewrite(self, dilation: float) -> None:
        effect, session = self._effect, self.session
        if effect is None:
            raise RewriteLogError("no logs were given: start explore with --logs DIR")
        work = self._work("rewriting", lambda: effect(session, dilation))
        self.tell({"rewrite": await work})

    def _check_idle(self) -> None:
        if self.worker.busy:
            raise RewriteLogError("a fit is in progress: wait for it, or stop it")

    def _check_fitted(self) -> None:
        if self.session.fitting:
            raise RewriteLogError("events are being fitted: wait for them, or stop the fit")

    async def _work(self, what: str, work: Callable[[], Any]) -> Any:
        """Return the result of `work`, while all pages show that it is in progress."""
        self._check_idle()
        self.tell({"busy": what})
        try:
            return await self.worker.run_one(work)
        finally:
            self.tell({"busy": None})

    def _tell_step(self, event: int) -> None:
        """Send all pages the state of an event that a step has changed."""
        self.tell({**self.session.state_of(event), "verdict": verdict_of(self.session)})

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message to all open pages."""
        for socket in list(self.sockets):
            socket.send(message)


class _Handler(RequestHandler):
    """Refuses requests, with the bare status, unless access is granted."""

    application: Explorer
    refusal: int | None = None
    """The status with which all requests are refused; None for those that have an answer."""

    def set_default_headers(self) -> None:
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        refusal = self.application.access.refusal(self.request) or self.refusal
        if refusal is None:
            self.application.queue.leave(self.request.connection)
        else:
            self.set_status(refusal)
            self.finish(f"{refusal}\n")


class _Unknown(_Handler):
    refusal = NOT_FOUND


class _Page(_Handler):
    def get(self) -> None:
        """Send the page."""
        self.finish(self.application.document())


class _Socket(_Handler, WebSocketHandler):
    def check_origin(self, origin: str) -> bool:
        """Return whether the origin is the page's own; `Access` has checked the request before."""
        return origin == self.application.access.origin

    def open(self, *_path: str) -> None:
        """Add the page to those that receive changes, and send what it has missed."""
        self.application.sockets.add(self)
        current = str(self.application.session.version)
        if self.get_query_argument("version", current) != current:
            self.application.catch_up(self)

    def on_close(self) -> None:
        """Remove the page from those that receive changes."""
        self.application.sockets.discard(self)

    async def on_message(self, message: str | bytes) -> None:
        """Answer a message; the page sends text only, never bytes."""
        if isinstance(message, str):
            await self.application.answer(self, message)
        else:
            self.close(1003)

    def send(self, message: dict[str, Any]) -> None:
        """Send a message, unless the page has been closed."""
        with suppress(WebSocketClosedError):
            self.write_message(json_of(message))


async def serve(
    session: Session,
    saving: Saving,
    effect: Effect | None,
    ready: Callable[[Explorer], None],
    dilation: float = 1.0,
) -> None:
    """Serve the page until Ctrl-C; `ready` is called with the running server.

    Fits all events meanwhile; raise the `RewriteLogError` of an event that cannot be fitted. Other
    signals that the process handles end the server first.
    """
    sockets = bind_sockets(0, HOST)
    access = Access(sockets[0].getsockname()[1], secrets.token_urlsafe(32))
    explorer = Explorer(session, access, saving, effect, dilation)
    server = HTTPServer(
        explorer,
        max_body_size=1 << 16,
        max_header_size=1 << 14,
        idle_connection_timeout=WAIT_S,
        body_timeout=WAIT_S,
    )
    server.add_sockets(sockets)
    ended = asyncio.Event()
    fits = asyncio.create_task(explorer.fit_first())
    fits.add_done_callback(
        lambda done: ended.set() if done.cancelled() or done.exception() else None
    )
    try:
        with _signals_passed_to(ended):
            ready(explorer)
            await ended.wait()
        if fits.done():
            fits.result()
    finally:
        explorer.worker.stop()
        fits.cancel()  # which stops its processes
        await asyncio.gather(fits, return_exceptions=True)
        server.stop()
        for socket in list(explorer.sockets):
            socket.close(1001, "the server has ended")
        await server.close_all_connections()


@contextmanager
def _signals_passed_to(ended: asyncio.Event) -> Iterator[None]:
    """Set an event on Ctrl-C, and on each other signal that the process handles.

    Handlers of Python would interrupt a save at any point, and asyncio drops what they raise in a
    callback. In the end those signals are raised again, for the handlers of before.
    """
    loop, received = asyncio.get_running_loop(), list[signal.Signals]()

    def end(number: signal.Signals) -> None:
        received.append(number)
        ended.set()

    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    taken = [number for number in SIGNALS if number == SIGINT or callable(handlers[number])]
    for number in taken:
        loop.add_signal_handler(number, end, number)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
            signal.signal(number, handlers[number])
        for number in received:
            if number != SIGINT:
                signal.raise_signal(number)
