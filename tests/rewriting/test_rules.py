"""A rewritten log breaks no rule of its readers that its input did not break."""

from pathlib import Path
from typing import Any

import pytest
from chosen import by_tier
from rules import known_violations, violations

from rewritelog.commands.durations import RewriteOptions
from rewritelog.rewriting.run import rewrite

WAYS: list[dict[str, Any]] = [
    {"dilation": 0.01},
    {"dilation": 1000.0, "recv": "keep"},
    {"dilation": 7.3, "recv": "shift"},
    {"model": "least-squares", "dilation": 0.3},
    {
        "model": "sampled",
        "model_options": {"fraction": 0.1, "exact_match": "always"},
        "recv": "keep",
    },
]


@pytest.mark.parametrize("way", by_tier(WAYS, WAYS[:1] + WAYS[3:4]), ids=str)
def test_rules_hold_wherever_they_held_before(
    way: dict[str, Any], log_set: Path, sample_logs: Path, tmp_path: Path
) -> None:
    options = dict(way)
    if "model" in way:
        options["timings"] = (sample_logs / "cells/timings.txt",)
    rewrite(log_set, tmp_path / "out", RewriteOptions(**options))
    assert violations(tmp_path / "out") <= known_violations(log_set)


def test_dilation_1_gives_the_same_bytes(log_set: Path, tmp_path: Path) -> None:
    rewrite(log_set, tmp_path / "out")
    for path in log_set.glob("bgTrace*"):
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()
