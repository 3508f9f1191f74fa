"""Imports the packages of the extra `[view]`, only when needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def drawing_defaults(settings: dict[str, Any] | None = None) -> Iterator[None]:
    """Draw with matplotlib's default settings and these.

    The import of matplotlib reads a `matplotlibrc` from the working directory, which may be
    untrusted. Raise `ImportError` without matplotlib.
    """
    import matplotlib as mpl  # noqa: PLC0415 - an extra

    with mpl.rc_context():
        mpl.rcdefaults()
        current: Any = mpl.rcParams  # whose keys are literals for type checkers
        current.update(settings or {})
        yield
