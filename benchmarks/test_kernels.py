"""Micro-benchmarks of single kernels, by hand: `pytest benchmarks`.

Each says in its extra information how many units it works through in a second.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from benchmarks.forms import FORMS, text_of
from rewritelog import LogSet, open_logs
from rewritelog.arrays import Ints
from rewritelog.kernels import walk
from rewritelog.logs.blocks import LoadedBlock
from rewritelog.models.base import EventTimings
from rewritelog.models.exact_times import ExactTimes
from rewritelog.models.registry import load_model
from rewritelog.rewriting.dilations import DilationRules
from rewritelog.rewriting.counts import (
    EXAMPLES,
    RECORD,
    BlockCount,
    BlockRecords,
    BlockTotals,
    DurationSum,
)
from rewritelog.rewriting.kernels.patch import patch
from rewritelog.rewriting.kernels.remap import remap
from rewritelog.synthesis.synth import SynthOptions, synthesise
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
        synthesise(out, SynthOptions(pes=32, sebs=3400, files=1, order=order))
        made[order] = open_logs(out)
    return made


def _first_block(logs: LogSet) -> LoadedBlock:
    return next(iter(logs.blocks()))


@pytest.mark.parametrize("order", ORDERS)
def test_walk_and_tally(order: Order, log_sets: dict[Order, LogSet], measure: Measure) -> None:
    """Count what the SEBs hold, which is little more than finding them."""
    logs = log_sets[order]
    block = _first_block(logs)
    fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
    starts, ends, counts, _ = block.pieces
    measure(
        len(block.buffer),
        "bytes",
        lambda: walk.tally(block.buffer, starts, ends, counts, logs.layout.kernel, fault),
    )
    assert fault[walk.FAULT_CODE] == walk.OK


@pytest.mark.parametrize("named", [False, True], ids=["one factor", "factors by name"])
@pytest.mark.parametrize("order", ORDERS)
def test_patch(order: Order, named: bool, log_sets: dict[Order, LogSet], measure: Measure) -> None:
    """Rewrite a block by dilation; factors by name need a look-up for each SEB."""
    logs = log_sets[order]
    block = _first_block(logs)
    original = block.buffer.copy()
    by_name = (("AMPI_*", 0.9),) if named else ()
    dilation = DilationRules(0.5, by_name).for_block(block, logs.layout.kernel)
    begins = np.zeros(len(block.pes) + 1, dtype=np.int64)
    records = BlockRecords(begins, np.zeros(0, dtype=RECORD))

    def fresh() -> tuple[tuple[BlockTotals, Ints], dict[str, Any]]:
        block.buffer[:] = original
        sums = np.zeros((len(block.pes), len(DurationSum), 2))
        examples = np.zeros((len(BlockCount), EXAMPLES, 2), dtype=np.int64)
        counts = np.zeros(len(BlockCount), dtype=np.int64)
        return (BlockTotals(counts, sums, examples), np.zeros(walk.FAULT_SIZE, np.int64)), {}

    def job(totals: BlockTotals, fault: Ints) -> None:
        lay = logs.layout.kernel
        patch(block.buffer, block.pieces, lay, dilation, False, records, totals, fault)

    measure(len(original), "bytes", job, fresh)


@pytest.mark.parametrize("brackets", [0, 1, 10])
def test_remap(brackets: int, measure: Measure) -> None:
    """Map a million times, in rising order, by a SEB's regions."""
    draw = np.random.default_rng(1)
    regions = 2 * brackets + 1
    bounds = np.concatenate([[0.0], np.cumsum(draw.random(regions))])
    given = np.where(np.arange(regions) % 2, draw.random(regions), np.nan)
    times = np.sort(draw.random(1_000_000) * bounds[-1])
    measure(len(times), "times", lambda: remap(times, bounds, given, 0.5))


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
