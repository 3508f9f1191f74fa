"""`rewritelog timeline`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rewritelog.commands.command import ENGINE, Printing, Shell, function
from rewritelog.commands.shared import Logs, OptionalLogs
from rewritelog.options import (
    OUTPUT,
    OptionalOutput,
    Seed,
    Selection,
    argument,
    declared,
    option,
)

if TYPE_CHECKING:
    from rewritelog.viewing.picture import Picture


@declared
class Timeline(Seed, Selection, Logs, Printing["Picture"]):
    """Draw the SEBs of each PE over time, coloured by event or name, with messages.

    >>> picture = rewritelog.timeline("sample_logs/cells", pes=range(4))  # doctest: +SKIP
    """

    shell = ENGINE | {"quiet", "as_json"}

    output: OptionalOutput = argument(
        "The picture: .png, .svg, .pdf or .html (for -, SVG); - is standard output.",
        metavar="FILE", positional=False, default=None, names=("--output", "-o"), group=OUTPUT,
        kw_only=False, needed=True,
    )  # fmt: skip
    kind: str | None = option(
        "png, svg, pdf or html; by default what the name of the output says, else svg.",
        default=None, shell=False,
    )  # fmt: skip
    against: OptionalLogs = option(
        "A second log folder, drawn below on the same time axis.", default=None, metavar="LOGS"
    )
    colour_by: Literal["event", "name"] | None = option(
        "What colours mean: events, in brackets that have any, or SEB names [default: event if "
        "there are any].",
        default=None, metavar="event|name",
    )  # fmt: skip
    times: Literal["log", "replay"] | None = option(
        "Draw the times of the log, or of its replay with its own network [default: log; replay "
        "with --against, where only a replay shows what a change gains].",
        default=None, metavar="log|replay",
    )  # fmt: skip
    messages: bool = option(
        "Draw messages as lines; if there are many, a random part of them.", default=False
    )

    def run(self) -> Picture:
        """Return the picture, and write it to the output if there is one."""
        return self._draw(self.kind)

    def print(self, shell: Shell) -> int:
        """Write the picture, and print its size."""
        from rewritelog.text import bytes_text, json_text, printable

        piped = shell.is_stdout(self.output)
        drawn = self._draw("svg" if piped else None)
        if shell.as_json and not piped:
            shell.write(json_text({"over_time": list(drawn.over_time)}) + "\n")
        elif not (shell.quiet or piped):
            shell.write(f"{printable(str(self.output))}: {bytes_text(len(drawn))}\n")
        return 0

    def _draw(self, kind: str | None) -> Picture:
        from rewritelog.formats.bgtrace.pes import chosen_pes
        from rewritelog.viewing.draw import draw_timeline
        from rewritelog.viewing.timeline import TimelineOptions

        opened = self.opened
        sets = [logs for logs in (opened.logs, opened.against) if logs is not None]
        pes = chosen_pes(self.pes, len(sets[0].pes))
        options = TimelineOptions(pes, self.from_s, self.until_s, self.colour_by)
        replayed = self.times == "replay" or (self.times is None and len(sets) > 1)
        return draw_timeline(
            sets,
            opened.output,
            kind,
            options,
            messages=self.messages,
            seed=self.seed,
            replayed=replayed,
        )


timeline = function(Timeline)
