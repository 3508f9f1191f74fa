"""The messages of a Chakra trace, schema 1.0, and the nodes of a part of a file as columns.

A file is a sequence of messages, each after its length as a varint: `GlobalMetadata`, then a `Node`
for each operation. Tables and structs of the compiled core are derived from the declaration here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from rewritelog.arrays import Bytes, Flags, Floats, Ints, Keys, Table
from rewritelog.core import core
from rewritelog.formats.traces import Part, Unit, numbered
from rewritelog.text import bytes_text

_VALUES = {
    "double": ("fixed64", "f8"),
    "float": ("fixed32", "f4"),
    "int32": ("number", "i8"),
    "int64": ("number", "i8"),
    "uint32": ("number", "u8"),
    "uint64": ("number", "u8"),
    "sint32": ("number", "zigzag"),
    "sint64": ("number", "zigzag"),
    "fixed32": ("fixed32", "u4"),
    "fixed64": ("fixed64", "u8"),
    "sfixed32": ("fixed32", "i4"),
    "sfixed64": ("fixed64", "i8"),
    "bool": ("number", "u8"),
    "string": ("text", ""),
    "bytes": ("text", ""),
}
"""The types of an attribute's value, in the order of their fields: the kind of one, and the dtype
of a number."""

_LISTS = {
    "number": "NumberList",
    "fixed64": "Fixed64List",
    "fixed32": "Fixed32List",
    "text": "TextList",
}
"""The messages of several values of a kind."""

VALUE_FIELDS = {
    3 + 2 * place + is_list: (name, bool(is_list))
    for place, name in enumerate(_VALUES)
    for is_list in (0, 1)
}
"""The type of the value in each field of an attribute, and whether it is a list."""

MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "GlobalMetadata": {"version": (1, "text"), "attr": (2, "Attribute")},
    "Node": {
        "id": (1, "number"),
        "name": (2, "text"),
        "type": (3, "number"),
        "ctrl_deps": (4, "numbers"),  # of calls on their callers, which may be left out
        "data_deps": (5, "numbers"),
        "start_time_micros": (6, "number"),
        "duration_micros": (7, "number"),
        "inputs": (8, "Tensors"),
        "outputs": (9, "Tensors"),
        "attr": (10, "Attribute"),
    },
    "Tensors": {"values": (1, "text"), "shapes": (2, "text"), "types": (3, "text")},
    "Attribute": {
        "name": (1, "text"),
        "doc_string": (2, "text"),
        **{
            f"{name}_{'list' if is_list else 'val'}": (
                number,
                _LISTS[_VALUES[name][0]] if is_list else _VALUES[name][0],
            )
            for number, (name, is_list) in VALUE_FIELDS.items()
        },
    },
    "NumberList": {"values": (1, "numbers")},
    "Fixed64List": {"values": (1, "several fixed64")},
    "Fixed32List": {"values": (1, "several fixed32")},
    "TextList": {"values": (1, "text")},
}
"""The fields of each message: a number, and a kind of value or the name of a message."""

NODE_TYPES = (
    "INVALID", "METADATA", "MEM_LOAD", "MEM_STORE", "COMP", "SEND", "RECV", "COLL", "UNKNOWN",
)  # fmt: skip
"""The types of nodes, by the values of the field; the last stands for all other values."""

_KINDS = {
    "number": core.VARINT_VALUE,
    "numbers": core.VARINT_VALUE + core.SEVERAL_VALUES,
    "fixed64": core.FIXED64_VALUE,
    "fixed32": core.FIXED32_VALUE,
    "several fixed64": core.FIXED64_VALUE + core.SEVERAL_VALUES,
    "several fixed32": core.FIXED32_VALUE + core.SEVERAL_VALUES,
    "text": core.BYTES_VALUE,
    **{name: core.MESSAGE_VALUE + place for place, name in enumerate(MESSAGES)},
}

MESSAGE_NUMBERS = {name: place for place, name in enumerate(MESSAGES)}


@cache
def schema() -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    """Return the table of all messages' fields as the core takes it."""
    table = np.zeros((len(MESSAGES), core.SCHEMA_FIELDS), dtype=np.int32)
    for place, message in enumerate(MESSAGES.values()):
        for number, kind in message.values():
            table[place, number] = _KINDS[kind]
    return table


@cache
def fields(message: str) -> Table:
    """Return the core's struct `node_fields` for a message, with 0 for fields that it lacks."""
    attribute = MESSAGES["Attribute"]
    others = {
        "shapes": MESSAGES["Tensors"]["shapes"][0],
        "attr_name": attribute["name"][0],
        "attr_value": min(VALUE_FIELDS),
    }
    own = {name: number for name, (number, _) in MESSAGES[message].items()}
    struct = core.structs["node_fields"]
    return np.array(tuple((own | others).get(name, 0) for name in struct.names or ()), struct)


PROBLEMS: dict[int, str] = {
    core.MESSAGE_CUT: "the file ends within a message",
    core.MESSAGE_TOO_LONG: (
        f"a message of more than {bytes_text(core.MOST_MESSAGE_BYTES)}: the file is damaged, or "
        "is no Chakra trace"
    ),
    core.VARINT_CUT: "a number is cut off",
    core.VARINT_TOO_LONG: "a number has more than 64 bits",
    core.FIELD_NUMBER: "a field with the invalid number {}",
    core.FIELD_CUT: "a field reaches beyond its message",
    core.FIELD_TYPE: "the field with the number {} has another type than the schema says",
    core.WIRE_TYPE: "a field with the unknown wire type {}",
    core.PACKED_CUT: "a list of {} bytes holds no whole number of values",
}
"""A message for each fault code of the compiled core; `{}` is its value."""


_MICRO = 1e-6
_MOST_LANE = 2.0**31


@dataclass(frozen=True, eq=False)
class NodePart(Part):
    """Some nodes of a file, which follow each other, with their bytes."""

    buffer: Bytes
    nodes: Table
    """The core's struct `trace_node` for each node."""

    @classmethod
    def of(cls, unit: Unit, first: int, buffer: Bytes, nodes: Table) -> NodePart:
        """Return nodes with their columns."""
        kind, last, start = nodes["type"], len(NODE_TYPES) - 1, nodes["start_us"]
        return cls(
            unit,
            first,
            np.ascontiguousarray(nodes["id"]),
            np.where((kind < 0) | (kind > last), last, kind),
            nodes["duration_us"] * _MICRO,
            np.where(start > 0, start * _MICRO, np.nan),
            buffer,
            nodes,
        )

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
            kind, is_list = VALUE_FIELDS.get(field, ("string", True))
            if _VALUES[kind][1] and not is_list:
                rows = attributes["field"] == field
                numbers[rows] = _decoded(attributes["bits"][rows], _VALUES[kind][1])
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


def _decoded(bits: Keys, kind: str) -> Floats:
    """Return numbers of a dtype, or zigzag-encoded ones, from their bits."""
    if kind == "zigzag":
        half = (bits >> np.uint64(1)).astype(np.int64)
        return np.where(bits & np.uint64(1), ~half, half).astype(np.float64)
    return bits.astype(f"u{kind[1]}").view(kind).astype(np.float64)
