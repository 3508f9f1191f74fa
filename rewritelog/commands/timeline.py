"""`rewritelog timeline`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import ENGINE, Printing, Shell, function
from rewritelog.commands.shared import OUTPUT, Logs, Seed, Selection
from rewritelog.options import argument, declared, option

if TYPE_CHECKING:
    from pathlib import Path

    from rewritelog.api.arguments import LogsLike, PathLike


@declared
class Timeline(Seed, Selection, Logs, Printing[bytes]):
    """Draw the SEBs of each PE over time, coloured by name, with brackets and messages.

    >>> picture = rewritelog.timeline("sample_logs/cells", pes=range(4))  # doctest: +SKIP
    """

    shell = ENGINE | {"quiet"}

    output: PathLike | None = argument(
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

    def run(self) -> bytes:
        """Return the picture, and write it to the output if there is one."""
        from rewritelog.api.arguments import to_output

        return self._draw(to_output(self.output, "the picture"), self.kind)

    def print(self, shell: Shell) -> int:
        """Write the picture, and print its size."""
        from rewritelog.api.arguments import to_output
        from rewritelog.text import bytes_text, printable

        path = to_output(self.output, "the picture")
        piped = shell.is_stdout(path)
        drawn = self._draw(path, "svg" if piped else None)
        if not (shell.quiet or piped):
            shell.write(f"{printable(str(path))}: {bytes_text(len(drawn))}\n")
        return 0

    def _draw(self, path: Path | None, kind: str | None) -> bytes:
        from rewritelog.api.logs import open_logs
        from rewritelog.viewing.draw import draw_timeline
        from rewritelog.viewing.timeline import TimelineOptions

        sets = [open_logs(one) for one in (self.logs, self.against) if one is not None]
        options = TimelineOptions(self.chosen_pes(sets[0]), from_s=self.from_s, to_s=self.until_s)
        return draw_timeline(sets, path, kind, options, messages=self.messages, seed=self.seed)


timeline = function(Timeline)
