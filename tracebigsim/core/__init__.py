"""The compiled core of tracebigsim: the scan of text. `core.h` declares its functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracebigsim.core.library import Library

core: Any = Library(Path(__file__).parent)
"""The functions, structs and constants that `core.h` declares."""
