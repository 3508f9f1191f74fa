"""GOAL schedules (LogGOPSim, ATLAHS): nodes are ranks, worker threads are CPUs of a rank.

A SEB becomes computations that are divided where its messages are sent. The computation after a
send requires only that the send has begun (`irequires`). A message between workers of one node
becomes a dependency, and one of a PE to itself a dependency on the whole SEB that sends it. The
label `w0_17` is the end of SEB 17 of worker 0, and `w0_m5` the point where its message 5 is sent.
Dependencies are at the end of their rank, since a label has to be defined before it is used.

Each worker has a second CPU for its messages, corresponding to BigSim's communication threads: a
message that arrives while the worker computes does not have to wait.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO, TypeVar

import numpy as np

from rewritelog.arrays import Bytes
from rewritelog.errors import UsageError
from rewritelog.exporting.kernels.goal import (
    COMPUTATIONS,
    DEPENDENCY_ROW,
    LINE_BYTES,
    OPERATION_ROW,
    RECEIVES,
    SENDS,
    WORDS,
    Dependencies,
    Operations,
    lay_out,
    write_dependencies,
    write_operations,
)
from rewritelog.exporting.programs import Steps

_MOST_CPUS = 256
_ROWS_AT_ONCE = 1 << 16

Rows = TypeVar("Rows", Operations, Dependencies)


@dataclass
class GoalWriter:
    """Writes ranks one after the other; PEs have to be in ascending order."""

    file: BinaryIO
    dependencies: BinaryIO
    """A scratch file for the dependencies of the rank that is being written."""
    nodes: int
    workers: int
    """The number of workers per node."""
    counts: dict[str, int] = field(default_factory=dict)
    _node: int = -1

    def begin(self) -> None:
        """Write the head of the schedule."""
        if 2 * self.workers > _MOST_CPUS:
            most = _MOST_CPUS // 2
            raise UsageError(
                f"GOAL allows at most {most} worker threads per node, not {self.workers}"
            )
        self.counts = dict.fromkeys(("computations", "sends", "receives", "dependencies"), 0)
        self.file.write(f"num_ranks {self.nodes}\n".encode())

    def end(self) -> None:
        """End the last rank."""
        self._end_rank()

    def rank(self, pe: int) -> None:
        """Begin the rank of a PE, unless it is the current one."""
        node = pe // self.workers
        if node != self._node:
            self._end_rank()
            self._node = node
            self.file.write(f"rank {node} {{\n".encode())

    def write(self, steps: Steps) -> None:
        """Write SEBs."""
        sebs, sends, receivers = len(steps.seb), len(steps.number), len(steps.receiver_pe)
        table = np.empty(2 * sebs + 2 * sends + receivers, dtype=OPERATION_ROW)
        links = np.empty(
            2 * sebs + len(steps.required) + 2 * sends + 2 * receivers, dtype=DEPENDENCY_ROW
        )
        operations = Operations(*(table[name] for name in OPERATION_ROW.names or ()))
        dependencies = Dependencies(*(links[name] for name in DEPENDENCY_ROW.names or ()))
        count, linked = lay_out(steps, self.workers, operations, dependencies)
        worker = steps.pe % self.workers
        for kind, name in (
            (COMPUTATIONS, "computations"),
            (SENDS, "sends"),
            (RECEIVES, "receives"),
        ):
            self.counts[name] += int(np.count_nonzero(operations.kind[:count] == kind))
        self.counts["dependencies"] += linked
        self._put(self.file, write_operations, operations, count, worker)
        self._put(self.dependencies, write_dependencies, dependencies, linked, worker)

    @staticmethod
    def _put(
        file: BinaryIO, write: Callable[..., int], rows: Rows, count: int, worker: int
    ) -> None:
        """Write the text of rows, a limited number at a time."""
        text: Bytes = np.empty(min(count, _ROWS_AT_ONCE) * LINE_BYTES, dtype=np.uint8)
        for at in range(0, count, _ROWS_AT_ONCE):
            some = type(rows)(*(column[at:] for column in rows))
            length = write(some, min(_ROWS_AT_ONCE, count - at), worker, WORDS, text)
            file.write(text[:length].data)

    def _end_rank(self) -> None:
        if self._node >= 0:
            self.dependencies.seek(0)
            shutil.copyfileobj(self.dependencies, self.file)
            self.dependencies.seek(0)
            self.dependencies.truncate()
            self.file.write(b"}\n")
