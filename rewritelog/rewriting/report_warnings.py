"""What a user should know of a rewrite: a sentence for each oddity, with counts and places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rewritelog.kernels.account import Figure, RecordState
from rewritelog.logs.logset import LogSet
from rewritelog.models.base import FittedModel
from rewritelog.rewriting.figures import BlockFigures
from rewritelog.rewriting.params import ParamFolder
from rewritelog.rewriting.timings import TimingsRead
from rewritelog.text import count_text, printable


def warnings_of(
    logs: LogSet,
    params: ParamFolder | None,
    timings: TimingsRead | None,
    fitted: FittedModel,
    figures: BlockFigures,
) -> tuple[str, ...]:
    """Return the sentences, most general first."""
    said = [] if timings is None else list(timings.warnings())
    said += fitted.warnings()
    if params is not None:
        said += _about_params(logs, params, figures)
    said += _about_events(figures)
    said += _about_brackets(figures, with_params=params is not None)
    said += _about_messages(figures)
    return tuple(said)


def _places(places: Sequence[tuple[int, int]]) -> str:
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
    missing = figures.record_places.get(RecordState.NO_SEB, [])
    if missing:
        count = sum(event.states.get(RecordState.NO_SEB, 0) for event in figures.events.values())
        yield (
            f"{count_text(count, 'param record')} of SEBs that the log does not have "
            f"({_places(missing)}): do these params belong to these logs?"
        )
    alone = figures.record_places.get(RecordState.SEB_LEFT_ALONE, [])
    if alone:
        states = (event.states.get(RecordState.SEB_LEFT_ALONE, 0)
                  for event in figures.events.values())  # fmt: skip
        yield (
            f"{count_text(sum(states), 'param record')} of SEBs without a duration not used "
            f"({_places(alone)})"
        )


def _about_events(figures: BlockFigures) -> Iterator[str]:
    for name, event in sorted(figures.events.items()):
        untimed = event.states.get(RecordState.NOT_COVERED, 0)
        if untimed:
            brackets = count_text(untimed, "bracket")
            yield (
                f"event {printable(name)!r}: {brackets} dilated, since the model does not cover "
                "them: time this event, with as many parameters as its param records have"
            )
        if event.negative:
            predictions = count_text(event.negative, "prediction")
            yield (
                f"event {printable(name)!r}: {predictions} below zero became 0: the fit does not "
                "hold there"
            )
        if event.outside:
            brackets = count_text(event.outside, "bracket")
            yield (
                f"event {printable(name)!r}: {brackets} with parameters outside the range of the "
                "samples: their durations are extrapolated"
            )


def _about_brackets(figures: BlockFigures, *, with_params: bool) -> Iterator[str]:
    irregular = figures.count(Figure.MARKS_IRREGULAR)
    if irregular:
        places = _places(figures.places[Figure.MARKS_IRREGULAR])
        yield (
            f"{count_text(irregular, 'SEB')} with unmatched or reversed marks dilated as a whole "
            f"({places})"
        )
    mismatched = figures.count(Figure.RECORDS_MISMATCHED)
    if mismatched:
        places = _places(figures.places[Figure.RECORDS_MISMATCHED])
        yield (
            f"{count_text(mismatched, 'SEB')} with another number of param records than brackets "
            f"dilated as a whole ({places})"
        )
    unmarked = figures.count(Figure.UNMARKED_WITH_RECORD)
    if unmarked:
        places = _places(figures.places[Figure.UNMARKED_WITH_RECORD])
        yield (
            f"{count_text(unmarked, 'SEB')} with a param record but no bracket in the log, taken "
            f"as bracketed from end to end ({places})"
        )
    without = figures.count(Figure.BRACKETS_WITHOUT_RECORD)
    if with_params and without:
        yield f"{count_text(without, 'bracket')} without a param record dilated"


def _about_messages(figures: BlockFigures) -> Iterator[str]:
    outside = figures.count(Figure.MESSAGES_OUTSIDE)
    if outside:
        messages = count_text(outside, "message")
        yield f"{messages} sent outside their SEB: each keeps its distance to the SEB's nearer end"
