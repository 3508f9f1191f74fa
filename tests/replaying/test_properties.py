"""What holds for every program: against a slow replay, against bounds, and against itself."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import programs, written
from replays import replay
from slow_replay import SlowReplay

from rewritelog import open_logs
from rewritelog.commands.durations import RewriteOptions
from rewritelog.commands.runs import ReplayOptions
from rewritelog.replaying.lost_cycles import IDLE, lost_cycles
from rewritelog.replaying.network import Network
from rewritelog.replaying.replay import Prepared, ReplayedRun, prepare, replay_workload, run_time
from rewritelog.rewriting.run import rewrite

Program = tuple[list[list[dict[str, Any]]], int]

NETWORKS = (
    Network(),
    Network(node_latency=0.375),
    Network(latency=0.25, bandwidth=4096.0),
    Network(latency=0.0, cost_per_packet=0.125, packet_size=1000.0, node_latency=0.125),
)

networks = st.sampled_from(NETWORKS)


def outcome_of(prepared: Prepared, network: Network, dilation: float | None = None) -> ReplayedRun:
    return replay_workload(prepared.workload, prepared.case(network, dilation))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def prepared(folder: Path, program: Program, *, dilates: bool = False) -> tuple[Path, Prepared]:
    logs = written(folder / "logs", program)
    return logs, prepare(logs, RewriteOptions(jobs=1), dilates=dilates)


@given(program=programs(), network=networks)
def test_it_is_the_slow_replay(folder: Path, program: Program, network: Network) -> None:
    logs, loaded = prepared(folder, program)
    slow, fast = SlowReplay.of(logs, network), outcome_of(loaded, network)
    ran = [seb.ran for seb in slow.sebs]
    assert np.isfinite(fast.times.ready_s).tolist() == ran
    for times_s, field in ((fast.times.start_s, "start"), (fast.times.end_s, "end")):
        known = [getattr(seb, field) for seb in slow.sebs]
        np.testing.assert_array_equal(times_s, known)
    assert fast.predicted_s == slow.run_time
    assert run_time(loaded.workload, loaded.case(network)).predicted_s == fast.predicted_s


@given(program=programs(), network=networks)
def test_categories_are_those_of_their_definitions_and_add_up(
    folder: Path, program: Program, network: Network
) -> None:
    logs, loaded = prepared(folder, program)
    slow = SlowReplay.of(logs, network)
    lost = lost_cycles(outcome_of(loaded, network), ranges=100)
    pe_seconds = lost.pes * lost.predicted_s
    assert math.isclose(float(lost.seconds.sum()), pe_seconds, rel_tol=1e-12, abs_tol=1e-300)
    for row in lost.seconds:
        total = float(row.sum())
        assert math.isclose(total, lost.predicted_s, rel_tol=1e-12, abs_tol=1e-300)
    assert (lost.seconds >= 0).all()
    expected = slow.categories()
    for category in IDLE:
        idle_s = lost.totals_s[category]
        assert math.isclose(idle_s, expected[category], rel_tol=1e-9, abs_tol=1e-9 * pe_seconds)
    busy = sum(value for name, value in lost.totals_s.items() if name not in IDLE)
    assert math.isclose(busy, expected["busy"], rel_tol=1e-9, abs_tol=1e-9 * pe_seconds)


def scaled(network: Network, k: float) -> Network:
    bandwidth = network.bandwidth
    return Network(
        None if network.latency is None else network.latency * k,
        None if bandwidth is None else bandwidth / k,
        network.cost_per_packet * k,
        network.packet_size,
        network.node_latency * k,
    )


@given(
    program=programs(exact=True),
    network=st.sampled_from(NETWORKS[2:]),
    k=st.sampled_from([0.5, 2.0, 8.0]),
)
def test_powers_of_two_scale_the_answer_exactly(
    folder: Path, program: Program, network: Network, k: float
) -> None:
    _, loaded = prepared(folder, program, dilates=True)
    plain = outcome_of(loaded, network, 1.0).predicted_s
    assert outcome_of(loaded, scaled(network, k), k).predicted_s == plain * k


@given(program=programs(), network=st.sampled_from(NETWORKS[2:]), k=st.floats(0.1, 20))
def test_any_factor_scales_the_answer(
    folder: Path, program: Program, network: Network, k: float
) -> None:
    _, loaded = prepared(folder, program, dilates=True)
    plain = outcome_of(loaded, network, 1.0)
    if _has_near_ties(plain):
        return  # rounding may decide otherwise which of two SEBs goes first
    scaled_s = outcome_of(loaded, scaled(network, k), k).predicted_s
    assert math.isclose(scaled_s, plain.predicted_s * k, rel_tol=1e-9)


def _has_near_ties(outcome: ReplayedRun) -> bool:
    ready = np.sort(outcome.times.ready_s[outcome.times.order])
    return bool((np.diff(ready) <= 1e-12 * max(outcome.predicted_s, 1e-300)).any())


@given(program=programs(all_run=True))
def test_the_answer_is_at_least_the_longest_chain_and_the_busiest_pe(
    folder: Path, program: Program
) -> None:
    logs, loaded = prepared(folder, program)
    free = Network(latency=0.0)
    outcome = outcome_of(loaded, free)
    slow = SlowReplay.of(logs, free)
    assert all(seb.ran for seb in slow.sebs)
    busiest = max(sum(seb.duration for seb in line) for line in slow.timelines)
    longest = _longest_chain(slow)
    assert outcome.predicted_s >= max(busiest, longest) * (1 - 1e-12)
    if np.array_equal(outcome.times.start_s, outcome.times.ready_s):
        assert math.isclose(outcome.predicted_s, longest, rel_tol=1e-12, abs_tol=1e-300)


def _longest_chain(slow: SlowReplay) -> float:
    """The end of the last SEB were there a PE for each."""
    end: dict[tuple[int, int], float] = {}
    for seb in sorted(slow.sebs, key=lambda ran: ran.order):
        begin = 0.0
        for _, _, _, source, left in seb.inputs:
            begin = max(begin, end[source.pe, source.index] - (source.end - left))
        end[seb.pe, seb.index] = begin + seb.duration
    return max(end.values(), default=0.0)


@pytest.mark.long
@given(program=programs(), network=st.sampled_from([NETWORKS[0], NETWORKS[2]]))
def test_the_replay_of_a_replayed_log_is_the_same_log(
    folder: Path, program: Program, network: Network
) -> None:
    logs, loaded = prepared(folder, program)
    once = outcome_of(loaded, network)
    if _has_receivers_of_different_delays(once):
        return
    out, again = folder / "once", folder / "again"
    into = ReplayOptions(force=True, no_flush=True, jobs=1, gains=0, write=out)
    replay(logs, network, into)
    replay(out, Network(), replace(into, write=again))
    for table in ("sebs", "messages"):
        _assert_same(getattr(open_logs(out), table)(), getattr(open_logs(again), table)())
    sebs = open_logs(out).sebs()
    for pe in np.unique(sebs["pe"]):
        mine = sebs[(sebs["pe"] == pe) & (sebs["end_time"] > sebs["start_time"])]
        mine = np.sort(mine, order="start_time")
        assert (mine["start_time"][1:] >= mine["end_time"][:-1]).all()


def _has_receivers_of_different_delays(outcome: ReplayedRun) -> bool:
    sebs, messages = outcome.workload.sebs, outcome.workload.messages
    workers = outcome.workload.workers
    sender = np.repeat(np.arange(len(sebs.pe)), np.diff(sebs.first_message))
    for k, seb in enumerate(sender):
        pe = int(sebs.pe[seb])
        to = sebs.pe[
            messages.receivers[messages.first_receiver[k] : messages.first_receiver[k + 1]]
        ]
        if len({0 if p == pe else 1 if p // workers == pe // workers else 2 for p in to}) > 1:
            return True
    return False


def _assert_same(a: Any, b: Any) -> None:
    for name in a.dtype.names:
        if a.dtype[name].kind == "f":
            np.testing.assert_allclose(a[name], b[name], rtol=1e-9, atol=1e-9, err_msg=name)
        else:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)


@pytest.mark.long
@given(program=programs(all_run=True), longer=st.floats(1, 3), data=st.data())
def test_a_longer_seb_never_makes_a_chain_shorter(
    folder: Path, program: Program, longer: float, data: st.DataObject
) -> None:
    timelines, _ = program
    chain = [seb for seb in timelines[0] if not seb["messages"] or seb["msg_id"] < 0]
    for index, seb in enumerate(chain):
        seb |= {
            "backward": [index - 1] if index else [],
            "recv_time": -1.0 if index else 0.0,
            "src_pe": -1,
            "msg_id": -1,
            "messages": [],
        }
    if not chain:
        return
    plain = replay(written(folder / "logs", ([chain], 1))).predicted_s
    seb = data.draw(st.sampled_from(chain))
    seb["exec_time"] *= longer
    seb["end_time"] = seb["start_time"] + seb["exec_time"]
    assert replay(written(folder / "logs", ([chain], 1))).predicted_s >= plain


def test_a_set_rewritten_with_a_dilation_replays_scaled(log_set: Path, tmp_path: Path) -> None:
    free = Network(latency=0.0)
    rewrite(log_set, tmp_path / "out", RewriteOptions(dilation=2.0, no_flush=True))
    before = replay(log_set, free, ReplayOptions(gains=0)).predicted_s
    after = replay(tmp_path / "out", free, ReplayOptions(gains=0)).predicted_s
    assert math.isclose(after, 2 * before, rel_tol=1e-9)
    doubled = ReplayOptions(dilation=2.0, gains=0)
    assert math.isclose(replay(log_set, free, doubled).predicted_s, after, rel_tol=1e-9)


def test_every_seb_of_a_real_set_runs(log_set: Path) -> None:
    report = replay(log_set, options=ReplayOptions(gains=0))
    assert report.blocked.count == 0
    assert report.warnings == ()
    assert 0 < report.predicted_s <= report.recorded_s
    pe_seconds = report.pes * report.predicted_s
    assert math.isclose(sum(report.lost.totals_s.values()), pe_seconds, rel_tol=1e-12)
    path = report.path
    length = sum(path.by_name_s.values()) + sum(share.seconds for share in path.messages)
    assert math.isclose(length, report.predicted_s, rel_tol=1e-12)
