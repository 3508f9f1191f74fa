"""The model that a model file holds, as one that needs no fit."""

from __future__ import annotations

from dataclasses import dataclass

from rewritelog.models.base import Model, Timings
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.model_file import ModelFile
from rewritelog.models.options import option


@dataclass(frozen=True)
class FromFileOptions:
    """What the report says of the file."""

    made_by: str = option("auto", "The model that made the fit.")
    rewritelog: str = option("", "The version of rewritelog that made it.")
    lines: int = option(0, "The number of timing lines that it was fitted to.")
    sha256: str = option("", "The digest of the samples.")


class FromFile(Model[FromFileOptions]):
    """Predicts by the fit of a model file; nothing is fitted."""

    Options = FromFileOptions
    needs_timings = False

    def __init__(self, file: ModelFile) -> None:
        source = file.source
        super().__init__(
            FromFileOptions(file.fitted.model, source.rewritelog, source.lines, source.sha256)
        )
        self._fitted = file.fitted

    def fit(self, timings: Timings) -> FittedEvents:  # noqa: ARG002 - the fit is given
        """Return the fit that the file holds."""
        return self._fitted


class FromFileOfCounters(FromFile):
    """The same for a fit whose tables have counters for columns."""

    columns = "counters"


def model_of(file: ModelFile) -> FromFile:
    """Return the model that a file holds."""
    return FromFileOfCounters(file) if file.columns == "counters" else FromFile(file)
