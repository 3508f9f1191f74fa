"""The trace of Chrome's viewer, by the rules of its format that Perfetto insists on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logbuilder import bracket, message, seb, write_logs

import rewritelog
from rewritelog import open_logs
from rewritelog.text import count_text


def exported(logs: Path, out: Path, **options: Any) -> list[dict[str, Any]]:
    rewritelog.export(logs, out, "chrome", **options)

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is no JSON")

    trace = json.loads((out / "trace.json").read_text(), parse_constant=refuse)
    return list(trace["traceEvents"])


def phase(events: list[dict[str, Any]], ph: str, cat: str | None = None) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == ph and cat in (None, event.get("cat"))]


FIELDS: dict[str, dict[str, type]] = {
    "X": {"name": str, "cat": str, "dur": float, "args": dict},
    "i": {"name": str, "cat": str, "s": str},
    "s": {"name": str, "cat": str, "id": str, "args": dict},
    "f": {"name": str, "cat": str, "id": str, "bp": str},
    "M": {"name": str, "args": dict},
}
"""What "Trace Event Format" (Google, 2016) asks of the events of each phase."""


def test_each_event_has_what_the_format_asks_for(log_set: Path, tmp_path: Path) -> None:
    for event in exported(log_set, tmp_path / "out"):
        fields = FIELDS[event["ph"]]
        assert {name: type(event[name]) for name in fields} == fields
        assert (type(event["pid"]), type(event["tid"])) == (int, int)
        assert event["ph"] == "M" or type(event["ts"]) is float
        assert event.get("dur", 0) >= 0
        assert event.get("s", "t") == "t"
        assert event["ph"] != "M" or event["name"] in ("process_name", "thread_name")
        assert event["ph"] != "M" or type(event["args"]["name"]) is str


def test_slices_are_the_sebs(log_set: Path, tmp_path: Path) -> None:
    events = exported(log_set, tmp_path / "out")
    sebs = open_logs(log_set).sebs()
    slices = phase(events, "X", "seb")
    assert [(event["tid"], event["args"]["seb"]) for event in slices] == [
        (pe, number) for pe, number in zip(sebs["pe"].tolist(), sebs["seb"].tolist(), strict=True)
    ]
    starts = np.array([event["ts"] for event in slices])
    half_a_nanosecond = 0.5001e-3
    np.testing.assert_allclose(starts, sebs["start_time"] * 1e6, rtol=0, atol=half_a_nanosecond)
    closed = sebs["end_time"] >= sebs["start_time"]
    ends = starts + [event["dur"] for event in slices]
    lasts_until = (sebs["start_time"] + sebs["exec_time"])[closed] * 1e6
    np.testing.assert_allclose(ends[closed], lasts_until, rtol=0, atol=half_a_nanosecond)
    durations = np.array([event["dur"] for event in slices])
    assert (durations >= 0).all()


def test_flows_bind_to_the_slices_of_sender_and_receiver(log_set: Path, tmp_path: Path) -> None:
    events = exported(log_set, tmp_path / "out")
    starts = {event["id"]: event for event in phase(events, "s")}
    assert len(starts) == len(phase(events, "s"))
    slices = {(event["tid"], event["args"]["seb"]): event for event in phase(events, "X", "seb")}
    at = {(event["tid"], event["ts"], event["id"]) for event in phase(events, "f")}
    logs = open_logs(log_set)
    for sent in logs.messages():
        begin = starts[f"{int(sent['pe']) << 32 | int(sent['msg_id']):#x}"]
        sender = slices[int(sent["pe"]), int(sent["seb"])]
        until = min(float(sent["send_time"]) * 1e6, sender["ts"] + sender["dur"])
        assert begin["tid"] == sent["pe"]
        assert begin["ts"] == pytest.approx(max(sender["ts"], until - 1e-3), rel=1e-12, abs=0.5e-3)
        assert begin["args"] == {"msg_id": sent["msg_id"], "bytes": sent["size"]}
    started = logs.sebs()[logs.sebs()["msg_id"] >= 0]
    assert len(phase(events, "f")) == len(started)
    for pe, number, source, msg_id in started[["pe", "seb", "src_pe", "msg_id"]].tolist():
        assert (pe, slices[pe, number]["ts"], f"{source << 32 | msg_id:#x}") in at


def test_tracks_have_names_and_brackets_lie_within_their_sebs(tmp_path: Path) -> None:
    line = [seb(1, 3, events=bracket(0.5, 1.5))]
    logs = write_logs(tmp_path / "logs", [line] * 4, wth=2)
    (logs / "param.3").write_text("0 TRACEBIGSIM kernel 5.0\n")
    events = exported(logs, tmp_path / "out")
    names = {(event["pid"], event["tid"], event["args"]["name"]) for event in phase(events, "M")}
    assert {(1, 3, "node 1"), (1, 3, "PE 3")} <= names
    brackets = phase(events, "X", "bracket")
    assert [event["name"] for event in brackets] == ["bracket"] * 3 + ["kernel"]
    assert {(event["ts"], event["dur"]) for event in brackets} == {(1.5e6, 1e6)}
    assert [event["ts"] for event in phase(events, "i")] == [1.5e6, 2.5e6] * 4


def test_times_that_json_lacks_are_left_out_and_counted(tmp_path: Path) -> None:
    marks = {"events": bracket(0.25, 0.5)}
    line = [seb(0, 1), seb(1, 2) | {"start_time": float("nan")}, seb(2, float("inf"))]
    logs = write_logs(tmp_path / "logs", [[fields | marks for fields in line]])
    done = rewritelog.export(logs, tmp_path / "out", "chrome")
    assert (done.counts["sebs"], done.counts["brackets"], done.counts["log_events"]) == (1, 1, 2)
    assert done.warnings == ("2 SEBs left out: a time is not finite",)


def test_times_that_are_infinite_in_nanoseconds_are_left_out_and_counted(tmp_path: Path) -> None:
    marks = {"events": bracket(0.25, 0.5)}
    sent = message(1e303, msg_id=1, dst_node=0)
    line = [seb(0, 1, **marks), seb(1, 1e303, **marks), seb(1e303, 1e303, messages=[sent])]
    logs = write_logs(tmp_path / "logs", [[*line, seb(2, 3, src_pe=0, msg_id=1)]])
    done = rewritelog.export(logs, tmp_path / "out", "chrome")
    assert (done.counts["sebs"], done.counts["brackets"], done.counts["log_events"]) == (2, 1, 2)
    assert phase(json.loads((tmp_path / "out/trace.json").read_text())["traceEvents"], "s") == []
    assert done.warnings == ("2 SEBs left out: a time is not finite",)
    assert "Infinity" not in (tmp_path / "out/trace.json").read_text()


@pytest.mark.parametrize("part_bytes", [1 << 20, 1], ids=["whole", "a SEB at a time"])
def test_a_choice_has_no_flow_from_what_is_left_out(
    part_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of a timeline without any event are between others."""
    monkeypatch.setattr("rewritelog.exporting.contents.PART_BYTES", part_bytes)
    sender = [seb(0, 1, messages=[message(0.5, msg_id=3, dst_node=1)]), seb(1, 1.25)]
    receiver = [seb(2, 3, src_pe=0, msg_id=3)]
    logs = write_logs(tmp_path / "logs", [sender, receiver])
    assert len(phase(exported(logs, tmp_path / "all"), "s")) == 1
    one = exported(logs, tmp_path / "one", pes="1")
    assert phase(one, "s") == phase(one, "f") == []
    assert phase(exported(logs, tmp_path / "late", from_s=1.5), "s") == []


def test_messages_that_take_no_time_leave_before_they_arrive(tmp_path: Path) -> None:
    """Viewers match the ends of a flow in the order of their times."""
    sender = [seb(0, 1, messages=[message(0.5, msg_id=3, dst_node=0)])]
    logs = write_logs(tmp_path / "logs", [[seb(0.5, 1, src_pe=1, msg_id=3)], sender])
    events = exported(logs, tmp_path / "out")
    ((begin,), (end,)) = (phase(events, ph) for ph in "sf")
    assert begin["ts"] < end["ts"]


OVERLAPS: list[tuple[str, list[tuple[float, float]], int]] = [
    ("begun where the last one ended", [(0, 20), (20, 30)], 0),
    ("within a longer one", [(0, 1000), *((k, k + 1) for k in range(1, 99, 2))], 0),
    ("out of a longer one, after one within it", [(0, 100), (10, 20), (50, 150)], 1),
    ("out of one within a longer one", [(0, 100), (10, 20), (15, 25), (22, 30)], 1),
    ("each out of the one before", [(0, 20), (10, 30), (20, 40), (30, 50)], 2),
    ("begun together", [(0, 10), (0, 20), (0, 0), (20, 20)], 0),
    ("before the ones in front", [(50, 60), (0, 55)], 1),
    ("less than a nanosecond apart", [(k * 0.0016, (k + 1) * 0.0016) for k in range(5)], 0),
    ("a nanosecond early", [(0, 10), (9.999, 20)], 1),
]
"""The SEBs of a PE in microseconds, and how many of them Perfetto drops."""


def overlapping_sebs(folder: Path) -> Path:
    """Logs with a PE for each of these."""
    return write_logs(
        folder,
        [[seb(*(1e-6 * time for time in times)) for times in line] for _, line, _ in OVERLAPS],
    )


@pytest.mark.parametrize("part_bytes", [1 << 20, 1], ids=["whole", "a SEB at a time"])
def test_slices_that_viewers_leave_out_are_counted(
    part_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counted what began before its neighbour had ended, within a part of a timeline."""
    monkeypatch.setattr("rewritelog.exporting.contents.PART_BYTES", part_bytes)
    logs = overlapping_sebs(tmp_path / "logs")
    for pe, (what, _, count) in enumerate(OVERLAPS):
        done = rewritelog.export(logs, tmp_path / f"out{pe}", "chrome", pes=[pe])
        counted = [text.partition(" left out by viewers")[0] for text in done.warnings]
        assert counted == [count_text(count, "slice")] * (count > 0), what
    total = rewritelog.export(logs, tmp_path / "all", "chrome").warnings[0]
    assert total.startswith(f"{sum(count for *_, count in OVERLAPS)} slices left out")


def test_a_seb_that_begins_in_a_bracket_and_ends_after_it_is_left_out_by_viewers(
    tmp_path: Path,
) -> None:
    logs = write_logs(tmp_path / "logs", [[seb(0, 20, events=bracket(5, 15)), seb(10, 18)]])
    (warning,) = rewritelog.export(logs, tmp_path / "out", "chrome").warnings
    assert warning.startswith("1 slice left out by viewers")
