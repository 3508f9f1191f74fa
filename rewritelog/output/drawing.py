"""matplotlib with its own settings, for all figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def drawing_defaults(settings: dict[str, Any] | None = None) -> Iterator[None]:
    """Draw with matplotlib's own settings and these.

    When it is imported it reads a `matplotlibrc` of the working directory, which is anybody's.
    Raise `ImportError` without matplotlib.
    """
    import matplotlib as mpl  # noqa: PLC0415 - an extra

    with mpl.rc_context():
        mpl.rcdefaults()
        current: Any = mpl.rcParams  # whose keys are literals for type checkers
        current.update(settings or {})
        yield
