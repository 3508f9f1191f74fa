"""`rewritelog synth`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rewritelog.commands.command import Command, function, same_fields
from rewritelog.commands.shared import OUT_HELP, VERSION_HELP, Flush, Force, Jobs, Seed
from rewritelog.options import argument, declared, option

if TYPE_CHECKING:
    from rewritelog.api.arguments import OutputPath
    from rewritelog.synthesis.synth import Synthesis


@declared
class Synth(Flush, Force, Jobs, Seed, Command["Synthesis"]):
    """Generate a realistic log set with params and a timings file.

    >>> rewritelog.synth("made", pes=4, sebs=100)  # doctest: +SKIP
    """

    out: OutputPath = argument(OUT_HELP, metavar="OUT", kw_only=False)
    pes: int = option("Number of emulated PEs.", default=16)
    sebs: int = option("SEBs per PE.", default=1000)
    messages: float = option("Mean number of messages per SEB.", default=0.6, metavar="MEAN")
    files: int = option("Number of timeline files.", default=2)
    wth: int = option("Worker threads per node.", default=1)
    size: int = option(
        "Cells of the domain that the PEs share; work and messages grow with a PE's part "
        "[default: 1000 per PE].",
        default=0, metavar="D", least=0,
    )  # fmt: skip
    byte_order: Literal["little", "big"] = option("The byte order to write.", default="little")
    log_version: int = option(f"{VERSION_HELP}.", default=6)
    bracketed: float = option(
        "Share of SEBs that have a bracket and a param record.",
        default=0.0926, shell=False,
    )  # fmt: skip
    timings: int = option("Number of timing lines.", default=600, shell=False)

    def run(self) -> Synthesis:
        """Write the folder; return its size."""
        from rewritelog.cores import limited_to
        from rewritelog.synthesis.synth import SynthOptions, synthesise

        options = same_fields(SynthOptions, self, order=self.byte_order)
        with limited_to(self.jobs):
            return synthesise(self.given.out, options, force=self.force, flush=not self.no_flush)


synth = function(Synth)
