"""How the cores are built: without Python, and by whatever C compiler there is."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORES = [ROOT / "rewritelog" / "core", ROOT / "tracebigsim" / "core"]
MACH_O = b"\xcf\xfa\xed\xfe"
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@pytest.mark.skipif(COMPILER is None, reason="no C compiler is installed")
@pytest.mark.parametrize("folder", CORES, ids=lambda folder: folder.parent.name)
def test_no_header_of_python_is_needed(folder: Path) -> None:
    sources = sorted(path.name for path in folder.glob("*.c"))
    if not sources:
        pytest.skip("the sources are not beside the tests")
    done = subprocess.run(
        [str(COMPILER), "-std=c11", "-M", *sources],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    needed = {Path(word).name for word in done.stdout.split() if word.endswith(".h")}
    assert "core.h" in needed
    assert "Python.h" not in needed


@pytest.mark.slow
def test_cores_build_for_macos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ziglang", reason="zig compiles for other systems")
    if not (CORES[1] / "core.h").exists():
        pytest.skip("the sources are not beside the tests")
    for folder in CORES:
        shutil.copytree(folder, tmp_path / folder.relative_to(ROOT))
    monkeypatch.setenv("CFLAGS", "-Werror")
    monkeypatch.setenv("CC", f"{sys.executable} -m ziglang cc -target aarch64-macos")
    script = tmp_path / "tracebigsim" / "core" / "build.py"
    built = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    libraries = list(map(Path, built.stdout.split()))
    assert [path.parent for path in libraries] == [script.parent, tmp_path / "rewritelog" / "core"]
    assert all(path.read_bytes().startswith(MACH_O) for path in libraries)


@pytest.mark.slow
def test_a_source_distribution_has_sources_and_needs_no_compiler(tmp_path: Path) -> None:
    """It had the libraries of the machine that made it."""
    pytest.importorskip("hatchling", reason="hatchling builds the package")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory"]
    environment = os.environ | {"CC": "/no/compiler"}
    subprocess.run([*command, tmp_path], cwd=ROOT, env=environment, check=True, capture_output=True)
    (made,) = tmp_path.iterdir()
    with tarfile.open(made) as archive:
        names = archive.getnames()
    assert any(name.endswith("/tracebigsim/core/scan.c") for name in names)
    assert [name for name in names if name.endswith(".so")] == []
