"""One function mapped over the blocks of a log set, by threads or by the ranks of an MPI job."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias, TypeVar

EngineName: TypeAlias = Literal["threads", "mpi"]
Result = TypeVar("Result")

WRONG_USAGE = 2
"""The exit code of wrong usage, which each rank of a shared run detects by itself."""

_VARIABLES = (
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PALS_RANKID", "PALS_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
"""Variables of MPICH and its derivatives, Open MPI, MVAPICH, Cray PALS, and Slurm's srun."""


@dataclass(frozen=True)
class Job:
    """The rank of a process among those started together."""

    rank: int = 0
    ranks: int = 1


def this_job() -> Job:
    """Return this process's job, one of a single process if no launcher set variables."""
    for rank, ranks in _VARIABLES:
        values = (os.environ.get(rank, ""), os.environ.get(ranks, ""))
        if all(value.isascii() and value.isdigit() and len(value) < 10 for value in values):
            return Job(int(values[0]), int(values[1]))
    return Job()


def is_shared(words: list[str]) -> bool:
    """Return whether a command line makes the ranks of the job share one run."""
    pairs = pairwise(words)
    return "--engine=mpi" in words or ("--engine", "mpi") in pairs


def lead(name: EngineName, jobs: int, job: Callable[[], Result]) -> Result | None:
    """Return the result of a job whose passes run on an engine.

    In an MPI job, all ranks call this: rank 0 runs the job, the others work for it, and get None
    when it is done or has failed. Raise `RewriteLogError` if the engine is not available.
    """
    if name != "mpi":
        return job()
    from rewritelog.running.engines import running_on  # noqa: PLC0415 - few runs need all this
    from rewritelog.running.mpi import MpiEngine  # noqa: PLC0415

    with MpiEngine(jobs) as engine:
        if engine.leads:
            with running_on(engine):
                return job()
        engine.serve()
        return None
