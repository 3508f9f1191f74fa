"""The seven rules that readers of the logs insist on (FORMAT §7), checked through construct."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from oracle import walk

Violation = tuple[int, int, int, int]
"""Rule, PE, SEB, and message or dependency."""


@cache
def known_violations(folder: Path) -> set[Violation]:
    """Return where a log set that does not change breaks a rule."""
    return violations(folder)


def violations(folder: Path) -> set[Violation]:
    """Return where a log set breaks a rule."""
    return {
        (rule, pe, index, part)
        for pe, index, _, seb in walk(folder)
        for rule, part in _broken(index, seb)
    }


def _broken(index: int, seb: Any) -> Iterator[tuple[int, int]]:
    for k, message in enumerate(seb.messages):
        if message.recv_time < message.send_time:
            yield 1, k
        if message.size < 0:
            yield 2, k
        if not seb.start_time <= message.send_time <= seb.end_time:
            yield 5, k
    for k, other in enumerate(seb.backward):
        if not 0 <= other < index:
            yield 3, k
    if abs(seb.exec_time - (seb.end_time - seb.start_time)) > 1e-6:
        yield 4, 0
    if seb.msg_id >= 0 and seb.backward:
        yield 6, 0
    if seb.msg_id < 0 and not seb.backward and seb.recv_time == -1:
        yield 7, 0
