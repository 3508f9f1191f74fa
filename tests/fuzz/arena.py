"""Memory whose neighbours cannot be touched, so that a kernel that leaves it ends the process."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

_NO_ACCESS = 0


class Arena:
    """Some pages between two that are closed; `low` and `high` lay data against one or the other.

    A byte read before the data of `low` or after that of `high` is a segmentation fault. What lies
    on the other side is filled with a byte of one's own, so that a read there changes the answer.
    """

    def __init__(self, size_bytes: int, filler: int) -> None:
        page = mmap.PAGESIZE
        self.size_bytes = -(-size_bytes // page) * page
        self._map = mmap.mmap(-1, self.size_bytes + 2 * page)
        self._whole = np.frombuffer(self._map, dtype=np.uint8)
        address = self._whole.ctypes.data
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for closed in (address, address + page + self.size_bytes):
            if protect(closed, page, _NO_ACCESS) != 0:
                raise OSError(ctypes.get_errno(), "mprotect")
        self.open: Bytes = self._whole[page : page + self.size_bytes]
        """What lies between the closed pages."""
        self.open[:] = filler
