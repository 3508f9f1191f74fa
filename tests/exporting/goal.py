"""GOAL schedules: a parser as strict as LogGOPSim's, and a small simulator of their meaning."""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

_LABEL = r"[a-zA-Z][a-zA-Z0-9_]*"
_CALC = re.compile(rf"({_LABEL}): calc (\d+) cpu (\d+)")
_MESSAGE = re.compile(rf"({_LABEL}): (send|recv) (\d+)b (to|from) (\d+) tag (\d+) cpu (\d+)")
_DEPENDENCY = re.compile(rf"({_LABEL}) (i?requires) ({_LABEL})")


@dataclass
class Operation:
    """An operation of a rank."""

    kind: str
    size: int
    """Nanoseconds of a calc, bytes of a message."""
    cpu: int
    peer: int = -1
    tag: int = -1
    requires: list[str] = field(default_factory=list)
    irequires: list[str] = field(default_factory=list)


Rank = dict[str, Operation]


def parse(path: Path) -> list[Rank]:
    """Read a schedule; a label must be defined before a dependency names it, and once."""
    lines = iter(path.read_text(encoding="ascii").splitlines())
    head = re.fullmatch(r"num_ranks (\d+)", next(lines))
    assert head is not None
    ranks: list[Rank] = []
    inside = False
    for line in lines:
        if not inside:
            assert line == f"rank {len(ranks)} {{"
            ranks.append({})
            inside = True
        elif line == "}":
            inside = False
        else:
            _add(ranks[-1], line)
    assert not inside
    assert len(ranks) == int(head[1])
    return ranks


def _add(rank: Rank, line: str) -> None:
    if match := _CALC.fullmatch(line):
        label, operation = match[1], Operation("calc", int(match[2]), int(match[3]))
    elif match := _MESSAGE.fullmatch(line):
        assert (match[2], match[4]) in (("send", "to"), ("recv", "from"))
        size, cpu, peer, tag = (int(match[k]) for k in (3, 7, 5, 6))
        label, operation = match[1], Operation(match[2], size, cpu, peer, tag)
    else:
        match = _DEPENDENCY.fullmatch(line)
        assert match is not None, line
        assert match[3] in rank, line
        getattr(rank[match[1]], match[2]).append(match[3])
        return
    assert label not in rank, line
    assert 0 <= operation.cpu < 256
    assert operation.tag < 2**32 - 1
    rank[label] = operation


Key = tuple[int, str]


def run_time_ns(
    ranks: list[Rank], latency_ns: int, ns_a_byte: float = 0.0, *, own_clock: bool = False
) -> float:
    """Run a schedule without overheads: a CPU runs one operation at a time, the first ready one.

    With `own_clock` as LogGOPSim does it: an operation can run at the time that the clock of its
    own CPU has, and a message moves the clock of the CPU with the number of the sender's.
    """
    run = _OwnClocks if own_clock else _Run
    return run([dict(rank) for rank in ranks], latency_ns, ns_a_byte).to_the_end()


class _Run:
    def __init__(self, ranks: list[Rank], latency_ns: int, ns_a_byte: float) -> None:
        self.ranks, self.latency_ns, self.ns_a_byte = ranks, latency_ns, ns_a_byte
        self.waits: dict[Key, int] = {}
        self.after: dict[tuple[int, str, bool], list[str]] = defaultdict(list)
        self.receivers: dict[tuple[int, int, int, int], list[str]] = defaultdict(list)
        self.free: dict[tuple[int, int], float] = defaultdict(float)
        self.ready_at: dict[Key, float] = defaultdict(float)
        self.queue: list[tuple[float, int, Key]] = []
        for r, rank in enumerate(ranks):
            for name, op in rank.items():
                self._add(r, name, op)

    def _add(self, r: int, name: str, op: Operation) -> None:
        self.waits[r, name] = len(op.requires) + len(op.irequires) + (op.kind == "recv")
        for begun, others in ((False, op.requires), (True, op.irequires)):
            for other in others:
                self.after[r, other, begun].append(name)
        if op.kind == "recv":
            self.receivers[op.peer, r, op.tag, op.size].append(name)
        if self.waits[r, name] == 0:
            self._push(0.0, (r, name))

    def _push(self, time: float, key: Key) -> None:
        self.serial = getattr(self, "serial", 0) + 1
        heapq.heappush(self.queue, (time, self.serial, key))

    def to_the_end(self) -> float:
        """Run until nothing is ready; fail where something still waits."""
        done, end = 0, 0.0
        while self.queue:
            time, order, key = heapq.heappop(self.queue)
            cpu = (key[0], self.ranks[key[0]][key[1]].cpu)
            if self.free[cpu] > time:
                heapq.heappush(self.queue, (self.free[cpu], order, key))
                continue
            self.free[cpu] = self._run(time, *key)
            end = max(end, self.free[cpu])
            done += 1
        assert done == len(self.waits), "the schedule waits forever"
        assert not any(self.receivers.values()), "a receive without a send"
        return end

    def _run(self, time: float, r: int, name: str) -> float:
        op = self.ranks[r][name]
        finish = time + (op.size if op.kind == "calc" else 0)
        if op.kind == "send":
            receiver = self.receivers[r, op.peer, op.tag, op.size].pop()
            arrival = finish + self.latency_ns + self.ns_a_byte * op.size
            self._satisfy(op.peer, receiver, arrival)
        for begun in (True, False):
            for other in self.after[r, name, begun]:
                self._satisfy(r, other, time if begun else finish)
        return finish

    def _satisfy(self, r: int, name: str, time: float) -> None:
        key = (r, name)
        self.ready_at[key] = max(self.ready_at[key], time)
        self.waits[key] -= 1
        if self.waits[key] == 0:
            self._push(self.ready_at[key], key)


class _OwnClocks(_Run):
    def _satisfy(self, r: int, name: str, time: float) -> None:
        if self.ranks[r][name].kind == "recv":
            arrival = f"arrival: {name}"
            self.ranks[r][arrival] = Operation("arrival", 0, self.sending_cpu)
            self.waits[r, arrival] = 0
            self._push(time, (r, arrival))
        else:
            self._free(r, name)

    def _free(self, r: int, name: str) -> None:
        self.waits[r, name] -= 1
        if self.waits[r, name] == 0:
            self._push(self.free[r, self.ranks[r][name].cpu], (r, name))

    def _run(self, time: float, r: int, name: str) -> float:
        op = self.ranks[r][name]
        self.sending_cpu = op.cpu
        self.free[r, op.cpu] = time + (op.size if op.kind == "calc" else 0)
        if op.kind == "arrival":
            self._free(r, name.removeprefix("arrival: "))
        return super()._run(time, r, name)
