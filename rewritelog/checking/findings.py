"""What a check finds: by rule a count, and the first few with their places."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rewritelog.checking.rules import RULES, Severity
from rewritelog.errors import DamagedLogError, Location
from rewritelog.text import printable

SHOWN = 5
"""How many findings of a rule are shown."""


@dataclass(frozen=True)
class Finding:
    """A place where a rule is broken."""

    location: Location
    message: str

    def __str__(self) -> str:
        """Return the finding for a terminal; a message of a text file names its line itself."""
        place = str(self.location)
        return printable(f"{place}: {self.message}" if place else self.message)

    def to_json(self) -> dict[str, Any]:
        """Return the finding in types of JSON."""
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

    def add_damage(self, rule: str, error: DamagedLogError) -> None:
        """Add what an error says as a finding."""
        self.add(rule, error.location, error.problem)

    def add_many(self, rule: str, count: int, first: Iterable[Finding]) -> None:
        """Add `count` findings of a rule, of which the first few are given."""
        if count:
            shown = self.shown.setdefault(rule, [])
            shown.extend(list(first)[: SHOWN - len(shown)])
            self.counts[rule] = self.counts.get(rule, 0) + count

    def add_all(self, other: Findings) -> None:
        """Add the findings of what comes later in the log set."""
        for rule, count in other.counts.items():
            self.add_many(rule, count, other.shown[rule])

    def of(self, severity: Severity) -> list[str]:
        """Return the rules of a severity that are broken, in the order of the table."""
        return [
            name
            for name, rule in RULES.items()
            if rule.severity is severity and name in self.counts
        ]

    def count(self, severity: Severity) -> int:
        """Return the number of findings of a severity."""
        return sum(self.counts[name] for name in self.of(severity))
