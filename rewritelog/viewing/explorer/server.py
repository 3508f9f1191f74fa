"""Web server of the live page, and its answers to the requests of pages.

Requests are refused without the token in the address, with another host's name, or from a page of
another origin, unless that only leads a browser here. This also defeats DNS rebinding, where a
foreign name resolves to 127.0.0.1. Connections without an accepted request are closed after a
while, and before that if there are many of them.
"""

from __future__ import annotations

import logging
import math
import re
import secrets
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from io import BufferedReader
from socket import SHUT_RDWR, socket
from socketserver import ThreadingTCPServer
from typing import Any

from msgspec.structs import replace

from rewritelog.errors import RewriteLogError, spelled
from rewritelog.models.fitted import Fitted
from rewritelog.running.engines import cores
from rewritelog.stopping import SIGNALS
from rewritelog.text import count_text, some_text
from rewritelog.viewing.explorer import requests
from rewritelog.viewing.explorer.processes import Processes
from rewritelog.viewing.explorer.session import NOT_CHANGED, Changed, FitChoices, Saving, Session
from rewritelog.viewing.fit_pages import OWN_LINES, events_sections, quality_lines
from rewritelog.viewing.page import POLICY, asset, json_of, page_text

_log = logging.getLogger(__name__)

HOST = "127.0.0.1"

WAIT_S = 30
"""A connection may wait this long without an accepted request."""

MOST_WAITING = 256
"""The most connections that wait without an accepted request; if more do, the oldest are closed."""

MOST_HEAD_BYTES = 16 << 10
"""The most bytes of a request's first line and headers."""

MOST_DIGITS, MOST_DIGITS_REFUSED = 7, 4
"""The most digits in the length of a body that is read: of an accepted and of a refused request."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Type": "text/html; charset=UTF-8",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Server": "rewritelog",
}

Effect = Callable[[Fitted, Fitted, float], dict[str, Any]]
"""Computes the effect of the first fits and of the current ones on a rewrite and on the run."""


class Explorer(ThreadingTCPServer):
    """The server of one session, which all open pages show; it serves until it is interrupted."""

    request_queue_size = 128

    def __init__(
        self,
        session: Session,
        saving: Saving,
        effect: Effect | None = None,
        dilation: float = 1.0,
    ) -> None:
        super().__init__((HOST, 0), _Page)
        self.origin = f"http://{HOST}:{self.server_address[1]}"
        self.path = f"/{secrets.token_urlsafe(32)}/"
        self.address = f"{self.origin}{self.path}"
        self.session = session
        self._saving = saving
        self._effect = effect
        self._dilation = dilation if effect else None
        self._first_fits, self._work = Processes(), Processes()
        self._since: dict[socket, float] = {}
        """Since when each connection waits; infinite once its request is accepted."""
        self._crowded = False
        self._cores = cores()  # threads of requests do not know the limit

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer the request of a connection in a thread."""
        self._since[request] = time.monotonic()
        super().process_request(request, client_address)

    def accept(self, connection: socket) -> None:
        """Let a connection stay open, since its request is accepted."""
        self._since[connection] = math.inf

    def service_actions(self) -> None:
        """Close connections that have waited too long, and the oldest ones if too many wait."""
        waiting = [(of, since_s) for of, since_s in [*self._since.items()] if since_s < math.inf]
        too_many, until_s = len(waiting) - MOST_WAITING, time.monotonic() - WAIT_S
        if too_many > 0 and not self._crowded:
            _log.warning(
                f"rewritelog: warning: more than {MOST_WAITING} connections to the page wait "
                "without a valid request; the oldest are closed"
            )
            self._crowded = True
        for place, (connection, since_s) in enumerate(waiting):
            if place < too_many or since_s < until_s:
                _end(connection)

    def close_request(self, request: Any) -> None:
        """Forget a connection, and close it."""
        self._since.pop(request, None)
        super().close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report what a thread raised, unless that is a connection that has ended."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def server_close(self) -> None:
        """Stop all processes and threads; files that are being saved are written first."""
        for processes in (self._first_fits, self._work):
            processes.end()
        for connection in [*self._since]:
            _end(connection)
        super().server_close()

    def document(self) -> str:
        """Return the page as HTML; its policy allows connections to its own origin only."""
        session = self.session
        views = [session.view(event) for event in session.numbers]
        *sections, last = events_sections(views, OWN_LINES, editor=asset("explore.html"))
        state = {
            "count": len(session.numbers),
            "fitted": [event for event in session.numbers if session.result(event)],
            "cores": self._cores,
            "dilation": self._dilation,
        }
        return page_text(
            f"Fit of {self._files()}",
            self._verdict(),
            [*sections, replace(last, script="explore.js", data={"explore-data": state})],
            session.warnings,
            policy=f"{POLICY}; connect-src {self.origin}",
            head=asset("explore_bar.html"),
        )

    def _files(self) -> str:
        return some_text([path.name for path in self.session.timings.inputs], 3)

    def _verdict(self, changed: Changed = NOT_CHANGED) -> list[str]:
        """Return the summary of the fits made so far, for the top of the page."""
        session, results = self.session, self.session.results(changed)
        views = [session.view(event, changed) for event, fit in enumerate(results) if fit]
        left_out = sum(len(result.choices.left_out) for result in results if result)
        words = f"{left_out:,} left out" if left_out else "none left out"
        lines = count_text(len(session.timings), "timing line")
        return [f"{lines} of {self._files()}; {words}.", *quality_lines(views, ())]

    def answer(self, body: bytes) -> dict[str, Any]:
        """Carry out the request in a body; return what the page is told."""
        try:
            request = requests.read_request(body, self.session.events)
            self._check_possible(request)
            return self._do(request)
        except RewriteLogError as error:
            return {"error": str(error)}
        except CancelledError:
            return {"stopped": True}

    def _check_possible(self, request: requests.Request) -> None:
        """Raise `RewriteLogError` if a request has to wait, or needs logs."""
        is_fit = isinstance(request, requests.Fit) and not request.first
        if self._work.running and (is_fit or isinstance(request, requests.Rewrite)):
            raise RewriteLogError("a fit is in progress: wait for it, or stop it")
        if isinstance(request, requests.Save | requests.Rewrite):
            results = self.session.results(request.changed)
            if None in results and not (request.partial and any(results)):
                raise RewriteLogError("events are being fitted: wait for them, or stop the fit")
        if self._effect is None and isinstance(request, requests.Rewrite):
            raise RewriteLogError(f"no logs were given: start explore with {spelled('logs')} DIR")

    def _do(self, request: requests.Request) -> dict[str, Any]:
        session, changed, effect = self.session, request.changed, self._effect
        match request:
            case requests.Stop():
                (self._work if self._work.running else self._first_fits).stop()
            case requests.Save():
                return {"saved": self._saving.save(session, changed)}
            case requests.Rewrite(dilation=dilation) if effect is not None:
                models = session.model(), session.model(changed)
                effects: dict[str, Any] = self._work.result(lambda: effect(*models, dilation))
                return effects
            case requests.Predict(event=event, params=params):
                return session.predict(event, params, changed)
            case requests.Fit(event=event, first=True):
                if session.result(event) is None:
                    self._fit(event, session.first_choices[event], self._first_fits)
                return {"row": session.row(event), "verdict": self._verdict(changed)}
            case requests.Check(event=event):
                session.config(event, session.choices(event, changed))
            case requests.Show(event=event):
                if isinstance(request, requests.Fit) and session.result(event, changed) is None:
                    self._fit(event, session.choices(event, changed), self._work)
                return {**session.state_of(event, changed), "verdict": self._verdict(changed)}
        return {}

    def _fit(self, event: int, choices: FitChoices, processes: Processes) -> None:
        """Fit an event as chosen, and keep the fit."""
        self.session.keep(event, processes.result(partial(self.session.fit, event, choices)))


def _end(connection: socket) -> None:
    """End a connection, and thereby its thread."""
    with suppress(OSError):  # it has ended
        connection.shutdown(SHUT_RDWR)


class _LimitedReader(BufferedReader):
    """What a connection sends, as if it ended after `MOST_HEAD_BYTES` of lines."""

    left = MOST_HEAD_BYTES

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return the next line, or as much of it as there may be."""
        most = self.left if size is None or size < 0 else min(size, self.left)
        line = super().readline(most)
        self.left -= len(line)
        return line


class _Page(BaseHTTPRequestHandler):
    """Sends the page, and answers its requests; refuses all others, with the bare status."""

    server: Explorer

    def setup(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # they are for the main thread
        super().setup()
        self.rfile = _LimitedReader(self.connection.makefile("rb", 0))

    def parse_request(self) -> bool:
        """Read a request; return whether it is accepted."""
        if not super().parse_request():
            return False
        refusal, length = self._refusal(), self.headers.get("Content-Length", "0")
        most = MOST_DIGITS if refusal is None else MOST_DIGITS_REFUSED
        if re.fullmatch(f"[0-9]{{1,{most}}}", length):
            self._body = self.rfile.read(int(length))
        else:
            refusal = refusal or HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        if refusal is None:
            self.server.accept(self.connection)
        else:
            self.send_error(refusal)
        return refusal is None

    def _refusal(self) -> HTTPStatus | None:
        """Return the status with which a request is refused, None if it is accepted.

        Requests of the user or of the page itself are accepted, not those of a page of another
        site. What only takes the user here may come from elsewhere: a link, or the file that
        `explore` opens.
        """
        headers, own = self.headers, self.server
        own_host = headers.get_all("Host") == [own.origin.removeprefix("http://")]
        origin = headers.get_all("Origin")
        own_origin = origin == [own.origin] or (origin is None and self.command != "POST")
        by_user = headers.get("Sec-Fetch-Site") in (None, "none", "same-origin")
        fetch = headers.get("Sec-Fetch-Mode"), headers.get("Sec-Fetch-Dest")
        if not (own_host and own_origin and (by_user or fetch == ("navigate", "document"))):
            return HTTPStatus.FORBIDDEN
        path = self.path.partition("?")[0]
        own_path = secrets.compare_digest(path.encode(), own.path.encode())
        return None if own_path else HTTPStatus.NOT_FOUND

    def do_GET(self) -> None:
        """Send the page."""
        self._send(HTTPStatus.OK, self.server.document())

    def do_POST(self) -> None:
        """Answer a request of the page."""
        self._send(HTTPStatus.OK, json_of(self.server.answer(self._body)))

    def send_error(self, code: int, *_: object) -> None:  # type: ignore[override]
        """Refuse a request, with the bare status."""
        self._send(code, f"{int(code)}\n")

    def _send(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response_only(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))  # a page knows if the server has ended
        self.end_headers()
        self.wfile.write(body)
