"""Programs whose run time can be worked out on paper."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import rewritelog as run
from logbuilder import bracket, mark, message, seb, write_logs, write_params, write_timings
from msgspec.structs import replace
from replays import replay

import rewritelog
from rewritelog import open_logs
from rewritelog.commands.durations import RewriteOptions
from rewritelog.commands.runs import ReplayOptions
from rewritelog.errors import RewriteLogError, UsageError
from rewritelog.replaying import analysis, write
from rewritelog.replaying.network import Network
from rewritelog.replaying.replay import prepare, replay_workload
from rewritelog.replaying.write import write_replayed
from rewritelog.rewriting.run import rewrite
from rewritelog.running.engines import map_blocks
from rewritelog.viewing.timeline import Run, timeline_view

EVERYWHERE = {"dst_node": -1, "tid": -1}


def started_by(pe: int, number: int) -> dict[str, Any]:
    return {"src_pe": pe, "msg_id": number}


def run_time(folder: Path, **network: Any) -> float:
    return replay(folder, Network(**network)).predicted_s


def test_a_chain_of_dependencies_takes_the_sum_of_its_durations(tmp_path: Path) -> None:
    line = [
        seb(0, 1),
        seb(7, 10, backward=[0], recv_time=-1.0),
        seb(3, 3.5, backward=[1], recv_time=-1.0),
    ]
    assert run_time(write_logs(tmp_path / "logs", [line])) == 4.5


def test_sebs_without_any_cause_follow_one_another_from_time_0(tmp_path: Path) -> None:
    line = [seb(5, 6), seb(9, 11), seb(40, 40.25)]
    assert run_time(write_logs(tmp_path / "logs", [line])) == 3.25


def ping_pong(folder: Path, rounds: int = 3) -> Path:
    """Two PEs that send each other a message of 1000 bytes after 1 s of each SEB's 2 s."""
    lines: list[list[dict[str, Any]]] = [[], []]
    for step in range(2 * rounds):
        pe = step % 2
        cause = started_by(1 - pe, step - 1) if step else {}
        sent = message(10.0 * step + 1, 10.0 * step + 1.25, msg_id=step, dst_node=1 - pe, size=1000)
        lines[pe].append(seb(10.0 * step, 10.0 * step + 2, messages=[sent], **cause))
    return write_logs(folder, lines)


def test_a_ping_pong_takes_half_a_seb_and_a_transit_each_way(tmp_path: Path) -> None:
    logs = ping_pong(tmp_path / "logs")
    assert run_time(logs) == 5 * (1 + 0.25) + 2
    assert run_time(logs, latency=0.5, bandwidth=1000) == 5 * (1 + 1.5) + 2
    assert run_time(logs, latency=0.0) == 5 * 1 + 2


def test_packets_cost_each_a_little_and_a_part_of_one_as_much_as_a_whole(tmp_path: Path) -> None:
    logs = ping_pong(tmp_path / "logs")
    network = {"latency": 0.0, "cost_per_packet": 0.125, "packet_size": 300.0}
    assert run_time(logs, **network) == 5 * (1 + 4 * 0.125) + 2
    empty = [
        [seb(0, 1, messages=[message(1, 1, dst_node=1, size=0)])],
        [seb(0, 1, **started_by(0, 0))],
    ]
    empty_logs = write_logs(tmp_path / "empty", empty)
    assert run_time(empty_logs, **network) == 2.125, "one packet all the same"


def test_a_join_waits_for_the_longest_branch(tmp_path: Path) -> None:
    fork = [message(1.0, 1.5, msg_id=k, dst_node=k + 1) for k in range(2)]
    joins = [
        seb(0, 1, messages=fork),
        seb(9, 9.25, **started_by(1, 0)),
        seb(10, 10.5, **started_by(2, 0)),
        seb(11, 12, backward=[1, 2], recv_time=-1.0),
    ]
    short = [seb(2, 3, messages=[message(3.0, 3.5, dst_node=0)], **started_by(0, 0))]
    long = [seb(2, 6, messages=[message(6.0, 6.5, dst_node=0)], **started_by(0, 1))]
    logs = write_logs(tmp_path / "logs", [joins, short, long])
    assert run_time(logs) == 1 + 0.5 + 4 + 0.5 + 0.5 + 1


def test_a_broadcast_starts_a_seb_on_every_pe_its_own_without_delay(tmp_path: Path) -> None:
    root = [
        seb(0, 1, messages=[message(0.5, 2.5, msg_id=7, **EVERYWHERE)]),
        seb(1, 4, **started_by(0, 7)),
    ]
    leaves = [[seb(3, 4, **started_by(0, 7))] for _ in range(3)]
    report = replay(write_logs(tmp_path / "logs", [root, *leaves]))
    assert report.predicted_s == 4  # the root's own is ready at 0.5 and waits for its PE
    assert report.lost.totals_s["start"] == 3 * 2.5
    assert report.lost.totals_s["end"] == 3 * 0.5


def test_a_tree_of_broadcasts_takes_its_levels_and_the_siblings_before(tmp_path: Path) -> None:
    """PE p sends to 2p + 1 after 1 s and to 2p + 2 after 2 s, and the last level sends nothing.

    A SEB takes 2.5 s and a message 0.25 s, so each right turn costs 1 s more than a left one.
    """
    lines: list[list[dict[str, Any]]] = []
    for pe in range(15):
        sends = [message(k + 1.0, msg_id=k, dst_node=2 * pe + 1 + k) for k in range(2)]
        cause = started_by((pe - 1) // 2, (pe - 1) % 2) if pe else {}
        lines.append([seb(0, 2.5, messages=sends if pe < 7 else [], **cause)])
    report = replay(write_logs(tmp_path / "logs", lines), Network(latency=0.25))
    assert report.predicted_s == 3 * (2 + 0.25) + 2.5
    assert report.path.length == 4
    starts = [2.25 * bin(pe - 7).count("1") + 1.25 * (3 - bin(pe - 7).count("1"))
              for pe in range(7, 15)]  # fmt: skip
    inner = [0, 1.25, 2.25, 2.5, 3.5, 3.5, 4.5]
    assert report.lost.totals_s["start"] == sum(starts) + sum(inner)


def test_a_pe_runs_what_is_ready_first_and_of_equals_the_first(tmp_path: Path) -> None:
    sends = [message(t, t, msg_id=k, dst_node=0) for k, t in enumerate([3.0, 1.0, 1.0])]
    line = [
        seb(0, 2, messages=[]),
        seb(20, 21, **started_by(1, 0), name=b"third"),
        seb(20, 22, **started_by(1, 2), name=b"first"),
        seb(20, 24, **started_by(1, 1), name=b"second"),
    ]
    sender = [seb(0, 4, messages=sends)]
    report = replay(write_logs(tmp_path / "logs", [line, sender]))
    assert report.predicted_s == 2 + 2 + 4 + 1
    assert report.path.by_name_s == {"msgep": 2, "first": 2, "second": 4, "third": 1}


def test_workers_of_a_node_have_a_latency_of_their_own(tmp_path: Path) -> None:
    sender = [
        seb(
            0,
            1,
            messages=[
                message(1.0, 9.0, dst_node=0, tid=1),
                message(1.0, 9.0, msg_id=1, dst_node=1, tid=0),
            ],
        )
    ]
    lines = [sender, [seb(9, 10, **started_by(0, 0))], [seb(9, 10, **started_by(0, 1))], []]
    logs = write_logs(tmp_path / "logs", lines, wth=2)
    assert replay(logs).predicted_s == 10
    near = replay(logs, Network(latency=0.0, node_latency=0.25))
    assert near.predicted_s == 2.25
    assert replay(logs, Network(latency=0.0)).predicted_s == 2


def test_a_network_that_no_message_can_take_is_said_to_have_no_effect(tmp_path: Path) -> None:
    """A latency within nodes of one PE each was shown in the report, and changed nothing."""
    lines = [[seb(0, 1, messages=[message(1.0, 1.0, dst_node=0, tid=1)])], [seb(1, 2)]]
    apart = write_logs(tmp_path / "apart", lines)
    together = write_logs(tmp_path / "together", lines, wth=2)
    near, far = ("--node-latency", "1us"), ("--latency", "1us")
    jobs = {
        "replay": (),
        "lost-cycles": (),
        "rewrite": (tmp_path / "out", "--dilation", 2, "--force"),
        "export": (tmp_path / "out", "--to", "goal", "--replayed", "--force"),
    }
    for command, more in jobs.items():
        of_one = "warning: --node-latency has no effect: each node of the logs has one PE\n"
        assert of_one in run(command, apart, *more, *near).stderr, command
        assert "effect" not in run(command, apart, *more, *far).stderr
        assert "effect" not in run(command, together, *more, *near).stderr
        of_all = "all PEs of the logs are on one node: of the network only --node-latency has"
        assert of_all in run(command, together, *more, *far).stderr.replace("\n ", ""), command
    swept = rewritelog.sweep(apart, {"node_latency": [0, "1us"]})
    assert swept.warnings == ("node_latency has no effect: each node of the logs has one PE",)
    alone = write_logs(tmp_path / "alone", [[seb(0, 1)]])
    assert "effect" not in run("replay", alone, *far).stderr  # the first of runs on 1, 2, 4, … PEs


def test_a_seb_never_closed_takes_no_time_and_sends_as_it_starts(tmp_path: Path) -> None:
    first = seb(0, 1, messages=[message(0.5, 0.5, dst_node=1)])
    exits = seb(2, -1, exec_time=0.0, messages=[message(2.5, 2.5, msg_id=1, dst_node=1)])
    other = [seb(1, 2, **started_by(0, 0)), seb(3, 4, **started_by(0, 1))]
    assert run_time(write_logs(tmp_path / "logs", [[first, exits], other])) == 2.5


def test_messages_outside_of_their_seb_leave_at_its_nearer_end(tmp_path: Path) -> None:
    sends = [message(0.5, 0.5, dst_node=1), message(9.0, 9.0, msg_id=1, dst_node=2)]
    lines = [
        [seb(1, 3, messages=sends)],
        [seb(4, 5, **started_by(0, 0))],
        [seb(4, 6, **started_by(0, 1))],
    ]
    report = replay(write_logs(tmp_path / "logs", lines))
    assert report.predicted_s == 2 + 2
    assert report.lost.totals_s["start"] == 0 + 2


def test_a_resumed_wait_of_ampi_waits_for_the_seb_before_it(tmp_path: Path) -> None:
    resumed = {"backward": [0], "name": b"RECV_RESUME"}
    line = [seb(0, 1), seb(1, 3, **started_by(1, 0)), seb(4, 5, recv_time=3.0, **resumed)]
    sender = [seb(0, 1, messages=[message(0.5, 0.5, dst_node=0)])]
    assert run_time(write_logs(tmp_path / "a", [line, sender])) == 4
    line[2] = seb(4, 5, recv_time=-1.0, **resumed)
    report = replay(write_logs(tmp_path / "b", [line, sender]))
    assert report.predicted_s == 4
    late = [seb(0, 9, messages=[message(8.0, 8.0, dst_node=0)])]
    assert run_time(write_logs(tmp_path / "c", [line, late])) == 8 + 2


def test_a_missing_message_is_named_with_all_that_waited_for_it(tmp_path: Path) -> None:
    lost = [
        seb(0, 1, **started_by(1, 5)),
        seb(2, 3, backward=[0], recv_time=-1.0, messages=[message(2.5, 2.5, dst_node=1)]),
    ]
    other = [seb(0, 0.5), seb(3, 4, **started_by(0, 0)), seb(0, 1, backward=[9], recv_time=-1.0)]
    report = replay(write_logs(tmp_path / "logs", [lost, other]))
    assert report.predicted_s == 0.5
    blocked = report.blocked
    assert (blocked.count, blocked.roots, blocked.in_cycles) == (4, 2, 0)
    worst, odd = blocked.examples
    assert (worst.pe, worst.seb, worst.blocked_others) == (0, 0, 2)
    assert worst.reason == "no SEB sends its starting message, number 5 of PE 1"
    assert (odd.pe, odd.seb, odd.blocked_others) == (1, 2, 0)
    assert "SEB 9" in odd.reason
    assert "4 of 5 SEBs never ran" in report.warnings[0]
    assert "never ran" in report.text()


def test_sebs_in_a_circle_never_run(tmp_path: Path) -> None:
    line = [
        seb(0, 1),
        seb(2, 3, backward=[2], recv_time=-1.0),
        seb(3, 4, backward=[1], recv_time=-1.0),
    ]
    blocked = replay(write_logs(tmp_path / "logs", [line])).blocked
    assert (blocked.count, blocked.roots, blocked.in_cycles) == (2, 0, 2)
    assert "cycle" in blocked.examples[0].reason
    assert blocked.examples[0].blocked_others == 1


def test_the_critical_path_goes_through_the_pe_that_was_waited_for(tmp_path: Path) -> None:
    report = replay(ping_pong(tmp_path / "logs", rounds=1))
    assert report.predicted_s == 3.25
    assert report.path.by_name_s == {"msgep": 3.0}
    (share,) = report.path.messages
    assert (share.count, share.least_bytes, share.seconds) == (1, 1000, 0.25)


def test_what_is_gained_were_a_name_free_is_found_by_replay(tmp_path: Path) -> None:
    lines = [
        [seb(0, 3, name=b"short"), seb(3, 4, name=b"other")],
        [seb(0, 5, name=b"long"), seb(5, 5.5, name=b"other")],
    ]
    report = replay(write_logs(tmp_path / "logs", lines))
    assert report.predicted_s == 5.5
    gains = [(gain.name, gain.gain_s) for gain in report.gains]
    assert gains == [("long", 1.5), ("other", 0.5), ("short", 0.0)]
    no_gain = re.search(r"^  short .* 0\.0 %$", report.text(), re.MULTILINE)
    assert no_gain, "that nothing is gained without much work is an answer"


@pytest.mark.parametrize(
    ("timed", "run_s", "gain_s"), [((), 1.5 + 0.25 + 1, 1.0), ((4.0, 5.0), 5.5 + 0.25 + 1, 5.0)]
)
def test_without_an_event_messages_after_it_leave_sooner(
    timed: tuple[float, ...], run_s: float, gain_s: float, tmp_path: Path
) -> None:
    """One message leaves halfway through the region, one 0.25 s behind it; a model may give 5 s."""
    halfway = message(0.75, 1.0, dst_node=1)
    behind = message(1.5, 1.75, msg_id=1, dst_node=1)
    lines = [
        [seb(0, 2, messages=[halfway, behind], events=bracket(0.25, 1.25))],
        [seb(2, 2.125, **started_by(0, 0)), seb(3, 4, **started_by(0, 1))],
    ]
    logs = write_logs(tmp_path / "logs", lines)
    write_params(logs, 0, (0, "kernel", *timed[:1]))
    options = ReplayOptions()
    if timed:
        timings = write_timings(tmp_path / "timings", *[("kernel", timed[1], timed[0])] * 3)
        options = ReplayOptions(model="least-squares", timings=(timings,))
    report = replay(logs, options=options)
    assert report.predicted_s == run_s
    assert [(gain.name, gain.gain_s) for gain in report.event_gains] == [("kernel", gain_s)]
    loaded = prepare(logs, options)
    free = replace(loaded.case(Network()), free_event="kernel")
    assert free.sent(loaded.workload)["after_s"].tolist() == [0.25, 0.5]


def test_large_logs_have_fewer_gains_unless_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = [seb(0, k + 1, name=f"name {k}".encode()) for k in range(4)]
    logs = write_logs(tmp_path / "logs", [line])
    write_params(logs, 0, (2, "other", 1.0), (3, "kernel", 1.0))
    monkeypatch.setattr(analysis, "MOST_REPLAYED_SEBS", 12)
    some = replay(logs)
    assert [gain.name for gain in some.gains] == ["name 3", "name 2"]
    assert [gain.name for gain in some.event_gains] == ["kernel"]
    assert "Not replayed without 3 more names and events, since the log is large" in some.text()
    every = replay(logs, options=ReplayOptions(gains=10))
    assert (len(every.gains), len(every.event_gains), every.gains_left_out) == (4, 2, 0)
    one = replay(logs, options=ReplayOptions(gains=1))
    assert [gain.name for gain in (*one.gains, *one.event_gains)] == ["name 3", "kernel"]
    monkeypatch.setattr(analysis, "MOST_REPLAYED_SEBS", 1)
    assert [gain.name for gain in replay(logs).gains] == ["name 3"]
    monkeypatch.undo()
    monkeypatch.setattr(analysis, "MOST_GAINS", 1)
    most = replay(logs)
    assert [gain.name for gain in (*most.gains, *most.event_gains)] == ["name 3", "kernel"]


def test_of_many_events_lost_cycles_are_those_of_the_longest(tmp_path: Path) -> None:
    """Each of 20,000 had a row, by name, and the idle time came last; JSON has them all."""
    logs = write_logs(tmp_path / "logs", [[seb(0, k) for k in range(1, 51)], []])
    write_params(logs, 0, *[(k, f"e{k + 1}", 1.0) for k in range(50)])
    run = rewritelog.lost_cycles(logs)
    rows = re.findall(r"^  (useful\S*(?: \d+ more events)?) ", run.text(), re.MULTILINE)
    assert rows == [*(f"useful[e{k}]" for k in range(50, 11, -1)), "useful: 11 more events"]
    assert run.to_json()["categories_s"]["useful[e1]"] == 1


def test_the_text_has_the_largest_gains_and_one_row_of_small_events(tmp_path: Path) -> None:
    """PE 0 runs six events of 1 to 6 s, then 0.5 and 0.05 s without one; six PEs run nothing."""
    line = [seb(0, k, name=b"work") for k in range(1, 7)]
    line += [seb(0, 0.5, name=b"rest"), seb(0, 0.05, name=b"tiny")]
    logs = write_logs(tmp_path / "logs", [line, *[[]] * 6])
    write_params(logs, 0, *[(k, f"e{k + 1}", 1.0) for k in range(6)])
    report = replay(logs)
    gains, lost = (
        re.findall(r"^  (\S.*?)  +(\S+) s .*?(\S+) %$", part, re.MULTILINE)
        for part in report.text().split("\n\n")[1:]
    )
    assert [name for name, *_ in gains] == ["work", "e6", "e5", "e4", "e3", "e2"]
    assert lost[:4] == [
        ("useful[e6]", "6.0", "4.0"),
        ("useful[e5]", "5.0", "3.3"),
        ("useful[e4]", "4.0", "2.7"),
        ("useful: 3 more events", "6.0", "4.0"),
    ]
    assert "13.9 % of it in useful events" in rewritelog.lost_cycles(logs).text()
    (logs / "param.0").unlink()
    gains = re.findall("^  (work|rest|tiny) ", replay(logs).text(), re.MULTILINE)
    assert gains == ["work", "rest"], "those of at least 1 % of the run"
    assert [pe.pe for pe in report.worst_pes] == [0, 1, 2, 3, 4]
    by_range = report.details().partition("  PE time")[2].splitlines()
    assert re.findall("PE [0-9–]+", by_range[0]) == ["PE 0–1", "PE 2–3", "PE 4–6"]
    assert by_range[1].split()[-6:] == ["13.9", "%", "0.0", "%", "0.0", "%"], "6 of 2 · 21.55 s"


@pytest.mark.parametrize("numbers", [[3, 1, 2], [1, 1, 2]])
def test_message_numbers_need_not_rise(tmp_path: Path, numbers: list[int]) -> None:
    sends = [message(k + 1.0, k + 1.0, msg_id=n, dst_node=1) for k, n in enumerate(numbers)]
    lines = [[seb(0, 4, messages=sends)], [seb(0, 1, **started_by(0, 1))]]
    report = replay(write_logs(tmp_path / "logs", lines))
    assert report.lost.totals_s["start"] == numbers.index(1) + 1
    assert len(report.warnings) == (len(set(numbers)) < 3)


def test_a_message_to_another_pe_starts_the_seb_that_names_it(tmp_path: Path) -> None:
    lines = [
        [seb(0, 1, messages=[message(1.0, 1.0, dst_node=2, tid=0)])],
        [seb(0, 1, **started_by(0, 0))],
        [],
    ]
    report = replay(write_logs(tmp_path / "logs", lines))
    assert report.predicted_s == 2
    assert not report.warnings
    assert "message of" not in report.details(), "it takes no time on the critical path"


def test_busy_shares_of_a_page_are_those_of_the_replay(tmp_path: Path) -> None:
    lines = [[seb(0, 1), seb(1, 2, **started_by(1, 0))], [seb(0, 4, messages=[message(3.0, 3.0)])]]
    prepared = prepare(write_logs(tmp_path / "logs", lines), RewriteOptions())
    outcome = replay_workload(prepared.workload, prepared.case(Network()))
    view = timeline_view([Run.replayed(prepared.logs, outcome)], columns=8)
    expected = [[1, 1, 0, 0, 0, 0, 1, 1], [1] * 8]
    np.testing.assert_allclose(view.panels[0].cells[:, :, 0], expected, atol=1e-12)
    assert view.busy_share(view.panels[0]) == 0.75


def test_runs_with_nothing_but_the_root_in_common_keep_their_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They lost the slash at their beginning."""
    monkeypatch.chdir(write_logs(tmp_path / "run", [[seb(0, 1)]]))
    sets = [str(tmp_path / "run"), "/proc/self/cwd"]
    runs: Any = rewritelog.replay(sets)
    assert [row[0] for row in runs.rows()] == sets


def test_many_runs_are_compared_in_a_table(tmp_path: Path) -> None:
    folder = tmp_path / "a-folder-of-many-runs-whose-name-does-not-fit-into-80-columns"
    sets = [write_logs(folder / f"run{k}", [[seb(0, k)], [seb(0, 1)]]) for k in (4, 2)]
    runs: Any = rewritelog.replay(sets)
    assert [(row[0], *row[2:5]) for row in runs.rows()] == [
        ("run4", "4.000 s", "1", "62.5 %"), ("run2", "2.000 s", "2", "75.0 %"),
    ]  # fmt: skip
    assert [run["predicted_s"] for run in runs.to_json()["runs"]] == [4, 2]
    assert runs.text().startswith("Shortest of 2 runs: run2, 2.000 s\n")
    network: dict[str, Any] = {"latency": "1.25us", "bandwidth": "1.25MB/s", "packet_size": "4kB"}
    text = rewritelog.replay(sets, **network, cost_per_packet="1.25us", node_latency="1us").text()
    assert max(map(len, text.splitlines())) <= 80
    sent = [
        write_logs(
            tmp_path / f"sent{transit_s}",
            [[seb(0, 1, messages=[message(1, 1 + transit_s, dst_node=1)])],
             [seb(0, 1, **started_by(0, 0))]],
        )
        for transit_s in (2, 6)
    ]  # fmt: skip
    runs = rewritelog.replay(sent)
    assert [row[2:] for row in runs.rows()] == [
        ("4.000 s", "1", "25.0 %", "50.0 %"), ("8.000 s", "0.5", "12.5 %", "75.0 %"),
    ]  # fmt: skip
    done = run("replay", *sets, "--write", tmp_path / "out")
    assert (done.returncode, "is for one log set" in done.stderr) == (2, True)
    with pytest.raises(UsageError, match="no log set"):
        rewritelog.replay([])


def test_a_folder_of_log_sets_stands_for_all_of_them(tmp_path: Path) -> None:
    sets = [write_logs(tmp_path / f"runs/p{k}", [[seb(0, k)], [seb(0, 1)]]) for k in (2, 10)]
    (tmp_path / "runs/notes.txt").touch()
    runs: Any = rewritelog.replay(tmp_path / "runs")
    assert [report.logs.folder for report in runs.runs] == sets
    table = run("replay", tmp_path / "runs", tmp_path / "runs/p2", "--json")
    assert [row["predicted_s"] for row in json.loads(table.stdout)["runs"]] == [2, 10, 2]
    (tmp_path / "none").mkdir()
    done = run("replay", tmp_path / "none")
    assert (done.returncode, "none" in done.stderr) == (1, True)


@pytest.mark.slow
def test_many_runs_are_compared_on_a_page(tmp_path: Path) -> None:
    pytest.importorskip("bokeh")
    sets = [write_logs(tmp_path / f"run{k}", [[seb(0, k)], [seb(0, 1)]]) for k in (4, 2)]
    page = tmp_path / "page.html"
    assert run("replay", *sets, "--html", page, "-q").returncode == 0
    assert "2 runs, replayed" in page.read_text()
    bars = re.findall(r'\["right",(\[[^]]*\])\]', page.read_text())
    assert [json.loads(ends) for ends in bars] == [[4, 2], [2.5, 1.5]], "run and mean busy times"


def test_a_run_whose_sebs_take_no_time_has_a_page_without_timeline(tmp_path: Path) -> None:
    """Bokeh warned of plots without anything in them."""
    pytest.importorskip("bokeh")
    sent = message(0.0, msg_id=0, dst_node=1)
    logs = write_logs(
        tmp_path / "logs", [[seb(0, 0, messages=[sent])], [seb(0, 0, **started_by(0, 0))]]
    )
    page = tmp_path / "page.html"
    done = run("replay", logs, "--latency", "1us", "--html", page, "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Predicted run time: 1.000 µs on 2 PEs" in page.read_text()


def test_a_log_without_any_seb_takes_no_time(tmp_path: Path) -> None:
    report = replay(write_logs(tmp_path / "logs", [[], []]))
    assert (report.predicted_s, report.sebs, report.path.length) == (0, 0, 0)
    assert report.text().startswith("Predicted run time: 0 s on 2 PEs")
    assert "Critical path" not in report.details()


def test_the_critical_path_has_a_row_for_each_size_of_messages(tmp_path: Path) -> None:
    """Of sizes that were the same to a decimal, as 1.0 kB, only one was in the table."""
    forth, back = (message(1.0, msg_id=0, dst_node=1 - k, size=1010 + 10 * k) for k in range(2))
    lines = [
        [seb(0, 1, messages=[forth]), seb(4, 5, **started_by(1, 0))],
        [seb(0, 1, **started_by(0, 0), messages=[back])],
    ]
    report = replay(write_logs(tmp_path / "logs", lines), Network(bandwidth=1000.0))
    assert re.findall("message of (.*?)  +(.*?) s", report.details()) == [
        ("1.02 kB", "1.020"),
        ("1.01 kB", "1.010"),
    ]


def test_a_network_is_told_with_the_digits_that_it_was_given_with() -> None:
    """A bandwidth of 12.25GB/s, as that of a machine that there is, was 12.2 GB/s."""
    network = Network(bandwidth="12.25GB/s", packet_size="1.25kB")
    text = "latency 0 s, bandwidth 12.25 GB/s, packets of 1.25 kB"
    assert network.text() == text


@pytest.mark.parametrize(
    ("latency", "text"), [(1.5e-6, "1.5 µs"), (100.0, "100 s"), (1.5e-20, "1.5e-20 s")]
)
def test_a_latency_keeps_its_zeros_and_its_exponent(latency: float, text: str) -> None:
    """One of 1.5e-20 s was told as 1.5e-2 s."""
    assert Network(latency=latency).text() == f"latency {text}, infinite bandwidth"


def test_many_sizes_on_the_critical_path_are_grouped_by_powers_of_two(tmp_path: Path) -> None:
    """A message goes to and fro thirteen times, and has 100 bytes more each time."""
    lines: list[list[dict[str, Any]]] = [[], []]
    for step in range(14):
        cause = started_by(1 - step % 2, step - 1) if step else {}
        sent = message(step + 0.5, msg_id=step, dst_node=1 - step % 2, size=100 * (step + 1))
        lines[step % 2].append(seb(step, step + 1, messages=[sent], **cause))
    network = Network(latency=0.0, bandwidth=100.0)
    report = replay(write_logs(tmp_path / "logs", lines), network)
    shares = {(share.least_bytes, share.most_bytes): (share.count, share.seconds)
             for share in report.path.messages}  # fmt: skip
    assert shares == {
        (100, 100): (1, 1.0),
        (200, 200): (1, 2.0),
        (300, 500): (3, 12.0),
        (600, 1000): (5, 40.0),
        (1100, 1300): (3, 36.0),
    }
    assert [share.seconds for share in report.path.messages] == [40.0, 36.0, 12.0, 2.0, 1.0]
    path = report.details().partition("  Critical path")[2]
    assert path.splitlines()[1].startswith("  5 messages of 600 bytes to 1 kB  "), "the longest"


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ([[seb(0, 1e308)] * 2], "the replayed time exceeds the range of a double"),
        ([[seb(0, 1e308)], [seb(0, 1e308)]], "the replayed time exceeds the range of a double"),
        ([[seb(0, 1), seb(1, np.nan)]], "SEB 1, field execTime: the time is not a finite number"),
        ([[seb(0, np.inf, exec_time=1.0)]], "field endTime: the time is not a finite number"),
        ([[seb(0, 1, exec_time=np.inf)]], "field execTime: the time is not a finite number"),
        ([[seb(0, 1, messages=[message(np.inf)])]], "sendTime: the time is not a finite number"),
    ],
)
def test_times_that_no_replay_can_have_are_refused(
    lines: list[list[dict[str, Any]]], error: str, tmp_path: Path
) -> None:
    with pytest.raises(RewriteLogError, match=error):
        replay(write_logs(tmp_path / "logs", lines))


def test_what_there_is_one_of_is_not_told_of_as_several(tmp_path: Path) -> None:
    """It was `1 SEB one after the other`, and `1 SEB never ran`, which did not include `them`."""
    lines = [[seb(0, 1), seb(1, 2, **started_by(0, 9))]]
    report = replay(write_logs(tmp_path / "logs", lines))
    assert "bounded by 1 SEB: 100.0 % in" in report.text()
    assert report.warnings == ("1 of 2 SEBs never ran: not included in the predicted run time",)


def test_messages_received_before_they_were_sent_arrive_at_once(tmp_path: Path) -> None:
    unknown = message(1.0, np.nan, msg_id=1, dst_node=1)
    early = [
        [seb(0, 1, messages=[message(1.0, 0.25, dst_node=1), unknown])],
        [seb(2, 3, **started_by(0, 0))],
    ]
    report = replay(write_logs(tmp_path / "logs", early))
    assert report.predicted_s == 2
    assert "2 messages with an invalid transit time" in report.warnings[0]


def test_a_multicast_may_start_a_seb_on_any_pe(tmp_path: Path) -> None:
    """The log does not say whom it is for."""
    sent = [message(1.0, 1.0, dst_node=-2, tid=-1)]
    others = [[seb(3, 4, **started_by(0, 0))] for _ in range(3)]
    report = replay(write_logs(tmp_path / "logs", [[seb(0, 1, messages=sent)], *others]))
    assert report.predicted_s == 2
    assert report.warnings == ()


def test_what_waits_for_a_seb_that_never_runs_never_runs(tmp_path: Path) -> None:
    """The one after it on its PE, and one that two of them hold up, which counts once."""
    line = [
        seb(0, 1, **started_by(1, 5), messages=[message(0.5, dst_node=1)]),
        seb(1, 2),
        seb(2, 3, backward=[0, 1], recv_time=-1.0),
    ]
    other = [seb(0, 0.5), seb(3, 4, **started_by(0, 0), backward=[9])]
    blocked = replay(write_logs(tmp_path / "logs", [line, other])).blocked
    assert (blocked.count, blocked.roots, blocked.in_cycles) == (4, 2, 0)
    assert {(held.pe, held.seb): held.blocked_others for held in blocked.examples} == {
        (0, 0): 2,
        (1, 1): 0,
    }


def test_a_dependency_that_is_recorded_thrice_is_not_longer(tmp_path: Path) -> None:
    line = [
        seb(0, 1, **started_by(1, 5)),
        seb(1, 2, **started_by(1, 6)),
        seb(2, 3, backward=[1], recv_time=-1.0),
        seb(3, 4, backward=[0, 0, 0, 2], recv_time=-1.0),
    ]
    blocked = replay(write_logs(tmp_path / "logs", [line, [seb(0, 0.5)]])).blocked
    assert {held.seb: held.blocked_others for held in blocked.examples} == {0: 1, 1: 1}


@pytest.mark.parametrize("dilation", [1.0, 2.0])
def test_sebs_that_never_ran_are_written_after_the_end_of_the_run(
    dilation: float, tmp_path: Path
) -> None:
    line = [seb(0, 1), seb(3, 4, **started_by(1, 5)), seb(5, 7, backward=[1], recv_time=-1.0)]
    late = message(0.25, 0.5, dst_node=0, msg_id=6)
    logs = write_logs(tmp_path / "logs", [line, [seb(2, 4, messages=[late])]])
    options = ReplayOptions(dilation=dilation, no_flush=True, write=tmp_path / "out")
    report = replay(logs, options=options)
    assert report.predicted_s == 2 * dilation
    sebs = open_logs(tmp_path / "out").sebs()
    starts, ends = np.array([0, 2, 3, 0]), np.array([1, 3, 5, 2])
    assert sebs["start_time"].tolist() == (dilation * starts).tolist()
    assert sebs["end_time"].tolist() == (dilation * ends).tolist()
    (sent,) = open_logs(tmp_path / "out").messages()
    assert sent["recv_time"] - sent["send_time"] == 0.25  # nobody waits for it


def test_sebs_of_every_kind_are_replayed_as_they_are_rewritten(tmp_path: Path) -> None:
    """Brackets that go with records and that do not, more than any table has room for at first."""
    fifty = [mark for k in range(50) for mark in bracket(k / 64, (k + 0.5) / 64)]
    sends = [message(k + t, dst_node=1, msg_id=3 * k + n) for k in range(4)
             for n, t in enumerate((0.375, 0.5, 1.0))]  # fmt: skip
    marks = [bracket(0.25, 0.5), bracket(0.25, 0.5), fifty, []]
    line = [seb(k, k + 1, events=marks[k], messages=sends[3 * k : 3 * k + 3]) for k in range(4)]
    starts = [seb(9 + n, 10 + n, **started_by(0, n)) for n in range(12)]
    logs = write_logs(tmp_path / "logs", [line, starts])
    records = [(0, "known", 2), (0, "known", 3), (1, "unknown", 2)]
    write_params(logs, 0, *records, *[(2, "known", k % 7) for k in range(50)], (3, "known", 5))
    timings = write_timings(tmp_path / "timings", *[("known", 0.125 * n, n) for n in range(1, 9)])
    fitted: Any = {"model": "least-squares", "timings": (timings,), "dilation": 0.5}
    options = RewriteOptions(copy_params=True, no_flush=True, **fitted)
    rewrite(logs, tmp_path / "out", options)
    network = Network(latency=0.25)
    after = replay(tmp_path / "out", network)
    report = replay(logs, network, ReplayOptions(**fitted))
    assert report.predicted_s == pytest.approx(after.predicted_s, rel=1e-12)
    assert report.lost.totals_s == pytest.approx(after.lost.totals_s, rel=1e-9, abs=1e-12)
    assert report.lost.totals_s["useful[known]"] > 0
    warning = "1 bracket dilated, since the model does not cover it: 'unknown' (1); "
    warning += "it covers 'known'; time it too"
    assert report.warnings[-1] == warning
    swept = rewritelog.sweep(logs, {"latency": ["1us"]}, **fitted)
    assert swept.warnings[-1] == warning


@pytest.mark.parametrize(
    "changed",
    [
        [seb(0, 1), seb(1, 2, messages=[message(1.5, 2.0)])],
        [seb(0, 1, messages=[message(0.5, 1.0)])],
    ],
)
def test_logs_that_change_after_they_were_read_are_refused_before_anything_is_written(
    changed: list[dict[str, Any]], tmp_path: Path
) -> None:
    """The files keep their size, and each is a valid log by itself."""
    line = [seb(0, 1, messages=[message(0.5, 1.0)]), seb(1, 2)]
    logs = write_logs(tmp_path / "logs", [line])
    size = (logs / "bgTrace0").stat().st_size
    opened, options = open_logs(logs), ReplayOptions()
    prepared = prepare(opened, options)
    outcome = replay_workload(prepared.workload, prepared.case(Network()))
    if len(changed) < len(line):  # a text takes the bytes of the SEB that is gone
        changed[0]["events"] = [mark(b"", 0.5)]
        missing = size - (write_logs(logs, [changed]) / "bgTrace0").stat().st_size
        changed[0]["events"] = [mark(b" " * missing, 0.5)]
    write_logs(logs, [changed])
    assert (logs / "bgTrace0").stat().st_size == size
    with pytest.raises(RewriteLogError, match="PE 0: the file changed"):
        write_replayed(prepared, outcome, tmp_path / "out", options)
    assert not (tmp_path / "out").exists()


def test_ranks_that_write_get_no_more_than_the_times_of_their_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    def record(task: object, blocks: Iterable[Any], *stage: Any) -> Iterator[Any]:
        blocks = list(blocks)
        sizes.append([len(pickle.dumps(sent)) for sent in (task, *blocks)])
        yield from map_blocks(task, blocks, *stage)  # type: ignore[arg-type]

    monkeypatch.setattr(write, "map_blocks", record)
    for count in (10, 1000):
        timelines = [[seb(0, 1)], [seb(k, k + 1) for k in range(count)]]
        logs = write_logs(tmp_path / f"{count}", timelines, files=2)
        replay(logs, Network(), ReplayOptions(write=tmp_path / f"{count} replayed"))
    (task, *block_sizes), (larger_task, *larger_sizes) = sizes
    assert abs(larger_task - task) < 100
    assert abs(larger_sizes[0] - block_sizes[0]) < 100
    assert larger_sizes[1] > 1000 * 32
