"""One function mapped over the blocks of a log set, by threads or by the ranks of an MPI job."""

from typing import Literal, TypeAlias

EngineName: TypeAlias = Literal["threads", "mpi"]
ENGINES: tuple[EngineName, ...] = ("threads", "mpi")
