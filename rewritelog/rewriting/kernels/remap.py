"""The remapping of times: old regions of a SEB onto new ones, in seconds since the SEB's start.

The regions of a SEB are the table that `kernels.brackets` describes.
All of it is monotone under rounding: an order of times in is the same order of times out.
"""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.kernels.brackets import GIVEN, NEW, OLD
from tracebigsim.compiled import inner, kernel


@inner
def set_new_bounds(table: Floats, count: int, factor: float) -> bool:
    """Fill in the new bounds of `count` regions; return whether any changes its length."""
    changed = False
    table[NEW, 0] = 0.0
    for k in range(count):
        length = table[OLD, k + 1] - table[OLD, k]
        target = length * factor if np.isnan(table[GIVEN, k]) else table[GIVEN, k]
        changed |= target != length
        table[NEW, k + 1] = table[NEW, k] + target
    return changed


@inner
def region_of(time: float, table: Floats, count: int) -> int:
    """Return the region that a time from 0 to the duration lies in.

    A region's lower end belongs to it; a region of zero length holds the one time that it has.
    """
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if table[OLD, middle] < time:
            low = middle + 1
        else:
            high = middle
    return low if table[OLD, low] == time else low - 1


@inner
def map_within(time: float, k: int, table: Floats, factor: float) -> float:
    """Return where a time in region `k` goes: linear, and nowhere where the region stays."""
    low, high = table[NEW, k], table[NEW, k + 1]
    if table[OLD, k] == low and table[OLD, k + 1] == high:
        return time
    inside = time - table[OLD, k]
    if inside == 0.0:
        return low
    if np.isnan(table[GIVEN, k]):
        return min(low + inside * factor, high)
    return min(low + inside / (table[OLD, k + 1] - table[OLD, k]) * table[GIVEN, k], high)


@inner
def map_time(time: float, table: Floats, count: int, factor: float) -> float:
    """Return where a time since the SEB's start goes: linear within its region.

    The SEB's end goes to its end; a time outside the SEB keeps its distance to the nearer end; a
    time in a region that neither moves nor changes its length stays as it is to the last bit.
    """
    if not time >= 0.0:  # before the SEB, or no number
        return time
    if time >= table[OLD, count]:
        return table[NEW, count] + (time - table[OLD, count])
    return map_within(time, region_of(time, table, count), table, factor)


@inner
def map_moment(
    moment: float,
    start: float,
    end: float,
    new_end: float,
    table: Floats,
    count: int,
    factor: float,
) -> float:
    """Return where an absolute time goes, for a SEB from `start` to `end`; all in seconds.

    In a region that stays what it was it keeps its last bit, unless that would put it beyond one of
    the region's bounds as they are once rounded: the times of the next region begin there.
    """
    if moment < start:
        return moment
    if moment >= end:
        return new_end + (moment - end)
    since = moment - start
    if since >= table[OLD, count]:
        return new_end
    k = region_of(since, table, count)
    low, high = table[NEW, k], table[NEW, k + 1]
    if table[OLD, k] == low and table[OLD, k + 1] == high:
        return min(max(moment, start + low), start + high)
    return start + map_within(since, k, table, factor)


@kernel
def remap(times: Floats, bounds: Floats, given: Floats, factor: float) -> Floats:
    """Return the new times of one SEB's times, all in seconds since its start.

    Shapes: `times` (n,), `bounds` (regions + 1,), `given` (regions,), NaN where none is given.
    """
    count = len(given)
    table = np.empty((3, count + 1))
    table[OLD] = bounds
    table[GIVEN, :count] = given
    moved = times.copy()
    if set_new_bounds(table, count, factor):
        for k in range(len(times)):
            moved[k] = map_time(times[k], table, count, factor)
    return moved
