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

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.exporting.programs import Steps

_NS_PER_S = 1e9
_MOST_NS = 2.0**63
_TAGS = (1 << 32) - 1
"""The number of tags that can be used: the last one means any tag."""
_TOO_LONG = "GOAL holds less than 2^63 ns"


def goal_part(steps: Steps) -> tuple[str, Counter[str]]:
    """Return the text of the ranks of PEs, and the numbers of operations and dependencies.

    A SEB is the receipt of the message that starts it, then what it computes between its sends.
    Requirements of other SEBs are at the end of the rank, since labels are defined before use.
    """
    ends_ns = _nanoseconds(steps, steps.duration_s, np.arange(len(steps.seb)))
    sent_ns = _nanoseconds(steps, steps.offset_s, steps.sender)
    sends = _rows(sent_ns, steps.size_bytes, steps.receiver_pe, steps.number % _TAGS)
    caused = steps.cause_bytes, steps.cause_pe, steps.cause_number % _TAGS
    sebs, all_steps = _rows(steps.seb, ends_ns, *caused), np.arange(len(steps.seb) + 1)
    first_send = np.searchsorted(steps.sender, all_steps).tolist()
    first_need = np.searchsorted(steps.required_by, all_steps).tolist()
    required = steps.required.tolist()
    bounds = np.searchsorted(steps.pe, [*steps.pes, steps.pes.stop]).tolist()
    texts = []
    for pe, (low, high) in zip(steps.pes, pairwise(bounds), strict=True):
        texts.append(f"rank {pe} {{\n")
        requirements = []
        for k in range(low, high):
            seb, end_ns, size, source, tag = sebs[k]
            operations, links = _divided(seb, end_ns, sends[first_send[k] : first_send[k + 1]])
            start = f"s{seb}" if first_send[k] == first_send[k + 1] else f"p{seb}_0"
            if source >= 0:
                texts.append(f"r{seb}: recv {size}b from {source} tag {tag} cpu 0\n")
                links += f"{start} requires r{seb}\n"
            others = required[first_need[k] : first_need[k + 1]]
            requirements += [f"{start} requires s{other}\n" for other in others]
            texts.append(f"{operations}{links}")
        texts += [*requirements, "}\n"]
    text = "".join(texts)
    receives = int(np.count_nonzero(steps.cause_pe >= 0))
    counts = Counter(computations=text.count(": calc "), sends=len(sends), receives=receives)
    return text, counts + Counter(dependencies=text.count("requires "))


def _divided(seb: int, end_ns: int, sends: list[tuple[int, ...]]) -> tuple[str, str]:
    """Return the computations and the sends of a SEB, and which of them require which."""
    parts = sent = before = after = ""
    at_ns = part = 0
    for k, (sent_ns, size, receiver, tag) in enumerate(sends):
        if k == 0 or sent_ns > at_ns:
            parts += f"p{seb}_{k}: calc {sent_ns - at_ns} cpu 0\n"
            for earlier in range(part, k):
                after += f"p{seb}_{k} irequires m{seb}_{earlier}\n"
            at_ns, part = sent_ns, k
        sent += f"m{seb}_{k}: send {size}b to {receiver} tag {tag} cpu 0\n"
        before += f"m{seb}_{k} requires p{seb}_{part}\n"
    for earlier in range(part, len(sends)):
        after += f"s{seb} irequires m{seb}_{earlier}\n"
    end = f"s{seb}: calc {max(end_ns - at_ns, 0)} cpu 0\n"
    return f"{parts}{sent}{end}", f"{before}{after}"


def write_goal(folder: Path, pes: int, parts: Iterable[tuple[str, Counter[str]]]) -> dict[str, int]:
    """Write a schedule of ranks one after the other; return the numbers of operations."""
    counts = Counter(computations=0, sends=0, receives=0, dependencies=0)
    with (folder / "program.goal").open("x", encoding="ascii") as file:
        file.write(f"num_ranks {pes}\n")
        for text, of_part in parts:
            file.write(text)
            counts.update(of_part)
    return dict(counts)


def _rows(*columns: Ints) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _nanoseconds(steps: Steps, seconds: Floats, of: Ints) -> Ints:
    """Return the times of steps in whole nanoseconds."""
    numbers = np.rint(steps.scaled(seconds, of, _NS_PER_S, _MOST_NS, _TOO_LONG))
    return np.asarray(numbers, dtype=np.int64)
