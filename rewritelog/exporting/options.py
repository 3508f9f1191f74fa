"""The options of an export."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from rewritelog.errors import UsageError
from rewritelog.replaying.network import Network

Target: TypeAlias = Literal["chrome", "parquet", "csv", "goal", "simgrid"]

SIMULATORS: tuple[Target, ...] = ("goal", "simgrid")
"""Targets that need the whole program: a part of it would wait for messages forever."""


@dataclass(frozen=True)
class ExportOptions:
    """The selection of what is exported, and the format."""

    to: Target
    pes: str | Sequence[int] | None = None
    """PEs, or ranges of them as in `0-31,40`; None for all."""
    from_s: float = -math.inf
    to_s: float = math.inf
    """The end of the interval; SEBs that end before it or start after it are left out."""
    params: Path | None = None
    """The folder of the param files; None for that of the logs."""
    replayed: Network | None = None
    """The network of the replay whose order of SEBs a simulator gets; None for its usual order."""

    def check(self) -> None:
        """Raise `UsageError` for an unknown format or contradictory options."""
        if self.to not in get_args(Target):
            raise UsageError(f"unknown format {self.to!r}; known: {', '.join(get_args(Target))}")
        if math.isnan(self.from_s) or math.isnan(self.to_s) or self.from_s > self.to_s:
            raise UsageError(f"--from {self.from_s} is not before --until {self.to_s}")
        if self.to in SIMULATORS and (self.pes is not None or self.has_interval):
            raise UsageError(
                f"--pes, --from and --until cannot be combined with --to {self.to}, which exports "
                "the complete program"
            )

        if self.to not in SIMULATORS and self.replayed is not None:
            raise UsageError(f"--replayed is for {' and '.join(SIMULATORS)}, not for {self.to}")

    @property
    def has_interval(self) -> bool:
        """Whether SEBs are selected by time."""
        return self.from_s > -math.inf or self.to_s < math.inf
