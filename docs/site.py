"""Hooks of MkDocs: the pages beside the folder `docs` are part of the site too."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent

PAGES = {
    "README.md": "first-steps.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "licence.txt",
    "CITATION.cff": "citation.cff",
}
"""The files at the top of the repository, each with its name in the site."""

_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")


def on_files(files: Files, config: Any) -> Files:
    """Add the files at the top of the repository."""
    for name, in_site in PAGES.items():
        files.append(File.generated(config, in_site, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links to where files are in the site, and leave out what tests are told of blocks.

    A fence with two words is no fence to the site: the page after it was in disorder.
    """
    names = {in_site: name for name, in_site in PAGES.items()}
    here = page.file.src_uri
    place = posixpath.dirname(names.get(here, f"docs/{here}"))

    def in_site(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(place, link[1]))
        moved = PAGES.get(target, target.removeprefix("docs/"))
        return f"]({posixpath.relpath(moved, posixpath.dirname(here) or '.')}"

    return _LINK.sub(in_site, markdown.replace("```text output\n", "```text\n"))
