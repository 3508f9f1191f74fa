"""Progress on a terminal: the name of the stage, and a bar if the total is known."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rewritelog.cli import console
from rewritelog.progress import Unit, listening

_WITH_TOTAL = "{desc}: {percentage:3.0f} %|{bar}|"


@contextmanager
def shown_progress() -> Iterator[None]:
    """Show progress on stderr if it is a terminal and `--quiet` is not given."""
    if console.quiet() or not sys.stderr.isatty():
        yield
        return
    from tqdm import tqdm  # noqa: PLC0415 - only for terminals

    with tqdm(leave=False, bar_format="{desc}") as bar, listening(_Shown(bar).advance):
        yield


class _Shown:
    """The line that shows progress."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def advance(self, stage: str, done: int, total: int, unit: Unit) -> None:
        """Show a stage and how much of it is done."""
        amount = ""
        if total:
            amount = f" {done:,} of {total:,}"
            if unit == "bytes":
                from rewritelog.text import bytes_text  # noqa: PLC0415 - only for terminals

                amount = f" {bytes_text(done)} of {bytes_text(total)}"
        self._bar.bar_format = _WITH_TOTAL if total else "{desc}"
        self._bar.total, self._bar.n = total or None, done
        self._bar.set_description_str(f"{stage}{amount}", refresh=False)
        self._bar.refresh()
