"""Access control of the live page: whose requests are accepted, and who is not waited for.

Requests are refused without the token in the address, with another host's name, or from a page of
another origin, unless that only leads a browser here. This also defeats DNS rebinding, where a
foreign name resolves to 127.0.0.1. Connections without an accepted request are closed after a
while, and before that if there are many of them.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import cast

from tornado.http1connection import HTTP1Connection
from tornado.httputil import HTTPConnection, HTTPServerRequest
from tornado.iostream import IOStream
from tornado.log import gen_log

HOST = "127.0.0.1"
FORBIDDEN, NOT_FOUND = 403, 404

WAIT_S = 30
"""How long the server waits for a request's head, and for its body."""

MOST_WAITING = 256
"""Connections may wait without an accepted request; the oldest of more are closed. It is more than
are accepted in one turn of the loop, so that a request that is there by then is always read."""


@dataclass(frozen=True)
class Access:
    """The access control of the server: token, host and origin that a request must have."""

    port: int
    token: str

    @property
    def origin(self) -> str:
        """Return the only accepted origin."""
        return f"http://{HOST}:{self.port}"

    @property
    def address(self) -> str:
        """Return the address of the page."""
        return f"{self.origin}/{self.token}/"

    def refusal(self, request: HTTPServerRequest) -> int | None:
        """Return the HTTP status with which a request is refused, None if it is accepted.

        Requests of the user or of the page itself are accepted, not those of a page of another
        site. What only takes the user here may come from elsewhere: a link, or the file that
        `explore` opens.
        """
        headers = request.headers
        is_socket = headers.get("Upgrade", "").lower() == "websocket"
        own_host = headers.get_list("Host") == [f"{HOST}:{self.port}"]
        own_origin = headers.get_list("Origin") in ([self.origin], *([] if is_socket else [[]]))
        by_user = headers.get("Sec-Fetch-Site") in (None, "none", "same-origin")
        leads_here = (headers.get("Sec-Fetch-Mode"), headers.get("Sec-Fetch-Dest")) == (
            "navigate",
            "document",
        )
        if not (own_host and own_origin and (by_user or leads_here)):
            return FORBIDDEN
        token = f"{request.path}/".split("/")[1]
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return NOT_FOUND
        return None


class Queue:
    """The connections that wait without an accepted request, the oldest first."""

    def __init__(self) -> None:
        self._waiting: list[IOStream] = []
        self._crowded = False

    def join(self, connection: HTTPConnection) -> None:
        """Put a connection last; close the first if too many wait."""
        self.leave(connection)
        self._waiting.append(_stream_of(connection))
        if len(self._waiting) > MOST_WAITING:
            self._waiting.pop(0).close()
            if not self._crowded:
                gen_log.warning(
                    f"rewritelog: warning: more than {MOST_WAITING} connections to the page wait "
                    "without a valid request; the oldest are closed"
                )
            self._crowded = True

    def leave(self, connection: HTTPConnection | None) -> None:
        """Remove a connection whose request is accepted, and all that have been closed."""
        own = _stream_of(connection)
        self._waiting = [
            stream for stream in self._waiting if not (stream is own or stream.closed())
        ]


def _stream_of(connection: HTTPConnection | None) -> IOStream:
    """Return the stream of a connection to an `HTTPServer`."""
    return cast(HTTP1Connection, connection).stream
