"""The requests of the page: JSON from a browser, which is not trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from rewritelog.errors import UsageError
from rewritelog.models.exact_matches import ExactMatch
from rewritelog.models.fitting.regression import Loss
from rewritelog.models.fitting.samples import Weighting
from rewritelog.models.formulas.reading import MAX_TERMS
from rewritelog.viewing.explorer.choices import LONGEST_TERM, FitChoices

MOST_CHARACTERS = 8 << 20
"""Longer messages are refused; a list of a million lines left out is shorter."""

Text: TypeAlias = Annotated[str, Meta(max_length=LONGEST_TERM + 1)]
Index: TypeAlias = Annotated[int, Meta(ge=0)]
Factor: TypeAlias = Annotated[float, Meta(gt=0, le=1e300)]


class _Message(Struct, forbid_unknown_fields=True, tag_field="do"):
    """A message; its key `do` says which."""


class _Choices(_Message):
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
        return FitChoices(
            self.terms,
            self.category.strip(),
            self.weights,
            self.loss,
            self.exact_match,
            self.left_out,
        )


class Refit(_Choices, tag="refit"):
    """Request to fit an event as chosen."""


class Check(_Choices, tag="check"):
    """Request to check whether terms and category are valid, sent while the user types."""


class Predict(_Message, tag="predict"):
    """Request to predict an event's time at parameters."""

    event: Index
    params: tuple[float, ...]


class Show(_Message, tag="show"):
    """Request for the data that the page shows of an event."""

    event: Index


class Rewrite(_Message, tag="rewrite"):
    """Request for the effect of the fits on a rewrite with a dilation."""

    dilation: Factor


class Undo(_Message, tag="undo"):
    """Request to undo the last step."""


class Redo(_Message, tag="redo"):
    """Request to redo the step that was undone last."""


class Stop(_Message, tag="stop"):
    """Request to stop a fit."""


class Save(_Message, tag="save"):
    """Request to write the files."""


Request: TypeAlias = Refit | Check | Predict | Show | Rewrite | Undo | Redo | Stop | Save

_DECODER: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)


@dataclass(frozen=True)
class Sizes:
    """The numbers of lines and of parameters of each event, against which requests are checked."""

    lines: tuple[int, ...]
    parameters: tuple[int, ...]


def read_request(text: str, sizes: Sizes) -> Request:
    """Return the request in a message; raise `UsageError` for an invalid one."""
    if len(text) > MOST_CHARACTERS:
        raise UsageError("the message is too long")
    try:
        request = _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(f"the message is invalid: {error}") from error
    event = getattr(request, "event", 0)
    if event >= len(sizes.lines):
        raise UsageError(f"event must be an integer from 0 to {len(sizes.lines) - 1}")
    if isinstance(request, _Choices):
        beyond = [row for row in request.left_out if row >= sizes.lines[event]]
        if beyond:
            raise UsageError(f"the event has no line {beyond[0]}")
    if isinstance(request, Predict):
        count = sizes.parameters[event]
        if len(request.params) != count or not all(map(math.isfinite, request.params)):
            raise UsageError(f"params must be a list of {count} finite numbers")
    return request
