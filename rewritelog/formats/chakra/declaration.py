"""The messages of a Chakra trace, schema 1.0: the number of each field, and what it holds.

A file is a sequence of messages, each after its length as a varint: `GlobalMetadata`, then a `Node`
for each operation. Tables and structs of the compiled core are derived from this declaration.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from rewritelog.arrays import Table
from rewritelog.core import core

_VALUES: dict[str, tuple[str, str]] = {
    "double": ("fixed64", "Fixed64List"),
    "float": ("fixed32", "Fixed32List"),
    "int32": ("number", "NumberList"),
    "int64": ("number", "NumberList"),
    "uint32": ("number", "NumberList"),
    "uint64": ("number", "NumberList"),
    "sint32": ("number", "NumberList"),
    "sint64": ("number", "NumberList"),
    "fixed32": ("fixed32", "Fixed32List"),
    "fixed64": ("fixed64", "Fixed64List"),
    "sfixed32": ("fixed32", "Fixed32List"),
    "sfixed64": ("fixed64", "Fixed64List"),
    "bool": ("number", "NumberList"),
    "string": ("text", "TextList"),
    "bytes": ("text", "TextList"),
}
"""The types of an attribute's value, in the order of their fields, one and a list of each."""

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
            f"{name}_{'list' if is_list else 'val'}": (number, _VALUES[name][is_list])
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
