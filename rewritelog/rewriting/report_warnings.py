"""The warnings of a rewrite: one sentence for each irregularity, with counts and examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rewritelog.formats import Columns
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import ParamFolder
from rewritelog.formats.traces import Terms
from rewritelog.models.base import Model, ModelFit
from rewritelog.rewriting.block import RewriteTask
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.rewriting.predicting import warnings_of_unused
from rewritelog.rewriting.statistics import (
    BlockCount,
    BlockStatistics,
    DurationSum,
    EventStatistics,
    Examples,
    PeAndSeb,
    RecordFlag,
    RecordState,
)
from rewritelog.rewriting.traces import TraceTask
from rewritelog.text import count_text, percent_text, printable
from rewritelog.timings.samples import Timings

_MOST_EVENTS = 5
"""Of more events with the same cause for doubt, a single warning says all."""


def warnings_of(
    task: RewriteTask | TraceTask,
    timings: Timings | None,
    fitted: ModelFit,
    statistics: BlockStatistics,
) -> tuple[str, ...]:
    """Return the warnings, most general first."""
    warnings = [] if timings is None else list(timings.warnings)
    warnings += fitted.warnings()
    if isinstance(task, TraceTask):
        if task.params is not None and not statistics.events:
            types = ", ".join(task.logs.types[number] for number in task.types)
            warnings.append(f"there are no nodes of type {types}, so the model predicts nothing")
    elif task.params is not None:
        warnings += _about_params(task.logs, task.params, statistics)
    warnings += _about_events(statistics, task.predictor.columns, task.logs.terms)
    warnings += _about_brackets(statistics, with_params=task.params is not None)
    warnings += _about_messages(statistics)
    return tuple(warnings)


def warnings_of_options(
    options: RewriteOptions,
    model: Model[Any],
    terms: Terms,
    statistics: BlockStatistics,
    by_dilation: float | None,
) -> tuple[str, ...]:
    """Return a warning for each option without effect, and for a missing dilation."""
    return (
        *warnings_of_unused(options, model, terms, statistics.matched_patterns),
        *_about_roofline(options, statistics),
        *_about_host_speed(options, model, by_dilation),
    )


def _about_roofline(options: RewriteOptions, statistics: BlockStatistics) -> Iterator[str]:
    """Yield which share of the new time a simulator with a roofline model replaces."""
    if options.roofline:
        new_s = statistics.seconds(DurationSum.NEW)
        share = statistics.on_device_s / new_s if new_s else 0.0
        yield (
            f"{percent_text(share, 1)} of the new time is computed by devices: with "
            "roofline-enabled, ASTRA-sim takes times of its own for it"
        )


def _about_host_speed(
    options: RewriteOptions, model: Model[Any], by_dilation: float | None
) -> Iterator[str]:
    """Yield a warning if time keeps the host's speed although no dilation was given."""
    if options.dilation is None and model.uses_params and by_dilation:
        yield (
            f"{percent_text(by_dilation, 1)} of the new time is not covered by the model and keeps "
            "the host's speed: give the target's with --dilation, or --dilation 1 if this is "
            "intended"
        )


def _listed(examples: Examples[PeAndSeb]) -> str:
    return ", ".join(f"PE {pe} SEB {seb}" for pe, seb in examples)


def _about_params(logs: LogSet, params: ParamFolder, statistics: BlockStatistics) -> Iterator[str]:
    if not params.pes:
        yield f"{params.folder} has no param files, so the model predicts nothing"
    strange = sorted(params.pes.difference(logs.pes))
    if strange:
        names = ", ".join(f"param.{pe}" for pe in strange[:5])
        yield (
            f"not used: {count_text(len(strange), 'param file')} of PEs that the log does not have "
            f"({names})"
        )
    if statistics.faulty_lines:
        shown = "; ".join(statistics.faulty_line_examples)
        yield f"{count_text(statistics.faulty_lines, 'malformed param line')} not used: {shown}"
    if statistics.seqno_differs:
        shown = "; ".join(statistics.seqno_examples)
        lines = count_text(statistics.seqno_differs, "param line")
        yield f"in {lines} the SEB number and the seqno differ, and the former is used: {shown}"
    missing = statistics.records(RecordState.NO_SEB)
    if missing:
        listed = _listed(statistics.record_examples[RecordState.NO_SEB])
        yield (
            f"not used: {count_text(missing, 'param record')} of SEBs that the log does not have "
            f"({listed}): the params may belong to other logs"
        )
    alone = statistics.records(RecordState.SEB_LEFT_ALONE)
    if alone:
        listed = _listed(statistics.record_examples[RecordState.SEB_LEFT_ALONE])
        yield (
            f"not used: {count_text(alone, 'param record')} of SEBs without a duration ({listed})"
        )


def _about_events(statistics: BlockStatistics, columns: Columns, terms: Terms) -> Iterator[str]:
    """Yield a warning for each event and cause; if a cause concerns many events, one for all."""
    events = dict(sorted(statistics.events.items()))
    causes_of = {name: _about_event(event, columns, terms) for name, event in events.items()}
    concerned = Counter(cause for causes in causes_of.values() for cause in causes)
    for name, causes in causes_of.items():
        for cause, sentence in causes.items():
            if concerned[cause] <= _MOST_EVENTS:
                yield f"event {printable(name)!r}: {sentence}"
    for cause, count in concerned.items():
        if count > _MOST_EVENTS:
            names = [name for name in events if cause in causes_of[name]]
            most, together = max(names, key=lambda name: _records(events[name])), EventStatistics()
            for name in names:
                together.add(events[name])
            sentence = _about_event(together, columns, terms)[cause]
            sentence = sentence.replace("this event", "these events")
            yield f"{count:,} events, the largest being {printable(most)!r}: {sentence}"


def _records(event: EventStatistics) -> int:
    return event.states.total()


def _about_event(event: EventStatistics, columns: Columns, terms: Terms) -> dict[str, str]:
    """Return a sentence with advice for each cause for doubt about an event's durations."""
    predicted, items, records = event.states[RecordState.PREDICTED], terms.predicted, terms.record
    what = "counters" if columns == "counters" else "parameters"
    counts = {flag.name: event.flags[flag] for flag in RecordFlag}
    counts["NOT_COVERED"] = event.states[RecordState.NOT_COVERED] - counts["UNCOUNTED"]

    def some(cause: str) -> str:
        share = f"{100 * counts[cause] / max(1, predicted):.3g} % of those predicted"
        return f"{count_text(counts[cause], items)} ({share})"

    sentences = {
        "NOT_COVERED": (
            f"{count_text(counts['NOT_COVERED'], items)} dilated, since the model does "
            f"not cover them: time this event, with as many {what} as its {records}s have"
        ),
        "UNCOUNTED": (
            f"{count_text(counts['UNCOUNTED'], items)} dilated, since their {records}s "
            "have no counters: let the emulation write the target's counters (PAPI:{ … }), or "
            "choose a model of parameters"
        ),
        "NEGATIVE": (
            f"{count_text(counts['NEGATIVE'], 'prediction')} below zero became 0, or the "
            "least that the fit allows: the fit is invalid there; time this event with such "
            "parameters"
        ),
        "OUTSIDE": (
            f"{some('OUTSIDE')} with parameters outside the range of the samples: their "
            "durations are extrapolated; time this event with such parameters too"
        ),
        "REMOTE": (
            f"{some('REMOTE')} with parameters each within the range of the samples, but "
            "together further out than any of them: their durations are extrapolated; time such "
            "combinations too"
        ),
        "NOT_SPREAD": (
            f"{some('NOT_SPREAD')} not spread, since the fit has no residuals of held-out "
            "samples: time more samples of this event"
        ),
    }
    return {cause: sentence for cause, sentence in sentences.items() if counts[cause]}


_WHOLE_SEBS = {
    BlockCount.MARKS_IRREGULAR: "with unmatched or reversed marks dilated as a whole",
    BlockCount.RECORDS_MISMATCHED: "with different numbers of param records and brackets dilated "
    "as a whole",
    BlockCount.UNMARKED_WITH_RECORD: "with a param record but no bracket in the log, taken as "
    "bracketed from end to end",
}
"""What is said of SEBs whose brackets are not certain."""


def _about_brackets(statistics: BlockStatistics, *, with_params: bool) -> Iterator[str]:
    for which, sentence in _WHOLE_SEBS.items():
        if count := statistics.count(which):
            yield f"{count_text(count, 'SEB')} {sentence} ({_listed(statistics.examples[which])})"
    without = statistics.count(BlockCount.BRACKETS_WITHOUT_RECORD)
    if with_params and without:
        yield f"{count_text(without, 'bracket')} without a param record dilated"


def _about_messages(statistics: BlockStatistics) -> Iterator[str]:
    outside = statistics.count(BlockCount.MESSAGES_OUTSIDE)
    if outside:
        messages = count_text(outside, "message")
        yield f"{messages} sent outside their SEB: each keeps its distance to the SEB's nearer end"
