"""GOAL schedules (LogGOPSim, ATLAHS): each PE is a rank with one CPU.

A SEB becomes computations that are divided where its messages are sent. The computation after a
send requires only that the send has begun (`irequires`). A message of a PE to itself becomes a
dependency on the whole SEB that sends it. In a rank, the label `s17` is the end of SEB 17, `r17`
the receive of the message that starts it, `m17_2` its third send, and `p17_2` the computation
before that.

All operations of a PE are on one CPU: LogGOPSim starts an operation at the clock of its own CPU,
whatever the clock of the CPU that it has waited for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.exporting.programs import Steps

_NS_PER_S = 1e9
_MOST_NS = 2.0**63
_TAGS = (1 << 32) - 1
"""The number of tags that can be used: the last one means any tag."""
_TOO_LONG = "GOAL holds less than 2^63 ns"

_TEMPLATES = {
    "receive": "r%d: recv %db from %d tag %d cpu 0",
    "part": "p%d_%d: calc %d cpu 0",
    "send": "m%d_%d: send %db to %d tag %d cpu 0",
    "end": "s%d: calc %d cpu 0",
    "part after receive": "p%d_0 requires r%d",
    "part after end": "p%d_0 requires s%d",
    "end after receive": "s%d requires r%d",
    "end after end": "s%d requires s%d",
    "send after part": "m%d_%d requires p%d_%d",
    "part after send": "p%d_%d irequires m%d_%d",
    "end after send": "s%d irequires m%d_%d",
    "rank": "rank %d {",
    "close": "}",
}
"""The lines of a schedule, in the order that they have within a SEB; each `%d` is a number."""

_KINDS = {name: kind for kind, name in enumerate(_TEMPLATES)}
_LINES = [f"{line}\n" for line in _TEMPLATES.values()]
_COLUMNS = 5
_HAVE = np.array([[at < line.count("%d") for at in range(_COLUMNS)] for line in _LINES])
"""Which columns of numbers lines of each kind have."""
_ROWS_AT_ONCE = 1 << 16


@dataclass
class _Lines:
    """Lines as rows: where they go, their kinds and their numbers."""

    keys: list[Ints] = field(default_factory=list)
    """The place of each line; lines at one place are in the order of their kinds."""
    numbers: list[Ints] = field(default_factory=list)

    def add(self, name: str, place: Ints, *columns: Ints) -> None:
        """Add lines of a kind."""
        rows = np.zeros((len(place), _COLUMNS), dtype=np.int64)
        for column, values in enumerate(columns):
            rows[:, column] = values
        self.keys.append(np.asarray(place * len(_KINDS) + _KINDS[name]))
        self.numbers.append(rows)

    def text(self) -> tuple[bytes, Ints]:
        """Return the lines in their order, and the number of each kind."""
        keys, numbers = np.concatenate(self.keys), np.concatenate(self.numbers)
        order = np.argsort(keys, kind="stable")
        kinds = keys % len(_KINDS)
        texts = []
        for at in range(0, len(order), _ROWS_AT_ONCE):
            rows = order[at : at + _ROWS_AT_ONCE]
            lines = "".join([_LINES[kind] for kind in kinds[rows].tolist()])
            texts.append(lines % tuple(numbers[rows][_HAVE[kinds[rows]]].tolist()))
        return "".join(texts).encode(), np.bincount(kinds, minlength=len(_KINDS))


def goal_part(steps: Steps) -> tuple[bytes, Ints]:
    """Return the ranks of PEs, and the number of each kind of lines."""
    lines, pes = _Lines(), np.array(steps.pes)
    rank = np.searchsorted(pes, steps.pe)
    place = np.arange(len(steps.pe)) + 2 * rank + 1
    first = np.searchsorted(steps.pe, pes) + 2 * np.arange(len(pes))
    closing = np.append(first[1:], len(place) + 2 * len(pes)) - 1
    lines.add("rank", first, pes)
    _add_operations(lines, steps, place)
    for name, step, seb, other in _requirements(steps):
        # a label has to be defined before
        lines.add(name, np.where(other > seb, closing[rank[step]], place[step]), seb, other)
    lines.add("close", closing)
    return lines.text()


def write_goal(file: BinaryIO, pes: int, parts: Iterable[tuple[bytes, Ints]]) -> dict[str, int]:
    """Write a schedule of ranks one after the other; return the numbers of operations."""
    file.write(f"num_ranks {pes}\n".encode())
    counts = np.zeros(len(_KINDS), dtype=np.int64)
    for text, kinds in parts:
        file.write(text)
        counts += kinds
    lines = dict(zip(_TEMPLATES, counts.tolist(), strict=True))
    return {
        "computations": lines["part"] + lines["end"],
        "sends": lines["send"],
        "receives": lines["receive"],
        "dependencies": sum(lines[name] for name in lines if "after" in name),
    }


def _add_operations(lines: _Lines, steps: Steps, place: Ints) -> None:
    """Add the operations of SEBs, and what sends and the computations after them wait for."""
    all_steps, sender = np.arange(len(steps.seb)), steps.sender
    ends = _nanoseconds(steps, steps.duration_s, all_steps)
    sent = _nanoseconds(steps, steps.offset_s, sender)
    seb, rows = steps.seb[sender], np.arange(len(sender))
    rank = rows - np.searchsorted(sender, all_steps)[sender]  # among those of its step
    caused = np.flatnonzero(steps.cause_pe >= 0)
    cause = steps.cause_bytes, steps.cause_pe, steps.cause_number % _TAGS
    lines.add("receive", place[caused], steps.seb[caused], *(column[caused] for column in cause))
    before = np.where(rank > 0, np.append(0, sent[:-1]), 0)
    begun = np.flatnonzero((rank == 0) | (sent > before))
    lines.add("part", place[sender[begun]], seb[begun], rank[begun], (sent - before)[begun])
    number = steps.number % _TAGS
    lines.add("send", place[sender], seb, rank, steps.size_bytes, steps.receiver_pe, number)
    last = np.append(sender[1:] != sender[:-1], True)[: len(sender)]
    ends[sender[last]] -= sent[last]
    lines.add("end", place, steps.seb, np.maximum(ends, 0))
    group = np.searchsorted(begun, rows, side="right") - 1
    lines.add("send after part", place[sender], seb, rank, seb, rank[begun[group]])
    following = np.append(begun, len(rows))[group + 1]
    within = following < np.searchsorted(sender, sender, side="right")
    chosen = np.flatnonzero(within)
    following = rank[following[chosen]]
    lines.add(
        "part after send", place[sender[chosen]], seb[chosen], following, seb[chosen], rank[chosen]
    )
    chosen = np.flatnonzero(~within)
    lines.add("end after send", place[sender[chosen]], seb[chosen], seb[chosen], rank[chosen])


def _requirements(steps: Steps) -> Iterator[tuple[str, Ints, Ints, Ints]]:
    """Yield what the first computations of SEBs wait for: a kind of line, steps and columns."""
    divided = np.zeros(len(steps.seb), dtype=np.bool_)
    divided[steps.sender] = True
    caused = np.flatnonzero(steps.cause_pe >= 0)
    for step, other, what in (
        (caused, steps.seb[caused], "receive"),
        (steps.required_by, steps.required, "end"),
    ):
        for name, chosen in (("part", divided[step]), ("end", ~divided[step])):
            yield f"{name} after {what}", step[chosen], steps.seb[step[chosen]], other[chosen]


def _nanoseconds(steps: Steps, seconds: Floats, of: Ints) -> Ints:
    """Return the times of steps in whole nanoseconds."""
    numbers = np.rint(steps.scaled(seconds, of, _NS_PER_S, _MOST_NS, _TOO_LONG))
    return np.asarray(numbers, dtype=np.int64)
