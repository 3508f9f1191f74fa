"""The bgTrace format: `declaration` says it in construct, `layout` derives bytes and dtypes."""

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
