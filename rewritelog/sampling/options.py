"""The options of a sample."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rewritelog.errors import UsageError
from rewritelog.models.options import SampleMethod
from rewritelog.sampling.selection import Plan


@dataclass(frozen=True)
class SampleOptions:
    """The options of `sample`."""

    fraction: float = 0.02
    method: SampleMethod = "design"
    seed: int = 1
    floor: int = 5
    replicates: int = 1
    """How often some points of each event are measured, if their spread is unknown."""
    params: Path | None = None
    """The folder of the `param.P` files; None for that of the logs."""
    timings: tuple[Path, ...] = ()
    """Files of timing lines that exist already."""
    clock_hz: float | None = None
    formulas: Path | None = None
    strict: bool = False
    jobs: int = 0
    """The number of threads; 0 means one for each core."""

    def __post_init__(self) -> None:
        """Raise `UsageError` for invalid numbers."""
        if self.replicates < 1:
            raise UsageError(f"the replicates must be at least 1, not {self.replicates}")
        self.plan()

    def plan(self) -> Plan:
        """Return the plan of the choice."""
        return Plan(self.fraction, self.method, self.seed, self.floor)
