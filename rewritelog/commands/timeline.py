"""`rewritelog timeline`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import ENGINE, Printing, Shell, function
from rewritelog.commands.shared import OUTPUT, Logs, Seed, Selection
from rewritelog.options import argument, declared, option

if TYPE_CHECKING:
    from rewritelog.api.arguments import LogsLike, OutputPath
    from rewritelog.viewing.picture import Picture


@declared
class Timeline(Seed, Selection, Logs, Printing["Picture"]):
    """Draw the SEBs of each PE over time, coloured by name, with brackets and messages.

    >>> picture = rewritelog.timeline("sample_logs/cells", pes=range(4))  # doctest: +SKIP
    """

    shell = ENGINE | {"quiet"}

    output: OutputPath | None = argument(
        "The picture: .png, .svg, .pdf or .html (for -, SVG); - is standard output.",
        metavar="FILE", positional=False, default=None, names=("--output", "-o"), group=OUTPUT,
        kw_only=False, needed=True,
    )  # fmt: skip
    kind: str | None = option(
        "png, svg, pdf or html; by default what the name of the output says, else svg.",
        default=None, shell=False,
    )  # fmt: skip
    against: LogsLike | None = option(
        "A second log folder, drawn below on the same time axis.", default=None, metavar="LOGS"
    )
    messages: bool = option(
        "Draw messages as lines; if there are many, a random part of them.", default=False
    )

    def run(self) -> Picture:
        """Return the picture, and write it to the output if there is one."""
        return self._draw(self.kind)

    def print(self, shell: Shell) -> int:
        """Write the picture, and print its size."""
        from rewritelog.text import bytes_text, printable

        piped = shell.is_stdout(self.output)
        drawn = self._draw("svg" if piped else None)
        if not (shell.quiet or piped):
            shell.write(f"{printable(str(self.output))}: {bytes_text(len(drawn))}\n")
        return 0

    def _draw(self, kind: str | None) -> Picture:
        from rewritelog.viewing.draw import draw_timeline
        from rewritelog.viewing.timeline import TimelineOptions

        given = self.given
        sets = [one for one in (given.logs, given.against) if one is not None]
        options = TimelineOptions(self.chosen_pes(sets[0]), from_s=self.from_s, to_s=self.until_s)
        return draw_timeline(
            sets, given.output, kind, options, messages=self.messages, seed=self.seed
        )


timeline = function(Timeline)
