"""Timing lines from traces: one for each node, with its event, parameters and duration."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rewritelog.cores import limited_to
from rewritelog.formats.traces import Traces, Unit
from rewritelog.output import check_outputs, write_file
from rewritelog.running.engines import map_blocks
from rewritelog.text import Readable, TextTable, count_text, printable, wrapped
from rewritelog.timings.event_params import EventParams, read_event_params
from tracebigsim import LineFormatError, format_line

_SHOWN = 20


@dataclass(frozen=True, repr=False)
class WrittenTimings(Readable):
    """The result of `write_timings`."""

    traces: Traces
    output: Path | None
    lines: int
    zero: int
    """The nodes without a line since they take no time."""
    unusable: int
    """The nodes without a line since a line cannot hold them, or they lack a value."""
    events: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The lines and the different parameters of each event."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is left out, a sentence each."""
        reasons = {
            "of duration 0, which is below the resolution of the trace": self.zero,
            "without values for their parameters, or that no line can hold": self.unusable,
        }
        return tuple(
            f"left out: {count_text(count, 'node')} {why}"
            for why, count in reasons.items()
            if count
        )

    def to_json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return {
            "logs": str(self.traces.path),
            "output": None if self.output is None else str(self.output),
            "lines": self.lines,
            "zero": self.zero,
            "unusable": self.unusable,
            "events": [
                {"event": printable(name), "lines": lines, "points": points}
                for name, (lines, points) in self.events.items()
            ],
            "warnings": list(self.warnings),
        }

    def text(self) -> str:
        """Return the result as text."""
        out = "" if self.output is None else f" → {printable(str(self.output))}"
        count = (
            f"{count_text(self.lines, 'timing line')} of {count_text(len(self.events), 'event')}"
        )
        most = sorted(self.events.items(), key=lambda item: (-item[1][0], item[0]))
        rows = [(name, f"{lines:,}", f"{points:,}") for name, (lines, points) in most]
        table = TextTable(("event", "lines", "different parameters"), rows, most_rows=_SHOWN)
        return "\n".join([wrapped(f"{self.traces.text()}{out}"), count, *table.lines()])


def write_timings(
    traces: Traces,
    output: Path | None,
    types: tuple[int, ...],
    event_params: Path | None = None,
    *,
    jobs: int = 0,
) -> WrittenTimings:
    """Write the lines of the nodes of some types to `output`, if there is one."""
    inputs = [*(unit.path for unit in traces.units), event_params]
    check_outputs([output], inputs)
    params = read_event_params(event_params)
    counts, points, texts = np.zeros(3, dtype=np.int64), dict[str, tuple[int, set[str]]](), []
    with limited_to(jobs):
        work = partial(_lines, traces, params, types)
        for _, (counted, lines) in map_blocks(work, traces.units, "reading", traces.size_bytes):
            counts += counted
            for event, text in lines:
                known = points.setdefault(event, (0, set()))
                known[1].add(text.partition("params:")[2])
                points[event] = known[0] + 1, known[1]
                texts.append(text)
    if output is not None:
        write_file(output, "".join(texts).encode())
    events = {name: (lines, len(known)) for name, (lines, known) in points.items()}
    written, zero, unusable = counts.tolist()
    return WrittenTimings(traces, output, written, zero, unusable, events)


def _lines(
    traces: Traces, params: EventParams, types: tuple[int, ...], unit: Unit
) -> tuple[tuple[int, int, int], list[tuple[str, str]]]:
    named_lines, zero, unusable = list[tuple[str, str]](), 0, 0
    for part in traces.read(unit):
        rows = np.flatnonzero(np.isin(part.type, types))
        duration_s = part.duration_s
        zero += int(np.count_nonzero(duration_s[rows] == 0))
        rows = rows[duration_s[rows] > 0]
        records = params.records(part, rows)
        unusable += len(rows) - len(records)
        columns = (records.event, records.seb, records.param_start, records.param_count)
        for event, row, start, count in zip(*(c.tolist() for c in columns), strict=True):
            name, values = records.events[event], records.params[start : start + count].tolist()
            try:
                line = format_line(name, values, time_s=float(f"{duration_s[row]:.15g}"))
            except LineFormatError:
                unusable += 1
            else:
                named_lines.append((name, line))
    return (len(named_lines), zero, unusable), named_lines
