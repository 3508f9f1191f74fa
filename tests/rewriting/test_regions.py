"""What becomes of a SEB's regions, worked out by hand (FORMAT §8)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logbuilder import (
    END,
    START,
    bracket,
    mark,
    message,
    seb,
    write_logs,
    write_params,
    write_timings,
)

import rewritelog
from rewritelog.commands.durations import RewriteOptions
from rewritelog.rewriting.report import RewriteReport
from rewritelog.rewriting.run import rewrite
from rewritelog.rewriting.statistics import BlockCount


class Case:
    """One SEB of PE 0 rewritten, with a model that gives event `k` the seconds of parameter 1."""

    def __init__(
        self, folder: Path, original: dict[str, Any], params: list[tuple[Any, ...]], **options: Any
    ) -> None:
        self.folder = folder
        write_logs(folder / "in", [[original]])
        if params:
            write_params(folder / "in", 0, *[(0, *line) for line in params])
        timings = write_timings(
            folder / "timings.txt", *[("k", float(p), float(p)) for p in (1, 2, 4, 8)]
        )
        settings = RewriteOptions(
            model="least-squares",
            model_options={"basis": "linear"},
            timings=(timings,),
            **({"dilation": 2.0} | options),
        )
        self.report: RewriteReport = rewrite(folder / "in", folder / "out", settings)
        logs = rewritelog.open_logs(folder / "out")
        (self.seb,) = logs.sebs()
        self.sent = logs.messages()["send_time"]
        self.received = logs.messages()["recv_time"]
        self.events = logs.log_events()["r_time"]

    def unchanged(self) -> bool:
        return (self.folder / "in/bgTrace0").read_bytes() == (
            self.folder / "out/bgTrace0"
        ).read_bytes()


def times(*values: float) -> Any:
    return pytest.approx(list(values), rel=1e-12)


def test_regions_before_inside_and_after_the_bracket(tmp_path: Path) -> None:
    original = seb(
        10, 20, events=bracket(2, 6), messages=[message(t) for t in (10, 11, 12, 14, 16, 18, 20)]
    )
    case = Case(tmp_path, original, [("k", 5)])
    # 2 s × 2, the model's 5 s, 4 s × 2
    assert case.seb["exec_time"] == pytest.approx(17)
    assert case.seb["end_time"] == pytest.approx(27)
    assert case.seb["start_time"] == case.seb["recv_time"] == 10
    assert list(case.sent) == times(10, 12, 14, 16.5, 19, 23, 27)
    assert list(case.events) == times(4, 9)
    assert case.report.count(BlockCount.BY_MODEL) == 1


def test_times_move_in_a_region_that_ends_where_it_did(tmp_path: Path) -> None:
    case = Case(tmp_path, seb(0, 10, events=bracket(2, 6), messages=[message(4)]), [("k", 2)])
    assert list(case.events) == times(4, 6)
    assert list(case.sent) == times(5)


def test_several_brackets_are_each_a_middle_region(tmp_path: Path) -> None:
    original = seb(
        0, 10, events=bracket(1, 2) + bracket(4, 8), messages=[message(t) for t in (1.5, 3, 6, 9)]
    )
    case = Case(tmp_path, original, [("k", 3), ("k", 1)])
    # 1×2 | 3 | 2×2 | 1 | 2×2
    assert case.seb["exec_time"] == pytest.approx(14)
    assert list(case.sent) == times(3.5, 7, 9.5, 12)
    assert list(case.events) == times(2, 5, 9, 10)


def test_one_of_several_brackets_may_be_unknown_to_the_model(tmp_path: Path) -> None:
    original = seb(0, 10, events=bracket(1, 2) + bracket(4, 8))
    case = Case(tmp_path, original, [("unknown", 3), ("k", 1)])
    assert case.seb["exec_time"] == pytest.approx(2 + 2 + 4 + 1 + 4)
    assert any("unknown" in warning and "dilated" in warning for warning in case.report.warnings)


def test_a_bracket_of_length_zero_gets_its_duration(tmp_path: Path) -> None:
    original = seb(0, 10, events=bracket(4, 4), messages=[message(t) for t in (3, 4, 5)])
    case = Case(tmp_path, original, [("k", 5)])
    assert case.seb["exec_time"] == pytest.approx(25)
    assert list(case.events) == times(8, 13)
    assert list(case.sent) == times(6, 8, 15)


def test_an_unmarked_seb_with_one_record_is_middle_from_end_to_end(tmp_path: Path) -> None:
    case = Case(tmp_path, seb(0, 10, messages=[message(5)]), [("k", 4)])
    assert case.seb["exec_time"] == pytest.approx(4)
    assert list(case.sent) == times(2)
    assert case.report.count(BlockCount.UNMARKED_WITH_RECORD) == 1
    assert any("no bracket in the log" in warning for warning in case.report.warnings)


def test_a_bracket_without_a_record_is_dilated(tmp_path: Path) -> None:
    case = Case(tmp_path, seb(0, 10, events=bracket(2, 6)), [])
    assert case.seb["exec_time"] == pytest.approx(20)
    assert list(case.events) == times(4, 12)
    assert any("without a param record" in warning for warning in case.report.warnings)


@pytest.mark.parametrize(
    ("events", "records"),
    [
        (bracket(2, 6), 2),
        (bracket(2, 3) + bracket(4, 5), 1),
        ([], 2),
        ([mark(START, 2)], 1),
        ([mark(END, 2)], 1),
        ([mark(END, 2), mark(START, 3)], 1),
        ([mark(START, 6), mark(END, 2)], 1),
        ([mark(START, 1), mark(START, 2), mark(END, 3)], 1),
        ([mark(START, 2), mark(END, 11)], 1),
        ([mark(START, -1), mark(END, 4)], 1),
        ([mark(START, float("nan")), mark(END, 4)], 1),
    ],
    ids=str,
)
def test_what_does_not_pair_up_is_dilated_as_a_whole(
    events: list[dict[str, Any]], records: int, tmp_path: Path
) -> None:
    case = Case(tmp_path, seb(0, 10, events=events, messages=[message(5)]), [("k", 4)] * records)
    assert case.seb["exec_time"] == pytest.approx(20)
    assert list(case.sent) == times(10)
    assert any("dilated as a whole" in w and "PE 0 SEB 0" in w for w in case.report.warnings)
    assert case.report.count(BlockCount.BY_MODEL) == 0
    (line,) = case.report.events
    assert (line.not_used, line.new_s) == (records, 0)
    row = next(row for row in case.report.text().splitlines() if row.startswith("  k "))
    assert row.split()[:3] == ["k", "0", "0"], "no call has a time"


def test_a_negative_prediction_becomes_zero(tmp_path: Path) -> None:
    original = seb(0, 10, events=bracket(2, 6), messages=[message(3), message(9)])
    case = Case(tmp_path, original, [("k", -7)])
    assert case.seb["exec_time"] == pytest.approx(12)
    assert list(case.sent) == times(4, 10)
    (line,) = case.report.events
    assert (line.negative, line.outside) == (1, 1)
    assert any("below zero" in warning for warning in case.report.warnings)


@pytest.mark.parametrize("end", [10, 5, -1], ids=["zero-length", "ends-early", "unclosed"])
def test_sebs_without_a_duration_stay_as_they_are(end: float, tmp_path: Path) -> None:
    original = seb(10, end, events=bracket(2, 6), messages=[message(12)])
    case = Case(tmp_path, original, [("k", 4)])
    assert case.unchanged()
    assert case.report.count(BlockCount.ZERO_LENGTH) + case.report.count(BlockCount.UNCLOSED) == 1


def test_records_of_sebs_of_length_0_are_said_to_be_without_effect(tmp_path: Path) -> None:
    """All brackets of an emulation with +bgelapse were left out without a word."""
    log = write_logs(tmp_path / "in", [[seb(0, 0, events=bracket(0, 0)), seb(0, 3), seb(3, -1)]])
    write_params(log, 0, (0, "k", 4), (2, "k", 4))
    timings = write_timings(tmp_path / "timings.txt", ("k", 4.0, 4.0))
    unused = "not used: 1 param record of SEBs of length 0, which stay so: "
    report = rewritelog.rewrite(log, timings=timings, dilation=1, dry_run=True)
    (warning,) = [text for text in report.warnings if text.startswith("not used")]
    assert warning.startswith(unused)
    assert warning.endswith(" (PE 0 SEB 0)")
    replay = rewritelog.replay(log, timings=timings)
    assert sum(text.startswith(unused) for text in replay.warnings) == 1
    assert "no bracket has a param record" not in str(replay.warnings)


def test_sebs_that_take_no_time_are_not_said_to_get_durations_from_a_model(tmp_path: Path) -> None:
    log = write_logs(tmp_path / "in", [[seb(0, 0)]])
    (warning,) = rewritelog.rewrite(log, dilation=2, dry_run=True).warnings
    assert warning == "all SEBs take no time, and a rewrite leaves them so"


def test_a_seb_whose_regions_keep_their_length_is_not_touched(tmp_path: Path) -> None:
    # 0.1 + 0.2 and the like: any arithmetic would move a last bit
    original = seb(0.1, 0.7, events=bracket(0.1, 0.3), messages=[message(0.3), message(0.61)])
    case = Case(tmp_path, original, [("unknown", 1)], dilation=1.0)
    assert case.unchanged()
    assert case.report.count(BlockCount.UNCHANGED) == 1


def test_a_region_that_keeps_its_place_keeps_its_times_to_the_bit(tmp_path: Path) -> None:
    original = seb(0.1, 0.7, events=bracket(0.3, 0.4), messages=[message(0.3), message(0.61)])
    case = Case(tmp_path, original, [("k", 2)], dilation=1.0)
    assert case.sent[0] == 0.3
    assert case.sent[1] == pytest.approx(0.61 - 0.1 + 2)


def test_recv_shift_keeps_the_time_under_way(tmp_path: Path) -> None:
    original = seb(0, 10, messages=[message(5, 5), message(5, 6), message(9, 30)])
    case = Case(tmp_path, original, [])
    assert list(case.sent) == times(10, 10, 18)
    assert list(case.received) == times(10, 11, 39)


def test_recv_keep_raises_only_what_would_come_before_it_was_sent(tmp_path: Path) -> None:
    original = seb(0, 10, messages=[message(5, 5), message(5, 12), message(9, 30)])
    case = Case(tmp_path, original, [], recv="keep")
    assert list(case.received) == times(10, 12, 30)


def test_recv_keep_leaves_sebs_alone_that_are_not_rewritten(tmp_path: Path) -> None:
    case = Case(tmp_path, seb(0, 10, messages=[message(5, 1)]), [], recv="keep", dilation=1.0)
    assert case.unchanged()


def test_what_lies_outside_its_seb_keeps_its_distance_to_the_nearer_end(tmp_path: Path) -> None:
    outside = [{"type": 1, "r_time": t, "data": 7} for t in (-1, 12)]
    original = seb(10, 20, events=outside, messages=[message(9), message(23)])
    case = Case(tmp_path, original, [])
    assert list(case.sent) == times(9, 33)
    assert list(case.events) == times(-1, 22)


def test_dilation_for_names_wins_by_the_last_match_and_never_over_the_model(tmp_path: Path) -> None:
    timeline = [
        seb(0, 1, name=b"AMPI_Send"),
        seb(0, 1, name=b"AMPI_[x]"),
        seb(0, 1, name=b"msgep", events=bracket(0.25, 0.75)),
        seb(0, 1, name=b"exactly-twenty-bytes"),
        seb(0, 1, name=b"not \xff UTF-8"),
    ]
    write_logs(tmp_path / "in", [timeline])
    write_params(tmp_path / "in", 0, (2, "k", 4))
    timings = write_timings(tmp_path / "t", ("k", 1.0, 1.0), ("k", 2.0, 2.0), ("k", 4.0, 4.0))
    rules = (
        ("AMPI_*", 3.0),
        ("*twenty*", 7.0),
        ("AMPI_[x]", 4.0),
        ("msgep", 6.0),
        (r"*\xff*", 9.0),
    )
    rewrite(
        tmp_path / "in",
        tmp_path / "out",
        RewriteOptions(
            model="least-squares",
            model_options={"basis": "linear"},
            timings=(timings,),
            dilation_for=rules,
        ),
    )
    durations = rewritelog.open_logs(tmp_path / "out").sebs()["exec_time"]
    assert list(durations) == times(3, 4, 0.5 * 6 + 4, 7, 9)


def test_a_pattern_before_one_that_matches_the_same_names_is_warned_of(tmp_path: Path) -> None:
    """It had no effect, and nothing said so."""
    write_logs(tmp_path / "in", [[seb(0, 1, name=b"AMPI_Send"), seb(0, 1, name=b"AMPI_Recv")]])
    rules = {"AMPI_Send": 2.0, "AMPI_*": 3.0, "*_Recv": 4.0}
    (warning,) = rewritelog.rewrite(tmp_path / "in", None, dilation_for=rules).to_json()["warnings"]
    assert "'AMPI_Send' was not used" in warning
    assert "or later patterns match, too; " in warning
    twice = RewriteOptions(dilation_for=(("AMPI_*", 2.0), ("AMPI_*", 3.0)))
    (warning,) = rewrite(tmp_path / "in", None, twice).to_json()["warnings"]
    assert "'AMPI_*' was not used" in warning


@pytest.mark.slow
def test_more_names_than_the_first_table_holds(tmp_path: Path) -> None:
    timeline = [seb(0, 1, name=f"name-{k}".encode()) for k in range(1500)]
    write_logs(tmp_path / "in", [timeline])
    options = RewriteOptions(dilation_for=(("name-*", 2.0), ("name-1234", 5.0)))
    rewrite(tmp_path / "in", tmp_path / "out", options)
    durations = rewritelog.open_logs(tmp_path / "out").sebs()["exec_time"]
    assert durations[1234] == 5
    assert np.sum(durations) == 2 * 1499 + 5


def test_marks_of_a_rewritten_log_bracket_the_same_regions_again(tmp_path: Path) -> None:
    original = seb(1234.1, 1234.7, events=bracket(0.1, 1234.7 - 1234.1))
    first = Case(tmp_path / "a", original, [("k", 0.3)])
    assert first.report.count(BlockCount.BRACKETS) == 1
    assert first.report.count(BlockCount.MARKS_IRREGULAR) == 0
    again = rewrite(tmp_path / "a/out", None)
    assert again.count(BlockCount.BRACKETS) == 1
    assert again.count(BlockCount.MARKS_IRREGULAR) == 0


def test_a_seb_with_more_brackets_than_the_first_table_of_regions(tmp_path: Path) -> None:
    events = [event for k in range(500) for event in bracket(k, k + 0.5)]
    case = Case(tmp_path, seb(0, 500, events=events), [("k", 1)] * 500)
    assert case.seb["exec_time"] == pytest.approx(500 * (1 + 0.5 * 2))
