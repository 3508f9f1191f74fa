"""The manual as a site."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from faulty import HANGS_S

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "mkdocs.yml"
pytestmark = pytest.mark.skipif(not CONFIG.exists(), reason="needs a clone of the repository")


def test_each_page_is_listed_once() -> None:
    """The page on Chakra traces was twice in the menu."""
    pages = re.findall(r"(\S+\.md)$", CONFIG.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(pages) == len(set(pages)) > 20


@pytest.mark.slow
def test_every_block_of_a_page_is_a_block_on_the_site(tmp_path: Path) -> None:
    """Blocks of printed text were none, and in the notebook page code and text changed places."""
    pytest.importorskip("mkdocs", reason="needs the extra [docs]")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    command = [*map(str, build)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=HANGS_S)
    pages = [*tmp_path.rglob("*.html")]
    assert len(pages) > 20
    assert [page for page in pages if "```" in page.read_text(encoding="utf-8")] == []
