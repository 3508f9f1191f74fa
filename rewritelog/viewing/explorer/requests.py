"""The requests of the page: JSON from a browser, which is not trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from rewritelog.errors import UsageError
from rewritelog.models.base import EventTimings
from rewritelog.models.exact_matches import ExactMatch
from rewritelog.models.fitting.regression import Loss
from rewritelog.models.fitting.samples import Weighting
from rewritelog.models.formulas import MAX_TERMS
from rewritelog.viewing.explorer.choices import LONGEST_TERM, FitChoices

MOST_CHARACTERS = 8 << 20
"""Longer messages are refused; a list of a million lines left out is shorter."""

Text: TypeAlias = Annotated[str, Meta(max_length=LONGEST_TERM + 1)]
Index: TypeAlias = Annotated[int, Meta(ge=0)]
Factor: TypeAlias = Annotated[float, Meta(gt=0, le=1e300)]


class _Request(Struct, forbid_unknown_fields=True, tag_field="do", tag=str.lower):
    """A request; its key `do` says which."""


class _Choices(_Request):
    """How an event is to be fitted."""

    event: Index
    terms: Annotated[tuple[Text, ...], Meta(max_length=MAX_TERMS)]
    category: Text
    weights: Weighting
    loss: Loss
    exact_match: ExactMatch
    left_out: frozenset[Index]

    @property
    def choices(self) -> FitChoices:
        """The choices, as the session keeps them."""
        fields = {name: getattr(self, name) for name in _Choices.__struct_fields__[1:]}
        return FitChoices(**fields | {"category": self.category.strip()})


class Refit(_Choices):
    """Request to fit an event as chosen."""


class Check(_Choices):
    """Request to check whether terms and category are valid, sent while the user types."""


class Predict(_Request):
    """Request to predict an event's time at parameters."""

    event: Index
    params: tuple[float, ...]


class Show(_Request):
    """Request for the data that the page shows of an event."""

    event: Index


class Rewrite(_Request):
    """Request for the effect of the fits on a rewrite with a dilation."""

    dilation: Factor


class Undo(_Request):
    """Request to undo the last step."""


class Redo(_Request):
    """Request to redo the step that was undone last."""


class Stop(_Request):
    """Request to stop a fit."""


class Save(_Request):
    """Request to write the files."""


Request: TypeAlias = Refit | Check | Predict | Show | Rewrite | Undo | Redo | Stop | Save

_DECODER: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)


def read_request(text: str, events: Sequence[EventTimings]) -> Request:
    """Return the request in a message about events; raise `UsageError` for an invalid one."""
    if len(text) > MOST_CHARACTERS:
        raise UsageError("the message is too long")
    try:
        request = _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(f"the message is invalid: {error}") from error
    event = getattr(request, "event", 0)
    if event >= len(events):
        raise UsageError(f"event must be an integer from 0 to {len(events) - 1}")
    if isinstance(request, _Choices):
        last = max(request.left_out, default=0)
        if last >= len(events[event].seconds):
            raise UsageError(f"the event has no line {last}")
    if isinstance(request, Predict):
        count = events[event].parameters
        if len(request.params) != count or not all(map(math.isfinite, request.params)):
            raise UsageError(f"params must be a list of {count} finite numbers")
    return request
