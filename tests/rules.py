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
        for pe, index, _, one in walk(folder)
        for rule, part in _broken(index, one)
    }


def _broken(index: int, one: Any) -> Iterator[tuple[int, int]]:
    for k, message in enumerate(one.messages):
        if message.recv_time < message.send_time:
            yield 1, k
        if message.size < 0:
            yield 2, k
        if not one.start_time <= message.send_time <= one.end_time:
            yield 5, k
    for k, other in enumerate(one.backward):
        if not 0 <= other < index:
            yield 3, k
    if abs(one.exec_time - (one.end_time - one.start_time)) > 1e-6:
        yield 4, 0
    if one.msg_id >= 0 and one.backward:
        yield 6, 0
    if one.msg_id < 0 and not one.backward and one.recv_time == -1:
        yield 7, 0
