"""Gains: how much sooner the run would end if SEBs or regions took no time, found by replays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.replaying.kernels.interface import OFFSET_ROW, Numbers, Program
from rewritelog.replaying.simulate import Case, run_time
from rewritelog.replaying.workload import Workload

MOST = 10
"""By default gains are computed for at most this many names, and this many events."""

MOST_SEBS = 10_000_000
"""By default replays for gains have at most this many SEBs in all, or there is one replay."""


@dataclass(frozen=True)
class Gain:
    """The gain if all SEBs of a name, or all middle regions of an event, took no time."""

    name: str
    busy_s: float
    """The PE-seconds in them."""
    gain_s: float
    """By how much the predicted run time becomes shorter."""


@dataclass(frozen=True)
class Question:
    """The SEBs of a name, or middle regions of an event, whose gain is to be computed."""

    name: str
    busy_s: float
    event: int | None = None
    """The number of the event, None for a SEB name."""


Questions: TypeAlias = tuple[Question, ...]


def questions(
    workload: Workload, name_s: Floats, event_s: Floats, most: int | None
) -> tuple[Questions, Questions, int]:
    """Return the names and events with the most busy time, and how many are left out.

    At most `most` of each are returned; None chooses numbers that limit the time for a large log
    set.
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
    """Return the gain of a question, by a replay."""
    if question.event is None:
        time_s = run_time(workload, Case(case.network, case.factor_of, question.name))
    else:
        time_s = run_time(workload, case, without_event(workload, question.event))
    return Gain(question.name, question.busy_s, predicted_s - time_s)


def without_event(workload: Workload, event: int) -> Program:
    """Return the program in which the middle regions of an event take no time.

    Messages that are sent within or after such a region are sent sooner.
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
                _reduced(old_sebs, of_seb, length),
                _reduced(old_messages, sent, inside),
            )
    new_sebs: dict[str, Any] = {part: found[0] for part, found in parts.items()}
    new_messages: dict[str, Any] = {part: found[1] for part, found in parts.items()}
    return program._replace(
        sebs=sebs._replace(**new_sebs), messages=messages._replace(**new_messages)
    )


def _reduced(old: Floats, rows: Numbers, seconds: Floats) -> Floats:
    """Return a column minus seconds in some rows, with a memory layout that the kernels accept."""
    if old.flags.c_contiguous:
        new = old.copy()
    else:
        new = np.empty(len(old), dtype=OFFSET_ROW)["scaled_s"]
        new[:] = old
    np.subtract.at(new, rows, seconds)
    return np.maximum(new, 0.0, out=new)
