"""The bgTrace format, and log sets on disk.

`declaration` defines the format with construct, `layout` derives byte offsets; the other
modules read summaries, timeline files, blocks, columns and params.
"""

from rewritelog.formats.bgtrace.declaration import ByteOrder, EventType
from rewritelog.formats.bgtrace.layout import Layout, Record, format_names, layout, number_type

__all__ = [
    "ByteOrder",
    "EventType",
    "Layout",
    "Record",
    "format_names",
    "layout",
    "number_type",
]
