"""Durations spread as measured ones are, decided by place alone, and intervals for their sums."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blocks import in_blocks
from commands import rewritelog
from logbuilder import bracket, seb, write_logs, write_params, write_timings

from rewritelog import open_logs
from rewritelog.commands.durations import RewriteOptions
from rewritelog.errors import ModelError, UsageError
from rewritelog.formats.bgtrace.blocks import BLOCK_BYTES
from rewritelog.rewriting.report import RewriteReport
from rewritelog.rewriting.run import rewrite
from rewritelog.text import percent_text

AUTO = "auto"
NOISE = 0.1


def noisy_timings(path: Path, events: int = 1, lines: int = 200, seed: int = 3) -> Path:
    """Times of 10 µs a unit of the parameter, off by a tenth."""
    draw = np.random.default_rng(seed)
    sizes = draw.integers(10, 100, (events, lines)).tolist()
    return write_timings(
        path,
        *[
            (f"event {k}", 1e-5 * size * draw.normal(1, NOISE), float(size))
            for k, row in enumerate(sizes)
            for size in row
        ],
    )


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Six timelines of forty SEBs, each with two brackets of one event and the same parameters."""
    two = [*bracket(0.1, 0.3), *bracket(0.4, 0.8)]
    timelines = [[seb(k, k + 1, events=two) for k in range(40)] for _ in range(6)]
    folder = write_logs(tmp_path / "in", timelines, files=2)
    for pe in range(6):
        write_params(folder, pe, *[(k, "event 0", 50) for k in range(40) for _ in range(2)])
    noisy_timings(tmp_path / "timings")
    return folder


def run(
    logs: Path, out: str | None = None, block_bytes: int = BLOCK_BYTES, **options: Any
) -> RewriteReport:
    settings: dict[str, Any] = {"spread": "residual", "timings": (logs.parent / "timings",)}
    settings |= {"force": True, **options}
    model = settings.pop("model", AUTO)
    opened = in_blocks(logs, block_bytes)
    return rewrite(opened, out and logs.parent / out, RewriteOptions(model=model, **settings))


def test_the_seed_is_on_record_if_none_is_given(logs: Path) -> None:
    report = run(logs, "out")
    assert report.to_json()["options"]["seed"] == 1
    provenance = json.loads((logs.parent / "out" / "rewritelog.json").read_text())
    assert provenance["options"]["seed"] == 1


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def brackets(folder: Path) -> np.ndarray:
    """The lengths of all brackets by PE, SEB and bracket, as the marks of the log bound them."""
    times = open_logs(folder).log_events()["r_time"].reshape(6, 40, 2, 2)
    return np.asarray(times[..., 1] - times[..., 0])


@pytest.mark.slow
def test_durations_lie_around_the_mean_as_the_timings_do(logs: Path) -> None:
    run(logs, "mean", spread="none")
    spread = run(logs, "spread")
    mean = brackets(logs.parent / "mean")
    assert np.ptp(mean) < 1e-9
    ratios = brackets(logs.parent / "spread") / mean
    assert ratios.mean() == pytest.approx(1, abs=0.02)
    assert ratios.std() == pytest.approx(NOISE, rel=0.2)
    assert len(np.unique(ratios.round(9))) > 100
    assert spread.events[0].new_s == pytest.approx(brackets(logs.parent / "spread").sum())
    assert spread.events[0].expected.seconds == pytest.approx(mean.sum())


@pytest.mark.slow
def test_the_draw_depends_on_seed_pe_seb_and_bracket_alone(logs: Path) -> None:
    run(logs, "one")
    run(logs, "two", seed=2)
    first, second = (brackets(logs.parent / name) for name in ("one", "two"))
    for axis in range(3):
        assert (np.diff(first, axis=axis) != 0).mean() > 0.9
    assert (first != second).mean() > 0.9
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.2

    for pe in (0, 1, 2, 4, 5):
        (logs / f"param.{pe}").unlink()
    (logs / "param.3").write_text(
        "".join(
            line
            for line in (logs / "param.3").read_text().splitlines(keepends=True)
            if int(line.split()[0]) % 3 == 0
        )
    )
    run(logs, "few")
    assert (brackets(logs.parent / "few")[3, ::3] == first[3, ::3]).all()


@pytest.mark.slow
def test_threads_and_blocks_change_no_byte(logs: Path) -> None:
    reports = set()
    written: dict[str, bytes] = {}
    for jobs, block_bytes in ((1, 1 << 24), (2, 20_000), (4, 1000), (3, 400)):
        report = run(logs, "out", jobs=jobs, block_bytes=block_bytes).to_json()
        reports.add(json.dumps(report | {"run": None}))
        written = written or contents(logs.parent / "out")
        assert contents(logs.parent / "out") == written
    assert len(reports) == 1


@pytest.mark.slow
def test_real_logs_get_another_length_for_each_bracket(sample_logs: Path, tmp_path: Path) -> None:
    cells = sample_logs / "cells"
    for spread in ("none", "residual"):
        options = RewriteOptions(model=AUTO, timings=(cells / "timings.txt",), spread=spread)
        report = rewrite(cells, tmp_path / spread, options)
    assert report.bracketed.interval_s is not None
    none, residual = (
        open_logs(tmp_path / name).sebs()["exec_time"] for name in ("none", "residual")
    )
    assert np.count_nonzero(none != residual) >= 79
    changed = residual[none != residual] / none[none != residual]
    assert 0.7 < changed.min() < changed.max() < 1.4


@pytest.mark.parametrize("model", ["constant", "rewritelog.models.constant:Constant"])
def test_a_model_without_residuals_is_refused(model: str, logs: Path) -> None:
    with pytest.raises(UsageError, match=r"has no residuals.*spread='residual'"):
        run(logs, "out", model=model, timings=None)
    assert not (logs.parent / "out").exists()


def test_an_event_without_residuals_is_said(logs: Path) -> None:
    write_timings(logs.parent / "timings", ("event 0", 0.05, 50.0), ("event 0", 0.05, 50.0))
    report = run(logs, "out")
    assert np.ptp(brackets(logs.parent / "out")) < 1e-9
    (line,) = report.events
    assert line.not_spread == 480
    assert any(
        "480 brackets (100 % of those predicted) not spread" in warning
        for warning in report.warnings
    )
    assert line.expected.interval_s is None


@pytest.mark.parametrize("options", [{"seed": -1}, {"seed": 2**64}])
def test_what_cannot_be_meant(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="seed must be an integer from 0 to"):
        RewriteOptions(model="constant", **options)


def test_the_command_line(logs: Path) -> None:
    run(logs, "wanted", seed=7)
    fit = ("--model", AUTO, "--timings", logs.parent / "timings")
    spread = ("--spread", "residual", "--seed=7")
    done = rewritelog("rewrite", logs, logs.parent / "out", *fit, *spread, "-v")
    assert done.returncode == 0, done.stderr
    assert contents(logs.parent / "out") == contents(logs.parent / "wanted")
    assert "± (90 %)" in done.stdout
    assert "  spread: residual, seed 7\n" in done.stdout


@pytest.mark.slow
def test_nine_in_ten_sums_lie_in_their_intervals(tmp_path: Path) -> None:
    """Many events with laws of their own; the brackets of the log have times off as the lines."""
    draw = np.random.default_rng(11)
    sizes = draw.integers(10, 100, (150, 25))
    lasting = 1e-5 * sizes * draw.normal(1, NOISE, sizes.shape)
    timelines = [
        [seb(k, k + t, events=bracket(0, t)) for k, t in enumerate(row)] for row in lasting.tolist()
    ]
    logs = write_logs(tmp_path / "in", timelines)
    for pe, row in enumerate(sizes.tolist()):
        write_params(logs, pe, *[(k, f"event {pe}", size) for k, size in enumerate(row)])
    noisy_timings(tmp_path / "timings", events=150, lines=40)
    report = run(logs, model="least-squares", model_options={"basis": "linear"}, spread="none")
    assert len(report.events) == 150
    inside = 0
    for line in report.events:
        low_s, high_s = line.expected.interval_s or (0, 0)
        assert low_s < line.new_s < high_s
        assert line.expected.seconds == pytest.approx(line.new_s, rel=1e-12)
        inside += low_s <= line.old_s <= high_s
    assert 0.83 <= inside / 150 <= 0.97
    low_s, high_s = report.bracketed.interval_s or (0, 0)
    assert low_s < lasting.sum() < high_s
    assert (high_s - low_s) / lasting.sum() < 0.02


def test_an_interval_is_made_of_single_and_common_errors(logs: Path) -> None:
    report = run(logs, spread="none", dilation=0.5)
    (line,) = report.events
    spread = report.fitted.spread("event 0", 1)
    assert spread is not None
    mean_s = line.new_s / 480
    reach_s = 1.6448536 * mean_s * np.sqrt(480 * spread.single**2 + (480 * spread.common) ** 2)
    assert line.expected.interval_s == pytest.approx((line.new_s - reach_s, line.new_s + reach_s))
    document = report.to_json()
    assert document["interval_level"] == 0.9
    assert document["events"][0]["low_s"] == pytest.approx(line.new_s - reach_s)
    assert document["bracketed"]["high_s"] == pytest.approx(line.new_s + reach_s)
    assert document["events"][0]["coverage"] == spread.coverage
    assert 0.8 < (spread.coverage or 0) <= 1


def test_an_error_that_is_unknown_for_an_event_is_said_to_be_unknown(logs: Path) -> None:
    """Without a word of it, a prediction from a single line looked like any other."""
    (logs / "param.5").unlink()
    write_params(logs, 5, *[(k, "once", 50) for k in range(40) for _ in range(2)])
    once = write_timings(logs.parent / "once", ("once", 0.1, 50.0))
    report = run(logs, spread="none", timings=(logs.parent / "timings", once))
    assert {line.event for line in report.events if line.expected.interval_s is None} == {"once"}
    assert "comes from the model (± unknown)," in " ".join(report.text().split())


def test_the_error_of_the_model_is_that_of_what_it_predicts(logs: Path) -> None:
    """Neither brackets of an event without a fit nor those without a record change it."""
    for pe in (2, 3, 4, 5):
        (logs / f"param.{pe}").unlink()
    write_params(logs, 5, *[(k, "never timed", 50) for k in range(40) for _ in range(2)])
    report = run(logs, spread="none")
    line, never = report.events
    assert never.expected.interval_s is None
    low_s, high_s = line.expected.interval_s or (0, 0)
    error = percent_text((high_s - low_s) / 2 / line.new_s, 1)
    assert f"comes from the model (±{error})," in " ".join(report.text().split())
    bracketed = report.to_json()["bracketed"]
    assert bracketed["high_s"] - bracketed["low_s"] == pytest.approx(high_s - low_s)


MODULE = """
from dataclasses import dataclass, field
import numpy as np
from rewritelog.models.base import ModelFit, Model, TotalSpread

FACTORS = {
    "good": lambda n: np.full(n, 2.0),
    "negative factor": lambda n: np.full(n, -1.0),
    "nan": lambda n: np.full(n, np.nan),
    "too many": lambda n: np.ones(n + 1),
}
SPREADS = {
    "good": TotalSpread(0.1, 0.0),
    "negative": TotalSpread(-0.1, 0.0),
    "infinite": TotalSpread(0.1, np.inf),
    "a number": 0.1,
}

@dataclass(frozen=True)
class Fitted(ModelFit):
    factors: str
    spread: str

    def predict(self, event, params):
        return np.ones(len(params))

    def drawn_factors(self, event, params, numbers):
        return FACTORS[self.factors](len(params))

    def total_spread(self, event, parameters):
        return SPREADS[self.spread]

class Spreading(Model):
    needs_timings = False

    @dataclass(frozen=True)
    class Options:
        factors: str = field(default="good", metadata={"help": "which factors"})
        spread: str = field(default="good", metadata={"help": "which spread"})

    def fit(self, timings):
        return Fitted(self.options.factors, self.options.spread)
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "code").mkdir()
    (tmp_path / "code/spreading_models.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path / "code")
    monkeypatch.delitem(sys.modules, "spreading_models", raising=False)
    return "spreading_models:Spreading"


def test_a_plug_in_spreads_by_what_it_answers(logs: Path, plugin: str) -> None:
    report = run(logs, "out", model=plugin, timings=None)
    assert brackets(logs.parent / "out") == pytest.approx(2)
    (line,) = report.events
    assert line.new_s == pytest.approx(960)
    reach_s = 1.6448536 * 0.1 * np.sqrt(480)
    assert line.expected.interval_s == pytest.approx((480 - reach_s, 480 + reach_s))


@pytest.mark.parametrize(
    "options",
    [
        {"factors": "negative factor"},
        {"factors": "nan"},
        {"factors": "too many"},
        {"spread": "negative"},
        {"spread": "infinite"},
        {"spread": "a number"},
    ],
)
def test_a_plug_in_that_answers_badly_leaves_nothing(
    options: dict[str, str], logs: Path, plugin: str
) -> None:
    with pytest.raises(ModelError, match=r"spreading_models:Spreading', event 'event 0'"):
        run(logs, "out", model=plugin, timings=None, model_options=options)
    assert not (logs.parent / "out").exists()


def test_total_through_the_command_decides_whether_interruptions_count(logs: Path) -> None:
    draw = np.random.default_rng(9)
    sizes = draw.integers(10, 100, 300)
    longer = np.where(draw.uniform(size=300) < 0.1, 6.0, 1.0)
    lines = [
        ("event 0", float(time), float(size))
        for size, time in zip(sizes, 1e-3 * sizes * longer, strict=True)
    ]
    write_timings(logs.parent / "timings", *lines)
    sums = {}
    for total in ("measured", "typical"):
        out = logs.parent / total
        options = ("--timings", logs.parent / "timings", "--total", total)
        assert rewritelog("rewrite", logs, out, *options).returncode == 0
        sums[total] = brackets(out).sum()
    assert sums["typical"] == pytest.approx(480 * 0.05, rel=0.02)
    assert sums["measured"] / sums["typical"] == pytest.approx(longer.mean(), rel=0.15)
