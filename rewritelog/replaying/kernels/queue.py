"""A priority queue of SEBs by the time when they are ready: a heap, buckets, and an overflow list.

It is a ladder queue (Tang, Goh and Thng, 2005) with one rung. The next entries are in a binary
heap, which is small. Later entries are unsorted in buckets, one for each interval of time, and
enter the heap together with their bucket. Entries later than all buckets wait in a list. When all
buckets are empty, the list is distributed over new ones. These span twice the mean time of its
entries from the earliest one, which by Markov's inequality covers at least half of them. An entry
is therefore moved only a few times, whatever the number of entries. If all are in one bucket, the
queue is a heap with its logarithmic cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.replaying.kernels.interface import Numbers
from tracebigsim.compiled import inner

NODE_ROW = np.dtype([("time", np.float64), ("seb", np.int32), ("next", np.int32)], align=True)
"""An entry of a bucket, a linked list, with the index of the next entry."""

ENTRIES_PER_BUCKET = 4
_MOST_BUCKETS = 1 << 18

IN_HEAP, IN_BUCKETS, WAITING, BUCKETS, CURRENT, FREE, USED = range(7)
"""Indices into `Queue.numbers`: entries in each part; number of buckets, and the one in the heap;
head of the list of free nodes, and number of nodes used."""
BASE, BUCKETS_PER_S = range(2)


class Queue(NamedTuple):
    """A queue; `add` inserts SEBs, and `refill` moves the next ones into the heap."""

    heap_times: Floats
    heap_sebs: Numbers
    node_time: Floats
    node_seb: Numbers
    node_next: Numbers
    heads: Numbers
    """The first node of each bucket, −1 for none."""
    waiting_times: Floats
    waiting_sebs: Numbers
    numbers: Ints
    span_s: Floats
    """The beginning of the first bucket in seconds, and the number of buckets per second."""

    @classmethod
    def of(cls, sebs: int) -> Queue:
        """Return an empty queue for this many SEBs; pages of it take memory when they are used."""
        nodes = np.empty(sebs + 1, dtype=NODE_ROW)
        waiting = np.empty(sebs + 1, dtype=NODE_ROW)
        numbers = np.zeros(7, dtype=np.int64)
        numbers[CURRENT] = numbers[FREE] = -1
        return cls(
            np.empty(sebs + 1),
            np.empty(sebs + 1, dtype=np.int32),
            nodes["time"],
            nodes["seb"],
            nodes["next"],
            np.empty(min(sebs // ENTRIES_PER_BUCKET + 1, _MOST_BUCKETS), dtype=np.int32),
            waiting["time"],
            waiting["seb"],
            numbers,
            np.array([-1.0, 1.0]),
        )


@inner
def comes_before(times: Floats, sebs: Numbers, a: int, time: float, seb: int) -> bool:
    """Return whether entry `a` of the heap precedes a SEB that is ready at `time`."""
    return times[a] < time or (times[a] == time and sebs[a] < seb)


@inner
def push(times: Floats, sebs: Numbers, size: int, time: float, seb: int) -> None:
    """Insert a SEB into a binary heap of `size` entries."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if comes_before(times, sebs, parent, time, seb):
            break
        times[at], sebs[at] = times[parent], sebs[parent]
        at = parent
    times[at], sebs[at] = time, seb


@inner
def drop_first(times: Floats, sebs: Numbers, size: int) -> None:
    """Remove the first entry of a binary heap of `size` entries."""
    time, seb = times[size - 1], sebs[size - 1]
    at, left = 0, size - 1
    while True:
        child = 2 * at + 1
        if child >= left:
            break
        if child + 1 < left and comes_before(times, sebs, child + 1, times[child], sebs[child]):
            child += 1
        if not comes_before(times, sebs, child, time, seb):
            break
        times[at], sebs[at] = times[child], sebs[child]
        at = child
    times[at], sebs[at] = time, seb


@inner
def add_to_heap(queue: Queue, time: float, seb: int) -> None:
    """Insert a SEB into the heap of the queue."""
    size = queue.numbers[IN_HEAP]
    push(queue.heap_times, queue.heap_sebs, size, time, seb)
    queue.numbers[IN_HEAP] = size + 1


@inner
def add_to_bucket(queue: Queue, bucket: int, time: float, seb: int) -> None:
    """Insert a SEB into a bucket."""
    numbers = queue.numbers
    node = numbers[FREE]
    if node >= 0:
        numbers[FREE] = queue.node_next[node]
    else:
        node = numbers[USED]
        numbers[USED] = node + 1
    queue.node_time[node], queue.node_seb[node] = time, seb
    queue.node_next[node], queue.heads[bucket] = queue.heads[bucket], node
    numbers[IN_BUCKETS] += 1


@inner
def add(queue: Queue, time: float, seb: int) -> None:
    """Insert a SEB into the queue, at a time not before that of the last one removed.

    Despite rounding, a later time never has an earlier bucket: the index is monotonic in the time.
    """
    numbers = queue.numbers
    bucket = (time - queue.span_s[BASE]) * queue.span_s[BUCKETS_PER_S]
    if not bucket >= numbers[CURRENT] + 1:  # NaN without buckets
        add_to_heap(queue, time, seb)
    elif bucket < numbers[BUCKETS]:
        add_to_bucket(queue, int(bucket), time, seb)
    else:
        waiting = numbers[WAITING]
        queue.waiting_times[waiting], queue.waiting_sebs[waiting] = time, seb
        numbers[WAITING] = waiting + 1


@inner
def open_bucket(queue: Queue, bucket: int) -> None:
    """Move the entries of a bucket into the heap."""
    numbers = queue.numbers
    node = queue.heads[bucket]
    while node >= 0:
        add_to_heap(queue, queue.node_time[node], queue.node_seb[node])
        following = queue.node_next[node]
        queue.node_next[node], numbers[FREE] = numbers[FREE], node
        node = following
        numbers[IN_BUCKETS] -= 1
    queue.heads[bucket] = -1
    numbers[CURRENT] = bucket


@inner
def spread(queue: Queue) -> None:
    """Distribute the waiting entries over new buckets, or to the heap if their times are equal."""
    numbers, times = queue.numbers, queue.waiting_times
    count = numbers[WAITING]
    lowest, highest, total = times[0], times[0], 0.0
    for k in range(count):
        lowest, highest = min(lowest, times[k]), max(highest, times[k])
    for k in range(count):
        total += times[k] - lowest
    buckets = min(count // ENTRIES_PER_BUCKET + 1, len(queue.heads))
    rate = buckets / (2.0 * total / count) if total > 0.0 else np.inf
    if not 0.0 < rate < np.inf:
        buckets, lowest, rate = 0, highest, np.inf
    queue.span_s[BASE], queue.span_s[BUCKETS_PER_S] = lowest, rate
    numbers[BUCKETS], numbers[CURRENT], numbers[WAITING] = buckets, -1, 0
    for bucket in range(buckets):
        queue.heads[bucket] = -1
    for k in range(count):
        add(queue, times[k], queue.waiting_sebs[k])


@inner
def refill(queue: Queue) -> bool:
    """Move the next entries into the heap if it is empty; return whether there are any."""
    numbers = queue.numbers
    while numbers[IN_HEAP] == 0:
        if numbers[IN_BUCKETS] > 0:
            open_bucket(queue, numbers[CURRENT] + 1)
        elif numbers[WAITING] > 0:
            spread(queue)
        else:
            return False
    return True
