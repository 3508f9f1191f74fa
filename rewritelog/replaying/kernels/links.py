"""The links between SEBs: starting messages, found by their numbers, and inverted links."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Ints
from rewritelog.replaying.kernels.interface import NO_MESSAGE, NOT_SENT, Numbers, Sebs
from tracebigsim.compiled import inner, kernel


@inner
def find_number(numbers: Numbers, order: Numbers, low: int, high: int, number: int) -> int:
    """Return the first index from `low` to below `high` with a number, or −1.

    The numbers are ascending along `order`, or in the array itself if `order` is empty. They mostly
    have no gaps, so that the index computed from the first number is tried before a binary search.
    """
    if low == high:
        return -1
    if len(order) == 0:
        guess = low + number - numbers[low]
        known = low <= guess < high and numbers[guess] == number
        if known and (guess == low or numbers[guess - 1] != number):
            return guess
    end = high
    while low < high:
        middle = (low + high) // 2
        at = middle if len(order) == 0 else order[middle]
        if numbers[at] < number:
            low = middle + 1
        else:
            high = middle
    if low == end:
        return -1
    at = low if len(order) == 0 else order[low]
    return at if numbers[at] == number else -1


@kernel(ns_per_byte=200)
def rises(numbers: Numbers, bounds: Ints) -> tuple[bool, int]:
    """Return whether numbers are ascending between bounds, and how many are repeated."""
    rising, repeated = True, 0
    for k in range(len(bounds) - 1):
        for at in range(bounds[k] + 1, bounds[k + 1]):
            rising &= numbers[at] >= numbers[at - 1]
            repeated += numbers[at] == numbers[at - 1]
    return rising, repeated


@kernel(ns_per_byte=600)
def match_messages(
    source: Numbers, number: Numbers, sent: Numbers, order: Numbers, bounds: Ints, starter: Numbers
) -> None:
    """Fill in the starting message of each SEB, `NO_MESSAGE` or `NOT_SENT`.

    `sent` are the numbers of all messages, and `bounds`, shape (PEs + 1,), the first one of each
    PE. `order` sorts them within each PE, and is empty if they are sorted. Of messages with the
    same number the first one is used.
    """
    for seb in range(len(source)):
        starter[seb] = NO_MESSAGE
        if number[seb] >= 0:
            starter[seb] = NOT_SENT
            pe = source[seb]
            if 0 <= pe < len(bounds) - 1:
                found = find_number(sent, order, bounds[pe], bounds[pe + 1], number[seb])
                if found >= 0:
                    starter[seb] = found


@kernel(ns_per_byte=300)
def invert(starter: Numbers, first: Numbers) -> Numbers:
    """Return the receivers of all messages, ascending for each; fill in the `first` of each.

    `first` is initially zeros, shape (messages + 1,).
    """
    count = len(first) - 1
    for seb in range(len(starter)):
        if starter[seb] >= 0:
            first[starter[seb] + 1] += 1
    for k in range(count):
        first[k + 1] += first[k]
    receivers = np.empty(first[count], dtype=np.int32)
    for seb in range(len(starter)):
        if starter[seb] >= 0:
            receivers[first[starter[seb]]] = seb
            first[starter[seb]] += 1
    for k in range(count, 0, -1):
        first[k] = first[k - 1]
    first[0] = 0
    return receivers


@inner
def awaited(sebs: Sebs, seb: int, k: int) -> int:
    """Return the SEB that dependency `k` of a SEB refers to, −1 if the timeline has no such SEB."""
    base = sebs.first_of_pe[sebs.pe[seb]]
    other = sebs.dependencies[k]
    return base + other if 0 <= other < sebs.first_of_pe[sebs.pe[seb] + 1] - base else -1


@kernel(ns_per_byte=700)
def invert_dependencies(sebs: Sebs, first: Numbers) -> Numbers:
    """Return the dependents of all SEBs, ascending for each; fill in the `first` of each.

    A dependency on a SEB that the timeline does not have is never fulfilled, and has no inverse.
    """
    count = len(sebs.pe)
    for seb in range(count):
        for k in range(sebs.first_dependency[seb], sebs.first_dependency[seb + 1]):
            other = awaited(sebs, seb, k)
            if other >= 0:
                first[other + 1] += 1
    for k in range(count):
        first[k + 1] += first[k]
    dependents = np.empty(first[count], dtype=np.int32)
    for seb in range(count):
        for k in range(sebs.first_dependency[seb], sebs.first_dependency[seb + 1]):
            other = awaited(sebs, seb, k)
            if other >= 0:
                dependents[first[other]] = seb
                first[other] += 1
    for k in range(count, 0, -1):
        first[k] = first[k - 1]
    first[0] = 0
    return dependents


@kernel(ns_per_byte=300)
def count_misaddressed(
    starter: Numbers, pe: Numbers, node: Numbers, worker: NDArray[np.int16], workers: int
) -> tuple[int, int]:
    """Return how many SEBs are started by a message that is not for their PE, and the first one."""
    count, example = 0, -1
    for seb in range(len(starter)):
        message = starter[seb]
        if message >= 0 and not addresses(
            node[message], worker[message], pe[seb] // workers, pe[seb] % workers
        ):
            example = seb if count == 0 else example
            count += 1
    return count, example


@inner
def addresses(node: int, worker: int, to_node: int, to_worker: int) -> bool:
    """Return whether the destination of a message includes a worker of a node (FORMAT 4).

    The list of a multicast is not in the log, so that such a message may be for any PE.
    """
    if node == -2:
        return True
    if node == -1:
        return worker in (-1, to_worker)
    if node >= 0:
        return node == to_node and worker in (-1, to_worker)
    excepted = -100 - node == to_node
    return not excepted if worker == -1 else not (excepted and worker == to_worker)
