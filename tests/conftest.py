"""Where the tests find real logs: the project's own samples and the reference folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from oracle import REFERENCE, REFERENCE_SETS, SAMPLE_LOGS, SAMPLE_SETS


@pytest.fixture(scope="session")
def reference() -> Path:
    """Return the reference folder; a test that needs it is skipped where it is missing."""
    return _present(REFERENCE)


@pytest.fixture(scope="session")
def sample_logs() -> Path:
    """Return the folder of the project's own sample logs."""
    return SAMPLE_LOGS


@pytest.fixture(
    scope="session",
    params=[
        *(f"sample_logs/{name}" for name in SAMPLE_SETS),
        *(f"reference/{name}" for name in REFERENCE_SETS),
    ],
)
def log_set(request: pytest.FixtureRequest) -> Path:
    """Return the folder of each real log set; a sample that is missing fails in the test."""
    place, name = request.param.split("/", 1)
    return SAMPLE_LOGS / name if place == "sample_logs" else _present(REFERENCE) / name


def _present(folder: Path) -> Path:
    if not folder.is_dir():
        pytest.skip(f"no reference data at {folder} (REWRITELOG_REFERENCE names the folder)")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _elsewhere(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Run the tests in another folder, so that programs they start use the installed package."""
    os.chdir(tmp_path_factory.mktemp("elsewhere"))
