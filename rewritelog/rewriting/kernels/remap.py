"""The mapping of times from the old regions of a SEB to the new ones, in seconds since its start.

It is monotonic in spite of rounding: times keep their order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.kernels.brackets import GIVEN, NEW, OLD
from tracebigsim.compiled import inner, kernel


class Regions(NamedTuple):
    """The regions of a SEB."""

    table: Floats
    """The table described in `kernels.brackets`; it may have more columns than bounds."""
    region_count: int
    factor: float
    """The dilation factor of regions without a predicted length."""


@inner
def set_new_bounds(regions: Regions) -> bool:
    """Fill in the new bounds; return whether any region changes its length."""
    table = regions.table
    changed = False
    table[NEW, 0] = 0.0
    for k in range(regions.region_count):
        length = table[OLD, k + 1] - table[OLD, k]
        target = length * regions.factor if np.isnan(table[GIVEN, k]) else table[GIVEN, k]
        changed |= target != length
        table[NEW, k + 1] = table[NEW, k] + target
    return changed


@inner
def region_of(time: float, regions: Regions) -> int:
    """Return the region that contains a time from 0 to the duration.

    The lower bound of a region belongs to it; a region of zero length contains its single time.
    """
    table = regions.table
    low, high = 0, regions.region_count
    while low < high:
        middle = (low + high) // 2
        if table[OLD, middle] < time:
            low = middle + 1
        else:
            high = middle
    return low if table[OLD, low] == time else low - 1


@inner
def map_within(time: float, k: int, regions: Regions) -> float:
    """Return the new time of a time in region `k`: linear, or unchanged in an unchanged region."""
    table = regions.table
    low, high = table[NEW, k], table[NEW, k + 1]
    if table[OLD, k] == low and table[OLD, k + 1] == high:
        return time
    inside = time - table[OLD, k]
    if inside == 0.0:
        return low
    if np.isnan(table[GIVEN, k]):
        return min(low + inside * regions.factor, high)
    return min(low + inside / (table[OLD, k + 1] - table[OLD, k]) * table[GIVEN, k], high)


@inner
def map_time(time: float, regions: Regions) -> float:
    """Return the new time of a time since the SEB's start: linear within its region.

    The end of the SEB is mapped to its new end, a time outside of the SEB keeps its distance to the
    nearer end, and a time in a region that neither moves nor changes its length is not changed.
    """
    if not time >= 0.0:  # before the SEB, or not a number
        return time
    old_end = regions.table[OLD, regions.region_count]
    if time >= old_end:
        return regions.table[NEW, regions.region_count] + (time - old_end)
    return map_within(time, region_of(time, regions), regions)


@inner
def map_moment(moment: float, start: float, end: float, new_end: float, regions: Regions) -> float:
    """Return the new value of an absolute time, for a SEB from `start` to `end`; all in seconds.

    In an unchanged region it keeps its last bit, unless it would then be beyond a rounded bound of
    the region, where the times of the next region begin.
    """
    if moment < start:
        return moment
    if moment >= end:
        return new_end + (moment - end)
    since = moment - start
    table = regions.table
    if since >= table[OLD, regions.region_count]:
        return new_end
    k = region_of(since, regions)
    low, high = table[NEW, k], table[NEW, k + 1]
    if table[OLD, k] == low and table[OLD, k + 1] == high:
        return min(max(moment, start + low), start + high)
    return start + map_within(since, k, regions)


@kernel(ns_per_byte=500)
def remap(times: Floats, bounds: Floats, given: Floats, factor: float) -> Floats:
    """Return the new times of one SEB's times, all in seconds since its start.

    Shapes: `times` (n,), `bounds` (regions + 1,), `given`, predicted lengths or NaN, (regions,).
    """
    count = len(given)
    table = np.empty((3, count + 1))
    table[OLD] = bounds
    table[GIVEN, :count] = given
    regions = Regions(table, count, factor)
    moved = times.copy()
    if set_new_bounds(regions):
        for k in range(len(times)):
            moved[k] = map_time(times[k], regions)
    return moved
