"""Blocks of timelines of all log versions: walked, and rewritten in place."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np

from fuzz.arena import Arena
from fuzz.promises import MadeRecords, Tools, check_block
from fuzz.readers import Check
from fuzz.seeds import make_logs
from rewritelog.formats.bgtrace.declaration import LOG_VERSIONS, ByteOrder, layout

_ROOM = 1 << 14
"""Bytes that an input may have."""


def timelines_check(work: Path) -> tuple[Check, list[bytes]]:
    """Take the first byte for log version, order and options, the rest as a timeline.

    It is read twice: against a closed page in front of it, and against one behind it.
    """
    variants = [
        (Tools(layout(version, order), 0.7 if keep else 1.9, keep), version, order)
        for version in LOG_VERSIONS
        for order in get_args(ByteOrder)
        for keep in (False, True)
    ]
    low, high = Arena(_ROOM, 0xAA).open, Arena(_ROOM, 0x55).open
    piece = np.zeros(3, dtype=np.int64)
    records = MadeRecords(piece, np.array([0, 1, 1]), np.array([1e-6, np.nan, 0.5]))

    def check(data: bytes) -> bool:
        size = len(data) - 1
        if not 4 <= size <= _ROOM:
            return False
        tools = variants[data[0] % len(variants)][0]
        answers = []
        for buffer in (low[:size], high[len(high) - size :]):
            buffer[:] = np.frombuffer(data, dtype=np.uint8)[1:]
            fault = check_block(buffer, np.array([0, size]), tools, records)
            answers.append((fault, buffer.tobytes()))
        if answers[0] != answers[1]:
            raise AssertionError("the answer depends on what lies beside the block")
        return answers[0][0] is None

    return check, [
        bytes([number]) + _timeline(work / f"{number}", version, order)
        for number, (_, version, order) in enumerate(variants)
    ]


def _timeline(folder: Path, version: int, order: ByteOrder) -> bytes:
    file = make_logs(folder, version, order, seed=version).files[0]
    return file.path.read_bytes()[file.borders[0] : file.borders[1]]
