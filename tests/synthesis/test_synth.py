"""Made log sets obey the rules of real ones, and are the same everywhere."""

from __future__ import annotations

import hashlib
import math
import re
import signal
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chosen import by_tier

import rewritelog
from rewritelog import LogSet, open_logs, stopping
from rewritelog.errors import OutputError, UsageError
from rewritelog.formats.bgtrace.declaration import (
    LOG_VERSIONS,
    MachineHeader,
    timeline_file_struct,
    timeline_struct,
)
from rewritelog.formats.bgtrace.heads import timeline_file_head
from rewritelog.progress import listening
from rewritelog.stopping import Stopped
from rewritelog.synthesis import synth
from rewritelog.synthesis.plan import machine_shape
from rewritelog.synthesis.program import EVENTS

SMALL: dict[str, Any] = {"pes": 8, "sebs": 200}


def small(**changes: Any) -> dict[str, Any]:
    """Return options of a small log set."""
    return SMALL | changes


VARIANTS = {
    "default": SMALL,
    "workers": small(pes=12, wth=2, files=3),
    "one PE": small(pes=1, files=1, sebs=150),
    "one SEB": small(pes=4, sebs=1),
    "few SEBs": small(pes=4, sebs=7, files=4),
    "no messages": small(messages=0.0),
    "few messages": small(messages=0.05),
    "many messages": small(messages=2.5),
    "no brackets": small(bracketed=0.0),
    "all bracketed": small(bracketed=1.0),
    "other seed": small(seed=2**63 - 1),
    "big-endian, oldest": small(byte_order="big", log_version=0),
}
PARAM_LINE = re.compile(
    rb"(\d+) TRACEBIGSIM: event:\{ (.*?) \} seqno: \{ (\d+) \}    params:\{ ((?:\d+\.0{6} )+)\}\n"
)
TIMING_LINE = re.compile(
    r"TRACEBIGSIM: event:\{ (.*?) \}  time:\{ (\d+\.\d{9}) \}  params:\{ ((?:\d+\.0{6} )+)\}\n"
)


@pytest.fixture(
    scope="module",
    params=by_tier(VARIANTS, ["workers", "one PE", "few SEBs", "big-endian, oldest"], VARIANTS),
)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return options of all kinds."""
    return VARIANTS[request.param]


@pytest.fixture(scope="module")
def logs(options: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> LogSet:
    """Return the log set that the options make; tests only read it."""
    folder = tmp_path_factory.mktemp("made") / "logs"
    rewritelog.synth(folder, **options)
    return open_logs(folder)


def test_passes_the_rules_of_the_readers(logs: LogSet) -> None:
    sebs, messages, events = logs.sebs(), logs.messages(), logs.log_events()
    closed = sebs["end_time"] >= sebs["start_time"]
    started = sebs["msg_id"] >= 0
    assert (messages["recv_time"] >= messages["send_time"]).all()
    assert (messages["size"] >= 0).all()
    assert np.isin(events["type"], (2, 3)).all()
    duration = sebs["end_time"] - sebs["start_time"]
    assert (duration[closed] == sebs["exec_time"][closed]).all()
    assert not (started & (sebs["backward"] > 0)).any()
    assert (started | (sebs["backward"] > 0) | (sebs["recv_time"] != -1)).all()
    starts, ends = _of_messages(logs, "start_time"), _of_messages(logs, "end_time")
    unclosed = ends < starts
    assert (messages["send_time"] >= starts).all()
    assert ((messages["send_time"] <= ends) | unclosed).all()


def test_only_the_last_seb_of_pe_0_is_unclosed(logs: LogSet) -> None:
    sebs = logs.sebs()
    unclosed = sebs[sebs["end_time"] < sebs["start_time"]]
    last = np.count_nonzero(sebs["pe"] == 0) - 1
    assert unclosed[["pe", "seb", "end_time", "exec_time"]].tolist() == [(0, last, -1.0, 0.0)]


def test_dependencies_agree_with_one_another(logs: LogSet) -> None:
    for pe in logs.pes:
        links = logs.timeline(pe).dependencies
        count = len(logs.timeline(pe).sebs)
        forward = {(int(r["seb"]), int(r["other"])) for r in links if r["forward"]}
        backward = {(int(r["other"]), int(r["seb"])) for r in links if not r["forward"]}
        assert len(links) == 2 * len(forward)
        assert forward == backward
        assert all(0 <= before < after < count for before, after in forward)


def test_sebs_follow_one_another_and_bear_their_index(logs: LogSet) -> None:
    for pe in logs.pes:
        sebs = logs.sebs([pe])
        assert (sebs["seqno"] == np.arange(len(sebs))).all()
        ends = np.maximum(sebs["end_time"], sebs["start_time"])
        assert (sebs["start_time"][1:] >= ends[:-1]).all()
        assert (sebs["eff_recv_time"] <= sebs["start_time"]).all()
        assert (sebs["recv_time"] <= sebs["start_time"]).all()


def test_starting_messages_were_sent_to_their_seb(logs: LogSet) -> None:
    workers = logs.summary.num_wth
    sent = {(int(m["pe"]), int(m["msg_id"])): m for m in logs.messages()}
    assert len(sent) == len(logs.messages())
    taken: Counter[tuple[int, int, int]] = Counter()
    for seb in logs.sebs():
        if seb["msg_id"] < 0:
            assert seb["src_pe"] == -1
            continue
        message = sent[int(seb["src_pe"]), int(seb["msg_id"])]
        target = divmod(int(seb["pe"]), workers)
        assert (message["dst_node"], message["tid"]) in (target, (-1, -1))
        assert message["recv_time"] == seb["recv_time"]
        taken[int(seb["src_pe"]), int(seb["msg_id"]), int(seb["pe"])] += 1
    assert set(taken.values()) <= {1}


def test_every_bracket_has_its_param_record(logs: LogSet) -> None:
    specs = {name.encode(): params for name, (_, params) in EVENTS.items()}
    for pe in logs.pes:
        path = logs.folder / f"param.{pe}"
        text = path.read_bytes() if path.exists() else b""
        records = PARAM_LINE.findall(text)
        assert b"".join(PARAM_LINE.match(line).group() for line in text.splitlines(True)) == text  # type: ignore[union-attr]
        marked = _bracketed_sebs(logs, pe)
        assert [int(seb) for seb, *_ in records] == marked
        for seb, name, seqno, params in records:
            assert seb == seqno
            values = [float(value) for value in params.split()]
            ranges = zip(specs[name], values, strict=True)
            assert all(low <= value < low + span for (low, span, *_), value in ranges)


def test_reports_what_it_made(options: dict[str, Any], tmp_path: Path) -> None:
    report = rewritelog.synth(tmp_path / "made", **options)
    logs = open_logs(tmp_path / "made")
    assert report.pes == options["pes"] == logs.summary.total_pes
    assert report.sebs == len(logs.sebs())
    assert report.messages == len(logs.messages())
    assert report.bytes == logs.size_bytes
    lines = sum(path.read_bytes().count(b"\n") for path in logs.folder.glob("param.*"))
    assert report.records == lines
    assert "SEB" in report.text()


def test_averages_are_those_asked_for(tmp_path: Path) -> None:
    report = rewritelog.synth(tmp_path / "made", **small(pes=32, sebs=3000, messages=0.8))
    assert report.sebs / 32 == pytest.approx(3000, rel=0.01)
    assert report.messages / report.sebs == pytest.approx(0.8, rel=0.03)
    assert report.records / report.sebs == pytest.approx(0.0926, rel=0.03)


def test_looks_like_real_logs(tmp_path: Path) -> None:
    rewritelog.synth(tmp_path / "made")
    logs = open_logs(tmp_path / "made")
    sebs, events = logs.sebs(), logs.log_events()
    assert {"msgep", "user_code", "addMsg"} <= set(sebs["name"])
    assert (sebs["end_time"] == sebs["start_time"]).sum() > 100
    assert (sebs["backward"] == 2).any()
    marks = Counter(events["text"])
    assert marks["startTraceBigSim %f\n"] == marks["endTraceBigSim %f\n"] > 1000
    _check_send_regions(logs)


def _check_send_regions(logs: LogSet) -> None:
    """Check that messages are sent before, inside and after brackets."""
    events, messages = logs.log_events([3]), logs.messages([3])
    seb = int(events[events["type"] == 3]["seb"][0])
    start, end = sorted(events[events["seb"] == seb]["r_time"])
    sent = messages[messages["seb"] == seb]["send_time"] - logs.sebs([3])[seb]["start_time"]
    assert (sent < start).any()
    assert ((sent > start) & (sent < end)).any()
    assert (sent > end).any()


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("version", LOG_VERSIONS)
def test_construct_reads_and_writes_the_same_bytes(
    version: int, order: Any, tmp_path: Path
) -> None:
    arguments = small(pes=2, sebs=60, log_version=version, byte_order=order)
    rewritelog.synth(tmp_path / "made", **arguments)
    for path in (tmp_path / "made").glob("bgTrace[01]"):
        data = path.read_bytes()
        head = timeline_file_struct(order).parse(data)
        struct = timeline_struct(version, order)
        borders = [*head.offsets, len(data)]
        for begin, end in pairwise(borders):
            timeline = struct.parse(data[begin:end])
            assert struct.build(timeline) == data[begin:end]


@pytest.mark.slow
def test_versions_and_orders_tell_the_same_story(tmp_path: Path) -> None:
    kept = ["pe", "seb", "seqno", "src_pe", "msg_id", "start_time", "end_time", "recv_time", "name"]
    stories = set()
    for version in LOG_VERSIONS:
        for order in ("little", "big"):
            folder = tmp_path / f"{version}-{order}"
            rewritelog.synth(folder, **small(log_version=version, byte_order=order))
            logs = open_logs(folder)
            assert (logs.summary.log_version, logs.summary.order) == (version, order)
            stories.add(repr(logs.sebs()[kept].tolist()))
    assert len(stories) == 1


def test_the_bytes_are_the_same_everywhere_and_always(tmp_path: Path) -> None:
    rewritelog.synth(tmp_path / "made", **small(pes=4, sebs=100, wth=2, timings=12))
    assert _digest(tmp_path / "made") == FROZEN


FROZEN = "aeac7058533e99daa7d17cd132c38ec26160e2c1f4ee9525461042be70da5de7"


def test_another_seed_gives_other_bytes_and_the_same_one_the_same(tmp_path: Path) -> None:
    digests = []
    for seed in (1, 1, 2):
        rewritelog.synth(tmp_path / "made", **small(seed=seed), force=True)
        digests.append(_digest(tmp_path / "made"))
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("batch_sebs", [1, 150, 500])
def test_small_batches_give_the_same_bytes(
    batch_sebs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritelog.synth(tmp_path / "large", **SMALL)
    monkeypatch.setattr(synth, "BATCH_SEBS", batch_sebs)
    rewritelog.synth(tmp_path / "small", **SMALL)
    assert _digest(tmp_path / "small") == _digest(tmp_path / "large")


def test_offsets_wrap_at_4_gib(sample_logs: Path) -> None:
    machine = MachineHeader.parse(open_logs(sample_logs / "cells").files[0].machine)
    head = timeline_file_head(machine, [100, 2**31 + 5, 2**32 + 7], "little")
    assert list(timeline_file_struct("little").parse(head).offsets) == [100, 2**31 + 5, 7]


def test_timings_follow_the_true_functions(tmp_path: Path) -> None:
    rewritelog.synth(tmp_path / "made", **small(timings=400))
    text = (tmp_path / "made" / "timings.txt").read_text()
    lines = TIMING_LINE.findall(text)
    assert len(lines) == text.count("\n") == 400
    assert Counter(name for name, *_ in lines) == dict.fromkeys(EVENTS, 100)
    for name, seconds, params in lines:
        values = tuple(int(float(value)) for value in params.split())
        constant, costs = EVENTS[name]
        pairs = zip(costs, values, strict=True)
        true = 1e-12 * (constant + sum(a * v + b * v * v for (_, _, a, b), v in pairs))
        assert float(seconds) == pytest.approx(true, rel=0.061, abs=1e-9)


def test_a_single_node_has_one_file_unless_more_are_asked_for(tmp_path: Path) -> None:
    rewritelog.synth(tmp_path / "made", pes=2, wth=2, sebs=5)
    assert len(rewritelog.open_logs(tmp_path / "made").files) == 1


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("pes", {"pes": 0}),
        ("pes", {"pes": 5, "wth": 2}),
        ("wth", {"wth": 0}),
        ("files", {"files": 0}),
        ("files", {"files": 9}),
        ("files", {"files": 5, "wth": 2}),
        ("sebs", {"sebs": 0}),
        ("sebs", {"sebs": 40_000_000}),
        ("messages", {"messages": -0.1}),
        ("messages", {"messages": math.nan}),
        ("messages", {"messages": math.inf}),
        ("bracketed", {"bracketed": 1.5}),
        ("seed", {"seed": -1}),
        ("seed", {"seed": 2**63}),
        ("timings", {"timings": -1}),
        ("log_version", {"log_version": LOG_VERSIONS[-1] + 1}),
        ("byte_order", {"byte_order": "middle"}),
    ],
)
def test_refuses_what_cannot_be_made(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf"^{name}\b"):
        rewritelog.synth(tmp_path / "made", **small(**changes))
    assert not list(tmp_path.iterdir())


def test_no_timeline_is_as_long_as_offsets_can_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritelog.synth(tmp_path / "made", **SMALL)
    logs = open_logs(tmp_path / "made")
    longest = max(logs.timeline_block(pe).size_bytes for pe in logs.pes)
    monkeypatch.setattr("rewritelog.synthesis.plan.OFFSET_RANGE", longest)
    with pytest.raises(UsageError, match=r"^sebs: a timeline would have 4 GiB"):
        rewritelog.synth(tmp_path / "out", **SMALL)


def test_keeps_what_is_there_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "mine").write_text("mine")
    with pytest.raises(OutputError):
        rewritelog.synth(tmp_path / "made", **SMALL)
    assert (tmp_path / "made" / "mine").exists()
    rewritelog.synth(tmp_path / "made", **SMALL, force=True)
    assert not (tmp_path / "made" / "mine").exists()


@pytest.mark.parametrize(
    ("nodes", "shape"),
    [
        (1, (1, 1, 1)),
        (7, (7, 1, 1)),
        (16, (4, 2, 2)),
        (12, (3, 2, 2)),
        (4096, (16, 16, 16)),
        (1024, (16, 8, 8)),
    ],
)
def test_machines_are_nearly_cubes(nodes: int, shape: tuple[int, int, int]) -> None:
    assert machine_shape(nodes) == shape


def _of_messages(logs: LogSet, field: str) -> Any:
    """Return a field of the SEB of each message."""
    return np.concatenate([logs.sebs([pe])[field][logs.messages([pe])["seb"]] for pe in logs.pes])


def _bracketed_sebs(logs: LogSet, pe: int) -> list[int]:
    """Return the SEBs of a PE that have marks; each must have one start and one end in order."""
    marks = [event for event in logs.log_events([pe]) if event["type"] == 3]
    starts, ends = marks[::2], marks[1::2]
    for start, end in zip(starts, ends, strict=True):
        assert start["text"] == "startTraceBigSim %f\n"
        assert end["text"] == "endTraceBigSim %f\n"
        assert start["seb"] == end["seb"]
        assert 0 <= start["r_time"] <= end["r_time"]
    return [int(start["seb"]) for start in starts]


def _digest(folder: Path) -> str:
    """Return the digest of all files of a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def test_progress_is_heard_from_all_threads(tmp_path: Path) -> None:
    heard: list[tuple[str, int, int, str]] = []
    with listening(lambda *stage: heard.append(stage)):
        rewritelog.synth(tmp_path / "out", **small(pes=4, sebs=5, files=2))
    assert {stage for stage in heard if stage[0] == "writing PE"} == {
        ("writing PE", k, 4, "") for k in range(1, 5)
    }


def test_threads_that_write_notice_a_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[int] = []

    def stop(stage: str, done: int, _total: int, _unit: str) -> None:
        if stage == "writing PE":
            heard.append(done)
            monkeypatch.setattr(stopping._request, "raised", Stopped(signal.SIGTERM))

    with pytest.raises(Stopped), listening(stop):
        rewritelog.synth(tmp_path / "out", **small(pes=64, sebs=20_000, files=1, timings=0))
    assert heard == [1]
    assert list(tmp_path.iterdir()) == []
