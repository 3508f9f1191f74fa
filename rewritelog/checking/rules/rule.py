"""What a rule of `check` consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from rewritelog.checking.block import CheckedBlock, Violations
from rewritelog.checking.findings import Findings

Find: TypeAlias = Callable[[CheckedBlock], Iterator[Violations]]
"""A function that yields the violations of a rule in a block, one kind of records at a time."""


class Severity(Enum):
    """The consequence of a violation."""

    STOP = "would stop the simulator"
    MISLEAD = "would mislead the simulator"
    ODD = "odd"


@dataclass(frozen=True)
class Rule:
    """A rule of the format, or of the programs that read it.

    As the decorator of a function, it becomes a rule whose violations that function finds; the
    others are found by those who read the files.
    """

    name: str
    severity: Severity
    says: str
    """The statement of the rule."""
    protects: str
    """The reason for the rule: what depends on it."""
    find: Find | None = None

    def __call__(self, find: Find) -> Rule:
        """Return the rule with the function that finds its violations."""
        return replace(self, find=find)

    def text(self) -> str:
        """Return the rule as text."""
        return f"{self.name} ({self.severity.value}): {self.says}\n{self.protects}"

    def check(self, block: CheckedBlock, findings: Findings) -> None:
        """Add the violations in a block to the findings, in the order of the SEBs."""
        if self.find is None:
            return
        parts = list(self.find(block))
        first = [finding for violations in parts for finding in violations.first]
        first.sort(key=lambda finding: (finding.location.pe or 0, finding.location.seb or 0))
        findings.add(self.name, first, sum(violations.count for violations in parts))
