"""Event queues for the replay, compared on the hold model: take the first, put another one in.

The ladder queue is the replay's own.

`python -m benchmarks.event_queues` prints nanoseconds a hold by queue and size. In a replay the
queue holds the SEBs whose readiness is known: a few for each PE.
"""

from __future__ import annotations

import time

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.replaying.kernels.interface import Numbers
from rewritelog.replaying.kernels.queue import (
    IN_HEAP,
    Queue,
    add,
    comes_before,
    drop_first,
    push,
    refill,
)
from tracebigsim.compiled import inner, kernel

HOLDS = 2_000_000
SIZES = (16, 256, 4096, 65_536, 1_048_576)
_WAYS = 4


@kernel
def binary_heap(times: Floats, steps: Floats, holds: int) -> float:
    """Hold with the heap that the ladder queue has for the first few of its entries."""
    size = len(times) - 1
    ids = np.zeros(size + 1, dtype=np.int32)
    for k in range(size):
        push(times, ids, k, times[k], k)
    last = 0.0
    for k in range(holds):
        last, seb = times[0], ids[0]
        drop_first(times, ids, size)
        push(times, ids, size - 1, last + steps[k & (len(steps) - 1)], seb)
    return last


@kernel
def _hold_ladder(queue: Queue, times: Floats, steps: Floats, holds: int) -> float:
    for k in range(len(times) - 1):
        add(queue, times[k], k)
    last = 0.0
    for k in range(holds):
        refill(queue)
        last, seb = queue.heap_times[0], queue.heap_sebs[0]
        drop_first(queue.heap_times, queue.heap_sebs, queue.numbers[IN_HEAP])
        queue.numbers[IN_HEAP] -= 1
        add(queue, last + steps[k & (len(steps) - 1)], seb)
    return last


def ladder(times: Floats, steps: Floats, holds: int) -> float:
    """Hold with the replay's own queue."""
    held: float = _hold_ladder(Queue.of(len(times)), times, steps, holds)
    return held


@inner
def _push_wide(times: Floats, ids: Numbers, size: int, when: float, seb: int) -> None:
    at = size
    while at > 0:
        parent = (at - 1) // _WAYS
        if comes_before(times, ids, parent, when, seb):
            break
        times[at], ids[at] = times[parent], ids[parent]
        at = parent
    times[at], ids[at] = when, seb


@inner
def _drop_wide(times: Floats, ids: Numbers, size: int) -> None:
    when, seb = times[size - 1], ids[size - 1]
    at, left = 0, size - 1
    while True:
        first = _WAYS * at + 1
        if first >= left:
            break
        child = first
        for k in range(first + 1, min(first + _WAYS, left)):
            if comes_before(times, ids, k, times[child], ids[child]):
                child = k
        if not comes_before(times, ids, child, when, seb):
            break
        times[at], ids[at] = times[child], ids[child]
        at = child
    times[at], ids[at] = when, seb


@kernel
def four_way_heap(times: Floats, steps: Floats, holds: int) -> float:
    """Hold with a heap whose nodes have four children."""
    size = len(times) - 1
    ids = np.zeros(size + 1, dtype=np.int32)
    for k in range(size):
        _push_wide(times, ids, k, times[k], k)
    last = 0.0
    for k in range(holds):
        last, seb = times[0], ids[0]
        _drop_wide(times, ids, size)
        _push_wide(times, ids, size - 1, last + steps[k & (len(steps) - 1)], seb)
    return last


@kernel
def calendar(times: Floats, steps: Floats, holds: int) -> float:
    """Hold with a calendar queue (Brown, 1988) whose day is known to be right: its best case."""
    size = len(times) - 1
    days = 1
    while days < size:
        days *= 2
    width = 2.0 * steps.mean() / size
    head = np.full(days, -1, dtype=np.int32)
    following = np.full(size, -1, dtype=np.int32)
    for k in range(size):
        slot = int(times[k] / width) & (days - 1)
        following[k], head[slot] = head[slot], k
    day, last = 0, 0.0
    for done in range(holds):
        while True:
            slot = day & (days - 1)
            best, before, previous = -1, -1, -1
            k = head[slot]
            while k >= 0:
                due = int(times[k] / width) <= day
                if due and (best < 0 or times[k] < times[best]):
                    best, before = k, previous
                previous, k = k, following[k]
            if best >= 0:
                break
            day += 1
        if before < 0:
            head[slot] = following[best]
        else:
            following[before] = following[best]
        last = times[best]
        times[best] = last + steps[done & (len(steps) - 1)]
        slot = int(times[best] / width) & (days - 1)
        following[best], head[slot] = head[slot], best
    return last


def main() -> None:
    """Print nanoseconds a hold of each queue."""
    draws = np.random.default_rng(1)
    steps = draws.exponential(1.0, 1 << 16)
    print(f"{'entries':>10}  {'binary heap':>12}  {'4-way heap':>12}  "
          f"{'calendar':>12}  {'ladder':>12}")  # fmt: skip
    for size in SIZES:
        times = np.append(draws.exponential(1.0, size), 0.0)
        spent = []
        for queue in (binary_heap, four_way_heap, calendar, ladder):
            queue(times.copy(), steps, 10)
            runs = []
            for _ in range(3):
                copied = times.copy()
                began = time.process_time()
                queue(copied, steps, HOLDS)
                runs.append((time.process_time() - began) / HOLDS * 1e9)
            spent.append(min(runs))
        print(f"{size:>10,}  " + "  ".join(f"{ns:>9.0f} ns" for ns in spent))


if __name__ == "__main__":
    main()
