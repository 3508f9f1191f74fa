"""The bgTrace format: `declaration` says it in construct, `layout` derives bytes and dtypes."""

from rewritelog.format.declaration import ByteOrder
from rewritelog.format.layout import KernelLayout, Layout, layout

__all__ = ["ByteOrder", "KernelLayout", "Layout", "layout"]
