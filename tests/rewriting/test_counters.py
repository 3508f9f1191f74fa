"""The model of performance counters: lines and records that carry them, and those that do not."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blocks import in_blocks
from chosen import by_tier
from logbuilder import bracket, seb, write_logs

from rewritelog import open_logs
from rewritelog.commands.durations import RewriteOptions
from rewritelog.errors import TimingError
from rewritelog.formats.bgtrace.blocks import BLOCK_BYTES
from rewritelog.rewriting.report import RewriteReport
from rewritelog.rewriting.run import rewrite

COUNTERS = "counters"


def counted(*counters: int) -> str:
    numbers = " ".join(map(str, counters))
    return f"TRACEBIGSIM: event:{{ k }} PAPI:{{ {numbers} }} params:{{ 1.0 }}"


def timed(seconds: float, line: str) -> str:
    return line.replace("PAPI:", f"time:{{ {seconds!r} }} PAPI:")


def put(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.fixture
def timings(tmp_path: Path) -> Path:
    """Twenty lines of 1 ns a cycle and 100 ns a cache miss, and three without counters."""
    draw = np.random.default_rng(7)
    pairs = draw.integers(10**5, 10**7, (20, 2)).tolist()
    lines = [timed(1e-9 * a + 1e-7 * b, counted(a, b)) for a, b in pairs]
    plain = "TRACEBIGSIM: event:{ k } time:{ 9.0 } params:{ 1.0 }"
    return put(tmp_path / "timings", [*lines, plain, plain, plain])


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    sebs = [seb(k, k + 1, events=bracket(0.25, 0.75)) for k in range(6)]
    return write_logs(tmp_path / "in", [sebs])


def run(
    logs: Path, timings: Path, model: str = COUNTERS, block_bytes: int = BLOCK_BYTES, **options: Any
) -> RewriteReport:
    out, opened = logs.parent / "out", in_blocks(logs, block_bytes)
    return rewrite(
        opened, out, RewriteOptions(model=model, timings=(timings,), force=True, **options)
    )


def test_records_with_counters_are_predicted_and_those_without_dilated(
    logs: Path, timings: Path
) -> None:
    put(
        logs / "param.0",
        [
            f"0 {counted(2 * 10**6, 10**6)}",
            f"1 {counted(10**6, 3 * 10**6)}",
            "2 TRACEBIGSIM: event:{ k } params:{ 1.0 }",
            "3 TRACEBIGSIM: event:{ k } params:{ 1.0 }",
            f"4 {counted(5)}",
        ],
    )
    report = run(logs, timings, dilation=2)
    lengths = open_logs(logs.parent / "out").sebs([0])["exec_time"]
    assert lengths == pytest.approx([1 + 0.102, 1 + 0.301, 2, 2, 2, 2])
    (line,) = report.events
    assert (line.by_model, line.dilated, line.uncounted) == (2, 3, 2)
    assert report.to_json()["events"][0]["uncounted"] == 2
    assert report.timings is not None
    assert (len(report.timings), report.timings.uncounted) == (20, 3)
    warnings = "\n".join(report.warnings)
    assert "3 timing lines without counters (PAPI) left out: count them" in warnings
    assert "2 brackets dilated, since their param records have no counters" in warnings
    assert "1 bracket dilated, since the model does not cover it: " in warnings
    assert "counters, not as many as its param records have" in warnings


def test_a_model_of_parameters_does_not_see_the_counters(logs: Path, timings: Path) -> None:
    put(logs / "param.0", [f"0 {counted(10**6, 10**6)}", "1 TRACEBIGSIM: event:{ k } params:{ 1 }"])
    report = run(logs, timings, "least-squares")
    assert [(line.by_model, line.by_exact) for line in report.events] == [(0, 2)]
    assert report.timings is not None
    assert (len(report.timings), report.timings.uncounted) == (23, 0)


def test_lines_without_any_counters_are_refused(logs: Path, tmp_path: Path) -> None:
    plain = put(tmp_path / "plain", ["TRACEBIGSIM: event:{ k } time:{ 9.0 } params:{ 1.0 }"])
    with pytest.raises(TimingError, match=r"no timing line with counters found.*1 timing line wit"):
        run(logs, plain)


def test_events_whose_lines_have_different_numbers_of_counters(logs: Path, tmp_path: Path) -> None:
    lines = [timed(1e-3 * n, counted(n)) for n in range(1, 6)]
    both = put(tmp_path / "both", [*lines, *(timed(2e-3 * n, counted(n, 7)) for n in range(1, 6))])
    put(logs / "param.0", [f"0 {counted(3)}", f"1 {counted(3, 7)}"])
    report = run(logs, both)
    lengths = open_logs(logs.parent / "out").sebs([0])["exec_time"]
    assert lengths[:2] == pytest.approx([0.503, 0.506])
    assert any(
        warning.endswith(" of counters, each with its own fit: 'k' (1 in 5 lines, 2 in 5 lines)")
        for warning in report.warnings
    )


@pytest.mark.parametrize("block_bytes", by_tier([300, 1 << 24], [1 << 24], [300]))
def test_counters_stay_with_their_sebs_in_long_timelines(
    block_bytes: int, tmp_path: Path, timings: Path
) -> None:
    logs = write_logs(
        tmp_path / "in", [[seb(k, k + 1, events=bracket(0, 1)) for k in range(50)]] * 2
    )
    for pe in range(2):
        pairs = [(1000 * (k + 1), 10 + pe) for k in range(50)]
        put(logs / f"param.{pe}", [f"{k} {counted(*pairs[k])}" for k in range(50)])
    run(logs, timings, block_bytes=block_bytes)
    for pe in range(2):
        lengths = open_logs(tmp_path / "out").sebs([pe])["exec_time"]
        expected = [1e-6 * (k + 1) + 1e-7 * (10 + pe) for k in range(50)]
        assert lengths == pytest.approx(expected, rel=1e-6)


def test_namd_by_its_counters(reference: Path, tmp_path: Path) -> None:
    """Every other NAMD line as timing, the rest as the records of a log with the times measured."""
    namd = (reference / "namd/timings.txt").read_text().splitlines()
    lines = [
        line for line in namd if "PAPI:" in line and "event:{ calc_pair_energy_fullelect }" in line
    ]
    assert len(lines) > 100
    known, asked = lines[0::2], lines[1::2]
    seconds = [float(line.split("time:{")[1].split("}")[0]) for line in asked]
    logs = write_logs(
        tmp_path / "in", [[seb(k, k + t, events=bracket(0, t)) for k, t in enumerate(seconds)]]
    )
    put(
        logs / "param.0",
        [f"{k} {line[line.index('TRACEBIGSIM') :]}" for k, line in enumerate(asked)],
    )
    report = run(logs, put(tmp_path / "known", known))
    predicted = open_logs(tmp_path / "out").sebs([0])["exec_time"]
    errors = np.abs(predicted - seconds) / seconds
    assert report.events[0].by_model == len(asked)
    assert np.median(errors) < 0.1
    assert report.events[0].new_s == pytest.approx(report.events[0].old_s, rel=0.05)
