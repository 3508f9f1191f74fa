"""The trace read back by Perfetto's own trace processor, value by value."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from chakrabuilder import node, write_traces
from chosen import by_tier
from exporting.perfetto_reader import opened
from exporting.test_chrome import overlapping_sebs
from oracle import SAMPLE_LOGS

import rewritelog
from rewritelog import open_logs
from rewritelog.text import count_text

NANOSECOND = 1e-9
"""Perfetto keeps whole ones."""

SLICES = """
select t.tid pe, p.pid node, t.name thread, p.name process, s.name, s.ts, s.dur,
  extract_arg(s.arg_set_id, 'args.seb') seb, extract_arg(s.arg_set_id, 'args.src_pe') src_pe,
  extract_arg(s.arg_set_id, 'args.msg_id') msg_id
from slice s join thread_track k on s.track_id = k.id join thread t using (utid)
  join process p using (upid)
where s.category = 'seb' order by pe, seb
"""
FLOWS = """
select o.tid from_pe, extract_arg(a.arg_set_id, 'args.seb') from_seb,
  extract_arg(c.arg_set_id, 'args.seb') around_from, n.tid to_pe,
  extract_arg(b.arg_set_id, 'args.seb') to_seb, extract_arg(d.arg_set_id, 'args.seb') around_to
from flow f
  join slice a on f.slice_out = a.id join thread_track x on a.track_id = x.id
  join thread o on x.utid = o.utid
  join slice b on f.slice_in = b.id join thread_track y on b.track_id = y.id
  join thread n on y.utid = n.utid
  left join slice c on a.parent_id = c.id left join slice d on b.parent_id = d.id
"""


@pytest.mark.slow
def test_slices_that_perfetto_drops_are_told(tmp_path: Path) -> None:
    rewritelog.rewrite(SAMPLE_LOGS / "cells", tmp_path / "slow", dilation=3)
    nodes = [[node(k, duration=25, start=10 * k) for k in range(1, 99)]] * 2
    traces = write_traces(tmp_path / "traces", nodes)
    for logs in (tmp_path / "slow", traces, overlapping_sebs(tmp_path / "logs")):
        overlapping = rewritelog.export(logs, tmp_path / "out", "chrome", force=True)
        with opened(tmp_path / "out/trace.json") as perfetto:
            (dropped,) = perfetto.rows(
                "select value from stats where name like 'slice_drop_overl%'"
            )
        assert dropped["value"] > 0
        told = f"{count_text(dropped['value'], 'slice')} left out by viewers"
        assert overlapping.warnings[0].startswith(told)
    rewritelog.replay(tmp_path / "slow", write=tmp_path / "replayed", gains=0)
    assert not rewritelog.export(tmp_path / "replayed", tmp_path / "out2", "chrome").warnings
    assert not rewritelog.export(traces, tmp_path / "out3", "chrome", replayed=True).warnings


@pytest.mark.parametrize(
    "name", by_tier(["cells", "cells-2workers", "ampi-halo"], (), ["cells-2workers"])
)
def test_perfetto_reads_what_the_logs_say(name: str, tmp_path: Path) -> None:
    logs = open_logs(SAMPLE_LOGS / name)
    rewritelog.export(SAMPLE_LOGS / name, tmp_path / "out", "chrome")
    with opened(tmp_path / "out" / "trace.json") as perfetto:
        slices, flows = perfetto.rows(SLICES), perfetto.rows(FLOWS)
        faults = perfetto.rows(
            "select name, value from stats where value > 0 and severity = 'error'"
        )
    assert faults == []
    sebs = logs.sebs()
    columns = ("pe", "seb", "src_pe", "msg_id")
    assert [tuple(row[column] for column in columns) for row in slices] == [
        tuple(row) for row in zip(*(sebs[column].tolist() for column in columns), strict=True)
    ]
    assert [row["name"] for row in slices] == [
        seb_name or "(no name)" for seb_name in sebs["name"].tolist()
    ]
    per_node = logs.summary.num_wth
    assert all(row["node"] == row["pe"] // per_node for row in slices)
    assert {(row["thread"], row["process"]) for row in slices} == {
        (f"PE {row['pe']}", f"node {row['node']}") for row in slices
    }
    starts = np.array([row["ts"] for row in slices]) * NANOSECOND
    np.testing.assert_allclose(starts, sebs["start_time"], rtol=0, atol=1.01 * NANOSECOND)
    closed = sebs["end_time"] >= sebs["start_time"]
    lasted = np.array([row["dur"] for row in slices])[closed] * NANOSECOND
    np.testing.assert_allclose(lasted, sebs["exec_time"][closed], rtol=0, atol=1.01 * NANOSECOND)
    messages, received = logs.messages(), sebs[["src_pe", "msg_id", "pe", "seb"]].tolist()
    sent = {(pe, number): seb for pe, number, seb in messages[["pe", "msg_id", "seb"]].tolist()}
    expected = {
        (source, sent[source, number], pe, seb)
        for source, number, pe, seb in received
        if (source, number) in sent
    }
    assert len(flows) == len(expected)
    for row in flows:  # an end may lie in an instant, a bracket or an empty SEB inside the SEB
        ends = itertools.product(
            *((row[f"{end}_seb"], row[f"around_{end}"]) for end in ("from", "to"))
        )
        matching = expected & {
            (row["from_pe"], sender, row["to_pe"], receiver) for sender, receiver in ends
        }
        assert len(matching) == 1, row
        expected -= matching
