"""GOAL schedules (LogGOPSim, ATLAHS): a rank a node, a CPU a worker thread, dependencies kept.

A SEB is computation split where its messages leave. The computation after a send requires only
that it has begun (`irequires`); messages between workers of one node are dependencies, and one of a
PE to itself is a dependency on the whole SEB that sends it. Labels are `w0_17` for the end of SEB
17 of worker 0, and `w0_m5` for where its message 5 leaves. Dependencies stand at the end of their
rank, since a label must be defined before it is named.

Beside the CPU of each worker there is one for its messages, as BigSim's machines have communication
threads: a message that comes while the worker computes need not wait for it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TextIO

from rewritelog.errors import UsageError
from rewritelog.exporting.programs import Send, Step

_NS_PER_S = 1e9
_MOST_CPUS = 256
_TAGS = (1 << 32) - 1
"""One less than there are: the last one stands for any tag."""


@dataclass
class GoalWriter:
    """Writes ranks one after the other; the PEs must come in rising order."""

    file: TextIO
    dependencies: TextIO
    """A scratch file for the dependencies of the rank that is being written."""
    nodes: int
    workers: int
    """Of a node."""
    counts: dict[str, int] = field(default_factory=dict)
    _node: int = -1

    def begin(self) -> None:
        """Write what stands before the ranks."""
        if 2 * self.workers > _MOST_CPUS:
            most = _MOST_CPUS // 2
            raise UsageError(f"GOAL has room for {most} worker threads a node, not {self.workers}")
        self.counts = dict.fromkeys(("computations", "sends", "receives", "dependencies"), 0)
        self.file.write(f"num_ranks {self.nodes}\n")

    def end(self) -> None:
        """End the last rank."""
        self._end_rank()

    def rank(self, pe: int) -> None:
        """Begin the rank of a PE, where it is not that of the last step."""
        node = pe // self.workers
        if node != self._node:
            self._end_rank()
            self._node = node
            self.file.write(f"rank {node} {{\n")

    def write(self, step: Step) -> None:
        """Write a SEB."""
        _Block(self, step, step.pe % self.workers).write()

    def operation(self, kind: str, label: str, text: str) -> None:
        """Write an operation."""
        self.file.write(f"{label}: {text}\n")
        self.counts[kind] += 1

    def dependency(self, label: str, other: str, *, begun: bool = False) -> None:
        """Note that an operation requires the end of another, or only that it has begun."""
        self.dependencies.write(f"{label} {'irequires' if begun else 'requires'} {other}\n")
        self.counts["dependencies"] += 1

    def tag(self, pe: int, msg_id: int) -> int:
        """Return the tag of a message, which is unique among those of its rank."""
        return (msg_id * self.workers + pe % self.workers) % _TAGS

    def _end_rank(self) -> None:
        if self._node >= 0:
            self.dependencies.seek(0)
            shutil.copyfileobj(self.dependencies, self.file)
            self.dependencies.seek(0)
            self.dependencies.truncate()
            self.file.write("}\n")


@dataclass
class _Block:
    """One SEB, operation by operation."""

    out: GoalWriter
    step: Step
    worker: int
    reached_ns: int = 0
    current: str = ""
    """The last computation."""
    begun: list[str] = field(default_factory=list)
    """Sends since then."""

    @property
    def _end(self) -> str:
        return f"w{self.worker}_{self.step.seb}"

    @property
    def _messenger(self) -> int:
        return self.out.workers + self.worker

    def write(self) -> None:
        """Write what the SEB waits for, what it computes and what it sends."""
        entry = self._entry()
        for k, send in enumerate(self.step.sends):
            self._compute(f"{self._end}_c{k}", round(send.offset_s * _NS_PER_S), entry)
            self._send(k, send)
        self._compute(self._end, round(self.step.duration_s * _NS_PER_S), entry, last=True)

    def _entry(self) -> list[str]:
        """Write the receive of the starting message; return what the SEB requires."""
        entry = [f"w{self.worker}_{seb}" for seb in self.step.requires]
        cause = self.step.cause
        if cause is not None:
            node, worker = divmod(cause.pe, self.out.workers)
            if cause.pe == self.step.pe:
                return [f"w{self.worker}_{cause.seb}", *entry]
            if node == self.step.pe // self.out.workers:
                return [f"w{worker}_m{cause.msg_id}", *entry]
            tag = self.out.tag(cause.pe, cause.msg_id)
            text = f"recv {cause.size_bytes}b from {node} tag {tag} cpu {self._messenger}"
            self.out.operation("receives", f"{self._end}_r", text)
            entry.insert(0, f"{self._end}_r")
        return entry

    def _compute(self, label: str, until_ns: int, entry: list[str], *, last: bool = False) -> None:
        """Write the computation up to a time since the start, where there is any or it is last."""
        if not last and self.current and until_ns == self.reached_ns:
            return
        duration = max(0, until_ns - self.reached_ns)
        self.out.operation("computations", label, f"calc {duration} cpu {self.worker}")
        for other in [self.current] if self.current else entry:
            self.out.dependency(label, other)
        for other in self.begun:
            self.out.dependency(label, other, begun=True)
        self.reached_ns = max(until_ns, self.reached_ns)
        self.current, self.begun = label, []

    def _send(self, k: int, send: Send) -> None:
        """Write a message: a send to each SEB of another node that it starts."""
        nodes = send.receivers["pe"] // self.out.workers
        own = self.step.pe // self.out.workers
        if ((nodes == own) & (send.receivers["pe"] != self.step.pe)).any():
            mark = f"w{self.worker}_m{send.msg_id}"
            self.out.operation("computations", mark, f"calc 0 cpu {self.worker}")
            self.out.dependency(mark, self.current)
        tag = self.out.tag(self.step.pe, send.msg_id)
        for j, node in enumerate(nodes[nodes != own].tolist()):
            label = f"{self._end}_s{k}_{j}"
            text = f"send {send.size_bytes}b to {node} tag {tag} cpu {self._messenger}"
            self.out.operation("sends", label, text)
            self.out.dependency(label, self.current)
            self.begun.append(label)
