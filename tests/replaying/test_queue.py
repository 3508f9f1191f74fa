"""The replay's queue: in order like a plain heap, and in work that grows with the SEBs."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewritelog.replaying.kernels import queue as queues
from rewritelog.replaying.kernels import replay as kernel
from rewritelog.replaying.kernels.queue import IN_HEAP, Queue, add, drop_first, refill
from rewritelog.replaying.network import Network
from rewritelog.replaying.prepare import prepare
from rewritelog.replaying.simulate import run_time
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.synthesis.synth import SynthOptions, synthesise

STEPS = st.one_of(
    st.sampled_from([0.0, 0.25, 1.0, 1e-300, 1e300, math.inf]),
    st.floats(0, 1e3, allow_nan=False),
    st.floats(0, 1e-12, allow_nan=False),
)


@settings(max_examples=60, deadline=None)
@given(batches=st.lists(st.lists(STEPS, max_size=12), max_size=25), size=st.integers(1, 8))
def test_it_gives_what_a_heap_gives(batches: list[list[float]], size: int) -> None:
    """Batches are added at times from the last one on, with a few taken out in between."""
    ids = iter(np.random.default_rng(1).permutation(sum(map(len, batches))).tolist())
    queue = Queue.of(sum(map(len, batches)))
    heap: list[tuple[float, int]] = []
    now = 0.0
    with np.errstate(all="ignore"):
        for batch in batches:
            for step in batch:
                seb = next(ids)
                add(queue, np.float64(now + step), seb)
                heapq.heappush(heap, (now + step, seb))
            for _ in range(min(size, len(heap))):
                now = taken(queue, heapq.heappop(heap))
        while heap:
            taken(queue, heapq.heappop(heap))
        assert not refill(queue)


def taken(queue: Queue, expected: tuple[float, int]) -> float:
    assert refill(queue)
    assert (queue.heap_times[0], queue.heap_sebs[0]) == expected
    drop_first(queue.heap_times, queue.heap_sebs, int(queue.numbers[IN_HEAP]))
    queue.numbers[IN_HEAP] -= 1
    return expected[0]


def work(folder: Path, sebs: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the uncompiled kernel calls what it does for each SEB."""
    synthesise(folder, SynthOptions(pes=16, sebs=sebs, timings=0))
    prepared = prepare(folder, RewriteOptions())
    counts: Counter[str] = Counter()

    def count(patched: pytest.MonkeyPatch, module: Any, name: str) -> None:
        plain = getattr(module, name)

        def call(*args: Any) -> Any:
            counts[name] += 1
            return plain(*args)

        patched.setattr(module, name, call)

    with monkeypatch.context() as patched:
        patched.setenv("TRACEBIGSIM_KERNELS", "plain")
        for module, name in (
            (kernel, "deliver"),
            (kernel, "arrive"),
            (queues, "comes_before"),
            (queues, "add_to_bucket"),
        ):
            count(patched, module, name)
        run_time(prepared.workload, prepared.case(Network()))
    counts["sebs"] = prepared.workload.sebs
    counts["links"] = prepared.workload.messages + int(
        prepared.workload.program.dependents.first[-1]
    )
    return counts


@pytest.mark.slow
def test_work_grows_with_the_sebs_and_not_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = work(tmp_path / "small", 30, monkeypatch)
    large = work(tmp_path / "large", 180, monkeypatch)
    for counts in (small, large):
        assert counts["deliver"] == counts["sebs"]
        assert counts["arrive"] <= counts["links"] + counts["sebs"]
        assert counts["add_to_bucket"] <= 2 * counts["sebs"]
    ratio = large["sebs"] / small["sebs"]
    assert ratio > 5
    for name in ("comes_before", "add_to_bucket"):
        assert large[name] <= 1.5 * ratio * small[name], name
