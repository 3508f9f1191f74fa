"""SEBs whose durations TraceR takes from elsewhere, by their names (docs/simulating.md)."""

from __future__ import annotations

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


def tracer_replaces(name: bytes) -> bool:
    """Return whether TraceR ignores the duration of SEBs with this name."""
    return (name + b"\0").startswith(_BEGINNINGS)
