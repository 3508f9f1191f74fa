"""Comparison of models by cross-validation on the same timing lines."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, TypeAlias

from msgspec.structs import asdict, replace

from rewritelog.arrays import Columns, Flags, Ints, Table, random_ranks
from rewritelog.commands.fits import CompareCommand
from rewritelog.errors import ModelError, UsageError
from rewritelog.evaluation.predict import (
    Score,
    errors_text,
    joined,
    predicted_lines,
    score_of,
    scores_json,
)
from rewritelog.models.base import EventKey, EventTimings, Model
from rewritelog.models.fitted import Fitted
from rewritelog.models.formulas import parse_formulas
from rewritelog.models.registry import describe_options, load_model, model_class
from rewritelog.progress import part_of
from rewritelog.text import Readable, TextTable, count_text, percent_text, wrapped
from rewritelog.timings.read import read_model_text, read_texts, read_timings_as, samples_of
from rewritelog.timings.samples import Timings, files_of, require_order


def columns_text() -> str:
    """Return an explanation of the table's columns."""
    return (
        f"Of lines held out; {errors_text()}; no answer: share of lines without a prediction; "
        "below 0: lines for which the function is negative; seconds: of the fits and predictions."
    )


@dataclass(frozen=True)
class ModelResult:
    """The results of one model."""

    model: str
    overall: Score
    """The errors over all held-out lines; errors of sums are mean magnitudes over the repeats."""
    events: tuple[tuple[EventKey, Score], ...]
    fits: int
    failed_fits: int
    failure: str | None
    """The message of the first failed fit."""
    seconds: float
    """The time of fits and predictions."""
    held_out: Mapping[EventKey, Table] = field(default_factory=dict, repr=False, compare=False)
    """The times of the held-out lines of the first repeat, by event."""

    def to_json(self) -> dict[str, Any]:
        """Return the results as a JSON object."""
        return {
            "model": self.model,
            "overall": asdict(self.overall),
            "events": scores_json(self.events),
            "fits": self.fits,
            "failed_fits": self.failed_fits,
            "failure": self.failure,
            "seconds": self.seconds,
        }

    def cells(self, sign: str) -> dict[str, str]:
        """Return the numbers as the cells of a table's row, by their heads."""
        score, cells = self.overall, self.overall.cells(sign)
        missing = 1 - score.predicted / score.lines if score.lines else None
        return {
            "model": self.model,
            **{head: cells[head] for head in ("mean", "median", "sum", "later")},
            "no answer": percent_text(missing),
            "below 0": cells["below 0"],
            "seconds": f"{self.seconds:.2f}",
        }


@dataclass(frozen=True, repr=False)
class CompareReport(Readable):
    """The results of all models."""

    request: CompareCommand
    lines: int
    folds: int
    """The number of folds, of which none is empty."""
    tried: tuple[ModelResult, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        request = self.request
        return {
            "timings": [str(path) for path in files_of(request.timings)],
            "timing_lines": self.lines,
            "folds": self.folds if request.fraction is None else None,
            "fraction": request.fraction,
            "repeats": request.repeats,
            "seed": request.seed,
            "options": dict(request.model_options),
            "models": [trial.to_json() for trial in self.tried],
            "warnings": list(self.warnings),
        }

    @property
    def method(self) -> str:
        """How lines were held out, as text."""
        request = self.request
        repeats = "" if request.repeats == 1 else f" × {request.repeats}"
        how = count_text(self.folds, "fold")
        if request.fraction is not None:
            how = f"fits to {request.fraction:.3g} of each event's lines"
        return f"{how}{repeats}, seed {request.seed}"

    @property
    def predicted(self) -> int:
        """The number of predictions of all models."""
        return sum(trial.overall.predicted for trial in self.tried)

    @property
    def table(self) -> TextTable:
        """The errors of each model over all held-out lines."""
        sign = "+" if self.request.repeats == 1 else ""
        rows = [trial.cells(sign) for trial in self.tried]
        cells = [tuple(row.values()) for row in rows]
        return TextTable(tuple(rows[0]), cells, caption="Models, on held-out lines")

    def text(self) -> str:
        """Return the report as text."""
        lines = [
            f"{count_text(self.lines, 'timing line')}, {self.method}",
            *self.table.lines(),
            wrapped(f"  {columns_text()}"),
        ]
        return "\n".join(lines)


def compare(request: CompareCommand) -> CompareReport:
    """Fit each model to parts of the timing lines, and test it on the others.

    Raise a `RewriteLogError` for files that cannot be read. Fits that fail are counted.
    """
    models = _models(request)
    timings_by_columns = _timings_by_columns(request, {model.columns for model in models.values()})
    results = tuple(
        _cross_validate_model(name, model, timings_by_columns[model.columns], request)
        for name, model in models.items()
    )
    tables = list(timings_by_columns.values())
    warnings = [*dict.fromkeys(text for timings in tables for text in timings.warnings)]
    if request.formulas is not None:
        text = read_model_text(request.formulas)
        keys = {samples.key for timings in tables for samples in timings}
        warnings += parse_formulas(text.text, text.name).unused(keys)
    if len(set(map(len, tables))) > 1:
        warnings.append(
            "not all lines have counters: models of counters are tried on those that have them"
        )
    warnings += (
        f"{trial.model}: {trial.failed_fits} of {count_text(trial.fits, 'fit')} failed: "
        f"{trial.failure}"
        for trial in results
        if trial.failed_fits
    )
    if not any(trial.overall.predicted for trial in results):
        warnings.append("no model has a prediction for a line that was held out")
    folds_tried = max(trial.fits for trial in results) // request.repeats
    return CompareReport(request, max(map(len, tables)), folds_tried, results, tuple(warnings))


def _timings_by_columns(
    request: CompareCommand, columns_read: Collection[Columns]
) -> Mapping[Columns, Timings]:
    """Return the timings with each of these kinds of columns."""
    if isinstance(request.timings, tuple):
        return read_timings_as(
            columns_read, request.timings, request.clock_hz, strict=request.strict
        )
    return {columns: samples_of(request.timings, columns=columns) for columns in columns_read}


def _models(request: CompareCommand) -> dict[str, Model[Any]]:
    """Return the models, each with the options and texts that it accepts."""
    texts = read_texts(request.formulas, request.coefficients)
    options = request.model_options
    unused = {*options, *texts}
    models: dict[str, Model[Any]] = {}
    for name in request.models:
        if ":" in name:
            models[name] = load_model(name, {})
            continue
        cls = model_class(name)
        known = {option.field for option in describe_options(name, cls)}
        own_options = {key: options[key] for key in options if key.replace("-", "_") in known}
        files = {what: text for what, text in texts.items() if what == cls.takes_text}
        models[name] = load_model(name, own_options, files)
        unused -= {*own_options, *files}
    if unused:
        raise UsageError(
            f"none of the models has the option {sorted(unused)[0].replace('_', '-')!r}"
        )
    return models


Split: TypeAlias = tuple[Flags, ...]
"""A mask for each event, in the order of the timings, of the lines held out from a fit."""


def folds(timings: Sequence[EventTimings], count: int, seed: int) -> Iterator[Split]:
    """Yield the splits of a `count`-fold cross-validation, stratified by event.

    There are no more folds than lines of an event, as further ones would hold nothing out.
    """
    ranks = _ranks(timings, seed)
    count = min(count, max(map(len, ranks), default=0))
    for fold in range(count):
        yield tuple(rank % count == fold for rank in ranks)


def fraction(timings: Sequence[EventTimings], share: float, seed: int) -> Split:
    """Return a split with a random share of each event's lines in the fit.

    At least one line is in the fit and, of several lines, not all.
    """
    ranks = _ranks(timings, seed)
    fitted = (min(max(1, round(share * len(rank))), max(1, len(rank) - 1)) for rank in ranks)
    return tuple(rank >= count for rank, count in zip(ranks, fitted, strict=True))


def _ranks(timings: Sequence[EventTimings], seed: int) -> list[Ints]:
    """Return the ranks of each event's lines in a random order.

    Models of parameters and of counters get the same lines if all lines have both.
    """
    return [random_ranks(samples.event, len(samples.seconds), seed) for samples in timings]


def _cross_validate_model(
    name: str, model: Model[Any], timings: Timings, request: CompareCommand
) -> ModelResult:
    """Fit a model to each split of each repeat, and predict the held-out lines."""
    started, event_timings = time.perf_counter(), timings.timings
    fits, failures, repeats = 0, list[str](), list[dict[EventKey, Table]]()
    for seed in range(request.seed, request.seed + request.repeats):
        if request.fraction is None:
            splits = list(folds(event_timings, request.folds, seed))
        else:
            splits = [fraction(event_timings, request.fraction, seed)]
        held_out: dict[EventKey, list[Table]] = {samples.key: [] for samples in event_timings}
        for number, split in enumerate(splits):
            fits += 1
            try:
                with part_of(name, number, len(splits), "part"):
                    parts = (of.part(~rows) for of, rows in zip(event_timings, split, strict=True))
                    training = [part for part in parts if len(part.seconds)]
                    fitted = Fitted.of(model, name, training if model.needs_timings else ())
                    require_order(timings, fitted.names_of)
                predicted = list(_predicted(fitted, event_timings, split))
            except ModelError as error:
                failures.append(str(error))
                predicted = list(_predicted(None, event_timings, split))
            for key, lines in predicted:
                held_out[key].append(lines)
        repeats.append({key: joined(of) for key, of in held_out.items()})
    return ModelResult(
        model=name,
        overall=_score([joined(repeat.values()) for repeat in repeats]),
        events=tuple((key, _score([repeat[key] for repeat in repeats])) for key in repeats[0]),
        fits=fits,
        failed_fits=len(failures),
        failure=failures[0] if failures else None,
        seconds=time.perf_counter() - started,
        held_out=repeats[0],
    )


def _predicted(
    fitted: Fitted | None, timings: Sequence[EventTimings], split: Split
) -> Iterator[tuple[EventKey, Table]]:
    """Yield each event's held-out lines with their predictions, which are NaN without a fit."""
    for samples, left_out in zip(timings, split, strict=True):
        yield samples.key, predicted_lines(fitted, samples.part(left_out))


def _score(repeats: Sequence[Table]) -> Score:
    """Return the score over all repeats, with mean magnitudes of the errors of sums."""
    overall = score_of(joined(repeats))
    if len(repeats) == 1:
        return overall
    scores = list(map(score_of, repeats))
    means: dict[str, Any] = {}
    for name in ("sum_error", "later_sum_error"):
        errors = [abs(error) for score in scores if (error := getattr(score, name)) is not None]
        means[name] = fmean(errors) if errors else None
    return replace(overall, **means)
