"""Real files: counts, and every value against a plain reading with `re` and `float`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tracebigsim.lines import LineTable, TimeUnit, scan

FIELD = re.compile(r"(\w+): ?\{ ([^}]*) \}")


def assert_as_plainly_read(table: LineTable, text: str) -> None:
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), start=1)
        if "TRACEBIGSIM:" in line
    ]
    assert table.fault_count == 0
    assert table.line.tolist() == [number for number, _ in lines]
    for row, (_, line) in enumerate(lines):
        fields = dict(FIELD.findall(line))
        params = table.params[table.param_start[row] : table.param_start[row + 1]]
        counters = table.counters[table.counter_start[row] : table.counter_start[row + 1]]
        assert table.events[table.event[row]] == fields["event"]
        assert params.tolist() == [float(number) for number in fields["params"].split()]
        assert counters.tolist() == [int(number) for number in fields.get("PAPI", "").split()]
        assert text.encode()[table.offset[row] :].startswith(line.encode())
        if "time" in fields:
            assert table.time[row] == float(fields["time"])
        if "seqno" in fields:
            assert table.seqno[row] == int(fields["seqno"])
            assert table.seb[row] == int(line.split()[0])


@pytest.mark.parametrize(("name", "records"), [("cells", 600), ("namd", 1000)])
def test_timing_lines(reference: Path, name: str, records: int) -> None:
    text = (reference / name / "timings.txt").read_text()
    table = scan(text.encode())
    assert len(table) == records
    assert set(table.time_unit) == {TimeUnit.SECONDS}
    assert (table.seb == -1).all()
    assert_as_plainly_read(table, text)


@pytest.mark.parametrize("folder", ["cells/emulation", "cells-2workers", "cells-projections"])
def test_param_files(reference: Path, folder: str) -> None:
    files = sorted((reference / folder).glob("param.*"))
    assert files
    for file in files:
        text = file.read_text()
        table = scan(text.encode())
        assert np.isnan(table.time).all()
        assert set(table.time_unit) <= {TimeUnit.NONE}
        assert_as_plainly_read(table, text)
