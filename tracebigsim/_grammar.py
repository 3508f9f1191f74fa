"""Words and limits of the line grammar, shared by its reader and its writer; no numpy here."""

from __future__ import annotations

from typing import Final

KEYWORD: Final = "TRACEBIGSIM"
MAX_PARAMS: Final = 20
MAX_LINE_BYTES: Final = 1 << 20
"""A longer line is one fault, whatever it holds."""
