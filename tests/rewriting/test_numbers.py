"""What a rewrite's numbers promise: times stay in their order and place, and sums are right.

`REWRITELOG_RANDOM_SEBS` sets how many random SEBs are tried; `python -m benchmarks.faults` tries
ten million, and sums a hundred million.
"""

import json
import math
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blocks import in_blocks
from logbuilder import bracket, seb, write_logs, write_params, write_timings
from many_sebs import write_many
from random_sebs import BATCH, Batch, predict_detailed, random_batch, sebs_of

from rewritelog.arrays import ExactSum
from rewritelog.commands.durations import RewriteOptions
from rewritelog.formats.bgtrace.declaration import layout
from rewritelog.rewriting.report import RewriteReport
from rewritelog.rewriting.run import rewrite
from rewritelog.rewriting.statistics import DurationSum

RANDOM_SEBS = int(os.environ.get("REWRITELOG_RANDOM_SEBS", "100_000"))


@pytest.mark.slow
@pytest.mark.parametrize("keep_recv", [False, True])
def test_times_keep_their_place_and_order_whatever_is_rounded(keep_recv: bool) -> None:
    draw = np.random.default_rng(1 + keep_recv)
    broken: Counter[str] = Counter()
    for _ in range(math.ceil(RANDOM_SEBS / 2 / BATCH)):
        before = random_batch(draw)
        broken.update(predict_detailed(before, before.rewritten(keep_recv=keep_recv)))
    assert set(broken.values()) == {0}, broken


def test_a_region_that_vanishes_puts_nothing_before_what_came_before_it() -> None:
    """0.1 + (0.407 - 0.1) is less than 0.407: the two sends changed places by an ulp."""
    start, end = np.array([0.1]), np.array([1.1])
    sent = np.array([[0.2, 0.407, 0.45, 0.5, 1.0]])
    marks = np.array([[0.407 - 0.1, 0.407]])
    sebs = sebs_of(layout(6, "little"), start, end, marks, sent)
    vanishing = Batch(layout(6, "little"), sebs, np.zeros((1, 1)), 1.0)
    moved = vanishing.rewritten(keep_recv=False).sent[0]
    assert (np.diff(moved) >= 0).all()
    assert moved[0] == 0.2


def same_part(report: RewriteReport) -> bytes:
    """The report without how it was run, in bytes."""
    document = report.to_json()
    assert set(document.pop("run")) == {"engine", "jobs", "flush", "workers", "seconds", "bytes"}
    return json.dumps(document).encode()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_sums_are_right_to_the_last_bit_for_any_threads_and_blocks(tmp_path: Path) -> None:
    synthetic = write_many(tmp_path / "in", 1, files=3, workers=4, sebs=3000)
    reports = set()
    for jobs, block_bytes in ((1, 1 << 24), (2, 1 << 24), (4, 1 << 20), (2, 100_000), (3, 7000)):
        options = RewriteOptions(dilation=0.7, jobs=jobs)
        report = rewrite(in_blocks(synthetic.folder, block_bytes), None, options)
        assert report.statistics.seconds(DurationSum.OLD) == synthetic.sum_s()
        assert report.statistics.seconds(DurationSum.NEW) == synthetic.sum_s(0.7)
        reports.add(same_part(report))
    assert len(reports) == 1


@pytest.fixture
def bracketed(tmp_path: Path) -> Path:
    """Eight timelines whose brackets have two events, and lengths of many sizes."""
    draw = np.random.default_rng(5)
    timelines = []
    for _ in range(8):
        lengths = 10.0 ** draw.uniform(-9, 3, 60)
        timelines.append(
            [seb(k, k + t, events=bracket(t / 3, t / 2)) for k, t in enumerate(lengths)]
        )
    folder = write_logs(tmp_path / "in", timelines, files=2)
    for pe in range(8):
        write_params(folder, pe, *[(k, f"event {k % 2}", k) for k in range(0, 60, 3)])
    write_timings(
        tmp_path / "timings", *[(f"event {k}", 0.1 + n, float(n)) for k in (0, 1) for n in (0, 9)]
    )
    return tmp_path


@pytest.mark.slow
def test_runs_give_the_same_logs_and_report_to_the_byte(bracketed: Path) -> None:
    reports = set()
    logs: dict[str, bytes] = {}
    for jobs in (1, 2, 4):
        for block_bytes in (16 << 20, 20_000, 1000):
            options = RewriteOptions(
                model="least-squares",
                timings=(bracketed / "timings",),
                dilation=1.7,
                force=True,
                jobs=jobs,
            )
            opened = in_blocks(bracketed / "in", block_bytes)
            reports.add(same_part(rewrite(opened, bracketed / "out", options)))
            logs = logs or contents(bracketed / "out")
            assert contents(bracketed / "out") == logs
    assert len(reports) == 1


def test_files_that_take_turns_give_the_report_of_one_after_the_other(tmp_path: Path) -> None:
    """Ten files of four timelines of uneven lengths, each with one SEB whose marks are wrong."""
    plain, wrong = seb(0, 1), seb(0, 1, events=bracket(0.2, 0.4)[::-1])
    timelines = [[wrong] + [plain] * (pe * 7 % 11) for pe in range(40)]
    write_logs(tmp_path / "in", timelines, files=10)
    reports, logs = set(), []
    for jobs, block_bytes in ((1, 16 << 20), (2, 16 << 20), (3, 1500), (1, 300)):
        options = RewriteOptions(dilation=3, jobs=jobs, force=True)
        report = rewrite(in_blocks(tmp_path / "in", block_bytes), tmp_path / "out", options)
        (warning,) = report.to_json()["warnings"]
        assert warning.startswith("40 SEBs with marks that are unmatched, reversed or outside")
        assert warning.endswith("(PE 0 SEB 0, PE 10 SEB 0, PE 20 SEB 0, PE 30 SEB 0, PE 1 SEB 0)")
        reports.add(same_part(report))
        logs.append(contents(tmp_path / "out"))
    assert len(reports) == 1
    assert all(content == logs[0] for content in logs)


def test_the_sums_of_an_event_are_those_of_its_brackets(bracketed: Path) -> None:
    options = RewriteOptions(model="least-squares", timings=(bracketed / "timings",))
    report = rewrite(in_blocks(bracketed / "in", 1000), None, options)
    lengths = 10.0 ** np.random.default_rng(5).uniform(-9, 3, (8, 60))
    old = [[t / 2 - t / 3 for t in row[number::6]] for row in lengths for number in (0, 3)]
    for number, line in enumerate(report.events):
        expected = math.fsum(t for row in old[number::2] for t in row)
        assert line.old_s == pytest.approx(expected, rel=1e-12)
        assert line.records == 80


@pytest.mark.parametrize("lasting", [1e308, 1.7e308])
def test_a_sum_too_large_for_a_number_is_null(lasting: float, tmp_path: Path) -> None:
    write_logs(tmp_path / "in", [[seb(0, lasting)] * 2, [seb(0, lasting)]])
    report: Any = rewrite(tmp_path / "in", None, RewriteOptions(dilation=0.5)).to_json()
    assert report["durations_s"]["old"] is None
    json.dumps(report, allow_nan=False)


def test_an_exact_sum_loses_nothing() -> None:
    draw = np.random.default_rng(3)
    values = (draw.random(1000) * 10.0 ** draw.integers(-300, 300, 1000)).tolist()
    total = ExactSum().plus(values)
    for _ in range(10):
        draw.shuffle(values)
        parts = ExactSum()
        for k in range(0, 1000, 7):
            parts = parts.plus(ExactSum().plus(values[k : k + 7]).parts)
        assert parts.parts == total.parts
        assert float(parts) == math.fsum(values)
