"""What model files and reports hold of a fit: the fields of its classes, which are `Form`s.

`fit_json` makes JSON of them. Fields that are arrays or expressions become lists and texts. When a
file is read, types and limits are checked; what they cannot say, each class checks itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta

from rewritelog.arrays import Floats
from rewritelog.models.expressions import MAX_PARAMETERS

AT = " - at `$"
"""What msgspec writes between a problem and the path to it, which ends with a backquote."""

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
    PerParameter: TypeAlias = Floats
    ParameterRows: TypeAlias = Floats
    RowsWithSeconds: TypeAlias = Floats
else:

    class Exact(float):
        """A number that need not be finite; all others have to be in a model file."""

    PerParameter = np.ndarray[Literal["parameters"], np.dtype[np.float64]]
    ParameterRows = np.ndarray[Literal["rows", "parameters"], np.dtype[np.float64]]
    RowsWithSeconds = np.ndarray[Literal["rows", "parameters", "seconds"], np.dtype[np.float64]]
    """Arrays with a number for each parameter of the event; rows of these; with one more each."""


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a fit that is an object of the JSON."""


def misfit(problem: str, path: str = "") -> ValueError:
    """Return the error for a part of a fit that contradicts others; the path is below the part."""
    return ValueError(problem + (f"{AT}{path}`" if path else ""))


def require_shape(path: str, values: Any, *shape: int) -> None:
    """Raise `ValueError` for an array or tuple of any other shape."""
    if np.shape(values) != shape:
        needed, actual = (" × ".join(map(str, lengths)) for lengths in (shape, np.shape(values)))
        raise misfit(f"must have {needed} numbers, not {actual}", path)
