"""The commands of README.md, of docs/ and of the journeys here work, and print what is shown."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from chosen import by_tier
from commands import rewritelog as run
from faulty import HANGS_S
from journeys.pages import Step, pattern_of, steps_of
from oracle import SAMPLE_LOGS

import rewritelog.core
import tracebigsim.core

ROOT = Path(__file__).parents[2]
# docs/api.md is made of docstrings, whose examples tests/api runs.
PAGES = [
    ROOT / "README.md",
    *sorted(set((ROOT / "docs").rglob("*.md")) - {ROOT / "docs/api.md"}),
    *sorted((ROOT / "tests" / "journeys").glob("*.md")),
]
STUDY = ROOT / "docs/study.md"
"""Its programs and replays take minutes."""
MARK = "::: step"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with what a clean clone holds, and an environment in `.venv`."""
    if not (ROOT / ".git").exists():
        pytest.skip("not run from a clone of the repository")
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, os.fsdecode(names).split("\0")):
        if (ROOT / name).is_file():
            target = tmp_path / "clone" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    for core in (Path(rewritelog.core.__file__), Path(tracebigsim.core.__file__)):
        target = tmp_path / "clone" / core.parent.parent.name / "core"
        shutil.copy(core.with_name("libcore.so"), target)  # as an installation from there does
    (tmp_path / "clone/.venv").symlink_to(sys.prefix)
    return tmp_path / "clone"


@pytest.mark.parametrize(
    "page",
    by_tier(PAGES, quick=(), slow=[page for page in PAGES if page != STUDY]),
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_commands_work_and_print_what_the_page_shows(page: Path, clone: Path) -> None:
    steps = steps_of(page)
    if not steps:
        pytest.skip("no commands")
    for step, printed in zip(steps, followed(steps, clone), strict=True):
        if step.printed is not None:
            prints = f"{page.name}: not what this prints:\n$ {step.command}\n{printed}"
            assert pattern_of(step.printed).fullmatch(printed), prints


def followed(steps: Sequence[Step], folder: Path) -> list[str]:
    """Run steps in a folder; return what each prints."""
    script = "".join(f"echo '{MARK} {k}'\n{step.command}\n" for k, step in enumerate(steps))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env=os.environ | {"PATH": path, "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    parts = re.split(rf"^{MARK} \d+\n", done.stdout, flags=re.MULTILINE)[1:]
    assert done.returncode == 0, f"{steps[len(parts) - 1].command}\n{parts[-1]}"
    return parts


@pytest.mark.long
def test_a_reader_of_all_pages_in_one_folder_is_never_stopped(clone: Path) -> None:
    """The tutorial stopped at the output of the README."""
    listed = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = [ROOT / "docs" / name for name in re.findall(r"\(([^)]+\.md)\)", listed)]
    for page in dict.fromkeys(path.resolve() for path in pages):
        if page in PAGES and page != STUDY:
            followed(steps_of(page), clone)


def test_the_notebook_page_runs_from_top_to_bottom_in_one_kernel(tmp_path: Path) -> None:
    """A cell gave the name of an earlier table to another, and that of scikit-learn failed."""
    for needed in ("pandas", "matplotlib", "sklearn"):
        pytest.importorskip(needed)
    (tmp_path / "sample_logs").symlink_to(SAMPLE_LOGS)
    page = (ROOT / "docs/notebook.md").read_text(encoding="utf-8")
    cells = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(cells) > 5
    done = subprocess.run(
        [sys.executable, "-c", "".join(cells)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_walk_through_shows_what_verify_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page saves the second model from a browser; a fit of the same terms is the same."""
    script = runpy.run_path(str(ROOT / "docs/seeing.py"))
    monkeypatch.chdir(tmp_path)
    script["write_timings"](Path("timings.txt"))
    script["write_timings"](Path("later.txt"), seed=2)
    mended = script["FORMULAS"].replace('["1", "p1"]', json.dumps(script["MENDED"].split("\n")))
    for text, model in ((script["FORMULAS"], "standard.json"), (mended, "mended/model.json")):
        Path("formulas.toml").write_text(text)
        Path(model).parent.mkdir(exist_ok=True)
        run("fit", "timings.txt", "--formulas", "formulas.toml", "-o", model, "-q")
    page = (ROOT / "docs/seeing.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for part in shown.split("$ rewritelog ")[1:]:
        command, _, printed = part.partition("\n")
        assert pattern_of(printed).fullmatch(run(*command.split()).stdout), command


def test_commands_are_in_blocks_that_are_run() -> None:
    for page in PAGES:
        for line in page.read_text(encoding="utf-8").splitlines():
            command = re.match(r"    (?:\$ )?(rewritelog|tracebigsim|python -m) ", line)
            assert command is None or "python -m benchmarks" in line, f"{page.name}: {line}"


def test_what_is_printed_may_leave_out_lines_and_parts_of_lines() -> None:
    assert pattern_of("a …\n…\nend\n").fullmatch("a b\nc\nd\nend\n")
    assert pattern_of("a\nend\n").fullmatch("a\nend  \n")
    assert not pattern_of("a\n…\n").fullmatch("b\nc\n")
    assert not pattern_of("a\n").fullmatch("a\nb\n")
