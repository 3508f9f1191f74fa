"""The complete job of an export: a folder with the files of one format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rewritelog.exporting.chrome import ChromeWriter
from rewritelog.exporting.contents import Contents, stream
from rewritelog.exporting.goal import GoalWriter
from rewritelog.exporting.matching import matched
from rewritelog.exporting.options import SIMULATORS, ExportOptions
from rewritelog.exporting.programs import StepMaker
from rewritelog.exporting.simgrid import SimgridWriter
from rewritelog.exporting.tables import TablesWriter, check_parquet
from rewritelog.logs.logset import LogSet, open_logs
from rewritelog.logs.params import list_params
from rewritelog.logs.pes import parse_pes
from rewritelog.output import new_folder
from rewritelog.replaying.order import replayed_order
from rewritelog.text import count_text, printable


@dataclass(frozen=True)
class Exported:
    """The results of an export."""

    folder: Path
    to: str
    pes: int
    counts: dict[str, int]
    """The numbers of records written, by kind."""
    warnings: tuple[str, ...] = ()

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
        counts = ", ".join(f"{count:,} {kind}" for kind, count in self.counts.items())
        return f"{self.folder}: {count_text(self.pes, 'PE')} for {self.to}: {counts}"


def export(
    logs: LogSet | Path | str,
    out: Path,
    options: ExportOptions,
    *,
    force: bool = False,
) -> Exported:
    """Write a log set into the folder `out` in another format.

    Memory is needed for a part of a timeline and for the messages of one PE. Raise `UsageError` for
    contradictory options, `DamagedLogError` for damaged logs, `TimingError` if a param file cannot
    be read, and `OutputError` as `new_folder` does.
    """
    options.check()
    if options.to == "parquet":
        check_parquet()
    opened = open_logs(logs)
    total = len(opened.pes)
    pes = parse_pes(options.pes, total) if isinstance(options.pes, str) else options.pes
    job = _Job(opened, options, list(range(total) if pes is None else pes))
    inputs = [opened.folder, *([options.params] if options.params else [])]
    with new_folder(out, inputs, force=force) as folder:
        if options.to in SIMULATORS:
            counts, warnings = job.to_simulator(folder)
        elif options.to == "chrome":
            counts, warnings = job.to_chrome(folder)
        else:
            counts, warnings = job.to_tables(folder)
    return Exported(out, options.to, len(job.pes), counts, warnings)


Written = tuple[dict[str, int], tuple[str, ...]]


@dataclass(frozen=True)
class _Job:
    logs: LogSet
    options: ExportOptions
    pes: list[int]

    def _contents(self) -> Iterator[Contents]:
        params = list_params(self.options.params or self.logs.folder)
        return stream(self.logs, self.pes, self.options, params, "exporting PE")

    def to_tables(self, folder: Path) -> Written:
        """Write one file for each table."""
        with TablesWriter(folder, self.options.to) as writer:
            for contents in self._contents():
                writer.write(contents)
        return writer.counts, ()

    def to_chrome(self, folder: Path) -> Written:
        """Write `trace.json`."""
        with (
            matched(self.logs, folder) as matching,
            (folder / "trace.json").open("x", encoding="ascii") as file,
        ):
            exported = np.isin(self.logs.pes, self.pes)
            writer = ChromeWriter(file, self.logs, matching, self.options, exported)
            writer.begin()
            for contents in self._contents():
                writer.write(contents)
            writer.end()
        left_out = writer.counts.pop("left out")
        if left_out:
            return writer.counts, (f"{count_text(left_out, 'SEB')} left out: a time is not finite",)
        return writer.counts, ()

    def to_simulator(self, folder: Path) -> Written:
        """Write `program.goal`, or a trace of each PE for SimGrid."""
        network = self.options.replayed
        order = None if network is None else replayed_order(self.logs, network)
        with matched(self.logs, folder) as matching:
            program = StepMaker(matching, order)
            if self.options.to == "goal":
                with (folder / "program.goal").open("xb") as file:
                    return self._run(program, GoalWriter(file, len(self.logs.pes)))
            writer = SimgridWriter(folder, self.logs.summary.num_wth, order)
            return self._run(program, writer)

    def _run(self, program: StepMaker, writer: GoalWriter | SimgridWriter) -> Written:
        writer.begin()
        for contents in self._contents():
            writer.write(contents, program.steps_of(contents))
        writer.end()
        return {"SEBs": program.steps, **writer.counts}, tuple(_warnings(program))


def _warnings(program: StepMaker) -> Iterator[str]:
    """Yield warnings of what a simulation lacks."""
    if program.not_sent:
        sebs = count_text(program.not_sent, "SEB")
        yield f"{sebs} started by a message that is never sent, and exported without it"
    if program.not_received:
        yield f"left out: {count_text(program.not_received, 'message')} without a SEB to start"
    if program.invalid_dependencies:
        many = count_text(program.invalid_dependencies, "dependency", "dependencies")
        yield f"left out: {many} not on an earlier SEB"
