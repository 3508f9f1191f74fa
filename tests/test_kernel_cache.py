"""Compiled kernels are kept between runs, not a moment too long, and taken from nobody else."""

import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from chosen import by_tier
from faulty import make_read_only, small_disk

import rewritelog
import tracebigsim
from rewritelog.rewriting.kernels.patch import patch
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.rewriting.run import rewrite
from tracebigsim.kernel_cache import is_private

LOAD = """
import numpy as np
from rewritelog.kernels.sums import add_by_group
sums = np.zeros((1, 1, 2))
add_by_group(np.array([0, 0]), np.array([0.5, 0.5]), sums, 0)
print(sums[0, 0, 0], sum(add_by_group.compiled.stats.cache_hits.values()))
"""
COMPILED, CACHED = ["1.0", "0"], ["1.0", "1"]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of both packages."""
    for package in (rewritelog, tracebigsim):
        source = Path(str(package.__file__)).parent
        shutil.copytree(
            source, tmp_path / source.name, ignore=shutil.ignore_patterns("__pycache__")
        )
    return tmp_path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A folder of kernels, with one in it."""
    folder = tmp_path / "cache"
    assert load(folder).stdout.split() == COMPILED
    return folder


def load(cache: Path | str, program: str = LOAD, **more: Any) -> subprocess.CompletedProcess[str]:
    """Call a kernel in a process of its own."""
    environment = {"NUMBA_CACHE_DIR": str(cache), "TRACEBIGSIM_KERNELS": "compiled"}
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        **{**more, "env": os.environ | environment | more.get("env", {})},
    )


def kernel_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.kernel"))


@pytest.mark.long
def test_kernels_are_compiled_once_and_again_when_an_inner_function_changes(copied: Path) -> None:
    folder = copied / "cache"
    assert load(folder, cwd=copied).stdout.split() == COMPILED
    assert load(folder, cwd=copied).stdout.split() == CACHED
    inner = copied / "rewritelog/kernels/sums.py"
    source = inner.read_text()
    inner.write_text(source + "# a comment\n")
    assert load(folder, cwd=copied).stdout.split() == CACHED
    inner.write_text(source.replace("total - high", "total - 1.0 * high"))
    assert load(folder, cwd=copied).stdout.split() == COMPILED
    assert len(kernel_files(folder)) == 1, "the old one is removed"


@pytest.mark.slow
def test_without_any_cache_folder_it_works_with_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = load(tmp_path / "file" / "no")
    assert done.stdout.split() == COMPILED
    assert done.stderr.count("NoKernelCacheWarning") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr


@pytest.mark.slow
def test_a_disk_that_is_full_costs_a_warning(tmp_path: Path) -> None:
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))" + LOAD
    done = load(tmp_path / "cache", limited)
    assert done.stdout.split() == COMPILED
    assert done.stderr.count("NoKernelCacheWarning") == 1
    assert "File too large" in done.stderr
    assert list((tmp_path / "cache").rglob("*.*")) == []


@pytest.mark.slow
@pytest.mark.parametrize("left", by_tier([0, 1, 100, -1], [0]))
def test_a_damaged_file_is_compiled_anew(left: int, cache: Path) -> None:
    (path,) = kernel_files(cache)
    whole = path.read_bytes()
    path.write_bytes(whole[:left])
    assert load(cache).stdout.split() == COMPILED
    assert load(cache).stdout.split() == CACHED


class _Planted:
    """Unpickled, it opens a file for writing."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        return open, (self.marker, "w")


def planted(marker: Path) -> bytes:
    """Return a pickle that makes a file when it is loaded."""
    return pickle.dumps(_Planted(str(marker)))


@pytest.mark.long
def test_a_folder_that_others_can_write_to_is_not_used(cache: Path, tmp_path: Path) -> None:
    (path,) = kernel_files(cache)
    path.write_bytes(planted(tmp_path / "ran"))
    load(cache)
    assert (tmp_path / "ran").exists(), "what is planted would run"
    (tmp_path / "ran").unlink()
    for folder, mode in ((path.parent, 0o777), (path.parent, 0o770), (cache, 0o777)):
        folder.chmod(mode)
        path.write_bytes(planted(tmp_path / "ran"))
        done = load(cache)
        assert done.stdout.split() == COMPILED
        assert "NoKernelCacheWarning" in done.stderr
        assert not (tmp_path / "ran").exists()
        folder.chmod(0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "theirs" / "inside"
    folder.mkdir(parents=True)
    assert is_private(folder)
    os.chown(folder.parent, 65534, 65534)
    assert not is_private(folder)


def test_nothing_in_the_working_directory_steers_the_kernels(cache: Path, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    (path,) = kernel_files(cache)
    logs = tmp_path / "logs"
    hostile = logs / "planted" / path.parent.name
    hostile.mkdir(parents=True)
    for name in (path.name, "sums.add_by_group-44.py311.nbi", "sums.add_by_group-44.py311.1.nbc"):
        (hostile / name).write_bytes(planted(tmp_path / "ran"))
        (hostile.parent / name).write_bytes(planted(tmp_path / "ran"))
    (logs / ".numba_config.yaml").write_text(
        f"cache_dir: {hostile.parent}\ndisable_jit: 1\ncache_locator_classes: planted.Locator\n"
    )
    (logs / "numba.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    shown = "from numba import config\nprint(config.DISABLE_JIT, repr(config.CACHE_DIR))\n"
    program = f"import sys; sys.path.remove(''){LOAD}{shown}"
    named = load(cache, program, cwd=logs).stdout.split()
    assert named == [*CACHED, "0", repr(str(cache))]
    unnamed = load("", program, cwd=logs).stdout.split()
    assert unnamed[0] == "1.0"
    assert unnamed[2:] == ["0", "''"]
    assert not (tmp_path / "ran").exists()


@contextmanager
def cache_of_kind(kind: str, folder: Path) -> Iterator[Path]:
    """Yield a folder for kernels that is sound, full, read-only or somebody else's."""
    if kind in ("full", "read-only"):
        try:
            with small_disk(folder, 8192) as disk:
                if kind == "full":
                    (disk / "filler").write_bytes(b"x" * 4096)
                else:
                    make_read_only(disk)
                yield disk
        except OSError as error:
            pytest.skip(f"no file system can be mounted here: {error}")
        return
    folder.mkdir(mode=0o700)
    if kind == "of another user":
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder away")
        os.chown(folder, 65534, 65534)
    yield folder


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "count"), [("sound", 64), ("full", 6), ("read-only", 6), ("of another user", 6)]
)
def test_processes_that_start_at_once_without_kernels_all_finish(
    kind: str, count: int, tmp_path: Path
) -> None:
    with cache_of_kind(kind, tmp_path / "cache") as cache:
        environment = {"NUMBA_CACHE_DIR": str(cache), "TRACEBIGSIM_KERNELS": "compiled"}
        started = [
            subprocess.Popen(
                [sys.executable, "-c", LOAD],
                env=os.environ | environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(count)
        ]
        for process in started:
            out, errors = process.communicate(timeout=900)
            assert (process.returncode, out.split()[:1]) == (0, ["1.0"]), errors
        if kind == "sound":
            assert len(kernel_files(cache)) == 1
            assert not [path for path in cache.rglob("*") if re.match(r"\.", path.name)]


@pytest.mark.slow
def test_whole_numbers_as_factors_compile_nothing_new(
    sample_logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEBIGSIM_KERNELS", "compiled")
    rewrite(sample_logs / "cells", None, RewriteOptions(dilation=2.0))
    compiled: Any = patch
    known = len(compiled.compiled.signatures)
    rewrite(sample_logs / "cells", None, RewriteOptions(dilation=2, dilation_for=(("*", 3),)))
    assert len(compiled.compiled.signatures) == known
