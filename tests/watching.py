"""A rewrite that calls a function after each block."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rewritelog.commands.durations import RewriteOptions
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.progress import listening
from rewritelog.rewriting.report import RewriteReport
from rewritelog.rewriting.run import rewrite


def watched_rewrite(
    logs: LogSet | Path,
    out: Path,
    options: RewriteOptions,
    after_block: Callable[[int, int], Any],
) -> RewriteReport:
    """Rewrite; after each block call a function with the bytes done and in all."""

    def advance(stage: str, done: int, total: int, _unit: str) -> None:
        if stage == "rewriting":
            after_block(done, total)

    with listening(advance):
        return rewrite(logs, out, options)
