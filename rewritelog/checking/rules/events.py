"""Rules of the log events of SEBs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rewritelog.checking.block import CheckedBlock, Violations
from rewritelog.checking.rules.rule import Rule, Severity
from rewritelog.formats.bgtrace.records import IRREGULAR

_ROUNDING = 4.0 * np.finfo(np.float64).eps
"""The largest error of a SEB's duration, relative to its times."""


@Rule(
    "marks",
    Severity.ODD,
    "Marks come in pairs, in order and inside the SEB.",
    "The simulator ignores them. A rewrite cannot tell which part of the SEB is bracketed, "
    "and dilates all of it.",
)
def _marks(block: CheckedBlock) -> Iterator[Violations]:
    sebs, lay = block.records.sebs, block.records.loaded.layout
    head = lay.seb.itemsize + lay.count.itemsize
    events = sebs.at + head + block.records.counts[:, 0] * lay.message.itemsize
    irregular = block.brackets.counts == IRREGULAR
    yield block.where(
        "sebs", irregular, lambda _: "its marks do not pair up inside the SEB", events
    )


@Rule(
    "event-outside",
    Severity.ODD,
    "The rTime of a log event lies between 0 and the SEB's duration.",
    "Trace viewers show the log event in another SEB. In an unclosed SEB it is not a finding.",
)
def _event_outside(block: CheckedBlock) -> Iterator[Violations]:
    time, seb = block.records.events["r_time"], block.records.events.seb
    start, end = (block.records.sebs[name][seb] for name in ("start_time", "end_time"))
    slack = _ROUNDING * np.maximum(np.abs(start), np.abs(end))
    after = (end >= start) & (time > end - start + slack)
    yield block.where(
        "events", np.isfinite(time) & ((time < 0.0) | after), lambda k: f"rTime {time[k]} s"
    )
