"""The run time that a rewrite predicts: the replays of its logs before and after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from logbuilder import bracket, message, seb, write_logs, write_params, write_timings

import rewritelog
from rewritelog.replaying import run_time
from rewritelog.rewriting.report import RewriteReport


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """PE 0 computes for 2 s, of which 1 s is bracketed, and starts 1 s of PE 1 by a message."""
    first = seb(0, 2, messages=[message(2, msg_id=1)], events=bracket(0.5, 1.5))
    second = seb(3, 4, src_pe=0, msg_id=1)
    folder = write_logs(tmp_path / "in", [[first], [second]])
    write_params(folder, 0, (0, "k", 4))
    return folder


def rewritten(logs: Path, **options: Any) -> RewriteReport:
    lines = [("k", float(p), float(p)) for p in range(1, 9)]
    timings = write_timings(logs.parent / "timings.txt", *lines)
    return rewritelog.rewrite(logs, timings=timings, **options)


def test_a_rewrite_begins_with_the_run_time_before_and_after(logs: Path) -> None:
    report = rewritten(logs, dilation=1, latency="1s")
    assert report.run_time is not None
    assert (report.run_time.before_s, report.run_time.after_s) == pytest.approx((4.0, 7.0))
    first = report.text().splitlines()[0]
    assert first.startswith("Predicted run time: 4.000 s → 7.000 s, 1.75 × slower, on 2 PEs")
    run_time_json = report.to_json()["run_time"]
    assert run_time_json["speedup"] == pytest.approx(4 / 7)
    assert run_time_json.keys() == {"before_s", "after_s", "network", "never_ran", "speedup"}


def test_it_is_that_of_a_replay_of_the_written_logs(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = rewritten(logs, out=out, dilation=0.5, model_options={"loss": "squares"})
    assert report.run_time is not None
    assert report.run_time.before_s == rewritelog.replay(logs).predicted_s
    assert report.run_time.after_s == pytest.approx(rewritelog.replay(out).predicted_s)


@pytest.mark.parametrize(("dilation", "after_s"), [(0.5, 3.5), (2.0, 6.0)])
def test_receive_times_that_are_kept_are_those_of_the_written_logs(
    dilation: float, after_s: float, tmp_path: Path
) -> None:
    """The message took as long as in the input: 2.5 and 7 s."""
    first = seb(0, 2, messages=[message(2, 3, msg_id=1)])
    logs = write_logs(tmp_path / "in", [[first], [seb(3, 4, src_pe=0, msg_id=1)]])
    out = tmp_path / "out"
    report = rewritelog.rewrite(logs, out, dilation=dilation, recv="keep")
    assert report.run_time is not None
    assert report.run_time.after_s == rewritelog.replay(out).predicted_s == after_s


@pytest.mark.slow
def test_a_replay_with_a_model_predicts_what_a_rewrite_does(sample_logs: Path) -> None:
    """It took usual durations, whose sum was 0.4 % less than that of the rewrite."""
    logs, timings = sample_logs / "cells", sample_logs / "cells" / "timings.txt"
    report = rewritelog.rewrite(logs, timings=timings)
    assert report.run_time is not None
    after_s = pytest.approx(report.run_time.after_s, rel=1e-12)
    assert rewritelog.replay(logs, timings=timings).predicted_s == after_s
    assert (
        rewritelog.sweep(logs, {"dilation": [1]}, timings=timings).points[0].predicted_s == after_s
    )
    assert rewritelog.lost_cycles(logs, timings=timings).lost.predicted_s == after_s


def test_large_logs_are_replayed_if_a_network_is_given(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_time, "MOST_SEBS", 1)
    report = rewritelog.rewrite(logs, dilation=0.5)
    assert report.run_time is None
    assert "no predicted run time: " in report.text()
    assert "replayed only if a network is given, as in network='log'" in " ".join(
        report.text().split()
    )
    assert report.text().startswith("Predicted time of all SEBs: 3.000 s → 1.500 s, 2 × faster")
    assert rewritelog.rewrite(logs, dilation=0.5, network="log").run_time is not None


def test_sebs_that_never_run_are_a_warning(tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "in", [[seb(0, 1), seb(1, 2, src_pe=0, msg_id=99)]])
    report = rewritelog.rewrite(logs, dilation=0.5)
    assert report.run_time is not None
    assert report.run_time.never_ran == 1
    (warning,) = (text for text in report.warnings if "never ran" in text)
    assert warning == "1 of 2 SEBs never ran: not included in the predicted run time"


def test_logs_that_cannot_be_replayed_are_rewritten_all_the_same(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise rewritelog.RewriteLogError("too many links")

    monkeypatch.setattr(run_time, "_run_time", refuse)
    report = rewritelog.rewrite(logs, tmp_path / "out", dilation=0.5)
    assert "no predicted run time: too many links" in report.text()
    with pytest.raises(rewritelog.RewriteLogError, match="too many links"):
        rewritelog.rewrite(logs, tmp_path / "other", dilation=0.5, network="log")
    assert not (tmp_path / "other").exists()


def test_a_rewrite_that_is_interrupted_in_its_replays_keeps_the_old_set(
    logs: Path, tmp_path: Path
) -> None:
    def interrupt(stage: str, *_: object) -> None:
        if stage.startswith("replaying"):
            raise KeyboardInterrupt

    out = tmp_path / "out"
    rewritelog.rewrite(logs, out, dilation=3)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(KeyboardInterrupt):
        rewritelog.rewrite(logs, out, dilation=0.5, force=True, progress=interrupt)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert {path.name for path in tmp_path.iterdir()} == {logs.name, "out"}
