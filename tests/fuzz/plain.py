"""The targets for a fuzzer that brings its own inputs: bytes in, an exception for what broke."""

from __future__ import annotations

from contextlib import ExitStack

from fuzz.readers import Check, workplace
from fuzz.targets import READERS

_stack = ExitStack()


def target(name: str) -> tuple[Check, list[bytes]]:
    """Return the check of a target, and the inputs to begin with."""
    return READERS[name](_stack.enter_context(workplace()))
