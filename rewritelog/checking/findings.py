"""The findings of a check: a count for each rule, and the first few with their locations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from rewritelog.checking.rules import RULES, Severity
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
        file = self.location.file
        return {
            "file": None if file is None else printable(str(file)),
            "offset": self.location.offset_bytes,
            "pe": self.location.pe,
            "seb": self.location.seb,
            "field": self.location.field,
            "message": printable(self.message),
        }


@dataclass
class Findings:
    """Findings by rule, in the order of the files."""

    counts: dict[str, int] = field(default_factory=dict)
    shown: dict[str, list[Finding]] = field(default_factory=dict)

    def add(self, rule: str, location: Location, message: str) -> None:
        """Add one finding."""
        self.add_many(rule, 1, [Finding(location, message)])

    def add_faults(self, faults: Iterable[DamagedLogError], count: int = 1) -> None:
        """Add `count` faults of a reader, all of the same rule."""
        first = list(islice(faults, SHOWN))
        if first:
            found = [Finding(fault.location, fault.problem) for fault in first]
            self.add_many(first[0].rule, count, found)

    def add_unreadable(self, path: Path, error: RewriteLogError) -> None:
        """Add that a file cannot be read."""
        if isinstance(error, DamagedLogError):
            self.add_faults([error])
        else:
            self.add("unreadable", Location(path), str(error).removeprefix(f"{path}: "))

    def add_many(self, rule: str, count: int, first: Iterable[Finding]) -> None:
        """Add `count` findings of a rule, given the first few of them."""
        if count:
            shown = self.shown.setdefault(rule, [])
            shown.extend(list(first)[: SHOWN - len(shown)])
            self.counts[rule] = self.counts.get(rule, 0) + count

    def add_all(self, other: Findings) -> None:
        """Add the findings of a later part of the log set."""
        for rule, count in other.counts.items():
            self.add_many(rule, count, other.shown[rule])

    def of(self, severity: Severity) -> list[str]:
        """Return the violated rules of a severity, in the order of `RULES`."""
        return [
            name
            for name, rule in RULES.items()
            if rule.severity is severity and name in self.counts
        ]

    def count(self, severity: Severity) -> int:
        """Return the number of findings of a severity."""
        return sum(self.counts[name] for name in self.of(severity))
