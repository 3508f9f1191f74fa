"""What `diff` counts of random changes, against the fields that construct parses of both sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import oracle
from hypothesis import given
from hypothesis import strategies as st
from logbuilder import message, seb, write_logs

from rewritelog import open_logs
from rewritelog.diffing.run import compare_logs

SEBS = 6
NUMBERS = st.integers(-5, 5)
TIMES = st.sampled_from([0.0, 0.25, 1.0, 7.5])
LABELS = {"ep": "ep", "recv_time": "recvTime", "exec_time": "execTime", "flag": "flag"}
MESSAGE_LABELS = {"size": "message size", "dst_node": "message dstNode"}
CHANGES = st.fixed_dictionaries(
    {},
    optional={"ep": NUMBERS, "recv_time": TIMES, "exec_time": TIMES, "flag": NUMBERS},
)
MESSAGE_CHANGES = st.fixed_dictionaries({}, optional={"size": NUMBERS, "dst_node": NUMBERS})


def timeline(changes: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return a timeline of SEBs with one message each, and some of their fields changed."""
    return [
        seb(at, at + 1, messages=[message(at + 0.5) | of_message]) | of_seb
        for at, (of_seb, of_message) in enumerate(changes)
    ]


def differing(a: Path, b: Path) -> dict[str, int]:
    """Return how many SEBs or messages differ in each field, read by construct alone."""
    counts: dict[str, int] = {}
    for before, after in zip(oracle.walk(a), oracle.walk(b), strict=True):
        both = [(before.fields, after.fields, LABELS)]
        both += [
            (old, new, MESSAGE_LABELS)
            for old, new in zip(before.fields.messages, after.fields.messages, strict=True)
        ]
        for old, new, labels in both:
            for name, label in labels.items():
                counts[label] = counts.get(label, 0) + (old[name] != new[name])
    return {label: count for label, count in counts.items() if count}


@given(st.lists(st.tuples(CHANGES, MESSAGE_CHANGES), min_size=SEBS, max_size=SEBS))
def test_counts_are_those_of_the_slow_reader(
    changes: list[tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    with TemporaryDirectory() as folder:
        plain: list[tuple[dict[str, Any], dict[str, Any]]] = [({}, {})] * SEBS
        a = write_logs(Path(folder, "a"), [timeline(plain), timeline(plain)])
        b = write_logs(Path(folder, "b"), [timeline(plain), timeline(changes)], order="big")
        by_construct = differing(a, b)
        report = compare_logs(replace(open_logs(a), block_bytes=300), open_logs(b))
        counted = {change["field"]: change["changed"] for change in report.to_json()["fields"]}
    assert counted == by_construct
