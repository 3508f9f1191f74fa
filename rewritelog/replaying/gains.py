"""Gains: how much sooner the run would end if SEBs or regions took no time, found by replays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.replaying.links import spans
from rewritelog.replaying.simulate import Parts, ReplayedRun, run_time
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
    replays = max(1, MOST_SEBS // max(len(workload.sebs), 1))
    of_events = min(len(events), replays // 2)
    of_names = min(len(names), replays - of_events)
    left_out = len(names) + len(events) - of_names - of_events
    return names[:of_names], events[:of_events], left_out


def _largest(names: tuple[str, ...], seconds: Any, most: int, *, events: bool = False) -> Questions:
    largest = [int(k) for k in np.argsort(-seconds, kind="stable")[:most] if seconds[k] > 0]
    return tuple(Question(names[k], float(seconds[k]), k if events else None) for k in largest)


def gain(outcome: ReplayedRun, question: Question) -> Gain:
    """Return the gain of a question, by a replay."""
    workload, case = outcome.workload, outcome.case
    if question.event is None:
        free = replace(case, free=question.name)
        time_s = run_time(workload, free, sent=outcome.sent)  # all leave as their SEB starts
    else:
        time_s = run_time(workload, case, without_event(workload, question.event))
    return Gain(question.name, question.busy_s, outcome.predicted_s - time_s)


def without_event(workload: Workload, event: int) -> Parts:
    """Return durations and offsets if the middle regions of an event take no time.

    Messages that are sent within or after such a region are sent sooner.
    """
    sebs, regions = workload.sebs, workload.regions
    chosen = np.flatnonzero(regions.event == event)
    of_seb = regions.seb[chosen]
    counts = sebs.first_message[of_seb + 1] - sebs.first_message[of_seb]
    row = np.repeat(np.arange(len(chosen)), counts)
    sent = spans(sebs.first_message[of_seb], counts)
    new = Parts.of(workload)._asdict()
    for part in ("scaled", "fixed"):
        old: Floats = new[f"message_{part}"]
        if len(new[f"seb_{part}"]):
            length: Floats = getattr(regions, f"{part}_s")[chosen]
            begin: Floats = getattr(regions, f"begin_{part}_s")[chosen]
            inside = np.clip(old[sent] - begin[row], 0.0, length[row])
            new[f"seb_{part}"] = _reduced(new[f"seb_{part}"], of_seb, length)
            new[f"message_{part}"] = _reduced(old, sent, inside)
    return Parts(**new)


def _reduced(old: Floats, rows: Any, seconds: Floats) -> Floats:
    """Return a column minus seconds in some rows, which may repeat."""
    new = old.copy()
    np.subtract.at(new, rows, seconds)
    return np.maximum(new, 0.0, out=new)
