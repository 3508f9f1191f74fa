"""The nodes of a part of a file, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rewritelog.arrays import Bytes, Flags, Floats, Ints, Keys, Table
from rewritelog.core import core
from rewritelog.formats.chakra.declaration import NODE_TYPES, VALUE_FIELDS, fields
from rewritelog.formats.traces import Part, Unit, numbered

_MICRO = 1e-6
_MOST_LANE = 2.0**31
_FLOATS = {"double": np.float64, "float": np.float32}
_SIGNED = {"int32", "int64"}
_ZIGZAG = {"sint32", "sint64"}
_FIXED = {"sfixed32": np.int32, "sfixed64": np.int64}


@dataclass(frozen=True)
class NodePart(Part):
    """Some nodes of a file, which follow each other, with their bytes."""

    unit: Unit
    first: int
    offset: int
    """The offset of the first byte in the unpacked file."""
    buffer: Bytes
    nodes: Table
    """The core's struct `trace_node` for each node."""

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def ids(self) -> Keys:
        """The identifier of each node."""
        return np.ascontiguousarray(self.nodes["id"])

    @property
    def type(self) -> Ints:
        """The type of each node, as an index into `NODE_TYPES`."""
        kind = self.nodes["type"]
        return np.where((kind < 0) | (kind >= len(NODE_TYPES)), len(NODE_TYPES) - 1, kind)

    @property
    def ticks(self) -> Keys:
        """The duration of each node in microseconds."""
        return np.ascontiguousarray(self.nodes["duration_us"])

    @property
    def duration_s(self) -> Floats:
        """The duration of each node in seconds."""
        return self.nodes["duration_us"] * _MICRO

    @property
    def start_s(self) -> Floats:
        """The start of each node in seconds, NaN where it is not set."""
        start = self.nodes["start_us"]
        return np.where(start > 0, start * _MICRO, np.nan)

    @cached_property
    def names(self) -> tuple[tuple[str, ...], Ints]:
        """The distinct names, and the number of each node's."""
        return numbered(self._texts("name"))

    @cached_property
    def shapes(self) -> tuple[tuple[str, ...], Ints]:
        """The distinct texts of the shapes of inputs, and the number of each node's."""
        return numbered(self._texts("shapes"))

    def _texts(self, field: str) -> list[bytes]:
        raw = self.buffer.tobytes()
        at = self.nodes[f"{field}_at"]
        ends = at + self.nodes[f"{field}_bytes"]
        return [raw[begin:end] for begin, end in zip(at.tolist(), ends.tolist(), strict=True)]

    @cached_property
    def on_host(self) -> Flags:
        """Whether each node says that it runs on the CPU."""
        return np.asarray(self.number("is_cpu_op") > 0)

    @cached_property
    def lane(self) -> Ints:
        """The stream or the thread of each node, 0 where it says neither."""
        stream, thread = self.number("stream"), self.number("tid")
        lane = np.where(np.isnan(stream) | self.on_host, thread, stream)
        bounded = np.clip(np.nan_to_num(lane, nan=0.0), -_MOST_LANE, _MOST_LANE)
        return np.asarray(bounded, dtype=np.int64)

    def dependencies(self) -> tuple[Ints, Keys]:
        """Return how many nodes each node waits for, and the identifiers of all of these."""
        counts: Ints = np.ascontiguousarray(self.nodes["deps"])
        ids = np.empty(int(counts.sum()), dtype=np.uint64)
        core.read_deps(self.buffer, self.nodes, fields("Node"), ids)
        return counts, ids

    def _attributes(self, name: str) -> Table:
        attributes = np.empty(len(self), dtype=core.structs["attribute"])
        name_bytes = np.frombuffer(name.encode(), dtype=np.uint8)
        core.read_attributes(self.buffer, self.nodes, fields("Node"), name_bytes, attributes)
        return attributes

    def number(self, name: str) -> Floats:
        """Return the numeric attribute of a name, NaN for nodes without it."""
        attributes = self._attributes(name)
        numbers = np.full(len(self), np.nan)
        for field in np.unique(attributes["field"]).tolist():
            kind, is_list = VALUE_FIELDS.get(field, ("", True))
            if not (is_list or kind in ("string", "bytes")):
                rows = attributes["field"] == field
                numbers[rows] = _decoded(kind, attributes["bits"][rows])
        return numbers

    def text(self, name: str) -> tuple[tuple[str, ...], Ints]:
        """Return the distinct texts of an attribute, empty without one, and each node's number."""
        attributes, raw = self._attributes(name), self.buffer.tobytes()
        at, ends = attributes["at"].tolist(), (attributes["at"] + attributes["bytes"]).tolist()
        is_text = np.isin(
            attributes["field"], [n for n, v in VALUE_FIELDS.items() if v[0] == "string"]
        )
        rows = zip(is_text.tolist(), at, ends, strict=True)
        return numbered([raw[begin:end] if known else b"" for known, begin, end in rows])

    def written(self, durations_us: Keys) -> Bytes:
        """Return the bytes of the nodes with new durations."""
        room = np.empty(len(self.buffer) + 20 * len(self), dtype=np.uint8)
        size = core.write_nodes(self.buffer, self.nodes, fields("Node"), durations_us, room)
        return room[:size]


def _decoded(kind: str, bits: Keys) -> Floats:
    """Return the numbers of a type from their bits."""
    if kind in _FLOATS or kind in _FIXED:
        width = 4 if kind in ("float", "sfixed32") else 8
        words = bits.astype(f"u{width}")
        return words.view((_FLOATS | _FIXED)[kind]).astype(np.float64)
    if kind in _SIGNED:
        return bits.view(np.int64).astype(np.float64)
    if kind in _ZIGZAG:
        half = (bits >> np.uint64(1)).astype(np.int64)
        return np.where(bits & np.uint64(1), ~half, half).astype(np.float64)
    return bits.astype(np.float64)
