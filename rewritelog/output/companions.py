"""Copies files that accompany the timelines of a log set to the output folder."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path

from rewritelog.errors import OutputWarning
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.files import paths_in
from rewritelog.output.files import copy_file
from rewritelog.text import matches

COMPANIONS = ("*.sts", "*.log.gz")
"""Files of Projections, which simulators read together with the logs."""


def copy_companions(logs: LogSet, target: Path, patterns: tuple[str, ...] = COMPANIONS) -> None:
    """Copy the files of the log folder whose names match a pattern, as `copy_own_files` does."""
    chosen = (
        path
        for path in paths_in(logs.folder)
        if any(matches(pattern, path.name) for pattern in patterns)
    )
    copy_own_files(logs, (path for path in chosen if not path.is_dir()), target)


def copy_own_files(logs: LogSet, paths: Iterable[Path], target: Path) -> None:
    """Copy files, but no links that lead out of their folder and those of the logs.

    Logs may come from untrusted sources, and a link among them may lead to a private file. Links
    that are not copied cause a warning.
    """
    files = (logs.summary_path, *(file.path for file in logs.files))
    own = {Path(os.path.realpath(path)).parent for path in files}
    for path in paths:
        folders = {*own, Path(os.path.realpath(path.parent))}
        if path.is_symlink() and folders.isdisjoint(Path(os.path.realpath(path)).parents):
            warnings.warn(
                f"{path} is a link to a file outside of the log folders: it is not copied",
                OutputWarning,
                stacklevel=2,
            )
        else:
            copy_file(path, target / path.name)
