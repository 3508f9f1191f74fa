"""What is gained were the SEBs of a name, or the middle regions of an event, free: by replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.replaying.kernels.interface import OFFSET_ROW, Numbers, Program
from rewritelog.replaying.simulate import Case, run_time
from rewritelog.replaying.workload import Workload

MOST = 10
"""For how many names, and for how many events, gains are computed by default."""

MOST_SEBS = 10_000_000
"""How many SEBs are replayed for gains by default, or else those of one replay."""


@dataclass(frozen=True)
class Gain:
    """What is gained were all SEBs of a name, or all middle regions of an event, free."""

    name: str
    busy_s: float
    """PE-seconds in them."""
    gain_s: float
    """How much sooner the program ends."""


@dataclass(frozen=True)
class Question:
    """Which SEBs or middle regions would be free."""

    name: str
    busy_s: float
    event: int | None = None
    """The event's number, where it is one."""


Questions: TypeAlias = tuple[Question, ...]


def questions(
    workload: Workload, name_s: Floats, event_s: Floats, most: int | None
) -> tuple[Questions, Questions, int]:
    """Return the `most` largest names and events, given the busy time of each, and how many not.

    Without a number they are as many as a large log set can be replayed for in little time.
    """
    names = _largest(workload.names, name_s, MOST if most is None else most)
    events = _largest(workload.events, event_s, MOST if most is None else most, events=True)
    if most is not None:
        return names, events, 0
    replays = max(1, MOST_SEBS // max(workload.sebs, 1))
    of_events = min(len(events), replays // 2)
    of_names = min(len(names), replays - of_events)
    left_out = len(names) + len(events) - of_names - of_events
    return names[:of_names], events[:of_events], left_out


def _largest(names: tuple[str, ...], seconds: Any, most: int, *, events: bool = False) -> Questions:
    largest = [int(k) for k in np.argsort(-seconds, kind="stable")[:most] if seconds[k] > 0]
    return tuple(Question(names[k], float(seconds[k]), k if events else None) for k in largest)


def gain(workload: Workload, case: Case, predicted_s: float, question: Question) -> Gain:
    """Return the answer to a question, by a replay of its own."""
    if question.event is None:
        time_s = run_time(workload, Case(case.network, case.factor_of, question.name))
    else:
        time_s = run_time(workload, case, without_event(workload, question.event))
    return Gain(question.name, question.busy_s, predicted_s - time_s)


def without_event(workload: Workload, event: int) -> Program:
    """Return the program in which the middle regions of an event take no time.

    A message that leaves within or after a region leaves so much sooner.
    """
    program, regions = workload.program, workload.regions
    sebs, messages = program.sebs, program.messages
    chosen = np.flatnonzero(regions.event == event)
    of_seb = regions.seb[chosen]
    counts = sebs.first_message[of_seb + 1] - sebs.first_message[of_seb]
    row = np.repeat(np.arange(len(chosen)), counts)
    before = np.cumsum(counts) - counts
    sent = np.arange(len(row)) + np.repeat(sebs.first_message[of_seb] - before, counts)
    parts: dict[str, tuple[Floats, Floats]] = {}
    for part in ("scaled_s", "fixed_s"):
        old_sebs, old_messages = getattr(sebs, part), getattr(messages, part)
        length: Floats = getattr(regions, part)[chosen]
        begin: Floats = getattr(regions, f"begin_{part}")[chosen]
        if len(old_sebs):
            inside = np.clip(old_messages[sent] - begin[row], 0.0, length[row])
            parts[part] = (
                _less(old_sebs, of_seb, length),
                _less(old_messages, sent, inside),
            )
    new_sebs: dict[str, Any] = {part: found[0] for part, found in parts.items()}
    new_messages: dict[str, Any] = {part: found[1] for part, found in parts.items()}
    return program._replace(
        sebs=sebs._replace(**new_sebs), messages=messages._replace(**new_messages)
    )


def _less(old: Floats, rows: Numbers, seconds: Floats) -> Floats:
    """Return a column less some seconds in some rows, laid out as the kernels have it."""
    if old.flags.c_contiguous:
        new = old.copy()
    else:
        new = np.empty(len(old), dtype=OFFSET_ROW)["scaled_s"]
        new[:] = old
    np.subtract.at(new, rows, seconds)
    return np.maximum(new, 0.0, out=new)
