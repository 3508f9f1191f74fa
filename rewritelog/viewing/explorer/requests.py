"""The requests of the page: whose are accepted, and JSON from a browser, which is not trusted.

Requests are refused without the token in the address, with another host's name, or from a page of
another origin, unless that only leads a browser here. This also defeats DNS rebinding, where a
foreign name resolves to 127.0.0.1. Connections without an accepted request are closed after a
while, and before that if there are many of them.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias, cast

import msgspec
from msgspec import Meta, Struct
from tornado.http1connection import HTTP1Connection
from tornado.httputil import HTTPConnection, HTTPServerRequest
from tornado.iostream import IOStream
from tornado.log import gen_log

from rewritelog.errors import UsageError
from rewritelog.models.base import EventTimings
from rewritelog.viewing.explorer.session import FitChoices, Index

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
        own_host = headers.get_list("Host") == [f"{HOST}:{self.port}"]
        origin = headers.get_list("Origin")
        own_origin = origin == [self.origin] or not (origin or request.method == "POST")
        by_user = headers.get("Sec-Fetch-Site") in (None, "none", "same-origin")
        fetch = headers.get("Sec-Fetch-Mode"), headers.get("Sec-Fetch-Dest")
        if not (own_host and own_origin and (by_user or fetch == ("navigate", "document"))):
            return FORBIDDEN
        own_path = secrets.compare_digest(request.path.encode(), f"/{self.token}/".encode())
        return None if own_path else NOT_FOUND


class Queue:
    """The connections that wait without an accepted request, the oldest first."""

    def __init__(self) -> None:
        self._waiting: list[IOStream] = []
        self._crowded = False

    def join(self, connection: HTTPConnection) -> None:
        """Put a connection last; close the first if too many wait."""
        self.leave(connection)
        self._waiting.append(cast(HTTP1Connection, connection).stream)
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
        own = cast(HTTP1Connection, connection).stream
        waiting = self._waiting
        self._waiting = [stream for stream in waiting if stream is not own and not stream.closed()]


MOST_BYTES = 8 << 20
"""Longer requests are refused; a list of a million lines left out is shorter."""


class _Request(Struct, forbid_unknown_fields=True, tag_field="do", tag=str.lower):
    """A request; its key `do` says which."""

    changed: dict[Index, FitChoices] = {}
    """How the page has events fitted, apart from those that are fitted as at first."""


class Alive(_Request):
    """Request that shows that the server is there."""


class Stop(_Request):
    """Request to stop a fit, or else the first fits."""


class _WithFits(_Request):
    """A request that needs the fits of all events."""

    partial: bool = False
    """Whether those that there are do, since the others were stopped."""


class Save(_WithFits):
    """Request to write the files."""


class Rewrite(_WithFits, kw_only=True):
    """Request for the effect of the fits on a rewrite with a dilation."""

    dilation: Annotated[float, Meta(gt=0, le=1e300)]


class Show(_Request, kw_only=True):
    """Request for the data that the page shows of an event."""

    event: Index


class Predict(Show, kw_only=True):
    """Request to predict an event's time at parameters."""

    params: tuple[float, ...]


class Check(Show):
    """Request to check whether terms and category are valid, sent while the user types."""


class Fit(Show):
    """Request to fit an event as chosen, and to show it."""

    first: bool = False
    """Whether to fit it as at first; then only its row is shown."""


Request: TypeAlias = Alive | Save | Stop | Rewrite | Show | Predict | Check | Fit

_DECODER: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)


def read_request(body: bytes, events: Sequence[EventTimings]) -> Request:
    """Return the request about events in a body; raise `UsageError` for an invalid one."""
    try:
        request = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(f"the request is invalid: {error}") from error
    named = [*request.changed, *([request.event] if isinstance(request, Show) else [])]
    if max(named, default=-1) >= len(events):
        raise UsageError(f"an event must be an integer from 0 to {len(events) - 1}")
    for event, choices in request.changed.items():
        last = max(choices.left_out, default=0)
        if last >= len(events[event].seconds):
            raise UsageError(f"the event has no line {last}")
    if isinstance(request, Predict):
        count = events[request.event].parameters
        if len(request.params) != count or not all(map(math.isfinite, request.params)):
            raise UsageError(f"params must be a list of {count} finite numbers")
    return request
