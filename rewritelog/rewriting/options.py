"""The options of a rewrite; no heavy imports, since the command line reads it first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rewritelog.errors import UsageError

if TYPE_CHECKING:
    from rewritelog.models.base import Model

RecvPolicy: TypeAlias = Literal["shift", "keep"]
EngineName: TypeAlias = Literal["threads", "mpi"]
SpreadName: TypeAlias = Literal["none", "residual"]
TotalName: TypeAlias = Literal["measured", "quiet"]


@dataclass(frozen=True)
class RewriteOptions:
    """How logs are rewritten; made whole and checked, it raises `UsageError`."""

    model: str | None = None
    """None for what the rest asks for: `auto` where there are timings, else `constant`."""
    model_options: Mapping[str, object] = field(default_factory=dict)
    timings: tuple[Path, ...] = ()
    """Files of timing lines, for models that fit."""
    fitted: Path | Model[Any] | None = None
    """A model file, or a model at hand, used instead of a model that is fitted."""
    formulas: Path | None = None
    """The file of formulas, for models that take one."""
    coefficients: Path | None = None
    """The file of coefficients, for the model of that name."""
    param_names: Path | None = None
    """A file of names for the parameters, for the report."""
    params: Path | None = None
    """The folder of `param.P`; the log folder where none is named."""
    clock_hz: float | None = None
    """Clock of times that are given in cycles."""
    strict: bool = False
    """Whether a malformed timing or param line is an error."""
    dilation: float | None = None
    """The factor for what no model covers; None for 1, which then is worth a warning."""
    dilation_for: tuple[tuple[str, float], ...] = ()
    """Pattern of SEB names and factor; the last that matches wins."""
    total: TotalName = "measured"
    """Whether sums of predicted durations are as measured, rare long calls included, or those of a
    machine on which every call takes its usual time."""
    spread: SpreadName = "none"
    """Whether predicted durations are means, or lie around them as measured ones did."""
    spread_seed: int = 1
    """Decides, with PE, SEB and bracket, how far from its mean each duration lies."""
    recv: RecvPolicy = "shift"
    """Whether a message keeps its transit time, or its arrival."""
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

    @property
    def general_dilation(self) -> float:
        """Return the factor for what no model covers and no name has one for."""
        return 1.0 if self.dilation is None else self.dilation

    @property
    def model_name(self) -> str:
        """Return what the model is called: its name, or that of the model file."""
        if self.fitted is not None:
            return str(self.fitted)
        return self.model or ("auto" if self.timings else "constant")

    @property
    def files(self) -> tuple[Path | None, ...]:
        """Return the files that are read for it besides logs and params; None for those unnamed."""
        fitted = self.fitted if isinstance(self.fitted, Path) else None
        return (*self.timings, fitted, self.formulas, self.coefficients, self.param_names)

    def __post_init__(self) -> None:
        self._check_fitted()
        check_factor("the dilation", self.general_dilation)
        for name, factor in self.dilation_for:
            check_factor(f"the dilation for {name!r}", factor)
        if self.clock_hz is not None:
            check_factor("the clock", self.clock_hz)
        if self.recv not in ("shift", "keep"):
            raise UsageError(f"recv must be 'shift' or 'keep', not {self.recv!r}")
        if self.total not in ("measured", "quiet"):
            raise UsageError(f"the total must be 'measured' or 'quiet', not {self.total!r}")
        if self.spread not in ("none", "residual"):
            raise UsageError(f"the spread must be 'none' or 'residual', not {self.spread!r}")
        if not 0 <= self.spread_seed < 1 << 64:
            raise UsageError(f"the spread's seed must be 0 to 2^64 - 1, not {self.spread_seed}")
        if self.engine not in ("threads", "mpi"):
            raise UsageError(f"the engine must be 'threads' or 'mpi', not {self.engine!r}")
        if self.jobs < 0:
            raise UsageError(f"the number of jobs must be 0 or more, not {self.jobs}")
        if self.block_bytes < 1:
            raise UsageError(f"a block must have 1 byte or more, not {self.block_bytes}")

    def _check_fitted(self) -> None:
        """Refuse what a model file has in it already."""
        excluded = {
            "--model": self.model,
            "--timings": self.timings,
            "--formulas": self.formulas,
            "--coefficients": self.coefficients,
            "--param-names": self.param_names,
            "--clock-hz": self.clock_hz,
            "options of a model": self.model_options,
        }
        given = [what for what, value in excluded.items() if value]
        if self.fitted is not None and given:
            raise UsageError(f"--fitted FILE holds a fitted model: it takes no {given[0]}")


def check_factor(what: str, value: float) -> None:
    """Raise `UsageError` where a factor is not a finite number above 0."""
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{what} must be a finite number above 0, not {value}")
