"""The commands on Chakra traces."""

import gzip
import json
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chakrabuilder import COLL, COMP, RECV, SEND, field, node, trace, write_traces
from commands import rewritelog as run
from logbuilder import seb, write_logs
from oracle import SAMPLE_LOGS

import rewritelog
from rewritelog.commands.durations import RewriteOptions
from rewritelog.commands.fits import TimingsCommand
from rewritelog.errors import ModelError, RewriteLogError, UsageError
from rewritelog.formats import chakra as reader
from rewritelog.formats.chakra import ChakraTraces, NodePart
from rewritelog.formats.traces import Traces, Unit
from rewritelog.replaying import replay, run_time
from rewritelog.replaying.replay import Case, ReplayedTime
from rewritelog.replaying.workload import Workload
from rewritelog.rewriting.run import rewrite
from rewritelog.running.engines import limited_to
from rewritelog.timings.traces import write_timings
from rewritelog.viewing.rewrite_page import compare_dry_run
from tracebigsim.writing import format_line

GPU = {"is_cpu_op": ("bool", False), "stream": ("int64", 7)}
CPU = {"is_cpu_op": ("bool", True), "tid": ("int64", 1)}


def mm(number: int, size: int, seconds_per_op: float, *, deps: tuple[int, ...] = ()) -> bytes:
    duration = round(1e6 * seconds_per_op * size**3)
    shapes = f"[[{size}, {size}], [{size}, {size}]]"
    return node(number, duration=duration, deps=deps, shapes=shapes, attributes=GPU)


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    sizes = [64, 128, 256, 384, 512]
    ranks = [
        [
            node(0, "launch", 3, attributes=CPU),
            *(mm(k, size, 1e-11, deps=(k - 1,)) for k, size in enumerate(sizes, 1)),
            node(9, "ncclAllReduce", 40, kind=COLL, deps=[5],
                 attributes={**GPU, "comm_type": ("int64", 0), "comm_size": ("int64", 1 << 20)}),
        ]
        for _ in range(2)
    ]  # fmt: skip
    return write_traces(tmp_path / "traces", ranks)


def durations(path: Path) -> list[list[float]]:
    opened = rewritelog.open_traces(path)
    assert isinstance(opened, Traces)
    return [
        np.concatenate([1e6 * part["duration_s"] for part in opened.read(unit)]).round(9).tolist()
        for unit in opened.files
    ]


@pytest.mark.parametrize("packed", [False, True])
def test_dilation_1_gives_the_same_bytes(tmp_path: Path, packed: bool) -> None:
    path = write_traces(tmp_path / "t", [[node(1), node(2, duration=0)]], packed=packed)
    report = rewrite(rewritelog.open_traces(path), tmp_path / "out")
    assert (tmp_path / "out/run.0.et").read_bytes() == (path / "run.0.et").read_bytes()
    assert "Every duration stays as it is" in report.text()


def test_dilations_apply_to_computing_nodes_by_name(traces: Path, tmp_path: Path) -> None:
    done = run("rewrite", traces, tmp_path / "o", "--dilation", "2", "--dilation-for", "aten::*=3")
    assert done.returncode == 0, done.stderr
    before, after = durations(traces)[0], durations(tmp_path / "o")[0]
    assert after == [6, *(3 * d for d in before[1:-1]), 40]
    assert json.loads((tmp_path / "o/rewritelog.json").read_text())["options"]["dilation"] == 2


def test_other_types_are_rewritten_on_demand(traces: Path, tmp_path: Path) -> None:
    options = RewriteOptions(dilation=0.5, types=("COLL",))
    report = rewrite(rewritelog.open_traces(traces), tmp_path / "o", options)
    assert durations(tmp_path / "o")[0][-1] == 20
    assert durations(tmp_path / "o")[0][:-1] == durations(traces)[0][:-1]
    assert report.to_json()["counts"]["by_dilation"] == 2
    assert run("rewrite", traces, tmp_path / "p", "--types", "COMP,COLL", "--dilation", "3").stdout
    assert durations(tmp_path / "p")[0][-1] == 120
    with pytest.raises(UsageError, match="there is no type 'KERNEL'"):
        rewrite(rewritelog.open_traces(traces), None, RewriteOptions(types=("KERNEL",)))
    for command in ("rewrite", "replay"):
        done = run(command, traces, *(("--dry-run",) if command == "rewrite" else ()), "--types=,")
        assert (done.returncode, "--types names no type" in done.stderr) == (2, True)


def test_timings_of_one_machine_predict_the_kernels_of_another(
    traces: Path, tmp_path: Path
) -> None:
    sizes = [48, 96, 192, 320, 448, 576]
    other = write_traces(
        tmp_path / "other", [[mm(k, size, 2e-11) for k, size in enumerate(sizes * 3)]]
    )
    lines = tmp_path / "lines.txt"
    done = run("timings", other, "-o", lines)
    assert done.returncode == 0
    assert "18 timing lines of 1 event" in done.stdout
    report = rewritelog.rewrite(traces, tmp_path / "o", timings=lines, dilation=1)
    before, after = np.array(durations(traces)[0]), np.array(durations(tmp_path / "o")[0])
    assert after[2:6] == pytest.approx(2 * before[2:6], rel=0.1)
    assert after[0] == before[0]
    assert {line.event: line.by_model + line.by_exact for line in report.events}["aten::mm"] == 10
    assert "rounded to whole microseconds" in " ".join(report.text().split())


def test_rounding_is_told_only_where_durations_were_rounded(tmp_path: Path) -> None:
    path = write_traces(tmp_path / "t", [[node(1, duration=1), node(2, duration=40)]])
    assert "rounded" not in rewritelog.rewrite(path, None, dilation=3).text()
    text = " ".join(rewritelog.rewrite(path, None, dilation=1.01).text().split())
    assert "each by at most 0.4 µs, their sum in a rank, and in each of its threads" in text
    assert "and streams, by at most 0.41 µs nothing" in text
    assert "became 0" not in text
    report = rewritelog.rewrite(path, None, dilation=0.1)
    assert "1 of them became 0" in " ".join(report.text().split())


def test_the_rounding_of_a_sum_is_that_of_the_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was the largest at the end of any part, which depends on how files are read."""
    path = write_traces(tmp_path / "t", [[node(k, duration=1) for k in range(1, 41)]])
    for size in (1 << 20, 64):
        monkeypatch.setattr(reader, "PART_BYTES", size)
        rounding = rewritelog.rewrite(path, None, dilation=1.05).to_json()["rounding"]
        assert rounding["sum_s"] == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("dilation", [0.5, 0.37, 1.05, 0.031])
def test_sums_are_true_in_each_stream_and_in_the_rank(
    dilation: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Carried from stream to stream, one had a third more than its time, another two thirds."""
    draw = np.random.default_rng(3)
    lanes, old = draw.integers(0, 12, 3000), draw.integers(0, 9, 3000)
    lanes[:1000], old[:1000] = np.tile([7, 11], 500), np.tile([5, 3], 500)
    nodes = [
        node(k, duration=int(old[k - 1]), attributes={
            "stream": ("int64", int(lanes[k - 1] // 2)),
            "tid": ("int64", int(lanes[k - 1] // 2)),
            "is_cpu_op": ("bool", bool(lanes[k - 1] % 2)),
        })
        for k in range(1, 3001)
    ]  # fmt: skip
    path = write_traces(tmp_path / "t", [nodes])
    monkeypatch.setattr(reader, "PART_BYTES", 20_000)
    report = rewritelog.rewrite(path, tmp_path / "o", dilation=dilation)
    new, rounding = np.array(durations(tmp_path / "o")[0]), report.to_json()["rounding"]
    errors = new - dilation * old
    assert np.abs(errors).max() == pytest.approx(1e6 * rounding["item_s"])
    assert np.abs(errors).max() < 2
    of_lanes = np.bincount(lanes, errors)
    assert np.abs(of_lanes).max() <= 1
    assert abs(errors.sum()) <= 1
    largest = max(abs(errors.sum()), np.abs(of_lanes).max())
    assert largest == pytest.approx(1e6 * rounding["sum_s"], abs=1e-6)


def test_a_file_says_which_parameters_events_have(traces: Path, tmp_path: Path) -> None:
    rules = tmp_path / "events.toml"
    rules.write_text('[events."aten::m*"]\ngroup = "gemm"\nparams = ["a1*a2*b2", "b1"]\n')
    done = run("timings", traces, "-o", tmp_path / "l.txt", "--event-params", rules)
    assert done.returncode == 0, done.stderr
    lines = [line for line in (tmp_path / "l.txt").read_text().splitlines() if "gemm" in line]
    assert lines[1].endswith("params:{ 2097152.000000 128.000000 }")
    rules.write_text('[events."aten::mm"]\nparams = ["a1 +"]\n')
    done = run("timings", traces, "-o", tmp_path / "l.txt", "--event-params", rules)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "events.toml:2:" in done.stderr


@pytest.mark.parametrize("group", ["a{b", " x ", "TRACEBIGSIM"])
def test_a_group_is_a_name_that_lines_can_hold(traces: Path, tmp_path: Path, group: str) -> None:
    """All of its nodes were left out, and only counted."""
    rules = tmp_path / "events.toml"
    rules.write_text(f'[events."*"]\ngroup = "{group}"\n')
    done = run("timings", traces, "-o", tmp_path / "l.txt", "--event-params", rules)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "events.toml:2:10: invalid event name: it " in done.stderr


def test_a_group_is_in_json_as_it_is_in_the_lines(traces: Path, tmp_path: Path) -> None:
    rules, lines = tmp_path / "events.toml", tmp_path / "l.txt"
    rules.write_text('[events."*"]\ngroup = "x\\u202ey"\n')
    done = run("timings", traces, "-o", lines, "--event-params", rules, "--json")
    (event,) = json.loads(done.stdout)["events"]
    assert event["event"] == "x\u202ey"
    assert "event:{ x\u202ey }" in lines.read_text(encoding="utf-8")
    assert "\u202e" not in done.stdout


def test_nodes_without_the_parameters_of_a_file_are_told(traces: Path, tmp_path: Path) -> None:
    rules, lines = tmp_path / "events.toml", tmp_path / "lines.txt"
    assert run("timings", traces, "-o", lines).returncode == 0
    rules.write_text('[events."*"]\nparams = ["num_opz"]\n')
    done = run("rewrite", traces, "--dry-run", "--timings", lines, "--event-params", rules)
    assert (
        "12 nodes without the values that event params need dilated (rank 0 node 0," in done.stderr
    )
    assert "there are no nodes" not in done.stderr


def test_parameters_of_names_that_no_node_has_are_warned_of(traces: Path, tmp_path: Path) -> None:
    rules, lines = tmp_path / "events.toml", tmp_path / "lines.txt"
    rules.write_text('[events."aten::mn"]\nparams = ["a1"]\n[events."aten::*"]\ngroup = "a"\n')
    warning = f"{rules}: what it says of 'aten::mn' is not used: no node has such a name"
    for words in (
        ("timings", traces, "-o", lines),
        ("rewrite", traces, "--dry-run", "--timings", lines),
        ("replay", traces, "--timings", lines),
    ):
        done = run(*words, "--event-params", rules)
        assert (done.returncode, done.stderr.count(warning)) == (0, 1), words
        assert "'aten::*' is not used" not in done.stderr


def test_reports_are_json_too(traces: Path, tmp_path: Path) -> None:
    for words, key in (
        (("timings", traces, "-o", tmp_path / "l.txt"), "lines"),
        (("rewrite", traces, tmp_path / "o", "--dilation", "2"), "rounding"),
        (("info", traces), "lanes"),
        (("check", traces), "sound"),
        (("replay", traces), "communication_s"),
        (("export", tmp_path / "o", tmp_path / "e", "--to", "chrome", "--replayed"), "pes"),
        (("diff", traces, tmp_path / "o"), "fields"),
    ):
        assert key in json.loads(run(*words, "--json").stdout), words


def test_timings_of_no_node_are_an_error_and_replace_no_file(traces: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("kept")
    done = run("timings", traces, "-o", lines, "--types", "MEM_LOAD")
    assert (done.returncode, lines.read_text()) == (1, "kept")
    why = "no node has a timing line: there are no nodes of type MEM_LOAD\n"
    assert done.stderr == f"rewritelog: error: {traces}: {why}"
    untimed = write_traces(tmp_path / "untimed", [[node(1, duration=0)]])
    done = run("timings", untimed, "-o", lines)
    assert "no node has a timing line: left out: 1 node of duration 0: not timed" in done.stderr
    assert (done.returncode, lines.read_text()) == (1, "kept")


def test_timings_say_which_values_nodes_lack(traces: Path, tmp_path: Path) -> None:
    rules = tmp_path / "events.toml"
    rules.write_text('[events."aten::mm"]\nparams = ["a1 * num_opz", "a9"]\n')
    done = run("timings", traces, "-o", tmp_path / "l.txt", "--event-params", rules)
    assert re.search(r": (\d+) have no num_opz, \1 have no a9\n", done.stderr)
    rules.write_text('[events."aten::mm"]\nparams = ["a1"]\n')
    some = write_traces(tmp_path / "some", [[mm(1, 64, 2e-11), node(2, "aten::mm")]])
    done = run("timings", some, "-o", tmp_path / "l.txt", "--event-params", rules)
    assert "1 timing line of 1 event" in done.stdout
    assert ": 1 has no a1\n" in done.stderr


def test_more_than_twenty_dimensions_are_their_tensors_and_elements(tmp_path: Path) -> None:
    nodes = [node(1, "a", shapes=str([[2, 3]] * 10))]
    nodes += [node(k, "b", shapes=str([[2, 3]] * 10 + [[5]])) for k in (2, 3)]
    path = write_traces(tmp_path / "t", [nodes])
    done = run("timings", path, "-o", tmp_path / "l.txt")
    params = re.findall(r"params:\{ (.*?) \}", (tmp_path / "l.txt").read_text())
    values = [[float(value) for value in text.split()] for text in params]
    assert values == [[2, 3] * 10, [11, 65], [11, 65]]
    assert re.findall(r"^  ([ab]) +(\d)", done.stdout, re.MULTILINE) == [("b", "2"), ("a", "1")]


def test_a_call_that_no_line_can_hold_leaves_out_no_other_one(tmp_path: Path) -> None:
    """The later calls of its event were left out, too."""
    long = "n" * ((1 << 20) - 80)
    nodes = [node(1, long, shapes="[[1, 2, 3]]"), node(2, long), node(3, "b")]
    path = write_traces(tmp_path / "t", [nodes])
    done = run("timings", path, "-o", tmp_path / "l.txt", "--json")
    assert (json.loads(done.stdout)["lines"], json.loads(done.stdout)["unusable"]) == (2, 1)


def test_a_rewrite_reads_each_rank_once(traces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    units: list[Unit] = []
    read = ChakraTraces.read

    def read_and_note(self: ChakraTraces, unit: Unit) -> Iterator[NodePart]:
        units.append(unit)
        return read(self, unit)

    monkeypatch.setattr(ChakraTraces, "read", read_and_note)
    report = rewritelog.rewrite(traces, None, dilation=2)
    assert report.run_time is not None
    assert report.run_time.after_s == rewritelog.replay(traces, dilation=2).predicted_s
    assert len(units) == 2 * len(set(units))  # one of them for `replay`
    monkeypatch.setattr(run_time, "MOST_SEBS", 5)
    text = " ".join(rewritelog.rewrite(traces, dilation=2).text().split())
    assert "over a million nodes are replayed" in text
    assert rewritelog.rewrite(traces, dilation=2, network="log").run_time == report.run_time


@pytest.mark.parametrize("ranks", [1, 3])
def test_many_dependencies_of_few_nodes_are_not_kept(
    ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """50 nodes with 200 million of them took 7 GB."""
    nodes = [node(1), node(2, deps=[1] * (300 // ranks))]
    path = write_traces(tmp_path / "t", [nodes] * ranks)
    assert rewritelog.rewrite(path, dilation=2).run_time is not None
    monkeypatch.setattr(run_time, "MOST_SEBS", 10)
    report = rewritelog.rewrite(path, dilation=2)
    text = " ".join(report.text().split())
    assert "over 16 million dependencies are replayed only if a network is given" in text
    assert not report.statistics.kept
    assert rewritelog.rewrite(path, dilation=2, network="log").run_time is not None


def test_the_file_of_one_rank_is_one_rank(tmp_path: Path) -> None:
    path = write_traces(tmp_path / "t", [[node(1)]])
    (path / "run.0.et").rename(path / "run.5.et")
    report = rewritelog.rewrite(path / "run.5.et", dilation=2)
    assert "on 1 rank," in report.text()
    assert rewritelog.export(path, tmp_path / "o", "chrome", pes=[5], replayed=True).pes == 1
    with pytest.raises(UsageError, match="pes 0-4: the ranks are 5 to 5"):
        rewritelog.export(path, tmp_path / "p", "chrome", pes="0-4", replayed=True)
    with pytest.raises(UsageError, match="rank 0 is not in the log: it has ranks 5 to 5"):
        rewritelog.export(path, tmp_path / "p", "chrome", pes=[0], replayed=True)
    done = run("export", path, tmp_path / "p", "--to", "chrome", "--pes", "7-9")
    assert "--pes 7-9: the ranks are 5 to 5" in done.stderr
    assert report.to_json()["busy_time"]["old"] == {
        "largest_s": 1e-5, "largest_pe": 5, "mean_s": 1e-5, "imbalance": 1,
    }  # fmt: skip


def test_a_packed_file_is_read_and_its_name_is_one_that_no_simulator_finds(tmp_path: Path) -> None:
    """The check of a file beside others, packed by gzip as that names it, found nothing."""
    path = write_traces(tmp_path / "t", [[node(1)], [node(1)]])
    plain = rewritelog.replay(path).predicted_s
    packed = path / "run.1.et.gz"
    packed.write_bytes(gzip.compress((path / "run.1.et").read_bytes()))
    done = run("check", path)
    assert (done.returncode, "rank 1 has another file" in done.stderr) == (1, True)
    (path / "run.1.et").unlink()
    assert (rewritelog.replay(path).pes, rewritelog.replay(path).predicted_s) == (2, plain)
    report = rewritelog.check(path)
    assert report.findings.counts["file-name"] == 1
    assert f"{packed}: the name does not end in .1.et" in report.text()
    padded = packed.rename(path / "run.01.et")  # it was found to be right
    assert f"{padded}: the name does not end in .1.et" in rewritelog.check(path).text()
    padded.rename(path / "run.1.et")
    assert "file-name" not in rewritelog.check(path).findings.counts
    alone = (path / "run.1.et").rename(path / "x.et")
    assert "file-name" not in rewritelog.check(alone).findings.counts


def test_some_of_the_ranks_are_enough(tmp_path: Path) -> None:
    collective = node(2, kind=COLL, deps=[1], duration=5)
    path = write_traces(tmp_path / "t", [[node(1), collective, node(3, deps=[2])]] * 5)
    for rank in (0, 2, 4):
        (path / f"run.{rank}.et").unlink()
    replayed = rewritelog.replay(path)
    assert replayed.pes == 2
    assert replayed.predicted_s == pytest.approx(25e-6)
    lacking = "there is no file of rank 0 nor of 1 more rank below 3"
    assert replayed.warnings[0] == f"{lacking}: nothing waits for what is missing"
    rewritten = rewritelog.rewrite(path, tmp_path / "out", dilation=2)
    assert rewritten.run_time is not None
    assert rewritten.run_time.after_s == pytest.approx(45e-6)
    assert rewritten.warnings == replayed.warnings
    assert sorted(file.name for file in (tmp_path / "out").glob("*.et")) == [
        "run.1.et", "run.3.et",
    ]  # fmt: skip
    report = rewritelog.check(path)
    assert report.findings.counts["rank-missing"] == 1
    assert f"{path}: {lacking}" in report.text()
    assert "rank-missing" not in rewritelog.check(path / "run.3.et").findings.counts
    (path / "run.1.et").rename(tmp_path / "run.1.et")
    assert rewritelog.check(path).findings.counts["rank-missing"] == 1  # of a single file, too
    (tmp_path / "run.1.et").rename(path / "run.1.et")
    assert rewritelog.export(path, tmp_path / "o", "chrome", pes="1-2", replayed=True).pes == 1
    for pes in ("2", [2]):
        with pytest.raises(UsageError, match=r"rank 2 is not in the log: it has ranks 1 to 3"):
            rewritelog.export(path, tmp_path / "p", "chrome", pes=pes, replayed=True)


def test_a_timeline_of_other_ranks_says_which_there_are(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = write_traces(tmp_path / "t", [[node(1)]])
    (path / "run.0.et").rename(path / "run.5.et")
    done = run("timeline", path, "-o", "t.svg", "--pes", "7-9")
    assert "--pes 7-9: the ranks are 5 to 5" in done.stderr


def test_a_rewrite_that_changes_nothing_replays_once(
    traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = list[Case]()

    def run_and_note(workload: Workload, case: Case) -> ReplayedTime:
        runs.append(case)
        return replay.run_time(workload, case)

    monkeypatch.setattr(run_time, "run_time", run_and_note)
    report = rewritelog.rewrite(traces)
    assert report.run_time is not None
    assert report.run_time.before_s == report.run_time.after_s > 0
    assert len(runs) == 1
    rewritelog.rewrite(traces, dilation=2)
    assert len(runs) == 3


def test_durations_of_64_bits_are_written(tmp_path: Path) -> None:
    path = write_traces(tmp_path / "t", [[node(1, duration=2**64 - 1)]])
    rewritelog.rewrite(path, tmp_path / "o", dilation=0.75)
    assert durations(tmp_path / "o") == [[0.75 * 2**64]]
    with pytest.raises(RewriteLogError, match=r"run.0.et, node 0: the new duration .* 64 bits"):
        rewritelog.rewrite(path, tmp_path / "p", dilation=2)


def test_a_replay_without_a_network_names_no_transit_times(traces: Path) -> None:
    network = "communication takes its nodes' durations"
    assert f"network: {network}" in rewritelog.replay(traces).text()
    assert network in " ".join(rewritelog.rewrite(traces, None, dilation=2).text().split())


def test_odd_shapes_and_attributes_give_finite_parameters(tmp_path: Path) -> None:
    shapes = ["[[[64], [64]], [3]]", f"[[{'9' * 17}" + f", {'9' * 17}" * 30 + "], []]", "[" * 5000,
              "nothing", "[[], [2, 'x']]"]  # fmt: skip
    nodes = [node(k, f"op{k}", 5, shapes=text) for k, text in enumerate(shapes)]
    inf = {"num_ops": ("double", float("inf")), "tensor_size": ("uint64", 7)}
    nodes.append(node(9, "bare", 5, attributes=inf))
    path = write_traces(tmp_path / "t", [nodes])
    lines = tmp_path / "lines.txt"
    assert run("timings", path, "-o", lines).returncode == 0
    params = [
        line.rpartition("params:{ ")[2].split()[:-1] for line in lines.read_text().split("\n")
    ]
    assert params[0] == ["64.000000", "64.000000", "3.000000"]
    assert params[1] == ["1.000000", "1e+300"]
    assert params[2:6] == [[], [], ["2.000000"], ["7.000000"]]
    report = rewritelog.rewrite(path, timings=lines, dilation=1)
    assert report.to_json()["counts"]["by_exact"] + report.to_json()["counts"]["by_model"] == 6


def test_hostile_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    name = "a\x1b]0;title\x07{b}\n\udc9b".encode("utf-8", "surrogatepass").decode("latin-1")
    nodes = [node(k, name, k, kind=kind, attributes={"pg_name": ("string", name), **GPU})
             for k, kind in enumerate((COMP, COLL, 0, COMP))]  # fmt: skip
    path, other = write_traces(tmp_path / "t", [nodes]), tmp_path / "o"
    lines = tmp_path / "lines.txt"
    for words in (
        ("info", path),
        ("check", path),
        ("timings", path, "-o", lines),
        ("rewrite", path, other, "--timings", lines, "--dilation-for", f"{name}*=2", "-v"),
        ("diff", path, other),
        ("replay", path),
    ):
        done = run(*words)
        assert done.returncode in (0, 1), done.stderr
        shown = (done.stdout + done.stderr).replace("\n", "")
        assert "".join(c for c in shown if ord(c) < 32 or 127 <= ord(c) < 160) == "", words


def test_long_names_are_short_in_warnings(tmp_path: Path) -> None:
    """Five names of kernels were a page of text, and one of a megabyte was a megabyte."""
    kernels = [f"void at::{of}_kernel<{'4, ' * 99}int>" for of in ("copy", "add")]
    timed = write_traces(tmp_path / "timed", [[node(k, kernels[k]) for k in (0, 1)]])
    path = write_traces(tmp_path / "t", [[node(1, "a" * 1_000_000), node(2, kernels[0])]])
    lines, model = tmp_path / "lines.txt", tmp_path / "model.json"
    run("timings", timed, "-o", lines)
    run("fit", lines, "-o", model)
    done = run("rewrite", path, tmp_path / "o", "--fitted", model, "--dilation", "1")
    (uncovered,) = re.findall("warning: (1 node dilated.*)", done.stderr)
    short = r"'[^']{1,60}'"
    match = re.fullmatch(f".* it: {short} \\(1\\); it covers ({short}), ({short}); .*", uncovered)
    assert match is not None, uncovered
    assert match[1] != match[2]
    run("timings", path, "-o", lines)
    done = run("verify", model, lines)
    assert re.search(f"no fit for 1 of 1 line of {short};", done.stderr), done.stderr


def test_check_counts_what_would_stop_a_simulator(tmp_path: Path) -> None:
    path = write_traces(
        tmp_path / "t",
        [
            [
                node(1, deps=[2], attributes=GPU),
                node(2, deps=[1], attributes=CPU),
                node(3, deps=[99], attributes=CPU),
                node(3, attributes=GPU, duration=0),
                node(4, deps=[2, 3, 2], attributes=CPU),
            ]
        ],
    )
    report = rewritelog.check(path)
    assert report.findings.counts == {
        "id-twice": 1,
        "dependency-missing": 1,
        "dependency-twice": 1,
        "cycle": 2,
        "device-leaf": 1,
        "zero-duration": 1,
    }
    assert not report.sound
    done = run("check", path)
    assert done.returncode == 1
    assert f"{path}/run.0.et, node 2: waits for a node that the rank does not have" in done.stdout
    (path / "run.1.et").write_bytes(trace([node(1)])[:-2])
    (path / "run.2.et").symlink_to(path / "gone")
    report = rewritelog.check(path)
    assert report.findings.counts["unreadable"] == 2
    assert f"{path}/run.2.et: cannot be read: No such file or directory" in report.text()
    with pytest.raises(RewriteLogError, match=r"run.1.et, byte .*: the file ends"):
        rewritelog.info(path)


def test_check_finds_communication_on_a_cpu(tmp_path: Path) -> None:
    """ASTRA-sim ended traces with it, and now no longer does."""
    kinds = (COMP, SEND, RECV, COLL)
    nodes = [
        node(place, kind=kind, attributes={"is_cpu_op": ("bool", on_cpu)}, deps=[place + 1])
        for place, (kind, on_cpu) in enumerate(product(kinds, (True, False)), 1)
    ]
    report = rewritelog.check(write_traces(tmp_path / "t", [[*nodes, node(9, kind=COLL)]]))
    assert report.findings.counts == {"communication-on-cpu": 3}
    places = [found.location.node for found in report.findings.shown["communication-on-cpu"]]
    assert places == [2, 4, 6]


def test_check_finds_collectives_that_astra_sim_lacks(tmp_path: Path) -> None:
    nodes = [
        node(kind + 1, kind=COLL, attributes=GPU | {"comm_type": ("int64", kind)})
        for kind in range(10)
    ]
    untyped, computing = node(11, kind=COLL, attributes=GPU), {"comm_type": ("int64", 9)}
    nodes += [untyped, node(12, deps=[13], attributes=computing), node(13, deps=[12])]
    findings = rewritelog.check(write_traces(tmp_path / "t", [nodes])).findings
    assert findings.counts == {"collective-unknown": 5, "cycle": 2}
    places = [found.location.node for found in findings.shown["collective-unknown"]]
    assert places == [1, 3, 4, 8, 9]


def test_check_compares_the_collectives_of_ranks(tmp_path: Path) -> None:
    """Only replays said that they differ, and ASTRA-sim never ended."""

    def of(group: str, **numbers: int) -> dict[str, tuple[str, object]]:
        values = {name: ("int64", number) for name, number in numbers.items()}
        return {"pg_name": ("string", group), **values}

    def collective(number: int, kind: int = 0, size: int = 4000, group: str = "tp") -> bytes:
        return node(number, kind=COLL, attributes=of(group, comm_type=kind, comm_size=size))

    broadcast, untyped = collective(1, 5), node(1, kind=COLL, attributes=of("tp", comm_size=4000))
    on_cpu = node(4, kind=COLL, attributes={**of("tp"), "is_cpu_op": ("bool", True)})
    first = [collective(2), collective(7, size=8), collective(4, 2), collective(5, 2, group="dp")]
    ranks = [
        first,
        [broadcast, *reversed(first), collective(8, group="pp")],
        [untyped, collective(3, 2), collective(9, size=8), on_cpu],
        [collective(2), collective(4, 6), collective(7, size=9)],
        [collective(2), collective(4, 2), collective(5, 2, 4001, group="dp")],
        [collective(2, group="pp"), collective(3, 7, 7, group="pp")],
    ]
    path = write_traces(tmp_path / "t", ranks)
    report = rewritelog.check(path)
    assert not report.sound
    assert report.findings.counts["collective-differs"] == 4
    there = "all-gather of 4,000 bytes on rank 0"
    found = map(str, report.findings.shown["collective-differs"])
    assert [text.removeprefix(f"{path}/run.").split(": ", 1) for text in found] == [
        ["3.et, node 1", f"collective 2 of group tp: all-to-all of 4,000 bytes here, {there}"],
        ["4.et", "collective 3 of group tp: none here, all-reduce of 8 bytes on rank 0"],
        ["4.et, node 2", f"collective 1 of group dp: all-gather of 4,001 bytes here, {there}"],
        [
            "5.et, node 1",
            "collective 2 of group pp: reduce-scatter of 7 bytes here, none on rank 1",
        ],
    ]


def test_check_finds_ranks_without_any_collective_of_all_ranks(tmp_path: Path) -> None:
    """They passed, and the other ranks wait for them forever."""
    numbers: dict[str, tuple[str, object]] = {"comm_type": ("int64", 0), "comm_size": ("int64", 8)}
    collective, none = node(1, kind=COLL, attributes=numbers), node(2)
    path = write_traces(tmp_path / "t", [[none], [collective], [none]])
    found = rewritelog.check(path).findings.shown["collective-differs"]
    assert list(map(str, found)) == [
        f"{path}/run.1.et, node 0: collective 1: all-reduce of 8 bytes here, none on rank 0"
    ]
    (path / "run.0.et").rename(path / "run.3.et")
    found = rewritelog.check(path).findings.shown["collective-differs"]
    assert [each.location.file for each in found] == [path / "run.2.et", path / "run.3.et"]


def test_check_follows_control_dependencies(tmp_path: Path) -> None:
    """It did not read them: ASTRA-sim refuses traces that name a node that is not there."""
    host = partial(node, attributes={"is_cpu_op": ("bool", True)})
    ranks = [
        [host(1, control=[2]), host(2, deps=[1, 1]), host(3, deps=[1], control=[1, 1])],
        [host(1, control=[9]), host(2, deps=[1], control=[2])],
        [node(1, attributes=GPU), host(2, control=[1])],
    ]
    path = write_traces(tmp_path / "t", ranks)
    findings = rewritelog.check(path).findings
    assert findings.counts == {"dependency-twice": 1, "cycle": 2, "control-missing": 1}
    (missing,) = findings.shown["control-missing"]
    assert (missing.location.file, missing.location.node) == (path / "run.1.et", 0)


def test_a_message_on_which_nothing_depends_is_no_kernel(tmp_path: Path) -> None:
    nodes = [node(1, attributes=GPU), node(2, kind=COLL, deps=[1], attributes=GPU)]
    path = write_traces(tmp_path / "t", [nodes])
    assert rewritelog.check(path).findings.counts == {}
    assert "nothing found" in run("check", path).stdout


def test_rules_of_traces_are_listed_and_explained() -> None:
    listed = run("rules").stdout
    _, _, of_traces = listed.partition("Chakra traces, would stop the simulator:")
    assert "dependency-twice" in of_traces
    explained = " ".join(run("rules", "device-leaf").stdout.split())
    assert "new durations for them change nothing" in explained
    of_both = run("rules", "unreadable").stdout
    assert "all timeline files" in of_both
    assert "a rank's file" in of_both


def test_a_node_without_a_name_leaves_no_hole_in_tables(tmp_path: Path) -> None:
    path = write_traces(tmp_path / "t", [[node(1, "", 5)]])
    assert "(no name) (COMP)      1  5.000 µs" in rewritelog.info(path).text()
    assert "(id 1, (no name))" in rewritelog.check(path).text()


def test_info_says_where_the_time_goes(traces: Path) -> None:
    report = rewritelog.info(traces).to_json()
    assert report["nodes"] == 14
    assert report["types"]["COLL"] == {"nodes": 2, "seconds": pytest.approx(80e-6)}
    assert set(report["lanes"]) == {"CPU thread 1", "device stream 7"}
    assert report["names"][0]["name"] == "aten::mm"
    text = run("info", traces).stdout
    assert "2 ranks" in text
    tables = [line.split()[0] for line in text.splitlines() if line.endswith("time    share")]
    assert tables == ["type", "runs", "node", "rank"]


def test_info_lists_ranks_by_number_and_adds_up_exactly(tmp_path: Path) -> None:
    """Rank 10 came before rank 2, and ten times 0.1 s were 0.9999999999999999 s."""
    path = write_traces(tmp_path / "t", [[node(k, "a", 100_000) for k in range(10)]] * 12)
    report = rewritelog.info(path).to_json()
    assert list(report["ranks"]) == list(map(str, range(12)))
    assert {rank["seconds"] for rank in report["ranks"].values()} == {1.0}
    assert "share" not in run("info", write_traces(tmp_path / "e", [[]])).stdout


def test_a_latency_within_nodes_is_for_logs(traces: Path) -> None:
    """It was shown, and changed nothing."""
    done = run("replay", traces, "--node-latency", "1us")
    assert (done.returncode, "--node-latency is for bgTrace logs" in done.stderr) == (2, True)


def test_diff_compares_nodes_by_their_ids(traces: Path, tmp_path: Path) -> None:
    assert rewritelog.diff(traces, traces).verdict == "the same"
    rewritelog.rewrite(traces, tmp_path / "o", dilation=2)
    report = rewritelog.diff(traces, tmp_path / "o")
    assert report.verdict == "different: only time fields"
    assert run("diff", traces, tmp_path / "o").returncode == 1
    other = write_traces(tmp_path / "other", [[node(1)], [node(1, "x"), node(7)]])
    differing = {
        change["field"]: change["changed"]
        for change in rewritelog.diff(traces, other).to_json()["fields"]
    }
    assert differing["name"] == 1
    assert differing["only in A"] == 12
    assert differing["only in B"] == 1
    text = rewritelog.diff(traces, other).text()
    assert "12 of 14" in text, "nodes of A"
    assert "1 of 3" in text, "nodes of B"
    with pytest.raises(UsageError, match="the ranks differ: 0, 1 in A, 0 in B"):
        rewritelog.diff(traces, write_traces(tmp_path / "one", [[node(1)]]))
    with pytest.raises(UsageError, match="has Chakra execution traces, "):
        rewritelog.diff(traces, SAMPLE_LOGS / "cells")


def test_nodes_of_one_id_are_compared_in_their_order(tmp_path: Path) -> None:
    nodes = [node(1), node(1, duration=20), node(2, deps=[1])]
    a = write_traces(tmp_path / "a", [nodes])
    assert rewritelog.diff(a, a).same
    b = write_traces(tmp_path / "b", [[nodes[0], node(1, duration=30), nodes[2]]])
    (change,) = rewritelog.diff(a, b).to_json()["fields"]
    assert (change["field"], change["changed"], change["first"]["node"]) == ("duration", 1, 1)


def test_diff_tells_other_metadata_and_packed_files(tmp_path: Path) -> None:
    a = write_traces(tmp_path / "a", [[node(1)], [node(1)]])
    b = write_traces(tmp_path / "b", [[node(1)], [node(1)]], packed=True)
    report = rewritelog.diff(a, b)
    assert "representation: packed files: 0 → 2" in report.text()
    assert report.verdict == "different: only the representation; the content is the same"
    (b / "run.1.et").write_bytes(trace([node(1)], field(1, b"1.1\x1b")))
    report = rewritelog.diff(a, b)
    assert "metadata of rank 1: " in report.text()
    assert "\x1b" not in report.text()
    assert report.verdict == "different: more than time fields"


def test_diff_tells_other_shapes_and_attributes_from_the_same(tmp_path: Path) -> None:
    a = write_traces(tmp_path / "a", [[node(1, shapes="[[3]]"), node(2, start=4)]])
    other = node(2, start=5, duration=11, attributes={"num_ops": ("int64", 7)})
    b = write_traces(tmp_path / "b", [[node(1, shapes="[[4]]"), other]])
    fields = rewritelog.diff(a, b).to_json()["fields"]
    assert {change["field"]: change["changed"] for change in fields} == {
        "duration": 1,
        "start": 1,
        "other fields, or their order": 2,
    }


def test_a_comparison_does_not_depend_on_the_parts_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)

    def nodes(count: int) -> list[bytes]:
        return [
            node(k % 250, f"op{k % 7}", deps=[k // 2], start=int(rng.integers(2)),
                 attributes={**(GPU if rng.integers(9) else CPU), "num_ops": ("int64", k % 3)})
            for k in rng.permutation(count).tolist()
        ]  # fmt: skip

    a = write_traces(tmp_path / "a", [nodes(300)])
    b = write_traces(tmp_path / "b", [nodes(280)])
    comparison = rewritelog.diff(a, b)
    assert "'CPU' → 'device'" in comparison.text()
    for size in (100, 1000):
        monkeypatch.setattr(reader, "PART_BYTES", size)
        assert rewritelog.diff(a, b).to_json() == comparison.to_json()


@pytest.mark.parametrize(
    "words",
    [
        ("convert", "X", "out"),
        ("dump", "X", "--pe", "0"),
        ("sample", "X", "-o", "out"),
        ("lost-cycles", "X"),
        ("sweep", "X", "--vary", "node-latency=1us"),
    ],
)
def test_commands_for_other_logs_say_so(traces: Path, words: tuple[str, ...]) -> None:
    done = run(*(traces if word == "X" else word for word in words))
    assert done.returncode != 0
    assert "Chakra execution traces" in done.stderr


def test_a_fit_to_traces_says_what_makes_timing_lines(traces: Path) -> None:
    done = run("fit", traces)
    assert done.returncode == 1
    assert "is a folder, not a file; a timed program prints timing lines, and `rew" in done.stderr


def test_what_more_there_is_of_a_replay_is_of_traces(traces: Path) -> None:
    """It offered the PE time by range of PEs, which traces do not have, and busiest ranks."""
    shown = run("replay", traces).stdout
    assert "-v: critical path, all gains, busiest threads, streams and networks" in shown
    assert "PE" not in shown


def test_a_replay_of_traces_is_not_that_of_logs_in_a_folder_beside_them(traces: Path) -> None:
    write_logs(traces / "old", [[seb(0, 1)]])
    assert "on 2 ranks" in run("replay", traces).stdout


@pytest.mark.parametrize(
    "words", [("--copy-params",), ("--recv", "keep"), ("--spread", "residual")]
)
def test_options_of_other_logs_are_refused(
    traces: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = run("rewrite", traces, tmp_path / "o", *words)
    assert done.returncode == 2
    assert "is for bgTrace logs" in done.stderr
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("check", "X", "--params", "X"), "--params is for bgTrace logs"),
        (("rewrite", "X", "OUT", "--params", "NONE"), "--params is for bgTrace logs"),
        (("diff", "X", "X", "--params", "X"), "--params is for bgTrace logs"),
        (("export", "X", "OUT", "--to", "chrome", "--params", "X"), "--params is for bgTrace logs"),
        (("replay", "X", "--lost-as", "a=b"), "--lost-as is for bgTrace logs"),
        (("replay", "X", "--write", "OUT"), "--write is for bgTrace logs"),
        (("timeline", "X", "-o", "OUT", "--messages"), "--messages is for bgTrace logs"),
        (("timeline", "X", "-o", "OUT", "--colour-by", "event"), "event is for bgTrace logs"),
    ],
)
def test_options_of_other_logs_are_refused_by_all_commands(
    traces: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    """`export --params` was taken, and without effect; colours of events left all nodes grey."""
    places = {"X": traces, "OUT": tmp_path / "out.svg"}
    done = run(*(places.get(word, word) for word in words))
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "out.svg").exists()


def test_a_model_of_counters_is_refused(traces: Path, tmp_path: Path) -> None:
    """It took the shapes of nodes for counters."""
    lines, model = tmp_path / "lines", tmp_path / "m.json"
    lines.write_text(
        "".join(
            f"TRACEBIGSIM: event:{{ k }} time:{{ {k} }} params:{{ 1 }} PAPI:{{ {k * k} }}\n"
            for k in range(1, 9)
        )
    )
    assert run("fit", lines, "--model", "counters", "-o", model).returncode == 0
    for words in (
        ("rewrite", traces, "--dry-run", "--fitted", model),
        ("replay", traces, "--fitted", model),
        ("sweep", traces, "--vary", "dilation=1,2", "--timings", lines, "--model", "counters"),
    ):
        done = run(*words)
        assert done.returncode == 2
        assert "reads counters: Chakra execution traces have none" in done.stderr


def test_event_params_that_are_not_used_are_not_read(traces: Path, tmp_path: Path) -> None:
    """Their errors ended rewrites and sweeps by a factor, which need no events."""
    broken = tmp_path / "broken.toml"
    broken.write_text("[events")
    jobs = (
        rewritelog.rewrite(traces, tmp_path / "o", dilation=2, event_params=broken),
        rewritelog.sweep(traces, {"dilation": [1, 2]}, event_params=broken),
    )
    for job in jobs:
        unused = [text for text in job.warnings if text.startswith(str(broken))]
        assert unused == [f"{broken}: not used, since the model 'constant' reads no params"]
    with pytest.raises(ModelError, match="is not TOML"):
        rewritelog.replay(traces, event_params=broken)


def test_a_roofline_leaves_new_durations_without_effect(traces: Path, tmp_path: Path) -> None:
    done = run("rewrite", traces, tmp_path / "o", "--dilation", "2", "--roofline")
    assert "98.9 % of the new time is computed by devices: with roofline-enabled" in done.stderr
    assert "and version f66c1da for that of CPUs, too" in done.stderr
    basis = "99.1 % of the new time rests on --dilation alone, 0.9 % is in nodes of other types."
    assert basis in " ".join(done.stdout.split())


def test_shares_are_said_to_be_without_the_network_that_the_run_time_has(traces: Path) -> None:
    """84 % of the new time was in collectives, which took half of that in the run."""
    given = rewritelog.rewrite(traces, dilation=2, latency="1us").text()
    basis = "in nodes of other types (as recorded: the network counts only in the run time)."
    assert basis in " ".join(given.split())
    assert "as recorded" not in rewritelog.rewrite(traces, dilation=2).text()


def test_a_dilation_of_nodes_without_durations_is_said_to_change_nothing(tmp_path: Path) -> None:
    """Generators leave them to ASTRA-sim's roofline model; there was no warning."""
    for place, (duration, dilation) in enumerate([(0, 2), (0, 1), (10, 0.01)]):
        traces = write_traces(tmp_path / f"t{place}", [[node(1, duration=duration)]])
        report = rewritelog.rewrite(traces, tmp_path / f"o{place}", dilation=dilation)
        warns = "all nodes take no time, and a dilation leaves them so" in str(report.warnings)
        assert warns == (place == 0)
    nodes = [node(1, duration=0), node(2, kind=COLL)]  # no warning, since the collective takes time
    (warning,) = rewritelog.rewrite(write_traces(tmp_path / "c", [nodes]), dilation=2).warnings
    assert warning.startswith("all nodes of the chosen types take no time, and a dilation leaves")


def test_a_damaged_trace_leaves_no_output(traces: Path, tmp_path: Path) -> None:
    with (traces / "run.1.et").open("ab") as file:
        file.write(b"\x05\x38")
    with pytest.raises(RewriteLogError, match=r"run.1.et, byte \d+, node 7: the file ends"):
        rewritelog.rewrite(traces, tmp_path / "o", dilation=2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["traces"]


def test_chrome_export_has_the_nodes_with_a_start(traces: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no start times are recorded"):
        rewritelog.export(traces, tmp_path / "o", "chrome")
    timed = write_traces(tmp_path / "timed", [[node(1, start=5, attributes=GPU), node(2)]])
    report = rewritelog.export(timed, tmp_path / "o", "chrome")
    events = json.loads((tmp_path / "o/trace.json").read_text())["traceEvents"]
    assert [(e["ts"], e["dur"], e["tid"]) for e in events if e["ph"] == "X"] == [
        (5, 10, "stream 7")
    ]
    assert report.warnings == ("1 node left out: no start is recorded",)
    assert report.text().endswith(": 1 rank for chrome: 1 node")
    slow = write_traces(tmp_path / "slow", [[node(k, start=5 * k) for k in (1, 2, 3)]] * 2)
    (overlapping,) = rewritelog.export(slow, tmp_path / "overlapping", "chrome").warnings
    assert overlapping.startswith("2 slices left out by viewers")
    assert not rewritelog.export(slow, tmp_path / "replayed", "chrome", replayed=True).warnings
    until = rewritelog.export(timed, tmp_path / "until", "chrome", until_s="5us")
    assert until.counts["nodes"] == 1
    late = rewritelog.export(timed, tmp_path / "late", "chrome", from_s="20us")
    assert late.warnings[1] == "nothing is exported: nothing runs between from_s and until_s"


def test_the_sample_is_what_its_manifest_says(tmp_path: Path) -> None:
    sample = SAMPLE_LOGS / "transformer"
    manifest = (sample / "MANIFEST.md").read_text()
    (tmp_path / "make.py").write_bytes((sample / "make.py").read_bytes())
    subprocess.run([sys.executable, "make.py"], cwd=tmp_path, check=True)
    for path in sample.rglob("*.et"):
        assert (tmp_path / path.relative_to(sample)).read_bytes() == path.read_bytes()
    report = rewritelog.info(sample / "training").to_json()
    assert report["nodes"] == 120
    assert "two ranks with 60 nodes each (56 kernels, 4 all-reduces)" in manifest


def write_lines(traces: object, out: Path) -> None:
    assert isinstance(traces, Traces)
    write_timings(TimingsCommand(traces, out))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "job", [write_lines, partial(rewrite, options=RewriteOptions(dilation=0.7))]
)
def test_memory_does_not_grow_with_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool, job: Callable[..., object]
) -> None:
    monkeypatch.setattr(reader, "PART_BYTES", 1 << 16)
    peaks = []
    for count in (1_000, 10_000):
        nodes = [node(k, "n" * 400, k % 90, attributes=GPU) for k in range(count)]
        path = write_traces(tmp_path / f"t{count}", [nodes], packed=packed)
        opened = rewritelog.open_traces(path)
        tracemalloc.start()
        with limited_to(1):
            job(opened, tmp_path / f"o{count}")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + (1 << 20)


def test_an_output_that_exists_is_found_before_the_timings_are_read(
    traces: Path, tmp_path: Path
) -> None:
    out, timings = tmp_path / "out", tmp_path / "timings.txt"
    out.mkdir()
    (out / "kept").write_text("")
    timings.write_text("no timing line\n")
    done = run("rewrite", traces, out, "--timings", timings)
    assert (done.returncode, "exists and is not empty" in done.stderr) == (1, True)
    assert [path.name for path in out.iterdir()] == ["kept"]


def test_the_report_of_a_replay_fits_into_a_line(tmp_path: Path) -> None:
    name = "a_kernel_with_as_long_a_name_as_compilers_make_of_templates<float, 128>"
    nodes = [node(number, name, 10, deps=[number - 1] if number else []) for number in range(1200)]
    report = rewritelog.replay(write_traces(tmp_path / "traces", [nodes]))
    assert max(map(len, report.text().splitlines())) <= 80
    assert repr(report) == (
        "<ReplayReport: Predicted run time: 12.00 ms on 1 rank, utilisation 100.0 %>"
    )
    assert "  utilisation is that of 1 thread or stream\n" in report.text()
    assert "bounded by 1,200 nodes one after the other: 100.0 % in" in report.text()
    waiting = write_traces(tmp_path / "waiting", [[node(1, 3 * name, 10, deps=[1])]])
    lines = rewritelog.replay(waiting).text().splitlines()
    assert max(map(len, lines)) <= 80, "the name of a node that never ran was not cut"


def test_a_timeline_has_a_row_for_each_thread_and_stream(traces: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(UsageError, match="no start times are recorded"):
        rewritelog.timeline(traces, tmp_path / "t.svg")
    empty = write_traces(tmp_path / "empty", [[], []])
    with pytest.raises(UsageError, match="empty: nothing to draw: no node runs in the replay"):
        rewritelog.timeline(empty, tmp_path / "t.svg", times="replay")
    timed = write_traces(
        tmp_path / "timed",
        [
            [
                node(1, "launch", 5, start=10, attributes=CPU),
                node(2, start=20, attributes=GPU),
                node(3, attributes=GPU),
            ]
            for _ in range(2)
        ],
    )
    recorded = bytes(rewritelog.timeline(timed, kind="svg", pes=[1])).decode()
    assert "2 nodes; 1 without a start not drawn" in recorded
    assert "rank 1 CPU thread 1" in recorded
    assert "rank 1 stream 7" in recorded
    assert "rank 0" not in recorded
    replayed = bytes(rewritelog.timeline(traces, kind="svg", times="replay")).decode()
    assert "rank 0 network" in replayed
    with pytest.raises(UsageError, match="messages=True is for bgTrace logs"):
        rewritelog.timeline(timed, kind="svg", messages=True)


def test_times_count_from_the_first_start_of_any_rank(tmp_path: Path) -> None:
    """Seconds since 1970 have a resolution of 0.24 µs, and no bound that anybody could type."""
    pytest.importorskip("matplotlib")
    since_1970 = 1_700_000_000_000_000
    ranks = [
        [node(k, "ab"[k % 2], 1, start=since_1970 + late + k) for k in range(1, 9)]
        for late in (1, 0)
    ]
    traces = write_traces(tmp_path / "traces", ranks)
    picture = rewritelog.timeline(traces, kind="svg", pes=[1])
    (times,) = picture.over_time
    assert (times["bounds_s"][0], times["bounds_s"][-1]) == (0, pytest.approx(9e-6))
    assert [np.mean(times["shares"][name]) * 9 for name in "ab"] == pytest.approx([4, 4])
    rewritelog.timeline(traces, kind="svg", until_s="3us")
    exported = rewritelog.export(traces, tmp_path / "out", "chrome", pes=[0], until_s="3.5us")
    assert exported.counts["nodes"] == 3  # after 1, 2 and 3 µs
    events = json.loads((tmp_path / "out/trace.json").read_text())["traceEvents"]
    assert [e["ts"] - since_1970 for e in events if e["ph"] == "X"] == [2, 3, 4]


def test_rows_of_a_timeline_are_never_those_of_other_streams(tmp_path: Path) -> None:
    """The second of two traces was drawn with the names of the streams of the first."""
    pytest.importorskip("matplotlib", reason="the extra view is not installed")
    folders = [
        write_traces(tmp_path / name, [[node(1, attributes=attributes)], []])
        for name, attributes in (("a", GPU), ("b", CPU))
    ]
    with pytest.raises(UsageError, match=r"a has 1 thread, stream or network and .*b others: "):
        rewritelog.timeline(folders[0], kind="svg", against=folders[1])
    with pytest.raises(UsageError, match="no thread, stream or network is chosen"):
        rewritelog.timeline(folders[0], kind="svg", times="replay", pes=[1])


@pytest.mark.slow
def test_pages_show_traces_as_they_show_logs(traces: Path, tmp_path: Path) -> None:
    pytest.importorskip("bokeh")
    page = tmp_path / "page.html"
    for words, shown in (
        (("rewrite", traces, "--dry-run", "--dilation", "2"), "Busy time of the ranks"),
        (("rewrite", traces / "run", "--dry-run"), f"Rewrite of {traces / 'run'}"),
        (
            ("rewrite", traces, tmp_path / "o", "--dilation", "2"),
            "Time by node names",
        ),
        (("replay", traces), "rank 0 stream 7"),
        (("info", traces), "Durations by name"),
    ):
        done = run(*words, "--html", page)
        assert done.returncode == 0, done.stderr
        assert shown in page.read_text()
        assert "SEB" not in page.read_text().partition("</header>")[2].partition("<script")[0]


def test_long_names_leave_room_for_the_times_of_a_critical_path(tmp_path: Path) -> None:
    """One template name of a GPU's kernel pushed the times of all steps out of the table."""
    pytest.importorskip("bokeh")
    name, page = "kernel" + " float" * 60, tmp_path / "page.html"
    traces = write_traces(tmp_path / "t", [[node(1, name, 5, attributes=GPU)]])
    assert run("replay", traces, "--html", page).returncode == 0
    (shown,) = re.findall(r'\["name",\["([^"]*)"\]\],\["start",[^"]*,\["ran"', page.read_text())
    assert len(shown) < 80


def test_timings_of_many_parts_are_those_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Different parameters are counted once, in whatever parts and ranks they are."""
    nodes = [node(k, f"op{k % 3}", 5, shapes=f"[[{k % 7}]]", attributes=GPU) for k in range(500)]
    path = write_traces(tmp_path / "t", [nodes, nodes[:90]])
    assert run("timings", path, "-o", tmp_path / "whole.txt").returncode == 0
    monkeypatch.setattr(reader, "PART_BYTES", 1 << 12)
    opened = rewritelog.open_traces(path)
    assert isinstance(opened, Traces)
    report = write_timings(TimingsCommand(opened, tmp_path / "parts.txt")).to_json()
    assert (tmp_path / "parts.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()
    assert [event["points"] for event in report["events"]] == [7, 7, 7]
    assert sum(event["lines"] for event in report["events"]) == report["lines"] == 590


def test_sums_of_durations_are_those_of_whole_microseconds(tmp_path: Path) -> None:
    path = write_traces(
        tmp_path / "t",
        [[node(k, f"op{k % 2}", 70_000) for k in range(6)], [node(9, "long", 2**64 - 1)], []],
    )
    report = rewritelog.info(path).to_json()
    assert report["ranks"] == {
        "0": {"nodes": 6, "seconds": 0.42},
        "1": {"nodes": 1, "seconds": (2**64 - 1) / 10**6},
        "2": {"nodes": 0, "seconds": 0},
    }
    assert [(name["name"], name["seconds"]) for name in report["names"][1:]] == [
        ("op0", 0.21), ("op1", 0.21),
    ]  # fmt: skip


def test_diff_sees_each_microsecond(tmp_path: Path) -> None:
    """As doubles of seconds, these were the same."""
    a = write_traces(tmp_path / "a", [[node(1, duration=2**60, start=2**62), node(2)]])
    b = write_traces(tmp_path / "b", [[node(1, duration=2**60 + 1, start=2**62 + 1), node(2)]])
    fields = {change["field"]: change for change in rewritelog.diff(a, b).to_json()["fields"]}
    assert {name: change["changed"] for name, change in fields.items()} == {
        "duration": 1, "start": 1,
    }  # fmt: skip
    first = fields["duration"]["first"]
    assert (first["a"], first["b"]) == ("1152921504606.846976", "1152921504606.846977")
    rewritelog.rewrite(b, tmp_path / "o", dilation=1)
    assert rewritelog.diff(b, tmp_path / "o").same
    c = write_traces(tmp_path / "c", [[node(1, duration=2**60), node(2)]])
    (change,) = rewritelog.diff(a, c).to_json()["fields"]
    assert (change["first"]["a"], change["first"]["b"]) == ("4611686018427.387904", "absent")


def test_only_nodes_of_the_same_name_have_a_ratio(tmp_path: Path) -> None:
    a = write_traces(tmp_path / "a", [[node(1, "x"), node(2, "y")]])
    b = write_traces(tmp_path / "b", [[node(1, "x", 20), node(2, "z", 30)]])
    rows = {row["name"]: row for row in rewritelog.diff(a, b).to_json()["durations_by_name"]}
    assert {name: (row["counts"], row["ratios"]) for name, row in rows.items()} == {
        "x": ([1, 1], 1), "y": ([1, 0], 0), "z": ([0, 1], 0),
    }  # fmt: skip


def test_ranks_without_nodes_are_compared(tmp_path: Path) -> None:
    a = write_traces(tmp_path / "a", [[], [node(1)], []])
    b = write_traces(tmp_path / "b", [[], [], [node(1)]])
    assert rewritelog.diff(a, a).same
    fields = rewritelog.diff(a, b).to_json()["fields"]
    assert {change["field"]: change["changed"] for change in fields} == {
        "only in A": 1, "only in B": 1,
    }  # fmt: skip


def test_json_of_traces_says_rank_and_node(tmp_path: Path) -> None:
    a = write_traces(tmp_path / "a", [[node(1)], [node(1), node(2)]])
    b = write_traces(tmp_path / "b", [[node(1)], [node(1), node(2, duration=0, deps=[7])]])
    diff = rewritelog.diff(a, b).to_json()
    assert diff["fields"][0]["first"] == {"rank": 1, "node": 1, "a": "0.000010", "b": "0.000000"}
    checked = rewritelog.check(b).to_json()
    assert (checked["ranks"], checked["nodes"]) == (2, 3)
    (finding,) = checked["findings"][0]["shown"]
    assert (finding["rank"], finding["node"]) == (1, 1)
    for words in (diff, checked):
        assert not re.search(r"\"(pes?|sebs?|.*bracket.*)\":", json.dumps(words))


def test_nodes_that_took_no_time_before_have_no_speedup(tmp_path: Path) -> None:
    path = write_traces(tmp_path / "t", [[node(1, duration=0, shapes="[[8]]")]])
    (tmp_path / "lines.txt").write_text(format_line("aten::mm", [8], time_s=1e-5))
    report = rewritelog.rewrite(path, timings=tmp_path / "lines.txt")
    assert "0 s → 10.00 µs, no time before" in report.text()
    assert re.search(r"aten::mm +1 +0 s +10.00 µs +–", report.text())
    as_json = report.to_json()
    assert as_json["events"][0]["speedup"] is as_json["speedup"] is None


def test_times_that_a_model_gives_to_nodes_without_any_are_told(tmp_path: Path) -> None:
    """Nodes of steps before PyTorch's profiler began made the rewritten run seem slower."""
    timed, untimed = (node(k, duration=d, shapes="[[8]]") for k, d in enumerate((30, 0)))
    lines = tmp_path / "lines.txt"
    lines.write_text(format_line("aten::mm", [8], time_s=1e-5))
    warnings = {
        name: rewritelog.rewrite(
            write_traces(tmp_path / name, [nodes]), timings=lines, dry_run=True
        ).warnings
        for name, nodes in (("some", [timed, untimed]), ("all", [untimed]), ("none", [timed]))
    }
    was = "whose duration was 0"
    told = {name: [each for each in warnings[name] if was in each] for name in warnings}
    assert [*map(len, told.values())] == [1, 0, 0]  # generators leave all durations to a model
    assert told["some"][0].startswith(f"50.0 % of the new time, 10.00 µs, is of 1 node {was}: if ")


def test_a_dilation_of_no_node_leaves_all_as_it_is(traces: Path) -> None:
    text = rewritelog.rewrite(traces, dilation_for={"none*": 2.0}).text()
    assert "Every duration stays as it is" in text
    assert "rests on" not in text
    assert "rests on" in rewritelog.rewrite(traces, dilation_for={"aten::*": 2.0}).text()


def test_types_without_nodes_are_named(traces: Path, tmp_path: Path) -> None:
    """A replay with new durations was the same as without, and did not say why."""
    rewritelog.write_timings(traces, tmp_path / "lines.txt")
    of_memory: dict[str, Any] = {"types": ["MEM_LOAD", "MEM_STORE"]}
    lines: dict[str, Any] = of_memory | {"timings": tmp_path / "lines.txt", "dilation": 1}
    for report in (
        rewritelog.rewrite(traces, **lines),
        rewritelog.replay(traces, **lines),
        rewritelog.replay(traces, dilation=2, **of_memory),
        rewritelog.rewrite(traces, dilation=2, **of_memory),
    ):
        none = "there are no nodes of type MEM_LOAD, MEM_STORE, so nothing gets a new duration"
        assert none in report.warnings
    assert not rewritelog.replay(traces, **of_memory).warnings


def test_a_dilation_for_nodes_of_other_types_is_not_used(traces: Path, tmp_path: Path) -> None:
    """It had no effect, and nothing said so, also if event params named the same nodes."""
    params, lines = tmp_path / "events.toml", tmp_path / "lines.txt"
    params.write_text('[events."nccl*"]\ngroup = "collective"\n')
    rewritelog.write_timings(traces, lines)
    used: dict[str, Any] = {"dilation_for": {"nccl*": 2.0}}
    with_params = used | {"timings": lines, "dilation": 1, "event_params": params}
    for report in (
        rewritelog.rewrite(traces, **used),
        rewritelog.rewrite(traces, **with_params),
        rewritelog.replay(traces, **used),
        rewritelog.sweep(traces, {"latency": ["1us", "2us"]}, **used),
    ):
        (unused,) = [text for text in report.warnings if text.startswith("the dilation for")]
        assert "no node of the types that types chooses has such a name" in unused
    assert "Every duration stays as it is" in rewritelog.rewrite(traces, **used).text()
    assert not rewritelog.replay(traces, types="COLL", **used).warnings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[events."a*"]\nparams = "a1"\n', "2:11: params: must be a list, not a text"),
        ('[events."a*"]\nparams = ["a1", 2]\n', "2: params: value 2 must be a text, not a whole"),
        ('[events."a*"]\ngroup = ""\n', "2:10: group: must be a text of length >= 1"),
        ("events = 3\n", "1: events: must be a table, not a whole number"),
        ('[events]\n"a*" = [3]\n', "2: a*: must be a table, not a list"),
    ],
)
def test_a_wrong_file_of_event_params_is_one_line_in_plain_words(
    traces: Path, tmp_path: Path, text: str, message: str
) -> None:
    rules = tmp_path / "events.toml"
    rules.write_text(text)
    done = run("timings", traces, "-o", tmp_path / "l.txt", "--event-params", rules)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"events.toml:{message}" in done.stderr


def test_a_page_of_a_dry_run_compares_what_would_be_written(tmp_path: Path) -> None:
    """Durations that rounding leaves as they are counted as changed."""
    path = write_traces(tmp_path / "t", [[node(k, duration=1) for k in range(20)]])
    opened, asked = rewritelog.open_traces(path), RewriteOptions(dilation=0.9)
    dry = compare_dry_run(rewrite(opened, None, asked).task)
    rewrite(opened, tmp_path / "o", asked)
    wet = rewritelog.diff(path, tmp_path / "o").totals
    (of_dry,), (of_wet,) = dry.by_name.values(), wet.by_name.values()
    assert (of_dry.sides, of_dry.b_s) == (of_wet.sides, of_wet.b_s)
    assert of_dry.bins is not None
    assert of_wet.bins is not None
    assert of_dry.bins.tolist() == of_wet.bins.tolist()
    assert of_dry.lowest == 0


def test_check_counts_the_nodes_that_it_checks(tmp_path: Path) -> None:
    path = write_traces(tmp_path / "t", [[node(1), node(2), node(3)], [node(1)]])
    (path / "run.0.et").write_bytes((path / "run.0.et").read_bytes()[:-1])
    report = rewritelog.check(path)
    assert report.findings.sebs == 1
    assert not report.sound
