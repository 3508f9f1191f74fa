"""The compiled core: what is sequential over bytes or events. `core.h` declares its functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracebigsim.core import Library

core: Any = Library(Path(__file__).parent)
"""The functions, structs and constants that `core.h` declares."""
