"""Studies: the lost cycles of several runs as timing lines, with P and variables as parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewritelog.errors import OutputError, UsageError
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.models.base import LOST, PES
from rewritelog.progress import report_progress
from rewritelog.replaying.lost_cycles import LostCycles, lost_cycles
from rewritelog.replaying.network import Network
from rewritelog.replaying.options import LostTimeOptions
from rewritelog.replaying.prepare import prepare
from rewritelog.replaying.report import lost_table
from rewritelog.replaying.simulate import simulate
from rewritelog.text import Readable, count_text, printable, time_text
from rewritelog.units import number

_MOST_VARIABLES = 19
_HEAD = "# lost cycles; parameters: "


def variables_of(pairs: Sequence[tuple[str, str]]) -> tuple[tuple[str, float], ...]:
    """Return the variables sorted by name; raise `UsageError` for an invalid name or value."""
    values: dict[str, float] = {}
    for name, text in pairs:
        value = number(text, f"--var {name}")
        if name == PES:
            raise UsageError("--var P is not needed: P is the number of PEs")
        if not name.isidentifier():
            raise UsageError(f"--var {name}: invalid name: letters, digits and _ only")
        if name in values or not math.isfinite(value):
            problem = "is duplicated" if name in values else "must be finite"
            raise UsageError(f"--var {name} {problem}")
        values[name] = value
    if len(values) > _MOST_VARIABLES:
        raise UsageError(f"--var: at most {_MOST_VARIABLES} variables")
    return tuple(sorted(values.items()))


@dataclass(frozen=True, repr=False)
class StudyRun(Readable):
    """One run of a study."""

    logs: Path
    network: Network
    lost: LostCycles
    variables: tuple[tuple[str, float], ...]
    timings_out: Path | None
    never_run: int
    remarks: tuple[str, ...] = ()
    """Warnings of the model and the options."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, one sentence each."""
        warnings = list(self.remarks)
        if self.never_run:
            warnings.append(
                f"{count_text(self.never_run, 'SEB')} never ran: the times do not include them"
            )
        if self.variables and self.timings_out is None:
            warnings.append("--var is not used: only --timings-out writes the variables")
        return (*warnings, *self.lost.warnings)

    def to_json(self) -> dict[str, Any]:
        """Return the run as a JSON object."""
        return {
            "logs": str(self.logs),
            "network": self.network.to_json(),
            **self.lost.to_json(),
            "variables": dict(self.variables),
            "warnings": list(self.warnings),
        }

    def text(self) -> str:
        """Return the run as text."""
        lost = self.lost
        whole = lost.pes * lost.predicted_s
        useful = sum(s for name, s in lost.totals_s.items() if name.startswith("useful["))
        share = useful / whole if whole > 0 else 0.0
        total = f"{time_text(lost.predicted_s)} on {count_text(lost.pes, 'PE')}"
        lines = [
            f"Predicted run time: {total}; {100 * share:.1f} % of it in useful events",
            f"  network: {printable(self.network.text())}",
            "",
            lost_table(lost, ranges=True),
        ]
        if self.timings_out is not None:
            count = count_text(len(lost.categories), "timing line")
            lines += ["", f"{count} appended to {printable(str(self.timings_out))}"]
        return "\n".join(lines)

    def lines(self) -> str:
        """Return the timing lines of the run, one for each category, with times in PE-seconds."""
        values = (float(self.lost.pes), *(value for _, value in self.variables))
        params = " ".join(repr(value).removesuffix(".0") for value in values)
        return "".join(
            f"TRACEBIGSIM: event:{{ {LOST}{name} }}  time:{{ {seconds!r} }}  "
            f"params:{{ {params} }}\n"
            for name, seconds in self.lost.totals_s.items()
        )


@dataclass(frozen=True)
class Study:
    """A study: its variables, and the file of timing lines that runs are appended to."""

    variables: tuple[tuple[str, float], ...] = ()
    timings_out: Path | None = None

    def add(
        self,
        logs: LogSet | str | Path,
        network: Network,
        options: LostTimeOptions,
    ) -> StudyRun:
        """Replay a run, and append its categories to the file of the study.

        Raise a `RewriteLogError` for any invalid input; then nothing is appended.
        """
        self._check_file()
        prepared = prepare(logs, options)
        report_progress("replaying")
        outcome = simulate(prepared.workload, prepared.case(network))
        never = len(outcome.workload.sebs) - outcome.run
        lost = lost_cycles(outcome, options.lost_as)
        run = StudyRun(
            prepared.logs.folder,
            network,
            lost,
            self.variables,
            self.timings_out,
            never,
            prepared.warnings,
        )
        if self.timings_out is not None:
            self._append(self.timings_out, run.lines())
        return run

    @property
    def _head(self) -> str:
        return _HEAD + ", ".join((PES, *(name for name, _ in self.variables))) + "\n"

    def _check_file(self) -> None:
        """Raise `UsageError` before the work begins if the file's lines have other parameters."""
        path = self.timings_out
        if path is None:
            return
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                head = file.readline(1000)
        except FileNotFoundError:
            return
        except OSError as error:
            raise OutputError(f"{path}: cannot be read: {error.strerror}") from error
        if head and head != self._head:
            raise UsageError(
                f"{path}: begins with {printable(head.rstrip())!r}, but this run's lines need "
                f"{self._head.rstrip()!r}: give the same --var options, or another file"
            )

    def _append(self, path: Path, lines: str) -> None:
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(lines if file.tell() else self._head + lines)
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
