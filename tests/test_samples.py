"""The project's own samples are what their manifests say."""

from pathlib import Path
from typing import Any

import pytest
from oracle import SAMPLE_SETS

import rewritelog
from rewritelog import open_logs

CONVERTED: dict[str, tuple[str, dict[str, Any]]] = {
    "cells-big-endian": ("v6-big", {"byte_order": "big"}),
    "cells-version-3": ("v3-little", {"log_version": 3, "lossy": True}),
}


def binaries(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("bgTrace*")}


@pytest.mark.parametrize("name", SAMPLE_SETS)
def test_each_sample_has_its_manifest(name: str, sample_logs: Path) -> None:
    manifest = (sample_logs / name / "MANIFEST.md").read_text()
    logs = open_logs(sample_logs / name)
    if name in CONVERTED:
        manifest += (sample_logs / "cells/MANIFEST.md").read_text()
    assert f"{len(logs.sebs())} SEBs, {len(logs.messages())} messages" in manifest


@pytest.mark.parametrize("name", CONVERTED)
def test_converted_samples_are_made_by_the_projects_own_convert(
    name: str, sample_logs: Path, tmp_path: Path
) -> None:
    rewritelog.convert(sample_logs / "cells", tmp_path / "out", **CONVERTED[name][1])
    assert binaries(tmp_path / "out") == binaries(sample_logs / name)


@pytest.mark.parametrize("name", CONVERTED)
def test_converted_samples_are_what_the_log_library_wrote(
    name: str, sample_logs: Path, reference: Path
) -> None:
    assert binaries(sample_logs / name) == binaries(reference / "versions" / CONVERTED[name][0])
