"""Root without its power over files, whom modes keep out as they keep out any other user."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_uint32

import pytest

import rewritelog

_VERSION_3 = 0x20080522
_OVERRIDE_MODES = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH of Linux's capabilities."""


@contextmanager
def heeding_modes() -> Iterator[None]:
    """Have the modes of files hold for this thread, and for those it starts, as root too.

    The user stays the same, and can read the interpreter wherever root keeps it: a module that is
    imported only now is found. Skip the test where that is not so.
    """
    if os.geteuid() != 0:
        yield
        return
    libc, head = ctypes.CDLL(None, use_errno=True), (c_uint32 * 2)(_VERSION_3, 0)
    sets = (c_uint32 * 6)()  # effective, permitted and inheritable ones: low bits, then high ones
    if not hasattr(libc, "capset") or libc.capget(head, sets) != 0:
        pytest.skip("root cannot do without its capabilities here")
    lesser = (c_uint32 * 6)(*sets)
    lesser[0] &= ~_OVERRIDE_MODES
    _set(libc, head, lesser)
    try:
        for path in (os.__file__, rewritelog.__file__):
            if not os.access(path, os.R_OK, effective_ids=True):
                pytest.skip(f"the modes of files keep root from {path}")
        yield
    finally:
        _set(libc, head, sets)


def _set(libc: ctypes.CDLL, head: ctypes.Array[c_uint32], sets: ctypes.Array[c_uint32]) -> None:
    if libc.capset(head, sets) != 0:
        raise OSError(ctypes.get_errno(), "capset failed")
