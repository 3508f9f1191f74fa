"""The options of a rewrite; without heavy imports, because the command line reads them first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rewritelog.errors import UsageError
from rewritelog.running import ENGINES, EngineName

if TYPE_CHECKING:
    from rewritelog.models.base import Model

RecvPolicy: TypeAlias = Literal["shift", "keep"]
SpreadName: TypeAlias = Literal["none", "residual"]
TotalName: TypeAlias = Literal["measured", "typical"]


@dataclass(frozen=True)
class RewriteOptions:
    """The options of a rewrite; raises `UsageError` for invalid ones."""

    model: str | None = None
    """The name of the model; None for `auto` with timings, else `constant`."""
    model_options: Mapping[str, object] = field(default_factory=dict)
    timings: tuple[Path, ...] = ()
    """Files of timing lines, for models that fit."""
    fitted: Path | Model[Any] | None = None
    """A model file, or a model object, to use in place of fitting a model."""
    formulas: Path | None = None
    """The file of formulas, for models that take one."""
    coefficients: Path | None = None
    """The file of coefficients, for the model of that name."""
    param_names: Path | None = None
    """A file of names for the parameters, for the report."""
    params: Path | None = None
    """The folder of the `param.P` files; None for the log folder."""
    clock_hz: float | None = None
    """The clock in Hz for times in cycles."""
    strict: bool = False
    """Whether a malformed timing or param line is an error."""
    dilation: float | None = None
    """The factor for durations that no model covers; None for 1 with a warning."""
    dilation_for: tuple[tuple[str, float], ...] = ()
    """Pairs of a pattern of SEB names and a factor; the last match wins."""
    total: TotalName = "measured"
    """Whether sums of predicted durations agree with measured ones, including rare long calls, or
    are those of a machine on which every call takes its typical time."""
    spread: SpreadName = "none"
    """Whether predicted durations are means, or vary about them as measured ones do."""
    spread_seed: int = 1
    """The seed that, with PE, SEB and bracket, determines the variation of each duration."""
    recv: RecvPolicy = "shift"
    """Whether a message keeps its transit time (`shift`) or its receive time (`keep`)."""
    copy_params: bool = False
    """Whether `param.P` are copied to the output."""
    types: tuple[str, ...] = ()
    """The types of events in traces whose durations are new; none for those that compute."""
    event_params: Path | None = None
    """The file of events and parameters of traced operations."""
    force: bool = False
    """Whether an existing output is replaced."""
    flush: bool = True
    """Whether the output is flushed to the disk before it is renamed to its final name."""
    engine: EngineName = "threads"
    """Whether blocks are processed by threads or by the ranks of an MPI job."""
    jobs: int = 0
    """The number of threads; 0 for the number of cores that the process may use."""
    block_bytes: int = 16 << 20
    """The largest size of a block."""

    @property
    def general_dilation(self) -> float:
        """The factor for durations that no model covers, without a factor for their SEB name."""
        return 1.0 if self.dilation is None else self.dilation

    @property
    def model_name(self) -> str:
        """The name of the model in reports: its own, or that of the model file."""
        if self.fitted is not None:
            return str(self.fitted)
        return self.model or ("auto" if self.timings else "constant")

    @property
    def files(self) -> tuple[Path | None, ...]:
        """The input files besides logs and params; None for those that are not given."""
        fitted = self.fitted if isinstance(self.fitted, Path) else None
        return (*self.timings, fitted, self.formulas, self.coefficients, self.param_names)

    def check_for_logs(self) -> None:
        """Raise `UsageError` for an option that bgTrace logs have no use for."""
        for name, is_given in (("--types", self.types), ("--event-params", self.event_params)):
            if is_given:
                raise UsageError(f"{name} is for traces of events, such as Chakra's, not bgTrace")

    def __post_init__(self) -> None:
        self._check_fitted()
        check_factor("the dilation", self.general_dilation)
        for name, factor in self.dilation_for:
            check_factor(f"the dilation for {name!r}", factor)
        if self.clock_hz is not None:
            check_factor("the clock", self.clock_hz)
        if self.recv not in ("shift", "keep"):
            raise UsageError(f"recv must be 'shift' or 'keep', not {self.recv!r}")
        if self.total not in ("measured", "typical"):
            raise UsageError(f"the total must be 'measured' or 'typical', not {self.total!r}")
        if self.spread not in ("none", "residual"):
            raise UsageError(f"the spread must be 'none' or 'residual', not {self.spread!r}")
        if not 0 <= self.spread_seed < 1 << 64:
            raise UsageError(f"the spread's seed must be 0 to 2^64 - 1, not {self.spread_seed}")
        if self.engine not in ENGINES:
            raise UsageError(f"the engine must be 'threads' or 'mpi', not {self.engine!r}")
        if self.jobs < 0:
            raise UsageError(f"the number of jobs must be 0 or more, not {self.jobs}")
        if self.block_bytes < 1:
            raise UsageError(f"a block must have 1 byte or more, not {self.block_bytes}")

    def _check_fitted(self) -> None:
        """Raise `UsageError` for options that contradict a model file."""
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
            raise UsageError(f"--fitted FILE cannot be combined with {given[0]}")


def check_factor(what: str, value: float) -> None:
    """Raise `UsageError` if a factor is not positive and finite."""
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{what} must be a finite number above 0, not {value}")
