"""The contract of a duration model: timings in, a fitted model out, which predicts seconds.

A model is a class with a frozen options dataclass; `docs/writing-a-model.md` shows a complete one.
Models work on arrays alone; they know nothing of files, logs or the command line.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
from msgspec import Struct, field

from rewritelog import options
from rewritelog.arrays import Columns, Flags, Floats, Ints
from rewritelog.errors import UsageError, UsageTypeError
from rewritelog.text import (
    NO_VALUE,
    TextTable,
    count_text,
    event_label,
    matches,
    parameter_names,
    range_texts,
    shorten,
    some_text,
)

if TYPE_CHECKING:
    from rewritelog.models.fitting.event_fit import EventFit

__all__ = [
    "EventTimings",
    "Flags",
    "Floats",
    "Model",
    "ModelFit",
    "ModelText",
    "Prediction",
    "Timings",
    "TotalSpread",
]
"""What the author of a model needs, including the array aliases."""

LOST = "lost::"
"""The prefix of the events of a lost-cycles analysis, whose times are PE-seconds of a replay."""

STUDY_HEAD = "# lost cycles; parameters: "
"""The first words of a study's file of timing lines; the names of their parameters follow."""

PES = "P"
"""The name of the first parameter of such events, the number of PEs."""


def study_head(names: Iterable[str]) -> str:
    """Return the first line of a study's file whose parameters have these names."""
    return f"{STUDY_HEAD}{', '.join(names)}\n"


def is_measured(event: str) -> bool:
    """Return whether a clock measured the event's times, so that caches may slow the first call."""
    return not event.startswith(LOST)


EventKey: TypeAlias = tuple[str, int]
"""An event's name and its number of parameters; each pair has a fit of its own."""

Entry = TypeVar("Entry")


def entry_of(
    entries: Mapping[EventKey, Entry], event: str, parameters: int | None, what: str
) -> Entry:
    """Return an event's entry for this number of parameters; None stands for the only one it has.

    `what` is the kind of entry and a preposition, for errors. Raise `UsageError` without such an
    entry or, for None, with more than one, and `UsageTypeError` for an event that is no text.
    """
    require_name(event)
    by_count = {count: entry for (name, count), entry in entries.items() if name == event}
    if not by_count:
        raise unknown_event(event, entries, what)
    if parameters is None and len(by_count) == 1:
        return next(iter(by_count.values()))
    if not isinstance(parameters, Hashable) or parameters not in by_count:
        counts = " or ".join(map(str, sorted(by_count)))
        raise UsageError(f"{event!r}: parameters must be {counts}, not {parameters!r}")
    return by_count[parameters]


def require_name(event: object) -> None:
    """Raise `UsageTypeError` for an event's name that is no text, such as a column of names."""
    if not isinstance(event, str):
        raise UsageTypeError(f"event must be the name of one event, not {type(event).__name__}")


def unknown_event(event: str, keys: Iterable[EventKey], what: str) -> UsageError:
    """Return the error for an event without an entry; it lists events that have one."""
    known = dict.fromkeys(name for name, _ in keys)
    names = ", ".join(shorten(repr(name), 60) for name in [*known][:10])
    return UsageError(f"no {what} the event {event!r}; events: {names or 'none'}")


def event_names(keys: Collection[EventKey]) -> list[str]:
    """Return the names of events in a table, as in `work(p1, p2)` for one with several fits."""
    counts = Counter(event for event, _ in keys)
    return [
        event if counts[event] == 1 else event_label(event, parameters)
        for event, parameters in keys
    ]


def uncovered_text(event: str, parameters: int) -> str:
    """Return the warning of an event without a sample in which all numbers are finite."""
    label = event_label(event, parameters)
    return f"{label}: no usable timing sample, so it is not covered; add timing lines"


class EventTimings(Struct, frozen=True, eq=False):
    """The timing samples of one event with one number of parameters."""

    event: str
    params: Floats
    """The parameters, shape (samples, parameters)."""
    seconds: Floats
    """The measured times, shape (samples,)."""
    first_calls: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    """The rows of first calls, of one or several processes."""

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return int(self.params.shape[1])

    @property
    def key(self) -> EventKey:
        """The event with the number of parameters."""
        return self.event, self.parameters

    @property
    def are_finite(self) -> Flags:
        """Which samples hold finite numbers only."""
        return np.asarray(np.isfinite(self.seconds) & np.isfinite(self.params).all(axis=1))

    @property
    def are_first(self) -> Flags:
        """Which samples are first calls, which caches may have slowed down."""
        return np.isin(np.arange(len(self.seconds)), self.first_calls) & is_measured(self.event)

    def usable(self) -> EventTimings:
        """Return the samples that hold finite numbers only."""
        are_finite = self.are_finite
        return self if are_finite.all() else self.part(are_finite)

    def part(self, rows: Flags | Ints) -> EventTimings:
        """Return the samples that a mask or indices select, in their order."""
        first_calls = np.flatnonzero(self.are_first[rows])
        return EventTimings(self.event, self.params[rows], self.seconds[rows], first_calls)

    def __repr__(self) -> str:
        samples = count_text(len(self.seconds), "sample")
        return f"<EventTimings {event_label(*self.key)}: {samples}>"

    def _repr_html_(self) -> str:
        columns = dict(zip(parameter_names(self.parameters), self.params.T, strict=True))
        columns["seconds"] = self.seconds
        rows = [(name, *span_texts(values)) for name, values in columns.items()]
        samples = count_text(len(self.seconds), "sample")
        return TextTable((f"{event_label(*self.key)}: {samples}", "least", "most"), rows).html()


def span_texts(values: Floats) -> tuple[str, str]:
    """Return the least and the largest value for a table; dashes if there is none."""
    if not len(values):
        return NO_VALUE, NO_VALUE
    return range_texts(float(values.min()), float(values.max()))


Timings: TypeAlias = Sequence[EventTimings]
"""All samples: one entry for each event name and parameter count, in order of appearance."""


def digest_of(timings: Timings) -> str:
    """Return the SHA-256 in hex of all events, shapes and numbers, in little-endian byte order.

    It identifies samples in reports and model files.
    """
    digest = hashlib.sha256()
    for samples in timings:
        name = samples.event.encode(errors="surrogatepass")
        shape = np.array([len(name), *samples.params.shape], dtype="<i8")
        digest.update(shape.tobytes() + name)
        for numbers in (samples.params, samples.seconds):
            digest.update(np.ascontiguousarray(numbers, dtype="<f8").data)
    return digest.hexdigest()


class Prediction(Struct, frozen=True):
    """A fitted model's predictions for a table of parameters, row by row."""

    seconds: Floats
    """Predicted durations; NaN where the model does not cover the row. They may be negative."""
    exact: Flags
    """True where the duration is that of samples with identical parameters."""
    outside: Flags
    """True where a parameter lies outside the range of the samples, or a category has no fit."""
    remote: Flags | None = None
    """True where the row has more leverage than any sample; None: unknown."""
    negative: Flags | None = None
    """True where the function is negative, even if `seconds` is not; None: where `seconds` is."""
    widening: Floats | None = None
    """The factor, at least 1, by which the row's interval is wider than within the range of the
    samples; None: 1."""


LEVEL = 0.9
"""The nominal probability that an interval contains the true sum."""

REACH = NormalDist().inv_cdf((1 + LEVEL) / 2)
"""Half the width of the interval of a sum in standard deviations."""


def interval_of_sum(seconds: float, deviation_s: float) -> tuple[float, float]:
    """Return the bounds of the interval of a sum with this standard deviation, at least 0."""
    return max(0.0, seconds - REACH * deviation_s), seconds + REACH * deviation_s


class TotalSpread(Struct, frozen=True):
    """The components of the relative error of a sum of predicted durations."""

    single: float
    """Standard deviation of the error of one duration, independent of other durations."""
    common: float
    """Standard deviation of the error common to all, which more brackets do not average out."""
    coverage: float | None = None
    """Share of held-out samples within their 90 % interval; None: not measured."""
    exact: TotalSpread | None = None
    """The errors of exact matches; None: the same as those of other predictions."""

    def deviation_s(
        self,
        predicted_s: float,
        squares_s2: float,
        widened_s: float,
        exact_s: float,
        exact_squares_s2: float,
    ) -> float:
        """Return the standard deviation of a sum of predictions in seconds.

        It is given the sums of the predictions, of their squares, and of what extrapolation adds to
        their intervals (`Prediction.widening`), and the first two of the exact matches among them.
        The variance is Σ predicted² · single² + (Σ predicted · common)²: independent errors of
        durations average out, the common error of their mean does not. Nor does that of
        extrapolation.
        """
        exact = self.exact or self
        others_s2 = max(squares_s2 - exact_squares_s2, 0.0)
        single_s = math.hypot(
            self.single * math.sqrt(others_s2), exact.single * math.sqrt(exact_squares_s2)
        )
        common_s = self.common * max(predicted_s - exact_s, 0.0) + exact.common * exact_s
        return math.hypot(single_s, common_s + widened_s / REACH)


class ModelFit(ABC):
    """A model after its fit. It has to be picklable."""

    @property
    def events_given(self) -> Collection[str]:
        """The events that a file gives coefficients of: a rewrite names those without records."""
        return ()

    @abstractmethod
    def predict(self, event: str, params: Floats) -> Floats:
        """Return the duration in seconds of each row of `params`, shape (rows, parameters).

        It is NaN where the model does not cover the event or its number of parameters.
        """

    def predict_detailed(self, event: str, params: Floats) -> Prediction:
        """Return the durations and their flags; a model that knows flags overrides this method."""
        nothing = np.zeros(len(params), dtype=np.bool_)
        return Prediction(seconds=self.predict(event, params), exact=nothing, outside=nothing)

    def interval(self, event: str, params: Floats) -> tuple[Floats, Floats]:  # noqa: ARG002
        """Return the lower and the upper bound in seconds of each row's 90 % interval.

        The bounds are NaN where they are unknown.
        """
        nothing = np.full(len(params), np.nan)
        return nothing, nothing

    def drawn_factors(self, event: str, params: Floats, uniforms: Floats) -> Floats | None:  # noqa: ARG002 - for those that know
        """Return a factor for each row's duration, so that durations vary as measured ones do.

        `uniforms`, numbers in [0, 1) for each row, each select one of the held-out residuals.
        None if the model has no residuals.
        """
        return None

    def retransformation(self, event: str, params: Floats) -> Floats | None:  # noqa: ARG002
        """Return a factor for each row's duration, so that sums agree with measured sums.

        `predict` returns the typical duration of one call; a sum also includes rare long calls.
        None if the model does not distinguish the two.
        """
        return None

    def total_spread(self, event: str, parameters: int) -> TotalSpread | None:  # noqa: ARG002
        """Return the components of the error of a sum of predictions; None if they are unknown."""
        return None

    def describe(self) -> dict[str, Any]:
        """Return the whole fit as a JSON object, for the JSON report."""
        return {}

    def summary(self) -> tuple[str, ...]:
        """Return the whole fit in lines, for the details of the text report."""
        return ()

    def overview(self) -> tuple[str, ...]:
        """Return a line for each event, for the text report; by default all of `summary`."""
        return self.summary()

    def warnings(self) -> tuple[str, ...]:
        """Return what a user should know before relying on the fit, one sentence each."""
        return ()


@dataclass(frozen=True, eq=False)
class FitByEvent(ModelFit):
    """A fit with a function for each event, which reports, pages and model files show."""

    model: str
    """The name of the model that made it."""
    options: Mapping[str, Any]
    """The options of that model, as a JSON object."""
    fits: Mapping[EventKey, EventFit]

    @abstractmethod
    def named(self, names: ParamNames) -> FitByEvent:
        """Return the fit with names of its parameters."""


class ParamNames(Struct, frozen=True):
    """Names of parameters by event, as a file of such names and a table's columns give them."""

    entries: Mapping[str, tuple[str, ...]] = {}
    """The names for each event or pattern, in the file's order; the first match is used."""
    columns: Mapping[str, tuple[str, ...]] = {}
    """The names of the table's columns for each event, used where no entry matches."""

    def for_event(self, event: str, parameters: int) -> tuple[str, ...]:
        """Return the names for an event with this many parameters; empty without a match."""
        for pattern, names in self.entries.items():
            if len(names) == parameters and matches(pattern, event):
                return names
        columns = self.columns.get(event, ())
        return columns if len(columns) == parameters else ()

    def unused(
        self,
        keys: Collection[EventKey],
        kept: Mapping[EventKey, tuple[str, ...]] = {},
    ) -> tuple[str, ...]:
        """Return a sentence on the entries that fit none of the events, if there are any.

        Another one is on those of events whose parameters have other names that are `kept`.
        """
        unmatched, overruled = [], []
        for pattern, names in self.entries.items():
            matching = (key for key in keys if len(names) == key[1] and matches(pattern, key[0]))
            are_overruled = (kept.get(key, names) != names for key in matching)
            is_overruled = next(are_overruled, None)
            if is_overruled is None:
                unmatched.append(repr(pattern))
            elif is_overruled and all(are_overruled):
                overruled.append(repr(pattern))
        reasons = {
            "no event has such a name and as many parameters": unmatched,
            "a formula or the model file names these parameters": overruled,
        }
        return tuple(
            f"parameter names for {some_text(unused, 5)} are not used: {reason}"
            for reason, unused in reasons.items()
            if unused
        )


class ModelText(Struct, frozen=True):
    """The text of a file that a model needs; models do not open files themselves."""

    name: str
    """The name of the file in error messages."""
    text: str


def option(default: Any, text: str, **bounds: Any) -> Any:
    """Declare a field of an options dataclass: flag, help, reports and docs are made from it.

    `bounds` limit a number: `least` or `above`, `most` or `below`.
    """
    return options.option(text, default=default, kw_only=False, **bounds)


@dataclass(frozen=True)
class NoOptions:
    """The options of a model without options."""


OptionsT = TypeVar("OptionsT")


class Model(ABC, Generic[OptionsT]):
    """A method to predict durations: created with its options, then fitted to timings."""

    Options: ClassVar[type[Any]]
    """The frozen dataclass of the model's options; every field has a default and a help text."""

    uses_params: ClassVar[bool] = True
    """Whether the model needs param records; if not, they are not read."""

    columns: Columns = "params"
    """What the columns of its tables are: the parameters or the counters of timing lines."""

    needs_timings: ClassVar[bool] = True
    """Whether the model is fitted to timings, so that they are required."""

    takes_text: ClassVar[str | None] = None
    """The kind of text file that the model takes: `formulas`, `coefficients` or None."""

    needs_text: ClassVar[bool] = False
    """Whether that text is required."""

    def __init__(self, options: OptionsT, text: ModelText | None = None) -> None:
        self.options = options
        self.text = text

    @abstractmethod
    def fit(self, timings: Timings) -> ModelFit:
        """Return the model fitted to all samples.

        Raise `ModelError` where no fit is defined, but never because samples are few or unusual.
        """
