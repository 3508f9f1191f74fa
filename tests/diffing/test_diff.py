"""What `diff` says of two log sets: nothing of equal ones, and all that was changed by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from chosen import by_tier
from logbuilder import START, bracket, mark, message, seb, write_logs, write_params
from oracle import rich_timelines

import rewritelog
from rewritelog import open_logs
from rewritelog.commands.durations import RewriteOptions
from rewritelog.diffing.report import Comparison
from rewritelog.diffing.run import compare_logs
from rewritelog.errors import DamagedLogError
from rewritelog.formats.bgtrace.blocks import BLOCK_BYTES
from rewritelog.rewriting.run import rewrite
from rewritelog.running.engines import limited_to

HALF = RewriteOptions(dilation=0.5, jobs=1, no_flush=True)


def compared(a: Path, b: Path, *, block_bytes: int = BLOCK_BYTES, **options: Any) -> Comparison:
    return compare_logs(replace(open_logs(a), block_bytes=block_bytes), open_logs(b), **options)


def report_of(a: Path, b: Path, **options: Any) -> dict[str, Any]:
    """The JSON of a comparison, which has to be strict."""
    comparison: dict[str, Any] = compared(a, b, **options).to_json()
    json.dumps(comparison, allow_nan=False)
    return comparison


def changes(comparison: dict[str, Any]) -> dict[str, int]:
    return {change["field"]: change["changed"] for change in comparison["fields"]}


def test_a_log_set_is_the_same_as_itself(log_set: Path) -> None:
    comparison = compared(log_set, log_set)
    assert comparison.same
    assert comparison.verdict == "the same"
    assert comparison.fields == {}


def test_a_rewritten_log_set_differs_in_times_alone(log_set: Path, tmp_path: Path) -> None:
    report = rewrite(log_set, tmp_path / "out", HALF)
    comparison = report_of(log_set, tmp_path / "out")
    assert comparison["times_alone"]
    assert comparison["verdict"] == "different: only time fields"
    assert {change["kind"] for change in comparison["fields"]} == {"time"}
    changed = changes(comparison)
    assert set(changed) <= {
        "execTime",
        "endTime",
        "message sendTime",
        "message recvTime",
        "log event rTime",
    }
    assert changed["endTime"] == report.to_json()["counts"]["by_dilation"]


def test_sums_and_ratios_are_those_of_the_seb_columns(log_set: Path, tmp_path: Path) -> None:
    options = RewriteOptions(dilation=0.5, dilation_for=(("msgep", 3.0),), jobs=1, no_flush=True)
    rewrite(log_set, tmp_path / "out", options)
    comparison = report_of(log_set, tmp_path / "out")
    assert comparison["ratio_error"] < 0.0055  # half a bin of 1/64 octave
    rows = {row["name"]: row for row in comparison["durations_by_name"]}
    old, new = (open_logs(folder).sebs() for folder in (log_set, tmp_path / "out"))
    for name in np.unique(old["name"]):
        mine = old["name"] == name
        closed = mine & (old["end_time"] >= old["start_time"])
        before, after = ((s["end_time"] - s["start_time"])[closed] for s in (old, new))
        row = rows[str(name)]
        assert row["counts"] == [mine.sum()] * 2
        assert row["seconds"] == pytest.approx([before.sum(), after.sum()], rel=1e-12)
        ratios = after[before > 0] / before[before > 0]
        assert row["ratios"] == len(ratios)
        if len(ratios):
            assert (row["lowest"], row["highest"]) == (ratios.min(), ratios.max())
            median = np.quantile(ratios, 0.5, method="inverted_cdf")
            assert row["median"] == pytest.approx(median, rel=comparison["ratio_error"])


@pytest.mark.parametrize("version", range(7))
def test_byte_order_is_a_matter_of_representation(reference: Path, version: int) -> None:
    """Sets that the log library wrote on two machines."""
    little, big = (reference / oracle.WRITTEN_SETS[version, order] for order in oracle.ORDERS)
    comparison = report_of(little, big)
    assert not comparison["same"]
    assert comparison["verdict"] == "different: only the representation; the content is the same"
    assert {"name": "byte order", "a": "little", "b": "big"} in comparison["representation"]
    assert comparison["fields"] == []


def test_log_versions_differ_in_what_they_can_hold(reference: Path) -> None:
    """`cells/emulation` in the library's own older versions: what they lack has a default."""
    newest = reference / oracle.WRITTEN_SETS[6, "little"]
    for version in range(6):
        changed = changes(report_of(newest, reference / oracle.WRITTEN_SETS[version, "big"]))
        lost = {"charm_ep"} if version < 4 else set()
        assert set(changed) <= lost | {"objId", "message group"}, version
        if version >= 4:
            assert changed == {}


def test_an_mpi_size_without_an_operation_is_not_missed(tmp_path: Path) -> None:
    """Version 6 holds garbage there, and version 4 nothing: that is no difference."""
    write_logs(tmp_path / "a", [[seb(0, 1, mpi_op=0, mpi_size=77)]])
    write_logs(tmp_path / "b", [[seb(0, 1)]], log_version=4, order="big")
    assert report_of(tmp_path / "a", tmp_path / "b")["fields"] == []
    write_logs(tmp_path / "c", [[seb(0, 1, mpi_op=1, mpi_size=77)]])
    assert changes(report_of(tmp_path / "c", tmp_path / "b")) == {"mpiOp": 1, "mpiSize": 1}
    assert changes(report_of(tmp_path / "b", tmp_path / "c")) == {"mpiOp": 1, "mpiSize": 1}


EVENTS = [*bracket(0.2, 0.4), {"type": 1, "r_time": 0.5, "data": 7}]
BASE: dict[str, Any] = {
    "messages": [message(0.5, 0.75), message(0.5)],
    "events": EVENTS,
    "backward": [0, 1],
    "forward": [2],
    "mpi_op": 1,
    "mpi_size": 9,
}


def with_message(**fields: Any) -> dict[str, Any]:
    return {"messages": [message(0.5, 0.75), message(0.5) | fields]}


def with_event(index: int, **fields: Any) -> dict[str, Any]:
    events = [dict(event) for event in EVENTS]
    events[index] |= fields
    return {"events": events}


@pytest.mark.parametrize("version", [6, 4])
@pytest.mark.parametrize(
    ("change", "label", "old", "new"),
    [
        ({"ep": 5}, "ep", "1", "5"),
        ({"src_pe": 3}, "msgId source PE", "-1", "3"),
        ({"msg_id": 3}, "msgId number", "-1", "3"),
        ({"charm_ep": -300}, "charm_ep", "-1", "-300"),
        ({"recv_time": -1.0}, "recvTime", "0", "-1"),
        ({"eff_recv_time": -1.0}, "effRecvTime", "0", "-1"),
        ({"exec_time": float("nan")}, "execTime", "1", "nan"),
        ({"flag": -128}, "flag", "0", "-128"),
        ({"name": b"other"}, "name", "'msgep'", "'other'"),
        ({"obj_id": (-1, -1, 7, -1)}, "objId", "-1", "7"),
        ({"obj_id": (7, 8, 9, 10)}, "objId", "-1", "7"),
        ({"obj_id": (-1, -1, -1, 7)}, "objId", "-1", "7"),  # the last bytes of a SEB
        ({"obj_id": (-1, -1, -1, -1 - (1 << 24))}, "objId", "-1", "-16777217"),  # its last byte
        ({"messages": [message(0.5, 0.75)]}, "number of messages", "2", "1"),
        ({"backward": [0]}, "backward dependencies", "[0, 1]", "[0]"),
        ({"backward": [0, 9]}, "backward dependencies", "[0, 1]", "[0, 9]"),
        ({"forward": []}, "forward dependencies", "[2]", "[]"),
        (with_message(msg_id=4), "message msgID", "0", "4"),
        (with_message(dst_node=-102), "message dstNode", "-100", "-102"),
        (with_message(recv_time=0.7), "message recvTime", "0.5", "0.69999999999999996"),
        (with_message(tid=-2), "message tID", "0", "-2"),
        (with_message(size=-64), "message size", "64", "-64"),
        (with_message(group=3), "message group", "1", "3"),
        (with_message(group=65537), "message group", "1", "65537"),
        (with_message(group=1 + (1 << 24)), "message group", "1", "16777217"),
        (with_event(0, type=2), "log event type", "3", "2"),
        (with_event(2, r_time=-0.0), "log event rTime", "0.5", "-0"),
        (with_event(2, data=-7), "log event index", "7", "-7"),
        (
            with_event(1, data=b"e\x1b[2J\0"),
            "log event text",
            r"'endTraceBigSim %f\n'",
            r"'e\x1b[2J'",
        ),
    ],
)
def test_every_field_that_differs_is_named(
    version: int, change: dict[str, Any], label: str, old: str, new: str, tmp_path: Path
) -> None:
    plain = seb(0, 1, **BASE)
    write_logs(tmp_path / "a", [[plain], [plain, plain, plain]])
    write_logs(
        tmp_path / "b",
        [[plain], [plain, plain | change, plain]],
        log_version=version,
        order="little" if version == 6 else "big",
    )
    comparison = report_of(tmp_path / "a", tmp_path / "b")
    ignored = {} if version == 6 else {"mpiOp": 4, "mpiSize": 4}
    assert changes(comparison) == {label: 1} | ignored
    first = next(field for field in comparison["fields"] if field["field"] == label)["first"]
    assert (first["pe"], first["seb"], first["a"], first["b"]) == (1, 1, old, new)


def test_no_time_is_not_shown_as_a_time(tmp_path: Path) -> None:
    """A `recvTime` of −1 says that no message started the SEB; it was `-1.000 s`."""
    write_logs(tmp_path / "a", [[seb(0, 1, recv_time=-1.0)]])
    write_logs(tmp_path / "b", [[seb(0, 1, recv_time=0.25)]])
    assert "PE 0, SEB 0  -1 → 250.0 ms" in compared(tmp_path / "a", tmp_path / "b").text()
    assert "PE 0, SEB 0  250.0 ms → -1" in compared(tmp_path / "b", tmp_path / "a").text()


def test_bytes_after_a_names_nul_are_told_from_the_name(tmp_path: Path) -> None:
    folder = write_logs(tmp_path / "a", [[seb(0, 1)]])
    other = write_logs(tmp_path / "b", [[seb(0, 1)]])
    raw = (folder / "bgTrace0").read_bytes()
    (other / "bgTrace0").write_bytes(raw.replace(b"garbage", b"Garbage"))
    comparison = report_of(folder, other)
    assert changes(comparison) == {"bytes after the name's NUL": 1}
    assert comparison["fields"][0]["kind"] == "meaningless"
    assert not comparison["times_alone"]


@pytest.mark.parametrize(
    ("field", "old", "new"),
    [
        ("forward", list(range(1, 30)), [*range(1, 15), 99, *range(16, 30)]),
        ("events", [mark(b"x" * 90 + b"a" + b"x" * 90, 0.5)], [mark(b"x" * 181, 0.5)]),
        ("events", [mark(b"x\0", 0.5)], [mark(b"x\0\0", 0.5)]),
        ("name", b"msgep\0abcdefghijklmn", b"msgep\0abcdefgXijklmn"),
    ],
)
def test_values_that_differ_never_look_alike(
    field: str, old: Any, new: Any, tmp_path: Path
) -> None:
    a = write_logs(tmp_path / "a", [[seb(0, 1, **{field: old})]])
    b = write_logs(tmp_path / "b", [[seb(0, 1, **{field: new})]])
    report = rewritelog.diff(a, b)
    (change,) = report.to_json()["fields"]
    assert change["first"]["a"] != change["first"]["b"]
    line = [line for line in report.text().splitlines() if " → " in line][-1]
    of_a, _, of_b = line.split("  ")[-1].partition(" → ")
    assert of_a != of_b


def test_the_number_of_files_is_a_matter_of_representation(tmp_path: Path) -> None:
    timelines = [*rich_timelines(), *rich_timelines()]
    for name, files in (("one", 1), ("five", 5)):
        write_logs(tmp_path / name, timelines, files=files, wth=2)
    comparison = report_of(tmp_path / "one", tmp_path / "five")
    assert comparison["representation"] == [{"name": "timeline files", "a": "1", "b": "5"}]
    assert comparison["fields"] == []
    assert comparison["counts"]["SEBs"] == [20, 20]


def test_a_byte_in_the_header_of_one_timeline_file_is_a_difference(tmp_path: Path) -> None:
    """Sets whose bytes differ there were the same, with exit code 0."""
    for name in ("a", "b"):
        write_logs(tmp_path / name, [[seb(0, 1)]] * 2, files=2)
    path = tmp_path / "b/bgTrace1"
    data = bytearray(path.read_bytes())
    data[15] ^= 12
    path.write_bytes(data)
    comparison = report_of(tmp_path / "a", tmp_path / "b")
    (fact,) = comparison["representation"]
    assert fact["a"] == "that of the summary"
    assert fact["b"] == f"bgTrace1 {data[:16].hex(' ')}"
    assert not comparison["same"]


def test_pes_and_sebs_of_one_side_alone(tmp_path: Path) -> None:
    sender = seb(0, 1, messages=[message(0.5)])
    write_logs(tmp_path / "a", [[sender, sender], [sender]])
    write_logs(tmp_path / "b", [[sender], [sender] * 4, [seb(0, 2, name=b"new")]], order="big")
    for a, b, step in (("a", "b", 1), ("b", "a", -1)):
        for block_bytes in (1 << 20, 200):
            comparison = report_of(tmp_path / a, tmp_path / b, block_bytes=block_bytes)
            assert comparison["counts"]["SEBs"] == [3, 6][::step]
            assert comparison["counts"]["messages"] == [3, 5][::step]
            assert {change["name"] for change in comparison["machine"]} == {"total PEs", "x"}
            rows = {row["name"]: row for row in comparison["durations_by_name"]}
            assert rows["msgep"]["counts"] == [3, 5][::step]
            assert rows["msgep"]["ratios"] == 2
            assert rows["new"]["seconds"] == [0.0, 2.0][::step]


def test_sebs_of_different_names_have_no_ratio(tmp_path: Path) -> None:
    write_logs(tmp_path / "a", [[seb(0, 1), seb(0, 1, name=b"old")]])
    write_logs(tmp_path / "b", [[seb(0, 3), seb(0, 2, name=b"new")]])
    rows = {
        row["name"]: row for row in report_of(tmp_path / "a", tmp_path / "b")["durations_by_name"]
    }
    assert {name: row["ratios"] for name, row in rows.items()} == {"msgep": 1, "old": 0, "new": 0}
    assert rows["msgep"]["lowest"] == rows["msgep"]["highest"] == 3.0


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("block_bytes", by_tier([150, 700, 5000], quick={150}))
def test_cuts_and_threads_change_nothing(
    jobs: int, block_bytes: int, sample_logs: Path, tmp_path: Path
) -> None:
    """A version whose SEBs are smaller, so that the two sides are cut at other bytes."""
    rewrite(sample_logs / "cells", tmp_path / "half", HALF)
    rewritelog.convert(
        tmp_path / "half", tmp_path / "old", log_version=3, byte_order="big", lossy=True
    )
    with limited_to(1):
        uncut = report_of(sample_logs / "cells", tmp_path / "old")
    with limited_to(jobs):
        cut = report_of(sample_logs / "cells", tmp_path / "old", block_bytes=block_bytes)
    assert cut == uncut
    assert uncut["counts"]["SEBs"] == [676, 676]
    assert len(uncut["durations_by_event"]) == 2


def test_events_are_named_by_the_param_files(tmp_path: Path) -> None:
    both = [*bracket(0.1, 0.2), *bracket(0.5, 0.7)]
    timeline = [
        seb(0, 1, events=bracket(0.25, 0.75)),
        seb(1, 2, events=both),
        seb(2, 4),
        seb(4, 5, events=bracket(0, 0.5)),
    ]
    longer = [
        seb(0, 2, events=bracket(0.25, 1.75)),
        seb(1, 2, events=both),
        seb(2, 3),
        seb(4, 5, events=[mark(START, 0.1)]),
    ]
    write_logs(tmp_path / "a", [timeline])
    write_logs(tmp_path / "b", [longer])
    (tmp_path / "params").mkdir()
    write_params(tmp_path / "params", 0, (0, "outer", 1), (1, "first"), (1, "second"), (2, "all"))
    comparison = report_of(tmp_path / "a", tmp_path / "b", params=tmp_path / "params")
    rows = {
        row["name"]: (row["seconds"], row["lowest"]) for row in comparison["durations_by_event"]
    }
    assert rows == {
        "outer": ([0.5, 1.5], 3.0),
        "first": (pytest.approx([0.1, 0.1]), pytest.approx(1)),
        "second": (pytest.approx([0.2, 0.2]), pytest.approx(1)),
        "all": ([2.0, 1.0], 0.5),
    }
    assert comparison["sebs_with_other_brackets"] == 1
    assert comparison["irregular_brackets"] == [0, 1]
    without = compared(tmp_path / "a", tmp_path / "b")
    assert [(row["name"], row["counts"]) for row in without.to_json()["durations_by_event"]] == [
        ("", [3, 3])
    ]
    assert "  (without a record)  3  3 " in without.text()


def test_brackets_of_different_events_are_not_compared(tmp_path: Path) -> None:
    """Another program's were counted as those of A's events, by A's param files."""
    timeline = [seb(k, k + 1, events=bracket(0, 0.5)) for k in range(4)] + [seb(4, 5), seb(5, 6)]
    for name, events in (("a", "kkjkkk"), ("b", "kjjkjk")):
        write_logs(tmp_path / name, [timeline])
        write_params(tmp_path / name, 0, *((k, event) for k, event in enumerate(events)))
    write_logs(tmp_path / "c", [timeline])
    unclosed = timeline[0] | {"end_time": -1.0, "exec_time": 0.0}
    write_logs(tmp_path / "d", [[unclosed, *timeline[1:]]])
    for a, b, counts, other in (
        ("a", "d", {"j": [1, 1], "k": [4, 4]}, 0),
        ("d", "a", {"j": [1, 1], "k": [4, 4]}, 0),
        ("a", "b", {"j": [1, 1], "k": [3, 3]}, 2),
        ("a", "c", {"j": [1, 1], "k": [5, 5]}, 0),
        ("c", "b", {"j": [3, 3], "k": [3, 3]}, 0),
    ):
        comparison = report_of(tmp_path / a, tmp_path / b)
        assert {row["name"]: row["counts"] for row in comparison["durations_by_event"]} == counts
        assert comparison["sebs_with_other_brackets"] == other
    text = compare_logs(open_logs(tmp_path / "a"), open_logs(tmp_path / "b")).text()
    assert "2 SEBs with different brackets" in text


def test_events_named_by_the_other_side_are_said_to_be(tmp_path: Path) -> None:
    """Logs of another run, without param files, seemed to have the events of A."""
    for name in "abc":
        write_logs(tmp_path / name, [[seb(0, 1, events=bracket(0, 0.5))]])
    write_params(tmp_path / "a", 0, (0, "k"))
    for a, b, without, line in (
        ("a", "b", "B", "  B has no param files: those of A name its events"),
        ("b", "a", "A", "  A has no param files: those of B name its events"),
        ("a", "a", None, ""),
        ("b", "c", None, ""),
    ):
        comparison = compared(tmp_path / a, tmp_path / b)
        assert comparison.to_json()["without_param_files"] == without
        notes = [each for each in comparison.text().split("\n") if "no param files" in each]
        assert notes == [line] * bool(line)
    with_folder = compared(tmp_path / "a", tmp_path / "b", params=tmp_path / "a")
    assert "no param files" not in with_folder.text()


def test_a_seb_may_have_any_number_of_brackets(tmp_path: Path) -> None:
    """More than the kernel's tables have room for at first, on either side."""
    marks = [event for k in range(100) for event in bracket(k / 128, (k + 0.5) / 128)]
    few = bracket(0, 0.5)
    write_logs(tmp_path / "a", [[seb(0, 1, events=few), seb(1, 2, events=marks), seb(2, 3)]])
    twice = [event | {"r_time": 2 * event["r_time"]} for event in marks]
    write_logs(tmp_path / "b", [[seb(0, 1, events=few), seb(1, 3, events=twice), seb(3, 4)]])
    write_logs(tmp_path / "c", [[seb(0, 1, events=marks), seb(1, 2, events=marks), seb(2, 3)]])
    (row,) = report_of(tmp_path / "a", tmp_path / "b")["durations_by_event"]
    assert row["counts"] == [101, 101]
    assert row["seconds"] == [0.5 + 50 / 128, 0.5 + 100 / 128]
    assert (row["lowest"], row["highest"]) == (1.0, 2.0)
    for a, b in ("ac", "ca"):
        comparison = report_of(tmp_path / a, tmp_path / b)
        assert comparison["sebs_with_other_brackets"] == 1
        assert comparison["durations_by_event"][0]["counts"] == [100, 100]


def test_durations_that_become_nothing(tmp_path: Path) -> None:
    write_logs(tmp_path / "a", [[seb(0, 1), seb(1, 2), seb(2, 3)]])
    write_logs(tmp_path / "b", [[seb(0, 0), seb(1, 1), seb(2, 4)]])
    (row,) = report_of(tmp_path / "a", tmp_path / "b")["durations_by_name"]
    assert (row["lowest"], row["median"], row["highest"]) == (0.0, 0.0, 2.0)


def test_messages_that_moved_or_arrive_later(tmp_path: Path) -> None:
    old = [message(1.5, 2.0), message(1.75, 2.0), message(1.0, 1.0)]
    new = [message(1.25, 1.75), message(2.0, 2.25), message(1.0, 3.0)]
    for side, sent in (("a", old), ("b", new)):
        timelines = [[seb(1, 2, messages=part)] for part in (sent[2:], sent[1:2], sent[:1])]
        write_logs(tmp_path / side, timelines)
    assert report_of(tmp_path / "a", tmp_path / "b", block_bytes=100)["messages"] == {
        "compared": 3,
        "moved": 2,
        "furthest_earlier_s": -0.25,
        "furthest_later_s": 0.25,
        "other_transit_time": 1,
    }


def test_a_set_that_starts_later_has_moved_no_message(tmp_path: Path) -> None:
    write_logs(tmp_path / "a", [[seb(1, 2, messages=[message(1.5, 2.0)])]])
    write_logs(tmp_path / "b", [[seb(3, 4, messages=[message(3.5, 4.0)])]])
    comparison = report_of(tmp_path / "a", tmp_path / "b")
    assert comparison["times_alone"]
    assert comparison["messages"]["moved"] == 0
    assert comparison["messages"]["other_transit_time"] == 0


@pytest.mark.slow
def test_more_names_than_have_a_row(tmp_path: Path) -> None:
    """A log of nothing but names: the memory for its ratios is bounded, and the sums are whole."""
    timeline = [seb(k, k + 1, name=b"n%05d" % k) for k in range(3000)]
    write_logs(tmp_path / "a", [timeline])
    comparison = report_of(tmp_path / "a", tmp_path / "a")
    rows = comparison["durations_by_name"]
    assert len(rows) == 1025
    assert sum(row["seconds"][0] for row in rows) == 3000
    assert next(row["counts"] for row in rows if row["name"] is None) == [1976, 1976]
    assert "and 1,005 more" in compared(tmp_path / "a", tmp_path / "a").text()


def test_times_that_are_no_numbers_and_sums_that_overflow(tmp_path: Path) -> None:
    odd = [seb(0, 1), seb(0, 1e308), seb(0, 1e308), seb(0, 1), seb(0, 5e-324), seb(0, 0)]
    other = [
        seb(0, float("nan")),
        seb(0, 1e308),
        seb(0, 1e308),
        seb(float("-inf"), 1),
        seb(0, 1),
        seb(0, 1),
    ]
    for timeline in (odd, other):
        timeline[0]["messages"] = [message(float("nan")), message(float("inf"), float("-inf"))]
    write_logs(tmp_path / "a", [odd])
    write_logs(tmp_path / "b", [other])
    comparison = report_of(tmp_path / "a", tmp_path / "b")
    (row,) = comparison["durations_by_name"]
    assert row["seconds"] == [None, None]
    assert row["ratios"] == 3
    assert row["highest"] is None
    assert comparison["unclosed"] == [0, 2]
    assert report_of(tmp_path / "b", tmp_path / "b")["same"]
    assert "inf" in compared(tmp_path / "a", tmp_path / "b").text()


def test_names_do_not_reach_the_terminal_as_they_are(tmp_path: Path) -> None:
    write_logs(tmp_path / "a", [[seb(0, 1, name=b"\x1b[31mred")]])
    write_logs(tmp_path / "b", [[seb(0, 1, name=b"\x1b]0;title\x07")]])
    write_params(tmp_path / "a", 0, (0, "caf\u00e9\u202e", 1))
    text = compared(tmp_path / "a", tmp_path / "b").text()
    assert text.replace("\n", "").isprintable()
    assert r"\x1b[31mred" in text
    assert r"\u202e" in text


@pytest.mark.parametrize("block_bytes", by_tier([1 << 20, 150], [150]))
@pytest.mark.parametrize("side", by_tier([0, 1], [1]))
@pytest.mark.parametrize("step", by_tier([1, 13], [13]))
def test_damage_on_either_side_is_named(
    step: int, side: int, block_bytes: int, tmp_path: Path
) -> None:
    full = seb(0, 1, messages=[message(0.5)], events=bracket(0.2, 0.4))
    folders = [write_logs(tmp_path / name, [[full, full], [full, full]]) for name in "ab"]
    path = folders[side] / "bgTrace0"
    content = path.read_bytes()
    for length in range(20, len(content), step):
        path.write_bytes(content[:length])
        with pytest.raises(DamagedLogError) as error:
            compared(*folders, block_bytes=block_bytes)
        assert error.value.location.file == path


def test_bytes_after_the_last_seb_are_damage(tmp_path: Path) -> None:
    for count in (1, 0):
        folder = write_logs(tmp_path / f"{count}", [[seb(0, 1)] * count])
        path = folder / "bgTrace0"
        path.write_bytes(path.read_bytes() + bytes(500))
        for block_bytes in (1 << 20, 150):
            with pytest.raises(DamagedLogError, match="bytes left over"):
                compared(folder, folder, block_bytes=block_bytes)


def test_a_seb_larger_than_a_block_on_one_side(tmp_path: Path) -> None:
    large = seb(0, 1, messages=[message(0.5)] * 200)
    write_logs(tmp_path / "a", [[seb(0, 1), large, seb(1, 2)]])
    write_logs(tmp_path / "b", [[seb(0, 1), seb(0, 1), seb(1, 2)]], log_version=2, order="big")
    for block_bytes in (1 << 20, 200):
        changed = changes(report_of(tmp_path / "a", tmp_path / "b", block_bytes=block_bytes))
        assert changed == {"number of messages": 1}


NEW_FIELDS = """
from pathlib import Path
import construct as c
from rewritelog.formats.bgtrace import declaration

NEWEST = declaration.LOG_VERSIONS[-1]

def with_field(struct, name, documented):
    def longer(log_version, order):
        kind = declaration.PRIMITIVES[order].f8
        new = [declaration._field(name, kind, documented)] if log_version == NEWEST else []
        return c.Struct(*struct(log_version, order).subcons, *new)
    return longer

declaration.seb_head_struct = with_field(declaration.seb_head_struct, "power", "watts")
declaration.message_struct = with_field(declaration.message_struct, "idle_time", "idleTime")
declaration.MISSING |= {"power": 1.5, "idle_time": 2.0}

from logbuilder import message, seb, write_logs
from rewritelog import open_logs
from rewritelog.diffing.run import compare_logs

def sebs(power, idle_time):
    return [[seb(0, 1, power=power, messages=[message(0.5, idle_time=idle_time)])] * 2]

write_logs(Path("a"), sebs(1.5, 2.0), log_version=NEWEST)
write_logs(Path("b"), sebs(2.5, 2.0), log_version=NEWEST)
write_logs(Path("c"), sebs(1.5, 7.0), log_version=NEWEST, order="big")
write_logs(Path("old"), sebs(0, 0), log_version=4)
write_logs(Path("odd"), sebs(float("inf"), 2.0), log_version=NEWEST)
for b in ("a", "old", "b", "c"):
    changes = compare_logs(open_logs("a"), open_logs(b)).to_json()["fields"]
    print(b, *((one["field"], one["kind"], *one["first"].values()) for one in changes))

import rewritelog

rewritelog.synth("made", pes=2, sebs=9)
rewritelog.convert("made", "older", log_version=5)
rewritelog.convert("older", "newer", log_version=NEWEST)
rewritelog.rewrite("made", "half", dilation=0.5)
print(rewritelog.diff("made", "newer").same, rewritelog.diff("made", "half").times_alone)
print(rewritelog.check("half").sound, rewritelog.info("half").messages > 0)
first = next(rewritelog.dump("half", pe=0))
print(first["power"], {sent["idle_time_s"] for sent in first["messages"]})
print(rewritelog.check("odd").sound, next(rewritelog.dump("odd", pe=0))["power"])
print(set(rewritelog.open_logs("half").sebs(0)["power"].tolist()))
"""
"""Declares two new fields; compares logs that have them, and one that is too old for them; makes
logs that have them, which all other commands read."""


def test_a_new_field_is_compared_once_it_is_declared(tmp_path: Path) -> None:
    """It only has to be in the declaration; a log version without it has its default.

    A number is a time if its name says so: in watts it has no seconds, and no rewrite changes it.
    """
    folders = (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", ""))
    done = subprocess.run(
        [sys.executable, "-c", NEW_FIELDS],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, folders))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "a",
        "old",
        "b ('watts', 'content', 0, 0, None, '1.5', '2.5')",
        "c ('message idleTime', 'time', 0, 0, 0, '2', '7')",
        "True True",
        "True True",
        "1.5 {2.0}",
        "True inf",
        "{1.5}",
    ]
