"""Work that grows as its input does, whatever the machine is doing besides."""

from __future__ import annotations

import time
from collections.abc import Callable

LARGER = 64
"""How much larger the second input is."""

Job = Callable[[], object]


def seconds(job: Job) -> float:
    """The least processor time of a few runs."""
    spent = []
    for _ in range(3):
        began = time.process_time()
        job()
        spent.append(time.process_time() - began)
    return min(spent)


def check_growth(job_of: Callable[[int], Job], size: int) -> None:
    """Quadratic work would take 4,096 times as long; a busy machine makes 8 times no difference."""
    job_of(size)()
    small, large = (seconds(job_of(n)) for n in (size, LARGER * size))
    assert large < 8 * LARGER * max(small, 0.002)
