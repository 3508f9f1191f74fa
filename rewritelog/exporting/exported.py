"""The report of an export."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewritelog.text import Readable, count_text, printable


@dataclass(frozen=True, repr=False)
class Exported(Readable):
    """The results of an export."""

    folder: Path
    to: str
    pes: int
    counts: dict[str, int]
    """The numbers of records written, by kind."""
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the results as a JSON object."""
        return {
            "folder": printable(str(self.folder)),
            "to": self.to,
            "pes": self.pes,
            "counts": self.counts,
            "warnings": [printable(text) for text in self.warnings],
        }

    def text(self) -> str:
        """Return the results as text."""
        counts = ", ".join(f"{count:,} {kind}" for kind, count in self.counts.items())
        return f"{self.folder}: {count_text(self.pes, 'PE')} for {self.to}: {counts}"
