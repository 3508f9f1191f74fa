"""The targets for a fuzzer that brings its own inputs: bytes in, an exception for what broke."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from fuzz import promises
from fuzz.readers import Check, workplace
from fuzz.seeds import block_seeds
from fuzz.targets import READERS, BrokenError
from rewritelog.rewriting.counts import RECORD

_stack = ExitStack()


def target(name: str) -> tuple[Check, list[bytes]]:
    """Return the check of a target, and the inputs to begin with."""
    if name == "timelines":
        return _timelines()
    return READERS[name](_stack.enter_context(workplace()))


def _timelines() -> tuple[Check, list[bytes]]:
    """Take the first byte for the log version, the order and the options, the rest as timelines."""
    seeds = block_seeds()
    records = np.zeros(3, dtype=RECORD).view(np.recarray)
    trace = np.zeros(16, dtype=np.int64)

    def check(data: bytes) -> bool:
        if len(data) < 1 + 4:
            return False
        tools = seeds[data[0] % len(seeds)][1]
        buffer = np.frombuffer(data, dtype=np.uint8)[1:].copy()
        records[:] = 0
        records["seb"], records["seconds"] = (0, 1, 1), (1e-6, np.nan, 0.5)
        begins = np.array([0, len(records)])
        borders = np.array([0, len(buffer)])
        broken = promises.check_block(buffer, borders, tools, records, begins, trace)
        if broken:
            raise BrokenError(promises.BROKEN[broken], data)
        return bool(trace[2] == 0)

    first = [
        bytes([number]) + seed.data[: seed.borders[1]].tobytes()
        for number, (seed, _) in enumerate(seeds)
    ]
    return check, first
