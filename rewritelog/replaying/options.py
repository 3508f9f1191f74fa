"""What a replay accepts; no heavy imports, the command line reads it first."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rewritelog.rewriting.options import RewriteOptions


@dataclass(frozen=True)
class ReplayOptions:
    """How logs are replayed, beside the network."""

    rewrite: RewriteOptions = field(default_factory=RewriteOptions)
    """Dilations, the model, its inputs and the number of threads."""
    lost_as: tuple[tuple[str, str], ...] = ()
    """Pattern of SEB names or events, and the category that their time is lost in."""
    gains: int | None = None
    """For how many names, and for how many events, the gain is computed were they free, the
    largest first; None for ten of each, and fewer for a log set of over 500,000 SEBs."""
    write: Path | None = None
    """The folder to write the logs to with their replayed times."""
