"""Traces of events, whatever their format: what jobs know of them.

A set of traces has units of work, such as the file of a rank. A unit is read in parts, each with
its events as columns. New durations of a part's events become bytes, which the format writes. A
format is a folder beside this file with a subclass of `Traces` and one of `Part`. Jobs that follow
dependencies take all events of a unit at once, with these resolved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from rewritelog.arrays import Bytes, Flags, Floats, Ints, Keys
from rewritelog.core import core
from rewritelog.text import bytes_text, count_text, printable

if TYPE_CHECKING:
    from rewritelog.formats.bgtrace.logset import LogSet
    from rewritelog.options import PathLike


Text = TypeVar("Text", str, bytes)

LogsLike: TypeAlias = "LogSet | PathLike"
TracesLike: TypeAlias = "LogSet | Traces | PathLike"
"""Logs, or logs and traces in any format."""


@dataclass(frozen=True)
class Terms:
    """What a format calls its things, for reports."""

    item: str
    """What has a duration and a name."""
    lane: str
    """What the items of a timeline or a file belong to."""
    predicted: str
    """What a model predicts: an item, or a part of it."""
    record: str
    """What has the parameters from which it does."""
    transfer: str
    """How items of different lanes wait for each other."""


@dataclass(frozen=True)
class Rounding:
    """By how much durations were rounded, in seconds."""

    item_s: float = 0.0
    """The most of an item."""
    file_s: float = 0.0
    """The most of the sum of a file."""
    to_zero: int = 0
    """The number of items whose new duration became 0."""

    def __add__(self, other: Rounding) -> Rounding:
        """Return the rounding of both."""
        return Rounding(
            max(self.item_s, other.item_s),
            max(self.file_s, other.file_s),
            self.to_zero + other.to_zero,
        )


NOT_ROUNDED = Rounding()

Sink: TypeAlias = Callable[[Bytes], None]
"""Takes the bytes of an output file, in order."""


@dataclass(frozen=True)
class Unit:
    """The file of a rank."""

    path: Path
    rank: int
    size_bytes: int
    is_packed: bool


@dataclass(frozen=True, eq=False)
class Part(ABC):
    """Events of a unit that follow each other, as columns."""

    unit: Unit
    first: int
    """The number of the first event in its unit."""
    ids: Keys
    """The identifier of each event, by which others name it."""
    type: Ints
    """The type of each event, an index into `types` of its traces."""
    duration_s: Floats
    start_s: Floats
    """The start of each event, NaN if it is not recorded."""

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    @abstractmethod
    def names(self) -> tuple[tuple[str, ...], Ints]:
        """The distinct names, and the number of each event's."""

    @cached_property
    @abstractmethod
    def shapes(self) -> tuple[tuple[str, ...], Ints]:
        """The distinct texts of the shapes of inputs, and the number of each event's."""

    @cached_property
    @abstractmethod
    def on_host(self) -> Flags:
        """Whether each event runs on a CPU."""

    @cached_property
    @abstractmethod
    def lane(self) -> Ints:
        """The thread or stream of each event, within those of the CPU or of the device."""

    @abstractmethod
    def number(self, name: str) -> Floats:
        """Return a numeric attribute, NaN for events without it."""

    @abstractmethod
    def text(self, name: str) -> tuple[tuple[str, ...], Ints]:
        """Return the distinct texts of an attribute, and the number of each event's."""

    @abstractmethod
    def dependencies(self) -> tuple[Ints, Keys]:
        """Return how many events each event waits for, and the identifiers of all of these."""


class UnitWriter(ABC):
    """Writes a unit with new durations, part by part."""

    rounding: Rounding = NOT_ROUNDED
    """By how much new durations were rounded so far."""

    @abstractmethod
    def write(self, part: Part, duration_s: Floats, changes: Flags) -> Floats:
        """Write a part; return the durations as they are written.

        Durations that change may be rounded, and the rounding is carried along the unit.
        """

    @abstractmethod
    def close(self) -> None:
        """Write what is left."""


@dataclass(frozen=True, repr=False)
class Traces(ABC):
    """A set of traces: their files; events are read when they are needed."""

    path: Path
    """What the user named: a folder, a file, or the beginning of the files' names."""
    units: tuple[Unit, ...]

    title: ClassVar[str] = "traces"
    terms: ClassVar[Terms] = Terms("node", "rank", "node", "node", "communication")
    types: ClassVar[tuple[str, ...]] = ()
    """The types of events."""
    communicating: ClassVar[tuple[str, str, str]] = ("", "", "")
    """The types of collectives, and of events that send and receive messages."""
    computing: ClassVar[str] = ""
    """The type of events that compute, whose durations are rewritten by default."""

    @abstractmethod
    def read(self, unit: Unit) -> Iterator[Part]:
        """Yield the parts of a unit; raise `DamagedLogError` with file, offset and event."""

    @abstractmethod
    def writer(self, unit: Unit, sink: Sink) -> UnitWriter:
        """Return what writes a unit to a sink."""

    @property
    def pes(self) -> range:
        """The numbers of ranks, as far as they go."""
        return range(1 + max(unit.rank for unit in self.units))

    @property
    def folder(self) -> Path:
        """The folder of the files."""
        return self.units[0].path.parent

    @property
    def inputs(self) -> tuple[Path, ...]:
        """The files, which no output may replace."""
        return tuple(unit.path for unit in self.units)

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each file in bytes, by its name."""
        return {unit.path.name: unit.size_bytes for unit in self.units}

    @property
    def size_bytes(self) -> int:
        """The size of all files."""
        return sum(unit.size_bytes for unit in self.units)

    @property
    def described(self) -> str:
        """What they are, in a phrase."""
        ranks = count_text(len(self.units), "rank")
        return f"{self.title}, {ranks}, {bytes_text(self.size_bytes)}"

    def machine_json(self) -> dict[str, Any]:
        """Return what is known of the machine as a JSON object."""
        return {"format": self.title, "ranks": len(self.units)}

    def text(self) -> str:
        """Return what they are, in a line."""
        return f"{printable(str(self.path))}: {self.described}"

    def __repr__(self) -> str:
        return f"<Traces {self.text()}>"


def numbered(texts: Sequence[bytes]) -> tuple[tuple[str, ...], Ints]:
    """Return the distinct texts in the order of their first appearance, and each one's number."""
    known: dict[bytes, int] = {}
    numbers = np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int64)
    return tuple(text.decode("utf-8", "backslashreplace") for text in known), numbers


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
    names, name = joined_texts([part["names"] for part in parts])
    groups, group = joined_texts([part["groups"] for part in parts])

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


def joined_texts(parts: Iterable[tuple[Sequence[Text], Ints]]) -> tuple[tuple[Text, ...], Ints]:
    """Return the distinct texts of several parts, and the number of each event's."""
    known: dict[Text, int] = {}
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


def followers(before: Ints, after: Ints, count: int) -> tuple[Ints, Ints]:
    """Return the events that wait for each one, and where those of each begin.

    `after[k]` waits for `before[k]`; the second result has `count` + 1 elements.
    """
    order = np.argsort(before, kind="stable")
    first = np.searchsorted(before[order], np.arange(count + 1)).astype(np.int64)
    return np.ascontiguousarray(after[order]), first


def never_run(before: Ints, after: Ints, count: int) -> Ints:
    """Return the events that never run since they wait for themselves, or for such events."""
    waiting, first = followers(before, after, count)
    missing = np.bincount(after, minlength=count).astype(np.int64)
    order = np.empty(count, dtype=np.int64)
    has_run = np.zeros(count, dtype=np.bool_)
    has_run[order[: core.run_order(first, waiting, missing, order)]] = True
    return np.flatnonzero(~has_run)
