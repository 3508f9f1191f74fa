"""Timing and param lines through the compiled scanner, in memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuzz.mutation import Bytes, Ints, flip_bytes, move_bytes, put_word
from tracebigsim import _scan
from tracebigsim._grammar import FINE, MAX_PARAMS
from tracebigsim._tokens import RECORD_LENGTH, Values
from tracebigsim.compiled import kernel

BROKEN = {
    1: "the scan did not come to the text's end",
    2: "the scan counts other lines than the text has",
    3: "records are not in the order of the text, or lie outside of it",
    4: "the parts of the parameters do not follow one another",
    5: "a parameter or a time is no finite number, or is -0",
    6: "a name lies outside of its line",
    7: "a fault lies outside of the text",
    8: "a number for `float` lies outside of the text",
    15: "the answer depends on what lies beside the text",
}

FAULTS = 20


class Outputs(NamedTuple):
    """All that a scan writes to, with room for every text of some size."""

    columns: _scan.Columns
    values: Values
    names: _scan.Names
    faults: Ints
    state: Ints
    record: Ints


def outputs_for(size_bytes: int) -> Outputs:
    """Return outputs that no text of that size can fill."""
    rows, ints = size_bytes + 16, np.int64
    columns = _scan.Columns(
        *(np.zeros(rows, kind) for kind in (np.int32, ints, ints, ints, ints, np.uint8)),
        np.zeros(rows + 1, ints),
        np.zeros(rows + 1, ints),
    )
    values = Values(np.zeros(rows), np.zeros(rows), np.zeros(rows, ints), np.zeros((rows, 3), ints))
    names = _scan.Names(
        np.zeros(rows, ints), np.zeros(rows, ints), np.full(_scan.NAME_SLOTS, -1, np.int32)
    )
    return Outputs(
        columns,
        values,
        names,
        np.zeros((FAULTS, 5), ints),
        np.zeros(_scan.STATE_LENGTH, ints),
        np.zeros(RECORD_LENGTH, ints),
    )


@kernel
def _scan_anew(text: Bytes, out: Outputs) -> int:
    """Scan a text from its beginning."""
    out.names.slots[:] = -1
    out.state[:] = 0
    out.state[_scan.LINE] = 1
    out.state[_scan.LAST_NAME] = -1
    return _scan.scan_lines(
        text, out.columns, out.values, out.names, out.faults, out.state, out.record
    )


@kernel
def _slow_places(out: Outputs, size: int) -> bool:
    """Mark the numbers that `float` reads by a value that is fine; False where one is nowhere."""
    for k in range(out.state[_scan.SLOW_USED]):
        place, start, end = out.values.slow[k]
        if not 0 <= start < end <= size:
            return False
        if place < 0:
            out.values.time[-1 - place] = 1.0
        elif place < out.state[_scan.PARAMS_USED]:
            out.values.params[place] = 1.0
        else:
            return False
    return True


@kernel
def _check_row(out: Outputs, row: int, size: int) -> int:
    columns, values = out.columns, out.values
    if not 0 <= columns.offset[row] < size or columns.seb[row] < -1 or columns.seqno[row] < -1:
        return 3
    if row > 0 and (
        columns.offset[row] <= columns.offset[row - 1] or columns.line[row] <= columns.line[row - 1]
    ):
        return 3
    many = columns.param_start[row + 1] - columns.param_start[row]
    if not 0 <= many <= MAX_PARAMS or columns.counter_start[row + 1] < columns.counter_start[row]:
        return 4
    time = values.time[row]
    if columns.unit[row] == 0 and not np.isnan(time):
        return 5
    if columns.unit[row] > 0 and (not np.isfinite(time) or np.signbit(time)):
        return 5
    entry = columns.name[row]
    if not 0 <= entry < out.state[_scan.NAMES_USED]:
        return 6
    if not 0 <= out.names.start[entry] < out.names.end[entry] <= size:
        return 6
    return 0


@kernel
def check_text(text: Bytes, out: Outputs) -> int:
    """Scan a text and return the number of what does not hold, 0 where all does."""
    size = len(text)
    if _scan_anew(text, out) != FINE or out.state[_scan.POSITION] < size:
        return 1
    lines = 1
    for k in range(size):
        lines += text[k] == 10
    if size > 0 and text[size - 1] != 10:
        lines += 1
    if out.state[_scan.LINE] != lines:
        return 2
    if not _slow_places(out, size):
        return 8
    rows = out.state[_scan.ROWS]
    if rows > 0 and out.columns.param_start[rows] != out.state[_scan.PARAMS_USED]:
        return 4
    for row in range(rows):
        broken = _check_row(out, row, size)
        if broken != 0:
            return broken
    for k in range(out.state[_scan.PARAMS_USED]):
        param = out.values.params[k]
        if not np.isfinite(param) or (param == 0.0 and np.signbit(param)):
            return 5
    for k in range(min(FAULTS, out.state[_scan.FAULT_COUNT])):
        if not 0 <= out.faults[k, 1] <= out.faults[k, 4] <= size:
            return 7
        if not 0 <= out.faults[k, 3] <= size:
            return 7
    return 0


@kernel
def _same(first: Outputs, second: Outputs) -> bool:
    rows, params = first.state[_scan.ROWS], first.state[_scan.PARAMS_USED]
    return (
        np.array_equal(first.state, second.state)
        and np.array_equal(first.columns.name[:rows], second.columns.name[:rows])
        and np.array_equal(first.columns.seb[:rows], second.columns.seb[:rows])
        and np.array_equal(first.columns.unit[:rows], second.columns.unit[:rows])
        and np.array_equal(first.values.params[:params], second.values.params[:params])
        and np.array_equal(first.faults, second.faults)
    )


@kernel
def _mutant(scratch: Bytes, seed: Bytes, rng: np.random.Generator) -> int:
    size = len(seed)
    scratch[:size] = seed
    for _ in range(rng.integers(1, 6)):
        kind = rng.integers(0, 8)
        if kind < 4:
            size = put_word(scratch, size, rng)
        elif kind < 6:
            flip_bytes(scratch, size, rng)
        else:
            size = move_bytes(scratch, size, rng)
    return size


@kernel
def run_mutants(
    low: Bytes,
    high: Bytes,
    scratch: Bytes,
    seed: Bytes,
    first: Outputs,
    second: Outputs,
    rng: np.random.Generator,
    runs: int,
) -> tuple[int, int, int]:
    """Check `runs` mutants; return what broke, how many were done, and how many held a record.

    The mutant that broke something is in `scratch`.
    """
    fine = 0
    for done in range(runs):
        size = _mutant(scratch, seed, rng)
        right = high[len(high) - size :]
        low[:size] = scratch[:size]
        right[:] = scratch[:size]
        first.faults[:] = 0
        second.faults[:] = 0
        broken = check_text(low[:size], first)
        if broken == 0:
            broken = check_text(right, second)
        if broken == 0 and not _same(first, second):
            broken = 15
        if broken != 0:
            return broken, done, size
        fine += first.state[_scan.ROWS] > 0
    return 0, runs, fine
