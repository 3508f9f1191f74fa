"""The requests of fits and comparisons; without heavy imports, as the command line reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from rewritelog.errors import UsageError
from rewritelog.options import (
    MODEL,
    As,
    Jobs,
    Kind,
    Seed,
    option,
)
from rewritelog.timings.options import MODEL_HELP, ModelInputs, ParamNamesFile, TimingLines

if TYPE_CHECKING:
    from rewritelog.models.base import Model

ModelArgument: TypeAlias = Annotated["str | Model[Any]", Kind(read=str)]
ModelNames: TypeAlias = Annotated[
    As["str | Sequence[str]", "tuple[str, ...]"], Kind("options:listed", str, several=True)
]
DEFAULT_MODELS = ("auto", "least-squares")
DEFAULT_FOLDS = 10


class FitRequest(Jobs, ParamNamesFile, ModelInputs, TimingLines):
    """The request of a fit: timing lines, model and options."""

    model: ModelArgument = option(
        f"{MODEL_HELP}.", default="auto", metavar="NAME", group=MODEL, complete="model",
        kw_only=False,
    )  # fmt: skip

    event: str | None = option(
        "Show the whole fit of this event, and its formula; * matches anything.",
        default=None, metavar="NAME", complete="event",
    )  # fmt: skip

    @property
    def model_name(self) -> str:
        """The name of the model in reports."""
        return self.model if isinstance(self.model, str) else type(self.model).__name__


class CompareRequest(Jobs, Seed, ModelInputs, TimingLines):
    """The request of a comparison; raises `UsageError` for invalid values."""

    models: ModelNames = option(
        "The models to compare [default: auto, least-squares].",
        default=DEFAULT_MODELS, metavar="NAME,NAME,...", group=MODEL, complete="models",
        kw_only=False,
    )  # fmt: skip
    folds: int = option(
        "Divide the lines into N parts, and hold out each in turn.", default=DEFAULT_FOLDS
    )
    fraction: float | None = option(
        "Fit to this share of each event's lines instead, drawn at random, and predict the rest.",
        default=None, metavar="SHARE",
    )  # fmt: skip
    repeats: int = option("Repeat the comparison N times, each time with a new seed.", default=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.models or len(set(self.models)) < len(self.models):
            raise UsageError("give at least one model, each only once")
        if self.folds < 2:
            raise UsageError(f"there must be at least 2 folds, not {self.folds}")
        if self.repeats < 1:
            raise UsageError(f"there must be at least 1 repeat, not {self.repeats}")
        if self.fraction is not None and self.folds != DEFAULT_FOLDS:
            raise UsageError("give --folds or --fraction, not both")
        if self.fraction is not None and not 0 < self.fraction < 1:
            raise UsageError(f"the fraction must lie between 0 and 1, not {self.fraction}")

    def method_text(self) -> str:
        """Return the method of the comparison as text."""
        repeats = "" if self.repeats == 1 else f" × {self.repeats}"
        if self.fraction is None:
            return f"{self.folds} folds{repeats}, seed {self.seed}"
        return f"fits to {self.fraction:.3g} of each event's lines{repeats}, seed {self.seed}"
