"""All events of a unit at once, with their dependencies resolved: for jobs that follow these."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints, Keys
from rewritelog.formats.traces import Part, Traces, Unit

MISSING = -1
"""In place of an event that a dependency names and the unit does not have."""

NUMBERS = ("comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag")


@dataclass(frozen=True)
class UnitEvents:
    """The events of a unit as columns of equal length, in the order of the file."""

    unit: Unit
    names: tuple[str, ...]
    groups: tuple[str, ...]
    """The distinct groups of processes that collectives name."""
    ids: Keys
    type: Ints
    name: Ints
    group: Ints
    on_host: Flags
    lane: Ints
    duration_s: Floats
    start_s: Floats
    numbers: dict[str, Floats]
    """The attributes `NUMBERS`, NaN where an event has none."""
    dep_counts: Ints
    dep_ids: Keys
    deps: Ints
    """The index of each event that is waited for, or `MISSING`."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def waiting(self) -> Ints:
        """The index of the event that has each dependency."""
        return np.repeat(np.arange(len(self)), self.dep_counts)


def load_unit(traces: Traces, unit: Unit) -> UnitEvents:
    """Read a unit; raise `DamagedLogError` if it is damaged."""
    return events_of(unit, traces.read(unit))


def events_of(unit: Unit, read: Iterable[Part]) -> UnitEvents:
    """Return the events of a unit whose parts are being read."""
    parts = list(map(_columns, read))
    names, name = _joined([part["names"] for part in parts])
    groups, group = _joined([part["groups"] for part in parts])

    def column(key: str, kind: type = np.float64) -> np.ndarray:
        return np.concatenate([np.zeros(0, kind), *(part[key] for part in parts)])

    ids, dep_ids = column("ids", np.uint64), column("dep_ids", np.uint64)
    return UnitEvents(
        unit=unit,
        names=names,
        groups=groups,
        ids=ids,
        type=column("type", np.int64),
        name=name,
        group=group,
        on_host=column("on_host", np.bool_),
        lane=column("lane", np.int64),
        duration_s=column("duration_s"),
        start_s=column("start_s"),
        numbers={key: column(key) for key in NUMBERS},
        dep_counts=column("dep_counts", np.int64),
        dep_ids=dep_ids,
        deps=_resolved(ids, dep_ids),
    )


def _columns(part: Part) -> dict[str, Any]:
    """Return copies, which do not keep the bytes of a part."""
    counts, ids = part.dependencies()
    own = ("ids", "type", "names", "on_host", "lane", "duration_s", "start_s")
    return {
        **{name: getattr(part, name) for name in own},
        **{name: part.number(name) for name in NUMBERS},
        "groups": part.text("pg_name"),
        "dep_counts": counts,
        "dep_ids": ids,
    }


def _joined(parts: list[tuple[tuple[str, ...], Ints]]) -> tuple[tuple[str, ...], Ints]:
    """Return the distinct texts of all parts, and the number of each event's."""
    known: dict[str, int] = {}
    numbers = [np.zeros(0, dtype=np.int64)]
    for texts, number in parts:
        renumbered = [known.setdefault(text, len(known)) for text in texts]
        numbers.append(np.array(renumbered, dtype=np.int64)[number])
    return tuple(known), np.concatenate(numbers)


def _resolved(ids: Keys, named: Keys) -> Ints:
    """Return where identifiers are, of equal ones the first, or `MISSING`."""
    if not len(ids):
        return np.full(len(named), MISSING)
    order = np.argsort(ids, kind="stable")
    at = np.minimum(np.searchsorted(ids[order], named), len(ids) - 1)
    return np.where(ids[order[at]] == named, order[at], MISSING)
