"""SEBs whose durations TraceR takes from elsewhere, by their names (docs/simulating.md)."""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Bytes
from tracebigsim.compiled import inner

_BEGINNINGS = (
    b"AMPI_",
    b"ATAReq_wait\0",
    b"RECV_RESUME\0",
    b"SPLIT_RESUME\0",
    b"PROBE_RESUME\0",
    b"IPROBE_RESUME\0",
    b"msgep\0",
    b"GroupReduce\0",
    b"start-broadcast\0",
    b"split-broadcast\0",
    b"end-broadcast\0",
)
"""Prefixes of such names, each name being followed by a NUL."""

_LENGTHS = np.array([len(text) for text in _BEGINNINGS])
_TEXTS = np.array(_BEGINNINGS, dtype="S20").view(np.uint8).reshape(len(_BEGINNINGS), 20)


@inner
def tracer_replaces_at(buf: Bytes, at: int) -> bool:
    """Return whether TraceR ignores the duration of the SEB whose name is at `at`."""
    for row in range(len(_LENGTHS)):
        same = 0
        while same < _LENGTHS[row] and buf[at + same] == _TEXTS[row, same]:
            same += 1
        if same == _LENGTHS[row]:
            return True
    return False


def tracer_replaces(name: str) -> bool:
    """Return whether TraceR ignores the duration of SEBs with this name."""
    return (name.encode() + b"\0").startswith(_BEGINNINGS)
