"""Progress on a terminal: the name of the stage, and a bar if the total is known."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rewritelog.cli import console
from rewritelog.progress import Unit, listening

_COMPILING = "compiling kernels (once after an installation)"
_WITH_TOTAL = "{desc}: {percentage:3.0f} %|{bar}|"


@contextmanager
def shown_progress() -> Iterator[None]:
    """Show progress on stderr if it is a terminal and `--quiet` is not given."""
    if console.quiet() or not sys.stderr.isatty():
        yield
        return
    from tqdm import tqdm  # noqa: PLC0415 - only for terminals

    with tqdm(leave=False, bar_format="{desc}") as bar:
        shown = _Shown(bar)
        try:
            with listening(shown.advance):
                yield
        finally:
            shown.end()


class _Shown:
    """The line that shows progress."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._watch: Any = None
        self._stage = ""

    def advance(self, stage: str, done: int, total: int, unit: Unit) -> None:
        """Show a stage and how much of it is done."""
        self._watch_compiler()
        amount = ""
        if total:
            amount = f" {done:,} of {total:,}"
            if unit == "bytes":
                from rewritelog.text import bytes_text  # noqa: PLC0415 - only for terminals

                amount = f" {bytes_text(done)} of {bytes_text(total)}"
        self._bar.bar_format = _WITH_TOTAL if total else "{desc}"
        self._bar.total, self._bar.n = total or None, done
        self._stage = f"{stage}{amount}"
        self._show(self._stage)

    def end(self) -> None:
        """Stop listening to the compiler."""
        if self._watch is not None:
            from numba.core import event  # noqa: PLC0415 - it is loaded already

            event.unregister("numba:compile", self._watch)  # type: ignore[no-untyped-call]

    def _show(self, text: str) -> None:
        self._bar.set_description_str(text, refresh=False)
        self._bar.refresh()

    def _watch_compiler(self) -> None:
        """Show when kernels are being compiled, in runs that load the compiler."""
        if self._watch is not None or "numba" not in sys.modules:
            return
        from numba.core import event  # noqa: PLC0415 - it is loaded already

        shown = self

        class Watch(event.Listener):
            def on_start(self, event: Any) -> None:  # noqa: ARG002 - as numba calls it
                shown._show(_COMPILING)

            def on_end(self, event: Any) -> None:  # noqa: ARG002
                shown._show(shown._stage)

        self._watch = Watch()
        event.register("numba:compile", self._watch)  # type: ignore[no-untyped-call]
