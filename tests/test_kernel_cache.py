"""Compiled kernels are kept between runs, and not a moment too long."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rewritelog
import tracebigsim
from rewritelog.rewriting.kernels.patch import patch
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.rewriting.run import rewrite

LOAD = """
import numpy as np
from rewritelog.rewriting.kernels.remap import remap
moved = remap(np.array([0.5]), np.array([0.0, 1.0]), np.array([np.nan]), 2.0)
print(moved[0], sum(remap.stats.cache_hits.values()))
"""


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of both packages, with a cache folder of its own."""
    for package in (rewritelog, tracebigsim):
        source = Path(str(package.__file__)).parent
        shutil.copytree(
            source, tmp_path / source.name, ignore=shutil.ignore_patterns("__pycache__")
        )
    return tmp_path


def load(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LOAD],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | environment,
    )


@pytest.mark.long
def test_kernels_are_compiled_once_and_again_when_an_inner_one_changes(copied: Path) -> None:
    cache = {"NUMBA_CACHE_DIR": str(copied / "cache")}
    assert load(copied, **cache).stdout.split() == ["1.0", "0"]
    assert load(copied, **cache).stdout.split() == ["1.0", "1"]
    other_file = copied / "rewritelog/kernels/brackets.py"
    other_file.write_text(other_file.read_text() + "# changed\n")
    assert load(copied, **cache).stdout.split() == ["1.0", "0"]


@pytest.mark.long
def test_without_any_cache_folder_it_works_with_one_warning(copied: Path) -> None:
    for package in ("rewritelog", "tracebigsim"):
        for folder in [copied / package, *(copied / package).rglob("*/")]:
            if folder.is_dir():
                (folder / "__pycache__").write_text("in the way")
    nowhere = str(copied / "rewritelog/__init__.py/no")
    done = load(copied, HOME=nowhere, XDG_CACHE_HOME=nowhere, PYTHONDONTWRITEBYTECODE="1")
    assert done.stdout.split() == ["1.0", "0"]
    assert done.stderr.count("NoKernelCacheWarning") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr


def test_whole_numbers_as_factors_compile_nothing_new(sample_logs: Path) -> None:
    rewrite(sample_logs / "cells", None, RewriteOptions(dilation=2.0))
    compiled: Any = patch
    known = len(compiled.signatures)
    rewrite(sample_logs / "cells", None, RewriteOptions(dilation=2, dilation_for=(("*", 3),)))
    assert len(compiled.signatures) == known
