"""Writes docs/api.md and docs/commands.md from the code: `python docs/generate_api.py`.

It needs griffe2md.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import griffe
from griffe2md import default_config, render_object_docs

import rewritelog
from rewritelog import commands
from rewritelog.cli.words import command_help

HEAD = """\
# From Python

The functions of `rewritelog` do nearly everything that the command line does. Paths are `str` or
`Path`; a single path may be passed instead of several; tables are arrays, lists or DataFrames.
Reports have `text()`, `to_json()` and `warnings`, which those of `check`, `diff`, `convert` and
`synth` lack: what they find is their result. Every error is a `RewriteLogError`; usage errors are
also the matching built-in exception (`ValueError`, `TypeError`, `FileNotFoundError`).

This page is generated from the docstrings by `python docs/generate_api.py`.
"""

COMMANDS_HEAD = """\
# The command line

All options of all commands, as `rewritelog COMMAND --help-all` prints them; `--help` shows those
that most people need. The options of models are in `rewritelog models NAME`, and are options of the
commands that fit too.

This page is generated from the declarations by `python docs/generate_api.py`.
"""

CONFIG = {
    "heading_level": 3,
    "show_root_full_path": False,
    "show_root_members_full_path": False,
    "show_object_full_path": False,
    "show_signature_annotations": True,
    "show_bases": False,
    "members_order": "source",
    "inherited_members": ["path", "map", "folder", "sizes", "size_bytes", "events", "seb"],
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
    for title, names in sections().items():
        parts.append(f"## {title}\n")
        parts += [_described(package, name) for name in names]
    return "\n".join(parts).rstrip() + "\n"


def sections() -> dict[str, list[str]]:
    """Return the public names: functions as the help lists their commands, the others, errors."""
    public = rewritelog.__all__
    by_title = {
        panel: [name for each in names if (name := each.replace("-", "_")) in public]
        for panel, names in rewritelog.COMMANDS.items()
    }
    functions = {name for names in by_title.values() for name in names}
    others = [name for name in public if name not in functions]
    errors = [name for name in others if name.endswith("Error")]
    by_title["Models, timings and logs"] = [name for name in others if name not in errors]
    by_title["Errors"] = sorted(errors, key=lambda name: len(getattr(rewritelog, name).__mro__))
    return {title: names for title, names in by_title.items() if names}


def _described(package: Any, name: str) -> str:
    """Return what the docstrings of a public name say, examples as code."""
    public = getattr(rewritelog, name)
    if public.__module__.startswith(commands.__name__):
        text = f"### `{name}`\n\n```python\n{_signature(public)}\n```\n\n{public.__doc__}"
    else:
        found = package[f"{public.__module__.removeprefix('rewritelog.')}.{name}"]
        text = str(render_object_docs(found, {**default_config, **CONFIG}))
    fenced = _EXAMPLE.sub(lambda match: f"```python\n{match.group().rstrip()}\n```", text)
    quoted = _DEFAULT.sub(r'\1"\2"', fenced)  # as a formatter of Python in Markdown has them
    return _DIRECTIVE.sub("", quoted).strip() + "\n"


def _signature(function: Callable[..., Any]) -> str:
    """Return a signature with a line for each parameter."""
    signature = inspect.signature(function)
    lines, by_name = [], False
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not by_name:
            lines, by_name = [*lines, "*"], True
        default = "" if one.default is one.empty else f" = {one.default!r}".replace("'", '"')
        lines.append(f"{one.name}: {one.annotation}{default}")
    listed = "".join(f"    {line},\n" for line in lines)
    return f"{function.__name__}(\n{listed}) -> {signature.return_annotation}"


def commands_page() -> str:
    """Return the page of the command line."""
    parts = [COMMANDS_HEAD]
    for panel, names in rewritelog.COMMANDS.items():
        parts.append(f"## {panel}\n")
        for name in names:
            text = command_help(name, rare=True)
            parts.append(f"### `{name}`\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


PAGES = {"api.md": api_page, "commands.md": commands_page}

if __name__ == "__main__":
    os.environ["COLUMNS"] = "80"
    for name, page in PAGES.items():
        (Path(__file__).parent / name).write_text(page())
