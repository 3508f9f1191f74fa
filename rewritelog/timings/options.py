"""Timing lines as an option; without heavy imports, because the command line reads it first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

from rewritelog.options import TIMINGS_HELP, As, Kind, Options, argument

if TYPE_CHECKING:
    from pathlib import Path

    from rewritelog.timings.samples import Timings, TimingsLike

_SAMPLES = Kind(opener="timings.samples:to_files_or_samples", several=True)
TimingsArgument: TypeAlias = Annotated[As["TimingsLike", "Timings | tuple[Path, ...]"], _SAMPLES]
OptionalTimings: TypeAlias = Annotated[
    As["TimingsLike | None", "Timings | tuple[Path, ...]"], _SAMPLES
]


class TimingLines(Options):
    """The timing lines that a model is fitted to or compared with."""

    timings: TimingsArgument = argument(TIMINGS_HELP, metavar="TIMINGS...", kw_only=False)
