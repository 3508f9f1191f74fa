from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder of reference data, which is no part of the project."""
    folder = Path(
        os.environ.get("REWRITELOG_REFERENCE", str(REPOSITORY.parent / "shared" / "reference"))
    )
    if not folder.is_dir():
        pytest.skip(f"no reference data in {folder}: set REWRITELOG_REFERENCE")
    return folder
