"""Replays of Chakra traces, with times worked out by hand."""

import json
import re
import shutil
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chakrabuilder import COLL, RECV, SEND, node, unpacked, write_traces
from commands import rewritelog as run
from oracle import SAMPLE_LOGS
from replays import replay

import rewritelog
from rewritelog.commands.runs import ReplayOptions
from rewritelog.errors import UsageError
from rewritelog.formats.traces import Traces
from rewritelog.replaying.network import Network
from rewritelog.replaying.replay import prepare, replay_workload
from rewritelog.replaying.report import ReplayReport
from rewritelog.replaying.run import replay_whole
from rewritelog.viewing.timeline import Run, timeline_view

CPU = {"is_cpu_op": ("bool", True), "tid": ("int64", 1)}
NETWORK = Network(latency=1e-6, bandwidth=1e9)


def gpu(stream: int = 7, **numbers: int) -> dict[str, tuple[str, object]]:
    gpu_op: dict[str, tuple[str, object]] = {"is_cpu_op": ("bool", False)}
    return {**gpu_op, "stream": ("int64", stream), **{k: ("int64", v) for k, v in numbers.items()}}


def traces_of(tmp_path: Path, ranks: Iterable[Iterable[bytes]]) -> Traces:
    traces = rewritelog.open_traces(write_traces(tmp_path / "t", ranks))
    assert isinstance(traces, Traces)
    return traces


def replayed(
    tmp_path: Path, ranks: Iterable[Iterable[bytes]], network: Network | None = None
) -> ReplayReport:
    return replay(traces_of(tmp_path, ranks), network)


def starts(report: ReplayReport, rank: int = 0) -> list[float]:
    assert isinstance(report.logs, Traces)
    prepared = prepare(report.logs, ReplayOptions(), recorded=report.network.recorded)
    run, nodes = (
        replay_workload(prepared.workload, prepared.case(report.network)),
        prepared.workload.nodes,
    )
    assert nodes is not None
    ends = [*nodes.first.values(), len(nodes.seb)]
    times = run.times.start_s[nodes.seb[ends[rank] : ends[rank + 1]]]
    return [round(1e6 * start_s, 6) for start_s in times.tolist()]


def test_lanes_run_beside_each_other_and_each_in_order(tmp_path: Path) -> None:
    nodes = [
        node(1, "launch", 5, attributes=CPU),
        node(2, "a", 20, deps=[1], attributes=gpu(7)),
        node(3, "launch", 5, deps=[1], attributes=CPU),
        node(4, "b", 20, deps=[3], attributes=gpu(7)),
        node(5, "c", 3, deps=[3], attributes=gpu(8)),
    ]
    report = replayed(tmp_path, [nodes])
    assert report.notes == ("utilisation is that of 3 threads and streams",)
    assert starts(report) == [0, 5, 5, 25, 10]
    assert report.predicted_s == pytest.approx(45e-6)
    assert report.path.by_name_s == pytest.approx({"a": 20e-6, "b": 20e-6, "launch": 5e-6})
    gains = {gain.name: gain.gain_s for gain in report.gains}
    assert gains == pytest.approx({"a": 15e-6, "b": 20e-6, "c": 0, "launch": 5e-6})


def test_threads_that_are_numbered_by_address_run_beside_each_other(tmp_path: Path) -> None:
    """All above 2³¹ were one thread, with that number."""
    tids = [140_000_000_000_000 + k for k in range(3)]
    nodes = [
        node(k, duration=10, attributes=CPU | {"tid": ("int64", tid)})
        for k, tid in enumerate(tids, 1)
    ]
    traces = traces_of(tmp_path, [nodes])
    assert starts(replay(traces, None)) == [0, 0, 0]
    assert [*rewritelog.info(traces).to_json()["lanes"]] == [f"CPU thread {tid}" for tid in tids]


def test_the_lowest_id_of_the_nodes_that_are_ready_is_next(tmp_path: Path) -> None:
    """It was the one that had become ready first, unlike in ASTRA-sim."""
    nodes = [
        node(1, "launch", 2, attributes=CPU),
        node(2, "launch", 5, deps=[1], attributes=CPU),
        node(3, "busy", 10, attributes=gpu()),
        node(4, "a", 3, deps=[2], attributes=gpu()),
        node(5, "b", 4, deps=[1], attributes=gpu()),
        node(6, "idle since", 1, deps=[4], attributes=gpu(8)),
    ]
    assert starts(replayed(tmp_path, [nodes])) == [0, 2, 0, 10, 13, 13]


def test_a_node_that_becomes_ready_as_its_stream_becomes_free_is_one_of_them(
    tmp_path: Path,
) -> None:
    nodes = [
        node(1, "launch", 10, attributes=CPU),
        node(2, "a", 3, deps=[1], attributes=gpu()),
        node(3, "busy", 10, attributes=gpu(7)),
        node(4, "b", 4, attributes=gpu(8)),
        node(5, "c", 4, deps=[4], attributes=gpu(7)),
    ]
    assert starts(replayed(tmp_path, [nodes])) == [0, 10, 0, 0, 13]


@pytest.mark.parametrize("factor", [1.0, 0.1, 0.7])
def test_nodes_are_ready_at_the_same_time_in_spite_of_rounding(
    factor: float, tmp_path: Path
) -> None:
    """In seconds 10 + 20 µs were more than 30 µs: D ran after E, and F 100 µs too late."""
    nodes = [
        node(1, "A", 10, attributes=gpu(7)),
        node(2, "B", 20, deps=[1], attributes=gpu(7)),
        node(3, "C", 30, attributes=gpu(8)),
        node(4, "D", 10, deps=[2], attributes=gpu(9)),
        node(5, "E", 100, deps=[3], attributes=gpu(9)),
        node(6, "F", 1000, deps=[4], attributes=gpu(7)),
    ]
    traces = traces_of(tmp_path, [nodes])
    report = replay(traces, options=ReplayOptions(dilation=factor))
    assert report.predicted_s == pytest.approx(1040e-6 * factor, rel=1e-12)
    us = {"F": 1000, "B": 20, "A": 10, "D": 10}
    assert report.path.by_name_s == pytest.approx({n: 1e-6 * factor * us[n] for n in us})
    swept = rewritelog.sweep(traces, {"dilation": [factor]})
    assert swept.points[0].predicted_s == report.predicted_s


def test_a_real_step_takes_as_long_as_in_astra_sim(tmp_path: Path) -> None:
    """297,046 and 593,827 µs there, on two NPUs by its network of 50 GB/s and 500 ns."""
    path = next(unpacked("feeder_tests_trace.tar.gz", tmp_path).rglob("*.et"))
    network = ("--latency", "500ns", "--bandwidth", "50GiB/s")
    for dilation, us in (("1", 297_046), ("2", 593_827)):
        done = run("replay", path, *network, "--dilation", dilation, "--json")
        assert json.loads(done.stdout)["predicted_s"] == pytest.approx(1e-6 * us, rel=1e-9)


def test_dependencies_may_name_later_nodes(tmp_path: Path) -> None:
    nodes = [node(1, deps=[2], attributes=gpu()), node(2, duration=4, attributes=gpu())]
    assert starts(replayed(tmp_path, [nodes])) == [4, 0]


def test_cycles_never_run_and_missing_nodes_are_not_waited_for(tmp_path: Path) -> None:
    nodes = [node(1, deps=[2]), node(2, deps=[1]), node(3, duration=7, deps=[99])]
    report = replayed(tmp_path, [[*nodes, node(4, duration=9, deps=[4])]])
    assert report.predicted_s == pytest.approx(7e-6)
    assert report.blocked.count == 3
    assert len(report.warnings) == 2


def test_control_dependencies_are_waited_for_unless_some_are_on_missing_nodes(
    tmp_path: Path,
) -> None:
    """They were ignored; ASTRA-sim follows them, and refuses traces in which a node is missing."""
    nodes = [
        node(1, duration=5),
        node(2, duration=3, control=[1], attributes=gpu()),
        node(3, duration=2, control=[1, 2], deps=[1], attributes=gpu(8)),
    ]
    report = replayed(tmp_path / "whole", [nodes])
    assert starts(report) == [0, 5, 8]
    assert report.warnings == ()
    report = replayed(tmp_path / "cut", [[*nodes, node(4, duration=1, control=[7, 3])], nodes])
    assert starts(report) == [0, 0, 5, 5]
    assert starts(report, 1) == [0, 0, 5]
    (warning,) = report.warnings
    assert warning.startswith("8 control dependencies ignored: 1 is on nodes that are not there")


def test_kernels_that_nothing_waits_for_are_told_where_a_host_might(tmp_path: Path) -> None:
    device = {"is_cpu_op": ("bool", False), "stream": ("int64", 7)}
    kernels = [node(k, attributes=device, deps=[k - 10]) for k in range(11, 21)]
    launches = [node(k, attributes={"is_cpu_op": ("bool", True)}) for k in range(1, 11)]
    report = rewritelog.rewrite(write_traces(tmp_path / "t", [launches + kernels]), None, speedup=2)
    (warning,) = [warning for warning in report.warnings if "nothing depends" in warning]
    assert "10 of 10 nodes on devices: unless they end last" in warning
    waiting = node(21, attributes={"is_cpu_op": ("bool", True)}, deps=range(11, 17))
    traces = write_traces(tmp_path / "waited", [[*launches, *kernels, waiting]])
    assert not any("nothing depends" in warning for warning in rewritelog.replay(traces).warnings)


def test_a_node_that_never_runs_is_named_by_its_place_in_its_file(tmp_path: Path) -> None:
    """It was that on its stream, which `check` and others do not know."""
    waits = node(3, "late", deps=[3], attributes=gpu(8))
    ranks = [[], [node(1, attributes=CPU), node(2, attributes=gpu(7)), waits]]
    report = replayed(tmp_path, ranks)
    assert "node 2 of rank 1 (late): is in a cycle" in " ".join(report.text().split())
    assert (report.blocked.examples[0].pe, report.blocked.examples[0].seb) == (1, 2)


def test_a_page_names_nodes_by_their_places_in_their_files(tmp_path: Path) -> None:
    """It named them by their places on their streams, unlike the report below and `timeline`."""
    pytest.importorskip("bokeh")
    nodes = [node(k, f"k{k}", 5, deps=[k - 1], attributes=gpu(7 + k % 2)) for k in range(1, 5)]
    page = tmp_path / "page.html"
    traces = write_traces(tmp_path / "t", [[node(1, "short", 1)], nodes])
    assert run("replay", traces, "--html", page, "-q").returncode == 0
    assert '["seb",[0,1,2,3]],["name",["k1","k2","k3","k4"]]' in page.read_text()
    assert '["pe",["rank 1 stream 8"]]' in page.read_text()
    opened = rewritelog.open_traces(traces)
    outcome = replay_whole(opened, Network(), ReplayOptions()).outcome
    bars = timeline_view([Run.replayed(opened, outcome)]).panels[0].bars
    assert bars is not None
    assert sorted(zip(bars.start_s.round(6).tolist(), bars.seb.tolist(), strict=True)) == [
        (0, 0), (0, 0), (5e-6, 1), (1e-5, 2), (1.5e-5, 3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "ranks", "steps", "share"),
    [
        (0, 4, 6, 4),
        (2, 4, 3, 1),
        (6, 4, 3, 4),
        (7, 4, 3, 4),
        (8, 4, 3, 4),
        (5, 5, 3, 1),
        (1, 4, 2, 1),
        (9, 4, 2, np.inf),
    ],
)
def test_collectives_start_when_all_ranks_are_ready(
    tmp_path: Path, kind: int, ranks: int, steps: int, share: int
) -> None:
    size = 4000
    collective = gpu(9, comm_type=kind, comm_size=size)
    programs = [
        [
            node(1, "work", 10 * (rank + 1), attributes=gpu()),
            node(2, "all", 1, kind=COLL, deps=[1], attributes=collective),
            node(3, "more", 2, deps=[2], attributes=gpu()),
        ]
        for rank in range(ranks)
    ]
    report = replayed(tmp_path, programs, NETWORK)
    took = steps * (1 + size / share / 1000)
    assert starts(report)[1:] == pytest.approx([10 * ranks, 10 * ranks + took])
    assert report.predicted_s == pytest.approx(1e-6 * (10 * ranks + took + 2))
    assert report.communication_s == pytest.approx(1e-6 * took)


def test_without_a_network_the_recorded_wait_for_the_last_rank_counts_once(tmp_path: Path) -> None:
    """Collectives took their longest recorded time, after a wait that it includes: 210 µs."""
    programs = [
        [
            node(1, "work", work, attributes=gpu()),
            node(2, "all", 120 - work, kind=COLL, deps=[1], attributes=gpu()),
        ]
        for work in (100, 10)
    ]
    report = replayed(tmp_path, programs)
    assert report.predicted_s == pytest.approx(120e-6)
    gains = {gain.name: gain.gain_s for gain in report.gains}
    assert gains == pytest.approx({"work": 100e-6, "all": 20e-6})


@pytest.mark.parametrize(("recorded", "took"), [((0, 9), 9), ((9, 0, 5), 5), ((0, 0), 0)])
def test_a_rank_that_was_not_timed_makes_no_collective_free(
    tmp_path: Path, recorded: tuple[int, ...], took: float
) -> None:
    programs = [[node(1, "all", d, kind=COLL, attributes=gpu())] for d in recorded]
    assert replayed(tmp_path, programs).predicted_s == pytest.approx(1e-6 * took)


def test_communication_without_recorded_times_needs_a_network(tmp_path: Path) -> None:
    """Synthetic traces have none, and were predicted without communication and without a word."""
    ranks = [
        [
            node(1, "work", 10, attributes=gpu()),
            node(2, "m", sent, kind=kind, deps=[1], attributes=gpu(**{end: other})),
            node(3, "all", 0, kind=COLL, deps=[2], attributes=gpu(comm_size=4000)),
        ]
        for kind, sent, end, other in ((SEND, 0, "comm_dst", 1), (RECV, 9, "comm_src", 0))
    ]
    traces = write_traces(tmp_path / "t", ranks)
    warning = "communication takes no time, since none is recorded: give {}latency and {}bandwidth"
    for done in (run("replay", traces), run("rewrite", traces, tmp_path / "o", "--dilation", "2")):
        assert warning.format("--", "--") in " ".join(done.stderr.split())
    opened = rewritelog.open_traces(traces)
    assert rewritelog.sweep(opened, {"dilation": [1]}).warnings == (warning.format("", ""),)
    assert replay(opened, NETWORK).warnings == ()
    received = [[node(1, "r", 9, kind=RECV, attributes=gpu(comm_src=1))], ranks[0][:1]]
    (other,) = replayed(tmp_path / "received", received).warnings
    assert "that no rank sends" in other


def test_computation_without_recorded_times_needs_a_model(tmp_path: Path) -> None:
    """Synthetic traces have none: what a network predicted was communication, without a word."""
    size = gpu(comm_size=4000)
    works = [node(k, "work", 0, attributes=gpu()) for k in (1, 2)]
    collective = node(3, "all", 0, kind=COLL, deps=[1, 2], attributes=size)
    warning = "computation takes no time, since none is recorded: timings gives durations"
    timed = [node(1, "work", 1, attributes=gpu()), works[1], collective]
    alone = [node(3, "all", 0, kind=COLL, attributes=size)]
    cases = {"untimed": [*works, collective], "timed": timed, "alone": alone}
    for name, rank in cases.items():
        report = replayed(tmp_path / name, [rank] * 2, NETWORK)
        assert report.warnings == ((warning,) if name == "untimed" else ())


def test_communication_on_a_cpu_takes_its_duration_and_waits_for_no_rank(tmp_path: Path) -> None:
    size = {"comm_size": ("int64", 4000)}
    ranks = [
        [
            node(1, "w", work, attributes=CPU),
            node(2, "all", 5, kind=COLL, deps=[1], attributes=CPU | size),
            node(3, "m", 4, kind=kind, deps=[2], attributes=CPU | size | {end: ("int64", other)}),
            node(4, "w", 1, deps=[3], attributes=CPU),
        ]
        for work, kind, end, other in ((50, SEND, "comm_dst", 1), (10, RECV, "comm_src", 0))
    ]
    report = replayed(tmp_path, ranks, NETWORK)
    assert starts(report) == [0, 50, 55, 59]
    assert starts(report, 1) == [0, 10, 15, 19]


def test_collectives_that_do_not_belong_together_are_reported(tmp_path: Path) -> None:
    """An all-gather was replayed as the all-reduce of another rank without a word."""
    first, second = (
        [
            node(place, "c", 5, kind=COLL, attributes=gpu(9, comm_type=kind, comm_size=4000))
            for place, kind in enumerate(kinds, start=1)
        ]
        for kinds in ((0, 2, 2), (0, 0, 2))
    )
    for name, network in (("recorded", None), ("given", NETWORK)):
        traces = write_traces(tmp_path / name, [first, second])
        (warning,) = replay(rewritelog.open_traces(traces), network).warnings
        assert warning.startswith("1 collective whose type or size differs between ranks")
        assert ("the largest size are used" in warning) == (network is not None)
    untyped = node(2, "c", 5, kind=COLL, attributes=gpu(9, comm_size=4000))  # an all-reduce
    same = [second[0], untyped, second[2]]
    assert replayed(tmp_path, [second, same], NETWORK).warnings == ()
    large = node(2, "c", 5, kind=COLL, attributes=gpu(9, comm_type=0, comm_size=5000))
    other = [second[0], large, second[2]]  # ASTRA-sim waits for ever, and no word was said
    (warning,) = replayed(tmp_path / "sizes", [second, other], NETWORK).warnings
    assert warning.startswith("1 collective whose type or size differs between ranks")
    assert warning.endswith(
        "a simulator may never end (`rewritelog check` says where it would not)"
    )
    for name, ranks in (("first", [other, second, second]), ("last", [second, other, other])):
        report = replayed(tmp_path / name, ranks, NETWORK)
        steps_us = [4 * (1 + 4 / 3), 4 * (1 + 5 / 3), 2 * (1 + 4)]  # the largest size is used
        assert report.predicted_s == pytest.approx(1e-6 * sum(steps_us))
        assert report.warnings[0].startswith("1 collective whose")
    findings = rewritelog.check(tmp_path / "sizes/t").findings
    assert [found.location.node for found in findings.shown["collective-differs"]] == [1]


def test_the_first_lines_name_the_time_of_a_collective_once(tmp_path: Path) -> None:
    """It was `90.0 % in all, 90.0 % in communication`."""
    nodes = [
        node(1, "work", 10, attributes=gpu()),
        node(2, "all", 90, kind=COLL, deps=[1], attributes=gpu(9)),
    ]
    both = rewritelog.replay(write_traces(tmp_path / "a", [nodes])).text()
    assert "10.0 % in work, 90.0 % in communication" in " ".join(both.split())
    alone = [node(2, "all", 90, kind=COLL, attributes=gpu(9))]
    text = rewritelog.replay(write_traces(tmp_path / "b", [alone])).text()
    assert "bounded by 1 node: 100.0 % in communication\n" in text
    nodes = [
        node(1, "launch", 30, attributes=CPU),
        node(2, "idle", 0, deps=[1], attributes=CPU),
        node(3, "all", 70, kind=COLL, deps=[2], attributes=gpu(9)),
    ]
    text = rewritelog.replay(write_traces(tmp_path / "c", [nodes])).text()
    shares = "bounded by 3 nodes one after the other: 30.0 % in launch, 70.0 % in communication"
    assert shares in " ".join(text.split())


def test_a_collective_takes_no_time_without_a_name_that_one_rank_gives_it(tmp_path: Path) -> None:
    ranks = [[node(1, name, 30, kind=COLL, attributes=gpu())] for name in ("mine", "yours")]
    gains = {gain.name: gain.gain_s for gain in replayed(tmp_path, ranks).gains}
    assert gains == pytest.approx({"mine": 30e-6, "yours": 30e-6})


def test_groups_have_collectives_of_their_own(tmp_path: Path) -> None:
    group = [{**gpu(), "pg_name": ("string", name)} for name in ("0", "0", "1", "1")]
    programs = [
        [
            node(1, "w", 10 * k, attributes=gpu(3)),
            node(2, "c", 1, kind=COLL, deps=[1], attributes=g),
        ]
        for k, g in enumerate(group)
    ]
    report = replayed(tmp_path, programs)
    assert report.notes[1:] == ("2 collectives, as recorded: a simulator knows better",)
    assert [starts(report, rank)[1] for rank in range(4)] == [10, 10, 30, 30]


def of_group(group: str, **numbers: int) -> dict[str, tuple[str, object]]:
    return {**gpu(**numbers), "pg_name": ("string", group)}


def test_a_rank_communicates_in_one_group_at_a_time_on_a_network(tmp_path: Path) -> None:
    """Groups ran side by side at full bandwidth, and tensor-parallel runs took half as long."""
    size = {"comm_size": 2000}  # an all-reduce of two ranks: two steps of 1 + 1 µs
    first = [
        node(1, "a", 50, kind=COLL, attributes=of_group("01", **size)),
        node(2, "b", 60, kind=COLL, attributes=of_group("02", **size)),
        node(3, "s", 70, kind=SEND, attributes=gpu(comm_dst=2, comm_size=1000)),
    ]
    second = [
        node(1, "work", 10, attributes=gpu()),
        node(2, "a", 50, kind=COLL, deps=[1], attributes=of_group("01", **size)),
    ]
    third = [
        node(1, "r", 90, kind=RECV, attributes=gpu(comm_src=0)),
        node(2, "b", 60, kind=COLL, attributes=of_group("02", **size)),
    ]
    report = replayed(tmp_path / "given", [first, second, third], NETWORK)
    assert [starts(report, rank) for rank in range(3)] == [[10, 14, 18], [0, 10], [20, 14]]
    assert report.path.by_name_s == pytest.approx({"work": 1e-5, "a": 4e-6, "b": 4e-6, "s": 2e-6})
    assert report.path.length == 4
    lanes = {lane.name: round(1e6 * lane.busy_s) for lane in report.worst_pes}
    assert lanes["rank 0 network"] == 10
    gains = {gain.name: gain.gain_s for gain in report.gains}
    assert gains == pytest.approx({"work": 1e-5, "a": 4e-6, "b": 4e-6, "s": 2e-6})
    recorded = replayed(tmp_path / "recorded", [first, second, third])
    assert [starts(recorded, rank) for rank in range(3)] == [[10, 0, 0], [0, 10], [70, 0]]


def test_ranks_that_begin_collectives_in_different_orders_do_not_wait_for_ever(
    tmp_path: Path,
) -> None:
    """In ASTRA-sim they do."""
    size = {"comm_size": 2000}
    ranks = [
        [
            node(1, "work", 7, attributes=gpu()),
            node(2, first, kind=COLL, deps=[1], attributes=of_group(first, **size)),
            node(3, second, kind=COLL, deps=[1], attributes=of_group(second, **size)),
            node(4, "c", kind=COLL, deps=[2, 3], attributes=of_group("c", **size)),
        ]
        for first, second in ("ab", "ba")
    ]
    report = replayed(tmp_path / "given", ranks, NETWORK)
    assert [starts(report, rank) for rank in range(2)] == [[0, 11, 7, 15], [0, 7, 11, 15]]
    (warning,) = report.warnings
    assert warning.startswith("ranks waited in collectives for others that did not come (1 time)")
    swept = rewritelog.sweep(report.logs, {"latency": ["1us", 0]}, bandwidth="1GB/s")
    rewritten = rewritelog.rewrite(report.logs, tmp_path / "r", dilation=2, bandwidth="1GB/s")
    out = tmp_path / "chrome"
    exported = rewritelog.export(report.logs, out, "chrome", replayed=True, bandwidth="1GB/s")
    for told in (swept, rewritten, exported):  # they said nothing
        assert warning in told.warnings
    assert replayed(tmp_path / "recorded", ranks).warnings == ()


def test_a_collective_that_a_rank_never_begins_is_named(tmp_path: Path) -> None:
    first = [node(1, "all", kind=COLL, attributes=gpu()), node(2, deps=[1])]
    second = [node(1, "all", kind=COLL, deps=[1], attributes=gpu())]
    report = replayed(tmp_path, [first, second], NETWORK)
    assert report.blocked.count == 3
    text = " ".join(report.text().split())
    assert "node 0 of rank 0 (all): waits in a collective for a rank that never begins it" in text


@pytest.mark.parametrize("part_bytes", [64, 1 << 20])
def test_groups_that_differ_in_the_middle_of_their_names_have_rows_of_their_own(
    part_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both were called `pipeline_s…ard_group`, and were one track of an export."""
    groups = [f"pipeline_stage_{k}_forward_group" for k in range(2)]
    nodes = [
        node(k, "c", 9, kind=COLL, attributes={**gpu(), "pg_name": ("string", group)})
        for k, group in enumerate(groups)
    ]
    traces = write_traces(tmp_path / "t", [nodes])
    monkeypatch.setattr("rewritelog.formats.chakra.PART_BYTES", part_bytes)
    rewritelog.export(traces, tmp_path / "o", "chrome", replayed=True)
    events = json.loads((tmp_path / "o/trace.json").read_text())["traceEvents"]
    tracks = {event["tid"] for event in events if event["ph"] == "X"}
    assert tracks == {pe.name.removeprefix("rank 0 ") for pe in rewritelog.replay(traces).worst_pes}
    assert len(tracks) == 2


def test_collectives_of_a_group_run_one_after_the_other_on_any_ranks(tmp_path: Path) -> None:
    """They ran at once if the first rank of one had no part in the other."""
    group = {**gpu(), "pg_name": ("string", "g")}
    second = node(2, "c", 30, kind=COLL, attributes=group)
    programs = [[node(1, "c", 10, kind=COLL, attributes=group)] for _ in range(2)]
    report = replayed(tmp_path, [programs[0], [*programs[1], second]])
    assert report.predicted_s == pytest.approx(40e-6)


def test_the_lowest_id_runs_first_in_any_order_of_the_file(tmp_path: Path) -> None:
    """That which the file had first did: the run took 211 µs in one order, 111 in the other."""
    first, second = node(1, "a", 1, attributes=CPU), node(2, "b", 100, attributes=CPU)
    last = node(3, "c", 110, deps=[1], attributes=gpu())
    for place, nodes in enumerate(([first, second, last], [second, first, last])):
        traces = rewritelog.open_traces(write_traces(tmp_path / f"t{place}", [nodes]))
        assert isinstance(traces, Traces)
        assert replay(traces).predicted_s == pytest.approx(111e-6)


@pytest.mark.parametrize("network", [None, NETWORK])
def test_a_message_that_nobody_sends_is_received_at_once(
    tmp_path: Path, network: Network | None
) -> None:
    """The receive took its recorded time, which is that of waiting."""
    receiver = [node(1, "r", 40, kind=RECV, attributes=gpu(comm_src=1))]
    report = replayed(tmp_path, [receiver], network)
    assert report.predicted_s == 0
    assert "that no rank sends" in str(report.warnings)


def test_a_node_without_a_name_leaves_no_hole_in_the_report(tmp_path: Path) -> None:
    """It was `100.0 % in , 0.0 % in communication`."""
    report = replayed(tmp_path, [[node(1, "", 5), node(2, "", 5, deps=[2])]])
    text = report.text()
    assert "100.0 % in (no name)," in text
    assert "node 1 of rank 0 ((no name)):" in text
    assert re.search(r"If nodes took no time .*\n +\(no name\) +5.000 µs", text)
    assert re.search(r"Critical path .*\n +\(no name\) +5.000 µs", report.details())


def test_messages_are_received_after_they_are_sent(tmp_path: Path) -> None:
    sender = [
        node(1, "w", 50, attributes=gpu()),
        node(
            2,
            "s",
            9,
            kind=SEND,
            deps=[1],
            attributes=gpu(1, comm_dst=1, comm_tag=5, comm_size=2000),
        ),
    ]
    receiver = [
        node(1, "r", 9, kind=RECV, attributes=gpu(1, comm_src=0, comm_tag=5, comm_size=2000)),
        node(2, "w", 1, deps=[1], attributes=gpu()),
    ]  # fmt: skip
    report = replayed(tmp_path, [sender, receiver], NETWORK)
    assert starts(report, 1) == [53, 53]


def test_a_message_that_has_passed_is_received_at_once(tmp_path: Path) -> None:
    to, by = {"comm_dst": 1, "comm_size": 2000}, {"comm_src": 0, "comm_size": 2000}
    sender = [
        node(1, "s", 9, kind=SEND, attributes=gpu(1, **to)),
        node(2, "s", 9, kind=SEND, attributes=gpu(1, **to)),
        node(3, "w", 1, deps=[2], attributes=gpu()),
    ]
    receiver = [
        node(1, "w", 50, attributes=gpu()),
        node(2, "r", 9, kind=RECV, deps=[1], attributes=gpu(1, **by)),
        node(3, "r", 9, kind=RECV, deps=[1], attributes=gpu(1, **by)),
        node(4, "w", 1, deps=[2, 3], attributes=gpu()),
    ]
    report = replayed(tmp_path, [sender, receiver], NETWORK)
    assert starts(report) == [0, 3, 6]
    assert starts(report, 1) == [0, 50, 50, 50]
    assert report.predicted_s == pytest.approx(51e-6)


def test_a_receive_waits_for_the_message_with_its_tag(tmp_path: Path) -> None:
    sender = [
        node(tag, "s", 9, kind=SEND, attributes=gpu(1, comm_dst=1, comm_tag=tag, comm_size=2000))
        for tag in (1, 2)
    ]
    receiver = [
        node(3 - tag, "r", 9, kind=RECV, attributes=gpu(1, comm_src=0, comm_tag=tag))
        for tag in (2, 1)
    ]
    receiver += [node(2 + k, "w", 1, deps=[k], attributes=gpu(k)) for k in (1, 2)]
    report = replayed(tmp_path, [sender, receiver], NETWORK)
    assert starts(report, 1)[2:] == [6, 3]


@pytest.mark.parametrize("groups", [[(0, 1), (0, 2)], [(0, 2), (1, 2)]])
def test_groups_that_share_a_rank_do_not_wait_for_each_other(
    tmp_path: Path, groups: list[tuple[int, int]]
) -> None:
    """Their collectives ran one after the other if that rank was the first of both."""
    programs = [
        [
            node(k, "c", 5, kind=COLL, attributes={**gpu(), "pg_name": ("string", str(k))})
            for k, group in enumerate(groups)
            if rank in group
        ]
        for rank in range(3)
    ]
    assert replayed(tmp_path, programs).predicted_s == pytest.approx(5e-6)


def test_new_durations_and_a_comparison(tmp_path: Path) -> None:
    path = write_traces(tmp_path / "t", [[node(1, duration=10, attributes=gpu())]])
    report = json.loads(run("replay", path, "--dilation", "0.5", "--json").stdout)
    assert report["predicted_s"] == pytest.approx(5e-6)
    assert run("rewrite", path, tmp_path / "o", "--speedup", "2").returncode == 0
    done = run("replay", tmp_path / "o", "--against", path, "--json")
    assert json.loads(done.stdout)["speedup"] == pytest.approx(2)
    assert "2 × faster" in run("replay", tmp_path / "o", "--against", path).stdout


def test_nodes_that_the_model_does_not_cover_are_named(tmp_path: Path) -> None:
    nodes = [node(1, attributes=gpu()), node(2, "other", attributes=gpu()), node(3, "other")]
    path, timings = write_traces(tmp_path / "t", [nodes]), tmp_path / "timings"
    run("timings", write_traces(tmp_path / "fitted", [nodes[:1] * 3]), "-o", timings)
    done = run("replay", path, "--timings", timings)
    assert (
        "2 nodes dilated, since the model does not cover them: 'other' (2); it covers 'aten::mm'; "
        "time them too, or name them as the timings do with --event-params\n"
    ) in done.stderr


def test_replays_warn_of_events_as_rewrites_do(tmp_path: Path) -> None:
    """They named nodes, not their groups, called the file unused, and nodes lacking not covered."""
    names = [f"gemm {{{size}}}" for size in (64, 128)] + ["relu", "conv"]
    nodes = [node(k, name, attributes=gpu(n=k)) for k, name in enumerate(names, 1)]
    traces = write_traces(tmp_path / "t", [[*nodes, node(9, "relu", attributes=gpu())]] * 2)
    params, fit = tmp_path / "params.toml", tmp_path / "fit"
    params.write_text(
        '[events."gemm*"]\ngroup = "gemm"\nparams = ["n", "n"]\n'
        '[events.relu]\ngroup = "max"\nparams = ["n"]\n'
    )
    fit.write_text("gemm 1e-6 1e-6\nmax 1e-6 1e-6\n")
    options: dict[str, Any] = {"coefficients": fit, "event_params": params, "latency": "1us"}
    rewritten = rewritelog.rewrite(traces, None, dilation=1, model="coefficients", **options)
    replayed = rewritelog.replay(traces, model="coefficients", **options)
    swept = rewritelog.sweep(traces, {"dilation": [1]}, model="coefficients", **options)
    assert replayed.warnings == swept.warnings
    lacking, uncovered = rewritten.warnings
    assert replayed.warnings == (re.sub(r" \(rank.*", "", lacking), uncovered)
    assert lacking.startswith("2 nodes without the values that event params need dilated (rank 0")
    given = "whose coefficients are for not as many parameters as its nodes have"
    assert f"not cover them: 'gemm' (4, {given}), 'conv' (2); it covers 'gemm', 'max'" in uncovered
    assert "; give coefficients for them, or name them" in uncovered
    timings = {"gemm": ([[1], [2], [4]], [1e-6, 2e-6, 4e-6])}
    *_, uncovered = rewritelog.replay(traces, timings=timings, event_params=params).warnings
    timed = "timed with 1 parameter, not as many as its nodes have"
    assert f"'gemm' (4, {timed}), 'conv' (2), 'max' (2); it covers 'gemm'" in uncovered


def test_several_runs_are_compared_in_a_table(tmp_path: Path) -> None:
    paths = [
        write_traces(tmp_path / f"t{length}", [[node(1, duration=length)]] * 2)
        for length in (10, 20)
    ]
    done = run("replay", *paths)
    assert "Shortest of 2 runs: t10, 10.00 µs" in done.stdout
    assert [
        row["predicted_s"] for row in json.loads(run("replay", *paths, "--json").stdout)["runs"]
    ] == pytest.approx([10e-6, 20e-6])
    assert "path in communication" in done.stdout
    assert "PE" not in done.stdout.replace(str(tmp_path), "")
    with pytest.raises(UsageError, match="runs of one format are compared"):
        rewritelog.replay([paths[0], SAMPLE_LOGS / "cells"])
    with pytest.raises(UsageError, match="runs of one format are compared"):
        rewritelog.replay(paths[0], against=SAMPLE_LOGS / "cells")


def test_rewrite_says_how_the_run_time_changes(tmp_path: Path) -> None:
    path = write_traces(tmp_path / "t", [[node(1, duration=10), node(2, duration=5, deps=[1])]])
    report = rewritelog.rewrite(path, dilation=2)
    assert report.to_json()["run_time"]["after_s"] == pytest.approx(30e-6)
    assert report.text().startswith(
        "Predicted run time: 15.00 µs → 30.00 µs, 2 × slower, on 1 rank, communication\n"
        "  takes its nodes' durations.\n"
    )


def test_rewrite_warns_of_what_its_replay_lacks_as_replay_does(tmp_path: Path) -> None:
    path = write_traces(tmp_path / "t", [[node(1), node(2, deps=[9]), node(3, kind=COLL)]])
    warnings = rewritelog.rewrite(path, dilation=2, latency="1us", bandwidth="1GB/s").warnings
    assert "1 dependency on nodes that are not there: ignored" in warnings
    assert warnings[-2:] == rewritelog.replay(path, latency="1us", bandwidth="1GB/s").warnings


def test_new_durations_of_communication_that_a_network_replaces_are_warned_of(
    tmp_path: Path,
) -> None:
    """The run time was as before, and nothing said why."""
    collective = gpu(comm_type=0, comm_size=4000)
    nodes = [node(1, attributes=gpu()), node(2, kind=COLL, deps=[1], attributes=collective)]
    path = write_traces(tmp_path / "t", [nodes] * 2)
    network: dict[str, Any] = {"latency": "1us", "bandwidth": "1GB/s"}
    dilated: dict[str, Any] = {"types": "COLL", "dilation": 2}
    said = (
        "2 nodes communicate: the run time has the network's time for them, not their new durations"
    )
    for report in (
        rewritelog.replay(path, **network, **dilated),
        rewritelog.rewrite(path, **network, **dilated),
        rewritelog.sweep(path, {"dilation": [1, 2]}, **network, types="COLL"),
    ):
        assert report.warnings == (said,)
    assert not rewritelog.replay(path, **dilated).warnings
    assert not rewritelog.replay(path, **network, dilation=2).warnings


def test_chrome_gets_the_starts_of_a_replay(tmp_path: Path) -> None:
    path = write_traces(tmp_path / "t", [[node(1, duration=10), node(2, duration=5, deps=[1])]])
    assert run("export", path, tmp_path / "o", "--to", "chrome", "--replayed").returncode == 0
    events = json.loads((tmp_path / "o/trace.json").read_text())["traceEvents"]
    assert [e["ts"] for e in events if e["ph"] == "X"] == [0, 10]


@pytest.mark.parametrize("replayed", [False, True])
def test_chrome_gets_nodes_that_end_where_the_next_one_begins(
    tmp_path: Path, replayed: bool
) -> None:
    """Starts were rounding errors too early, as 130872.99999999999, within the last nodes."""
    starts = [1, 130_873, 251_088, 504_276, 522_006]
    nodes = [
        node(k, duration=end - start, start=start, attributes=gpu())
        for k, (start, end) in enumerate(pairwise(starts), 1)
    ]
    traces = write_traces(tmp_path / "t", [[node(0, "idle", 1, attributes=gpu()), *nodes]])
    rewritelog.export(traces, tmp_path / "o", "chrome", replayed=replayed)
    events = json.loads((tmp_path / "o/trace.json").read_text())["traceEvents"]
    times = [(event["ts"], event["dur"]) for event in events if event["ph"] == "X"]
    assert [time for time in times if time[0]] == [(a, b - a) for a, b in pairwise(starts)]


def test_an_export_of_a_replay_has_the_nodes_that_ran_of_any_rank(tmp_path: Path) -> None:
    """A rank without nodes was a traceback; nodes that never ran had no start recorded."""
    path = write_traces(tmp_path / "t", [[], [node(1), node(2, deps=[2])], []])
    done = run("export", path, tmp_path / "o", "--to", "chrome", "--replayed")
    assert (done.returncode, done.stdout.strip()[-6:]) == (0, "1 node")
    assert "warning: 1 of 2 nodes never ran" in done.stderr
    done = run("export", path, tmp_path / "e", "--to", "chrome", "--replayed", "--pes", "0,2")
    assert done.stdout.strip().endswith("2 ranks for chrome: 0 nodes")
    stuck = write_traces(tmp_path / "stuck", [[node(1, deps=[1])]])
    done = run("export", stuck, tmp_path / "s", "--to", "chrome", "--replayed")
    assert done.returncode == 1
    assert "no node runs in the replay: all wait for something that never ends" in done.stderr


def test_an_export_of_a_replay_has_its_times_and_lanes(sample_logs: Path, tmp_path: Path) -> None:
    """Durations were the recorded ones, on the tracks of the recorded run."""
    network = ("--latency", "500ns", "--bandwidth", "50GB/s")
    traces = sample_logs / "transformer" / "training"
    run("export", traces, tmp_path / "o", "--to", "chrome", "--replayed", *network)
    slices = [
        event
        for event in json.loads((tmp_path / "o" / "trace.json").read_text())["traceEvents"]
        if event["ph"] == "X"
    ]
    predicted_s = json.loads(run("replay", traces, *network, "--json").stdout)["predicted_s"]
    ends = [event["ts"] + event["dur"] for event in slices]
    assert max(ends) == pytest.approx(1e6 * predicted_s)
    assert {event["tid"] for event in slices} == {"stream 7", "network"}
    order = sorted(slices, key=lambda event: (event["pid"], event["tid"], event["ts"]))
    for first, second in pairwise(order):
        if (first["pid"], first["tid"]) == (second["pid"], second["tid"]):
            assert second["ts"] >= first["ts"] + first["dur"] - 1e-3


def test_random_programs_end_when_a_slow_replay_says(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    nodes, end = [], np.zeros(200)
    free = {1: 0.0, 2: 0.0, 3: 0.0}
    ready = np.zeros(200)
    duration, stream = rng.integers(1, 30, 200), rng.integers(1, 4, 200)
    deps = [rng.choice(k, min(k, 2), replace=False).tolist() if k else [] for k in range(200)]
    left = set(range(200))
    while left:
        able = [k for k in left if not left & set(deps[k])]
        for k in able:
            ready[k] = max((end[d] for d in deps[k]), default=0)
        start = {k: max(ready[k], free[stream[k]]) for k in able}
        k = min(k for k in able if start[k] == min(start.values()))
        end[k] = start[k] + duration[k]
        free[stream[k]] = end[k]
        left.remove(k)
    for k in range(200):
        waits = [d + 1 for d in deps[k]]
        nodes.append(node(k + 1, "x", int(duration[k]), deps=waits, attributes=gpu(int(stream[k]))))
    assert replayed(tmp_path, [nodes]).predicted_s == pytest.approx(1e-6 * end.max())


def test_a_run_of_no_time_is_bounded_by_nothing(tmp_path: Path) -> None:
    """A converted host trace without durations was bounded by "0.0 % in , 0.0 % in …"."""
    text = replayed(tmp_path, [[node(1, duration=0)]]).text()
    assert "bounded" not in text


def test_collectives_and_messages_are_paired_in_the_order_of_their_ids(tmp_path: Path) -> None:
    """Files in another order than the run, which ASTRA-sim takes, never ended."""
    programs = [
        [
            node(k, "c", k, kind=COLL, deps=[k - 1] if k > 1 else [], attributes=gpu())
            for k in (1, 2, 3)
        ]
        for _ in range(2)
    ]
    to, by = {"comm_dst": 1, "comm_size": 2000}, {"comm_src": 0, "comm_size": 2000}
    programs[0] += [node(k, "s", 9, kind=SEND, deps=[k - 1], attributes=gpu(**to)) for k in (4, 5)]
    programs[1] += [node(k, "r", 9, kind=RECV, deps=[k - 1], attributes=gpu(**by)) for k in (4, 5)]
    report = replayed(tmp_path, [programs[0], programs[1][::-1]])
    assert report.predicted_s == pytest.approx(24e-6)
    assert report.blocked.count == 0


def test_each_row_of_a_network_has_a_name_of_its_own(tmp_path: Path) -> None:
    """The groups, sends and receives of a rank were all called its network."""
    nodes = [
        node(k, "c", 5, kind=COLL, attributes={**gpu(), "pg_name": ("string", group)})
        for k, group in enumerate(("", "data\n", "x" * 40))
    ]
    nodes.append(node(4, "s", 5, kind=SEND, attributes=gpu(comm_dst=0)))
    nodes.append(node(5, "r", 5, kind=RECV, attributes=gpu(comm_src=0)))
    assert sorted(lane.name for lane in replayed(tmp_path, [nodes]).worst_pes) == [
        "rank 0 network",
        "rank 0 network, RECV",
        "rank 0 network, SEND",
        r"rank 0 network, group data\n",
        f"rank 0 network, group {10 * 'x'}…{9 * 'x'}",
    ]


def test_a_network_is_not_among_what_is_utilised(tmp_path: Path) -> None:
    """Two streams that were always busy were utilised to 67 %, since their collective had a row."""
    programs = [
        [node(1, "c", 10, kind=COLL, attributes=gpu()), node(2, "k", 40, attributes=gpu())]
        for _ in range(2)
    ]
    report = replayed(tmp_path, programs)
    assert report.utilisation == 1
    assert "  utilisation is that of 2 threads and streams\n" in report.text()


def test_messages_of_fewer_than_no_bytes_take_the_latency(tmp_path: Path) -> None:
    send = node(1, "s", 9, kind=SEND, attributes=gpu(comm_dst=0, comm_size=-500))
    assert replayed(tmp_path, [[send]], NETWORK).predicted_s == pytest.approx(1e-6)


def test_communication_that_never_runs_may_take_longer_than_a_float_holds(tmp_path: Path) -> None:
    """numpy warned of it, on stderr."""
    huge = ("double", 1.7e308)
    slow = Network(latency=1e-6, bandwidth=1e-300)
    waits = node(1, "c", kind=COLL, deps=[1], attributes={**gpu(), "comm_size": huge})
    alone = node(2, "r", kind=RECV, attributes={**gpu(comm_src=1), "comm_size": huge})
    report = replayed(tmp_path, [[waits, alone, node(3)], [waits]], slow)
    assert report.predicted_s == pytest.approx(1e-5)


def test_a_folder_of_folders_of_traces_stands_for_all_of_them(tmp_path: Path) -> None:
    """Only one of log sets did; of traces it was said to have no log set."""
    (tmp_path / "runs/notes").mkdir(parents=True)
    for ranks in (2, 10):
        write_traces(tmp_path / f"runs/p{ranks}", [[node(1, duration=ranks)]] * ranks)
    (tmp_path / "runs/notes.0.et.txt").touch()
    table = json.loads(run("replay", tmp_path / "runs", "--json").stdout)
    assert [row["pes"] for row in table["runs"]] == [2, 10]
    assert [row["predicted_s"] for row in table["runs"]] == pytest.approx([2e-6, 10e-6])
    draft = tmp_path / "runs/.p20.rewritelog-0123abcd"  # of a rewrite that has not ended
    shutil.copytree(SAMPLE_LOGS / "cells", draft)
    assert json.loads(run("replay", tmp_path / "runs", "--json").stdout) == table
    draft.rename(tmp_path / "runs/p20")
    with pytest.raises(UsageError, match=r"p2 has Chakra execution traces.*p20 has bgTrace logs"):
        rewritelog.replay(tmp_path / "runs")


def test_a_sweep_of_dilations_and_networks_by_hand(tmp_path: Path) -> None:
    """100 µs of computing, then an all-reduce of 1 MB by two ranks: 2 steps of half of that."""
    sizes = {"comm_type": ("int64", 0), "comm_size": ("int64", 1_000_000)}
    nodes = [
        node(1, "compute", 100, attributes=gpu()),
        node(2, "reduce", 7, kind=COLL, deps=[1], attributes=gpu() | sizes),
    ]
    traces = traces_of(tmp_path, [nodes, nodes])
    swept = rewritelog.sweep(
        traces,
        {"dilation": [0.5, 2], "latency": ["1us", "10us"], "bandwidth": ["1GB/s", "10GB/s"]},
    )
    microseconds = [1e6 * point.predicted_s for point in swept.points]
    assert microseconds == pytest.approx([1052, 152, 1070, 170, 1202, 302, 1220, 320])
    recorded = rewritelog.sweep(traces, {"dilation": [0.5, 2]})
    assert [1e6 * point.predicted_s for point in recorded.points] == pytest.approx([57, 207])
    assert "communication takes its nodes' durations" in recorded.text()
    assert swept.pes == recorded.pes == 2  # the threads, streams and networks were counted


def test_a_sweep_lets_the_shortest_part_of_a_collective_change(tmp_path: Path) -> None:
    """The durations of collectives were interpolated, as if one rank determined them in all."""
    parts = [[node(1, name, 100, kind=COLL, attributes=gpu())] for name in "ab"]
    path = write_traces(tmp_path / "t", parts) / "run"
    swept = rewritelog.sweep(path, {"dilation": [0.1, 0.5, 3]}, types="COLL", dilation_for={"a": 1})
    assert [1e6 * point.predicted_s for point in swept.points] == pytest.approx([10, 50, 100])
    assert not swept.warnings
    assert swept.to_json()["logs"] == str(path)  # it was the folder, as of all traces there


def test_nodes_are_named_by_their_groups(tmp_path: Path) -> None:
    """Nodes of layers have names of their own, each a small share; the file was not used."""
    nodes = [
        node(k, f"mb{k}.{'ffn' if k % 3 else 'attn'}.y", 10 * k, attributes=gpu())
        for k in range(1, 7)
    ]
    groups = tmp_path / "groups.toml"
    groups.write_text('[events."*.ffn.*"]\ngroup = "ffn"\n[events."*.norm"]\ngroup = "norm"\n')
    traces = write_traces(tmp_path / "t", [nodes])
    report = rewritelog.replay(traces, event_params=groups, dilation_for={"mb1.ffn.y": 2})
    expected = {"ffn": 130e-6, "mb6.attn.y": 60e-6, "mb3.attn.y": 30e-6}
    assert report.path.by_name_s == pytest.approx(expected)
    assert {gain.name: gain.gain_s for gain in report.gains} == pytest.approx(expected)
    (unused,) = report.warnings
    assert unused.endswith("what it says of '*.norm' is not used: no node has such a name")


def test_a_sweep_of_traces_has_one_kind_of_communication(tmp_path: Path) -> None:
    """Groups of a rank overlap as recorded, and not on a network; here one of the two was wrong."""
    traces = traces_of(tmp_path, [[node(1, "c", 9, kind=COLL, attributes=gpu())]] * 2)
    for machines in ([Network(), NETWORK], [NETWORK, Network()]):
        with pytest.raises(UsageError, match="as recorded, or on networks, not both in one sweep"):
            rewritelog.sweep(traces, {"machine": machines})


def test_a_machine_with_a_latency_within_nodes_says_that_it_has_no_effect(tmp_path: Path) -> None:
    """The report named it among what the network has."""
    traces = traces_of(tmp_path, [[node(1, "c", 9, kind=COLL, attributes=gpu())]] * 2)
    (tmp_path / "m.toml").write_text('latency = "1us"\nnode-latency = "9us"\n')
    (warning,) = rewritelog.replay(traces, machine=tmp_path / "m.toml").warnings
    assert warning == "node_latency has no effect: it is for logs"


@pytest.mark.slow
def test_a_sweep_over_a_model_predicts_what_replays_do(tmp_path: Path) -> None:
    transformer, lines = SAMPLE_LOGS / "transformer", tmp_path / "lines.txt"
    traces, params = transformer / "training", transformer / "events.toml"
    rewritelog.write_timings(transformer / "profile", lines, event_params=params)
    swept = rewritelog.sweep(
        traces,
        {"dilation": [0.5, 3], "machine": ["alps", "cray-xe6"]},
        timings=lines,
        event_params=params,
        types="COMP,MEM_LOAD",
        dilation_for={"aten::mm": 0.25},
    )
    assert len(swept.points) == 4
    for point in swept.points:
        dilation, machine = point.values
        alone = rewritelog.replay(
            traces,
            timings=lines,
            event_params=params,
            types="COMP,MEM_LOAD",
            dilation_for={"aten::mm": 0.25},
            dilation=float(dilation),
            machine=machine,
            gains=0,
        )
        assert alone.predicted_s == pytest.approx(point.predicted_s, rel=1e-12)
