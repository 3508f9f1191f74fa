"""What is said of damage in a Chakra trace."""

from __future__ import annotations

from rewritelog.arrays import Ints
from rewritelog.core import core
from rewritelog.errors import DamagedLogError, Location
from rewritelog.formats.traces import Unit
from rewritelog.text import bytes_text

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


def damage(unit: Unit, fault: Ints, offset: int, node: int | None) -> DamagedLogError:
    """Return the error for a fault, with offsets from `offset`; no node is the metadata."""
    problem = PROBLEMS[int(fault[core.FAULT_CODE])].format(int(fault[core.FAULT_VALUE]))
    if node is None:
        problem = f"the metadata, its first message: {problem}"
    at = offset + int(fault[core.FAULT_AT])
    return DamagedLogError(Location(unit.path, at, node=node), problem)
