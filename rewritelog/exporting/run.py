"""The complete job of an export: a folder with the files of one format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rewritelog.commands.durations import DurationOptions
from rewritelog.commands.logs import ALWAYS, SIMULATORS, ExportCommand
from rewritelog.errors import RewriteLogError, UsageError, spelled
from rewritelog.exporting.chrome import (
    SEB_KINDS,
    ChromeMaker,
    TraceEvents,
    node_events,
    rank_name,
    write_trace,
)
from rewritelog.exporting.contents import Contents, map_contents
from rewritelog.exporting.goal import goal_part, write_goal
from rewritelog.exporting.programs import load_program
from rewritelog.exporting.simgrid import simgrid_part, write_simgrid
from rewritelog.exporting.tables import pyarrow, tables_part, write_tables
from rewritelog.formats.bgtrace.params import about_malformed, about_none, list_params
from rewritelog.formats.traces import Traces, first_start_us
from rewritelog.output.folders import new_folder
from rewritelog.replaying.network import Network
from rewritelog.replaying.replay import prepare, replay_workload
from rewritelog.text import Readable, count_text, printable
from rewritelog.units import chosen_pes

Result = TypeVar("Result")


_NOUNS = {"sebs": "SEB", "log_events": "log event", "dependencies": "dependency"}

_WARNINGS = {
    "not sent": ("SEB", "{} started by a message that is never sent, and exported without it"),
    "never ran": ("SEB", "{} never ran in the replay, and come last: a simulation may not end"),
    "not received": ("message", "left out: {} without a SEB to start"),
    "invalid": ("dependency", "left out: {} not on an earlier SEB"),
    "not finite": ("SEB", "{} left out: a time is not finite"),
    "overlapping": (
        "slice",
        (
            "{} left out by viewers for beginning within another one of the same track and ending "
            "after it: {without_overlaps}"
        ),
    ),
}
"""What an export leaves out or changes: what is counted, and a warning."""


@dataclass(frozen=True, repr=False)
class Exported(Readable):
    """The results of an export."""

    folder: Path
    to: str
    pes: int
    counts: dict[str, int]
    """The numbers of records written, by kind."""
    warnings: tuple[str, ...] = ()
    lane: str = "PE"
    """What the logs call a PE."""

    def to_json(self) -> dict[str, Any]:
        """Return the results as a JSON object."""
        return {
            "folder": printable(str(self.folder)),
            "to": self.to,
            "pes": self.pes,
            "counts": self.counts,
            "warnings": [printable(text) for text in self.warnings],
        }

    def text(self) -> str:
        """Return the results as text."""
        counts = ", ".join(
            count_text(count, _NOUNS.get(kind, kind[:-1])) for kind, count in self.counts.items()
        )
        folder = printable(str(self.folder))
        return f"{folder}: {count_text(self.pes, self.lane)} for {self.to}: {counts}"


def export(options: ExportCommand) -> Exported:
    """Write a log set or traces in another format.

    A simulator gets the SEBs of a PE in any order, or with `replayed` in that of a replay, and its
    program is in memory. Other formats need memory for a part of a timeline. Raise `UsageError` for
    contradictory options, `DamagedLogError` for damaged logs, `TimingError` if a param file cannot
    be read, and `OutputError` as `new_folder` does.
    """
    opened = options.logs
    network = options.read_network() if options.replayed else None
    if isinstance(opened, Traces):
        return _export_traces(opened, options, network)
    if network is not None and options.to not in SIMULATORS:
        raise UsageError(
            f"{spelled('replayed', True)} is for {' and '.join(SIMULATORS)}, not for {options.to}"
        )
    if options.to == "parquet":
        pyarrow()
    chosen = chosen_pes(options.pes, opened.pes)
    pes = list(opened.pes if chosen is None else chosen)
    params = list_params(options.params or opened.folder)

    malformed, counted = 0, Counter[str]()

    def parts(work: Callable[[Contents], Result]) -> Iterator[Result]:
        nonlocal malformed
        for result, of_part in map_contents(opened, pes, options.interval, params, work):
            malformed += of_part
            yield result

    remarks = [] if options.to in SIMULATORS else [*about_none(params, opened)]
    with new_folder(options.out, force=options.force) as folder:
        if options.to in SIMULATORS:
            program = load_program(opened, network)
            if options.to == "goal":
                counts = write_goal(folder, len(pes), program.parts(goal_part))
            else:
                traces = program.parts(simgrid_part)
                counts = write_simgrid(folder, opened.summary.num_wth, traces)
            counts, counted = {"sebs": len(program.workload.sebs), **counts}, program.lacking
            if network is not None:
                remarks += program.workload.without_effect([network])
        elif options.to == "chrome":
            make = ChromeMaker(opened.summary.num_wth, np.array(pes))
            counted = write_trace(folder, parts(make))
            counts = {kind: counted[kind] for kind in SEB_KINDS}
        else:
            counts = write_tables(folder, options.to, parts(partial(tables_part, options.to)))
    without_overlaps = f"export what `rewritelog replay` writes with {spelled('write')}"
    left_out = _about_left_out(counted, without_overlaps)
    warnings = [*about_malformed(malformed), *left_out, *remarks]
    warnings += _about_time(options, counts)
    return Exported(options.out, options.to, len(pes), counts, tuple(warnings))


def _about_left_out(counts: Counter[str], without_overlaps: str) -> Iterator[str]:
    for kind, (noun, text) in _WARNINGS.items():
        if counts[kind]:
            counted = count_text(counts[kind], noun)
            yield text.format(counted, without_overlaps=without_overlaps)


def _about_time(options: ExportCommand, counts: Mapping[str, int]) -> Iterator[str]:
    if options.interval != ALWAYS and not any(counts.values()):
        interval = f"{spelled('from_s')} and {spelled('until_s')}"
        yield f"nothing is exported: nothing runs between {interval}"


def _export_traces(traces: Traces, options: ExportCommand, network: Network | None) -> Exported:
    """Write `trace.json` into a new folder, with the recorded start times, or those of a replay."""
    if options.to != "chrome":
        raise UsageError(
            f"{spelled('to', options.to)} is for bgTrace logs: {traces.title} have "
            f"{spelled('to', 'chrome')}"
        )
    ranks = set(chosen_pes(options.pes, traces.pes, traces.terms.lane) or traces.pes)
    units = [unit for unit in traces.files if unit.rank in ranks]
    run, of_replay, first_us = None, list[str](), 0
    if network is not None:
        prepared = prepare(traces, DurationOptions(), recorded=network.recorded)
        run = replay_workload(prepared.workload, prepared.case(network))
        of_replay = prepared.workload.warnings([network], [run])
    elif options.interval != ALWAYS:
        first_us = min(filter(None, traces.map(first_start_us)), default=0)
    from_s, until_s = options.interval
    interval_us = first_us + 1e6 * from_s, first_us + 1e6 * until_s

    def events() -> Iterator[TraceEvents]:
        for unit in units:
            for part in traces.read(unit):
                yield node_events(traces, part, run, interval_us)
            yield rank_name(unit.rank)

    with new_folder(options.out, force=options.force) as folder:
        counted = write_trace(folder, events())
        counts, left_out = {"nodes": counted["nodes"]}, counted["left out"]
        if left_out and not counted["timed"]:
            if network is not None:
                all_wait = "no node runs in the replay: all wait for something that never ends"
                raise RewriteLogError(f"{traces.path}: {all_wait}")
            raise UsageError(
                f"{traces.path}: no start times are recorded, so there is no time axis: "
                f"{spelled('replayed', True)} takes those of a replay"
            )
    without_overlaps = f"{spelled('replayed', True)} takes the times of a replay"
    warnings = [*of_replay, *_about_left_out(counted, without_overlaps)]
    warnings += _about_time(options, counts)
    if left_out and run is None:
        warnings.insert(0, f"{count_text(left_out, 'node')} left out: no start is recorded")
    return Exported(options.out, options.to, len(units), counts, tuple(warnings), traces.terms.lane)
