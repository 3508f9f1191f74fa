"""The brackets of a block's SEBs, as every command that needs them gets them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logbuilder import END, START, bracket, mark, seb, write_logs
from oracle import ORDERS

from rewritelog import open_logs
from rewritelog.formats.bgtrace.blocks import plan_blocks
from rewritelog.formats.bgtrace.declaration import ByteOrder
from rewritelog.formats.bgtrace.records import IRREGULAR, Brackets, records_of

PRINTED = {"type": 2, "r_time": 0.1, "data": b"no mark\n\0"}
POINTER = {"type": 1, "r_time": 0.2, "data": 3}


def brackets_in(folder: Path, *sebs: dict[str, Any], order: ByteOrder = "little") -> Brackets:
    """The brackets of a timeline."""
    logs = open_logs(write_logs(folder, [list(sebs)], order=order))
    (loaded,) = logs.load(plan_blocks(logs.files[0]))
    return records_of(loaded).brackets


@pytest.mark.parametrize("order", ORDERS)
def test_marks_are_paired_in_each_seb(tmp_path: Path, order: ByteOrder) -> None:
    brackets = brackets_in(
        tmp_path,
        seb(1.0, 2.0, events=[PRINTED, *bracket(0.25, 0.5), POINTER, *bracket(0.5, 1.0)]),
        seb(2.0, 3.0, events=[POINTER]),
        seb(3.0, 5.0, events=bracket(0.0, 2.0)),
        order=order,
    )
    assert brackets.counts.tolist() == [2, 0, 1]
    assert brackets.seb.tolist() == [0, 0, 2]
    assert brackets.number.tolist() == [0, 1, 0]
    assert brackets.starts.tolist() == [0.25, 0.5, 0.0]
    assert brackets.ends.tolist() == [0.5, 1.0, 2.0]


IRREGULAR_MARKS = {
    "an end without a start": [mark(END, 0.5)],
    "a start without an end": [mark(START, 0.5)],
    "two starts": [mark(START, 0.2), mark(START, 0.3), mark(END, 0.4)],
    "reversed": bracket(0.5, 0.25),
    "before the SEB": bracket(-0.25, 0.5),
    "behind the SEB": bracket(0.5, 1.25),
    "no number": bracket(0.5, np.nan),
    "second before the first": [*bracket(0.5, 0.75), *bracket(0.25, 1.0)],
}


@pytest.mark.parametrize("marks", IRREGULAR_MARKS.values(), ids=IRREGULAR_MARKS)
def test_marks_that_do_not_pair_up_are_no_brackets(
    tmp_path: Path, marks: list[dict[str, Any]]
) -> None:
    brackets = brackets_in(
        tmp_path, seb(1.0, 2.0, events=marks), seb(2.0, 3.0, events=bracket(0.25, 0.5))
    )
    assert brackets.counts.tolist() == [IRREGULAR, 1]
    assert brackets.starts.tolist() == [0.25]


def test_a_mark_behind_the_end_by_rounding_is_at_the_end(tmp_path: Path) -> None:
    start, end = 1e6, 1e6 + 0.1
    brackets = brackets_in(tmp_path, seb(start, end, events=bracket(0.05, 0.1)))
    assert end - start < 0.1
    assert brackets.ends.tolist() == [end - start]


@pytest.mark.parametrize(("start", "end"), [(0.0, 1.0), (1e6, 1e6 + 1), (-1e6 - 1, -1e6)])
def test_times_may_be_rounded_four_times(start: float, end: float, tmp_path: Path) -> None:
    rounding = 4 * 2.0**-52 * max(abs(start), abs(end))
    sebs = [seb(start, end, events=bracket(0.5, 1 + share * rounding)) for share in (1, 1.5)]
    brackets = brackets_in(tmp_path, *sebs)
    assert brackets.counts.tolist() == [1, IRREGULAR]
    assert brackets.ends.tolist() == [1.0]


def test_in_an_unclosed_seb_only_the_order_of_marks_counts(tmp_path: Path) -> None:
    brackets = brackets_in(
        tmp_path,
        seb(1.0, -1.0, events=bracket(0.5, 1e9)),
        seb(2.0, -1.0, events=bracket(0.5, 0.25)),
        seb(2.0, 2.0, events=bracket(0.0, 0.25)),
    )
    assert brackets.counts.tolist() == [1, IRREGULAR, IRREGULAR]
    assert brackets.ends.tolist() == [1e9]


def test_a_block_without_sebs_has_no_brackets(tmp_path: Path) -> None:
    assert len(brackets_in(tmp_path)) == 0
