"""What model files and reports hold of a fit: the fields of its classes, which are `Form`s.

`fit_json` makes JSON of them, and checks it when it is read. Fields that are arrays or expressions
become lists and texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec
from msgspec import Meta

from rewritelog.models.expressions import MAX_PARAMETERS

Text: TypeAlias = Annotated[str, Meta(max_length=10_000)]
"""A name or sentence."""

EventName: TypeAlias = Annotated[str, Meta(max_length=1 << 20)]
"""The name of an event: no timing line is longer."""

Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]

ParameterCount: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_PARAMETERS)]

NotNegative: TypeAlias = Annotated[float, Meta(ge=0)]

Share: TypeAlias = Annotated[float, Meta(gt=0, le=1)]

if TYPE_CHECKING:
    Exact: TypeAlias = float
else:

    class Exact(float):
        """A number that need not be finite; all others have to be in a model file."""


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a fit that is an object of the JSON."""
