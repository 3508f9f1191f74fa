"""The rewrite of traces, unit by unit: the nodes of some types get new durations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from rewritelog.arrays import Floats, Table
from rewritelog.commands.durations import DilationRules, DurationOptions
from rewritelog.core import core
from rewritelog.errors import UsageError
from rewritelog.formats import NO_RECORDS
from rewritelog.formats.traces import (
    COMMUNICATION,
    Events,
    Part,
    Traces,
    Unit,
    UnitWriter,
    joined,
)
from rewritelog.models.base import EventKey
from rewritelog.options import NodeChoice
from rewritelog.output.files import FlushingWork, copy_file
from rewritelog.rewriting.block import no_sums
from rewritelog.rewriting.predicting import Predicted, Predictor, dilations_of
from rewritelog.rewriting.statistics import (
    EXAMPLES,
    BlockCount,
    BlockStatistics,
    DurationSum,
    Irregularity,
)
from rewritelog.text import matching
from rewritelog.timings.traces import EventParams, read_event_params

_REPLAYED = ("lane", "group", *COMMUNICATION, "chosen")
"""The columns of nodes that a replay needs, besides those that are always loaded and durations."""


class TraceTask(Struct, frozen=True):
    """All that rewriting any unit needs; it can be pickled for another process."""

    logs: Traces
    predictor: Predictor
    params: EventParams
    """The events and parameters of nodes, and the groups by which a replay names them."""
    dilations: DilationRules
    types: tuple[int, ...]
    most_kept: int = 0
    """Nodes are kept for a replay of at most this size (`BlockStatistics.replay_size`)."""

    @property
    def predicts(self) -> bool:
        """Whether the model predicts nodes."""
        return self.predictor.fitted.uses_params

    def rewrite(self, unit: Unit, files: FlushingWork[Unit, BlockStatistics]) -> BlockStatistics:
        """Rewrite a unit, and write it to a file of its own; return its statistics."""
        statistics, sums = BlockStatistics(size_bytes=unit.size_bytes), no_sums(1)
        writer, kept = UnitWriter(), list[Events]()
        offset, changed = 0, False
        for part in self.logs.read(unit):
            predicted, patterns = self.predict(part)
            old_s, new_s = part["duration_s"], part["new_s"]
            data, new_us = writer.written(part, new_s, new_s != old_s)
            files.write(unit.path.name, data, offset)
            offset, new_s = offset + len(data), new_us / 1e6
            statistics.add(_statistics(self, part, predicted, new_s, sums[0]))
            statistics.matched_patterns |= patterns
            statistics.matched_rules |= matching(self.params.rules, part["name"].distinct)
            changed |= not np.array_equal(old_s, new_s)
            statistics.dependencies += int(part["waits"].sum())
            if statistics.replay_size <= self.most_kept:
                kept.append(part.only((*_REPLAYED, "new_s")))
            else:
                kept.clear()
        statistics.rounding = writer.rounding
        statistics.kept = [joined(kept)] if kept else []
        statistics.set_durations(np.array([unit.rank]), sums)
        if files.folder is not None and unit.is_packed and not changed:
            (files.folder / unit.path.name).unlink()  # equal bytes may be packed in another way
            copy_file(unit.path, files.folder / unit.path.name)
        return statistics

    def about_params(self, statistics: BlockStatistics) -> Iterator[str]:
        """Yield warnings of unused rules of event params, and if no node is of the chosen types."""
        yield from self.params.unused(statistics.matched_rules)
        yield from self.about_types(statistics.chosen)

    def about_types(self, chosen: int) -> Iterator[str]:
        """Yield a warning if no node is of the chosen types, and such nodes get new durations."""
        if not chosen and (self.predicts or self.dilations.factor != 1):
            types = ", ".join(self.logs.types[number] for number in self.types)
            yield f"there are no nodes of type {types}, so nothing gets a new duration"

    def predict(self, part: Part) -> tuple[Predicted, frozenset[str]]:
        """Return the predictions for a part, and the patterns of dilations that were used.

        The part gets columns: `chosen`, whether a node is of the types that are rewritten; and
        `new_s`, the new durations before they are rounded.
        """
        chosen, old_s = np.isin(part["type"], self.types), part["duration_s"]
        rows = np.flatnonzero(chosen)
        factors, patterns = dilations_of(self.dilations, len(rows), lambda: part["name"][rows])
        params = self.params.records(part, rows)[0] if self.predicts else NO_RECORDS
        predicted = self.predictor.predict(params, np.array([part.unit.rank]))
        new_s, by_model = old_s.copy(), predicted.covered_seb
        new_s[rows] *= factors
        new_s[by_model] = predicted.duration_s[predicted.is_covered]
        part.columns |= {"chosen": chosen, "new_s": new_s}
        return predicted, patterns


class Loaded(NamedTuple):
    """The events of a unit that a replay needs, and what the model was asked for."""

    events: Events
    asked: frozenset[str]
    """The names of events, in the sense of the timings."""
    uncovered: Counter[EventKey]
    """How many nodes the model does not cover."""
    lacking: int
    """The number of nodes without the values that event params need."""


def load_events(tasks: Mapping[str, TraceTask], parts: Iterable[Part]) -> Loaded:
    """Return the events of a unit, with the columns that a replay needs.

    `tasks` are those that give the events new durations, by the names of the columns for these.
    """
    loaded, asked, uncovered, lacking = list[Events](), set[str](), Counter[EventKey](), 0
    for part in parts:
        for name, task in tasks.items():  # all of which ask the model for the same
            predicted, _ = task.predict(part)
            part.columns[name] = part["new_s"]
        asked.update(event for event, _ in predicted.keys)
        uncovered += predicted.uncovered()
        if task.predicts:
            lacking += int(np.count_nonzero(part["chosen"])) - len(predicted.params.seb)
        loaded.append(part.only((*_REPLAYED, *tasks)))
    return Loaded(joined(loaded), frozenset(asked), uncovered, lacking)


def trace_task(
    traces: Traces, predictor: Predictor, options: DurationOptions, most_kept: int = 0
) -> TraceTask:
    """Return the task for the options and a fitted model.

    Raise `UsageError` for a model of counters, or an unknown type of nodes.
    """
    if predictor.fitted.columns == "counters":
        name = predictor.fitted.name
        raise UsageError(f"the model {name!r} reads counters: {traces.title} have none")
    choice = options if isinstance(options, NodeChoice) else NodeChoice()
    is_read = predictor.fitted.uses_params or options.names_groups
    params = read_event_params(choice.event_params if is_read else None)
    types = traces.type_numbers(choice.types)
    return TraceTask(traces, predictor, params, options.dilations, types, most_kept)


def _statistics(
    task: TraceTask, part: Part, predicted: Predicted, new_s: Floats, sums: Floats
) -> BlockStatistics:
    """Return the statistics of a part, given its new durations, and add durations to `sums`."""
    old_s, params, by_model = part["duration_s"], predicted.params, predicted.covered_seb
    records: Table = np.zeros(len(params), dtype=core.structs["param_record"])
    records["state"] = np.where(
        predicted.is_covered, core.RECORD_PREDICTED, core.RECORD_NOT_COVERED
    )
    records["old_s"], records["new_s"] = old_s[params.seb], new_s[params.seb]
    place = np.where(part["chosen"], DurationSum.WITHOUT_OLD, DurationSum.OLD)
    place[params.seb] = DurationSum.BRACKETED_OLD
    touched = np.flatnonzero(place != DurationSum.OLD)
    for side, seconds in enumerate((old_s, new_s)):
        core.add_by_group(np.full(len(part), DurationSum.OLD + side), seconds, sums)
        core.add_by_group(place[touched] + side, seconds[touched], sums)
    outcomes = np.where(old_s > 0, BlockCount.UNCHANGED, BlockCount.ZERO_LENGTH)
    outcomes[old_s != new_s] = BlockCount.BY_DILATION
    exact = predicted.flags["exact"][predicted.is_covered]
    outcomes[by_model] = np.where(exact, BlockCount.BY_EXACT, BlockCount.BY_MODEL)
    counts = np.bincount(outcomes, minlength=len(BlockCount))
    counts[[BlockCount.SEBS, BlockCount.BRACKETS]] = len(part), len(by_model)
    untimed = by_model[old_s[by_model] == 0]
    on_device = (part["type"] == task.logs.computing) & ~part["on_host"]
    lacking = np.flatnonzero(place == DurationSum.WITHOUT_OLD)
    first = (part.first + lacking[:EXAMPLES]).tolist()
    places = [f"rank {part.unit.rank} node {number}" for number in first]
    irregularity = Irregularity.of((part.unit.rank, part.first), len(lacking), places)
    return BlockStatistics(
        counts=counts,
        irregularities={"lacking": irregularity} if places and task.predicts else {},
        events=predicted.by_event(records),
        on_device_s=float(new_s[on_device].sum()),
        chosen=int(np.count_nonzero(part["chosen"])),
        untimed=len(untimed),
        untimed_s=float(new_s[untimed].sum()),
    )
