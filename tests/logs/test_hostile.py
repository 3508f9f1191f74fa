"""Logs made to do harm: each command gives a result or an error with a place, and no half output.

Cases that fuzzing found say so.
"""

from __future__ import annotations

import json
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chosen import by_tier
from logbuilder import END, START, bracket, message, seb, write_logs

import rewritelog
from rewritelog.commands.durations import RewriteOptions
from rewritelog.diffing.run import compare_logs
from rewritelog.errors import DamagedLogError, RewriteLogError
from rewritelog.inspection.dump import Dump
from rewritelog.inspection.info import survey
from rewritelog.rewriting.run import rewrite

DOUBLED = RewriteOptions(dilation=2, jobs=1, no_flush=True)
LARGEST = 1.7976931348623157e308
SUBNORMAL = 5e-324


def run_rewrite(folder: Path, out: Path) -> None:
    report = rewrite(folder, out, DOUBLED)
    json.dumps(report.to_json(), allow_nan=False)
    report.text()


def run_info(folder: Path, _: Path) -> None:
    surveyed = survey(rewritelog.open_logs(folder))
    json.dumps(surveyed.to_json(), allow_nan=False)
    surveyed.text()


def run_dump(folder: Path, _: Path) -> None:
    logs = rewritelog.open_logs(folder)
    for pe in logs.pes:
        assert all(Dump(logs, pe).sebs())
        for line in "".join(Dump(logs, pe).pieces(as_json=False)).split("\n"):
            assert line.isprintable()


def run_convert(folder: Path, out: Path) -> None:
    rewritelog.convert(folder, out, byte_order="big")


def run_diff(folder: Path, _: Path) -> None:
    logs = rewritelog.open_logs(folder)
    json.dumps(compare_logs(logs, logs).to_json(), allow_nan=False)


COMMANDS: dict[str, Callable[[Path, Path], None]] = {
    "rewrite": run_rewrite,
    "info": run_info,
    "dump": run_dump,
    "convert": run_convert,
    "diff": run_diff,
}


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest) -> Callable[[Path, Path], None]:
    return COMMANDS[request.param]


@pytest.fixture(scope="module", autouse=True)
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Have all kernels compiled and imported before memory is measured."""
    folder = write_logs(tmp_path_factory.mktemp("compiled") / "in", [[seb(0, 1)]])
    for name, command in COMMANDS.items():
        command(folder, folder.with_name(name))


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    full = seb(0, 1, messages=[message(0.5)], events=bracket(0.2, 0.4), backward=[0], forward=[1])
    return write_logs(tmp_path / "in", [[full, full], [full]])


def overwrite(path: Path, offset: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[offset : offset + len(data)] = data
    path.write_bytes(content)


def refused(command: Callable[[Path, Path], None], folder: Path) -> str:
    """The error of a command that takes little memory and leaves nothing behind."""
    out = folder.parent / "out"
    before = sorted(folder.parent.iterdir())
    tracemalloc.start()
    try:
        with pytest.raises(RewriteLogError) as error:
            command(folder, out)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 8 << 20
    assert sorted(folder.parent.iterdir()) == before
    return str(error.value)


HEAD = 16 + 4 + 2 * 4
SEB_FIXED = 101
AT_MESSAGES = HEAD + 4 + SEB_FIXED
AT_EVENTS = AT_MESSAGES + 4 + 34
AT_TEXT = AT_EVENTS + 4 + 9
AT_BACKWARD = AT_EVENTS + 4 + 2 * (9 + 4) + len(START + END)
AT_FORWARD = AT_BACKWARD + 8


@pytest.mark.parametrize(
    "count",
    by_tier(
        [2**31 - 1, 2**31 - 2, -(2**31), 2**30, 10**9, 2**31 // 34],
        [2**31 - 1, -(2**31), 2**31 // 34],
        [2**31 - 2, 2**30, 10**9],
    ),
)
@pytest.mark.parametrize(
    ("at", "field"),
    [
        (HEAD, "count"),
        (AT_MESSAGES, "number of messages"),
        (AT_EVENTS, "number of log events"),
        (AT_TEXT, "log event text length"),
        (AT_BACKWARD, "number of backward dependencies"),
        (AT_FORWARD, "number of forward dependencies"),
    ],
)
def test_counts_that_overflow_when_multiplied(
    command: Callable[[Path, Path], None], at: int, field: str, count: int, logs: Path
) -> None:
    overwrite(logs / "bgTrace0", at, struct.pack("<i", count))
    error = refused(command, logs)
    assert "bgTrace0" in error
    assert "PE 0" in error
    if command is not run_dump:
        assert field in error


def test_a_billion_dependencies_in_a_hundred_bytes(
    command: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    folder = write_logs(tmp_path / "in", [[seb(0, 1)]], log_version=0)
    size = (folder / "bgTrace0").stat().st_size
    overwrite(folder / "bgTrace0", size - 8, struct.pack("<i", 10**9))
    assert "count 1000000000 of backward dependencies does not fit" in refused(command, folder)


@pytest.mark.parametrize(
    "offsets",
    [
        (28, 28),
        (28, 27),
        (28, 0),
        (28, 2**32 - 1),
        (28, 30),
        (0, 28),
        (29, 300),
        (28, 2**31),
        (300, 28),
        (28, 10_000),
    ],
)
def test_timelines_that_overlap_share_bytes_or_point_backwards(
    command: Callable[[Path, Path], None], offsets: tuple[int, int], logs: Path
) -> None:
    overwrite(logs / "bgTrace0", 20, struct.pack("<2I", *offsets))
    assert "field offset" in refused(command, logs)


def test_a_second_timeline_that_begins_inside_of_the_first(
    command: Callable[[Path, Path], None], logs: Path
) -> None:
    """Its offset can be, and its bytes even look like a timeline without SEBs."""
    overwrite(logs / "bgTrace0", 24, struct.pack("<I", AT_FORWARD + 4))
    refused(command, logs)


@pytest.mark.parametrize("pes", [2**31 - 1, 10**6])
def test_a_summary_that_claims_more_pes_than_the_files_hold(
    command: Callable[[Path, Path], None], pes: int, logs: Path
) -> None:
    overwrite(logs / "bgTrace", 16, struct.pack("<2i", pes, pes))
    assert f"the summary puts {pes:,} PEs into this file" in refused(command, logs)
    overwrite(logs / "bgTrace0", 16, struct.pack("<i", pes))
    assert "offsets do not fit in the file" in refused(command, logs)


ODD_TIMES = [
    float("nan"),
    float("inf"),
    float("-inf"),
    LARGEST,
    -LARGEST,
    SUBNORMAL,
    -SUBNORMAL,
    -0.0,
    0.0,
    2.0**53,
    -1e300,
]
SEB_TIMES = ("recv_time", "eff_recv_time", "start_time", "exec_time", "end_time")


def check_rewritten(folder: Path, out: Path) -> None:
    """What must hold of a rewrite that was not refused, whatever the times were."""
    old, new = rewritelog.open_logs(folder), rewritelog.open_logs(out)
    assert compare_logs(old, new).times_alone
    before, after = old.messages(), new.messages()
    arrived = ~(before["recv_time"] < before["send_time"])
    assert not (after["recv_time"] < after["send_time"])[arrived].any()
    for name in ("start_time", "end_time", "exec_time"):
        columns = old.sebs()[name], new.sebs()[name]
        assert (np.isfinite(columns[0]) <= np.isfinite(columns[1])).all()
    assert np.isfinite(after["send_time"]).all()


def problem_of(job: Callable[[], None]) -> DamagedLogError | None:
    try:
        job()
    except DamagedLogError as error:
        return error
    return None


@pytest.mark.parametrize("time", by_tier(ODD_TIMES, [float("inf"), -LARGEST], ODD_TIMES))
@pytest.mark.parametrize("field", [*SEB_TIMES, "send_time", "message recv_time", "r_time"])
def test_odd_times(field: str, time: float, tmp_path: Path) -> None:
    odd = seb(0, 1, messages=[message(0.5)], events=bracket(0.2, 0.4))
    if field in SEB_TIMES:
        odd[field] = time
    elif field == "r_time":
        odd["events"][1]["r_time"] = time
    else:
        odd["messages"][0][field.removeprefix("message ")] = time
    folder = write_logs(tmp_path / "in", [[seb(0, 1), odd, seb(0, 1)]])
    for name in ("info", "dump", "diff", "convert"):
        COMMANDS[name](folder, tmp_path / "out")
    rewritelog.convert(tmp_path / "out", tmp_path / "back", byte_order="little")
    assert (tmp_path / "back/bgTrace0").read_bytes() == (folder / "bgTrace0").read_bytes()
    out = tmp_path / "rewritten"
    problem = problem_of(lambda: run_rewrite(folder, out))
    if problem is None:
        check_rewritten(folder, out)
    else:
        assert (problem.location.pe, problem.location.seb) == (0, 1)
        assert not out.exists()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"messages": [message(LARGEST)]}, "sendTime"),
        ({"messages": [message(1.2e292, LARGEST)]}, "recvTime"),
        ({"events": [{"type": 1, "r_time": LARGEST, "data": 0}]}, "log event rTime"),
        ({"end_time": LARGEST, "exec_time": LARGEST}, "endTime"),
    ],
)
def test_times_that_grow_too_large_are_refused(
    fields: dict[str, Any], field: str, tmp_path: Path
) -> None:
    """Found by fuzzing: the first three became infinite, and the log was written."""
    folder = write_logs(tmp_path / "in", [[seb(0, 1), seb(1e292, 1.5e292) | fields]])
    options = RewriteOptions(dilation=1e4, jobs=1)
    with pytest.raises(DamagedLogError, match=f"PE 0, SEB 1, field {field}.*too large"):
        rewrite(folder, tmp_path / "out", options)
    assert not (tmp_path / "out").exists()


def test_an_event_without_a_time_keeps_it(tmp_path: Path) -> None:
    """It was looked up in a region before the first one, in memory that nothing had written."""
    nowhere = struct.unpack("<d", b"\x01\x02\x03\x04\x05\x06\xf8\x7f")[0]
    events = [{"type": 1, "r_time": nowhere, "data": 0}, *bracket(0.25, 0.5)]
    folder = write_logs(tmp_path / "in", [[seb(0, 1, events=events)]])
    rewrite(folder, tmp_path / "out", DOUBLED)
    moved = rewritelog.open_logs(tmp_path / "out").log_events()["r_time"]
    assert moved[:1].tobytes() == struct.pack("<d", nowhere)
    assert moved[1:].tolist() == [0.5, 1.0]


@pytest.mark.parametrize("timelines", [1, 4])
def test_durations_whose_sum_overflows(timelines: int, tmp_path: Path) -> None:
    """Each fits a number, and their sum does not: logs are written, and the sums are no numbers."""
    folder = write_logs(tmp_path / "in", [[seb(0, 0.8e308)] * (8 // timelines)] * timelines)
    for name, command in COMMANDS.items():
        command(folder, tmp_path / name)
    report = rewrite(folder, None, DOUBLED).to_json()
    assert report["durations_s"]["old"] is None
    check_rewritten(folder, tmp_path / "rewrite")
    assert "inf" in survey(rewritelog.open_logs(folder)).text()


def test_negative_zero_is_a_time_like_any_other(tmp_path: Path) -> None:
    zero = seb(-0.0, 1, messages=[message(-0.0, -0.0), message(0.0)], events=bracket(-0.0, 0.5))
    folder = write_logs(tmp_path / "in", [[zero, seb(-1, -0.0, messages=[message(-0.0)])]])
    rewrite(folder, tmp_path / "same", RewriteOptions(dilation=1, jobs=1))
    assert (tmp_path / "same/bgTrace0").read_bytes() == (folder / "bgTrace0").read_bytes()
    run_rewrite(folder, tmp_path / "out")
    check_rewritten(folder, tmp_path / "out")
    rows = rewritelog.open_logs(tmp_path / "out").sebs()
    assert rows["exec_time"].tolist() == [2.0, 2.0]
    assert rewritelog.open_logs(tmp_path / "out").messages()["send_time"].tolist() == [0, 0, 1]


def test_subnormal_durations_are_rewritten(tmp_path: Path) -> None:
    tiny = seb(0, 3 * SUBNORMAL, messages=[message(SUBNORMAL), message(3 * SUBNORMAL)])
    folder = write_logs(tmp_path / "in", [[tiny]])
    rewrite(folder, tmp_path / "out", RewriteOptions(dilation=0.5, jobs=1))
    check_rewritten(folder, tmp_path / "out")
    (end,) = rewritelog.open_logs(tmp_path / "out").sebs()["end_time"]
    assert end in (SUBNORMAL, 2 * SUBNORMAL)
