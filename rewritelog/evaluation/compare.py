"""Comparison of models by cross-validation on the same timing lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from statistics import fmean
from typing import Any

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.cores import limited_to
from rewritelog.errors import ModelError, UsageError
from rewritelog.evaluation.options import CompareRequest
from rewritelog.formats import Columns
from rewritelog.hashing import random_ranks
from rewritelog.models.base import (
    EventTimings,
    Model,
    ModelFit,
    has_slow_first_call,
)
from rewritelog.models.checks import checked_fit, checked_prediction, total_seconds
from rewritelog.models.formulas import parse_formulas
from rewritelog.models.metrics import Score, TimePairs
from rewritelog.models.registry import describe_options, load_model, model_class
from rewritelog.progress import part_of
from rewritelog.text import (
    Readable,
    TextTable,
    count_text,
    json_number,
    percent_text,
    printable,
    time_text,
    wrapped,
)
from rewritelog.timings.read import read_timings_as, samples_of
from rewritelog.timings.samples import Timings, files_of
from rewritelog.timings.texts import read_model_text, read_texts

WORTH_SAYING = 0.02
"""Smaller relative errors of the sum need no explanation."""


@dataclass(frozen=True)
class EntryTimes:
    """Measured and predicted times of lines of one entry of the timings."""

    entry: int
    rows: Flags
    """The rows of the entry, as a mask."""
    measured_s: Floats
    predicted_s: Floats


@dataclass(frozen=True)
class DecisiveLine:
    """A line without which the relative error of the sum would be less than half."""

    where: str
    """The location, `file:line`."""
    measured_s: float
    predicted_s: float
    sum_error: float
    sum_error_without: float

    def to_json(self) -> dict[str, Any]:
        """Return the line as a JSON object."""
        return {
            name: json_number(value) if isinstance(value, float) else printable(value)
            for name, value in asdict(self).items()
        }

    def text(self) -> str:
        """Return a sentence about the line."""
        error, without = (
            percent_text(share, sign="+") for share in (self.sum_error, self.sum_error_without)
        )
        measured, predicted = map(time_text, (self.measured_s, self.predicted_s))
        return (
            f"one line makes up most of the sum's error of {error}: {printable(self.where)}, "
            f"measured {measured}, predicted {predicted}; without it {without}"
        )


def decisive_line(
    parts: Sequence[EntryTimes], where: Callable[[int, int], str]
) -> DecisiveLine | None:
    """Return the line that causes most of the error of the sum over all parts, if one does.

    `where` returns the location of a row of an entry.
    """
    measured = np.concatenate([np.zeros(0), *(part.measured_s for part in parts)])
    predicted = np.concatenate([np.zeros(0), *(part.predicted_s for part in parts)])
    errors = predicted - measured
    known = np.isfinite(errors)
    total, error = float(measured[known].sum()), float(errors[known].sum())
    if not known.any() or total <= 0 or abs(error) < WORTH_SAYING * total:
        return None
    largest = int(np.argmax(np.where(known, np.abs(errors), -1)))
    rest = total - float(measured[largest])
    without = error - float(errors[largest])
    if rest <= 0 or abs(without) / rest >= 0.5 * abs(error) / total:
        return None
    entries = np.concatenate([np.full(len(part.measured_s), part.entry) for part in parts])
    rows = np.concatenate([np.flatnonzero(part.rows) for part in parts])
    return DecisiveLine(
        where(int(entries[largest]), int(rows[largest])),
        float(measured[largest]),
        float(predicted[largest]),
        error / total,
        without / rest,
    )


HEAD: tuple[str, ...] = ("mean", "median", "sum", "later", "no answer", "below 0", "seconds")


@dataclass(frozen=True)
class ModelResult:
    """The results of one model."""

    model: str
    overall: Score
    """The errors over all held-out lines; errors of sums are means of magnitudes over repeats."""
    events: tuple[tuple[str, Score], ...]
    fits: int
    failed_fits: int
    failure: str | None
    """The message of the first failed fit."""
    seconds: float
    """The time of fits and predictions."""
    decisive: DecisiveLine | None = None
    """The line that causes most of the error of the sum in the first repeat, if one does."""
    pairs: Mapping[str, TimePairs] = field(default_factory=dict, repr=False, compare=False)
    """The times of the held-out lines of the first repeat, by event."""

    def to_json(self) -> dict[str, Any]:
        """Return the results as a JSON object."""
        return {
            "model": self.model,
            "overall": self.overall.to_json(),
            "events": [{"event": event, **score.to_json()} for event, score in self.events],
            "fits": self.fits,
            "failed_fits": self.failed_fits,
            "failure": self.failure,
            "seconds": self.seconds,
            "decisive": None if self.decisive is None else self.decisive.to_json(),
        }

    def cells(self) -> tuple[str, ...]:
        """Return the numbers as the cells of a table's row, in the order of `HEAD`."""
        score = self.overall
        missing = 1 - score.predicted / score.lines if score.lines else None
        return (
            percent_text(score.mean_relative_error),
            percent_text(score.median_relative_error),
            percent_text(score.sum_error, sign="+"),
            percent_text(score.later_sum_error, sign="+"),
            percent_text(missing),
            f"{score.negative}",
            f"{self.seconds:.2f}",
        )


@dataclass(frozen=True, repr=False)
class CompareReport(Readable):
    """The results of all models."""

    request: CompareRequest
    lines: int
    tried: tuple[ModelResult, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        request = self.request
        return {
            "timings": [str(path) for path in files_of(request.timings)],
            "timing_lines": self.lines,
            "folds": request.folds if request.fraction is None else None,
            "fraction": request.fraction,
            "repeats": request.repeats,
            "seed": request.seed,
            "options": dict(request.model_options),
            "models": [trial.to_json() for trial in self.tried],
            "warnings": list(self.warnings),
        }

    def text(self) -> str:
        """Return the report as text."""
        rows = [(trial.model, *trial.cells()) for trial in self.tried]
        lines = [
            f"{count_text(self.lines, 'timing line')}, {self.request.method_text()}",
            *TextTable(("model", *HEAD), rows).lines(),
            "  (of lines held out; mean, median: relative errors of single calls; sum: how far",
            "  the total of all lines is off; later: the total without each event's first line,",
            "  which is often slow; no answer: share of lines without a prediction)",
        ]
        decisive = (
            wrapped(f"  {trial.model}: {trial.decisive.text()}")
            for trial in self.tried
            if trial.decisive
        )
        return "\n".join([*lines, *decisive])


def compare(request: CompareRequest) -> CompareReport:
    """Fit each model to parts of the timing lines, and test it on the others.

    Raise a `RewriteLogError` for files that cannot be read. Fits that fail are counted.
    """
    models = _models(request)
    read = _read(request, {model.columns for model in models.values()})
    with limited_to(request.jobs):
        tried = tuple(
            _cross_validate_model(name, each, read[each.columns], request)
            for name, each in models.items()
        )
    lines = max(len(each) for each in read.values())
    warnings = dict.fromkeys(text for each in read.values() for text in each.warnings)
    warnings |= dict.fromkeys(_unused_formulas(request, read))
    return CompareReport(request, lines, tried, (*warnings, *_fewer(read), *_failures(tried)))


def _unused_formulas(request: CompareRequest, read: Mapping[Columns, Timings]) -> tuple[str, ...]:
    """Return a warning for each formula that matches no event."""
    if request.formulas is None:
        return ()
    text = read_model_text(request.formulas)
    events = {samples.event for each in read.values() for samples in each.timings}
    return parse_formulas(text.text, text.name).unused(events)


def _read(request: CompareRequest, kinds: Collection[Columns]) -> Mapping[Columns, Timings]:
    """Return the timings with each of these kinds of columns."""
    if isinstance(request.timings, tuple):
        return read_timings_as(kinds, request.timings, request.clock_hz, strict=request.strict)
    return {columns: samples_of(request.timings, columns=columns) for columns in kinds}


def _models(request: CompareRequest) -> dict[str, Model[Any]]:
    """Return the models, each with the options and texts that it accepts."""
    texts = read_texts(request.formulas, request.coefficients)
    unused = {*request.model_options, *texts}
    models: dict[str, Model[Any]] = {}
    for name in request.models:
        if ":" in name:
            models[name] = load_model(name, {})
            continue
        cls = model_class(name)
        known = {info.name for info in describe_options(name, cls)}
        own = {key: value for key, value in request.model_options.items() if key in known}
        files = {what: text for what, text in texts.items() if what == cls.takes_text}
        models[name] = load_model(name, own, files)
        unused -= {*own, *files}
    if unused:
        raise UsageError(
            f"none of the models has the option {sorted(unused)[0].replace('_', '-')!r}"
        )
    return models


@dataclass(frozen=True)
class Split:
    """A division of the lines into those of a fit and those it is tried on."""

    left_out: tuple[Flags, ...]
    """A mask for each event, in their order."""

    def fitted_to(self, timings: Sequence[EventTimings]) -> list[EventTimings]:
        """Return the samples for the fit, without events that have none left."""
        parts = [samples.part(~rows) for samples, rows in zip(timings, self.left_out, strict=True)]
        return [part for part in parts if len(part.seconds)]


def folds(timings: Sequence[EventTimings], count: int, seed: int) -> Iterator[Split]:
    """Yield the splits of a `count`-fold cross-validation, stratified by event."""
    ranks = _ranks(timings, seed)
    for fold in range(count):
        yield Split(tuple(rank % count == fold for rank in ranks))


def fraction(timings: Sequence[EventTimings], share: float, seed: int) -> Split:
    """Return a split with a random share of each event's lines, at least one, in the fit."""
    ranks = _ranks(timings, seed)
    return Split(tuple(rank >= max(1, round(share * len(rank))) for rank in ranks))


def _ranks(timings: Sequence[EventTimings], seed: int) -> list[Ints]:
    """Return the ranks of each event's lines in a random order.

    Models of parameters and of counters get the same lines if all lines have both.
    """
    return [random_ranks(samples.event, len(samples.seconds), seed) for samples in timings]


def _splits(request: CompareRequest, timings: Sequence[EventTimings]) -> Iterator[list[Split]]:
    """Yield the splits of each repeat, each with its own seed."""
    for seed in range(request.seed, request.seed + request.repeats):
        if request.fraction is None:
            yield list(folds(timings, request.folds, seed))
        else:
            yield [fraction(timings, request.fraction, seed)]


def _cross_validate_model(
    name: str, model: Model[Any], read: Timings, request: CompareRequest
) -> ModelResult:
    """Fit a model to each split, and predict the held-out lines."""
    started, timings = time.perf_counter(), read.timings
    trial = _Trial(name, model, timings)
    repeats = [trial.repeat(splits) for splits in _splits(request, timings)]
    seconds = time.perf_counter() - started
    whole = [TimePairs.joined(list(chain(*repeat.values()))) for repeat in repeats]
    names = dict.fromkeys(samples.event for samples in timings)
    return ModelResult(
        model=name,
        overall=_score(whole),
        events=tuple(
            (event, _score([TimePairs.joined(repeat[event]) for repeat in repeats]))
            for event in names
        ),
        fits=trial.fits,
        failed_fits=len(trial.failures),
        failure=trial.failures[0] if trial.failures else None,
        seconds=seconds,
        decisive=decisive_line(trial.held_out, read.where),
        pairs={event: TimePairs.joined(parts) for event, parts in repeats[0].items()},
    )


class _Trial:
    """Fits one model to splits, and collects its predictions."""

    def __init__(self, name: str, model: Model[Any], timings: Sequence[EventTimings]) -> None:
        self.fits = 0
        self.failures: list[str] = []
        self.held_out: list[EntryTimes] = []
        """The held-out times of the first repeat."""
        self._name = name
        self._model = model
        self._timings = timings

    def repeat(self, splits: Sequence[Split]) -> dict[str, list[TimePairs]]:
        """Return the measured and predicted times of held-out lines by event."""
        by_event: dict[str, list[TimePairs]] = {samples.event: [] for samples in self._timings}
        is_first = not self.held_out
        for number, split in enumerate(splits):
            with part_of(self._name, number, len(splits), "part"):
                fitted = self._fit(split)
            firsts: set[str] = set()
            entries = zip(self._timings, split.left_out, strict=True)
            for entry, (samples, rows) in enumerate(entries):
                first = np.zeros(len(rows), dtype=np.bool_)
                first[:1] = samples.event not in firsts and has_slow_first_call(samples.event)
                firsts.add(samples.event)
                pairs = self._predict(fitted, samples, first).part(rows)
                by_event[samples.event].append(pairs)
                if is_first:
                    self.held_out.append(EntryTimes(entry, rows, pairs.measured_s, pairs.total_s))
        return by_event

    def _fit(self, split: Split) -> ModelFit | None:
        """Return the fit to the lines of a split; None if it fails."""
        self.fits += 1
        kept = split.fitted_to(self._timings) if self._model.needs_timings else ()
        try:
            return checked_fit(self._model, self._name, kept)
        except ModelError as error:
            self.failures.append(str(error))
            return None

    def _predict(self, fitted: ModelFit | None, samples: EventTimings, first: Any) -> TimePairs:
        nothing = np.zeros(len(first), dtype=np.bool_)
        if fitted is None:
            unknown = np.full(len(first), np.nan)
            return TimePairs(samples.seconds, unknown, unknown, first, nothing)
        predicted = checked_prediction(fitted, self._name, samples.event, samples.params)
        seconds = np.where(predicted.seconds < 0, 0.0, predicted.seconds)
        negative = nothing if predicted.negative is None else predicted.negative
        total = total_seconds(fitted, self._name, samples.event, samples.params, predicted)
        return TimePairs(samples.seconds, seconds, total, first, negative)


def _score(repeats: Sequence[TimePairs]) -> Score:
    """Return the score over all repeats, with mean magnitudes of the errors of sums."""
    whole = TimePairs.joined(list(repeats)).score()
    if len(repeats) == 1:
        return whole
    scores = [repeat.score() for repeat in repeats]
    means = {
        name: _mean_magnitude([getattr(score, name) for score in scores])
        for name in ("sum_error", "later_sum_error")
    }
    return Score(**(asdict(whole) | means))


def _mean_magnitude(errors: Sequence[float | None]) -> float | None:
    """Return the mean of the magnitudes of errors; None without any."""
    known = [abs(error) for error in errors if error is not None]
    return fmean(known) if known else None


def _fewer(read: Mapping[Columns, Timings]) -> list[str]:
    """Return a warning if models of counters have other lines than models of parameters."""
    if len({len(each) for each in read.values()}) < 2:
        return []
    return ["not all lines have counters: models of counters are tried on those that have them"]


def _failures(tried: Sequence[ModelResult]) -> list[str]:
    return [
        f"{trial.model}: {trial.failed_fits} of {count_text(trial.fits, 'fit')} failed: "
        f"{trial.failure}"
        for trial in tried
        if trial.failed_fits
    ]
