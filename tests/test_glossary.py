"""The glossary defines the words that a reader of code, messages and documentation meets."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
DEFINED = re.findall(r"^- \*\*(.+?)\*\*", GLOSSARY, re.MULTILINE)
NEEDED = [
    "SEB",
    "PE",
    "Node",
    "Worker thread",
    "Timeline",
    "Timeline file",
    "Message",
    "Transit time",
    "Bracket",
    "Mark",
    "Region",
    "Event",
    "Log event",
    "Param record",
    "Timing line",
    "Sample",
    "Model",
    "Fit",
    "Dilation",
    "Block",
    "Part",
    "Rule",
]


@pytest.mark.parametrize("word", NEEDED)
def test_word_is_defined(word: str) -> None:
    assert word in DEFINED


def test_no_word_is_defined_twice() -> None:
    lowered = [word.lower() for word in DEFINED]
    assert len(lowered) == len(set(lowered))


def test_readme_links_the_glossary() -> None:
    assert "(docs/glossary.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
