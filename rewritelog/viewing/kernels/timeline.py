"""Turns the SEBs of a block into a figure's cells and bars, in one pass.

A figure has rows (a PE, or a group of PEs), columns of equal length in time, and layers (one per
colour, and one for brackets). A cell holds the PE time of each layer in units of a column's length:
a PE that is busy throughout adds 1, and a SEB shorter than a column adds its fraction of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rewritelog.arrays import Bytes, Floats, Ints
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.brackets import OLD, find_brackets, slack
from rewritelog.kernels.names import NameTable, find_name
from rewritelog.kernels.raw import load_f8, load_i4
from rewritelog.kernels.walk import FAULT_PIECE, FAULT_SEB, Pieces, seb_parts
from tracebigsim.compiled import inner, kernel

SEBS, BRACKETS, UNCLOSED, NOT_FINITE = range(4)
COUNTS = 4
"""Number of counts: bars of SEBs, bars of brackets, and SEBs that cannot be drawn (two kinds)."""

ROW, LAYER, BAR_PE, BAR_SEB = range(4)


class Canvas(NamedTuple):
    """The cells of a figure and its time axis."""

    start_s: float
    columns_per_s: float
    cells: Floats
    """Shape (rows, columns, layers); the last layer is for brackets."""


class Bars(NamedTuple):
    """Individual SEBs and brackets, as far as there is room; both arrays have a row per bar."""

    what: Ints
    """Row, layer, PE and SEB, shape (capacity, 4)."""
    bounds: Floats
    """Start and end in seconds, shape (capacity, 2)."""
    known: Ints
    """Number of bars so far, including those without room; shape (1,)."""


class Rows(NamedTuple):
    """The rows and layers that the SEBs of a block are drawn in."""

    row: Ints
    """The figure's row of each piece, −1 for none."""
    pe: Ints
    """The PE of each piece."""
    names: NameTable
    """The names with a layer of their own."""
    layers: Ints
    """The layer of each of these names, and last that of all other names."""


@inner
def add_bar(
    canvas: Canvas, bars: Bars, row: int, layer: int, pe: int, seb: int, start: float, end: float
) -> None:
    """Add an interval of time, in seconds, to the cells that it covers and to the bars."""
    columns = canvas.cells.shape[1]
    left = (start - canvas.start_s) * canvas.columns_per_s
    right = (end - canvas.start_s) * canvas.columns_per_s
    if not (right >= 0.0 and left <= columns):
        return
    known = bars.known[0]
    if known < len(bars.what):
        bars.what[known, ROW] = row
        bars.what[known, LAYER] = layer
        bars.what[known, BAR_PE] = pe
        bars.what[known, BAR_SEB] = seb
        bars.bounds[known, 0] = start
        bars.bounds[known, 1] = end
    bars.known[0] = known + 1
    left, right = max(left, 0.0), min(right, float(columns))
    first, last = int(left), int(right)
    if first == last:
        if first < columns:
            canvas.cells[row, first, layer] += right - left
        return
    canvas.cells[row, first, layer] += first + 1 - left
    for column in range(first + 1, last):
        canvas.cells[row, column, layer] += 1.0
    if last < columns:
        canvas.cells[row, last, layer] += right - last


@inner
def add_brackets(
    canvas: Canvas, bars: Bars, row: int, pe: int, seb: int, start: float, table: Floats, many: int
) -> None:
    """Add the brackets of a SEB; `table` has their bounds in seconds since the SEB's start."""
    layer = canvas.cells.shape[2] - 1
    for k in range(many):
        begins, ends = table[OLD, 2 * k + 1], table[OLD, 2 * k + 2]
        add_bar(canvas, bars, row, layer, pe, seb, start + begins, start + ends)


@kernel(ns_per_byte=500)
def paint(
    buf: Bytes,
    pieces: Pieces,
    lay: KernelLayout,
    rows: Rows,
    canvas: Canvas,
    bars: Bars,
    counts: Ints,
    fault: Ints,
) -> None:
    """Add the SEBs of a block to a figure; `counts` has the shape (COUNTS,)."""
    table = np.empty((3, 64))
    for piece in range(len(pieces.starts)):
        row, pe = rows.row[piece], rows.pe[piece]
        if row < 0:
            continue
        at, end_at = pieces.starts[piece], pieces.ends[piece]
        fault[FAULT_PIECE] = piece
        for k in range(pieces.counts[piece]):
            events, _, following = seb_parts(buf, at, end_at, lay, fault)
            if following < 0:
                fault[FAULT_SEB] = k
                return
            start = load_f8(buf, at + lay.seb_start_time, lay.swap)
            end = load_f8(buf, at + lay.seb_end_time, lay.swap)
            if not (np.isfinite(start) and np.isfinite(end)):
                counts[NOT_FINITE] += 1
            elif end < start:
                counts[UNCLOSED] += 1
            else:
                name = find_name(buf, at + lay.seb_name, rows.names)
                layer, seb = rows.layers[name], pieces.firsts[piece] + k
                counts[SEBS] += 1
                add_bar(canvas, bars, row, layer, pe, seb, start, end)
                columns = load_i4(buf, events, lay.swap) + 3
                if columns > table.shape[1]:
                    table = np.empty((3, columns))
                many = find_brackets(buf, events, lay, end - start, slack(start, end), table)
                counts[BRACKETS] += max(many, 0)
                add_brackets(canvas, bars, row, pe, seb, start, table, many)
            at = following
