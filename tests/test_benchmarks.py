"""The benchmarks know the code that they measure: each module imports, each stage is there."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py"))


@pytest.fixture(autouse=True)
def _found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the benchmarks found, which are not installed."""
    monkeypatch.syspath_prepend(ROOT)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports(name: str) -> None:
    try:
        importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        pytest.skip("matplotlib is not installed")


@pytest.mark.parametrize("name", ["__main__", "figures", "study"])
def test_programs_have_a_help(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two of them wrote into a folder that is called --help, and one of these into the docs."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"benchmarks.{name}").main()
    assert ended.value.code == 0
    assert "usage:" in capsys.readouterr().out


def test_the_stages_of_a_rewrite_are_functions_of_it() -> None:
    stages = importlib.import_module("benchmarks.child_stages").STAGES
    for owner, name, stage in stages:
        assert callable(getattr(owner, name)), stage


def test_the_process_that_measures_stays_small() -> None:
    """A child's peak of memory is that of its parent at least."""
    program = "import sys, benchmarks.__main__; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_the_folder_to_work_in_is_made(tmp_path: Path) -> None:
    working_folder = importlib.import_module("benchmarks.process").working_folder
    with working_folder(tmp_path / "a/b") as folder:
        assert folder.parent == tmp_path / "a/b"
    assert not folder.exists()
