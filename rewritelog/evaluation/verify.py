"""The job of `verify`: predictions of a model file compared with timing lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from rewritelog.arrays import Table
from rewritelog.commands.fits import VerifyCommand
from rewritelog.core import DistinctPoints
from rewritelog.evaluation.predict import (
    DeterminedBy,
    Score,
    errors_text,
    joined,
    predicted_lines,
    score_of,
    scores_json,
)
from rewritelog.models.base import EventKey, ParamNames, event_names
from rewritelog.models.fitted import Fitted
from rewritelog.models.metrics import relative_errors
from rewritelog.text import (
    MOST_EVENTS,
    Readable,
    TextTable,
    count_text,
    event_label,
    parameter_names,
    percent_text,
    printable,
    quoted,
    shortest_text,
    some_text,
    time_text,
    wrapped,
)
from rewritelog.timings.read import read_param_names, samples_of
from rewritelog.timings.samples import Timings, in_order_of, usable


class WorstLine(Struct, frozen=True):
    """A line with a large relative error."""

    where: str
    """The location, `file:line`."""
    event: str
    params: tuple[float, ...]
    measured_s: float
    predicted_s: float
    relative_error: float
    determined_by: str
    names: tuple[str, ...] = ()
    """The names of the parameters; empty if they have none."""

    def cells(self) -> dict[str, str]:
        """Return the line as the cells of a table's row, by their heads."""
        values = list(map(shortest_text, self.params))
        if self.names:
            named = zip(parameter_names(len(values), self.names), values, strict=True)
            values = [f"{name}={value}" for name, value in named]
        return {
            "line": self.where,
            "call": f"{self.event}({', '.join(values)})",
            "measured": time_text(self.measured_s, 3),
            "predicted": time_text(self.predicted_s, 3),
            "error": percent_text(self.relative_error, 1),
        }


@dataclass(frozen=True, repr=False)
class VerifyReport(Readable):
    """The report of a comparison of a fitted model with timing lines."""

    fitted: Fitted
    timings: Timings
    """The lines or samples that it is compared with."""
    overall: Score
    events: tuple[tuple[EventKey, Score], ...]
    worst: tuple[WorstLine, ...]
    warnings: tuple[str, ...]

    @property
    def model(self) -> str:
        """The file of the model, or its name."""
        return self.fitted.name

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the lines."""
        return tuple(map(str, self.timings.inputs)) or ("samples",)

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "model": self.model,
            "files": list(self.files),
            "overall": asdict(self.overall),
            "events": scores_json(self.events),
            "worst": [asdict(line) for line in self.worst],
            "warnings": list(self.warnings),
        }

    def text(self) -> str:
        """Return the report as text."""
        names, scores = event_names(dict(self.events)), (score for _, score in self.events)
        named = shown = list(zip(names, scores, strict=True))
        if len(named) > MOST_EVENTS:  # those with the most lines
            most = sorted(named, key=lambda pair: -pair[1].lines)[:MOST_EVENTS]
            shown = [pair for pair in named if pair in most]
        # columns of nothing but 0 are left out
        overall = {head: cell for head, cell in self.overall.cells().items() if cell != "0"}
        cells = ((event, score.cells()) for event, score in shown)
        rows = [(event, *(row[head] for head in overall)) for event, row in cells]
        if len(shown) < len(named):
            rows.append((f"and {len(named) - len(shown):,} more", *[""] * len(overall)))
        rows.append(("all", *overall.values()))
        lines_of = count_text(self.overall.lines, "timing line")
        files = ", ".join(map(printable, self.files))
        lines = [f"{printable(self.model)} against {lines_of} of {files}"]
        lines += TextTable(("event", *overall), rows).lines()
        within = "share of lines within the interval"
        if 0 < self.overall.intervals < self.overall.predicted:
            within += f", of the {self.overall.intervals:,} that have one"
        lines.append(wrapped(f"  ({errors_text()}; in 90 %: {within})"))
        if self.worst:
            lines.append("worst lines, by relative error:")
            worst = [line.cells() for line in self.worst]
            rows = [tuple(cells.values()) for cells in worst]
            lines += TextTable(tuple(worst[0]), rows, left=frozenset({1})).lines()
        return "\n".join(lines)


def _worst_lines(
    fitted: Fitted, timings: Timings, entry: int, lines: Table, most: int
) -> Iterator[WorstLine]:
    """Yield the `most` lines with the largest errors in an entry; equal lines count as one."""
    samples = timings.timings[entry]
    errors = relative_errors(lines["predicted_s"], lines["measured_s"])
    calls = np.column_stack([samples.params, samples.seconds])
    first = DistinctPoints.of_rows(calls).rows.first
    first = first[~np.isnan(errors[first])]
    for row in first[np.argsort(-errors[first], kind="stable")][:most].tolist():
        yield WorstLine(
            where=timings.where(entry, row),
            event=samples.event,
            params=tuple(samples.params[row].tolist()),
            measured_s=float(samples.seconds[row]),
            predicted_s=float(lines["predicted_s"][row]),
            relative_error=float(errors[row]),
            determined_by=str(DeterminedBy(lines["determined_by"][row])),
            names=fitted.names_of(*samples.key),
        )


def verify_lines(command: VerifyCommand) -> VerifyReport:
    """Compare a model file with timing lines, as the command says."""
    model, strict = command.model, command.strict
    timings = samples_of(command.timings, command.clock_hz, strict=strict, columns=model.columns)
    return verify(model, timings, read_param_names(command.param_names), worst=command.worst)


def verify(
    fitted: Fitted, timings: Timings, names: ParamNames | None = None, *, worst: int = 10
) -> VerifyReport:
    """Compare a fitted model with timing lines or samples; list the `worst` lines by their errors.

    Of equal lines only the first one is listed.
    """
    fitted = fitted.named(names)
    timings = in_order_of(usable(timings), fitted)
    parts: dict[EventKey, Table] = {}
    worst_lines: list[WorstLine] = []
    for entry, samples in enumerate(timings):
        lines = predicted_lines(fitted, samples)
        parts[samples.key] = lines
        worst_lines += _worst_lines(fitted, timings, entry, lines, worst)
    scores = {key: score_of(lines) for key, lines in parts.items()}
    missing = [
        f"{score.lines - score.predicted:,} of {count_text(score.lines, 'line')} of {quoted(event)}"
        for event, score in zip(event_names(scores), scores.values(), strict=True)
        if score.predicted < score.lines
    ]
    uncovered = []
    if missing:
        known = some_text([event_label(*key) for key in fitted.keys], 5)
        has = f"; it has fits for {known}" * bool(known)
        uncovered = [f"the model has no fit for {some_text(missing, 5)}{has}"]
    return VerifyReport(
        fitted=fitted,
        timings=timings,
        overall=score_of(joined(parts.values())),
        events=tuple(scores.items()),
        worst=tuple(sorted(worst_lines, key=lambda line: -line.relative_error)[:worst]),
        warnings=(*timings.warnings, *uncovered),
    )
