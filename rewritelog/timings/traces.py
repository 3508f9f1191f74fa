"""The events and parameters of traced operations, and timing lines of them.

By default an operation's event is its name, and its parameters are the dimensions of its inputs, in
order; for more than 20 of them, the number of inputs and of all their elements; without any, those
of `num_ops`, `tensor_size` and `comm_size` that it has. A file of TOML says otherwise:

    [events."aten::mm*"]
    group = "aten::mm"
    params = ["a1", "a2", "b2"]

The key is a name, or a pattern with `*`; the last match wins. `a1` is the first dimension of the
first input, `b2` the second of the second one; other names are numeric attributes.
"""

from __future__ import annotations

import json
import math
import re
import string
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.cores import limited_to
from rewritelog.formats import ParamRecords
from rewritelog.formats.traces import Part, Traces, Unit
from rewritelog.models.expressions import (
    FUNCTIONS,
    MAX_PARAMETERS,
    Expression,
    parameter_number,
    parse,
)
from rewritelog.models.located_toml import read_toml
from rewritelog.output.files import check_outputs, write_file
from rewritelog.running.engines import map_blocks
from rewritelog.text import Readable, TextTable, count_text, last_match, printable, wrapped
from rewritelog.timings.texts import read_model_text
from tracebigsim import LineFormatError, format_line

_ATTRIBUTES = ("num_ops", "tensor_size", "comm_size")
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_DIMENSION = re.compile(r"([a-o])([1-9][0-9]?)")
_TABLE = "events"
_MOST = 1e300
"""The largest parameter."""

Tensors: TypeAlias = list[list[float]]
"""The dimensions of some tensors."""


class _Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry as it is written."""

    group: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    params: Annotated[list[str], msgspec.Meta(max_length=MAX_PARAMETERS)] | None = None


@dataclass(frozen=True)
class EventRule:
    """What a file says of the operations of a name or pattern."""

    pattern: str
    group: str | None
    """The event; None for the name of the operation."""
    params: tuple[Expression, ...] | None
    """The parameters; None for those by default."""
    variables: tuple[str, ...]
    """The dimensions and attributes that the expressions take, in the order of their numbers."""


@dataclass(frozen=True)
class EventParams:
    """The events and parameters of operations."""

    rules: tuple[EventRule, ...] = ()

    def records(self, part: Part, rows: Ints) -> ParamRecords:
        """Return a record for each of some rows of a part, `seb` being the row, in their order.

        Rows without a value that a rule's expressions need are left out.
        """
        numbered = [(rule.pattern, number) for number, rule in enumerate(self.rules)]
        names, number = part.names
        used, number = np.unique(number[rows], return_inverse=True)
        called = [names[name] for name in used.tolist()]
        rule_of = [last_match(numbered, name, -1) for name in called]
        groups = [self.rules[rule].group if rule >= 0 else None for rule in rule_of]
        labels = [group or event_name(name) for group, name in zip(groups, called, strict=True)]
        events = {event: place for place, event in enumerate(dict.fromkeys(labels))}
        rule = np.array(rule_of, dtype=np.int64)[number]
        starts, counts = np.zeros(len(rows), np.int64), np.full(len(rows), -1)
        flat, base = list[Floats](), 0
        for which in np.unique(rule).tolist():
            own = np.flatnonzero(rule == which)
            if which < 0 or self.rules[which].params is None:
                start, count, values = _default_params(part, rows[own])
            else:
                start, count, values = _evaluated(part, rows[own], self.rules[which])
            starts[own], counts[own] = start + base, count
            flat.append(values)
            base += len(values)
        known = np.flatnonzero(counts >= 0)
        return ParamRecords(
            events=tuple(events),
            event=np.array([events[label] for label in labels], dtype=np.int64)[number[known]],
            piece=np.zeros(len(known), dtype=np.int64),
            seb=rows[known],
            param_start=starts[known],
            param_count=counts[known],
            params=np.concatenate([np.zeros(0), *flat]),
        )


def event_name(name: str) -> str:
    """Return a name as timing lines can hold it: no braces, no control characters, not empty."""
    plain = "".join(c if c.isprintable() and c not in "{}" else "_" for c in name).strip()
    return plain or "_"


def _default_params(part: Part, rows: Ints) -> tuple[Ints, Ints, Floats]:
    texts, number = part.shapes
    listed = [_listed(_inputs(text)) for text in texts]
    lengths = np.array([len(values) for values in listed], dtype=np.int64)
    begins = np.concatenate([[0], np.cumsum(lengths)])
    start, count = begins[number[rows]], lengths[number[rows]]
    values = np.array([value for each in listed for value in each], dtype=np.float64)
    bare = np.flatnonzero(count == 0)
    if len(bare):
        table = np.stack([part.number(name)[rows[bare]] for name in _ATTRIBUTES], axis=1)
        known = np.isfinite(table)
        count[bare] = known.sum(axis=1)
        start[bare] = len(values) + np.cumsum(count[bare]) - count[bare]
        values = np.concatenate([values, table[known]])
    return start, count, values


def _listed(inputs: Sequence[Tensors]) -> list[float]:
    """Return all dimensions; of too many the numbers of tensors and of all their elements."""
    flat = [value for tensors in inputs for tensor in tensors for value in tensor]
    if len(flat) <= MAX_PARAMETERS:
        return flat
    sizes = [math.prod(tensor) for tensors in inputs for tensor in tensors]
    return [float(len(sizes)), min(float(sum(sizes)), _MOST)]


def _inputs(text: str) -> list[Tensors]:
    """Return the dimensions of the tensors of each input, which is one or a list of some."""
    try:
        read = json.loads(text) if text else []
        return [list(_tensors(each)) for each in read] if isinstance(read, list) else []
    except (ValueError, RecursionError):
        return [[[float(digits) for digits in re.findall(r"[0-9]{1,18}", text)]]]


def _tensors(read: object) -> Iterator[list[float]]:
    if isinstance(read, list):
        numbers = (each for each in read if isinstance(each, int | float) and abs(each) < 1e18)
        if dimensions := [float(number) for number in numbers]:
            yield dimensions
        for each in read:
            yield from _tensors(each)


def _evaluated(part: Part, rows: Ints, rule: EventRule) -> tuple[Ints, Ints, Floats]:
    params = rule.params or ()
    table = np.empty((len(rows), len(rule.variables)))
    for number, name in enumerate(rule.variables):
        table[:, number] = _variable(part, rows, name)
    values = np.empty((len(rows), len(params)))
    for number, expression in enumerate(params):
        values[:, number] = expression.evaluate(table)
    counts = np.where(np.isfinite(values).all(axis=1), len(params), -1)
    return len(params) * np.arange(len(rows)), counts, values.ravel()


def _variable(part: Part, rows: Ints, name: str) -> Floats:
    match = _DIMENSION.fullmatch(name)
    if match is None:
        return part.number(name)[rows]
    tensor, place = string.ascii_lowercase.index(match[1]), int(match[2]) - 1
    texts, number = part.shapes

    def value(text: str) -> float:
        flat = [d for sizes in next(iter(_inputs(text)[tensor:]), ()) for d in sizes]
        return flat[place] if place < len(flat) else math.nan

    return np.array([value(text) for text in texts], dtype=np.float64)[number[rows]]


def read_event_params(path: Path | None) -> EventParams:
    """Return the rules of a file; raise a `ModelError` with line and column for any error in it."""
    if path is None:
        return EventParams()
    read = read_model_text(path)
    toml = read_toml(read.text, read.name)
    for key in toml.document:
        if key != _TABLE:
            raise toml.of_key((key,)).error(f'unknown key {key!r}; events are [{_TABLE}."NAME"]')
    written = toml.declared(toml.document.get(_TABLE, {}), dict[str, _Written], (_TABLE,))
    rules = []
    for pattern, entry in written.items():
        texts, place = entry.params or [], (_TABLE, pattern, "params")
        words = dict.fromkeys(w for t in texts for w in _NAME.findall(t) if w not in FUNCTIONS)
        for word in words:
            if parameter_number(word) is not None:
                problem = f"{word}: a parameter is made of dimensions, as a1, or attributes"
                raise toml.of_value(place).error(problem)
        numbers = {word: number for number, word in enumerate(words, 1)}
        params = tuple(
            parse(text, names=numbers, where=toml.of_value((*place, at)))
            for at, text in enumerate(texts)
        )
        chosen = None if entry.params is None else params
        rules.append(EventRule(pattern, entry.group, chosen, tuple(words)))
    return EventParams(tuple(rules))


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
    counts, points = np.zeros(3, dtype=np.int64), dict[str, tuple[int, set[str]]]()
    work = partial(_lines, traces, params, types)

    def texts() -> Iterator[bytes]:
        for _, (counted, lines) in map_blocks(work, traces.units, "reading", traces.size_bytes):
            counts[:] += counted
            for event, text in lines:
                known = points.setdefault(event, (0, set()))
                known[1].add(text.partition("params:")[2])
                points[event] = known[0] + 1, known[1]
                yield text.encode()

    with limited_to(jobs):
        if output is None:
            deque(texts(), maxlen=0)
        else:
            write_file(output, texts())
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
