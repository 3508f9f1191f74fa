"""`rewritelog explore`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rewritelog.commands.command import Printing, Shell, function, same_fields
from rewritelog.commands.shared import (
    MODEL,
    OUTPUT,
    TIMINGS_HELP,
    ClockHz,
    Formulas,
    Jobs,
    ParamNames,
    Params,
    Strict,
)
from rewritelog.options import argument, declared, option

if TYPE_CHECKING:
    from rewritelog.api.arguments import LogFolder, OutputPath, PathsLike


@declared
class Explore(Strict, Jobs, ClockHz, ParamNames, Params, Formulas, Printing[None]):
    """Look at fits on a live page, change them, and save the result.

    The page is served to browsers on this machine only, at an address that cannot be guessed, until
    Ctrl-C.

    >>> rewritelog.explore("sample_logs/cells/timings.txt")  # doctest: +SKIP
    """

    timings: PathsLike = argument(TIMINGS_HELP, metavar="TIMINGS...", kw_only=False)
    logs: LogFolder | None = option(
        "Logs on which to show the effect of the fits.", default=None, metavar="DIR", kw_only=False
    )
    dilation: float | None = option(
        "Factor on durations that no fit covers, for the effect on LOGS; the page can change it "
        "[default: 1].",
        default=None, metavar="FACTOR", group=MODEL,
    )  # fmt: skip
    output: OutputPath = option(
        "The folder for formulas.toml and model.json [default: the current folder].",
        default=".", names=("--output", "-o"), metavar="DIR", group=OUTPUT,
    )  # fmt: skip
    force: bool = option("Replace existing files of these names.", default=False, group=OUTPUT)
    no_browser: bool = option("Print the address, and open no browser.", default=False)

    def run(self) -> None:
        """Serve the page, and print its address."""
        self._serve(print)

    def print(self, shell: Shell) -> int:
        """Serve the page, and print its address."""
        self._serve(lambda text: shell.write(text + "\n"))
        return 0

    def _serve(self, write: Callable[[str], None]) -> None:
        from rewritelog.cores import limited_to
        from rewritelog.viewing.explore import ExploreOptions, explore

        given = self.given
        options = same_fields(ExploreOptions, given, out=given.output, browser=not self.no_browser)
        with limited_to(self.jobs):
            explore(options, lambda address: write(f"open {address}\nCtrl-C stops the server"))


explore = function(Explore)
