"""What a user should know of a rewrite: a sentence for each oddity, with counts and places."""

from __future__ import annotations

from collections.abc import Iterator

from rewritelog.logs.logset import LogSet
from rewritelog.logs.params import Columns, ParamFolder
from rewritelog.models.base import FittedModel
from rewritelog.rewriting.kernels.interface import BlockCount, RecordState
from rewritelog.rewriting.statistics import BlockFigures, EventFigures, Firsts, Mark, PeAndSeb
from rewritelog.text import count_text, printable
from rewritelog.timings.read import TimingsRead


def warnings_of(
    logs: LogSet,
    params: ParamFolder | None,
    timings: TimingsRead | None,
    fitted: FittedModel,
    columns: Columns,
    figures: BlockFigures,
) -> tuple[str, ...]:
    """Return the sentences, most general first."""
    said = [] if timings is None else list(timings.warnings())
    said += fitted.warnings()
    if params is not None:
        said += _about_params(logs, params, figures)
    said += _about_events(figures, columns)
    said += _about_brackets(figures, with_params=params is not None)
    said += _about_messages(figures)
    return tuple(said)


def _places(places: Firsts[PeAndSeb]) -> str:
    return ", ".join(f"PE {pe} SEB {seb}" for pe, seb in places)


def _about_params(logs: LogSet, params: ParamFolder, figures: BlockFigures) -> Iterator[str]:
    if not params.pes:
        yield f"{params.folder} has no param files: the model can predict nothing"
    strange = sorted(params.pes.difference(logs.pes))
    if strange:
        names = ", ".join(f"param.{pe}" for pe in strange[:5])
        yield (
            f"{count_text(len(strange), 'param file')} of PEs that the log does not have ({names})"
        )
    if figures.faulty_lines:
        shown = "; ".join(figures.line_faults)
        yield f"{count_text(figures.faulty_lines, 'malformed param line')} not used: {shown}"
    if figures.seqno_differs:
        shown = "; ".join(figures.seqno_examples)
        lines = count_text(figures.seqno_differs, "param line")
        yield f"in {lines} the SEB and seqno differ, and the first is used: {shown}"
    missing = figures.records(RecordState.NO_SEB)
    if missing:
        places = _places(figures.record_places[RecordState.NO_SEB])
        yield (
            f"{count_text(missing, 'param record')} of SEBs that the log does not have "
            f"({places}): do these params belong to these logs?"
        )
    alone = figures.records(RecordState.SEB_LEFT_ALONE)
    if alone:
        places = _places(figures.record_places[RecordState.SEB_LEFT_ALONE])
        yield (
            f"{count_text(alone, 'param record')} of SEBs without a duration not used ({places})"
        )


def _about_events(figures: BlockFigures, columns: Columns) -> Iterator[str]:
    for name, event in sorted(figures.events.items()):
        said = (*_about_cover(event, columns), *_about_predictions(event))
        yield from (f"event {printable(name)!r}: {sentence}" for sentence in said)


def _about_cover(event: EventFigures, columns: Columns) -> Iterator[str]:
    """Say what was dilated for want of a model, and what to do about it."""
    uncounted = event.marks.get(Mark.UNCOUNTED, 0)
    untimed = event.states.get(RecordState.NOT_COVERED, 0) - uncounted
    if untimed:
        what = "counters" if columns == "counters" else "parameters"
        yield (
            f"{count_text(untimed, 'bracket')} dilated, since the model does not cover "
            f"them: time this event, with as many {what} as its param records have"
        )
    if uncounted:
        yield (
            f"{count_text(uncounted, 'bracket')} dilated, since their param records have no "
            "counters: have the emulation write the target's (PAPI:{ … }) with them, or choose "
            "a model of parameters"
        )


def _about_predictions(event: EventFigures) -> Iterator[str]:
    """Say where the model's durations are weak, and what to do about it."""
    predicted = event.states.get(RecordState.PREDICTED, 0)

    def told(mark: Mark) -> str:
        count = event.marks.get(mark, 0)
        if not count:
            return ""
        return (
            f"{count_text(count, 'bracket')} ({100 * count / predicted:.3g} % of those predicted)"
        )

    if negative := event.marks.get(Mark.NEGATIVE, 0):
        yield (
            f"{count_text(negative, 'prediction')} below zero became 0, or the least that the fit "
            "allows: it does not hold there; time this event with such parameters"
        )
    if outside := told(Mark.OUTSIDE):
        yield (
            f"{outside} with parameters outside the range of the samples: their durations are "
            "extrapolated; time this event with such parameters too"
        )
    if remote := told(Mark.REMOTE):
        yield (
            f"{remote} with parameters each within the range of the samples, but together further "
            "out than any of them: their durations are extrapolated; time such combinations too"
        )
    if unspread := told(Mark.NOT_SPREAD):
        yield (
            f"{unspread} not spread, since the fit has no residuals of samples that it had not "
            "seen: time more samples of this event"
        )


def _about_brackets(figures: BlockFigures, *, with_params: bool) -> Iterator[str]:
    irregular = figures.count(BlockCount.MARKS_IRREGULAR)
    if irregular:
        places = _places(figures.places[BlockCount.MARKS_IRREGULAR])
        yield (
            f"{count_text(irregular, 'SEB')} with unmatched or reversed marks dilated as a whole "
            f"({places})"
        )
    mismatched = figures.count(BlockCount.RECORDS_MISMATCHED)
    if mismatched:
        places = _places(figures.places[BlockCount.RECORDS_MISMATCHED])
        yield (
            f"{count_text(mismatched, 'SEB')} with another number of param records than brackets "
            f"dilated as a whole ({places})"
        )
    unmarked = figures.count(BlockCount.UNMARKED_WITH_RECORD)
    if unmarked:
        places = _places(figures.places[BlockCount.UNMARKED_WITH_RECORD])
        yield (
            f"{count_text(unmarked, 'SEB')} with a param record but no bracket in the log, taken "
            f"as bracketed from end to end ({places})"
        )
    without = figures.count(BlockCount.BRACKETS_WITHOUT_RECORD)
    if with_params and without:
        yield f"{count_text(without, 'bracket')} without a param record dilated"


def _about_messages(figures: BlockFigures) -> Iterator[str]:
    outside = figures.count(BlockCount.MESSAGES_OUTSIDE)
    if outside:
        messages = count_text(outside, "message")
        yield f"{messages} sent outside their SEB: each keeps its distance to the SEB's nearer end"
