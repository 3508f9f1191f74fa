"""matplotlib with its default settings, for all figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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
