"""The model of a model file: its fit is read, and needs no timings."""

from __future__ import annotations

from dataclasses import dataclass

from rewritelog.models.base import Model, Timings
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.model_file import ModelFile
from rewritelog.models.options import option


@dataclass(frozen=True)
class FromFileOptions:
    """The origin of the file, for reports."""

    made_by: str = option("auto", "The model that made the fit.")
    rewritelog: str = option("", "The version of rewritelog that made it.")
    lines: int = option(0, "The number of timing lines that it was fitted to.")
    sha256: str = option("", "The digest of the samples.")


class FromFile(Model[FromFileOptions]):
    """Predicts with the fit of a model file; nothing is fitted."""

    Options = FromFileOptions
    needs_timings = False

    def __init__(self, file: ModelFile) -> None:
        source = file.source
        super().__init__(
            FromFileOptions(file.fitted.model, source.rewritelog, source.lines, source.sha256)
        )
        self.columns = file.columns
        self._fitted = file.fitted

    def fit(self, timings: Timings) -> FittedEvents:  # noqa: ARG002 - the fit is given
        """Return the fit in the file."""
        return self._fitted
