"""Web server of the live page, and the messages to and from the page."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from signal import SIGINT
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPConnection, HTTPMessageDelegate
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from rewritelog.cores import cores
from rewritelog.errors import RewriteLogError
from rewritelog.models.expressions import FormulaError
from rewritelog.progress import listening, report_progress
from rewritelog.stopping import SIGNALS
from rewritelog.text import count_text, some_text
from rewritelog.viewing.explorer import requests
from rewritelog.viewing.explorer.requests import HOST, NOT_FOUND, WAIT_S, Access, Queue
from rewritelog.viewing.explorer.saving import Saving
from rewritelog.viewing.explorer.session import Session, fitted
from rewritelog.viewing.explorer.workers import Send, in_process
from rewritelog.viewing.fit_pages import OWN_LINES, events_sections, quality_lines
from rewritelog.viewing.page import POLICY, asset, json_of, page_text

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
        self.sockets: set[_Socket] = set()
        self.queue = Queue()
        self._first_fits: list[asyncio.Task[Any]] = []
        self._work: asyncio.Task[Any] | None = None
        """What is done for a request, in another process."""
        self._answers: set[asyncio.Task[None]] = set()
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
            f"Fit of {self._files()}",
            self._verdict(),
            [*sections, replace(last, script="explore.js", data={"explore-data": state})],
            session.warnings,
            policy=f"{POLICY}; connect-src {self.access.origin.replace('http:', 'ws:')}",
            head=asset("explore_bar.html"),
        )

    def _files(self) -> str:
        return some_text([path.name for path in self.session.read.files], 3)

    def _verdict(self) -> list[str]:
        """Return the summary of the current fits at the top of the page."""
        session = self.session
        views = [session.view(number) for number in session.numbers]
        left_out = sum(len(result.choices.left_out) for result in session.results if result)
        words = f"{left_out:,} left out" if left_out else "none left out"
        lines = count_text(len(session.read), "timing line")
        return [f"{lines} of {self._files()}; {words}.", *quality_lines(views, ())]

    async def fit_first(self) -> None:
        """Fit all events as `fit` does, on all cores, and send each to the pages when it is done.

        Raise the first `RewriteLogError` of an event that cannot be fitted.
        """
        session, count = self.session, len(self.session.numbers)
        processes = min(cores(), count)
        report_progress("fitting events", 0, count)

        def fit_some(first: int, send: Send) -> None:
            with listening(partial(send, None) if count == 1 else None):
                for event in range(first, count, processes):
                    send(event, session.first_fit(event))

        def take(event: int | None, *words: Any) -> None:
            if event is None:
                report_progress(*words)
                return
            session.take_first(event, *words)
            report_progress("fitted events", session.fitted_events, count)
            self.tell(self._first(event))

        self._first_fits = [
            asyncio.create_task(in_process(partial(fit_some, first), take))
            for first in range(processes)
        ]
        try:
            if count:
                await asyncio.wait(self._first_fits, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in self._first_fits:
                task.cancel()
            session.fitting = False
            session.version += 1
        for task in self._first_fits:
            if task.done() and not task.cancelled():
                task.result()
        self.tell(self._all_fitted())

    def _all_fitted(self) -> dict[str, Any]:
        fitted = self.session.fitted_events
        return {"fitting": False, "fitted": fitted, "verdict": self._verdict()}

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

    def answer(self, socket: _Socket, text: str) -> None:
        """Begin to carry out the request in a message; the next one may be one to stop."""
        task = asyncio.create_task(self._answer(socket, text))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answer(self, socket: _Socket, text: str) -> None:
        """Carry out the request in a message, and send the result."""
        try:
            request = requests.read_request(text, self.session.events)
            self._check_possible(request)
            await self._do(socket, request)
        except FormulaError as error:
            place = {"line": error.line, "column": error.column, "where": error.name}
            socket.send({"error": str(error), **place})
        except RewriteLogError as error:
            socket.send({"error": str(error)})
        except asyncio.CancelledError:
            self.tell({"stopped": True})

    def _check_possible(self, request: requests.Request) -> None:
        """Raise `RewriteLogError` if a request has to wait, or needs logs."""
        alone = requests.Refit | requests.Rewrite | requests.Undo | requests.Redo
        if self._work and isinstance(request, alone):
            raise RewriteLogError("a fit is in progress: wait for it, or stop it")
        if self.session.fitting and isinstance(request, requests.Save | requests.Rewrite):
            raise RewriteLogError("events are being fitted: wait for them, or stop the fit")
        if self._effect is None and isinstance(request, requests.Rewrite):
            raise RewriteLogError("no logs were given: start explore with --logs DIR")

    async def _do(self, socket: _Socket, request: requests.Request) -> None:
        session, effect = self.session, self._effect
        match request:
            case requests.Refit():
                timings = session.events[request.event]
                request.choices.config(timings.parameters)
                result = await self._result_of("fitting", lambda: fitted(timings, request.choices))
                session.put(request.event, result)
                self._tell_step(request.event)
            case requests.Check():
                request.choices.config(session.events[request.event].parameters)
                socket.send({"valid": True})
            case requests.Predict():
                socket.send({"predicted": session.predict(request.event, request.params)})
            case requests.Show():
                socket.send({"shown": session.state_of(request.event)})
            case requests.Stop():
                self.stop()
            case requests.Undo():
                self._tell_step(session.undo())
            case requests.Redo():
                self._tell_step(session.redo())
            case requests.Save():
                self.tell({"saved": self._saving.save(session)})
            case requests.Rewrite() if effect is not None:
                work = self._result_of("rewriting", lambda: effect(session, request.dilation))
                self.tell({"rewrite": await work})

    async def _result_of(self, what: str, work: Callable[[], Any]) -> Any:
        """Return the result of `work`, while all pages show that it is in progress."""
        self.tell({"busy": what})
        self._work = asyncio.create_task(in_process(lambda _: work()))
        try:
            return await self._work
        finally:
            self._work = None
            self.tell({"busy": None})

    def stop(self) -> None:
        """Stop what is done for a request, else the first fits; fits so far are kept."""
        for task in [self._work] if self._work else self._first_fits:
            task.cancel()

    def _tell_step(self, event: int) -> None:
        """Send all pages the state of an event that a step has changed."""
        self.tell({**self.session.state_of(event), "verdict": self._verdict()})

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

    def on_message(self, message: str | bytes) -> None:
        """Answer a message; the page sends text only, never bytes."""
        if isinstance(message, str):
            self.application.answer(self, message)
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
        explorer.stop()
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
