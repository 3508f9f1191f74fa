"""The bgTrace format: `declaration` defines it with construct, `layout` derives byte offsets."""

from rewritelog.format.declaration import ByteOrder, EventType
from rewritelog.format.layout import Layout, Record, format_names, layout, number_type

__all__ = [
    "ByteOrder",
    "EventType",
    "Layout",
    "Record",
    "format_names",
    "layout",
    "number_type",
]
