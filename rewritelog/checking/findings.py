"""The findings of a check: a count for each rule, and the first few with their locations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from rewritelog.errors import DamagedLogError, Location, RewriteLogError
from rewritelog.text import printable

SHOWN = 5
"""At most this many findings of a rule are shown."""


@dataclass(frozen=True)
class Finding:
    """A violation of a rule, with its location."""

    location: Location
    message: str

    def __str__(self) -> str:
        """Return the finding as text; messages about text files contain their location."""
        location = str(self.location)
        return printable(f"{location}: {self.message}" if location else self.message)

    def to_json(self) -> dict[str, Any]:
        """Return the finding as a JSON object."""
        file, node = self.location.file, self.location.node
        return {
            "file": None if file is None else printable(str(file)),
            "offset": self.location.offset_bytes,
            "pe": self.location.pe,
            "seb": self.location.seb,
            **({} if node is None else {"node": node}),
            "field": self.location.field,
            "message": printable(self.message),
        }


@dataclass
class Findings:
    """Findings by rule, in the order of the files."""

    counts: dict[str, int] = field(default_factory=dict)
    shown: dict[str, list[Finding]] = field(default_factory=dict)

    def add(self, rule: str, first: Iterable[Finding], count: int = 1) -> None:
        """Add `count` findings of a rule, given the first few of them."""
        if count:
            shown = self.shown.setdefault(rule, [])
            shown.extend(islice(first, SHOWN - len(shown)))
            self.counts[rule] = self.counts.get(rule, 0) + count

    def add_faults(self, faults: Iterable[DamagedLogError], count: int = 1) -> None:
        """Add `count` faults of a reader, all of the same rule."""
        first = list(islice(faults, SHOWN))
        if first:
            findings = (Finding(fault.location, fault.problem) for fault in first)
            self.add(first[0].rule, findings, count)

    def add_unreadable(self, path: Path, error: RewriteLogError) -> None:
        """Add that a file cannot be read."""
        if isinstance(error, DamagedLogError):
            self.add_faults([error])
        else:
            problem = str(error).removeprefix(f"{path}: ")
            self.add("unreadable", [Finding(Location(path), problem)])

    def add_all(self, other: Findings) -> None:
        """Add the findings of a later part of the log set."""
        for rule, count in other.counts.items():
            self.add(rule, other.shown[rule], count)
