"""The warnings of a rewrite: one sentence for each irregularity, with counts and examples."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import Columns, ParamFolder
from rewritelog.models.base import FittedModel, Model
from rewritelog.rewriting.counts import BlockCount, RecordState
from rewritelog.rewriting.options import DurationOptions, RewriteOptions
from rewritelog.rewriting.statistics import (
    BlockStatistics,
    EventStatistics,
    Examples,
    PeAndSeb,
    RecordFlag,
)
from rewritelog.text import count_text, percent_text, printable
from rewritelog.timings.read import TimingsRead


def warnings_of(
    logs: LogSet,
    params: ParamFolder | None,
    timings: TimingsRead | None,
    fitted: FittedModel,
    columns: Columns,
    statistics: BlockStatistics,
) -> tuple[str, ...]:
    """Return the warnings, most general first."""
    said = [] if timings is None else list(timings.warnings())
    said += fitted.warnings()
    if params is not None:
        said += _about_params(logs, params, statistics)
    said += _about_events(statistics, columns)
    said += _about_brackets(statistics, with_params=params is not None)
    said += _about_messages(statistics)
    return tuple(said)


def warnings_of_options(
    options: RewriteOptions,
    model: Model[Any],
    statistics: BlockStatistics,
    by_dilation: float | None,
) -> tuple[str, ...]:
    """Return a warning for each option without effect, and for a missing dilation."""
    return (
        *warnings_of_unused(options, model, statistics.matched_patterns),
        *_about_host_speed(options, model, by_dilation),
    )


def warnings_of_unused(
    options: DurationOptions, model: Model[Any], matched_patterns: Collection[str]
) -> Iterator[str]:
    """Yield a warning for each option without effect, given the patterns that matched."""
    yield from _about_unread_params(options, model)
    for pattern, _ in options.dilation_for:
        if pattern not in matched_patterns:
            yield f"the dilation for {printable(pattern)!r} was not used: no SEB's name matches"


def _about_unread_params(options: DurationOptions, model: Model[Any]) -> Iterator[str]:
    if options.params is not None and not model.uses_params:
        yield (
            f"{options.params}: the model {options.model_name!r} reads no params, so this "
            "folder was not used"
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


def _about_events(statistics: BlockStatistics, columns: Columns) -> Iterator[str]:
    for name, event in sorted(statistics.events.items()):
        said = (*_about_cover(event, columns), *_about_predictions(event))
        yield from (f"event {printable(name)!r}: {sentence}" for sentence in said)


def _about_cover(event: EventStatistics, columns: Columns) -> Iterator[str]:
    """Yield warnings of brackets that were dilated because no model covers them, with advice."""
    uncounted = event.flags[RecordFlag.UNCOUNTED]
    untimed = event.states[RecordState.NOT_COVERED] - uncounted
    if untimed:
        what = "counters" if columns == "counters" else "parameters"
        yield (
            f"{count_text(untimed, 'bracket')} dilated, since the model does not cover "
            f"them: time this event, with as many {what} as its param records have"
        )
    if uncounted:
        yield (
            f"{count_text(uncounted, 'bracket')} dilated, since their param records have no "
            "counters: let the emulation write the target's counters (PAPI:{ … }), or choose a "
            "model of parameters"
        )


def _about_predictions(event: EventStatistics) -> Iterator[str]:
    """Yield warnings of unreliable predictions, with advice."""
    predicted = event.states[RecordState.PREDICTED]

    def counted(flag: RecordFlag) -> str:
        count = event.flags[flag]
        if not count:
            return ""
        return (
            f"{count_text(count, 'bracket')} ({100 * count / predicted:.3g} % of those predicted)"
        )

    if negative := event.flags[RecordFlag.NEGATIVE]:
        yield (
            f"{count_text(negative, 'prediction')} below zero became 0, or the least that the fit "
            "allows: the fit is invalid there; time this event with such parameters"
        )
    if outside := counted(RecordFlag.OUTSIDE):
        yield (
            f"{outside} with parameters outside the range of the samples: their durations are "
            "extrapolated; time this event with such parameters too"
        )
    if remote := counted(RecordFlag.REMOTE):
        yield (
            f"{remote} with parameters each within the range of the samples, but together further "
            "out than any of them: their durations are extrapolated; time such combinations too"
        )
    if unspread := counted(RecordFlag.NOT_SPREAD):
        yield (
            f"{unspread} not spread, since the fit has no residuals of held-out samples: "
            "time more samples of this event"
        )


_WHOLE_SEBS = {
    BlockCount.MARKS_IRREGULAR: "with unmatched or reversed marks dilated as a whole",
    BlockCount.RECORDS_MISMATCHED: "with different numbers of param records and brackets dilated "
    "as a whole",
    BlockCount.UNMARKED_WITH_RECORD: "with a param record but no bracket in the log, taken as "
    "bracketed from end to end",
}
"""What is said of SEBs whose brackets are not certain."""


def _about_brackets(statistics: BlockStatistics, *, with_params: bool) -> Iterator[str]:
    for which, said in _WHOLE_SEBS.items():
        if count := statistics.count(which):
            yield f"{count_text(count, 'SEB')} {said} ({_listed(statistics.examples[which])})"
    without = statistics.count(BlockCount.BRACKETS_WITHOUT_RECORD)
    if with_params and without:
        yield f"{count_text(without, 'bracket')} without a param record dilated"


def _about_messages(statistics: BlockStatistics) -> Iterator[str]:
    outside = statistics.count(BlockCount.MESSAGES_OUTSIDE)
    if outside:
        messages = count_text(outside, "message")
        yield f"{messages} sent outside their SEB: each keeps its distance to the SEB's nearer end"
