"""A fitted model with its name: what fits, files, predictions, rewrites and pages work with.

Every answer of a model is checked here: exceptions and invalid results become a `ModelError` that
names model and event.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rewritelog import __version__
from rewritelog.arrays import Columns, Flags, Floats
from rewritelog.errors import ModelError
from rewritelog.models.base import (
    EventKey,
    FitByEvent,
    Model,
    ModelFit,
    ParamNames,
    Prediction,
    Timings,
    TotalSpread,
    digest_of,
)
from rewritelog.models.form import Count, Form, Text
from rewritelog.stopping import is_stop, raise_if_stopped
from rewritelog.text import count_text, json_text, printable

if TYPE_CHECKING:
    from rewritelog.models.fitting.event_fit import EventFit


@contextmanager
def errors_as_model_errors(where: str, *passing: type[Exception]) -> Iterator[None]:
    """Turn any exception of third-party code into a `ModelError` that begins with `where`.

    `ModelError` and those `passing` are left as they are. A signal that ends the run does so even
    if that code catches it.
    """
    left: tuple[type[Exception], ...] = ModelError, MemoryError, *passing
    try:
        yield
    except left:
        raise
    except BaseException as error:  # also SystemExit: it would look like a successful run
        raise ModelError(f"{where}: {problem_of(error)}") from error
    raise_if_stopped()


def problem_of(error: BaseException) -> str:
    """Return type and text of an exception of third-party code; re-raise one that ends the run."""
    raise_if_stopped()
    if is_stop(error):
        raise error
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - __str__ is third-party code too
        return type(error).__name__


def checked_seconds(answer: object, rows: int, where: str) -> Floats:
    """Return durations as float64, shape (rows,); raise `ModelError` if they are anything else."""
    with errors_as_model_errors(where):
        raw = np.asarray(answer)
    if raw.dtype.kind not in "iuf":
        raise ModelError(f"{where}: durations are of type {raw.dtype}, not numbers")
    require_rows(raw, rows, f"{where}: the answer")
    seconds = raw.astype(np.float64, copy=False)
    infinite = np.flatnonzero(np.isinf(seconds))
    if len(infinite):
        raise ModelError(f"{where}: the duration of row {infinite[0]} is {seconds[infinite[0]]}")
    return seconds


def checked_factors(answer: object, rows: int, where: str, least: float = 0.0) -> Floats:
    """Return factors of durations as float64, shape (rows,); raise `ModelError` otherwise."""
    factors = checked_seconds(answer, rows, where)
    if not (factors >= least).all():
        raise ModelError(f"{where}: a factor is {factors[~(factors >= least)][0]}")
    return factors


def require_rows(values: NDArray[Any], rows: int, where: str) -> None:
    """Raise `ModelError` for any shape but (rows,)."""
    if values.shape != (rows,):
        raise ModelError(f"{where} has shape {values.shape}, not ({rows},)")


class Source(Form, frozen=True):
    """The origin of a fit: its timing lines, and the version that made it."""

    rewritelog: Text
    """The version of rewritelog that made the fit."""
    files: tuple[Text, ...]
    """The names of the files of timing lines."""
    lines: Count
    """The number of timing lines in them."""
    clock_hz: float | None
    """The clock in Hz for times given in cycles; None without such times."""
    sha256: Text
    """The digest of the samples (`base.digest_of`)."""

    @classmethod
    def of(cls, files: Iterable[Path], timings: Timings, clock_hz: float | None) -> Source:
        """Return the origin of a fit of this version to samples from files."""
        lines = sum(len(samples.seconds) for samples in timings)
        names = tuple(printable(path.name) for path in files)
        return cls(__version__, names, lines, clock_hz, digest_of(timings))


NO_SOURCE = Source("", (), 0, None, "")


def option_text(value: object) -> str:
    """Return the value of an option of a model as the command line takes it: `none`, `true`."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted model, what made it, and its checked answers for rows of parameters."""

    name: str
    """The name of the model, or its file, in reports and errors."""
    raw: ModelFit
    """The fit as returned by the model."""
    columns: Columns = "params"
    """Whether it predicts from `params` or `counters`."""
    source: Source = NO_SOURCE
    """The timing lines that it was fitted to."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of the model."""
    uses_params: bool = True
    """Whether it needs param records to predict."""
    inputs: tuple[Path, ...] = ()
    """The model file that it was read from, or the files of timing lines that it was fitted to."""
    file_sha256: str | None = None
    """The digest of the model file."""
    param_names: ParamNames | None = None
    """The names of parameters, for a fit of a plug-in, which does not hold them itself."""

    @classmethod
    def of(cls, model: Model[Any], name: str, timings: Timings) -> Fitted:
        """Return the model fitted to timings; raise `ModelError` naming it if that fails."""
        with errors_as_model_errors(f"model {name!r} cannot be fitted"):
            fit: Any = model.fit(timings)  # outsiders may break the type
            declared = getattr(model, "options", None)  # outsiders may leave it out
            options = {} if declared is None else asdict(declared)
        if not isinstance(fit, ModelFit):
            kind = type(fit).__name__
            raise ModelError(f"model {name!r}: fit() returned {kind}, not a ModelFit")
        return cls(name, fit, model.columns, options=options, uses_params=model.uses_params)

    def __str__(self) -> str:
        return self.name

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for another process; raise `ModelError` if pickle refuses the fit.

        The fit is pickled apart: its classes may be in a file, which has to be run before, also
        from another working folder.
        """
        from rewritelog.models.outside import file_of  # noqa: PLC0415 - it imports this module

        with errors_as_model_errors(f"model {self.name!r} cannot be pickled"):
            file = file_of(self.name)
            path = str(Path(file).absolute()) if file else ""
            return {**vars(self), "raw": pickle.dumps(self.raw), "file": path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        with errors_as_model_errors(f"model {state['name']!r} cannot be unpickled"):
            from rewritelog.models.outside import run_file  # noqa: PLC0415 - as above

            if file := state.pop("file"):
                run_file(file)
            vars(self).update(state, raw=pickle.loads(state["raw"]))  # noqa: S301 - within a pickle

    @property
    def fits(self) -> Mapping[EventKey, EventFit]:
        """The functions of events; empty for a model that has none."""
        return self.raw.fits if isinstance(self.raw, FitByEvent) else {}

    @property
    def keys(self) -> list[EventKey]:
        """The events with their numbers of parameters, as far as the model reports them."""
        keys = self.fits or getattr(self.raw, "events", {})
        return [key for key in keys if isinstance(key, tuple)]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noted when the fit was made: unused formulas and names, lines left out."""
        notes: tuple[str, ...] = getattr(self.raw, "notes", ())
        return notes

    def names_of(self, event: str, parameters: int) -> tuple[str, ...]:
        """Return the names of an event's parameters; empty if they have none."""
        if self.param_names is not None:
            return self.param_names.for_event(event, parameters)
        fit = self.fits.get((event, parameters))
        return () if fit is None else fit.names

    def fitted_to(self, lines: int) -> str:
        """Return in words how many of these timing lines it was fitted to."""
        checks = [fit.left_out for fit in self.fits.values() if fit.left_out is not None]
        unused = sum(check.lines - check.drawn for check in checks)
        of_drawn = f"{lines - unused:,} of " if unused else ""
        return f"fitted to {of_drawn}{count_text(lines, 'timing line')}"

    def named(self, names: ParamNames | None) -> Self:
        """Return the model with these names of parameters, if any; those of formulas are kept."""
        if names is None:
            return self
        if not isinstance(self.raw, FitByEvent):
            return replace(self, param_names=names)
        return replace(self, raw=self.raw.named(names))

    @property
    def options_text(self) -> str:
        """The options of the model, with values as the command line takes them."""
        options = self.options.items()
        return ", ".join(f"{name.replace('_', '-')} {option_text(v)}" for name, v in options)

    def as_from_file(self) -> Fitted:
        """Return the model as one from a model file, whose options say what it was made from."""
        source = self.source
        options = {
            "made_by": self.raw.model if isinstance(self.raw, FitByEvent) else self.name,
            "rewritelog": source.rewritelog,
            "lines": source.lines,
            "sha256": source.sha256,
        }
        return Fitted(
            self.name, self.raw, self.columns, source, options, param_names=self.param_names
        )

    def implements(self, name: Literal["interval", "retransformation", "drawn_factors"]) -> bool:
        """Return whether the model implements an optional method."""
        return getattr(type(self.raw), name) is not getattr(ModelFit, name)

    def prediction(self, event: str, params: Floats) -> Prediction:
        """Return the predictions for the rows with all masks; negative seconds become 0.

        Raise `ModelError` if the model raises, or if its result does not have the shape (rows,), is
        not numeric, or is infinite. NaN means "not covered".
        """
        where, rows = self._place(event), len(params)

        def flags(answer: object) -> Flags:
            mask = np.zeros(rows, dtype=np.bool_)
            mask[:] = answer
            return mask

        with errors_as_model_errors(where):
            answer = self.raw.predict_detailed(event, params)
            seconds = checked_seconds(answer.seconds, rows, where)
            below = seconds < 0
            widening = np.ones(rows) if answer.widening is None else answer.widening
            factors = np.where(np.isnan(seconds), 1.0, widening)
            return Prediction(
                np.where(below, 0.0, seconds),
                flags(answer.exact),
                flags(answer.outside),
                flags(False if answer.remote is None else answer.remote),
                flags(below if answer.negative is None else answer.negative),
                checked_factors(factors, rows, f"{where}: widening", least=1.0),
            )

    def bounds(self, event: str, params: Floats) -> tuple[Floats, Floats]:
        """Return the bounds in seconds of each row's 90 % interval, NaN where they are unknown.

        Negative bounds become 0, as predictions do, but an interval below 0 is unknown: the
        function does not hold there. Raise `ModelError` if the model raises or returns anything
        else.
        """
        where = self._place(event, "interval")
        with errors_as_model_errors(where):
            low, high = self.raw.interval(event, params)
            bounds = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        for bound in bounds:
            require_rows(bound, len(params), f"{where}: a bound")
        low, high = np.where(bounds[1] < 0, np.nan, np.maximum(bounds, 0.0))
        return low, high

    def drawn_factors(self, event: str, params: Floats, uniforms: Floats) -> Floats | None:
        """Return the random factors for the rows' durations, or None if the model has none.

        Raise `ModelError` as `prediction` does, and if a factor is negative or NaN.
        """
        return self._factors("drawn_factors", event, params, uniforms)

    def total_seconds(self, event: str, params: Floats, prediction: Prediction) -> Floats:
        """Return the predicted seconds times the factors that make sums agree with measured sums.

        Raise `ModelError` as `drawn_factors` does.
        """
        factors = self._factors("retransformation", event, params)
        return prediction.seconds if factors is None else prediction.seconds * factors

    def _factors(self, method: str, event: str, params: Floats, *more: Floats) -> Floats | None:
        where = self._place(event, method)
        with errors_as_model_errors(where):
            answer = getattr(self.raw, method)(event, params, *more)
        if answer is None:
            return None
        return checked_factors(answer, len(params), where)

    def spread(self, event: str, parameters: int) -> TotalSpread | None:
        """Return the components of the error of a sum of the event's durations, or None.

        Raise `ModelError` if the model raises, or if a spread is negative or not finite.
        """
        where = self._place(event, "total_spread")
        with errors_as_model_errors(where):
            spread = self.raw.total_spread(event, parameters)
            spreads = () if spread is None else (spread, spread.exact or spread)
            for value in [error for each in spreads for error in (each.single, each.common)]:
                if not 0 <= value < math.inf:
                    raise ModelError(f"{where} returned a spread of {value}")
        return spread

    def lines(self, method: Literal["summary", "overview", "warnings"]) -> tuple[str, ...]:
        """Return the fit's own lines; raise `ModelError` if it raises or returns anything else."""
        with errors_as_model_errors(f"model {self.name!r}: {method}()"):
            lines = getattr(self.raw, method)()
            if isinstance(lines, str):
                raise TypeError("the answer is a text, not lines")
            return tuple(map(str, lines))

    def described(self) -> dict[str, Any]:
        """Return the fit for the JSON report; raise `ModelError` if it raises or gives no JSON."""
        with errors_as_model_errors(f"model {self.name!r}: describe()"):
            described = self.raw.describe()
            json_text(described)
        return described

    def _place(self, event: str, method: str = "") -> str:
        """Return the first words of an error: model, event and method."""
        return f"model {self.name!r}, event {event!r}" + (f": {method}()" if method else "")
