"""Imports the packages of the extra `[view]`, only when needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rewritelog.errors import UsageError


def require(module: str, what: str) -> Any:
    """Return a module of the extra; raise `UsageError` with what to install if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise UsageError(
            f"{what} needs {package}, which is not installed: pip install 'rewritelog[view]'"
        ) from error
