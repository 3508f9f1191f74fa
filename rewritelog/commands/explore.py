"""`rewritelog explore`."""

from __future__ import annotations

from collections.abc import Callable

from rewritelog.commands.command import Printing, Shell, function
from rewritelog.options import Jobs, declared
from rewritelog.viewing.options import ExploreOptions


@declared
class Explore(Jobs, ExploreOptions, Printing[None]):
    """Look at fits on a live page, change them, and save the result.

    The page is served to browsers on this machine only, at an address that cannot be guessed, until
    Ctrl-C.

    >>> rewritelog.explore("sample_logs/cells/timings.txt")  # doctest: +SKIP
    """

    def run(self) -> None:
        """Serve the page, and print its address."""
        self._serve(print)

    def print(self, shell: Shell) -> int:
        """Serve the page, and print its address."""
        self._serve(lambda text: shell.write(text + "\n"))
        return 0

    def _serve(self, write: Callable[[str], None]) -> None:
        from rewritelog.cores import limited_to
        from rewritelog.viewing.explore import explore

        with limited_to(self.jobs):
            explore(self.opened, lambda address: write(f"open {address}\nCtrl-C stops the server"))


explore = function(Explore)
