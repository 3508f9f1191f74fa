"""The options of a replay; without heavy imports, because the command line reads them first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from rewritelog.options import (
    ADVANCED,
    OUTPUT,
    As,
    OptionalOutput,
    as_pairs,
    declared,
    option,
    pairs,
    settle,
)
from rewritelog.rewriting.options import DurationOptions, OutputOptions

CategoriesByName: TypeAlias = (
    "As[Mapping[str, str] | Iterable[tuple[str, str]] | None, tuple[tuple[str, str], ...]]"
)


@declared
class LostTimeOptions(DurationOptions):
    """The options of a replay that counts lost time."""

    lost_as: CategoriesByName = option(
        "Count SEBs of that name, or middle regions of that event, in a category; repeatable, the "
        "last match wins.",
        default=None, metavar="PATTERN=CATEGORY", read=pairs, complete="event",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, lost_as=as_pairs(self.lost_as))


@declared
class ReplayOptions(OutputOptions, LostTimeOptions):
    """The options of a replay, apart from the network."""

    write: OptionalOutput = option(
        "Write the logs with their replayed times to this folder.",
        default=None, metavar="OUT", group=OUTPUT,
    )  # fmt: skip
    gains: int | None = option(
        "Replay with each of the N largest SEB names and events taking no time [default: 10; "
        "fewer for more than 500,000 SEBs].",
        default=None, metavar="N", group=ADVANCED, rare=True, least=0,
    )  # fmt: skip
