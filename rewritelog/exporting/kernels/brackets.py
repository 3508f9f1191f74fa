"""The brackets of all SEBs of a block as rows."""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Bytes, Floats, Ints
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.brackets import OLD, find_brackets, slack
from rewritelog.kernels.raw import load_f8, load_i4
from rewritelog.kernels.walk import Pieces, seb_parts
from tracebigsim.compiled import kernel


@kernel(ns_per_byte=100)
def list_brackets(
    buf: Bytes, pieces: Pieces, lay: KernelLayout, fault: Ints, rows: Ints, times: Floats
) -> int:
    """Fill in each bracket's piece, SEB and index, and its start and end; return their number.

    Times are in seconds since the start of the SEB. SEBs whose marks do not pair up, and unclosed
    ones, have no rows. There is room for half as many rows as there are events, and the walk has
    checked all bytes.
    """
    known = 0
    table = np.empty((3, 64))
    for piece in range(len(pieces.starts)):
        at = pieces.starts[piece]
        for index in range(pieces.counts[piece]):
            events, _, following = seb_parts(buf, at, pieces.ends[piece], lay, fault)
            start = load_f8(buf, at + lay.seb_start_time, lay.swap)
            end = load_f8(buf, at + lay.seb_end_time, lay.swap)
            columns = load_i4(buf, events, lay.swap) + 3
            if columns > table.shape[1]:
                table = np.empty((3, columns))
            if columns > 4 and end >= start:
                reach = slack(start, end)
                many = find_brackets(buf, events, lay, end - start, reach, table)
                for k in range(many):
                    rows[known, 0] = piece
                    rows[known, 1] = pieces.firsts[piece] + index
                    rows[known, 2] = k
                    times[known, 0] = table[OLD, 2 * k + 1]
                    times[known, 1] = table[OLD, 2 * k + 2]
                    known += 1
            at = following
    return known
