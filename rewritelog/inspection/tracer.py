"""Which SEBs have no duration of their own in TraceR, by its reader (docs/simulating.md)."""

from __future__ import annotations

_PREFIX = "AMPI_"
_NAMES = frozenset(
    (
        "ATAReq_wait",
        "RECV_RESUME",
        "SPLIT_RESUME",
        "PROBE_RESUME",
        "IPROBE_RESUME",
        "msgep",
        "GroupReduce",
        "start-broadcast",
        "split-broadcast",
        "end-broadcast",
    )
)


def tracer_replaces(name: str) -> bool:
    """Return whether TraceR takes the duration of SEBs of a name from elsewhere than the log."""
    return name.startswith(_PREFIX) or name in _NAMES
