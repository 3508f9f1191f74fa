"""Imports the packages of the extra `[view]`, only when needed."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from rewritelog.errors import UsageError, warn_of_output
from rewritelog.running.locks import process_lock
from rewritelog.text import printable, shorten


def require(module: str, what: str) -> Any:
    """Return a module of the extra; raise `UsageError` with what to install if it is missing."""
    if module.startswith("matplotlib"):  # which warns of a home folder that cannot be written
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise UsageError(
            f"{what} needs {package}, which is not installed: pip install 'rewritelog[view]'"
        ) from error


_CHANGING = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}
"""The metadata of each format that would differ between equal figures; it is left out."""

_SETTINGS = {"svg.hashsalt": "rewritelog", "svg.fonttype": "none", "text.parse_math": False}
"""Names may contain `$`; the text of an SVG is shown in the fonts of its viewer."""

_ONE_AT_A_TIME = process_lock()
"""Held while matplotlib's settings, which all threads share, are those of one figure."""


@contextmanager
def drawing(
    size: tuple[float, float], settings: dict[str, Any] | None = None
) -> Iterator[tuple[Any, Callable[..., bytes]]]:
    """Yield a matplotlib figure of a size in inches, and a function that returns it as a file.

    Equal figures give equal bytes. Apart from `settings`, matplotlib's defaults apply, since its
    import reads a `matplotlibrc` from the working directory, which may be untrusted. Raise
    `UsageError` without matplotlib.
    """
    figure_class, mpl = require("matplotlib.figure", "a figure").Figure, require("matplotlib", "")
    with _ONE_AT_A_TIME, mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update({**_SETTINGS, **(settings or {})})
        figure = figure_class(figsize=size, layout="constrained")

        def saved(kind: str) -> bytes:
            content = io.BytesIO()
            with warnings.catch_warnings(record=True) as caught:
                warnings.filterwarnings("always", "Glyph")
                figure.savefig(content, format=kind, dpi=150, metadata={_CHANGING[kind]: None})
            texts = "".join(str(warning.message) for warning in caught) if kind != "svg" else ""
            if boxes := sorted({chr(int(code)) for code in re.findall(r"Glyph (\d+)", texts)}):
                shown = shorten(printable("".join(boxes)), 20)
                why = f"the picture's font lacks {shown}, so that there are boxes"
                warn_of_output(f"{why}: an .svg has the text")
            for warning in caught:
                if not str(warning.message).startswith("Glyph"):
                    warnings.warn(warning.message, stacklevel=3)
            return content.getvalue()

        yield figure, saved
