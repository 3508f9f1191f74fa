"""Where the report says that the time goes, worked out by hand and held against real logs."""

import json
from pathlib import Path
from typing import Any

import pytest
from logbuilder import START as STARTS
from logbuilder import bracket, mark, seb, write_logs, write_params, write_timings

import rewritelog
from rewritelog.commands.durations import RewriteOptions
from rewritelog.rewriting.report import RewriteReport
from rewritelog.rewriting.run import rewrite
from rewritelog.rewriting.statistics import DurationSum
from rewritelog.text import json_text


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """16 s in all: 5 s of `k`, of which 2 are not covered, 1 s of no event, 10 s of no bracket."""
    timelines = [
        [
            seb(0, 4, events=bracket(1, 3)),  # k(1): 1 s before, 2 inside, 1 after
            seb(4, 5),
            seb(5, 6),  # k(1) from end to end
            seb(6, 8, events=bracket(0, 2)),  # k with two parameters, not timed
            seb(8, 9, events=bracket(0, 1)),  # no record
        ],
        [
            seb(0, 5, events=[mark(STARTS, 1)]),  # irregular
            seb(5, 7),
        ],
    ]
    folder = write_logs(tmp_path / "in", timelines)
    write_params(folder, 0, (0, "k", 1), (2, "k", 1), (3, "k", 1, 1))
    return folder


def run(logs: Path, **options: Any) -> RewriteReport:
    timings = write_timings(logs.parent / "timings", *[("k", 3.0, 1.0)] * 3, ("k", 6.0, 2.0))
    return rewrite(logs, None, RewriteOptions(model="least-squares", timings=(timings,), **options))


def test_each_second_is_in_one_part_before_and_after(logs: Path) -> None:
    """Twice as fast but for `k`, whose brackets take 3 s where they are covered."""
    parts = run(logs, dilation=0.5).overheads
    assert (parts.events["k"].old_s, parts.events["k"].new_s) == pytest.approx((5, 7))
    assert (parts.other_brackets.old_s, parts.other_brackets.new_s) == pytest.approx((1, 0.5))
    assert (parts.around_brackets.old_s, parts.around_brackets.new_s) == pytest.approx((2, 1))
    without = parts.sebs_without_brackets
    assert (without.old_s, without.new_s) == pytest.approx((8, 4))
    assert (parts.by_dilation.old_s, parts.by_dilation.new_s) == pytest.approx((13, 6.5))
    assert without.old_share == pytest.approx(8 / 16)
    assert without.new_share == pytest.approx(4 / 12.5)
    assert parts.by_dilation.new_share == pytest.approx(6.5 / 12.5)


def test_the_report_shows_the_shares(logs: Path) -> None:
    report = run(logs, dilation=0.5)
    rows = {
        " ".join(line.split()[:-4]): line.split()[-4:]
        for line in report.details().splitlines()
        if line.endswith("%")
    }
    assert rows["of all: by dilation alone"] == ["81.2", "%", "52.0", "%"]
    assert rows["brackets, no record"] == ["6.2", "%", "4.0", "%"]
    assert rows["around brackets"] == ["12.5", "%", "8.0", "%"]
    assert rows["other SEBs"] == ["50.0", "%", "32.0", "%"]
    assert any(
        line.split()[:5] == ["k", "31.2", "%", "56.0", "%"]
        for line in report.details().splitlines()
    )
    overheads = report.to_json()["overheads"]
    assert overheads["events"]["k"]["old_share"] == pytest.approx(5 / 16)
    assert overheads["by_dilation"]["new_share"] == pytest.approx(0.52)
    assert report.to_json()["model"]["timing_lines"] == 4
    for side, mean_s, imbalance in (("old", 8, 1.125), ("new", 6.25, 1.44)):
        assert report.to_json()["busy_time"][side] == pytest.approx(
            {"largest_s": 9, "largest_pe": 0, "mean_s": mean_s, "imbalance": imbalance}
        )


def test_without_a_model_all_rests_on_the_dilation_factor(logs: Path) -> None:
    parts = rewrite(logs, None, RewriteOptions(model="constant", dilation=3)).overheads
    assert parts.by_dilation.old_share == parts.by_dilation.new_share == pytest.approx(1)
    assert parts.other_brackets.old_s == pytest.approx(5)
    assert parts.events == {}


def test_where_there_is_no_time_there_is_no_share(tmp_path: Path) -> None:
    write_logs(tmp_path / "in", [[seb(1, 1)]])
    report = rewrite(tmp_path / "in", None, RewriteOptions(model="constant"))
    assert report.to_json()["overheads"]["by_dilation"] == {
        "old_s": 0,
        "new_s": 0,
        "old_share": None,
        "new_share": None,
    }


def test_the_parts_of_real_logs_leave_nothing_out(log_set: Path) -> None:
    report = rewrite(log_set, None, RewriteOptions(model="constant", dilation=0.7))
    parts = report.overheads
    three = (parts.other_brackets, parts.around_brackets, parts.sebs_without_brackets)
    assert sum(part.old_s for part in three) == pytest.approx(
        report.statistics.seconds(DurationSum.OLD)
    )
    assert sum(part.new_s for part in three) == pytest.approx(
        report.statistics.seconds(DurationSum.NEW)
    )


def test_cells_with_its_timings(sample_logs: Path) -> None:
    timings = sample_logs / "cells/timings.txt"
    report = rewrite(
        sample_logs / "cells",
        None,
        RewriteOptions(model="least-squares", timings=(timings,), dilation=0.5),
    )
    parts = report.overheads
    covered = sum(event.old_share or 0 for event in parts.events.values())
    assert covered + (parts.by_dilation.old_share or 0) == pytest.approx(1)
    assert covered == pytest.approx(
        report.statistics.seconds(DurationSum.BRACKETED_OLD)
        / report.statistics.seconds(DurationSum.OLD)
    )
    assert parts.other_brackets.old_s == 0


def test_sums_over_events_may_be_too_large_for_a_float(tmp_path: Path) -> None:
    """The sums of the report raised a bare OverflowError."""
    events = [f"k{number}" for number in range(14)]
    line = [seb(0, 1.2e308, events=bracket(0.0, 1.1e308))]
    logs = write_logs(tmp_path / "in", [line] * len(events))
    for pe, event in enumerate(events):
        write_params(logs, pe, (0, event, 1.0))
    for timed in (2, len(events)):
        lines = [(event, n * 1e99, float(n)) for event in events[:timed] for n in (1, 2, 3)]
        timings = write_timings(tmp_path / "timings.txt", *lines)
        report = rewritelog.rewrite(logs, timings=timings, model="least-squares", dilation=0.5)
        assert " inf s " in report.text()
        assert json.loads(json_text(report.to_json()))["durations_s"]["old"] is None
