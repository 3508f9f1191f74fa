"""`rewritelog synth`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import Command, function
from rewritelog.commands.shared import Out
from rewritelog.options import Flush, Force, Jobs, declared
from rewritelog.synthesis.options import SynthOptions

if TYPE_CHECKING:
    from rewritelog.synthesis.synth import Synthesis


@declared
class Synth(Flush, Force, Jobs, SynthOptions, Out, Command["Synthesis"]):
    """Generate a realistic log set with params and a timings file.

    >>> rewritelog.synth("made", pes=4, sebs=100)  # doctest: +SKIP
    """

    def run(self) -> Synthesis:
        """Write the folder; return its size."""
        from rewritelog.cores import limited_to
        from rewritelog.synthesis.synth import synthesise

        with limited_to(self.jobs):
            return synthesise(self.opened.out, self, force=self.force, flush=not self.no_flush)


synth = function(Synth)
