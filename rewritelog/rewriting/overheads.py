"""The breakdown of SEB time before and after a rewrite, including time outside of brackets.

After Lost Cycles analysis (Crovella and LeBlanc, "Parallel performance prediction using lost cycles
analysis", Supercomputing '94): the parts are complete and disjoint.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rewritelog.rewriting.counts import BlockCount, DurationSum
from rewritelog.rewriting.statistics import BlockStatistics, difference_s, total_of
from rewritelog.text import json_number

_COMPLETE = (
    (DurationSum.OLD, DurationSum.BRACKETED_OLD, DurationSum.AROUND_OLD, DurationSum.WITHOUT_OLD),
    (DurationSum.NEW, DurationSum.BRACKETED_NEW, DurationSum.AROUND_NEW, DurationSum.WITHOUT_NEW),
)
"""The sums of all time, and of the parts that a rewrite may change."""


@dataclass(frozen=True)
class Share:
    """A part of the time of all SEBs."""

    old_s: float
    new_s: float
    old: float | None
    """Its share of all time before the rewrite, in [0, 1]; None without any time."""
    new: float | None
    """Its share of all time after the rewrite."""

    def to_json(self) -> dict[str, float | None]:
        """Return shares and seconds as a JSON object, with null for numbers that are not finite."""
        return {
            "old_s": json_number(self.old_s),
            "new_s": json_number(self.new_s),
            "old_share": self.old,
            "new_share": self.new,
        }


@dataclass(frozen=True)
class Overheads:
    """The parts of the time of all SEBs, and the time that no model covers."""

    events: dict[str, Share]
    """The brackets of each event, by name."""
    other_brackets: Share
    """Brackets without a param record."""
    around_brackets: Share
    """The time outside of brackets in SEBs that have any."""
    sebs_without_brackets: Share
    """SEBs without brackets, or with irregular marks."""
    untouched: Share
    """Nodes of types that the rewrite leaves as they are."""
    by_dilation: Share
    """The time that only dilation determines: the first three, and brackets not covered."""

    def to_json(self) -> dict[str, Any]:
        """Return the parts as a JSON object."""
        return {
            "events": {name: share.to_json() for name, share in self.events.items()},
            "other_brackets": self.other_brackets.to_json(),
            "around_brackets": self.around_brackets.to_json(),
            "sebs_without_brackets": self.sebs_without_brackets.to_json(),
            "untouched": self.untouched.to_json(),
            "by_dilation": self.by_dilation.to_json(),
        }


def overheads_of(statistics: BlockStatistics) -> Overheads:
    """Return the breakdown of the time of all SEBs."""
    all_s = statistics.seconds(DurationSum.OLD), statistics.seconds(DurationSum.NEW)

    def share(old_s: float, new_s: float) -> Share:
        return Share(old_s, new_s, _part(old_s, all_s[0]), _part(new_s, all_s[1]))

    sums = {name: event.total for name, event in sorted(statistics.events.items())}
    others_s = 0.0, 0.0
    if statistics.count(BlockCount.BRACKETS_WITHOUT_RECORD):
        old, new = (
            statistics.sums[k] for k in (DurationSum.BRACKETED_OLD, DurationSum.BRACKETED_NEW)
        )
        others_s = (
            difference_s(old, total_of(sum_of_name.old_s for sum_of_name in sums.values())),
            difference_s(new, total_of(sum_of_name.new_s for sum_of_name in sums.values())),
        )
    around_s = (
        statistics.seconds(DurationSum.AROUND_OLD),
        statistics.seconds(DurationSum.AROUND_NEW),
    )
    without_s = (
        statistics.seconds(DurationSum.WITHOUT_OLD),
        statistics.seconds(DurationSum.WITHOUT_NEW),
    )
    dilated_s = (
        float(total_of(sum_of_name.dilated_old_s for sum_of_name in sums.values())),
        float(total_of(sum_of_name.dilated_new_s for sum_of_name in sums.values())),
    )
    untouched_s = (
        difference_s(statistics.sums[whole], total_of(statistics.sums[part] for part in parts))
        for whole, *parts in _COMPLETE
    )
    by_dilation = zip(others_s, around_s, without_s, dilated_s, strict=True)
    return Overheads(
        {
            name: share(float(sum_of_name.old_s), float(sum_of_name.new_s))
            for name, sum_of_name in sums.items()
        },
        share(*others_s),
        share(*around_s),
        share(*without_s),
        share(*untouched_s),
        share(*(sum(parts) for parts in by_dilation)),
    )


def _part(seconds: float, all_s: float) -> float | None:
    """Return a share; None without any time, or if it is not finite."""
    share = seconds / all_s if 0 < all_s < math.inf else math.nan
    return json_number(share)
