"""Writes docs/api.md from the docstrings: `python docs/generate_api.py` (needs griffe2md)."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import griffe
from griffe2md import default_config, render_object_docs

import rewritelog

PAGE = Path(__file__).parent / "api.md"

HEAD = """\
# From Python

The functions of `rewritelog` do everything that the command line does. Paths are `str` or `Path`; a
single path may be passed instead of several; tables are arrays, lists or DataFrames. Reports have
`text()`, `to_json()` and `warnings`. Every error is a `RewriteLogError`; usage errors are
also the matching built-in exception (`ValueError`, `TypeError`, `FileNotFoundError`).

This page is generated from the docstrings by `python docs/generate_api.py`.
"""

PARTS = {
    "Models": (
        "read_timings",
        "Timings",
        "fit",
        "load_model",
        "FittedModel",
        "AutoRegressor",
        "verify",
        "compare",
        "predict",
        "predict_run",
    ),
    "Logs": (
        "open_logs",
        "LogSet",
        "to_pandas",
        "read_params",
        "Params",
        "info",
        "dump",
        "rewrite",
        "RewriteOptions",
        "replay",
        "sweep",
        "lost_cycles",
        "export",
        "choose",
        "SampleOptions",
        "check",
        "check_rules",
        "diff",
        "convert",
        "synth",
        "timeline",
        "page",
        "explore",
    ),
    "Errors": (
        "RewriteLogError",
        "UsageError",
        "UsageTypeError",
        "MissingFileError",
        "DamagedLogError",
        "TimingError",
        "ModelError",
        "OutputError",
    ),
}

CONFIG = {
    "heading_level": 3,
    "show_root_full_path": False,
    "show_root_members_full_path": False,
    "show_object_full_path": False,
    "show_signature_annotations": True,
    "show_bases": False,
    "members_order": "source",
    "inherited_members": False,
    "summary": False,
    "line_length": 88,
}

_EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)
_DEFAULT = re.compile(r"^(\w+: .* = )'(.*)'$", re.MULTILINE)
_DIRECTIVE = re.compile(r"  # doctest: \+\w+")


def api_page() -> str:
    """Return the page."""
    package: Any = griffe.load("rewritelog")
    parts = [HEAD]
    for title, names in PARTS.items():
        parts.append(f"## {title}\n")
        parts += [_described(package, name) for name in names]
    return "\n".join(parts).rstrip() + "\n"


def _described(package: Any, name: str) -> str:
    """Return what the docstrings of a public name say, examples as code."""
    home = sys.modules[getattr(rewritelog, name).__module__].__name__
    found = package[f"{home.removeprefix('rewritelog.')}.{name}"]
    text = str(render_object_docs(found, {**default_config, **CONFIG}))
    fenced = _EXAMPLE.sub(lambda match: f"```python\n{match.group()}\n```", text)
    quoted = _DEFAULT.sub(r'\1"\2"', fenced)  # as a formatter of Python in Markdown has them
    return _DIRECTIVE.sub("", quoted).strip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(api_page())
