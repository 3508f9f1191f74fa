"""The interface through which jobs use logs and traces of any format.

An `Opened` has units of work, such as a block of timelines or the file of a rank, which are read in
parts. A part of `Traces` has the columns of its events, and becomes bytes with new durations. Each
format of events is a module beside this one with a subclass of `Traces` and one of `Part`. Jobs
that follow dependencies load all events of a unit.
"""

from __future__ import annotations

import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

import numpy as np
from msgspec import Struct

from rewritelog.arrays import Bytes, Flags, Floats, Ints, Keys, Texts, spans
from rewritelog.errors import Location, RewriteLogError, UsageError
from rewritelog.formats.files import InputFile
from rewritelog.running.engines import map_blocks
from rewritelog.running.locks import cached_property
from rewritelog.text import TextTable, bytes_text, count_text, printable

if TYPE_CHECKING:
    from rewritelog.formats.bgtrace.logset import LogSet


AnyTraces: TypeAlias = "LogSet | Traces"
"""Logs, or logs and traces in any format."""

Result = TypeVar("Result")


class Terms(Struct, frozen=True):
    """What a format calls its things, for reports."""

    item: str
    """What has a duration and a name."""
    lane: str
    """What the items of a timeline or a file belong to."""
    predicted: str
    """What a model predicts: an item, or a part of it."""
    record: str
    """What has the parameters for the prediction."""
    transfer: str
    """How items of different lanes wait for each other."""
    recorded: str = ""
    """How long a transfer takes in a replay without a network, if not its recorded transit time."""
    names: str = ""
    """The field of the option that names events, if the format has one."""
    rows: tuple[str, str] = ("PE", "PEs")
    """What runs one item at a time, and is a row of a timeline: one, and several."""


class Unit(Struct, frozen=True, dict=True):
    """The file of a rank."""

    path: Path
    rank: int
    size_bytes: int
    """0 for a missing file, which is an error only when it is read."""

    @cached_property
    def is_packed(self) -> bool:
        """Whether the file is packed by gzip."""
        with InputFile(self.path) as file:
            head = file.read(0, min(len(_GZIP_MAGIC), file.size_bytes))
            return head.tobytes() == _GZIP_MAGIC


class Dependencies(NamedTuple):
    """Dependencies of events in their ranks, as arrays of equal length."""

    waiting: Ints
    """The row of the event that waits."""
    named: Ints
    """The row of the event that it waits for, or `NO_ROW` if its rank does not have that."""
    by_control: Flags
    """Whether it waits for control, not for data."""
    followed: Flags
    """Whether a simulator follows it: control ones only if all name events that are there, since
    simulators that follow these refuse other traces."""

    def needed(self, count: int) -> Flags:
        """Return which of so many events others wait for."""
        needed = np.zeros(count, dtype=np.bool_)
        needed[self.named[self.followed]] = True
        return needed


class Events:
    """Events as columns, arrays with an element for each, such as `events["duration_s"]`.

    - `id`, by which other events name it; `type`, an index into `types` of its traces
    - `name`, and `shapes` of its inputs, `Texts`
    - `duration_s`; `duration_us` and `start_us`, numbers of 64 bits without a sign as they are in
      the file, 0 if it is not recorded; starts may be times of a clock that began long before
    - `on_host`, whether it runs on a CPU; `lane`, its thread on the CPU or stream on the device;
      `group`, `Texts`: the name of the processes that take part in a collective
    - `waits`, for how many events it waits, and `data_waits`, for how many of these because of
      their data; `waited_for` has the identifiers of all, those of data first for each event
    - `rest`, a hash of all that is known of it besides its start and duration
    - any other name is that of a numeric attribute, NaN for events without it

    Events that are kept without their bytes have the columns that were asked for, their `rank`, and
    `number`, their index in its file.
    """

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self["id"])

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    def take(self, rows: Ints) -> Events:
        """Return the events of these rows, in the order of the rows."""
        waits = self["waits"][rows]
        waited_for = spans(np.cumsum(self["waits"])[rows] - waits, waits)
        return Events(
            {
                name: column[waited_for if name == "waited_for" else rows]
                for name, column in self.columns.items()
            }
        )

    @property
    def waiting(self) -> Ints:
        """The row of the event that each dependency belongs to."""
        return np.repeat(np.arange(len(self)), self["waits"])

    def dependencies(self) -> Dependencies:
        """Return all dependencies, those of an event next to each other."""
        waits, of_data = self["waits"], self["data_waits"]
        kinds = np.tile(np.array([False, True]), len(self))
        by_control = np.repeat(kinds, np.stack([of_data, waits - of_data], axis=1).reshape(-1))
        named = self._named()
        followed = np.asarray(named != NO_ROW)
        if (by_control & ~followed).any():
            followed &= ~by_control
        return Dependencies(self.waiting, named, by_control, followed)

    def _named(self) -> Ints:
        """Return the row of the event that each dependency names in its rank, or `NO_ROW`."""
        first = np.append(np.flatnonzero(np.diff(self["rank"], prepend=-1)), len(self))
        ends = np.concatenate([[0], np.cumsum(self["waits"])])
        named = np.empty(ends[-1], dtype=np.int64)
        for begin, end in pairwise(first.tolist()):
            ids, of_rank = self["id"][begin:end], slice(ends[begin], ends[end])
            order, sought = np.argsort(ids, kind="stable"), self["waited_for"][of_rank]
            at = order[np.minimum(np.searchsorted(ids[order], sought), len(ids) - 1)]
            named[of_rank] = np.where(ids[at] == sought, begin + at, NO_ROW)
        return named


class Part(Events, ABC):
    """Consecutive events of a unit, with columns that are made on first use."""

    def __init__(self, unit: Unit, first: int, head: Bytes) -> None:
        super().__init__({})
        self.unit = unit
        self.first = first
        """The number of the first event in its unit."""
        self.head = head
        """What comes before the events in the file."""

    def __getitem__(self, name: str) -> Any:
        if name not in self.columns:
            self.columns[name] = self.made(name)
        return self.columns[name]

    def only(self, more: Sequence[str]) -> Events:
        """Return the events without their bytes, with the columns `_KEPT` and `more`."""
        columns = {name: self[name] for name in (*_KEPT, *more)}
        columns["number"] = self.first + np.arange(len(self))
        columns["rank"] = np.full(len(self), self.unit.rank)
        return Events(columns)

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """The bytes of the part, unpacked."""

    @abstractmethod
    def made(self, name: str) -> Any:
        """Return a column that holds no reference to the bytes of the file."""

    @abstractmethod
    def number(self, name: str) -> Floats:
        """Return a numeric attribute, NaN for events without it."""

    @abstractmethod
    def written(self, duration_us: Keys) -> Bytes:
        """Return the bytes of the part with new durations."""


class Rounding(Struct, frozen=True):
    """How much rounding changed durations."""

    item_s: float = 0.0
    """The largest change of an item."""
    sum_s: float = 0.0
    """The largest change of the sum of a lane or of a file."""
    to_zero: int = 0
    """The number of items whose new duration became 0."""

    def __add__(self, other: Rounding) -> Rounding:
        return Rounding(
            max(self.item_s, other.item_s),
            max(self.sum_s, other.sum_s),
            self.to_zero + other.to_zero,
        )


NOT_ROUNDED = Rounding()

_GZIP_MAGIC = b"\x1f\x8b"
_PACKED_LEVEL, _GZIP_BITS = 6, 16 + zlib.MAX_WBITS
_MOST_MICROS = 2.0**64


class UnitWriter:
    """Rounds the durations of a unit to whole microseconds, and makes the bytes of its parts.

    In each lane the running sum of new durations is rounded, so that errors of single durations do
    not add up where a simulator adds durations; nor do the errors of lanes in that of the unit.
    """

    def __init__(self) -> None:
        self._carried: dict[int, float] = {}
        """By lane, the exact sum of new durations minus the written sum, in microseconds."""
        self._rounding = NOT_ROUNDED

    @property
    def rounding(self) -> Rounding:
        """By how much new durations were rounded so far."""
        carried = self._carried.values()
        sums = [math.fsum(carried), *carried]
        return self._rounding + Rounding(sum_s=1e-6 * max(map(abs, sums)))

    def written(self, part: Part, duration_s: Floats, changes: Flags) -> tuple[Bytes, Keys]:
        """Return the bytes of the next part with new durations where `changes`, packed as they are.

        Also return all durations as written, in µs.
        """
        micros = np.where(changes, duration_s * 1e6, 0.0)
        bad = np.flatnonzero(~(micros < _MOST_MICROS))
        if len(bad):
            raise RewriteLogError(
                f"{Location(part.unit.path, node=part.first + int(bad[0]))}: the new duration "
                f"{duration_s[bad[0]]:g} s is no number of microseconds of 64 bits"
            )
        some = np.flatnonzero(micros)
        lane = 2 * part["lane"][some] + part["on_host"][some]
        rounded = micros.copy()
        rounded[some] = self._rounded(micros[some], lane)
        self._rounding += Rounding(
            item_s=1e-6 * float(np.abs(rounded - micros).max(initial=0.0)),
            to_zero=int(np.count_nonzero((rounded == 0) & (micros > 0))),
        )
        new = np.where(changes, np.maximum(rounded, 0.0).astype(np.uint64), part["duration_us"])
        data = part.written(new)
        if part.unit.is_packed:  # one gzip file after the other is a gzip file
            packed = zlib.compress(data.tobytes(), _PACKED_LEVEL, _GZIP_BITS)
            data = np.frombuffer(packed, dtype=np.uint8)
        return data, new

    def _rounded(self, micros: Floats, lane: Ints) -> Floats:
        """Return whole microseconds whose sums are true in each lane, and in all together."""
        if not len(micros):
            return micros
        lanes, lane = np.unique(lane, return_inverse=True)
        order = np.argsort(lane, kind="stable")
        counts = np.bincount(lane)
        ends = np.cumsum(counts)
        carried = np.array([self._carried.get(key, 0.0) for key in lanes.tolist()])
        whole = np.floor(micros[order])
        sums = np.cumsum(micros[order] - whole)
        before = np.concatenate([[0.0], sums[ends[:-1] - 1]])
        rest = sums + np.repeat(carried - before, counts)
        written = np.maximum(np.floor(rest + 0.5), 0.0)
        first = ends - counts
        steps = np.diff(written, prepend=0.0)
        steps[first] = written[first]
        rounded = np.empty_like(micros)
        rounded[order] = whole + steps
        carried = (rest - written)[ends - 1]
        self._carried |= zip(lanes.tolist(), carried.tolist(), strict=True)
        excess = math.fsum(self._carried.values())
        sign = math.copysign(1.0, excess)
        errors = sign * (rounded - micros)
        for at in np.argsort(-sign * carried)[: round(abs(excess))].tolist():
            items = order[first[at] : ends[at]]
            item = items[np.argmin(errors[items])]
            if errors[item] < 0:  # it stays within a microsecond
                rounded[item] += sign
                self._carried[int(lanes[at])] -= sign
        return rounded


@dataclass(frozen=True, repr=False, eq=False)
class Opened(ABC):
    """Logs or traces of any format: their files; contents are read when they are needed."""

    path: Path
    """The folder of logs; of traces, the path as given: a folder, a file, or how names begin."""
    files: tuple[Any, ...]
    """Timeline files, or those of ranks, each with its path and size."""

    title: ClassVar[str]
    terms: ClassVar[Terms]
    has_messages: ClassVar[bool] = False
    """Whether items have lists of messages, log events and dependencies."""

    @property
    @abstractmethod
    def pes(self) -> Sequence[int]:
        """The numbers of the emulated PEs, or of the ranks."""

    @property
    @abstractmethod
    def described(self) -> str:
        """A description in one line."""

    @abstractmethod
    def machine_json(self) -> dict[str, Any]:
        """Return what is known of the machine as a JSON object."""

    @abstractmethod
    def units(self, *, in_turn: bool = False) -> Iterable[Any]:
        """Return the units of work, file after file or alternating between a few files."""

    @abstractmethod
    def read(self, unit: Any) -> Iterator[Any]:
        """Yield the parts of a unit, at least one; raise `DamagedLogError` with file and offset."""

    def map(
        self,
        work: Callable[[Iterator[Any]], Result],
        stage: str = "reading",
        *,
        in_turn: bool = False,
    ) -> Iterator[Result]:
        """Call `work` with the parts of each unit, and yield the results in the order of units.

        Parts may overwrite each other. The engine of the job runs `work`, and may pickle it.
        """
        of_unit, units = partial(_of_parts, self, work), self.units(in_turn=in_turn)
        for _, result in map_blocks(of_unit, units, stage, self.units_bytes):
            yield result

    @property
    def folder(self) -> Path:
        """The folder of the files."""
        return self.path

    @property
    def inputs(self) -> tuple[Path, ...]:
        """The paths that no output may replace."""
        return (self.folder,)

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each file in bytes, by its name."""
        return {file.path.name: file.size_bytes for file in self.files}

    @property
    def size_bytes(self) -> int:
        """The size of all files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def units_bytes(self) -> int:
        """The size of all units."""
        return self.size_bytes


def _of_parts(opened: Opened, work: Callable[[Iterator[Any]], Result], unit: Any) -> Result:
    return work(opened.read(unit))


@dataclass(frozen=True, repr=False)
class Traces(Opened):
    """Traces of events with durations; the file of each rank is a unit."""

    files: tuple[Unit, ...]

    title = "traces"
    terms = Terms(
        "node",
        "rank",
        "node",
        "node",
        "communication",
        "communication takes its nodes' durations",
        "event_params",
        ("thread, stream or network", "threads, streams and networks"),
    )
    types: ClassVar[tuple[str, ...]]
    """The types of events, which columns and the following name by their indices."""
    communicating: ClassVar[tuple[int, ...]]
    """The types of collectives, of sends and of receives, in this order."""
    ending: ClassVar[str]
    """The ending of the file names that simulators look for."""
    computing: ClassVar[int]
    """The type of events that compute, whose durations are rewritten by default."""

    def units(self, *, in_turn: bool = False) -> tuple[Unit, ...]:  # noqa: ARG002 - one a file
        """Return the files, each of which is a unit."""
        return self.files

    def type_numbers(self, names: Sequence[str] | None) -> tuple[int, ...]:
        """Return the indices of event types, by default of the type that computes.

        Raise `UsageError` for an unknown type.
        """
        for name in names or ():
            if name not in self.types:
                known = ", ".join(self.types)
                raise UsageError(f"there is no type {name!r}: {self.title} have {known}")
        return tuple(map(self.types.index, names)) if names else (self.computing,)

    @property
    def pes(self) -> tuple[int, ...]:
        """The numbers of the ranks."""
        return tuple(unit.rank for unit in self.files)

    @property
    def absent(self) -> str:
        """A phrase for the ranks that simulators need besides these, empty if there are none."""
        is_file = self.path == self.files[0].path  # a single rank, given by its file
        count = 0 if is_file else self.pes[-1] + 1 - len(self.pes)
        first = next((rank for rank, pe in enumerate(self.pes) if rank != pe), 0)
        further = f" nor of {count_text(count - 1, 'more rank')} below {self.pes[-1]}"
        return f"there is no file of rank {first}{further * (count > 1)}" if count else ""

    @property
    def folder(self) -> Path:
        """The folder of the files."""
        return self.files[0].path.parent

    @property
    def inputs(self) -> tuple[Path, ...]:
        """The paths of the files."""
        return tuple(unit.path for unit in self.files)

    @property
    def described(self) -> str:
        """A description in one line."""
        ranks = count_text(len(self.files), "rank")
        return f"{self.title}, {ranks}, {bytes_text(self.size_bytes)}"

    def machine_json(self) -> dict[str, Any]:
        """Return what is known of the machine as a JSON object."""
        return {"format": self.title, "ranks": len(self.files)}

    def text(self) -> str:
        """Return the path and the description in one line."""
        return f"{printable(str(self.path))}: {self.described}"

    def __repr__(self) -> str:
        return f"<Traces {self.text()}>"

    def _repr_html_(self) -> str:
        ranks = f"{len(self.files):,}"
        rows = [("format", self.title), ("ranks", ranks), ("size", bytes_text(self.size_bytes))]
        return TextTable((printable(str(self.path)), ""), rows).html()


NO_ROW = -1
"""In place of a row, for an event that a dependency names but the unit does not have."""

_KEPT = ("id", "type", "name", "duration_s", "on_host", "waits", "data_waits", "waited_for")
Collective = IntEnum(
    "Collective",
    "ALL_REDUCE REDUCE ALL_GATHER GATHER SCATTER BROADCAST ALL_TO_ALL REDUCE_SCATTER "
    "REDUCE_SCATTER_BLOCK BARRIER",
    start=0,
)
"""The types of collectives, by the values of `comm_type`."""

COMMUNICATION = ("comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag")
"""The attributes of messages and collectives."""


def communicating(events: Events, kind: int) -> Ints:
    """Return the rows of a type of communication on devices, by rank and id.

    Not every file has them in that order. By it, the k-th collectives of a group on its ranks
    belong together, and so do the k-th messages with the same ends and tag.
    """
    rows = np.flatnonzero((events["type"] == kind) & ~events["on_host"])
    return rows[np.lexsort((events["id"][rows], events["rank"][rows]))]


def kinds_of(events: Events, rows: Ints) -> Floats:
    """Return the types and sizes of collectives, shape (2, rows); no type is an all-reduce."""
    return np.asarray(np.nan_to_num([events["comm_type"][rows], events["comm_size"][rows]]))


def first_start_us(parts: Iterable[Events]) -> int:
    """Return the first recorded start, from which the times of traces count; 0 if there is none."""
    starts = (part["start_us"] for part in parts)
    known = (of_part[of_part > 0] for of_part in starts)
    return min((int(of_part.min()) for of_part in known if len(of_part)), default=0)


def loaded(parts: Iterable[Part], more: Sequence[str] = ()) -> Events:
    """Return all events of a unit, with the columns `_KEPT` and `more`."""
    return joined([part.only(more) for part in parts])


def joined(parts: Sequence[Events]) -> Events:
    """Join the events of parts or units, in order; if they are several, they lose their columns."""
    if len(parts) == 1:
        return parts[0]
    columns = {}
    for name in list(parts[0].columns):
        of_parts = [part.columns.pop(name) for part in parts]
        columns[name] = (
            Texts.joined(of_parts) if isinstance(of_parts[0], Texts) else np.concatenate(of_parts)
        )
    return Events(columns)
