"""Good inputs to damage: made logs of every version and byte order, and their texts."""

from __future__ import annotations

from pathlib import Path

from chakrabuilder import COLL, field, group, groups, node

import rewritelog
from rewritelog import LogSet, open_logs
from rewritelog.formats.bgtrace.declaration import ByteOrder

NODES = [
    node(1, duration=300, shapes="[[64, 3], [3]]", attributes={"tid": ("int64", 7)}),
    node(
        2,
        "kernel",
        0,
        deps=[1, 300],
        control=[4, 1],
        attributes={"is_cpu_op": ("bool", False)},
        start=9,
    ),
    node(3, kind=COLL, attributes={"d": ("double", 0.5), "l": ("fixed32 list", [1, 2])}),
    node(4, attributes={"tid": ("sint32", -4), "s": ("string", "x")}, extra=field(60, b"new")),
    node(5, extra=group(60, field(7, 1), groups(3))),
]
"""Nodes of a Chakra trace, as messages."""


def make_logs(folder: Path, log_version: int, order: ByteOrder, *, seed: int = 1) -> LogSet:
    """Make a small log set with brackets, messages and dependencies."""
    rewritelog.synth(
        folder,
        pes=3,
        sebs=4,
        messages=1.2,
        files=1,
        bracketed=0.6,
        timings=20,
        log_version=log_version,
        byte_order=order,
        seed=seed,
    )
    return open_logs(folder)
