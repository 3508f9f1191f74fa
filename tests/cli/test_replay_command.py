"""`rewritelog replay` and `lost-cycles` as a user runs them."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import rewritelog as run
from logbuilder import bracket, message, seb, write_logs, write_params
from oracle import SAMPLE_LOGS

import rewritelog
from rewritelog import open_logs
from rewritelog.commands.runs import ReplayOptions
from rewritelog.replaying.network import Network
from rewritelog.replaying.run import replay_whole
from rewritelog.replaying.sweep import axes_of
from rewritelog.viewing import replay_page, timeline
from rewritelog.viewing.replay_page import Curves, _path_steps, _sweep_plot
from rewritelog.viewing.timeline import Run, timeline_view
from tracebigsim.files import scan_file


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """PE 0 works 2 s, 1 s of it in an event, and sends 1000 bytes after 1.5 s; PE 1 works 1 s."""
    sent = message(1.5, 1.75, dst_node=1, size=1000)
    lines = [
        [seb(0, 2, messages=[sent], events=bracket(0.25, 1.25), name=b"first")],
        [seb(2, 3, src_pe=0, msg_id=0, name=b"second")],
    ]
    folder = write_logs(tmp_path / "logs", lines)
    write_params(folder, 0, (0, "Cell::work", 4))
    return folder


def answer(*words: Any) -> Any:
    done = run(*words, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_a_verdict_stands_first_and_warnings_do_not_disturb_json(logs: Path) -> None:
    done = run("replay", logs)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Predicted run time: 2.750 s on 2 PEs, utilisation 54.5 %\n")
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert "1 message of 1 kB" not in done.stdout
    assert "1 message of 1 kB" in run("replay", logs, "-v").stdout
    report = answer("replay", logs)
    assert (report["predicted_s"], report["recorded_s"], report["pes"]) == (2.75, 3.0, 2)
    assert report["categories_s"]["useful[Cell::work]"] == 1
    assert report["categories_s"]["other computation"] == 2
    assert report["critical_path"]["by_event_s"] == {"Cell::work": 1.0}
    assert report["gains"][0] == {"name": "first", "busy_s": 2.0, "gain_s": 1.5}


def test_plain_numbers_are_seconds_and_bytes_a_second(logs: Path) -> None:
    units = answer("replay", logs, "--latency", "250ms", "--bandwidth", "8kbit/s")
    plain = answer("replay", logs, "--latency", "0.25s", "--bandwidth", "1e3B/s")
    assert units["predicted_s"] == plain["predicted_s"] == 1.5 + 1.25 + 1
    packets = ("--cost-per-packet", "125ms", "--packet-size", "512B")
    assert answer("replay", logs, "--latency", 0, *packets)["predicted_s"] == 1.5 + 0.25 + 1


@pytest.mark.parametrize("text", ["5us", "0.005ms", "5000 ns", "5e-6s"])
def test_a_time_with_a_unit_is_the_nearest_number(logs: Path, text: str) -> None:
    assert answer("replay", logs, "--latency", text)["network"]["latency_s"] == 5e-6


def test_a_machine_file_holds_a_network_and_options_win(logs: Path, tmp_path: Path) -> None:
    machine = tmp_path / "machine.toml"
    machine.write_text('name = "Torus"\nlatency = "500ms"\nbandwidth = "1kB/s"\n')
    report = answer("replay", logs, "--machine", machine)
    assert (report["predicted_s"], report["network"]["name"]) == (1.5 + 1.5 + 1, "Torus")
    assert answer("replay", logs, "--machine", machine, "--latency", "0")["predicted_s"] == 3.5
    for text, error in (
        ("latensy = 1\n", "latensy"),
        (f"latency = {'9' * 5000}\n", "toml:1: the line has"),
        ("latency = ", "machine.toml: is not TOML: Invalid value"),
        ("latency = '3 parsec'", "machine.toml: latency: '3 parsec' is not a time"),
        ("bandwidth = 0", "machine.toml: bandwidth must be above 0"),
        (
            "latency = 1.4",
            'latency = 1.4 has no unit: write a text with one, as in latency = "1.4us"',
        ),
        ("bandwidth = 6", "machine.toml: bandwidth = 6 has no unit: write a text with one"),
        ("", "machine.toml: has neither latency nor bandwidth"),
        ('name = "Torus"\nnode_latency = "1us"\n', "has neither latency nor bandwidth"),
        ("a = " + "[\n" * 5000, "is nested too deep"),
    ):
        machine.write_text(text)
        done = run("replay", logs, "--machine", machine)
        assert done.returncode == 1
        assert error in " ".join(done.stderr.split())
    done = run("replay", logs, "--machine", tmp_path)
    assert (done.returncode, "it is a folder, not a file" in done.stderr) == (1, True)


def test_a_network_is_described_in_words(logs: Path) -> None:
    words = ("--latency", "1us", "--bandwidth", "inf", "--cost-per-packet", "2us", "--packet-size",
             "512B", "--node-latency", "3us")  # fmt: skip
    text = " ".join(run("replay", logs, *words).stdout.split())
    assert "latency 1 µs, infinite bandwidth, 2 µs per packet, packets of 512 bytes" in text
    assert "3 µs within a node" in text
    assert answer("replay", logs, *words[:-2])["network"]["bandwidth_bytes_per_s"] is None


def test_a_replay_that_takes_no_time_is_no_speed_up(logs: Path, tmp_path: Path) -> None:
    empty = write_logs(tmp_path / "empty", [[], []])
    assert run("replay", empty, "--against", logs).stdout.startswith(
        "Predicted run time: 2.750 s → 0 s, no time at all\n"
    )
    assert answer("replay", empty, "--against", logs)["speedup"] is None
    assert "0 s → 2.750 s, no time before" in run("replay", logs, "--against", empty).stdout
    assert answer("replay", logs, "--against", empty)["speedup"] is None


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--latency", "1 parsec"], "--latency: '1 parsec' is not a time"),
        (["--bandwidth", "0"], "--bandwidth must be above 0"),
        (["--latency", "-1us"], "--latency must be finite and not negative"),
        (["--vary", "latency=1us,-1us"], "--vary latency must be finite and not negative"),
        (["--network", "torus"], "--network must be log"),
        (["--network", "log", "--latency", "1us"], "--network log takes no --latency"),
        (["--cost-per-packet", "1us"], "packets need both"),
        (["--latency", "1us", "--packet-size", "64B"], "--packet-size needs --cost-per-packet"),
        (["--vary", "packet-size=64B", "--latency", "1us"], "--packet-size needs --cost-per"),
        (["--vary", "latency=1us,x"], "--vary latency: 'x' is not a time"),
        (
            ["--cost-per-packet", "1us", "--packet-size", "64B"],
            "packets need a latency or a bandwidth",
        ),
        (["--latency", "inf"], "--latency must be finite and not negative"),
        (["--vary", "latency=0", "--vary", "latency=1"], "can vary each quantity only once"),
        (["--vary", "colour=1"], "expected NAME=VALUE"),
        (["--vary", "dilation=0"], "dilation must be"),
        (["--lost-as", "first=a}b"], "invalid category name"),
        (["--force"], "--force is for --write"),
        (["--no-flush"], "--no-flush is for --write"),
        (["--copy-params"], "--copy-params is for --write"),
        (["--params", ""], "--params: the path is empty"),
        (["--vary", "dilation=1,2", "--dilation", "3"], "give --dilation, or vary it, not both"),
        (["--vary", "dilation=1,2", "--speedup", "3"], "give --dilation, or vary it, not both"),
        (["--vary", "latency=1us", "--latency", "2us"], "give --latency, or vary it, not both"),
        (["--vary", "latency=1us", "--network", "log"], "--network log takes no latency"),
    ],
)
def test_wrong_use_is_said_in_a_line(logs: Path, words: list[str], error: str) -> None:
    done = run("sweep" if "--vary" in words else "replay", logs, *words)
    assert done.returncode == 2
    assert error in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_sweep_varies_the_latency_within_nodes_beside_the_network_of_the_log() -> None:
    """A replay takes both, but a sweep refused them."""
    logs, network = SAMPLE_LOGS / "cells-2workers", ("--network", "log")
    points = answer("sweep", logs, "--vary", "node-latency=1us,9us", *network)["sweep"]
    for point in points:
        words = ("--node-latency", point["node-latency"], "--gains", 0)
        assert answer("replay", logs, *network, *words)["predicted_s"] == point["predicted_s"]
    assert points[0]["predicted_s"] != points[1]["predicted_s"]


@pytest.mark.parametrize("fixed", [("--latency", "1us"), ("--vary", "latency=1us")])
def test_a_sweep_may_begin_without_a_cost_per_packet(logs: Path, fixed: tuple[str, str]) -> None:
    """It said that packets need both a cost and a size, or a latency, which was swept."""
    words = ("--vary", "cost-per-packet=0,1s", "--packet-size", "500B", *fixed)
    points = answer("sweep", logs, *words)["sweep"]
    assert [point["predicted_s"] for point in points] == [2.500001, 4.500001]


@pytest.mark.parametrize(
    ("words", "fixed"),
    [
        ("cost-per-packet=0,1s --packet-size 500B --latency 1us", "infinite bandwidth, packets of"),
        ("packet-size=1kB,2kB --cost-per-packet 1us --latency 2us", "1 µs per packet\n"),
        ("latency=1us,2us --bandwidth 10GB/s", "varied: bandwidth 10 GB/s\n"),
        ("latency=1us,2us --node-latency 3us", "varied: infinite bandwidth, 3 µs"),
    ],
)
def test_the_head_of_a_sweep_has_nothing_that_is_varied(logs: Path, words: str, fixed: str) -> None:
    """The first cost of a packet was called fixed, and a latency of 0."""
    text = run("sweep", logs, "--vary", *words.split()).stdout
    head = text.partition("\n\n")[0].replace("\n    ", " ") + "\n"
    assert fixed in head
    report = json.loads(run("sweep", logs, "--json", "--vary", *words.split()).stdout)
    assert report["network"]["model"] == "latency-bandwidth"


def test_an_empty_path_is_not_the_current_folder(logs: Path) -> None:
    for words in (
        ("info", ""),
        ("replay", ""),
        ("diff", logs, ""),
        ("check", logs, "--params", ""),
    ):
        done = run(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert ": the path is empty" in done.stderr


@pytest.mark.parametrize("words", [
    ["timeline", "-o", "new/"],
    ["replay", "--report", "new/"],
    ["lost-cycles", "--timings-out", "new/"],
])  # fmt: skip
def test_a_path_of_a_folder_is_no_file_to_write(
    words: list[str], logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file `new` was written, and not into the folder that was meant."""
    monkeypatch.chdir(logs.parent)
    done = run(words[0], logs, *words[1:])
    assert done.returncode == 2
    assert "new/ ends with /, as a folder does: name a file" in done.stderr
    assert not (logs.parent / "new").exists()


def test_against_states_a_speed_up_between_two_replays(logs: Path, tmp_path: Path) -> None:
    assert run("rewrite", logs, tmp_path / "fast", "--dilation", "0.5").returncode == 0
    report = answer("replay", tmp_path / "fast", "--against", logs, "--latency", "0")
    assert (report["speedup"], report["against"]["predicted_s"], report["predicted_s"]) == (
        2,
        2.5,
        1.25,
    )
    done = run("replay", tmp_path / "fast", "--against", logs, "--latency", "0")
    assert done.stdout.startswith(
        "Predicted run time: 2.500 s → 1.250 s, 2 × faster\n  on 2 PEs, latency 0 s"
    )


def test_logs_against_themselves_state_what_a_model_gains(logs: Path, tmp_path: Path) -> None:
    """Both had the new durations: as fast as before."""
    words = ("replay", logs, "--latency", "0", "--dilation", "0.5", "--dilation-for", "second=0.25")
    (tmp_path / "link").symlink_to(logs)
    for same in (logs, f"{logs}/", tmp_path / "link"):
        report = answer(*words, "--against", same)
        assert (report["against"]["predicted_s"], report["predicted_s"]) == (2.5, 1.0)
    other = tmp_path / "other"
    shutil.copytree(logs, other)
    assert answer(*words, "--against", other)["against"]["predicted_s"] == 1.0
    timings = tmp_path / "timings.txt"
    line = "TRACEBIGSIM: event:{{ Cell::work }} time:{{ 0.25 }} params:{{ {} }}\n"
    timings.write_text("".join(map(line.format, (2, 4, 4, 8))))
    report = json.loads(run(*words[:4], "--timings", timings, "--against", logs, "--json").stdout)
    assert (report["against"]["predicted_s"], report["predicted_s"]) == (2.5, 1.75)


def test_against_a_run_on_another_number_of_pes_states_both(sample_logs: Path) -> None:
    """The time before was said to be on the PEs after, too."""
    done = run("replay", sample_logs / "cells", "--against", sample_logs / "cells-2workers")
    assert "× faster\n  on 24 → 16 PEs, " in done.stdout


def test_rewritten_logs_are_compared_by_the_params_that_they_left_behind(
    sample_logs: Path, tmp_path: Path
) -> None:
    """All time in brackets seemed to be gone."""
    logs = sample_logs / "cells"
    run("rewrite", logs, tmp_path / "fast", "--dilation", "0.5", "-q")
    compared = answer("replay", tmp_path / "fast", "--against", logs)
    event = "useful[Cell::bonded]"
    before_s, after_s = (
        compared["against"]["categories_s"][event],
        compared["categories_s"][event],
    )
    assert after_s == pytest.approx(before_s / 2)
    ranges = [(part["first_pe"], part["pes"]) for part in compared["pe_ranges"]]
    assert ranges == [(0, 5), (5, 5), (10, 6)]


def test_another_program_is_not_compared_by_params_that_are_not_its_own(
    sample_logs: Path,
) -> None:
    """Brackets of ampi-halo, which has no params, were taken for events of cells."""
    words = ("replay", sample_logs / "cells", "--against", sample_logs / "ampi-halo")
    of_other = answer(*words)["against"]["categories_s"]
    assert not [category for category in of_other if category.startswith("useful[")]


@pytest.mark.parametrize("command", ["replay", "lost-cycles"])
def test_params_of_other_logs_are_told_from_a_program_without_useful_time(
    command: str, sample_logs: Path
) -> None:
    """Useful time fell from 31 % to 6.5 % without a word."""
    logs, others = sample_logs / "cells", sample_logs / "cells-2workers"
    warning = (
        "70 param records not used, for want of a bracket: marks do not pair up, or the "
        "params belong to other logs; `rewritelog check` says which"
    )
    assert warning in run(command, logs, "--params", others).stderr
    assert run(command, logs).stderr == ""


READS_PARAMS = (
    ["replay"],
    ["lost-cycles"],
    ["sweep", "--vary", "latency=1us"],
    ["export", "out", "--to", "csv"],
    ["export", "out", "--to", "chrome"],
)
DRAWS_EVENTS = (["timeline", "-o", "-"], ["timeline", "-o", "picture.svg", "--times", "replay"])


@pytest.mark.parametrize("words", [*READS_PARAMS, *DRAWS_EVENTS])
def test_a_malformed_param_line_is_warned_of(
    words: list[str], logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bracket kept the host's duration or had no event, without a word."""
    if words in DRAWS_EVENTS:
        pytest.importorskip("matplotlib", reason="needs the extra [view]")
    monkeypatch.chdir(logs.parent)
    with (logs / "param.0").open("a") as file:
        file.write("0 TRACEBIGSIM: event:{ k } seqno: { 0 } params:{ oops }\n")
    done = run(words[0], logs, *words[1:], "--fail-on-warning")
    assert done.returncode == 1
    assert "warning: 1 malformed param line not used; `rewritelog check` says which" in done.stderr


@pytest.mark.parametrize("words", READS_PARAMS)
def test_a_folder_without_params_is_warned_of(
    words: list[str], logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All useful time was other computation, as if the program had no brackets."""
    monkeypatch.chdir(logs.parent)
    (logs.parent / "empty").mkdir()
    done = run(words[0], logs, *words[1:], "--params", "empty")
    assert "warning: empty has no param files\n" in done.stderr
    (logs / "param.0").unlink()
    assert (
        "param files"
        not in run(words[0], logs, *words[1:], *["--force"] * (words[0] == "export")).stderr
    )


def test_an_event_with_the_name_of_a_seb_is_told_from_it(logs: Path) -> None:
    (logs / "param.0").unlink()
    write_params(logs, 0, (0, "first", 4))
    rows = run("replay", logs).stdout.splitlines()
    assert [row[:15].strip() for row in rows if row.startswith("  first")] == [
        "first",
        "first (event)",
    ]


def test_replayed_logs_say_whether_their_durations_are_the_hosts(
    sample_logs: Path, tmp_path: Path
) -> None:
    def warnings_of_a_rewrite(logs: Path) -> str:
        return run("rewrite", logs, "--dry-run", "--dilation", "2").stderr

    replayed, again = tmp_path / "replayed", tmp_path / "again"
    run("replay", sample_logs / "cells", "--write", replayed, "-q")
    assert "was rewritten before" not in warnings_of_a_rewrite(replayed)
    run("replay", sample_logs / "cells", "--write", replayed, "--force", "--dilation", "3", "-q")
    assert "was rewritten before" in warnings_of_a_rewrite(replayed)
    run("replay", replayed, "--write", again, "-q")
    assert "was rewritten before" in warnings_of_a_rewrite(again)


@pytest.mark.slow
def test_a_sweep_is_a_table_a_csv_and_a_figure(logs: Path, tmp_path: Path) -> None:
    axes = ("--vary", "dilation=0.5,1,2", "--vary", "latency=0,1s")
    done = run("sweep", logs, *axes, "-o", tmp_path / "grid.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "grid.csv").read_text())))
    expected = {
        (d, latency): 1.5 * float(d) + add + float(d)
        for d in ("0.5", "1", "2")
        for latency, add in (("0", 0.0), ("1s", 1.0))
    }
    assert {
        (row["dilation"], row["latency"]): float(row["predicted_s"]) for row in rows
    } == expected
    assert done.stdout.startswith(
        "Shortest predicted run time: 1.250 s, with dilation 0.5, latency 0"
    )
    report = answer("sweep", logs, *axes, "--bandwidth", "10GB/s")
    assert len(report["sweep"]) == 6
    assert report["network"]["bandwidth_bytes_per_s"] == 10e9
    assert "latency_s" not in report["network"], "it is that of each point"
    pytest.importorskip("matplotlib", reason="the extra view is not installed")
    done = run("sweep", logs, *axes, "--plot", tmp_path / "grid.gif")
    assert (done.returncode, "a figure needs the ending" in done.stderr) == (2, True)
    sizes = ("--vary", "packet-size=1kB,2kB", "--cost-per-packet", "1us", "--latency", 0)
    of_sizes = run("sweep", logs, *sizes, "--plot", tmp_path / "sizes.svg")
    assert of_sizes.returncode == 0
    assert "packet-size" in (tmp_path / "sizes.svg").read_text()
    dilations = "dilation=" + ",".join(f"{k / 10}" for k in range(1, 15))
    assert run("sweep", logs, "--vary", dilations, "--plot", tmp_path / "d.svg").returncode == 0
    assert ">0.1</text>" in (tmp_path / "d.svg").read_text()
    for ending in ("png", "svg"):
        figures = [tmp_path / f"{name}.{ending}" for name in ("grid", "again")]
        for figure in figures:
            assert run("sweep", logs, *axes, "--plot", figure).returncode == 0
        assert figures[0].stat().st_size > 1000
        assert figures[0].read_bytes() == figures[1].read_bytes()


def test_plain_numbers_of_a_sweep_are_labelled_in_the_largest_unit() -> None:
    varied = {"latency": [1e-6, 2.5e-7, 1.23456e-6], "bandwidth": [1e9, 5e6], "packet_size": [4096]}
    axes = axes_of(varied, "vary")
    assert {name: [*axis] for name, axis in axes.items()} == {
        "latency": ["1us", "250ns", "1.23456us"],
        "bandwidth": ["1GB/s", "5MB/s"],
        "packet-size": ["4096B"],
    }


def test_run_times_that_differ_by_much_have_a_ratio(logs: Path, tmp_path: Path) -> None:
    """It was 0.0000 for all but the first, or had hundreds of digits."""
    done = run("sweep", logs, "--vary", "dilation=1,1e-9,1e99", "--latency", "0")
    rows = [line.split() for line in done.stdout.splitlines()[-3:]]
    assert [row[-1] for row in rows] == ["1", "1e-09", "1e+99"]
    assert run("rewrite", logs, tmp_path / "slow", "--dilation", "1e6", "-q").returncode == 0
    table = run("replay", logs, tmp_path / "slow", "--latency", "0").stdout.splitlines()
    assert "  1e-06  " in table[-1]


def test_a_sweep_of_dilations_says_that_they_change_nothing(logs: Path) -> None:
    """All points were equal, and nothing said why."""
    words = ("sweep", logs, "--vary", "dilation=1,2")
    assert not run(*words).stderr
    assert "changes no duration" in run(*words, "--dilation-for", "*=3").stderr


def test_a_seb_with_two_durations_is_warned_of(tmp_path: Path) -> None:
    """At dilation 1 a sweep predicted 2 s, a replay 1.5 s, and neither said why."""
    sent, rest = message(0.5, 0.5, dst_node=1), seb(2, 3, src_pe=0, msg_id=0)
    logs = write_logs(tmp_path / "logs", [[seb(0, 2, exec_time=1.0, messages=[sent])], [rest]])
    end = seb(0, -1, exec_time=0.0)  # one that never ended has no other duration
    whole = write_logs(tmp_path / "whole", [[seb(0, 2, messages=[sent])], [rest, end]])
    words = (["sweep", "--vary", "dilation=1,2"], ["rewrite", "--dry-run", "--dilation", "2"])
    for command, *options in (["replay", "--dilation", "1"], *words):
        done = run(command, logs, *options, "--json")
        report = json.loads(done.stdout)
        assert "warning: 1 SEB whose execTime is not endTime − startTime" in done.stderr
        assert "execTime" not in run(command, whole, *options).stderr
        if command == "replay":
            assert report["predicted_s"] == 1.5
        elif command == "sweep":
            assert [point["predicted_s"] for point in report["sweep"]] == [2, 4]
        else:
            assert (report["run_time"]["before_s"], report["run_time"]["after_s"]) == (1.5, 4)


@pytest.mark.long
def test_a_sweep_over_a_model_predicts_once_what_a_rewrite_gives(
    sample_logs: Path, tmp_path: Path
) -> None:
    cells = sample_logs / "cells"
    timings = ("--timings", cells / "timings.txt")
    report = answer("sweep", cells, *timings, "--vary", "dilation=0.25,2", "--latency", "1us")
    for point in report["sweep"]:
        out = tmp_path / point["dilation"]
        words = ("rewrite", cells, out, *timings, "--dilation", point["dilation"], "--no-flush")
        assert run(*words).returncode == 0
        rewritten = answer("replay", out, "--latency", "1us", "--gains", 0)["predicted_s"]
        assert math.isclose(point["predicted_s"], rewritten, rel_tol=1e-9)
        alone = ("replay", cells, *timings, "--dilation", point["dilation"], "--gains", 0)
        assert answer(*alone, "--latency", "1us")["predicted_s"] == point["predicted_s"]


def test_replayed_logs_are_written_whole_and_pass_every_rule(
    sample_logs: Path, tmp_path: Path
) -> None:
    cells, out = sample_logs / "cells", tmp_path / "out"
    timings = ("--timings", cells / "timings.txt", "--dilation", 3)
    done = run("replay", cells, *timings, "--write", out, "--copy-params", "--gains", 0)
    assert done.returncode == 0
    assert run("check", out).returncode == 0
    report = answer("replay", cells, *timings, "--gains", 0)
    again = answer("replay", out, "--gains", 0)
    assert math.isclose(again["predicted_s"], report["predicted_s"], rel_tol=1e-9)
    assert math.isclose(again["recorded_s"], report["predicted_s"], rel_tol=1e-9)
    for name, seconds in report["categories_s"].items():
        assert math.isclose(again["categories_s"][name], seconds, rel_tol=1e-6, abs_tol=1e-12), name
    assert run("replay", cells, "--write", out).returncode == 1  # OUT is there
    assert run("replay", cells, "--write", cells, "--force").returncode == 1


def test_fail_on_warning(logs: Path) -> None:
    (logs / "bgTrace0").write_bytes((logs / "bgTrace0").read_bytes())
    done = run("replay", logs, "--lost-as", "nobody=mpi", "--fail-on-warning")
    assert done.returncode == 1
    assert "--lost-as nobody: matches no SEB name and no event" in done.stderr


def test_lost_cycles_become_timing_lines_with_variables_by_name(logs: Path, tmp_path: Path) -> None:
    file = tmp_path / "study.txt"
    words = ("lost-cycles", logs, "--timings-out", file, "--var", "N=7", "--var", "D=128")
    report = answer(*words)
    assert (report["pes"], report["predicted_s"]) == (2, 2.75)
    assert math.isclose(sum(report["categories_s"].values()), 5.5, rel_tol=1e-12)
    (table,) = scan_file(file)
    assert table.fault_count == 0
    assert list(table.events) == [f"lost::{name}" for name in report["categories_s"]]
    assert table.time.tolist() == list(report["categories_s"].values())
    assert table.params.reshape(-1, 3)[0].tolist() == [2, 128, 7]
    assert run(*words).returncode == 0
    (table,) = scan_file(file)
    assert len(table) == 2 * len(report["categories_s"])
    other = run("lost-cycles", logs, "--timings-out", file, "--var", "D=128")
    assert other.returncode == 2
    assert "parameters: P, D, N" in other.stderr


def test_lost_cycles_that_lack_sebs_or_have_too_many_variables(tmp_path: Path) -> None:
    folder = write_logs(tmp_path / "logs", [[seb(0, 1)], [seb(0, 1, src_pe=0, msg_id=9)]])
    done = run("lost-cycles", folder, "--timings-out", tmp_path / "study.txt")
    assert done.returncode == 0
    assert "1 of 2 SEBs never ran" in done.stderr
    variables = [word for k in range(30) for word in ("--var", f"V{k}=1")]
    done = run("lost-cycles", folder, "--timings-out", tmp_path / "study.txt", *variables)
    assert (done.returncode, "--var: there are at most 20" in done.stderr) == (2, True)


def test_a_run_without_any_time_has_neither_a_table_nor_a_basis(tmp_path: Path) -> None:
    folder = write_logs(tmp_path / "logs", [[seb(0, 0)], [seb(0, 0)]])
    assert run("lost-cycles", folder).stdout.endswith("recorded transit time\n")
    assert "rests on" not in run("rewrite", folder, "--dry-run", "--dilation", "2").stdout


def test_sweeps_and_lost_cycles_say_what_is_odd_about_the_links(tmp_path: Path) -> None:
    """Only `replay` did."""
    twice = [message(0.5, 0.25, msg_id=7, dst_node=1)] * 2
    lines = [[seb(0, 1, messages=twice)], [seb(0, 1, src_pe=0, msg_id=9)]]
    folder = write_logs(tmp_path / "logs", lines)
    for words in (("sweep", folder, "--vary", "dilation=1,2"), ("lost-cycles", folder)):
        done = run(*words)
        assert done.returncode == 0, done.stderr
        assert "1 of 2 SEBs never ran: not included in the predicted run time" in done.stderr
        assert "1 message with the number of an earlier one" in done.stderr
        assert "2 messages with an invalid transit time" in done.stderr
    done = run("sweep", folder, "--vary", "latency=1us")
    assert "1 of 2 SEBs never ran" in done.stderr
    assert "transit time" not in done.stderr


def test_what_is_lost_is_named_by_patterns_of_which_the_last_wins(logs: Path) -> None:
    plain = ("lost-cycles", logs)
    lost = answer(*plain, "--lost-as", "Cell::*=physics", "--lost-as", "fir*=mpi")["categories_s"]
    assert lost["mpi"] == 2  # the name takes in the whole SEB, with its event
    assert lost["physics"] == 0
    done = run(*plain, "--lost-as", "Cell::*=physics", "--lost-as", "Cell::work=mine", "--json")
    assert json.loads(done.stdout)["categories_s"]["mine"] == 1
    assert "--lost-as Cell::*: matches" in done.stderr
    assert "or later patterns match, too" in done.stderr
    merged = answer(*plain, "--lost-as", "second=communication")["categories_s"]
    assert merged["communication"] == answer(*plain)["categories_s"]["communication"] + 1


def test_variables_are_names_with_finite_numbers(logs: Path) -> None:
    for text in ("P=3", "D=nan", "a-b=1", "D=x"):
        done = run("lost-cycles", logs, "--var", text)
        assert done.returncode == 2, text
        assert "--var" in done.stderr
    done = run("lost-cycles", logs, "--var", "D=1", "--var", "D=2")
    assert done.returncode == 2


def test_a_page_needs_no_network_and_shows_timeline_and_report(logs: Path, tmp_path: Path) -> None:
    pytest.importorskip("bokeh", reason="the extra view is not installed")
    pages = {"replay": (), "sweep": ("--vary", "dilation=0.5,1")}
    for name, words in pages.items():
        done = run(name, logs, *words, "--html", tmp_path / f"{name}.html")
        assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "replay.html").read_text()
    assert "<p>Predicted run time: 2.750 s on 2 PEs, utilisation 54.5 %.</p>" in text
    assert "critical path" in text
    assert "useful[Cell::work]" in text
    assert "default-src 'none'" in text
    assert len(text) < 6e6
    sweep = (tmp_path / "sweep.html").read_text()
    assert "<td>0.5</td><td>1.500 s</td>" in sweep
    assert "<td>1</td><td>2.750 s</td>" in sweep
    assert '["x",[0.5,1.0]],["y",[1.5,2.75]]' in sweep


def test_a_page_of_a_replay_against_another_begins_with_the_speed_up(
    logs: Path, tmp_path: Path
) -> None:
    """It was the page of the replay after, and did not mention the other."""
    pytest.importorskip("bokeh", reason="the extra view is not installed")
    fast, page = tmp_path / "fast", tmp_path / "page.html"
    assert run("rewrite", logs, fast, "--dilation", "0.5").returncode == 0
    assert run("replay", fast, "--against", logs, "--latency", 0, "--html", page).returncode == 0
    text = page.read_text()
    assert f"<h1>Replay of {fast} against {logs}</h1>" in text
    assert "<p>Predicted run time: 2.500 s → 1.250 s, 2 × faster.</p>" in text
    assert "<td>useful[Cell::work]</td><td>1.000 s</td><td>0.500 s</td>" in text
    assert "on 2 PEs, utilisation" in text


def test_marks_of_steps_at_both_ends_of_a_timeline_are_drawn_whole(
    logs: Path, tmp_path: Path
) -> None:
    """The first one and one that starts as the run ends were cut in half."""
    pytest.importorskip("bokeh", reason="the extra view is not installed")
    page = tmp_path / "page.html"
    assert run("replay", logs, "--html", page, "-q").returncode == 0
    ends = re.search(r'"name":"Range1d".*?"start":(.*?),"end":(.*?),', page.read_text())
    assert ends
    start, end = map(float, ends.groups())
    assert start < 0
    assert end > 2.75


def test_the_steps_of_a_page_are_those_of_the_critical_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = message(1.25, 1.25, dst_node=1, size=1000)
    lines = [[seb(0, 2, messages=[sent])], [seb(0, 1, name=b"reply", src_pe=0, msg_id=0)]]
    logs = open_logs(write_logs(tmp_path / "path", lines))
    replayed = replay_whole(logs, Network(latency=0.5), ReplayOptions())
    view = timeline_view([Run.replayed(logs, replayed.outcome)])
    steps: dict[str, list[Any]] = {
        "step": [1, 2], "pe": [0, 1], "y": [0.5, 1.5], "seb": [0, 0], "name": ["msgep", "reply"],
        "start": [0, 1.75], "ran": [1.25, 1], "transit": [0, 0.5], "bytes": [-1, 1000],
    }  # fmt: skip
    assert _path_steps(replayed, view) == steps
    monkeypatch.setattr(replay_page, "MOST_STEPS", 1)  # the second took 1.5 s with its message
    assert _path_steps(replayed, view) == {name: column[1:] for name, column in steps.items()}
    monkeypatch.setattr(timeline, "MOST_ROWS", 1)
    assert _path_steps(replayed, view)["y"] == [0.75], "in the lower half of the one row"


def test_curves_of_a_sweep_are_over_the_axis_with_the_most_numbers(logs: Path) -> None:
    machines = {"machine": ["alps", "cray-xe6", "red-storm"]}
    swept = rewritelog.sweep(logs, {"latency": ["2s", "500ms"], **machines})
    curves = Curves.of(swept)
    assert (curves.axis, curves.values) == ("latency", {"2s": 2, "500ms": 0.5})
    predicted = {point.values: point.predicted_s for point in swept.points}
    assert curves.settings == {
        f"machine {name}": ((0.5, 2.0), (predicted["500ms", name], predicted["2s", name]))
        for name in machines["machine"]
    }
    assert not curves.is_logarithmic, "of two values"


def test_the_axis_of_many_values_has_their_unit(logs: Path) -> None:
    pytest.importorskip("bokeh", reason="the extra view is not installed")
    for name, unit, label, tags in (
        ("latency", "us", "latency", ["seconds"]),
        ("bandwidth", "GB/s", "bandwidth in B/s", []),
    ):
        curves = Curves.of(rewritelog.sweep(logs, {name: [f"{n}{unit}" for n in range(1, 14)]}))
        axis = _sweep_plot(curves).xaxis[0]
        assert (axis.axis_label, axis.tags) == (label, tags)


@pytest.mark.slow
def test_the_axis_of_a_figure_has_the_unit_of_its_values(logs: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra view is not installed")
    figure = tmp_path / "figure.svg"
    values = ",".join(f"{n}GB/s" for n in range(1, 1000, 70))
    done = run("sweep", logs, "--vary", f"bandwidth={values}", "--plot", figure, "-q")
    assert (done.returncode, "100 GB/s" in figure.read_text()) == (0, True), done.stderr


@pytest.mark.parametrize(
    ("axes", "curves"),
    [
        (("latency=1s,2s", "bandwidth=1MB/s,inf"), 2),
        (("bandwidth=inf,1GB/s", "latency=0"), 1),
        (("bandwidth=inf", "dilation=1"), 0),
        (("machine=alps,cray-xe6,red-storm",), 1),
        (("dilation=1,2,3,4,5,6,7,8,9,10", "latency=1s,2s,3s,4s,5s,6s,7s,8s,9s"), 8),
    ],
)
def test_the_page_of_a_sweep_draws_a_curve_for_each_setting(
    logs: Path, tmp_path: Path, axes: Sequence[str], curves: int
) -> None:
    pytest.importorskip("bokeh", reason="the extra view is not installed")
    vary = [word for axis in axes for word in ("--vary", axis)]
    done = run("sweep", logs, *vary, "--html", tmp_path / "page.html")
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "page.html").read_text()
    assert page.count('"nonselection_glyph":{"type":"object","name":"Scatter"') == curves
    assert ("8 of 9 settings are drawn." in page) == (curves == 8)
    infinite = axes[0].startswith("bandwidth=inf")  # elsewhere latencies are on the axis
    assert ("Points with bandwidth inf are not drawn." in page) == infinite


def test_options_without_effect_are_warned_of(logs: Path, tmp_path: Path) -> None:
    done = run("replay", logs, "--dilation-for", "no*=2", "--params", tmp_path, "--gains", 0)
    assert "the dilation for 'no*' was not used" in done.stderr
    assert "reads no params" not in done.stderr  # they name events: useful[…]
    done = run("lost-cycles", logs, "--var", "D=3")
    assert "--var is not used" in done.stderr


def test_a_sweep_replaces_no_input(sample_logs: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(sample_logs / "cells", logs)
    before = (logs / "bgTrace0").read_bytes()
    done = run("sweep", logs, "--vary", "latency=1us", "-o", logs / "bgTrace0")
    assert done.returncode == 1
    assert "bgTrace0" in done.stderr
    assert (logs / "bgTrace0").read_bytes() == before
