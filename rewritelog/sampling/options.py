"""The options of a sample; without heavy imports, because the command line reads them first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from rewritelog.options import (
    MODEL,
    Jobs,
    OptionalInput,
    OptionalInputs,
    ParamsFolder,
    Seed,
    option,
)
from rewritelog.timings.options import Reading

if TYPE_CHECKING:
    from rewritelog.sampling.selection import Plan

SampleMethod: TypeAlias = Literal["design", "coverage", "random"]
"""How the SEBs to be timed are chosen among those of an event."""


class SampleOptions(Reading, Jobs, Seed, ParamsFolder):
    """The options of `sample`; raises `UsageError` for invalid numbers."""

    timings: OptionalInputs = option(
        "Files of timing lines that exist already; - is standard input.",
        default=None, metavar="FILE...", group=MODEL,
    )  # fmt: skip
    fraction: float = option(
        "Share of all SEBs with a param record, in (0, 1].", default=0.02, metavar="SHARE"
    )
    method: SampleMethod = option(
        "design: half where a fit is least certain, half spread over the parameters; coverage: "
        "spread over the parameters; random: at random.",
        default="design",
    )  # fmt: skip
    floor: int = option(
        "Choose at least N SEBs of each event and category, if there are as many.", default=5
    )
    formulas: OptionalInput = option(
        "A formulas file: SEBs are chosen from each category, to span its terms.",
        default=None, rare=True,
    )  # fmt: skip
    replicates: int = option(
        "Choose some parameters of each event N times, if they recur.",
        default=1, rare=True, least=1,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        self.plan()

    def plan(self) -> Plan:
        """Return the plan of the choice."""
        from rewritelog.sampling.selection import Plan  # noqa: PLC0415 - imports numpy

        return Plan(self.fraction, self.method, self.seed, self.floor)
