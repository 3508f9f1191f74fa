"""The inputs that are kept: each broke something once, or is of a kind that did.

They stand in `corpus/TARGET/`, any name, and are what a reader is given: a file's bytes, or for
`timelines` a byte that chooses log version, order and options, and then a timeline.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"

TARGET_NAMES = (
    "timelines",
    "lines",
    "summary",
    "heads",
    "log-set",
    "check-and-rewrite",
    "convert-back",
    "diff-itself",
    "chakra",
    "params",
    "timings",
    "formulas",
    "coefficients",
    "models",
)


def kept(name: str, corpus: Path = CORPUS) -> list[Path]:
    """Return the files that are kept for a target."""
    return sorted(path for path in (corpus / name).glob("*") if path.is_file())


def keep(corpus: Path, name: str, data: bytes) -> Path:
    """Add an input to the corpus; return its file."""
    path = corpus / name / f"found-{hashlib.sha256(data).hexdigest()[:12]}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
