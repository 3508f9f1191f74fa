"""The MPI job of this process, from environment variables and without loading MPI."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn

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


def leave_unjoined(code: int) -> NoReturn:
    """Exit from a process that has not initialized MPI.

    A rank that fails ends by a signal, since launchers notice no other end of such a rank: those
    that wait for it in MPI_Init would do so forever.
    """
    if code not in (0, WRONG_USAGE) and is_shared(sys.argv) and this_job().ranks > 1:
        number = code - 128 if code > 128 else signal.SIGTERM
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(code)
