"""The requests of the page: JSON from a browser, which is not trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from rewritelog.errors import UsageError
from rewritelog.models.base import EventTimings
from rewritelog.viewing.explorer.session import FitChoices, Index


class _Request(Struct, forbid_unknown_fields=True, tag_field="do", tag=str.lower):
    """A request; its key `do` says which."""

    changed: dict[Index, FitChoices] = {}
    """The choices for all events that the page has changed, by number."""


class Stop(_Request):
    """Request to stop a fit, or else the first fits."""


class _WithFits(_Request):
    """A request that needs the fits of all events."""

    partial: bool = False
    """Whether the fits made so far are enough, since the others were stopped."""


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
    """Whether to fit it with its first choices; then only its row is shown."""


Request: TypeAlias = Save | Stop | Rewrite | Show | Predict | Check | Fit

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
