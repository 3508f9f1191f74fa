"""The warnings of a rewrite: one sentence for each irregularity, with counts and examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rewritelog.errors import spelled
from rewritelog.formats.files import read_provenance
from rewritelog.formats.traces import Terms
from rewritelog.rewriting.predicting import (
    fit_warnings,
    warnings_of_uncovered,
    warnings_of_unused,
)
from rewritelog.rewriting.statistics import (
    BlockCount,
    BlockStatistics,
    DurationSum,
)
from rewritelog.text import MOST_ALIKE, count_text, percent_text

if TYPE_CHECKING:
    from rewritelog.rewriting.report import RewriteReport

_IRREGULAR = {
    "malformed": ("malformed param line", "{} not used: {}"),
    "seqno": (
        "param line",
        "in {} the SEB number and the seqno differ, and the former is used: {}",
    ),
    "no_seb": (
        "param record",
        "not used: {} of SEBs that the log does not have ({}): the params may belong to other logs",
    ),
    "marks_irregular": (
        "SEB",
        "{} with marks that are unmatched, reversed or outside the SEB dilated as a whole ({})",
    ),
    "records_mismatched": (
        "SEB",
        "{} with different numbers of param records and brackets dilated as a whole ({})",
    ),
    "unmarked_with_record": (
        "SEB",
        "{} with a param record but no bracket in the log, taken as bracketed from end to end ({})",
    ),
    "lacking": ("node", "{} without the values that event params need dilated ({})"),
}
"""What is said of anything irregular, with its number and the first places, and what it is."""


def warnings_of(report: RewriteReport) -> Iterator[str]:
    """Yield the warnings: of input and options, of the fit, of params, SEBs and events."""
    task, options, statistics = report.task, report.options, report.statistics
    earlier = read_provenance(report.logs.folder)
    if earlier is not None:
        yield (
            f"{report.logs.folder} was rewritten before, {earlier.text()}: its durations are no "
            "longer the host's, and are now rewritten a second time"
        )
    used = statistics.matched_patterns, statistics.events
    yield from warnings_of_unused(options, report.fitted, report.terms, *used)
    yield from _about_total(report)
    if options.roofline:
        new_s = statistics.seconds(DurationSum.NEW)
        share = statistics.on_device_s / new_s if new_s else 0.0
        yield (
            f"{percent_text(share, 1)} of the new time is computed by devices: with "
            "roofline-enabled, ASTRA-sim takes times of its own for it, and version f66c1da for "
            "that of CPUs, too"
        )
    patterns = [pattern for pattern, _ in options.dilation_for]
    is_unknown = options.dilation is None and "*" not in patterns
    if is_unknown and report.fitted.uses_params and report.by_dilation:
        spared = f", unless {spelled('dilation_for')} matches it" if patterns else ""
        yield (
            f"{percent_text(report.by_dilation, 1)} of the new time is not covered by the model "
            f"and keeps the host's speed{spared}: give the target's with {spelled('dilation')}, or "
            f"{spelled('dilation', 1)} if this is intended"
        )
    yield from fit_warnings(report.timings, report.fitted)
    yield from task.about_params(statistics)
    for what, (noun, sentence) in _IRREGULAR.items():
        if noted := statistics.noted.get(what):
            joint = "; " if noun.endswith("line") else ", "
            places = joint.join(place for _, place in noted.first)
            yield sentence.format(count_text(noted.count, noun), places)
    without = statistics.count(BlockCount.BRACKETS_WITHOUT_RECORD)
    if task.params is not None and without:
        yield f"{count_text(without, 'bracket')} without a param record dilated"
    dilated = {
        name: event.counts["dilated"] - event.counts["uncounted"]
        for name, event in statistics.events.items()
    }
    uncovered = {name: count for name, count in dilated.items() if count}
    recorded = {name: event.sums.keys() for name, event in statistics.events.items()}
    yield from warnings_of_uncovered(uncovered, report.fitted, report.terms, recorded)
    yield from _about_events(statistics, report.terms)


def _about_total(report: RewriteReport) -> Iterator[str]:
    if report.options.total == "measured":
        return
    unused = f"{spelled('total', 'typical')} changes nothing"
    if report.options.spread != "none":
        yield f"{unused}: with {spelled('spread', 'residual')}, durations vary around both"
    elif not report.fitted.knows("retransformation"):
        name = report.fitted.name
        yield f"{unused}: the model {name!r} predicts no sums of its own"


_DOUBTS = {
    "uncounted": (
        "{items} dilated, since their {record}s have no counters: let the emulation write the "
        "target's counters (PAPI:{{ … }}), or choose a model of parameters"
    ),
    "negative": (
        "{predictions} below zero became 0, or the least that the fit allows: the fit is invalid "
        "there; time this event with such parameters"
    ),
    "outside": (
        "{items} ({share}) with parameters outside the range or the categories of the samples: "
        "their durations are extrapolated; time this event with such parameters too"
    ),
    "remote": (
        "{items} ({share}) with parameters each within the range of the samples, but together "
        "further out than any of them: their durations are extrapolated; time such combinations too"
    ),
    "not_spread": (
        "{items} ({share}) not spread, since the fit has no residuals of held-out samples: time "
        "more samples of this event"
    ),
}
"""What is said, with advice, of the records of an event that have a property of `FLAGS`."""


def _about_events(statistics: BlockStatistics, terms: Terms) -> Iterator[str]:
    """Yield a warning for each event and doubt; if a doubt concerns many events, one for all."""
    events = {name: event.counts for name, event in sorted(statistics.events.items())}
    concerned = {doubt: [name for name in events if events[name][doubt]] for doubt in _DOUBTS}
    for name, counts in events.items():
        for doubt, names in concerned.items():
            if counts[doubt] and len(names) <= MOST_ALIKE:
                yield f"event {name!r}: {_doubt_text(doubt, counts, terms)}"
    for doubt, names in concerned.items():
        if len(names) > MOST_ALIKE:
            most = max(names, key=lambda name: events[name]["records"])
            together = sum((events[name] for name in names), Counter[str]())
            text = _doubt_text(doubt, together, terms).replace("this event", "these events")
            yield f"{len(names):,} events, the largest being {most!r}: {text}"


def _doubt_text(doubt: str, counts: Counter[str], terms: Terms) -> str:
    count, predicted = counts[doubt], max(1, counts["by_model"] + counts["by_exact"])
    return _DOUBTS[doubt].format(
        items=count_text(count, terms.predicted),
        predictions=count_text(count, "prediction"),
        record=terms.record,
        share=f"{100 * count / predicted:.3g} % of those predicted",
    )
