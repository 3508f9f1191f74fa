"""The options of `synth`; without heavy imports, because the command line reads them first."""

from __future__ import annotations

from typing import Literal

from rewritelog.options import Seed, option

CELLS_OF_A_PE = 1000
VERSION_HELP = "The log version to write, 0 to 6"


class SynthOptions(Seed):
    """The options of `synth`; the defaults have the proportions of real logs."""

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
        "Share of SEBs that have a bracket and a param record.", default=0.0926, shell=False
    )
    timings: int = option("Number of timing lines.", default=600, shell=False)

    @property
    def cells(self) -> int:
        """The number of cells per PE."""
        return max(self.size // self.pes, 1) if self.size else CELLS_OF_A_PE

    @property
    def nodes(self) -> int:
        """The number of emulated nodes."""
        return self.pes // self.wth
