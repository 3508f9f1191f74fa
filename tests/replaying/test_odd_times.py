"""Times that contradict each other, unclosed SEBs, and programs that never run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logbuilder import bracket, mark, message, seb, write_logs, write_params, write_timings
from replays import replay

import rewritelog
from rewritelog import open_logs
from rewritelog.checking.run import check_logs
from rewritelog.commands.durations import RewriteOptions
from rewritelog.commands.runs import ReplayOptions
from rewritelog.errors import RewriteLogError
from rewritelog.replaying import analysis
from rewritelog.replaying.network import Network
from rewritelog.rewriting.run import rewrite


def rules_broken(logs: Path) -> set[str]:
    return set(check_logs(logs).findings.counts)


def short_lived(folder: Path, exec_time: float = 10.0) -> Path:
    """A SEB from 100 to 160 whose execTime is shorter, with two brackets that take 50 s."""
    events = [*bracket(5, 35), *bracket(40, 60)]
    late = message(150.0, 155.0, dst_node=0)
    logs = write_logs(
        folder, [[seb(100, 160, exec_time=exec_time, events=events, messages=[late])]]
    )
    write_params(logs, 0, (0, "kernel", 1.0), (0, "kernel", 2.0))
    return logs


def test_brackets_are_cut_to_the_time_that_their_seb_takes(tmp_path: Path) -> None:
    """They took 500 % of the time."""
    report = replay(short_lived(tmp_path / "logs"))
    assert report.predicted_s == 10
    totals = report.lost.totals_s
    assert totals["useful[kernel]"] == 5  # from 5 to 10 s
    assert totals["other computation"] == 5
    assert sum(totals.values()) == report.pes * report.predicted_s
    assert report.path.by_event_s == {"kernel": 5}
    assert [(gain.name, gain.gain_s) for gain in report.event_gains] == [("kernel", 5)]


def test_rounding_does_not_cut_brackets(tmp_path: Path) -> None:
    start, end = 0.1, 0.1 + 0.7
    line = [seb(start, end, exec_time=0.7, events=bracket(0.0, end - start))]
    logs = write_logs(tmp_path / "logs", [line])
    write_params(logs, 0, (0, "kernel", 1.0))
    assert replay(logs).warnings == ()


def test_a_model_takes_brackets_as_a_rewrite_does(tmp_path: Path) -> None:
    """A rewrite replaces execTime by the sum of the regions, so nothing has to be cut."""
    timings = write_timings(tmp_path / "timings", *[("kernel", 3.0, 1.0)] * 3)
    options = ReplayOptions(model="least-squares", timings=(timings,), no_flush=True)
    report = replay(short_lived(tmp_path / "logs"), options=options)
    assert report.predicted_s == 5 + 3 + 5 + 3
    assert not any("cut" in warning for warning in report.warnings)


def test_a_seb_with_an_empty_bracket_is_replayed_as_it_is_rewritten(tmp_path: Path) -> None:
    """Its execTime was taken, since a bracket that takes no time changes no region."""
    line = [seb(100, 160, exec_time=7.0, events=bracket(20, 20))]
    logs = write_logs(tmp_path / "logs", [line])
    write_params(logs, 0, (0, "kernel", 1.0))
    timings = write_timings(tmp_path / "timings", *[("kernel", 3.0, 1.0)] * 3)
    fitted: Any = {"model": "least-squares", "timings": (timings,), "no_flush": True}
    rewrite(logs, tmp_path / "out", RewriteOptions(**fitted))
    after_s = replay(tmp_path / "out").predicted_s
    assert after_s == 63
    assert replay(logs, options=ReplayOptions(**fitted)).predicted_s == after_s


def test_a_dilation_is_replayed_as_it_is_rewritten(tmp_path: Path) -> None:
    """It scaled execTime, but a rewrite scales endTime − startTime and writes that as execTime."""
    logs = short_lived(tmp_path / "logs")
    rewrite(logs, tmp_path / "out", RewriteOptions(dilation=0.5, no_flush=True))
    after_s = replay(tmp_path / "out").predicted_s
    assert after_s == 30
    assert replay(logs, options=ReplayOptions(dilation=0.5)).predicted_s == after_s
    (point,) = rewritelog.sweep(logs, {"dilation": [0.5]}).points
    assert point.predicted_s == after_s


def test_written_events_lie_in_their_seb(tmp_path: Path) -> None:
    logs = short_lived(tmp_path / "logs")
    before = rules_broken(logs)
    assert "exec-time" in before
    replay(logs, options=ReplayOptions(no_flush=True, write=tmp_path / "out"))
    assert rules_broken(tmp_path / "out") <= before - {"exec-time"}
    (written,) = open_logs(tmp_path / "out").sebs()
    assert (written["start_time"], written["end_time"], written["exec_time"]) == (0, 10, 10)
    assert open_logs(tmp_path / "out").log_events()["r_time"].tolist() == [5, 10, 10, 10]


@pytest.mark.parametrize(("end", "written"), [(0.0, -1.0), (-1.0, -1.0), (-7.0, -7.0)])
def test_an_unclosed_seb_stays_unclosed(end: float, written: float, tmp_path: Path) -> None:
    """With endTime 0 it became a closed one, whose execTime was −100."""
    sends = [message(100.5, 101.0, dst_node=0)]
    only = seb(100, end, exec_time=end - 100, events=[mark(b"text", 3.0)], messages=sends)
    logs = write_logs(tmp_path / "logs", [[only]])
    assert rules_broken(logs) == set()
    replay(logs, options=ReplayOptions(no_flush=True, write=tmp_path / "out"))
    assert rules_broken(tmp_path / "out") == set()
    (last,) = open_logs(tmp_path / "out").sebs()
    assert (last["start_time"], last["end_time"], last["exec_time"]) == (0, written, end - 100)


def test_logs_whose_durations_would_be_lost_by_rounding_are_not_written(tmp_path: Path) -> None:
    """`--bandwidth 1e-300`: SEBs start at 1e303 s, and end at the same time."""
    sends = [message(0.5, 0.5, dst_node=1, size=1000)]
    logs = write_logs(
        tmp_path / "logs", [[seb(0, 1, messages=sends)], [seb(1, 2, src_pe=0, msg_id=0)]]
    )
    slow = Network(bandwidth=1e-300)
    assert replay(logs, slow).predicted_s == 1e303
    with pytest.raises(RewriteLogError, match=r"SEB 0 of PE 1 starts at 1e\+303 s, .* no logs"):
        replay(logs, slow, ReplayOptions(no_flush=True, write=tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_program_that_never_runs_says_so_without_gains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: Any) -> None:
        raise AssertionError("a gain was computed")

    monkeypatch.setattr(analysis, "run_time", asked)
    line = [seb(k, k + 1, backward=[(k - 1) % 9], recv_time=-1.0) for k in range(9)]
    logs = write_logs(tmp_path / "logs", [line] * 2)
    report = replay(logs, options=ReplayOptions(gains=10))
    assert (report.predicted_s, report.gains, report.event_gains) == (0, (), ())
    assert report.text().startswith("No SEB can run: ")
    assert report.blocked.in_cycles == 18
    assert report.lost.totals_s["start"] == 0


@pytest.mark.parametrize("field", ["src_pe", "msg_id", "backward"])
@pytest.mark.parametrize("value", [-(2**31), -2, 3, 2**31 - 1])
def test_no_field_leads_out_of_the_arrays(field: str, value: int, tmp_path: Path) -> None:
    """PEs, message numbers and dependencies that do not exist: such SEBs never run, no more."""
    odd: dict[str, Any] = {"src_pe": 0, "msg_id": 1, "recv_time": 0.5, "backward": []}
    odd[field] = [value] if field == "backward" else value
    sends = [message(0.5, 0.75, msg_id=n, dst_node=-(2**31), tid=-(2**15)) for n in (1, -(2**31))]
    logs = write_logs(tmp_path / "logs", [[seb(0, 1, messages=sends), seb(1, 2, **odd)], []])
    report = replay(logs)
    assert report.predicted_s in (1, 2)
    assert math.isclose(np.sum(report.lost.seconds), report.pes * report.predicted_s)


def test_differences_of_times_may_overflow(tmp_path: Path) -> None:
    """numpy warned of it, on stderr."""
    sends = [message(1e308, -1e308, dst_node=0), message(1e308, math.inf, dst_node=0)]
    line = [seb(-1e308, 1e308, exec_time=1.0, messages=sends), seb(1, 2, src_pe=0, msg_id=0)]
    logs = write_logs(tmp_path / "logs", [line])
    options = ReplayOptions(no_flush=True, write=tmp_path / "out")
    assert replay(logs, options=options).predicted_s == 2
    rewritelog.export(logs, tmp_path / "goal", "goal")
