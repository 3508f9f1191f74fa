"""The options of a replay; without heavy imports, because the command line reads them first."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rewritelog.rewriting.options import RewriteOptions


@dataclass(frozen=True)
class ReplayOptions:
    """The options of a replay, apart from the network."""

    rewrite: RewriteOptions = field(default_factory=RewriteOptions)
    """Dilations, the model, its inputs and the number of threads."""
    lost_as: tuple[tuple[str, str], ...] = ()
    """Pairs of a pattern for SEB names or events, and the category of lost time that they are
    in."""
    gains: int | None = None
    """For how many names, and how many events, those with the most busy time, a gain is computed;
    None for ten of each, and fewer for a log set of over 500,000 SEBs."""
    write: Path | None = None
    """The folder for logs with replayed times; None not to write them."""
