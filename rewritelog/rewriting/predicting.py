"""New durations: a model is read or fitted, and predicts records; the rest is dilated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

import numpy as np
from msgspec import Struct

from rewritelog.arrays import (
    GOLDEN,
    Flags,
    Floats,
    Ints,
    Table,
    Texts,
    mix,
    occurrences_before,
    rows_by_key,
)
from rewritelog.commands.durations import DilationRules, DurationOptions, RewriteOptions
from rewritelog.core import core
from rewritelog.errors import UsageError, spelled
from rewritelog.formats import ParamRecords
from rewritelog.formats.traces import Terms
from rewritelog.models.base import EventKey, Model
from rewritelog.models.fitted import Fitted
from rewritelog.models.registry import load_model
from rewritelog.rewriting.statistics import (
    EventStatistics,
    EventSums,
    exact_sum,
)
from rewritelog.text import (
    count_text,
    matches,
    matching,
    some_quoted,
    some_text,
    unused_patterns,
)
from rewritelog.timings.read import read_param_names, read_texts, samples_of
from rewritelog.timings.samples import Timings, fit_named

_EVENTS_NAMED = 5
"""The most events that a warning names, such as those that a model does not cover."""

FLAGS = ("exact", "negative", "outside", "remote", "not_spread", "uncounted")
"""The properties of records: an exact match; a negative fit; a parameter outside the range of the
samples; parameters within all ranges, but with more leverage than any sample; no spread, since the
model has no residuals for the record; no counters, for a model of counters."""


LACKING = "{} without the values that event params need dilated"
"""The warning of nodes without a parameter that `--event-params` names."""

OF_NO_LENGTH = (
    "not used: {} of SEBs of length 0, which stay so: emulate without +bgelapse, or give their "
    "time with BgElapse"
)
"""The warning of param records of SEBs that are never rewritten."""


def uniform_numbers(seed: int, pe: Ints, seb: Ints, ordinal: Ints) -> Floats:
    """Return a number in [0, 1) for each bracket, determined by the seed and its location.

    `ordinal` is the index of the bracket in its SEB. The number is a splitmix64 hash of the four
    integers, the same on every machine and for any order of the brackets.
    """
    keys = np.full(len(pe), np.uint64(seed))
    for part in (pe, seb, ordinal):
        keys = mix(keys + GOLDEN) ^ part.astype(np.uint64)
    return (mix(keys + GOLDEN) >> np.uint64(11)).astype(np.float64) * 2.0**-53


class Predictor(Struct, frozen=True):
    """Predicts the durations of param records."""

    fitted: Fitted
    spread_seed: int | None = None
    """The seed for the spread of durations; None without spread."""
    measured_totals: bool = True
    """Whether durations are corrected so that sums agree with measured ones.

    Spread durations need no correction: the residuals include the rare long calls.
    """

    def predict(self, params: ParamRecords, pes: Ints) -> Predicted:
        """Return the records with their durations; `pes` are the PEs of the block's pieces."""
        keys, key = params.event_keys()
        seconds = np.full(len(params.seb), np.nan)
        widening = np.ones(len(params.seb))
        flags = {name: np.zeros(len(params.seb), dtype=np.bool_) for name in FLAGS}
        for rows in rows_by_key(key, np.ones(len(key), dtype=np.bool_)):
            event, count = keys[key[rows[0]]]
            table = params.params_of(rows, count)
            prediction = self.fitted.prediction(event, table)
            seconds[rows] = prediction.seconds
            if prediction.widening is not None:
                widening[rows] = prediction.widening
            if self.measured_totals:
                seconds[rows] = self.fitted.total_seconds(event, table, prediction)
            for name in ("exact", "negative", "outside", "remote"):
                flags[name][rows] = getattr(prediction, name)
            flags["uncounted"][rows] = self.fitted.columns == "counters" and count == 0
        flags["remote"] &= ~flags["outside"]
        predicted = Predicted(params, keys, key, seconds, widening, seconds.copy(), flags)
        if self.spread_seed is not None:
            begins = (np.diff(part, prepend=-1) != 0 for part in (params.piece, params.seb))
            ordinal = occurrences_before(np.cumsum(np.logical_or(*begins)))
            numbers = uniform_numbers(self.spread_seed, pes[params.piece], params.seb, ordinal)
            self._spread(predicted, numbers)
        return predicted

    def _spread(self, predicted: Predicted, numbers: Floats) -> None:
        """Multiply each duration by a residual, chosen by the record's number in [0, 1)."""
        for rows in rows_by_key(predicted.key, ~np.isnan(predicted.seconds)):
            event, count = predicted.keys[predicted.key[rows[0]]]
            table = predicted.params.params_of(rows, count)
            factors = self.fitted.drawn_factors(event, table, numbers[rows])
            predicted.flags["not_spread"][rows] = factors is None
            if factors is not None:
                with np.errstate(over="ignore"):  # the rewrite says which are too large
                    predicted.duration_s[rows] = predicted.seconds[rows] * factors


class Predicted(Struct, frozen=True):
    """The records of a block with predicted durations."""

    params: ParamRecords
    keys: tuple[EventKey, ...]
    key: Ints
    """Index into `keys`."""
    seconds: Floats
    """Predicted durations before any spread; NaN where the model does not cover a record."""
    widening: Floats
    """The factors by which intervals are wider beyond the range of the samples."""
    duration_s: Floats
    """Durations after any spread, which brackets get; NaN where `seconds` is."""
    flags: dict[str, Flags]
    """Which records have each property of `FLAGS`, whether they will be used or not."""

    @property
    def is_covered(self) -> Flags:
        """Which records the model covers."""
        return ~np.isnan(self.duration_s)

    @property
    def covered_seb(self) -> Ints:
        """The SEB or node of each record that the model covers."""
        return self.params.seb[self.is_covered]

    def uncovered(self) -> Counter[EventKey]:
        """Return how many records of each event the model does not cover."""
        return Counter(self.keys[key] for key in self.key[~self.is_covered].tolist())

    def properties(self, records: Table) -> dict[str, Flags]:
        """Return which records were used, in which way, and with which property of `FLAGS`."""
        state = records["state"]
        used, dilated = state == core.RECORD_PREDICTED, state == core.RECORD_NOT_COVERED
        properties = {name: flag & used for name, flag in self.flags.items()}
        return {
            "records": np.ones(len(records), dtype=np.bool_),
            "by_model": used & ~self.flags["exact"],
            "by_exact": properties.pop("exact"),
            "dilated": dilated,
            "not_used": ~(used | dilated),
            **properties,
            "uncounted": self.flags["uncounted"] & dilated,
        }

    def by_event(self, records: Table) -> dict[str, EventStatistics]:
        """Return the counts and sums of the records of each event."""
        properties, count = self.properties(records), len(self.keys)
        counts = {
            name: np.bincount(self.key[rows], minlength=count).tolist()
            for name, rows in properties.items()
        }
        values = self._values(records, properties)
        sums = np.zeros((len(values), count, 2))
        for column, of_records in zip(sums, values, strict=True):
            core.add_by_group(self.key, np.ascontiguousarray(of_records), column)
        events: dict[str, EventStatistics] = {}
        for number, (event, parameters) in enumerate(self.keys):
            of_key = EventStatistics(
                Counter({name: column[number] for name, column in counts.items()}),
                {parameters: EventSums(*map(exact_sum, sums[:, number]))},
            )
            events[event] = events[event] + of_key if event in events else of_key
        return events

    def _values(self, records: Table, properties: dict[str, Flags]) -> tuple[Floats, ...]:
        """Return the contribution of each record to the fields of `EventSums`."""
        old, new = records["old_s"], records["new_s"]
        used = properties["by_model"] | properties["by_exact"]
        predicted = np.where(used, self.seconds, 0.0)
        with np.errstate(over="ignore"):
            squares = predicted**2
            widened = predicted * (self.widening - 1)
        dilated, exact = (
            [np.where(properties[name], seconds, 0.0) for seconds in (old, new)]
            for name in ("dilated", "by_exact")
        )
        exact_squares = np.where(properties["by_exact"], squares, 0.0)
        return old, new, *dilated, predicted, squares, widened, *exact, exact_squares


def dilations_of(
    rules: DilationRules, count: int, read_names: Callable[[], Texts]
) -> tuple[Floats, frozenset[str]]:
    """Return the factor of each SEB or event, and the patterns that were used."""
    if not rules.by_name:
        return np.full(count, float(rules.factor)), frozenset()
    names = read_names()
    factors = np.array([rules.factor_for(name) for name in names.distinct], dtype=np.float64)
    return factors[names.number], matching(rules.by_name, names.distinct)


def _fit(options: DurationOptions) -> tuple[Fitted, Timings | None]:
    """Return the model of a file, or a model fitted to timings, and the timings."""
    if options.fitted is not None:
        return options.fitted.as_from_file(), None
    model, name = options.model, options.model_name
    if not isinstance(model, Model):
        texts = read_texts(options.formulas, options.coefficients)
        model = load_model(name, options.model_options, texts)
    if model.needs_timings:
        if options.timings is None:
            raise UsageError(
                f"the model {name!r} is fitted to timing lines: give some ({spelled('timings')})"
            )
        timings = samples_of(
            options.timings, options.clock_hz, strict=options.strict, columns=model.columns
        )
        names = read_param_names(options.param_names)
        return fit_named(model, name, timings, names), timings
    if options.timings is not None:
        raise UsageError(f"the model {name!r} is not fitted: it takes no timings")
    for field in ("param_names", "clock_hz"):
        if getattr(options, field) is not None:
            of_timings = f"{spelled(field)} is for timings"
            raise UsageError(f"{of_timings}, and the model {name!r} is not fitted to any")
    return Fitted.of(model, name, ()), None


def fitted_predictor(options: DurationOptions) -> tuple[Predictor, Timings | None]:
    """Return a predictor with the model from a file or fitted to the timings, and any timings read.

    Raise `UsageError` if durations are to be spread, but the model has no residuals.
    """
    fitted, timings = _fit(options)
    if not isinstance(options, RewriteOptions):
        return Predictor(fitted), timings
    if options.spread == "none":
        return Predictor(fitted, measured_totals=options.total == "measured"), timings
    if not fitted.implements("drawn_factors"):
        raise UsageError(
            f"the model {fitted.name!r} has no residuals, so {spelled('spread', 'residual')} "
            "cannot draw from them: choose a model that is fitted to timing lines, such as auto"
        )
    return Predictor(fitted, options.seed, measured_totals=False), timings


def fit_warnings(timings: Timings | None, fitted: Fitted) -> tuple[str, ...]:
    """Return the warnings of reading timings, if any, and of the fit."""
    noted = () if timings is None else (*timings.warnings, *fitted.notes)
    return (*noted, *fitted.lines("warnings"))


def warnings_of_uncovered(
    uncovered: Mapping[str, int],
    fitted: Fitted,
    terms: Terms,
    recorded: Mapping[str, Collection[int]],
) -> Iterator[str]:
    """Yield one warning of all brackets or nodes that the model does not cover, if there are any.

    `uncovered` counts them by event; `recorded` has the numbers of parameters of each event.
    """
    if not uncovered:
        return
    counts_of: dict[str, list[str]] = {}
    for event, parameters in fitted.keys:
        counts_of.setdefault(event, []).append(str(parameters))
    names = []
    given = fitted.raw.events_given
    known = {*counts_of, *given}
    most_first = sorted(uncovered, key=lambda event: (-uncovered[event], event))
    known_first = sorted(most_first, key=lambda event: event not in known)
    for event, name in zip(known_first, some_quoted(known_first, _EVENTS_NAMED), strict=True):
        counts = " and ".join(counts_of.get(event, ()))
        what = fitted.columns.removesuffix("s").replace("param", "parameter")
        what += "s" * (counts != "1")
        fewer = f"not as many as its {terms.record}s have"
        why = ""
        if event in given:
            why = f", whose coefficients are for {fewer.replace('many', 'many parameters')}"
        elif counts:
            are_timed = all(str(count) in counts_of[event] for count in recorded[event])
            none = "but the model has no answer for these values"
            why = f", timed with {counts} {what}, {none if are_timed else fewer}"
        names.append(f"{name} ({uncovered[event]:,}{why})")
    covered = some_text(some_quoted([*counts_of, *given], _EVENTS_NAMED), _EVENTS_NAMED)
    total = sum(uncovered.values())
    them = "it" if total == 1 else "them"
    advice = f"give coefficients for {them}" if given else f"time {them} too"
    if terms.names:
        advice += f", or name {them} as the timings do with {spelled(terms.names)}"
    yield (
        f"{count_text(total, terms.predicted)} dilated, since the model does not cover {them}: "
        f"{some_text(names, _EVENTS_NAMED)}; {f'it covers {covered}; ' * bool(covered)}{advice}"
    )


def warnings_of_unused(
    options: DurationOptions,
    fitted: Fitted,
    terms: Terms,
    matched_patterns: Collection[str],
    events: Collection[str],
) -> Iterator[str]:
    """Yield a warning for each option without effect, given the used patterns and the events."""
    if not fitted.uses_params:
        unread = f"not used, since the model {fitted.name!r} reads no params"
        # replays name events by the records of the folder of params, and nodes by their groups
        is_rewrite = isinstance(options, RewriteOptions) and not options.copy_params
        folder = options.params if is_rewrite else None
        event_params = None if options.names_groups else getattr(options, "event_params", None)
        yield from (f"{path}: {unread}" for path in (folder, event_params) if path is not None)
    for pattern, more in unused_patterns(options.dilation_for, matched_patterns):
        is_event = not more and any(matches(pattern, event) for event in events)
        but = ", only an event's" if is_event else more
        none = f"no {terms.item}'s name matches"
        if terms.names:
            none = f"no {terms.item} of the types that {spelled('types')} chooses has such a name"
        why = f"{none}{but}; `rewritelog info` lists their names"
        yield f"the dilation for {pattern!r} was not used: {why}"
    if unused := [event for event in fitted.raw.events_given if event not in events]:
        names = some_text(some_quoted(unused, _EVENTS_NAMED), _EVENTS_NAMED)
        why = f"no {terms.predicted} has such a name"
        yield f"the coefficients for {names} were not used: {why}"
