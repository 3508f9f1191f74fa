"""The options of an export."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

from rewritelog.errors import UsageError
from rewritelog.options import ParamsFolder, Selection, option

if TYPE_CHECKING:
    from rewritelog.replaying.network import Network

Target: TypeAlias = Literal["chrome", "parquet", "csv", "goal", "simgrid"]

SIMULATORS: tuple[Target, ...] = ("goal", "simgrid")
"""Targets that need the whole program: a part of it would wait for messages forever."""


class ExportOptions(ParamsFolder, Selection):
    """The format, and the selection of what is exported."""

    to: Target = option(
        "chrome: JSON for Perfetto and chrome://tracing; parquet, csv: tables; goal: LogGOPSim; "
        "simgrid: smpirun -replay.",
        kw_only=False,
    )

    @property
    def begin_s(self) -> float:
        """The begin of the interval; SEBs that end before it are left out."""
        return -math.inf if self.from_s is None else self.from_s

    @property
    def end_s(self) -> float:
        """The end of the interval; SEBs that start after it are left out."""
        return math.inf if self.until_s is None else self.until_s

    def check(self, network: Network | None) -> None:
        """Raise `UsageError` for contradictory options."""
        if math.isnan(self.begin_s) or math.isnan(self.end_s) or self.begin_s > self.end_s:
            raise UsageError(f"--from {self.begin_s} s is not before --until {self.end_s} s")
        if self.to in SIMULATORS and (self.pes is not None or self.has_interval):
            raise UsageError(
                f"--pes, --from and --until cannot be combined with --to {self.to}, which exports "
                "the complete program"
            )
        if network is not None and self.to not in SIMULATORS:
            raise UsageError(f"--replayed is for {' and '.join(SIMULATORS)}, not for {self.to}")

    @property
    def has_interval(self) -> bool:
        """Whether SEBs are selected by time."""
        return self.begin_s > -math.inf or self.end_s < math.inf
