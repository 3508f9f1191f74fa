"""The events and parameters of traced operations, and timing lines of them.

By default an operation's event is its name, and its parameters are the dimensions of its inputs, in
order; with more than 20 dimensions, the numbers of tensors and of all their elements; without any,
the attributes of `num_ops`, `tensor_size`, `comm_size` that it has. A TOML file may change this:

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
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from msgspec import Struct

from rewritelog.arrays import Floats, Ints, Texts, numbered
from rewritelog.commands.fits import TimingsCommand
from rewritelog.core import DistinctPoints
from rewritelog.errors import RewriteLogError, UsageError
from rewritelog.formats import ParamRecords
from rewritelog.formats.traces import Part, Traces
from rewritelog.models.expressions import (
    FUNCTIONS,
    MAX_PARAMETERS,
    Expression,
    parameter_number,
    parse,
)
from rewritelog.models.located_toml import read_toml
from rewritelog.output.files import write_file
from rewritelog.running.engines import map_blocks
from rewritelog.text import (
    Readable,
    TextTable,
    count_text,
    last_match,
    matching,
    printable,
    unused_patterns,
    wrapped,
)
from rewritelog.timings.read import read_model_text
from tracebigsim.errors import LineFormatError
from tracebigsim.writing import around_time, format_line, number_text

_ATTRIBUTES = ("num_ops", "tensor_size", "comm_size")
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_DIMENSION = re.compile(r"([a-o])([1-9][0-9]?)")
_TABLE = "events"
_NO_BRACES = str.maketrans("{}", "__")
_MOST_PARAMETER = 1e300
"""The largest parameter."""

Tensors: TypeAlias = list[Sequence[float]]
"""The dimensions of some tensors."""


class _FileEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of a file, as it is written."""

    group: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    params: Annotated[list[str], msgspec.Meta(max_length=MAX_PARAMETERS)] | None = None


class _EventParamsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of entries."""

    events: dict[str, Any] = {}


class EventRule(Struct, frozen=True):
    """The event and the parameters that a file gives the operations of a name or pattern."""

    group: str | None = None
    """The event; None for the name of the operation."""
    params: tuple[Expression, ...] | None = None
    """The parameters; None for the default ones."""
    variables: tuple[str, ...] = ()
    """The dimensions and attributes that the expressions take, in the order of their numbers."""


_BY_DEFAULT = EventRule()


class EventParams(Struct, frozen=True):
    """The events and parameters of operations."""

    rules: tuple[tuple[str, EventRule], ...] = ()
    """Names or patterns of operations, and the rule for each."""
    name: str = ""
    """The name of the file in messages."""

    def unused(self, matched_patterns: Collection[str]) -> Iterator[str]:
        """Yield a sentence for each rule that is the last match of no operation."""
        for pattern, more in unused_patterns(self.rules, matched_patterns):
            what = f"what it says of {pattern!r} is not used: no node has such a name{more}"
            yield f"{self.name}: {what}"

    def grouped(self, names: Texts) -> Texts:
        """Return the group of each operation, or its name if it has none."""
        if not self.rules:
            return names
        rules = [(last_match(self.rules, text, _BY_DEFAULT), text) for text in names.distinct]
        texts, number = numbered(rule.group or text for rule, text in rules)
        return Texts(texts, number[names.number])

    def records(self, part: Part, rows: Ints) -> tuple[ParamRecords, Counter[str]]:
        """Return the records of some rows of a part, in their order; `seb` is the row.

        Rows without a value that a rule's expressions need are left out; the second result counts
        the rows that lack each dimension or attribute.
        """
        names = part["name"]
        rules, rule = numbered(last_match(self.rules, text, _BY_DEFAULT) for text in names.distinct)
        events, event = numbered(
            rules[number].group or event_name(text)
            for number, text in zip(rule.tolist(), names.distinct, strict=True)
        )
        name, lacking = names.number[rows], Counter[str]()
        table = np.full((len(rows), MAX_PARAMETERS), np.nan)
        is_complete = np.ones(len(rows), dtype=np.bool_)
        for number, event_rule in enumerate(rules):
            nodes = np.flatnonzero(rule[name] == number)
            if event_rule.params is None:
                table[nodes] = _by_default(part, rows[nodes])
                continue
            inputs = _columns(
                len(nodes), (_variable(part, rows[nodes], v) for v in event_rule.variables)
            )
            values = _columns(len(nodes), (term.evaluate(inputs) for term in event_rule.params))
            table[nodes, : values.shape[1]] = values
            is_complete[nodes] = np.isfinite(values).all(axis=1)
            unknown = np.isnan(inputs[~is_complete[nodes]]).sum(axis=0).tolist()
            lacking.update(dict(zip(event_rule.variables, unknown, strict=True)))
        table, count = table[is_complete], np.count_nonzero(is_complete)
        records = ParamRecords(
            events=events,
            event=event[name[is_complete]],
            piece=np.zeros(count, dtype=np.int64),
            seb=rows[is_complete],
            param_start=MAX_PARAMETERS * np.arange(count),
            param_count=np.count_nonzero(~np.isnan(table), axis=1),
            params=table.ravel(),
        )
        return records, +lacking


def event_name(name: str) -> str:
    """Return a name as timing lines can hold it: no braces, no control characters, not empty."""
    plain = name.translate(_NO_BRACES)
    if not plain.isprintable():
        plain = "".join(c if c.isprintable() else "_" for c in plain)
    return plain.strip() or "_"


def _by_shapes(part: Part, rows: Ints, values_of: Callable[[str], list[float]]) -> Floats:
    """Return values that depend on the shapes of the inputs alone, NaN after the last one."""
    shapes: Texts = part["shapes"][rows]
    columns = [*zip_longest(*map(values_of, shapes.distinct), fillvalue=np.nan)][:MAX_PARAMETERS]
    table = np.full((len(shapes.distinct), MAX_PARAMETERS), np.nan)
    table[:, : len(columns)] = np.array(columns).T
    return table[shapes.number]


def _by_default(part: Part, rows: Ints) -> Floats:
    """Return the default parameters of rows, NaN after the last one."""
    table = _by_shapes(part, rows, _listed)
    bare = np.flatnonzero(np.isnan(table[:, 0]))
    if len(bare):
        columns = (_variable(part, rows[bare], name) for name in _ATTRIBUTES)
        attributes = _columns(len(bare), columns)
        attributes[np.isinf(attributes)] = np.nan
        order = np.argsort(np.isnan(attributes), axis=1, kind="stable")
        table[bare, : len(_ATTRIBUTES)] = np.take_along_axis(attributes, order, axis=1)
    return table


def _variable(part: Part, rows: Ints, name: str) -> Floats:
    """Return a dimension of an input or a numeric attribute of rows, NaN where there is none."""
    match = _DIMENSION.fullmatch(name)
    if match is None:
        return part.number(name)[rows]
    tensor, place = string.ascii_lowercase.index(match[1]), int(match[2])

    def size(shapes: str) -> list[float]:
        sizes = [*chain(*next(iter(_inputs(shapes)[tensor:]), ()))]
        return sizes[place - 1 : place]

    return _by_shapes(part, rows, size)[:, 0]


def _columns(rows: int, columns: Iterable[Floats]) -> Floats:
    return np.stack([np.empty(rows), *columns], axis=1)[:, 1:]


def _listed(shapes: str) -> list[float]:
    """Return all dimensions or, if too many, the numbers of tensors and of all their elements."""
    tensors = [*chain(*_inputs(shapes))]
    flat = [*chain(*tensors)]
    if len(flat) <= MAX_PARAMETERS:
        return flat
    return [float(len(tensors)), float(min(sum(map(math.prod, tensors)), _MOST_PARAMETER))]


_PLAIN = msgspec.json.Decoder(list[list[Annotated[int, msgspec.Meta(gt=-(10**18), lt=10**18)]]])


@lru_cache(1 << 12)
def _inputs(text: str) -> list[Tensors]:
    """Return the dimensions of each input's tensors; an input is one tensor or a list of them."""
    try:  # if each input is one tensor: ten times as fast
        return [[sizes] if sizes else [] for sizes in _PLAIN.decode(text)] if text else []
    except (ValueError, RecursionError):
        pass
    try:
        read = json.loads(text)
        return [list(_tensors(item)) for item in read] if isinstance(read, list) else []
    except (ValueError, RecursionError):
        return [[[float(digits) for digits in re.findall(r"[0-9]{1,18}", text)]]]


def _tensors(read: object) -> Iterator[list[float]]:
    if isinstance(read, list):
        numbers = (item for item in read if isinstance(item, int | float) and abs(item) < 1e18)
        if dimensions := [float(number) for number in numbers]:
            yield dimensions
        for item in read:
            yield from _tensors(item)


def read_event_params(path: Path | None) -> EventParams:
    """Return the rules of a file; raise a `ModelError` with line and column for any error in it."""
    if path is None:
        return EventParams()
    read = read_model_text(path)
    toml = read_toml(read.text, read.name)
    rules = []
    for pattern in toml.declared(_EventParamsFile).events:
        entry = toml.declared(_FileEntry, _TABLE, pattern)
        try:
            format_line(entry.group or _TABLE, time_s=0)
        except LineFormatError as error:
            raise toml.place(_TABLE, pattern, "group").error(str(error)) from error
        texts, place = entry.params or [], (_TABLE, pattern, "params")
        words = dict.fromkeys(w for t in texts for w in _NAME.findall(t) if w not in FUNCTIONS)
        for word in words:
            if parameter_number(word) is not None:
                problem = f"{word}: a parameter is made of dimensions, as a1, or attributes"
                raise toml.place(*place).error(problem)
        numbers = {word: number for number, word in enumerate(words, 1)}
        params = tuple(
            parse(text, names=numbers, where=toml.place(*place, at))
            for at, text in enumerate(texts)
        )
        chosen = None if entry.params is None else params
        rules.append((pattern, EventRule(entry.group, chosen, tuple(words))))
    return EventParams(tuple(rules), read.name)


_SHOWN = 20


class _Lines(NamedTuple):
    """The timing lines of a part, and what they add to `WrittenTimings`."""

    text: bytes
    calls: list[tuple[str, bytes, int]]
    """Each point of each event: the event, the parameters as bytes, and the number of lines."""
    left_out: dict[str, int]
    lacking: Counter[str]
    matched_patterns: frozenset[str]


@dataclass(frozen=True, repr=False)
class WrittenTimings(Readable):
    """The result of `write_timings`."""

    traces: Traces
    output: Path
    params: EventParams
    types: tuple[int, ...]
    """The types of nodes that get a line."""
    lines: Counter[str] = field(default_factory=Counter)
    """The number of lines of each event."""
    points: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """A hash of each point of each event; hashes of 64 bits hardly collide."""
    left_out: Counter[str] = field(default_factory=Counter)
    """The nodes without a line: of duration `zero`, and `unusable` ones."""
    lacking: Counter[str] = field(default_factory=Counter)
    """How many nodes lack each dimension or attribute that `--event-params` names."""
    matched_patterns: set[str] = field(default_factory=set)
    """The patterns of `params` that are the last to match the name of a node."""

    def add(self, part: _Lines) -> None:
        """Add the lines of another part."""
        for event, params, count in part.calls:
            self.lines[event] += count
            self.points[event].add(hash(params))
        self.left_out.update(part.left_out)
        self.lacking.update(part.lacking)
        self.matched_patterns.update(part.matched_patterns)

    @property
    def events(self) -> list[tuple[str, int, int]]:
        """Each event with the numbers of its lines and of its points."""
        return [(event, count, len(self.points[event])) for event, count in self.lines.items()]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is left out or not used, a sentence each."""
        lacking = ", ".join(
            f"{count:,} {'has' if count == 1 else 'have'} no {name}"
            for name, count in self.lacking.items()
        )
        reasons = {
            "zero": "of duration 0: not timed, or shorter than the trace records",
            "unusable": "without values for their parameters, or that no line can hold"
            + (f": {lacking}" if lacking else ""),
        }
        left_out = (
            f"left out: {count_text(self.left_out[what], 'node')} {why}"
            for what, why in reasons.items()
            if self.left_out[what]
        )
        return (*left_out, *self.params.unused(self.matched_patterns))

    def to_json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return {
            "logs": str(self.traces.path),
            "output": str(self.output),
            "lines": self.lines.total(),
            "zero": self.left_out["zero"],
            "unusable": self.left_out["unusable"],
            "events": [
                {"event": event, "lines": lines, "points": points}
                for event, lines, points in self.events
            ],
            "warnings": list(self.warnings),
        }

    def top_lines(self) -> list[str]:
        """Return what was read and written, and the number of lines and events."""
        lines = count_text(self.lines.total(), "timing line")
        files = f"{self.traces.text()} → {printable(str(self.output))}"
        return [files, f"{lines} of {count_text(len(self.lines), 'event')}"]

    def text(self) -> str:
        """Return the result as text."""
        most = sorted(self.events, key=lambda event: (-event[1], event[0]))
        rows = [(event, f"{lines:,}", f"{points:,}") for event, lines, points in most]
        table = TextTable(("event", "lines", "different parameters"), rows, most_rows=_SHOWN)
        return "\n".join([*map(wrapped, self.top_lines()), *(table.lines() if rows else ())])


def write_timings(command: TimingsCommand) -> WrittenTimings:
    """Write timing lines for nodes of some types to a file.

    Raise `UsageError` for bgTrace logs, and `RewriteLogError` if no node has a line.
    """
    traces = command.traces
    if not isinstance(traces, Traces):
        raise UsageError(f"{traces.folder}: has bgTrace logs, which hold no timing lines")
    types = traces.type_numbers(command.types)
    written = WrittenTimings(traces, command.output, read_event_params(command.event_params), types)
    work = partial(_lines, written.params, types)

    def texts() -> Iterator[bytes]:
        parts = chain.from_iterable(map(traces.read, traces.files))
        is_packed = any(unit.is_packed for unit in traces.files)  # its unpacked size is unknown
        total_bytes = 0 if is_packed else traces.size_bytes
        for _, lines in map_blocks(work, parts, "reading", total_bytes):
            written.add(lines)
            yield lines.text
        if not written.lines:
            chosen = ", ".join(traces.types[number] for number in types)
            none = () if written.left_out.total() else (f"there are no nodes of type {chosen}",)
            why = "; ".join((*none, *written.warnings))
            raise RewriteLogError(f"{traces.path}: no node has a timing line: {why}")

    write_file(command.output, texts())
    return written


def _lines(params: EventParams, types: tuple[int, ...], part: Part) -> _Lines:
    """Return the lines of a part; the text around the time is made once for each point."""
    duration_s = part["duration_s"]
    chosen = np.flatnonzero(np.isin(part["type"], types))
    rows = chosen[duration_s[chosen] > 0]
    records, lacking = params.records(part, rows)
    table = records.params.reshape(-1, MAX_PARAMETERS)
    points = DistinctPoints.of_rows(np.column_stack([records.event, table]))
    first, texts_around = points.rows.first, dict[int, tuple[str, str]]()
    counts = records.param_count[first]
    params_of = table[first, : counts.max(initial=0)].tolist()
    calls = zip(records.event[first].tolist(), params_of, counts.tolist(), strict=True)
    for point, (event, values, count) in enumerate(calls):
        with suppress(LineFormatError):
            texts_around[point] = around_time(records.events[event], values[:count])
    usable_points = np.array([*texts_around], dtype=np.int64)
    usable = np.isin(points.point_of_row, usable_points)
    timed = zip(
        points.point_of_row[usable].tolist(), duration_s[records.seb[usable]].tolist(), strict=True
    )
    lines = [
        f"{texts_around[point][0]}{number_text(time_s, 'a time')}{texts_around[point][1]}"
        for point, time_s in timed
    ]
    left_out = {"zero": len(chosen) - len(rows), "unusable": len(rows) - len(lines)}
    events = [records.events[event] for event in records.event[first[usable_points]].tolist()]
    return _Lines(
        "".join(lines).encode(),
        list(
            zip(
                events,
                map(bytes, table[first[usable_points]]),
                points.counts[usable_points].tolist(),
                strict=True,
            )
        ),
        left_out,
        lacking,
        matching(params.rules, part["name"].distinct),
    )
