"""What a rewrite may be told; no heavy imports, the command line reads it first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from rewritelog.errors import UsageError

RecvPolicy: TypeAlias = Literal["shift", "keep"]
EngineName: TypeAlias = Literal["threads", "mpi"]


@dataclass(frozen=True)
class RewriteOptions:
    """How logs are rewritten; made whole and checked, it raises `UsageError`."""

    model: str = "constant"
    model_options: Mapping[str, object] = field(default_factory=dict)
    timings: tuple[Path, ...] = ()
    """Files of timing lines, for models that fit."""
    params: Path | None = None
    """The folder of `param.P`; the log folder where none is named."""
    clock_hz: float | None = None
    """Clock of times that are given in cycles."""
    strict: bool = False
    """Whether a malformed timing or param line is an error."""
    dilation: float = 1.0
    """The factor for what no model covers."""
    dilation_for: tuple[tuple[str, float], ...] = ()
    """Pattern of SEB names and factor; the last that matches wins."""
    recv: RecvPolicy = "shift"
    """Whether a message keeps its time under way, or its arrival."""
    copy_params: bool = False
    """Whether `param.P` are copied to the output."""
    force: bool = False
    """Whether an output that exists is replaced."""
    flush: bool = True
    """Whether the output is on the disk, and not in the system's cache, before it has its name."""
    engine: EngineName = "threads"
    """Whether blocks are worked through by threads, or by the ranks of an MPI job."""
    jobs: int = 0
    """Number of threads; 0 for as many as the process may use cores."""
    block_bytes: int = 16 << 20
    """Blocks are made up to this size."""

    def __post_init__(self) -> None:
        check_factor("the dilation", self.dilation)
        for name, factor in self.dilation_for:
            check_factor(f"the dilation for {name!r}", factor)
        if self.clock_hz is not None:
            check_factor("the clock", self.clock_hz)
        if self.recv not in ("shift", "keep"):
            raise UsageError(f"the policy for recvTime is 'shift' or 'keep', not {self.recv!r}")
        if self.engine not in ("threads", "mpi"):
            raise UsageError(f"the engine is 'threads' or 'mpi', not {self.engine!r}")
        if self.jobs < 0:
            raise UsageError(f"{self.jobs} jobs cannot be")
        if self.block_bytes < 1:
            raise UsageError(f"blocks of {self.block_bytes} bytes cannot be")


def check_factor(what: str, value: float) -> None:
    """Raise `UsageError` where a factor is not a finite number above 0."""
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{what} must be a finite number above 0, not {value}")
