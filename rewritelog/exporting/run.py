"""The complete job of an export: a folder with the files of one format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from pathlib import Path
from typing import TypeVar

import numpy as np

from rewritelog.exporting.chrome import ChromeMaker, write_trace
from rewritelog.exporting.contents import Contents, map_contents
from rewritelog.exporting.exported import Exported
from rewritelog.exporting.goal import GoalMaker, GoalPart, operation_counts, write_goal
from rewritelog.exporting.matching import matched
from rewritelog.exporting.options import SIMULATORS, ExportOptions
from rewritelog.exporting.programs import StepMaker
from rewritelog.exporting.simgrid import KINDS as SIMGRID_KINDS
from rewritelog.exporting.simgrid import SimgridMaker, SimgridPart, SimgridWriter
from rewritelog.exporting.tables import TablesWriter, arrow_tables, check_parquet, csv_tables
from rewritelog.exporting.trace_chrome import export_traces
from rewritelog.formats.bgtrace.logset import LogSet, open_logs
from rewritelog.formats.bgtrace.params import list_params
from rewritelog.formats.bgtrace.pes import chosen_pes
from rewritelog.formats.traces import Traces
from rewritelog.output import new_folder
from rewritelog.replaying.network import Network
from rewritelog.replaying.order import replayed_order
from rewritelog.text import count_text


def export(
    logs: LogSet | Path | str,
    out: Path,
    options: ExportOptions,
    network: Network | None = None,
    *,
    force: bool = False,
) -> Exported:
    """Write a log set into the folder `out` in another format.

    A simulator gets the SEBs of a PE in their order in a replay over `network`, else any order.
    Memory is needed for a part of a timeline and for the messages of one PE. Raise `UsageError` for
    contradictory options, `DamagedLogError` for damaged logs, `TimingError` if a param file cannot
    be read, and `OutputError` as `new_folder` does.
    """
    options.check(network)
    if options.to == "parquet":
        check_parquet()
    opened = open_logs(logs)
    total = len(opened.pes)
    pes = chosen_pes(options.pes, total)
    job = _Job(opened, options, network, list(range(total) if pes is None else pes))
    inputs = [opened.folder, *([options.params] if options.params else [])]
    with new_folder(out, inputs, force=force) as folder:
        if options.to in SIMULATORS:
            counts, warnings = job.to_simulator(folder)
        elif options.to == "chrome":
            counts, warnings = job.to_chrome(folder)
        else:
            counts, warnings = job.to_tables(folder)
    return Exported(out, options.to, len(job.pes), counts, warnings)


Result = TypeVar("Result")
Part = TypeVar("Part", GoalPart, SimgridPart)
Written = tuple[dict[str, int], tuple[str, ...]]


@dataclass(frozen=True)
class _Job:
    logs: LogSet
    options: ExportOptions
    network: Network | None
    pes: list[int]

    def _map(self, work: Callable[[Contents], Result]) -> Iterator[Result]:
        params = list_params(self.options.params or self.logs.folder)
        return map_contents(self.logs, self.pes, self.options, params, work, "exporting")

    def to_tables(self, folder: Path) -> Written:
        """Write one file for each table."""
        with TablesWriter(folder, self.options.to) as writer:
            for tables in self._map(csv_tables if self.options.to == "csv" else arrow_tables):
                writer.write(tables)
        return writer.counts, ()

    def to_chrome(self, folder: Path) -> Written:
        """Write `trace.json`."""
        with (
            matched(self.logs, folder) as matching,
            (folder / "trace.json").open("x", encoding="ascii") as file,
        ):
            exported = np.isin(self.logs.pes, self.pes)
            workers = self.logs.summary.num_wth
            make = ChromeMaker(workers, matching, self.options, exported)
            counts = write_trace(file, self._map(make))
        left_out = counts.pop("left out")
        if left_out:
            return counts, (f"{count_text(left_out, 'SEB')} left out: a time is not finite",)
        return counts, ()

    def to_simulator(self, folder: Path) -> Written:
        """Write `program.goal`, or a trace of each PE for SimGrid."""
        order = None if self.network is None else replayed_order(self.logs, self.network)
        found: Counter[str] = Counter()
        with matched(self.logs, folder) as matching:
            program = StepMaker(matching, order)
            if self.options.to == "goal":
                with (folder / "program.goal").open("xb") as file:
                    parts = _counted(self._map(GoalMaker(program)), found)
                    counts = operation_counts(write_goal(file, len(self.logs.pes), parts))
            else:
                writer = SimgridWriter(folder, self.logs.summary.num_wth, order)
                for part in _counted(self._map(SimgridMaker(program)), found):
                    writer.write(part)
                counts = {name: writer.counts[name] for name in SIMGRID_KINDS}
        return {"SEBs": found["steps"], **counts}, tuple(_warnings(found))


def _counted(parts: Iterable[Part], found: Counter[str]) -> Iterator[Part]:
    """Yield parts, and add up what they count."""
    for part in parts:
        found.update(part.counts)
        yield part


def _warnings(found: Counter[str]) -> Iterator[str]:
    """Yield warnings of what a simulation lacks."""
    if found["not sent"]:
        sebs = count_text(found["not sent"], "SEB")
        yield f"{sebs} started by a message that is never sent, and exported without it"
    if found["not received"]:
        yield f"left out: {count_text(found['not received'], 'message')} without a SEB to start"
    if found["invalid"]:
        many = count_text(found["invalid"], "dependency", "dependencies")
        yield f"left out: {many} not on an earlier SEB"


@singledispatch
def export_opened(
    source: LogSet | Traces,
    out: Path,
    options: ExportOptions,
    network: Network | None,
    *,
    force: bool = False,
) -> Exported:
    """Export what has been opened."""
    raise NotImplementedError


export_opened.register(LogSet, export)
export_opened.register(Traces, export_traces)
