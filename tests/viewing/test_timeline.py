"""Pictures of timelines: what they show is what the logs hold, however many SEBs there are."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import os
import re
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import rewritelog as run
from logbuilder import bracket, message, seb, write_logs, write_params
from many_sebs import write_many

import rewritelog
from rewritelog import LogSet, open_logs
from rewritelog.commands.durations import RewriteOptions
from rewritelog.errors import DamagedLogError, UsageError
from rewritelog.replaying.network import Network
from rewritelog.replaying.replay import prepare, replay_workload
from rewritelog.units import parse_pes
from rewritelog.viewing import timeline
from rewritelog.viewing.draw import (
    _summary,
    cell_colours,
    layer_bars,
    panel_title,
    timeline_sections,
)
from rewritelog.viewing.plots import BRACKET, COLOURS, IDLE
from rewritelog.viewing.timeline import Run, timeline_view

TWO_PES = [
    [
        seb(0, 2, name=b"work", messages=[message(1.0, 1.5, msg_id=7, dst_node=1)]),
        seb(2, 6, name=b"kernel", events=bracket(1.0, 3.0)),
    ],
    [seb(3, 4, name=b"work", src_pe=0, msg_id=7), seb(4, -1, name=b"exit")],
]


def replayed(logs: LogSet) -> Run:
    """What is drawn of a replay of logs."""
    prepared = prepare(logs, RewriteOptions())
    return Run.replayed(logs, replay_workload(prepared.workload, prepared.case(Network())))


@pytest.fixture
def two_pes(tmp_path: Path) -> Path:
    return write_logs(tmp_path / "logs", TWO_PES)


def test_cells_hold_the_share_of_time_of_each_name(two_pes: Path) -> None:
    view = timeline_view([Run(open_logs(two_pes))], columns=4)
    panel = view.panels[0]
    assert view.names[:2] == ("kernel", "work")
    assert (view.from_s, view.to_s) == (0.0, 6.0)
    kernel, work = panel.cells[:, :, 0], panel.cells[:, :, 1]
    assert kernel == pytest.approx(np.array([[0, 2 / 3, 1, 1], [0, 0, 0, 0]]))
    assert work == pytest.approx(np.array([[1, 1 / 3, 0, 0], [0, 0, 2 / 3, 0]]))
    inside = panel.cells[:, :, -1]
    assert inside == pytest.approx(np.array([[0, 0, 1, 1 / 3], [0, 0, 0, 0]]))
    assert (panel.sebs, panel.left_out) == (3, 1)
    assert view.busy_share(panel) == pytest.approx(7 / 12)
    assert view.bracket_share(panel) == pytest.approx(2 / 12)


def test_the_busy_share_over_time_is_that_of_all_pes_in_percent(two_pes: Path) -> None:
    pytest.importorskip("bokeh")
    plot = timeline_sections(timeline_view([Run(open_logs(two_pes))], columns=4))[1].plot
    data = plot.renderers[0].data_source.data
    assert data["time"].tolist() == [0, 1.5, 1.5, 3, 3, 4.5, 4.5, 6]
    assert data["0"][::2] == pytest.approx([0, 100 / 3, 50, 50]), "kernel"
    assert data["1"][::2] == pytest.approx([50, 50 / 3, 100 / 3, 0]), "work"


def test_bars_are_the_sebs_and_brackets_one_by_one(two_pes: Path) -> None:
    bars = timeline_view([Run(open_logs(two_pes))]).panels[0].bars
    assert bars is not None
    assert bars.start_s.tolist() == [0, 2, 3, 3]
    assert bars.end_s.tolist() == [2, 6, 5, 4]
    assert bars.pe.tolist() == [0, 0, 0, 1]
    assert bars.seb.tolist() == [0, 1, 1, 0]


def test_brackets_have_the_colours_of_their_events(two_pes: Path) -> None:
    """PE 0's kernel is in a bracket from 3 s to 5 s, whose event is in its param record."""
    write_params(two_pes, 0, (1, "force", 8))
    view = timeline_view([Run(open_logs(two_pes))], columns=6)
    assert (view.colour_by, view.names) == ("event", ("force",))
    force, other, outside = (view.panels[0].cells[:, :, layer] for layer in range(3))
    assert force.tolist() == [[0, 0, 0, 1, 1, 0], [0] * 6]
    assert outside.tolist() == [[1, 1, 1, 0, 0, 1], [0, 0, 0, 1, 0, 0]]
    assert other.max() == 0
    by_name = timeline_view([Run(open_logs(two_pes))], colour_by="name")
    assert by_name.names[:2] == ("kernel", "work")
    assert view.busy_share(view.panels[0]) == pytest.approx(7 / 12)
    assert view.bracket_share(view.panels[0]) == pytest.approx(2 / 12)


def test_two_runs_are_drawn_replayed_each_over_its_own_length(
    two_pes: Path, tmp_path: Path
) -> None:
    """The second runs twice as fast; its recorded starts are those of before."""
    pytest.importorskip("bokeh")
    write_params(two_pes, 0, (1, "force", 8))
    fast = tmp_path / "fast"
    assert run("rewrite", two_pes, fast, "--dilation", "0.5", "-q").returncode == 0
    page = tmp_path / "page.html"
    assert run("timeline", two_pes, "--against", fast, "-o", page).returncode == 0
    verdict = re.findall(r"<p>([^<]*PEs are busy[^<]*)</p>", page.read_text())
    assert ["replayed" in text for text in verdict] == [True, True]
    lengths = [re.search(r"of the ([\d.]+ \w+) shown", text) for text in verdict]
    assert [length and length[1] for length in lengths] == ["6.000 s", "3.000 s"]
    shares = [re.search(r"PEs are busy ([\d.]+) %", text) for text in verdict]
    assert [share and share[1] for share in shares] == ["58.3", "58.3"], "7 s of 2 · 6 s"
    words = ("--against", fast, "--times", "log", "-o", page, "--json")
    done = run("timeline", two_pes, *words)
    assert done.returncode == 0
    before, after = json.loads(done.stdout)["over_time"]
    assert (before["bounds_s"][0], before["bounds_s"][-1]) == (0, 6)
    shares = after["shares"]["SEBs outside of events"]
    assert np.mean(shares) * 12 == pytest.approx(7 / 2 - 1)
    assert "replayed" not in page.read_text().partition("<section>")[0].partition("</script>")[0]


def test_a_window_shows_what_lies_in_it(two_pes: Path) -> None:
    view = timeline_view([Run(open_logs(two_pes))], [0], (1.0, 3.0), columns=2)
    assert view.panels[0].cells[0, :, :2] == pytest.approx(np.array([[0, 1], [1, 0]]))
    assert view.rows == 1
    assert "busy 100.0 % of the 2.000 s shown" in _summary(view)[0]
    late = timeline_view([Run(open_logs(two_pes))], window=(4.5, None))
    assert panel_title(late, late.panels[0]).endswith(": 2 PEs, 1 SEB; 1 without an end not drawn")


def test_cells_have_the_colours_of_what_is_in_them(
    two_pes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PE 0 works during the first of four columns; in the third the kernel is in its bracket."""
    pytest.importorskip("matplotlib", reason="the extra view is not installed")
    monkeypatch.setattr(timeline, "MOST_BARS", 2)
    view = timeline_view([Run(open_logs(two_pes))], columns=4)
    assert view.panels[0].bars is None
    pixels = np.round(255 * cell_colours(view.panels[0].cells, view)).astype(int)
    columns = [set(map(tuple, pixels[: len(pixels) // 2, k].tolist())) for k in range(4)]
    kernel, work, idle, inside = (
        tuple(int(colour[k : k + 2], 16) for k in (1, 3, 5))
        for colour in (view.layers[0][1], view.layers[1][1], IDLE, BRACKET)
    )
    assert columns[0] == {work}
    assert columns[2] == {kernel, inside}
    assert {kernel, work} <= columns[1]
    assert set(map(tuple, pixels[len(pixels) // 2 :, 0].tolist())) == {idle}
    for kind in ("png", "html"):
        out = tmp_path / f"drawn.{kind}"
        assert run("timeline", two_pes, "-o", out).returncode == 0
        assert out.stat().st_size > 1000
    opaque = {(*colour, 255) for colour in (work, kernel, inside, idle)}
    assert opaque <= pixels_in_browser(tmp_path / "drawn.html")


def pixels_in_browser(page: Path) -> set[tuple[int, ...]]:
    """The distinct RGBA pixels of a page's one image, from the byte order that Bokeh names."""
    written = r'"data":"([^"]*)"},"shape":[^]]*],"dtype":"uint32","order":"(\w+)"'
    ((data, order),) = re.findall(written, page.read_text())
    numbers = np.frombuffer(gzip.decompress(base64.b64decode(data)), f"{'<>'[order == 'big']}u4")
    return set(map(tuple, numbers.astype("<u4").view(np.uint8).reshape(-1, 4).tolist()))


def test_sebs_that_cannot_be_drawn_are_counted(tmp_path: Path) -> None:
    marks = [event for k in range(50) for event in bracket(k / 64, (k + 0.5) / 64)]
    line = [seb(0, 1, events=marks), seb(1, float("inf")), seb(2, -1), seb(3, 4)]
    run_drawn = Run(open_logs(write_logs(tmp_path / "logs", [line])))
    panel = timeline_view([run_drawn]).panels[0]
    assert panel.bars is not None
    assert (panel.sebs, panel.left_out, len(panel.bars.row)) == (2, 2, 52)
    before = timeline_view([run_drawn], window=(None, 1.5)).panels[0]
    assert (before.sebs, before.left_out) == (1, 1)  # the unclosed SEB is of no concern there
    lines = [[seb(0, 1), seb(1, 2, src_pe=0, msg_id=7)]]  # a message that nobody sends
    logs = open_logs(write_logs(tmp_path / "waiting", lines))
    view = timeline_view([replayed(logs)])
    assert panel_title(view, view.panels[0]).endswith("1 SEB; 1 that never ran not drawn")


def test_times_too_far_apart_for_an_axis_are_one_error(tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "logs", [[seb(-1e308, 1e308)]])
    with pytest.raises(UsageError, match="nothing to draw from"):
        timeline_view([Run(open_logs(logs))])


def test_damage_is_named(two_pes: Path) -> None:
    path = two_pes / "bgTrace0"
    path.write_bytes(path.read_bytes()[:-4] + b"\xff" * 4)
    with pytest.raises(DamagedLogError, match="PE 1, SEB 1"):
        timeline_view([Run(open_logs(two_pes))])


@pytest.mark.slow
def test_no_time_is_lost_where_sebs_are_smaller_than_a_pixel(tmp_path: Path) -> None:
    timelines = [[seb(k * 1e-6, (k + 0.25) * 1e-6) for k in range(120)] for _ in range(200)]
    view = timeline_view([Run(open_logs(write_logs(tmp_path / "logs", timelines)))], columns=50)
    panel = view.panels[0]
    assert panel.bars is None  # too many to draw one by one
    assert (view.rows, view.group) == (100, 2)
    busy_s = 200 * 120 * 0.25e-6
    assert view.shares(panel)[0] == pytest.approx(busy_s / (200 * (view.to_s - view.from_s)))


def test_pes_that_share_a_row_are_not_drawn_over_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of three PEs, of which one was always busy, had no gap."""
    monkeypatch.setattr(timeline, "MOST_ROWS", 2)
    lines = [[seb(0, pe + 1, name=b"work", events=bracket(0, 0.5))] for pe in range(8)]
    view = timeline_view([Run(open_logs(write_logs(tmp_path / "logs", lines)))], [1, 3, 4, 7])
    (bars,) = (panel.bars for panel in view.panels)
    assert bars is not None
    assert (bars.row.tolist()[::2], view.layers[2][0]) == ([0, 0, 1, 1], "inside brackets")
    of_sebs, (_, end_s, top, bottom) = layer_bars(view, bars, 0)
    assert (of_sebs.pe.tolist(), end_s.tolist()) == ([1, 3, 4, 7], [2, 4, 5, 8])
    assert top == pytest.approx(np.array([0.03, 0.53, 1.03, 1.53]))
    assert bottom == pytest.approx(np.array([0.47, 0.97, 1.47, 1.97]))
    _, (_, _, strip_top, strip_bottom) = layer_bars(view, bars, 2)
    assert strip_top == pytest.approx(top + 0.36)
    assert strip_bottom == pytest.approx(bottom)


def test_real_logs_keep_all_their_time(log_set: Path) -> None:
    logs = open_logs(log_set)
    view = timeline_view([Run(logs)])
    sebs = logs.sebs()
    durations = sebs["end_time"] - sebs["start_time"]
    busy_s = durations[durations > 0].sum()
    total_s = len(logs.pes) * (view.to_s - view.from_s)
    assert view.busy_share(view.panels[0]) == pytest.approx(busy_s / total_s, rel=1e-9)


def test_messages_go_from_sender_to_the_sebs_that_they_start(
    two_pes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = open_logs(two_pes)
    lines = timeline_view([Run(logs)], seed=1).panels[0].messages
    assert lines is not None
    assert (lines.from_row.tolist(), lines.to_row.tolist()) == ([0.5], [1.5])
    assert (lines.sent_s.tolist(), lines.arrived_s.tolist()) == ([1.0], [1.5])
    assert (lines.in_window, lines.drawn) == (1, 1)
    monkeypatch.setattr(timeline, "MOST_ROWS", 1)
    for drawn in (Run(logs), replayed(logs)):
        lines = timeline_view([drawn], seed=1).panels[0].messages
        assert lines is not None
        assert (lines.from_row.tolist(), lines.to_row.tolist()) == ([0.25], [0.75])


def test_colours_are_of_what_takes_time_in_the_picture(tmp_path: Path) -> None:
    """The names with a colour took most time elsewhere: a part of a run was all `other names`."""
    long = [seb(10 + k, 11 + k, name=b"long %d" % k) for k in range(len(COLOURS))]
    short = [seb(0, 0.5, name=b"first", events=bracket(0.1, 0.2)), seb(5, 5.5, name=b"then")]
    folder = write_logs(tmp_path / "logs", [short, long])
    write_params(folder, 0, (0, "kernel", 1))
    logs = open_logs(folder)
    for drawn, end_s in ((Run(logs), 5.25), (replayed(logs), 0.75)):
        view = timeline_view([drawn], [0], (None, end_s), "name")
        assert view.names == ("first", "then")
        assert timeline_view([drawn], [0]).colour_by == "event"
        assert timeline_view([drawn], [1]).colour_by == "name"  # there are no events


def test_shares_over_time_are_of_the_colours_in_the_picture(tmp_path: Path) -> None:
    """One was of `0 other names`, and those of other pictures had other numbers in their names."""
    pytest.importorskip("matplotlib")
    line = [seb(k, k + 1, name=b"k%02d" % k) for k in range(len(COLOURS) + 2)]
    logs = write_logs(tmp_path / "logs", [line])
    shares = rewritelog.timeline(logs, kind="svg").over_time[0]["shares"]
    assert list(shares) == [f"k{k:02}" for k in range(len(COLOURS))] + ["other names"]
    assert np.mean(shares["other names"]) == pytest.approx(2 / len(line))
    (few,) = rewritelog.timeline(logs, until_s=1.5, kind="svg").over_time
    assert list(few["shares"]) == ["k00", "k01"]


def test_messages_are_those_between_pes_that_are_drawn(tmp_path: Path) -> None:
    """Those to other PEs were counted and chosen, too: few lines were left, and said to be more."""
    to = [(0, 1), (0, 1), (1, 0), (1, -1), (-1, -1), (-100, 0)]
    sends = [message(k, msg_id=k, dst_node=node, tid=tid) for k, (node, tid) in enumerate(to)]
    numbers = [[], [0, 1, 4, 5], [2, 3, 4, 5], [3, 4, 5]]
    started = [[seb(9 + k, 10 + k, src_pe=0, msg_id=k) for k in of_pe] for of_pe in numbers]
    logs = open_logs(
        write_logs(tmp_path / "logs", [[seb(0, 9, messages=sends)], *started[1:]], wth=2)
    )
    for pe, run_drawn in itertools.product((1, 2, 3), (Run(logs), replayed(logs))):
        lines = timeline_view([run_drawn], [0, pe], seed=1).panels[0].messages
        assert lines is not None
        assert sorted(lines.sent_s.tolist()) == numbers[pe]
        assert lines.in_window == lines.drawn == len(numbers[pe])


def test_rows_are_labelled_with_their_pes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of PEs 2 and 7 was labelled as all from 2 to 7."""
    monkeypatch.setattr(timeline, "MOST_ROWS", 3)
    logs = open_logs(write_logs(tmp_path / "logs", [[seb(0, 1)] for _ in range(9)]))
    view = timeline_view([Run(logs)], [0, 1, 2, 7, 8])
    assert view.row_labels == ["PE 0–1", "PE 2, …, 7", "PE 8"]
    assert timeline_view([Run(logs)], [0, 1, 2, 4, 8]).row_labels[1] == "PE 2, …, 4"


def test_the_first_message_of_a_repeated_number_is_drawn_as_in_a_replay(tmp_path: Path) -> None:
    """A window without the first one has no line to what that started."""
    sends = [message(t, t + 1, msg_id=n, dst_node=1) for t, n in ((1.0, 7), (3.0, 7), (3.5, 8))]
    starts = [seb(5, 6, src_pe=0, msg_id=n) for n in (7, 8)]
    logs = open_logs(write_logs(tmp_path / "logs", [[seb(0, 4, messages=sends)], starts]))
    windows = {(None, None): [1.0, 3.5], (2.0, None): [3.5], (None, 3.25): [1.0]}
    for (window, sent_s), seed in itertools.product(windows.items(), range(8)):
        lines = timeline_view([Run(logs)], window=window, seed=seed).panels[0].messages
        assert lines is not None
        assert sorted(lines.sent_s.tolist()) == sent_s
        assert lines.in_window == len(sent_s)


@pytest.mark.parametrize(("text", "pes"), [("0", (0,)), ("0-2,5", (0, 1, 2, 5)), ("3, 3", (3,))])
def test_lists_of_pes(text: str, pes: tuple[int, ...]) -> None:
    assert parse_pes(text, 6) == pes


@pytest.mark.parametrize(
    "text", ["", "x", "1-", "3-1", "1,,2", "-1", "0-99999999999", "٣", "9" * 5000]
)
def test_what_is_no_list_of_pes_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_pes(text, 6)


@pytest.mark.parametrize(("ending", "begins"), [
    ("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("html", b"<!DOCTYPE html>"),
])  # fmt: skip
def test_pictures_of_all_kinds(two_pes: Path, tmp_path: Path, ending: str, begins: bytes) -> None:
    pytest.importorskip("bokeh" if ending == "html" else "matplotlib")
    out = tmp_path / f"out.{ending}"
    done = run("timeline", two_pes, "--against", two_pes, "--messages", "-o", out)
    assert done.returncode == 0, done.stderr
    first = out.read_bytes()
    assert first.startswith(begins)
    if ending != "html":  # Bokeh numbers its models anew
        assert (
            run("timeline", two_pes, "--against", two_pes, "--messages", "-o", out).returncode == 0
        )
        assert out.read_bytes() == first


def test_a_page_loads_nothing_and_stays_small(sample_logs: Path, tmp_path: Path) -> None:
    pytest.importorskip("bokeh")
    out = tmp_path / "page.html"
    assert run("timeline", sample_logs / "cells", "-o", out).returncode == 0
    text = out.read_text()
    assert len(text) < 6e6
    assert "default-src 'none'" in text
    assert not re.search(r"<(script|link|iframe)[^>]*\s(src|href)=", text)


@pytest.mark.parametrize(("options", "error"), [
    (["--pes", "9"], "--pes 9: the PEs are 0 to 1"),
    (["--pes", "1-0"], "'1-0' is not a PE or a range of PEs"),
    (["--from", "6", "--until", "6"], "nothing to draw from 6.000 to 6.000 s: the logs last"),
    (["--from", "7"], "nothing to draw: the logs last from 0"),  # it said: from 7.000 to 6.000 s
    (["--from", "6", "--until", "5"], "--from 6 s is not before --until 5 s"),
    (["--from", "7", "--until", "8"], "to 8.000 s: the logs last from 0 to 6.000 s"),
    (["--until", "1e-306s"], "nothing to draw from 0 to 1e-306 s: the logs last"),
    (["--pes", "1", "--until", "2"], "to 2.000 s: no SEB of these PEs takes any of this time"),
    (["--colour-by", "pe"], "event"),
    (["--from", "nan"], "nan is not a time"),
])  # fmt: skip
def test_wrong_options_are_named(
    two_pes: Path, tmp_path: Path, options: list[str], error: str
) -> None:
    pytest.importorskip("matplotlib")
    done = run("timeline", two_pes, *options, "-o", tmp_path / "out.png")
    assert done.returncode == 2
    assert error in done.stderr
    assert not (tmp_path / "out.png").exists()


def test_a_page_of_an_idle_pe_is_refused_as_a_picture_is(tmp_path: Path) -> None:
    """Bokeh warned of plots without anything in them, and a picture was a traceback."""
    pytest.importorskip("bokeh")
    logs = write_logs(tmp_path / "logs", [[seb(0, 1)], []])
    done = run("timeline", logs, "--pes", "1", "-o", tmp_path / "out.html")
    assert done.returncode == 2
    assert done.stderr == (
        "rewritelog: error: nothing to draw from 0 to 1.000 s: "
        "no SEB of these PEs takes any of this time\n"
    )


def test_logs_of_which_nothing_runs_in_a_replay_are_not_said_to_have_no_times(
    tmp_path: Path,
) -> None:
    pytest.importorskip("matplotlib", reason="the extra view is not installed")
    logs = write_logs(tmp_path / "logs", [[seb(0, 1, src_pe=0, msg_id=9)]])
    done = run("timeline", logs, "--times", "replay", "-o", tmp_path / "out.svg")
    assert done.stderr == (
        f"rewritelog: error: {logs}: nothing to draw: no SEB runs in the replay\n"
    )


def test_an_unknown_kind_of_picture_is_refused(two_pes: Path, tmp_path: Path) -> None:
    done = run("timeline", two_pes, "-o", tmp_path / "out.jpeg")
    assert (done.returncode, "a picture needs the ending" in done.stderr) == (2, True)


def test_sets_of_other_machines_are_not_drawn_together(two_pes: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    other = write_logs(tmp_path / "other", [[seb(0, 1)]])
    done = run("timeline", two_pes, "--against", other, "-o", tmp_path / "out.png")
    assert (done.returncode, "same rows" in done.stderr) == (2, True)


def test_the_picture_replaces_no_log(two_pes: Path) -> None:
    picture = two_pes / "bgTrace.png"
    picture.write_bytes(b"mine")
    done = run("timeline", two_pes, "-o", picture)
    assert done.returncode == 1
    assert picture.read_bytes() == b"mine"


def test_legends_show_the_colours_of_cells_too(
    two_pes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bokeh shows the colour of rows only where there is one."""
    pytest.importorskip("bokeh")
    monkeypatch.setattr(timeline, "MOST_BARS", 0)
    out = tmp_path / "page.html"
    assert run("timeline", two_pes, "-o", out).returncode == 0
    sources = re.findall(r'\["left",(.*?)\],\["right"', out.read_text())
    assert sources
    assert all('"shape":[0]' not in source for source in sources)


@pytest.mark.slow
def test_a_home_that_cannot_be_written_is_no_matter(two_pes: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra [view]")
    words = [sys.executable, "-m", "rewritelog", "timeline", two_pes, "-o", tmp_path / "t.svg"]
    homeless = {**os.environ, "HOME": "/dev/null", "MPLCONFIGDIR": "/dev/null/none"}
    done = subprocess.run(
        list(map(str, words)), check=False, env=homeless, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_event_may_have_the_name_of_what_has_no_event(tmp_path: Path) -> None:
    """The page ended in a traceback."""
    pytest.importorskip("bokeh")
    logs = write_logs(tmp_path / "logs", [[seb(0, 2, events=bracket(0.5, 1.5)), seb(2, 4)]])
    write_params(logs, 0, (0, "SEBs outside of events", 8))
    done = run("timeline", logs, "-o", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr


def legend_of(svg: Path) -> list[str]:
    """The texts of a figure that end in a share."""
    return re.findall(r">([^<]*) \([\d.]+ %\)<", svg.read_text())


def test_names_are_shown_as_they_are_in_figures(tmp_path: Path) -> None:
    r"""`$` began a formula, and `\frac{1}` ended in a traceback; long names were cut off."""
    pytest.importorskip("matplotlib")
    logs = write_logs(tmp_path / "logs", [[seb(k, k + 1, events=bracket(0, 1)) for k in range(4)]])
    long = "Box::forces(" + 60 * "double, "
    write_params(logs, 0, (0, r"a $\frac{1}$"), (1, "_b$"), (2, long + "1)"), (3, long + "2)"))
    figure = tmp_path / "figure.svg"
    done = run("timeline", logs, "-o", figure)
    assert (done.returncode, done.stderr) == (0, "")
    *short, first, second = sorted(legend_of(figure), key=len)
    assert short == ["_b$", r"a $\frac{1}$"]
    assert len(first) == len(second) == 60
    assert first != second


@pytest.mark.parametrize("drawn_one_by_one", [True, False])
def test_a_picture_in_which_sebs_overlap_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_one_by_one: bool
) -> None:
    """It only said that PEs were busy 138 % of the time."""
    pytest.importorskip("matplotlib", reason="the extra view is not installed")
    monkeypatch.setattr(timeline, "MOST_BARS", 100 * drawn_one_by_one)
    line = [seb(k / 10, (k + 1) / 10, events=bracket(0.0, 0.05)) for k in range(10)]
    logs = write_logs(tmp_path / "logs", [line, []])
    overlapping, out = (
        write_logs(tmp_path / "over", [[*line, seb(0.8, 1.9)], []]),
        tmp_path / "t.svg",
    )
    for folder, says in ((logs, False), (overlapping, True)):
        assert run("timeline", folder, "-o", out).returncode == 0
        assert ("; SEBs of a PE overlap, and each counts" in out.read_text()) == says


def test_what_has_no_name_is_told_in_legends(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    logs = write_logs(tmp_path / "logs", [[seb(0, 1, name=b""), seb(1, 2, name=b"work")]])
    figure = tmp_path / "figure.svg"
    assert run("timeline", logs, "-o", figure).returncode == 0
    assert sorted(legend_of(figure)) == ["(no name)", "work"]


def test_characters_without_a_glyph_are_told_once(tmp_path: Path) -> None:
    """It was matplotlib that warned, of each character, with a line of its code."""
    pytest.importorskip("matplotlib")
    logs = write_logs(tmp_path / "logs", [[seb(0, 1, events=bracket(0, 1))]])
    write_params(logs, 0, (0, "计算"))
    of_svg = run("timeline", logs, "-o", tmp_path / "t.svg")
    assert (of_svg.stderr, legend_of(tmp_path / "t.svg")) == ("", ["计算"])
    for kind in ("png", "pdf"):
        (line,) = run("timeline", logs, "-o", tmp_path / f"t.{kind}").stderr.splitlines()
        assert line.startswith("warning: the picture's font lacks 算计")


def test_memory_does_not_grow_with_a_timeline(tmp_path: Path) -> None:
    """Ten million SEBs of one PE took 600 MB."""

    def most_bytes(sebs: int) -> int:
        logs = write_many(tmp_path / f"{sebs}", 1, files=1, workers=1, sebs=sebs).folder
        run = Run(replace(open_logs(logs), block_bytes=4 << 20))
        tracemalloc.start()
        assert timeline_view([run]).panels[0].sebs == sebs
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    smaller = most_bytes(100_000)
    assert most_bytes(400_000) < 1.2 * smaller
