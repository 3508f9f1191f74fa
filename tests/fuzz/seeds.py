"""Good inputs to damage: made logs of every version and byte order, and their texts."""

from __future__ import annotations

from pathlib import Path

from rewritelog.formats.bgtrace import ByteOrder
from rewritelog.formats.bgtrace.logset import LogSet, open_logs
from rewritelog.synthesis.synth import SynthOptions, synthesise


def make_logs(folder: Path, log_version: int, order: ByteOrder, *, seed: int = 1) -> LogSet:
    """Make a small log set with brackets, messages and dependencies."""
    options = SynthOptions(
        pes=3,
        sebs=4,
        messages=1.2,
        files=1,
        bracketed=0.6,
        timings=20,
        log_version=log_version,
        order=order,
        seed=seed,
    )
    synthesise(folder, options)
    return open_logs(folder)
