"""All events, the choices for each, the fits that were made, and the files that hold them.

The files, of formulas and of the model, are written as the commands read them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import replace

from rewritelog.arrays import Flags
from rewritelog.errors import OutputError, UsageError, spelled
from rewritelog.evaluation.fit import write_model
from rewritelog.models.auto import AutoOptions
from rewritelog.models.base import EventTimings, ModelText, ParamNames
from rewritelog.models.exact_matches import ExactMatch
from rewritelog.models.expressions import Expression, Origin, numbers_by_name, parse
from rewritelog.models.fitted import Fitted, Source
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.fitting.bases.sums import fixed_terms
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.fitting.pipeline import FitConfig, fit_event
from rewritelog.models.fitting.regression import Loss
from rewritelog.models.fitting.samples import Weighting
from rewritelog.models.fitting.single_terms import SingleTermFunctions, single_term_functions
from rewritelog.models.formulas import MAX_TERMS, EventFormula, Formulas, parse_formulas
from rewritelog.models.metrics import mean_relative_error, r_squared
from rewritelog.output.files import check_outputs, write_text_file
from rewritelog.text import json_number, pattern_of, some_text
from rewritelog.timings.samples import Timings, or_columns, require_order
from rewritelog.viewing.events import EventView, event_json
from rewritelog.viewing.fit_pages import row_html

Text: TypeAlias = Annotated[str, Meta(max_length=900)]
"""A line of a formulas file has at most 1000 characters."""

Index: TypeAlias = Annotated[int, Meta(ge=0)]


class FitChoices(Struct, frozen=True, forbid_unknown_fields=True):
    """How one event is fitted."""

    terms: Annotated[tuple[Text, ...], Meta(max_length=MAX_TERMS)] = ()
    """Texts of the terms; empty for the automatic choice."""
    category: Text = ""
    """Text of the expression that splits the event into classes; empty for none."""
    weights: Weighting = "relative"
    loss: Loss = "huber"
    exact_match: ExactMatch = "auto"
    left_out: frozenset[Index] = frozenset()
    """Rows of the event's lines that are excluded from the fit."""

    @classmethod
    def of_formula(cls, formula: EventFormula | None) -> FitChoices:
        """Return the choices of a formulas file's entry for an event; None means no entry."""
        if formula is None:
            return cls()
        category = "" if formula.category is None else str(formula.category)
        return cls(tuple(map(str, formula.terms)), category)

    def to_json(self) -> dict[str, Any]:
        """Return the choices as JSON types."""
        choices: dict[str, Any] = msgspec.to_builtins(self, order="deterministic")
        return choices

    @property
    def options(self) -> dict[str, str]:
        """The options of the fit, by name."""
        return {"weights": self.weights, "loss": self.loss, "exact_match": self.exact_match}

    def kept(self, timings: EventTimings) -> Flags:
        """Return which lines of the event the fit uses."""
        are_kept = np.ones(len(timings.seconds), dtype=np.bool_)
        are_kept[[*self.left_out]] = False
        return are_kept

    def config(self, parameters: int, names: Sequence[str]) -> FitConfig:
        """Return the fit's configuration; raise `FormulaError` for an invalid text."""
        correction = AutoOptions().correction
        config = FitConfig(self.weights, self.loss, self.exact_match, correction)
        if self.category and not self.terms:
            raise UsageError("a category needs a formula: type its terms")
        if self.category:
            where = Origin("category", 1)
            category = parse(
                self.category, names=numbers_by_name(names), parameters=parameters, where=where
            )
            config = replace(config, category=category)
        if not self.terms:
            return config
        families = {"formula": fixed_terms(parsed_terms(self.terms, parameters, names))}
        return replace(config, families=families)


def parsed_terms(
    texts: tuple[str, ...], parameters: int, names: Sequence[str]
) -> tuple[Expression, ...]:
    """Return the terms of a formula, one per line.

    Raise `FormulaError` with line and column for an invalid or duplicate term.
    """
    terms, numbers = list[Expression](), numbers_by_name(names)
    for number, text in enumerate(texts, 1):
        where = Origin("formula", number)
        term = parse(text, names=numbers, parameters=parameters, where=where)
        if term in terms:
            raise where.error(f"the term {text!r} is duplicated")
        terms.append(term)
    return tuple(terms)


Changed: TypeAlias = Mapping[int, FitChoices]
"""The choices for the events that a page has changed, by their numbers."""

NOT_CHANGED: Changed = {}


class Result(Struct, frozen=True):
    """An event's choices and the resulting fit."""

    choices: FitChoices
    fit: EventFit
    single_terms: SingleTermFunctions

    def numbers(self, timings: EventTimings) -> dict[str, float | None]:
        """Return measures of the fit's quality on its own lines and on held-out lines, by name.

        For an event with classes, the latter are those of the class by which it is judged.
        """
        quality = self.fit.quality
        samples = timings.part(self.choices.kept(timings))
        predicted = np.maximum(self.fit.predict(samples.params), 0.0)
        numbers = {
            "R² on the lines of the fit": r_squared(predicted, samples.seconds),
            "mean error on the lines of the fit": mean_relative_error(predicted, samples.seconds),
            "R² on held-out lines": quality.held_out_r2,
            "mean error on held-out lines": quality.held_out_error,
            "error of the sum on held-out lines": quality.held_out_sum_error,
        }
        return {name: json_number(value) for name, value in numbers.items()}


class Session:
    """The events that have usable lines; none is fitted at first.

    Pages send the choices that they have changed; fits are kept, so that each is made once.
    """

    def __init__(
        self, timings: Timings, text: ModelText | None = None, names: ParamNames | None = None
    ) -> None:
        self.timings = timings
        self.entries = tuple(
            entry for entry, samples in enumerate(timings.timings) if len(samples.usable().seconds)
        )
        """The index of each event in the timings."""
        formulas = Formulas() if text is None else parse_formulas(text.text, text.name)
        self.events = tuple(timings.timings[entry] for entry in self.entries)
        """The lines of each event."""
        by_event = [formulas.for_event(*samples.key) for samples in self.events]
        self.first_choices = tuple(map(FitChoices.of_formula, by_event))
        """The first choices for each event."""
        all_names = or_columns(names, timings)
        self.names = tuple(
            (formula and formula.names) or all_names.for_event(*samples.key)
            for formula, samples in zip(by_event, self.events, strict=True)
        )
        """The names of the parameters of each event, none if they are unknown."""
        named = {s.key: known for s, known in zip(self.events, self.names, strict=True)}
        require_order(timings, lambda *key: named.get(key, ()))
        keys = [samples.key for samples in timings.timings]
        notes = (*timings.warnings, *formulas.unused(keys))
        self.warnings = (*notes, *all_names.unused(keys, formulas.names(keys)))
        """The warnings of the timings, and of formulas and names that no event has."""
        self._results: dict[tuple[int, FitChoices], Result] = {}
        self.most_parameters = max((samples.parameters for samples in self.events), default=0)

    def config(self, event: int, choices: FitChoices) -> FitConfig:
        """Return the configuration of an event's fit; raise as `FitChoices.config` does."""
        return choices.config(self.events[event].parameters, self.names[event])

    def fit(self, event: int, choices: FitChoices) -> Result:
        """Fit an event as chosen; raise a `RewriteLogError` if that is impossible."""
        timings = self.events[event]
        config = self.config(event, choices)
        samples = timings.part(choices.kept(timings))
        if not len(samples.usable().seconds):
            raise UsageError("no line with usable numbers is left to fit to: put some back")
        single_terms = single_term_functions(samples, choices.weights, choices.loss)
        return Result(choices, fit_event(samples, config).named(self.names[event]), single_terms)

    def keep(self, event: int, result: Result) -> None:
        """Keep a fit of an event."""
        self._results[event, result.choices] = result

    def choices(self, event: int, changed: Changed) -> FitChoices:
        """Return the choices for an event: the changed or the first ones."""
        return changed.get(event, self.first_choices[event])

    def result(self, event: int, changed: Changed = NOT_CHANGED) -> Result | None:
        """Return the fit of an event, None if it was not made yet."""
        return self._results.get((event, self.choices(event, changed)))

    def results(self, changed: Changed = NOT_CHANGED) -> list[Result | None]:
        """Return the fits of all events."""
        return [self.result(event, changed) for event in self.numbers]

    @property
    def numbers(self) -> range:
        """Return the numbers of all events."""
        return range(len(self.events))

    def view(self, event: int, changed: Changed = NOT_CHANGED) -> EventView:
        """Return what the page shows of an event, with all lines, including those left out."""
        where = partial(self.timings.where, self.entries[event])
        result, timings = self.result(event, changed), self.events[event]
        fits, terms = {}, SingleTermFunctions((), {})
        left_out = np.zeros(len(timings.seconds), dtype=np.bool_)
        if result is not None:
            fits, terms = {timings.key: result.fit}, result.single_terms
            left_out = ~result.choices.kept(timings)
        fitted = Fitted("auto", FittedEvents("auto", {}, fits))
        return EventView(timings, fitted, terms, where, left_out=left_out)

    def model(self, changed: Changed = NOT_CHANGED) -> Fitted:
        """Return the model of the fits made so far; its notes say what the page changed."""
        plain = FitChoices().options
        notes, by_key = list[str](), {}
        of_events = zip(self.entries, self.first_choices, self.results(changed), strict=True)
        for entry, first, result in of_events:
            if result is None:
                continue
            choices, fit = result.choices, result.fit
            by_key[fit.event, fit.parameters] = fit
            if left_out := [self.timings.where(entry, row) for row in sorted(choices.left_out)]:
                notes.append(f"{fit.event}: left out of the fit: {some_text(left_out, 20)}")
            if first.terms and not choices.terms:
                notes.append(f"{fit.event}: fitted without its formula, which {FORMULAS} keeps")
            if choices.options != plain:
                options = ", ".join(f"{name} {value}" for name, value in choices.options.items())
                notes.append(f"{fit.event}: fitted with {options}")
        usable = set(self.entries)
        unfitted = [t.key for entry, t in enumerate(self.timings.timings) if entry not in usable]
        fits = FittedEvents("auto", plain, by_key, tuple(unfitted), tuple(notes))
        return Fitted("auto", fits)

    def kept_timings(self, changed: Changed) -> tuple[EventTimings, ...]:
        """Return the samples that the model is fitted to, in the order of the files."""
        kept = list(self.timings.timings)
        for entry, result in zip(self.entries, self.results(changed), strict=True):
            if result is not None:
                kept[entry] = kept[entry].part(result.choices.kept(kept[entry]))
        return tuple(kept)

    def row(self, event: int, changed: Changed = NOT_CHANGED) -> str:
        """Return an event's row of the overview, as HTML."""
        return row_html(self.view(event, changed), event, self.most_parameters)

    def state_of(self, event: int, changed: Changed) -> dict[str, Any]:
        """Return what the page shows of an event: its data, choices, and quality of the fit."""
        result, choices = self.result(event, changed), self.choices(event, changed)
        state: dict[str, Any] = {"terms": [], "numbers": {}, "choices": choices.to_json()}
        if result is not None:
            state["terms"] = [str(term) for term in result.fit.whole.function.terms]
            state["numbers"] = result.numbers(self.events[event])
        data = event_json(self.view(event, changed)) | {"row": self.row(event, changed)}
        return {"event": event, "data": data, "state": state}

    def predict(self, event: int, params: Sequence[float], changed: Changed) -> dict[str, Any]:
        """Return the fit's prediction and interval; raise `UsageError` if there is no fit yet."""
        if self.result(event, changed) is None:
            raise UsageError("the event is not fitted yet")
        fitted, name = self.view(event, changed).fitted, self.events[event].event
        table = np.array([params], dtype=np.float64).reshape(1, -1)
        prediction = fitted.prediction(name, table)
        seconds = (prediction.seconds, *fitted.bounds(name, table))
        predicted, low, high = (json_number(float(bound[0])) for bound in seconds)
        basis = "exact match" if prediction.exact[0] else "fit"
        if prediction.outside[0]:
            basis += ", outside the range of the lines"
        return {
            "seconds": predicted,
            "low": low,
            "high": high,
            "by": basis,
        }


FORMULAS, MODEL = "formulas.toml", "model.json"


@dataclass
class Saving:
    """Saves a session in a folder; replaces files that it did not write only if `force` is set."""

    folder: Path
    inputs: list[Path]
    formulas: ModelText | None
    clock_hz: float | None = None
    force: bool = field(default=False, kw_only=True)
    written: dict[Path, int | None] = field(default_factory=dict, init=False)
    """The inode of each file that this session has written."""

    def save(self, session: Session, changed: Changed = NOT_CHANGED) -> list[str]:
        """Write both files and return their names; raise a `RewriteLogError` if that fails."""
        formulas = formulas_text(session, changed, self.formulas)
        paths = [self.folder / name for name in ((MODEL, FORMULAS) if formulas else (MODEL,))]
        if text := self._refusal(paths):
            raise OutputError(text)
        check_outputs(paths, self.inputs)
        source = Source.of(session.timings.inputs, session.kept_timings(changed), self.clock_hz)
        model = dataclasses.replace(session.model(changed), source=source)
        for path in paths:
            if path.name == MODEL:
                write_model(path, model, through_links=False)
            else:
                write_text_file(path, formulas, through_links=False)
            self.written[path] = _inode(path)
        return [str(path) for path in paths]

    def refusal(self) -> str:
        """Make the folder; return why existing files would not be replaced, empty if they would.

        Raise `OutputError` if no files could be saved in it.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            text = f"{self.folder}: is not a folder to save in, and cannot become one"
            raise OutputError(f"{text}: {error.strerror}") from error
        paths = [self.folder / MODEL, self.folder / FORMULAS]
        check_outputs(paths, self.inputs)
        return self._refusal(paths)

    def _refusal(self, paths: list[Path]) -> str:
        for path in paths:
            if not self.force and _inode(path) not in (None, self.written.get(path)):
                problem = "was replaced since it was saved" if path in self.written else "exists"
                ways = f"another folder with {spelled('output')}, or {spelled('force', True)}"
                return f"{path}: {problem}; give {ways}"
        return ""


def _inode(path: Path) -> int | None:
    """Return the inode of a path, of a link itself if it is one; None if nothing is there."""
    try:
        return path.lstat().st_ino
    except OSError:
        return None


def formulas_text(session: Session, changed: Changed, formulas: ModelText | None) -> str:
    """Return a formulas file: the events that were changed, then the given file's entries.

    It is empty if all events are fitted automatically and no file was given.
    """
    by_count = sorted(
        changed, key=lambda event: -session.events[event].parameters
    )  # an entry without params is for any number of them: it must come last
    entries = [line for event in by_count for line in _entry(session, event, changed[event])]
    if not entries and formulas is None:
        return ""
    text = "\n".join(["# written by rewritelog explore", *entries]) + "\n"
    if formulas is not None:
        text += f"\n# from {json.dumps(Path(formulas.name).name)}\n{formulas.text}"
    parse_formulas(text, FORMULAS)
    return text


def _entry(session: Session, event: int, choices: FitChoices) -> Iterator[str]:
    """Yield the lines of an event whose terms or category were chosen on the page."""
    timings, first = session.events[event], session.first_choices[event]
    if not choices.terms or (choices.terms, choices.category) == (first.terms, first.category):
        return
    count, names = timings.parameters, session.names[event]
    yield "[[formula]]"
    yield f"event = {_toml_string(pattern_of(timings.event))}"
    if count:
        yield f"params = [{', '.join(map(_toml_string, names or ('_',) * count))}]"
    yield "terms = ["
    terms = parsed_terms(choices.terms, count, names)
    yield from (f"    {_toml_string(str(term))}," for term in terms)
    yield "]"
    if choices.category:
        yield f"category = {_toml_string(choices.category)}"
    yield ""


def _toml_string(text: str) -> str:
    """Return a text as a TOML string; raise `OutputError` if it is not valid Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise OutputError(
            f"the name {text!a} is not valid UTF-8 and cannot be in a formulas file"
        ) from error
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
