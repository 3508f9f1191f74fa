"""The bgTrace format: `declaration` defines it with construct, `layout` derives byte offsets."""

from rewritelog.format.declaration import ByteOrder, EventType
from rewritelog.format.layout import KernelLayout, Layout, Record, format_names, layout, number_type

__all__ = [
    "ByteOrder",
    "EventType",
    "KernelLayout",
    "Layout",
    "Record",
    "format_names",
    "layout",
    "number_type",
]
