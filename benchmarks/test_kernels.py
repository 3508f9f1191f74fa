"""Micro-benchmarks of single kernels, by hand: `pytest benchmarks`.

Each says in its extra information how many units it works through in a second.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import rewritelog
from benchmarks.forms import FORMS, text_of
from rewritelog import LogSet, open_logs
from rewritelog.arrays import Floats
from rewritelog.commands.durations import DilationRules
from rewritelog.core import core
from rewritelog.formats.bgtrace.blocks import LoadedBlock, plan_blocks
from rewritelog.formats.bgtrace.records import records_of
from rewritelog.models.base import EventTimings
from rewritelog.models.exact_matches import ExactTimes
from rewritelog.models.registry import load_model
from rewritelog.rewriting.block import patch
from rewritelog.rewriting.predicting import dilations_of
from rewritelog.rewriting.statistics import DurationSum
from tracebigsim.lines import scan

ROUNDS = 15
TEXT_BYTES = 8 << 20
Order = Literal["little", "big"]
ORDERS: tuple[Order, ...] = ("little", "big")
Measure = Callable[..., None]


@pytest.fixture
def measure(benchmark: Any) -> Measure:
    """Return what times a job; `before` gives the arguments of each round, outside of the time."""

    def timed(units: float, unit: str, job: Callable[..., Any], before: Any = None) -> None:
        benchmark.pedantic(job, setup=before, rounds=ROUNDS, warmup_rounds=1)
        benchmark.extra_info[f"million {unit}/s"] = units / 1e6 / benchmark.stats["median"]

    return timed


@pytest.fixture(scope="session")
def log_sets(tmp_path_factory: pytest.TempPathFactory) -> dict[Order, LogSet]:
    """Return two made log sets that differ in their byte order only."""
    folder = tmp_path_factory.mktemp("logs")
    made = {}
    for order in ORDERS:
        out: Path = folder / order
        rewritelog.synth(out, pes=32, sebs=3400, files=1, byte_order=order)
        made[order] = open_logs(out)
    return made


def _first_block(logs: LogSet) -> LoadedBlock:
    return next(logs.load(plan_blocks(logs.files[0])))


@pytest.mark.parametrize("order", ORDERS)
def test_walk(order: Order, log_sets: dict[Order, LogSet], measure: Measure) -> None:
    """Find all records of a block."""
    block = _first_block(log_sets[order])
    measure(len(block.buffer), "bytes", lambda: records_of(block))


@pytest.mark.parametrize("named", [False, True], ids=["one factor", "factors by name"])
@pytest.mark.parametrize("order", ORDERS)
def test_patch(order: Order, named: bool, log_sets: dict[Order, LogSet], measure: Measure) -> None:
    """Rewrite a block by dilation; factors by name need a look-up for each SEB."""
    block = _first_block(log_sets[order])
    original = block.buffer.copy()
    rules = DilationRules(0.5, (("AMPI_*", 0.9),) if named else ())
    records = np.zeros(0, dtype=core.structs["param_record"])

    def fresh() -> tuple[tuple[Floats], dict[str, Any]]:
        block.buffer[:] = original
        return (np.zeros((len(block.pes), len(DurationSum), 2)),), {}

    def job(sums: Floats) -> None:
        factors, _ = dilations_of(rules, block)
        patch(block, records, factors, sums, keep_recv=False)

    measure(len(original), "bytes", job, fresh)


@pytest.mark.parametrize("form", FORMS)
def test_scan(form: str, measure: Measure) -> None:
    """Read text in each form of the grammar."""
    text = text_of(form, TEXT_BYTES)
    measure(len(text), "bytes", lambda: scan(text))


def _samples(rows: int, distinct: int) -> EventTimings:
    draw = np.random.default_rng(1)
    params = draw.integers(0, distinct, (rows, 4)).astype(np.float64)
    return EventTimings("k", params, params @ [1.0, 2.0, 3.0, 4.0] + draw.random(rows))


def test_exact_look_ups(measure: Measure) -> None:
    """Look up a million rows among 100,000 timed parameter sets."""
    exact = ExactTimes.from_timings(_samples(100_000, 1000))
    asked = np.tile(exact.rows, (10, 1))
    measure(len(asked), "rows", lambda: exact.find(asked))


def test_grouping_of_exact_samples(measure: Measure) -> None:
    """Group a million samples of some 160,000 parameter sets."""
    samples = _samples(1_000_000, 20)
    measure(len(samples.seconds), "rows", lambda: ExactTimes.from_timings(samples))


def test_least_squares(measure: Measure) -> None:
    """Fit to half a million samples of 4 parameters."""
    samples = _samples(500_000, 1000)
    model = load_model("least-squares", {"basis": "quadratic"})
    measure(len(samples.seconds), "rows", lambda: model.fit((samples,)))
