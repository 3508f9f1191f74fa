"""Web server of the live page, and its answers to the requests of pages."""

from __future__ import annotations

import asyncio
import multiprocessing
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from signal import SIGINT
from typing import Any, cast

from tornado.http1connection import HTTP1Connection
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPConnection, HTTPMessageDelegate
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler, stream_request_body

from rewritelog.cores import cores
from rewritelog.errors import RewriteLogError, spelled
from rewritelog.models.expressions import FormulaError
from rewritelog.models.fitted import Fitted
from rewritelog.progress import listening
from rewritelog.stopping import SIGNALS
from rewritelog.text import count_text, some_text
from rewritelog.viewing.explorer import requests
from rewritelog.viewing.explorer.requests import HOST, WAIT_S, Access, Queue
from rewritelog.viewing.explorer.saving import Saving
from rewritelog.viewing.explorer.session import NOT_CHANGED, Changed, Session
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

Effect = Callable[[Fitted, Fitted, float], dict[str, Any]]
"""Computes the effect of the first fits and of others on a rewrite, and on the run."""


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
        super().__init__([(r".*", _Page)], log_function=lambda _handler: None)
        self.session = session
        self.access = access
        self.queue = Queue()
        self._free = asyncio.Semaphore(cores())
        """Of the first fits, as many are made at a time as there are cores."""
        self._first_fits: set[asyncio.Task[Any]] = set()
        self._work: set[asyncio.Task[Any]] = set()
        """What else is done for a request, at most one task."""
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
        views = [session.view(event) for event in session.numbers]
        *sections, last = events_sections(views, OWN_LINES, editor=asset("explore.html"))
        state = {
            "count": len(session.numbers),
            "fitted": [event for event in session.numbers if session.result(event)],
            "cores": cores(),
            "dilation": self._dilation,
        }
        return page_text(
            f"Fit of {self._files()}",
            self._verdict(),
            [*sections, replace(last, script="explore.js", data={"explore-data": state})],
            session.warnings,
            policy=f"{POLICY}; connect-src {self.access.origin}",
            head=asset("explore_bar.html"),
        )

    def _files(self) -> str:
        return some_text([path.name for path in self.session.read.inputs], 3)

    def _verdict(self, changed: Changed = NOT_CHANGED) -> list[str]:
        """Return the summary of the fits that there are, at the top of the page."""
        session, results = self.session, self.session.results(changed)
        views = [session.view(event, changed) for event, fit in enumerate(results) if fit]
        left_out = sum(len(result.choices.left_out) for result in results if result)
        words = f"{left_out:,} left out" if left_out else "none left out"
        lines = count_text(len(session.read), "timing line")
        return [f"{lines} of {self._files()}; {words}.", *quality_lines(views, ())]

    async def answer(self, body: bytes) -> dict[str, Any]:
        """Carry out the request in a body; return what the page is told."""
        try:
            request = requests.read_request(body, self.session.events)
            self._check_possible(request)
            return await self._do(request)
        except FormulaError as error:
            place = {"line": error.line, "column": error.column, "where": error.name}
            return {"error": str(error), **place}
        except RewriteLogError as error:
            return {"error": str(error)}
        except asyncio.CancelledError:
            return {"stopped": True}

    def _check_possible(self, request: requests.Request) -> None:
        """Raise `RewriteLogError` if a request has to wait, or needs logs."""
        is_fit = isinstance(request, requests.Fit) and not request.first
        if self._work and (is_fit or isinstance(request, requests.Rewrite)):
            raise RewriteLogError("a fit is in progress: wait for it, or stop it")
        if isinstance(request, requests.Save | requests.Rewrite):
            results = self.session.results(request.changed)
            if None in results and not (request.partial and any(results)):
                raise RewriteLogError("events are being fitted: wait for them, or stop the fit")
        if self._effect is None and isinstance(request, requests.Rewrite):
            raise RewriteLogError(f"no logs were given: start explore with {spelled('logs')} DIR")

    async def _do(self, request: requests.Request) -> dict[str, Any]:
        session, changed, effect = self.session, request.changed, self._effect
        match request:
            case requests.Stop():
                for task in self._work or self._first_fits:  # fits so far are kept
                    task.cancel()
            case requests.Save():
                return {"saved": self._saving.save(session, changed)}
            case requests.Rewrite(dilation=dilation) if effect is not None:
                models = session.model(), session.model(changed)
                told: dict[str, Any] = await _result(lambda: effect(*models, dilation), self._work)
                return told
            case requests.Predict(event=event, params=params):
                return session.predict(event, params, changed)
            case requests.Fit(event=event, first=True):
                await self._fit_first(event)
                return {"row": session.row(event), "verdict": self._verdict(changed)}
            case requests.Check(event=event):
                session.choices(event, changed).config(session.events[event].parameters)
            case requests.Show(event=event):
                if isinstance(request, requests.Fit) and session.result(event, changed) is None:
                    choices = session.choices(event, changed)
                    fit = await _result(partial(session.fit, event, choices), self._work)
                    session.keep(event, fit)
                return {**session.state_of(event, changed), "verdict": self._verdict(changed)}
        return {}

    async def _fit_first(self, event: int) -> None:
        """Fit an event as `fit` does, unless that is done."""
        async with self._free:
            if self.session.result(event) is None:
                work = partial(self.session.fit, event, self.session.first_choices[event])
                self.session.keep(event, await _result(work, self._first_fits))

    async def end(self) -> None:
        """Stop all processes."""
        tasks = [*self._first_fits, *self._work]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _result(work: Callable[[], Any], tasks: set[asyncio.Task[Any]]) -> Any:
    """Return the result of work in another process; while it runs it is in `tasks`."""
    task = asyncio.create_task(in_process(work))
    tasks.add(task)
    try:
        return await task
    finally:
        tasks.remove(task)


async def in_process(work: Callable[[], Any]) -> Any:
    """Return the result of work in another process, which ends at once if the task is cancelled.

    So the page stays responsive, and the work can be stopped. As the process is forked, only the
    result must be picklable, not the work. Raise the `RewriteLogError` that it raises.
    """
    context, ready = multiprocessing.get_context("fork"), asyncio.Event()
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_result, args=(work, sender), daemon=True)
    process.start()
    sender.close()
    loop, descriptor = asyncio.get_running_loop(), receiver.fileno()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
        result = receiver.recv()
    except (EOFError, OSError):  # the latter if it ended while it sent
        raise RewriteLogError("the fit's process ended without a result") from None
    finally:
        loop.remove_reader(descriptor)
        receiver.close()
        process.kill()
        process.join()
    if isinstance(result, RewriteLogError):
        raise result
    return result


def _send_result(work: Callable[[], Any], sender: Connection) -> None:
    """Send the result or the error; Ctrl-C and progress are the parent's."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN if number == SIGINT else signal.SIG_DFL)
    try:
        with listening(None):
            sender.send(work())
    except RewriteLogError as error:
        sender.send(error)


@stream_request_body
class _Page(RequestHandler):
    """Sends the page, and answers its requests; refuses all others, with the bare status."""

    application: Explorer

    def set_default_headers(self) -> None:
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        self._body = bytearray()
        refusal = self.application.access.refusal(self.request)
        if refusal is None:
            self.application.queue.leave(self.request.connection)
            # only requests of the page may have a long body
            cast(HTTP1Connection, self.request.connection).set_max_body_size(requests.MOST_BYTES)
        else:
            self.set_status(refusal)
            self.finish(f"{refusal}\n")

    def data_received(self, chunk: bytes) -> None:
        """Take a part of a request's body."""
        self._body += chunk

    def get(self) -> None:
        """Send the page."""
        self.finish(self.application.document())

    async def post(self) -> None:
        """Answer a request of the page."""
        self.finish(json_of(await self.application.answer(bytes(self._body))))


async def serve(
    session: Session,
    saving: Saving,
    effect: Effect | None,
    ready: Callable[[Explorer], None],
    dilation: float = 1.0,
) -> None:
    """Serve the page until Ctrl-C; `ready` is called with the running server.

    Other signals that the process handles end the server first.
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
    try:
        with _signals_passed_to(ended):
            ready(explorer)
            await ended.wait()
    finally:
        server.stop()
        await explorer.end()
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
