"""What the extra `[view]` brings, asked for only where it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rewritelog.errors import UsageError


def require(module: str, what: str) -> Any:
    """Return a module of the extra; raise `UsageError` that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise UsageError(
            f"{what} needs {package}, which is not installed: pip install 'rewritelog[view]'"
        ) from error
