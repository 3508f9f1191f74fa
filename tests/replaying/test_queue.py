"""The replay's queue: in order like a plain heap, in steps of any size, and in linear work."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from growth import Job, check_growth
from hypothesis import given, settings
from hypothesis import strategies as st

from rewritelog.arrays import Floats
from rewritelog.core import core
from rewritelog.replaying import replay as simulating
from rewritelog.replaying.network import Network
from rewritelog.replaying.replay import Case, replay_workload, run_time
from rewritelog.replaying.workload import (
    Messages,
    Sebs,
    Seconds,
    Workload,
    grouped,
)

STEPS = st.one_of(
    st.sampled_from([0.0, 0.25, 1.0, 1e-300, 1e300]),
    st.floats(0, 1e3, allow_nan=False),
    st.floats(0, 1e-12, allow_nan=False),
)


def tree(senders: list[int], transits_s: Floats) -> Workload:
    """SEBs without duration, each on a PE of its own and started by a message of an earlier one.

    SEB k + 1 is started by message k, which `senders[k]` sends.
    """
    count, sent = len(senders) + 1, len(senders)
    order = np.argsort(senders, kind="stable").astype(np.int32)
    starter = np.full(count, -1, dtype=np.int32)
    starter[1 + order] = np.arange(sent)
    links = np.zeros(count + 1, dtype=core.structs["seb_links"])
    links["first_message"][1:] = np.cumsum(np.bincount(senders, minlength=count))
    first, receivers = grouped(starter[1:], np.arange(1, count, dtype=np.int32), sent)
    sebs = Sebs(
        name=np.zeros(count, dtype=np.int32),
        pe=np.arange(count, dtype=np.int32),
        starter=starter,
        inputs=(starter >= 0).astype(np.int32),
        links=links,
        waiting=np.empty(0, dtype=np.int32),
        first_of_pe=np.arange(count + 1, dtype=np.int32),
    )
    sizes = np.zeros(sent, dtype=np.int32)
    messages = Messages(sizes, sizes, first, receivers)
    seconds = Seconds(np.zeros(count), np.zeros(sent), transits_s[order])
    return Workload(sebs, (seconds,), messages, names=("seb",))


def case_of(workload: Workload) -> Case:
    return Case(Network(), workload.seconds[0])


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(data=st.data(), step=st.sampled_from([1, 2, 7, 1000]))
def test_it_gives_what_a_heap_gives(data: st.DataObject, step: int) -> None:
    """SEBs enter the queue at times from that of the last one on, while others are taken out."""
    transits_s = data.draw(st.lists(STEPS, max_size=120))
    senders = [data.draw(st.integers(max(0, k - 30), k)) for k in range(len(transits_s))]
    heap, expected = [(0.0, 0)], []
    while heap:
        now, seb = heapq.heappop(heap)
        expected.append((now, seb))
        for k, sender in enumerate(senders):
            if sender == seb:
                heapq.heappush(heap, (now + transits_s[k], k + 1))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(simulating, "_STEP", step)
        workload = tree(senders, np.array(transits_s))
        outcome = replay_workload(workload, case_of(workload))
    order = outcome.times.order
    assert list(zip(outcome.times.ready_s[order].tolist(), order.tolist(), strict=True)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["all at once", "chains", "far apart"])
def test_work_grows_with_the_sebs_and_not_faster(kind: str) -> None:
    def job_of(count: int) -> Job:
        draws = np.random.default_rng(1)
        transits_s = draws.exponential(1.0, count)
        senders = np.zeros(count, dtype=np.int64)
        if kind == "chains":
            senders = np.maximum(np.arange(count) - 100, 0)
        if kind == "far apart":
            transits_s **= 8
        workload = tree(senders.tolist(), transits_s)
        return lambda: run_time(workload, case_of(workload))

    check_growth(job_of, 1 << 12)
