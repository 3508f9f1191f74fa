"""Studies: lost cycles of several runs as timing lines; parameters are P (PEs) and variables."""

from __future__ import annotations

import math
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from rewritelog.commands.runs import LostCyclesCommand
from rewritelog.errors import OutputError, UsageError, spelled
from rewritelog.formats.bgtrace.params import list_params
from rewritelog.formats.files import read_provenance
from rewritelog.models.base import LOST, PES, study_head
from rewritelog.models.expressions import FormulaError, Origin, checked_names
from rewritelog.options import settings
from rewritelog.output.files import descriptor_of, write_file
from rewritelog.progress import report_progress
from rewritelog.replaying.lost_cycles import LostCycles, lost_cycles
from rewritelog.replaying.network import Network
from rewritelog.replaying.replay import prepare, replay_workload
from rewritelog.replaying.report import lost_table
from rewritelog.text import Readable, count_text, percent_text, printable, share_of, time_text
from rewritelog.units import number
from tracebigsim.errors import LineFormatError
from tracebigsim.writing import format_line

Variables: TypeAlias = tuple[tuple[str, float], ...]
"""Names and values of a run's variables, sorted by name."""


def variables_of(variables: object, what: str) -> Variables:
    """Return the variables sorted by name; raise `UsageError` for an invalid name or value."""
    values: dict[str, float] = {}
    for name, text in settings(variables, what).items():
        values[name] = number(text, f"{what} {name}")
        if name == PES:
            raise UsageError(f"{what} P is not needed: P is the number of PEs")
        if not math.isfinite(values[name]):
            raise UsageError(f"{what} {name} must be finite")
    try:
        checked_names([(name, Origin()) for name in (PES, *sorted(values))])
    except FormulaError as error:
        raise UsageError(f"{what}: {error.problem}") from error
    return tuple(sorted(values.items()))


@dataclass(frozen=True, repr=False, eq=False)
class StudyRun(Readable):
    """One run of a study."""

    logs: Path
    network: Network
    lost: LostCycles
    variables: Variables
    timings_out: Path | None
    remarks: tuple[str, ...] = ()
    """Warnings of the model, of the options, and of the replay."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, one sentence each."""
        warnings = list(self.remarks)
        if self.variables and self.timings_out is None:
            writes = f"only {spelled('timings_out')} writes the variables"
            warnings.append(f"{spelled('variables')} is not used: {writes}")
        return (*warnings, *self.lost.warnings)

    def to_json(self) -> dict[str, Any]:
        """Return the run as a JSON object."""
        return {
            "logs": str(self.logs),
            "network": self.network.to_json(),
            **self.lost.to_json(),
            "variables": dict(self.variables),
            "timings_out": None if self.timings_out is None else str(self.timings_out),
            "warnings": list(self.warnings),
        }

    def text(self) -> str:
        """Return the run as text."""
        lost = self.lost
        whole = lost.pes * lost.predicted_s
        useful = sum(s for name, s in lost.totals_s.items() if name.startswith("useful["))
        share = percent_text(share_of(useful, whole), 1)
        total = f"{time_text(lost.predicted_s)} on {count_text(lost.pes, 'PE')}"
        lines = [
            f"Predicted run time: {total}; {share} of it in useful events",
            f"  network: {printable(self.network.text())}",
        ]
        if table := lost_table(lost, ranges=True):
            lines += ["", table]
        if self.timings_out is not None:
            count = count_text(len(lost.categories), "timing line")
            lines += ["", f"{count} appended to {printable(str(self.timings_out))}"]
        return "\n".join(lines)

    def lines(self) -> str:
        """Return the timing lines of the run, one for each category, with times in PE-seconds."""
        values = (self.lost.pes, *(value for _, value in self.variables))
        totals = self.lost.totals_s.items()
        return "".join(format_line(f"{LOST}{name}", values, time_s=s) for name, s in totals)


def study_run(command: LostCyclesCommand) -> StudyRun:
    """Replay a run of a study, and append its categories to the study's file of timing lines.

    The parameters of the lines are P, the number of PEs, and the variables. Raise a
    `RewriteLogError` for any invalid input; then nothing is appended.
    """
    network, timings_out, variables = command.read_network(), command.timings_out, command.variables
    head = study_head((PES, *(name for name, _ in variables)))
    if timings_out is not None:
        _check_file(timings_out, head)
    prepared = prepare(command.logs, command)
    report_progress("replaying")
    outcome = replay_workload(prepared.workload, prepared.case(network))
    lost = lost_cycles(outcome, command.lost_as)
    folder = prepared.logs.folder
    warnings = prepared.warnings_of([outcome], [network])
    records = list_params(command.params or folder).pes
    if not records and read_provenance(folder) is not None:
        without = "was rewritten without its param files, so that work in brackets is no event's"
        warnings = (*warnings, f"{folder} {without}: name their folder with {spelled('params')}")
    run = StudyRun(folder, network, lost, variables, timings_out, warnings)
    if timings_out is not None:
        try:
            lines = run.lines()
        except LineFormatError as error:
            raise OutputError(f"{timings_out}: no line can hold a result: {error}") from error
        _append(timings_out, head, lines)
    return run


def _append(path: Path, head: str, lines: str) -> None:
    """Append the lines of a run, after the head in a new file; after an error restore the file."""
    if _is_captured(path):
        write_file(path, (head + lines).encode())
        return
    is_new, size = not path.exists(), path.stat().st_size if path.is_file() else 0
    try:
        with path.open("ab") as file:
            file.write((_line_end(path) + lines if size else head + lines).encode())
    except OSError as error:
        with suppress(OSError):
            if is_new:
                path.unlink()
            else:
                os.truncate(path, size)
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error


def _is_captured(path: Path) -> bool:
    """Return whether a path is standard output, and Python has another one, as in a notebook."""
    return descriptor_of(path) == 1 and sys.stdout is not sys.__stdout__


def _line_end(path: Path) -> str:
    """Return what ends the last line of a file, if nothing does yet."""
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return "" if file.read() == b"\n" else "\n"


def _check_file(path: Path, head: str) -> None:
    """Raise `UsageError` before the work begins if the file's lines have other parameters."""
    try:
        is_stream = path.exists() and not (path.is_file() or path.is_dir())
        if is_stream or _is_captured(path):
            return  # reading would wait, or take what is for another reader
        with path.open(encoding="utf-8", errors="replace") as file:
            first_line = file.readline(len(head) + 1000)
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputError(f"{path}: cannot be read: {error.strerror}") from error
    if first_line and first_line != head:
        raise UsageError(
            f"{path}: begins with {first_line.rstrip()!r}, but this run's lines need "
            f"{head.rstrip()!r}: give the same {spelled('variables')} options, or another file"
        )
