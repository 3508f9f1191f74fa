"""The totals of all blocks: counts, differences by field, and durations.

They do not depend on the order in which workers finish: blocks are added in the order of the logs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rewritelog.diffing.durations import Rows, add_rows
from rewritelog.diffing.fields import Field


@dataclass(frozen=True)
class FirstDifference:
    """The location where a field first differs, and its values on both sides."""

    pe: int
    seb: int
    item: int | None
    """The index of the message or log event in the SEB."""
    a: str
    b: str


@dataclass(frozen=True)
class Change:
    """The number of records in which a field differs, and the first one."""

    count: int
    first: FirstDifference


@dataclass
class Totals:
    """The differences in one block, or in all blocks."""

    changed: dict[Field, Change] = field(default_factory=dict)
    sides: tuple[Counter[str], Counter[str]] = field(default_factory=lambda: (Counter(), Counter()))
    """What each side has: `SEBs`, the records of each list, `unclosed` and `irregular` SEBs."""
    common: Counter[str] = field(default_factory=Counter)
    """What both sides have: `SEBs`, `messages`, `events`; messages `moved` within their SEBs or
    with other `transit` times; SEBs with `unpaired` brackets."""
    earlier_s: float = 0.0
    later_s: float = 0.0
    """The largest shifts of messages towards the start (negative) and the end of their SEBs."""
    by_name: Rows = field(default_factory=dict)
    by_event: Rows = field(default_factory=dict)
    faulty_lines: int = 0
    """The number of malformed lines of param files."""

    def add(self, other: Totals) -> None:
        """Add the totals of the next block."""
        for one, change in other.changed.items():
            known = self.changed.get(one, Change(0, change.first))
            self.changed[one] = Change(known.count + change.count, known.first)
        for mine, more in zip(self.sides, other.sides, strict=True):
            mine.update(more)
        self.common.update(other.common)
        self.earlier_s = min(self.earlier_s, other.earlier_s)
        self.later_s = max(self.later_s, other.later_s)
        self.faulty_lines += other.faulty_lines
        add_rows(self.by_name, other.by_name)
        add_rows(self.by_event, other.by_event)
