"""How the cores are built: without Python, and by whatever C compiler there is."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
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


FAKE = """#!/bin/sh
printf '%s\\n' "$@" > arguments
while [ "$1" != -o ]; do shift; done
echo compiled > "$2"
"""
"""A compiler that notes its arguments beside the sources."""


def built_in_a_copy(folder: Path, **flags: str) -> subprocess.CompletedProcess[str]:
    """Build the cores in a copy of their folders, with these variables of the environment."""
    if not (CORES[1] / "core.h").exists():
        pytest.skip("the sources are not beside the tests")
    for core in CORES:
        shutil.copytree(core, folder / core.relative_to(ROOT))
    command: list[str | Path] = [sys.executable, folder / "tracebigsim" / "core" / "build.py"]
    environment = os.environ | dict.fromkeys(("CPPFLAGS", "CFLAGS", "LDFLAGS"), "") | flags
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_flags_of_the_environment_are_those_of_a_shell(tmp_path: Path) -> None:
    """CPPFLAGS and LDFLAGS were ignored, and CFLAGS split within quotes."""
    (tmp_path / "fake").write_text(FAKE)
    (tmp_path / "fake").chmod(0o755)
    flags = {"CPPFLAGS": "-DP", "CFLAGS": "-DX='a b' -O2", "LDFLAGS": "-Wl,-z,now"}
    assert built_in_a_copy(tmp_path, CC=str(tmp_path / "fake"), **flags).returncode == 0
    for core in CORES:
        arguments = (tmp_path / core.relative_to(ROOT) / "arguments").read_text().splitlines()
        at = arguments.index("-DP")
        assert arguments[at : at + 3] == ["-DP", "-DX=a b", "-O2"]
        assert arguments[-2:] == ["-Wl,-z,now", "-lm"]


@pytest.mark.slow
def test_a_wheel_for_another_machine_is_built_without_a_change_of_its_sources(
    tmp_path: Path,
) -> None:
    """It broke an editable install of them, and read-only sources could not be built."""
    pytest.importorskip("hatchling", reason="hatchling builds the package")
    source, fake = tmp_path / "source", tmp_path / "fake"
    fake.write_text(FAKE.replace("> arguments", "> /dev/null"))
    fake.chmod(0o755)
    for name in ("rewritelog", "tracebigsim"):
        shutil.copytree(ROOT / name, source / name)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for core in CORES:
        (source / core.relative_to(ROOT) / "libcore.so").write_text("of an editable installation")
    before = contents(source)
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    for name, platform in (("cross", {"_PYTHON_HOST_PLATFORM": "linux-s390x"}), ("own", {})):
        environment = os.environ | platform | {"CC": str(fake), "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run([*command, tmp_path / name], cwd=source, env=environment, check=True)
        assert (contents(source) == before) == (name == "cross")
        (made,) = (tmp_path / name).iterdir()
        with zipfile.ZipFile(made) as wheel:
            libraries = [wheel.read(f"{core.relative_to(ROOT)}/libcore.so") for core in CORES]
        assert libraries == [b"compiled\n"] * 2


def contents(folder: Path) -> dict[Path, bytes]:
    """What a folder holds."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_compiler_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Its absence was a traceback."""
    problem = built_in_a_copy(tmp_path, CC="/no/ccache gcc").stderr
    assert problem.startswith("the C compiler cannot be run: ")
    assert "'/no/ccache': set CC to another one" in problem


@pytest.mark.slow
def test_cores_build_for_macos(tmp_path: Path) -> None:
    pytest.importorskip("ziglang", reason="zig compiles for other systems")
    zig = f"{sys.executable} -m ziglang cc -target aarch64-macos"
    built = built_in_a_copy(tmp_path, CC=zig, CFLAGS="-Werror")
    assert built.returncode == 0, built.stderr
    libraries = list(map(Path, built.stdout.split()))
    folders = [tmp_path / "tracebigsim" / "core", tmp_path / "rewritelog" / "core"]
    assert [path.parent for path in libraries] == folders
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
