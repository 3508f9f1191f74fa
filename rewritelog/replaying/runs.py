"""A table over many runs: each log set replayed in the same network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rewritelog.paths import relative_paths
from rewritelog.replaying.report import ReplayReport
from rewritelog.text import (
    NO_VALUE,
    Readable,
    TextTable,
    count_text,
    percent_text,
    printable,
    time_column,
    time_text,
)


@dataclass(frozen=True, repr=False)
class ReplayedRuns(Readable):
    """The replays of several log sets."""

    runs: tuple[ReplayReport, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of all replays."""
        return tuple(
            f"{printable(str(run.logs.path))}: {warning}"
            for run in self.runs
            for warning in run.warnings
        )

    def to_json(self) -> dict[str, Any]:
        """Return the reports as a JSON object."""
        return {"runs": [run.to_json() for run in self.runs], "warnings": list(self.warnings)}

    @property
    def heads(self) -> tuple[str, ...]:
        """What is compared of runs; speedups are over the first one."""
        terms = self.runs[0].logs.terms
        path = f"path in {terms.transfer}"
        return ("run", f"{terms.lane}s", "predicted", "speedup", "busy", path)

    def rows(self) -> list[tuple[str, ...]]:
        """Return what is compared of each run as texts, under `heads`."""
        times = time_column([run.predicted_s for run in self.runs])
        first_s = self.runs[0].predicted_s
        names = relative_paths([run.logs.path for run in self.runs])
        return [
            (
                printable(name),
                f"{run.pes:,}",
                time,
                f"{first_s / run.predicted_s:.3f}" if run.predicted_s > 0 else NO_VALUE,
                percent_text(run.utilisation, 1),
                percent_text(_path_in_messages(run), 1),
            )
            for name, run, time in zip(names, self.runs, times, strict=True)
        ]

    def text(self) -> str:
        """Return the table, and the network."""
        best = min(self.runs, key=lambda run: run.predicted_s)
        name, count = printable(str(best.logs.path)), count_text(len(self.runs), "run")
        lines = [
            f"Shortest of {count}: {name}, {time_text(best.predicted_s)}",
            f"  network: {printable(best.network.text())}",
            "",
            str(TextTable(self.heads, self.rows())),
        ]
        return "\n".join(lines)


def _path_in_messages(run: ReplayReport) -> float | None:
    """Return the share of the critical path that messages are under way."""
    if not run.predicted_s > 0:
        return None
    return run.communication_s / run.predicted_s
