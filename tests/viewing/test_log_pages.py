"""Pages of rewrites and samples: what they hold is what the logs and the reports hold."""

from __future__ import annotations

import base64
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blocks import in_blocks
from chakrabuilder import node, write_traces
from commands import rewritelog as run
from faulty import HANGS_S, SCRIPT
from logbuilder import bracket, message, seb, write_logs, write_params, write_timings
from msgspec import structs
from pages import data_of

from rewritelog import info, open_logs
from rewritelog.commands.durations import RewriteOptions
from rewritelog.diffing.durations import BINS, BINS_AN_OCTAVE, OCTAVES
from rewritelog.diffing.run import compare_logs
from rewritelog.formats.opening import open_traces
from rewritelog.rewriting.run import rewrite
from rewritelog.viewing import rewrite_page
from rewritelog.viewing.info_page import _matrix, _names, _sizes
from rewritelog.viewing.rewrite_page import (
    DETERMINED,
    _busy_section,
    _determined,
    _longest_first,
    _names_section,
    busy_groups,
    coarse_bins,
    compare_dry_run,
)

pytest.importorskip("bokeh", reason="needs the extra [view]")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two PEs: a bracketed second among two, and one without a bracket."""
    timelines = [
        [seb(0, 2, name=b"work", events=bracket(0.5, 1.5)), seb(2, 3, name=b"rest")],
        [seb(0, 2, name=b"work", events=bracket(0.5, 1.5))],
    ]
    folder = write_logs(tmp_path / "in", timelines)
    for pe in (0, 1):
        write_params(folder, pe, (0, "k", 1 + pe))
    return folder


@pytest.fixture
def timings(tmp_path: Path) -> Path:
    return write_timings(tmp_path / "t.txt", *[("k", 2.0 * n, float(n)) for n in range(1, 9)])


ROW = r"<tr><td>([^<]*)</td><td>(.*?)</td></tr>"


def numbers(column: str) -> list[float]:
    values: list[float] = np.frombuffer(base64.b64decode(column), "<f4").tolist()
    return values


def option(page: Path, label: str) -> dict[str, Any]:
    (choice,) = (
        choice for choice in data_of(page, "swap-data")["options"] if choice["label"] == label
    )
    assert isinstance(choice, dict)
    return choice


def test_a_rewrite_page_shows_both_sides(logs: Path, timings: Path, tmp_path: Path) -> None:
    page, words = tmp_path / "r.html", ("--timings", timings, "--dilation", "0.5")
    done = run("rewrite", logs, tmp_path / "out", *words, "--html", page)
    assert done.returncode == 0, done.stderr
    ratios = option(page, "SEBs named rest")["sources"]["ratios-data"]
    assert numbers(ratios["count"]) == [1]
    assert numbers(ratios["left"])[0] < 0.5 < numbers(ratios["right"])[0]
    assert len(data_of(page)["events"]) == 1
    text = page.read_text()
    assert "Imbalance, the largest over the mean: 1.2 before" in text
    rows = {name: cells.split("</td><td>") for name, cells in re.findall(ROW, text)}
    assert rows["the fit"] == ["2.000 s", "6.000 s", "40.0 %", "80.0 %"]
    assert rows["dilation"] == ["3.000 s", "1.500 s", "60.0 %", "20.0 %"]
    number, before, after, faster, lowest, median, highest = rows["work"]
    assert (number, before, after, faster) == ("2", "4.000 s", "7.000 s", "0.5714")
    assert (float(lowest), float(highest)) == pytest.approx((1.25, 2.25), rel=0.05)
    assert float(lowest) <= float(median) <= float(highest)
    assert text.index("Predicted run time") < text.index("What determined the time")


@pytest.mark.parametrize("block_bytes", [16 << 20, 200])
def test_a_dry_run_compares_as_a_rewrite_does(
    logs: Path, timings: Path, tmp_path: Path, block_bytes: int
) -> None:
    asked = RewriteOptions(timings=(timings,), dilation=0.5)
    written = tmp_path / "written"
    opened = in_blocks(logs, block_bytes)
    rewrite(opened, written, asked)
    real = compare_logs(opened, open_logs(written)).totals
    dry = compare_dry_run(rewrite(opened, None, asked).task)
    for real_rows, dry_rows in ((real.by_name, dry.by_name), (real.by_event, dry.by_event)):
        assert real_rows.keys() == dry_rows.keys()
        for name, row in real_rows.items():
            same = dry_rows[name]
            assert (row.a_s, row.b_s, row.sides) == (same.a_s, same.b_s, same.sides)
            assert row.bins is not None
            assert same.bins is not None
            assert np.array_equal(row.bins, same.bins)


@pytest.mark.slow
def test_the_page_of_a_dry_run_has_all_that_a_rewrite_has(
    logs: Path, timings: Path, tmp_path: Path
) -> None:
    page, again, model = tmp_path / "r.html", tmp_path / "d.html", tmp_path / "m.json"
    assert run("fit", timings, "-o", model, "-q").returncode == 0
    words = ("--fitted", model, "--dilation", "0.5", "--html")
    for more, where in (((tmp_path / "out",), page), (("--dry-run",), again)):
        done = run("rewrite", logs, *more, *words, where)
        assert done.returncode == 0, done.stderr
        assert "\nk(p1): " in where.read_text()
    assert data_of(page, "swap-data") == data_of(again, "swap-data")
    assert "Nothing was written (dry run)" in again.read_text()


def test_the_parts_of_the_time_are_those_that_determined_it(logs: Path, timings: Path) -> None:
    options = {"exact_match": "always"}
    for dilation in (0.5, 1.0):
        asked = RewriteOptions(model="auto", model_options=options, timings=(timings,),
                               dilation=dilation)  # fmt: skip
        old_s, new_s = _determined(rewrite(logs, None, asked))
        rest = 3.0 * dilation
        by = dict(zip(DETERMINED, zip(old_s, new_s, strict=True), strict=True))
        assert by["the fit"] == (0, 0)
        assert by["exact match"] == pytest.approx((2.0, 6.0))
        assert by["dilation" if dilation != 1 else "untouched"] == pytest.approx((3.0, rest))
        assert by["untouched" if dilation != 1 else "dilation"] == (0, 0)


def test_what_types_of_nodes_leave_out_is_untouched_and_not_dilated(tmp_path: Path) -> None:
    nodes = [node(1, "kernel", 10), node(2, "all-reduce", 30, kind=7)]
    traces = write_traces(tmp_path / "traces", [nodes])
    old_s, new_s = _determined(rewrite(open_traces(traces), None, RewriteOptions(dilation=2.0)))
    by = dict(zip(DETERMINED, zip(old_s, new_s, strict=True), strict=True))
    assert by["dilation"] == pytest.approx((10e-6, 20e-6))
    assert by["untouched"] == pytest.approx((30e-6, 30e-6))


def test_busy_times_are_of_each_pe(logs: Path) -> None:
    first, old_s, new_s, width = busy_groups(rewrite(logs, None, RewriteOptions(dilation=2.0)))
    assert (first.tolist(), old_s.tolist(), new_s.tolist(), width) == ([0, 1], [3, 2], [6, 4], 1)


def test_names_are_in_the_order_of_their_new_time_and_others_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = [seb(0, k, name=name) for k, name in ((3, b"a"), (2, b"b"), (1, b"c"))]
    logs = write_logs(tmp_path / "names", [line])
    report = rewrite(logs, None, RewriteOptions(dilation_for={"c": 4}))
    monkeypatch.setattr(rewrite_page, "MOST_ROWS", 1)
    ranked = _longest_first(compare_dry_run(report.task).by_name)
    table = _names_section("SEB names", ranked).table
    assert table is not None
    assert [row[:5] for row in table.rows] == [
        ("c", "1", "1.000 s", "4.000 s", "0.25"), ("(others)", "2", "5.000 s", "5.000 s", "1"),
    ]  # fmt: skip


def test_a_mark_of_several_pes_is_their_mean(
    logs: Path, timings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = rewrite(logs, None, RewriteOptions(timings=(timings,)))  # 3 and 2 s become 4 and 5 s
    assert _busy_section(report).paragraphs == [
        "Imbalance, the largest over the mean: 1.2 before, 1.111 after."
    ]
    monkeypatch.setattr(rewrite_page, "MOST_PES", 2)
    three = write_logs(tmp_path / "three", [[seb(0, k)] for k in (1, 2, 4)])
    section = _busy_section(rewrite(three, None, RewriteOptions(dilation=2.0)))
    assert section.paragraphs[1] == "Each mark is the mean of 2 neighbouring PEs."
    assert section.table is not None
    assert section.table.rows[2:] == [
        ("PEs 0 to 1, mean", "1.500 s", "3.000 s"), ("PE 2", "4.000 s", "8.000 s"),
    ]  # fmt: skip


def test_bins_are_put_together_where_they_belong() -> None:
    bins = np.zeros(BINS, dtype=np.int64)
    middle = 1 + OCTAVES * BINS_AN_OCTAVE
    bins[middle] = 7
    edges, counts = coarse_bins(bins)
    assert counts.tolist() == [7]
    assert edges[0] <= 1 < edges[1]
    bins[-2] = 1
    edges, counts = coarse_bins(bins)
    assert (counts.sum(), counts[0], counts[-1]) == (8, 7, 1)
    assert len(edges) == len(counts) + 1


def test_a_sample_page_has_each_kind_of_points(logs: Path, timings: Path, tmp_path: Path) -> None:
    page = tmp_path / "s.html"
    done = run("sample", logs, "--fraction", "0.5", "--floor", "1", "--html", page)
    assert done.returncode == 0, done.stderr
    assert "<p>1 param record chosen of 2 (50.00 %), by design" in page.read_text()
    drawn = option(page, "k(p1): p1 and records at the point")
    assert drawn["axes"] == {"below": "p1", "left": "records at the point"}
    sources = drawn["sources"]
    assert numbers(sources["run-data"]["x"]) == [1, 2]
    assert numbers(sources["run-data"]["y"]) == [1, 1]
    chosen = numbers(sources["chosen-data"]["x"])
    assert len(chosen) == 1
    assert sorted(chosen + numbers(sources["extrapolated-data"]["x"])) == [1, 2]
    done = run("sample", logs, "--timings", timings, "--html", page)
    assert numbers(option(page, "k(p1): p1 and records at the point")["sources"]["timed-data"]["x"])
    (tmp_path / "names.toml").write_text('k = ["atoms"]\nother = ["x"]\n')
    done = run("sample", logs, "--param-names", tmp_path / "names.toml", "--html", page)
    assert option(page, "k(atoms): atoms and records at the point")
    assert "parameter names for 'other' are not used" in done.stderr


def test_senders_are_the_rows_of_a_matrix_and_receivers_its_columns(tmp_path: Path) -> None:
    """PE 0 sends three messages to PE 2, and that a larger one to PE 1; a group of one is a PE."""
    small = [message(0.1 * k, msg_id=k, dst_node=2, size=10) for k in range(3)]
    large = [message(0.5, dst_node=1, size=1000)]
    lines = [[seb(0, 1, messages=small)], [seb(0, 1)], [seb(0, 2, messages=large)]]
    of_logs = info(write_logs(tmp_path / "logs", lines))
    section = _matrix("Messages", of_logs, of_logs.traffic.messages, "messages")
    assert section.table is not None
    assert section.table.rows == [("PE 0", "PE 2", "3"), ("PE 2", "PE 1", "1")]
    assert (section.plot.xaxis.axis_label, section.plot.yaxis.axis_label) == ("to PE", "from PE")
    (image,) = section.plot.renderers[0].data_source.data["image"]
    np.testing.assert_array_equal(image[0], [np.nan, np.nan, 3])
    assert section.plot.y_range.start > section.plot.y_range.end, "the first row is at the top"
    grouped = structs.replace(of_logs.traffic, group=2, messages=np.array([[0, 3], [1, 0]]))
    section = _matrix("", replace(of_logs, traffic=grouped), grouped.messages, "messages")
    assert section.table is not None
    assert section.table.rows == [("PE 0–1", "PE 2", "3"), ("PE 2", "PE 0–1", "1")]
    assert _names(of_logs).plot.renderers[0].data_source.data["right"] == [4.0], "seconds"
    sizes = _sizes(of_logs.traffic)
    bars = sizes.plot.renderers[0].data_source.data
    assert [(bars["x"][k], bars["top"][k]) for k in (0, -1)] == [("8 bytes", 3), ("512 bytes", 1)]


def test_the_colours_of_a_matrix_begin_at_its_smallest_number(tmp_path: Path) -> None:
    """So that 4,000 and 6,000 bytes can be told apart: they did begin at 1."""
    sent = [message(0.5, dst_node=1, size=4000), message(0.6, dst_node=0, size=6000)]
    logs = write_logs(tmp_path / "logs", [[seb(0, 1, messages=sent)], [seb(0, 1)]])
    page = tmp_path / "page.html"
    assert run("info", logs, "--html", page).returncode == 0
    mapper = r'"name":"LogColorMapper",.{0,6000}?"low":(\d+),"high":(\d+)'
    assert set(re.findall(mapper, page.read_text())) == {("1", "2"), ("4000", "6000")}


def test_a_page_says_where_a_broadcast_counts(tmp_path: Path) -> None:
    """The matrix had more messages than the first line of the page, without a word."""
    sentence = "A message to several PEs, as a broadcast, counts for each of them."
    for to, times in ((1, 0), (-1, 2)):  # in the matrix of messages, and in that of bytes
        sent = [message(0.5, dst_node=to, tid=-1)]
        logs = write_logs(tmp_path / str(to), [[seb(0, 1, messages=sent)], [seb(0, 1)]])
        page = tmp_path / f"{to}.html"
        assert run("info", logs, "--html", page).returncode == 0
        assert page.read_text().count(sentence) == times


def test_a_single_message_to_a_list_of_pes_is_one_message(tmp_path: Path) -> None:
    sent = [message(0.5, dst_node=1), message(0.6, dst_node=-2, tid=-1)]
    logs = write_logs(tmp_path / "logs", [[seb(0, 1, messages=sent)], [seb(0, 1)]])
    page = tmp_path / "page.html"
    assert run("info", logs, "--html", page).returncode == 0
    assert page.read_text().count("Without 1 message to lists of PEs, which the log does not") == 2


def test_the_page_of_logs_shows_the_names_that_take_the_time(tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "logs", [[seb(0, 1, name=b""), seb(1, 4, name=b"slow")]])
    page = tmp_path / "page.html"
    assert run("info", logs, "--html", page).returncode == 0
    table = page.read_text().partition("Durations by name")[2]
    assert 0 < table.index("<td>slow</td>") < table.index("<td>(no name)</td>")


@pytest.mark.slow
def test_many_names_are_said_to_be_more_and_all_others_are_one_row(tmp_path: Path) -> None:
    """A page had two rows of others: one on top, and "985 others", which did not count the first.

    Rows of their own have the first 1,024 names.
    """
    named = [seb(k, k + 1 + k / 1e4, name=f"n{k}".encode()) for k in range(1200)]
    logs, page = write_logs(tmp_path / "logs", [named]), tmp_path / "page.html"
    assert run("info", logs, "--html", page).returncode == 0
    assert "The 40 of 1,200 names that take the most time." in page.read_text()
    assert run("rewrite", logs, "--dry-run", "--speedup", 2, "--html", page).returncode == 0
    table = page.read_text().partition("Time by SEB names, before and after, with ratios")[2]
    rows = re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td>", table.partition("</table>")[0])
    assert [name for name, _ in rows if "others" in name] == ["(others)"]
    assert rows[-1] == ("(others)", "1,160")
    labels = [choice["label"] for choice in data_of(page, "swap-data")["options"]]
    assert not [label for label in labels if "others" in label]


def test_a_page_of_logs_without_sebs_has_no_plot_of_names(tmp_path: Path) -> None:
    logs, page = write_logs(tmp_path / "logs", [[], []]), tmp_path / "page.html"
    assert run("rewrite", logs, "--dry-run", "--speedup", 2, "--html", page).returncode == 0
    text = page.read_text()
    assert "Busy time of the PEs" in text
    assert "Time by SEB names" not in text


def test_a_sample_page_lists_long_names_that_differ_in_the_middle(tmp_path: Path) -> None:
    names = ["a" * 60 + middle + "b" * 60 for middle in "xy"]
    write_logs(tmp_path / "in", [[seb(k, k + 1, events=bracket(0.2, 0.8)) for k in range(4)]])
    write_params(tmp_path / "in", 0, *((k, names[k % 2], k) for k in range(4)))
    done = run("sample", tmp_path / "in", "--html", tmp_path / "s.html")
    assert done.returncode == 0, done.stderr
    labels = [entry["label"] for entry in data_of(tmp_path / "s.html", "swap-data")["options"]]
    assert len(set(labels)) == 2


def test_names_that_are_cut_to_the_same_text_have_a_bar_each(tmp_path: Path) -> None:
    names = ["a" * 60 + middle + "b" * 60 for middle in "xy"]
    nodes = [node(number, name, 10 * number) for number, name in enumerate(names, 1)]
    traces = write_traces(tmp_path / "traces", [nodes])
    page = tmp_path / "page.html"
    assert run("info", traces, "--html", page).returncode == 0
    assert len(set(re.findall(r"<td>(a+….*?)</td>", page.read_text()))) == 2
    labels = re.search(r'"major_label_overrides":\{"type":"map",(.*?)\]\]', page.read_text())
    assert labels is not None
    assert labels[1].count(" (COMP)") == 2


@pytest.mark.slow
def test_two_runs_make_the_same_page(sample_logs: Path, tmp_path: Path) -> None:
    pages = [tmp_path / f"{number}.html" for number in range(2)]
    for page in pages:
        subprocess.run(
            [SCRIPT, "info", sample_logs / "cells", "--html", page],
            check=True, capture_output=True, timeout=HANGS_S,
        )  # fmt: skip
    assert pages[0].read_bytes() == pages[1].read_bytes()
