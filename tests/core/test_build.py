"""How the cores are built: without Python, and by whatever C compiler there is."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORES = [ROOT / "rewritelog" / "core", ROOT / "tracebigsim" / "core"]
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
