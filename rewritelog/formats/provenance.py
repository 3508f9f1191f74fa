"""The provenance file of rewritten logs: what they were made from, and how."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewritelog.text import count_text, printable

PROVENANCE_NAME = "rewritelog.json"
FORMAT, VERSION = "rewritelog provenance", 1
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Provenance:
    """The content of a provenance file, which another version may have written."""

    content: Mapping[str, Any]

    def text(self) -> str:
        """Return the provenance as a sentence."""
        model, options = self._part("model"), self._part("options")
        lines, dilation = model.get("timing_lines"), options.get("dilation")
        fitted = f" fitted to {count_text(lines, 'timing line')}" if isinstance(lines, int) else ""
        sentence = (
            f"by rewritelog {self.content.get('rewritelog')}: model {model.get('name')}{fitted}, "
            f"dilation {1.0 if dilation is None else dilation}"
        )
        return printable(sentence)

    def _part(self, name: str) -> Mapping[str, Any]:
        part = self.content.get(name)
        return part if isinstance(part, dict) else {}


def read_provenance(folder: Path) -> Provenance | None:
    """Return the provenance of a log set; None if it has none or it cannot be read."""
    path = folder / PROVENANCE_NAME
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if isinstance(content, dict) and content.get("format") == FORMAT:
        return Provenance(content)
    return None
