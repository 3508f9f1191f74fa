"""Prefetching: a hint to the processor that an array element will be read soon."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from tracebigsim.compiled import compiled_form_in


@compiled_form_in("rewritelog.kernels.prefetch_compiled")
def prefetch(array: NDArray[Any], at: int) -> None:
    """Begin to load an element into the cache; the index may be out of bounds."""
