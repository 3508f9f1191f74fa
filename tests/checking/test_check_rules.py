"""The rules of `check`, one by one and against what construct reads; real logs break none."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from chosen import by_tier
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from logbuilder import END, START, bracket, mark, message, seb, write_logs, write_params
from oracle import walk
from rules import violations

import rewritelog
from rewritelog.checking import dependencies, rules
from rewritelog.checking.findings import CheckReport, Rule, Severity
from rewritelog.checking.run import check_logs
from rewritelog.commands.durations import RewriteOptions
from rewritelog.rewriting.run import rewrite

BLOCKS = [1 << 24, 300]
"""A block that holds all, and blocks so small that every timeline is read in parts."""

NAN, INF = math.nan, math.inf


def check(folder: Path, **options: Any) -> CheckReport:
    return check_logs(folder, **options)


def counts_of(folder: Path, **options: Any) -> dict[str, int]:
    return check(folder, **options).findings.counts


def test_no_rule_is_declared_and_then_not_checked() -> None:
    declared = [*vars(rules).values(), *vars(dependencies).values()]
    assert all(rules.RULES[rule.name] is rule for rule in declared if isinstance(rule, Rule))


@pytest.mark.parametrize("block_bytes", by_tier(BLOCKS, [BLOCKS[0]]))
def test_real_logs_are_sound(log_set: Path, block_bytes: int) -> None:
    report = check(log_set, block_bytes=block_bytes)
    assert report.findings.counts == {}
    assert report.sound
    assert report.not_checked == ()
    assert report.findings.sebs == len(walk(log_set))


def test_the_c_library_s_own_rewritten_logs_are_sound(reference: Path) -> None:
    rewritten = sorted((reference / "expected/rewritten").glob("*/bgTrace"))
    assert rewritten
    for summary in rewritten:
        assert check(summary).of(Severity.STOP) == []


@pytest.mark.slow
@pytest.mark.parametrize("recv", ["keep", "shift"])
@pytest.mark.parametrize("dilation", [0.3, 7])
def test_rewritten_logs_are_sound_though_sebs_overlap(
    recv: Any, dilation: float, sample_logs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    rewrite(sample_logs / "ampi-halo", out, RewriteOptions(dilation=dilation, recv=recv))
    assert counts_of(out) == {}


def test_made_and_converted_logs_are_sound(tmp_path: Path) -> None:
    rewritelog.synth(tmp_path / "made", pes=12, sebs=200, wth=3)
    assert counts_of(tmp_path / "made") == {}
    rewritelog.convert(
        tmp_path / "made", tmp_path / "old", log_version=0, byte_order="big", lossy=True
    )
    assert counts_of(tmp_path / "old") == {}


@pytest.mark.parametrize("block_bytes", BLOCKS)
@pytest.mark.parametrize(
    ("rule", "broken", "text"),
    [
        ("not-finite", {"start_time": NAN}, "startTime nan"),
        ("not-finite", {"end_time": INF}, "endTime inf"),
        ("not-finite", {"exec_time": -INF}, "execTime -inf"),
        ("not-finite", {"recv_time": NAN}, "recvTime nan"),
        ("not-finite", {"eff_recv_time": INF}, "effRecvTime inf"),
        ("not-finite", {"messages": [message(1.5, INF)]}, "message 0: recvTime inf"),
        ("not-finite", {"events": [mark(b"x", NAN)]}, "log event 0: rTime nan"),
        ("exec-time", {"exec_time": 0.5}, "execTime 0.5 s, but endTime − startTime is 1.0 s"),
        ("two-causes", {"src_pe": 1, "msg_id": 0, "backward": [0]}, "message 0 of PE 1"),
        ("floating", {"recv_time": -1.0}, "recvTime −1"),
        (
            "starting-message",
            {"src_pe": 2, "msg_id": 0},
            "message 0 of PE 2, but the PEs are 0 to 1",
        ),
        ("starting-message", {"src_pe": -1, "msg_id": 0}, "message 0 of PE -1"),
        (
            "starting-message",
            {"src_pe": 1, "msg_id": -1},
            "message -1 of PE 1, but messages have numbers from 0 on",
        ),
        ("not-sent", {"src_pe": 1, "msg_id": 7}, "message 7 of PE 1, which is never sent"),
        (
            "recv-before-send",
            {"messages": [message(1.5, 1.25)]},
            "message 0: recvTime 1.25 s is before sendTime 1.5 s",
        ),
        (
            "message-size",
            {"messages": [message(1.5, size=-4)]},
            "message 0: negative size, -4 bytes",
        ),
        (
            "send-outside",
            {"messages": [message(2.5)]},
            "message 0: sendTime 2.5 s, in a SEB from 1.0 s to 2.0 s",
        ),
        ("send-outside", {"messages": [message(1.5), message(0.5, 3, msg_id=1)]}, "message 1"),
        ("message-target", {"messages": [message(1.5, dst_node=2)]}, "dstNode 2, tID 0"),
        (
            "message-target",
            {"messages": [message(1.5, dst_node=0, tid=1)]},
            "tID 1, on a machine of 2 nodes with 1 worker thread",
        ),
        ("message-target", {"messages": [message(1.5, dst_node=-3)]}, "dstNode -3"),
        ("message-target", {"messages": [message(1.5, dst_node=-102, tid=-1)]}, "dstNode -102"),
        (
            "message-number",
            {"messages": [message(1.5, msg_id=3), message(1.5, msg_id=3)]},
            "message 1: its number 3 does not exceed the last one, 3",
        ),
        ("message-number", {"messages": [message(1.5, msg_id=-4)]}, "its number -4 is negative"),
        ("marks", {"events": [mark(END, 0.1), mark(START, 0.2)]}, "do not pair up"),
        ("marks", {"events": [mark(START, 0.1)]}, "do not pair up"),
        ("event-outside", {"events": [mark(b"x", 1.5)]}, "log event 0: rTime 1.5"),
        ("dependency-order", {"backward": [-1]}, "backward dependency 0: SEB -1"),
        (
            "dependency-order",
            {"forward": [9]},
            "forward dependency 0: SEB 9, which is not a later one of the timeline's 3 SEBs",
        ),
        ("dependencies-disagree", {"backward": [0]}, "its forward dependencies do not match"),
        ("dependency-cycle", {"backward": [1], "forward": [1]}, "wait for one another: 1"),
    ],
)
def test_a_broken_rule_is_named_with_its_place(
    rule: str, broken: dict[str, Any], text: str, block_bytes: int, tmp_path: Path
) -> None:
    sound = write_logs(tmp_path / "sound", _two_timelines({}))
    assert counts_of(sound, block_bytes=block_bytes) == {}
    folder = write_logs(tmp_path / "broken", _two_timelines(broken))
    report = check(folder, block_bytes=block_bytes)
    if rule == "dependency-cycle" and block_bytes != BLOCKS[0]:  # looked for in whole timelines
        assert report.findings.counts == {"dependency-order": 2}
        return
    assert rule in report.findings.counts
    finding = report.findings.shown[rule][0]
    assert text in finding.message
    assert finding.location.file == folder / "bgTrace0"
    assert finding.location.pe == 1
    if rule != "dependencies-disagree" or block_bytes == BLOCKS[0]:
        _offset_is_in_the_seb(folder, finding.location.seb, finding.location.offset_bytes)


def _two_timelines(changed: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """PE 1's SEB 1, from 1 s to 2 s, is changed."""
    plain = [seb(0, 1), seb(1, 2), seb(2, 3)]
    return [plain, [plain[0], plain[1] | changed, plain[2]]]


def _offset_is_in_the_seb(folder: Path, number: int | None, offset: int | None) -> None:
    begins = {seb.seb: seb.offset for seb in walk(folder) if seb.pe == 1}
    end = begins.get((number or 0) + 1, (folder / "bgTrace0").stat().st_size)
    assert offset is not None
    assert number is not None
    assert begins[number] <= offset < end


@pytest.mark.parametrize("block_bytes", BLOCKS)
def test_a_cycle_over_several_sebs(block_bytes: int, tmp_path: Path) -> None:
    timeline = [
        seb(0, 1, backward=[2], forward=[1]),
        seb(1, 2, backward=[0], forward=[2]),
        seb(2, 3, backward=[1], forward=[0]),
        seb(3, 4),
    ]
    report = check(write_logs(tmp_path / "in", [timeline]), block_bytes=block_bytes)
    assert report.findings.counts["dependency-order"] == 2
    assert "dependencies-disagree" not in report.findings.counts
    if block_bytes == BLOCKS[0]:
        assert report.findings.counts["dependency-cycle"] == 1
        (cycle,) = report.findings.shown["dependency-cycle"]
        assert "0, 1, 2" in cycle.message


def test_waiting_for_a_later_seb_without_a_cycle(tmp_path: Path) -> None:
    timeline = [seb(0, 1, backward=[1]), seb(1, 2, forward=[0])]
    assert counts_of(write_logs(tmp_path / "in", [timeline])) == {"dependency-order": 2}


def test_a_seb_that_was_never_closed_is_no_finding(tmp_path: Path) -> None:
    last = seb(1, -1, messages=[message(1.5)], events=[mark(b"x", 7.0)])
    assert last["exec_time"] == -2
    for number, exec_time in enumerate([-2, 0]):
        line = [seb(0, 1), last | {"exec_time": exec_time}]
        assert counts_of(write_logs(tmp_path / f"{number}", [line])) == {}


@pytest.mark.parametrize(("exec_time", "place"), [(0.25, 1), (0, 0), (0.25, 0)])
def test_another_unclosed_seb_is_damage(exec_time: float, place: int, tmp_path: Path) -> None:
    """Replays dropped its execTime and dilations kept it, and nothing was found."""
    line = [seb(0, 1), seb(1, 2)]
    line[place] |= {"end_time": -1.0, "exec_time": exec_time}
    logs = write_logs(tmp_path / "logs", [line])
    assert counts_of(logs) == {"exec-time": 1}
    assert any("1 SEB whose execTime" in text for text in rewritelog.replay(logs).warnings)


def test_another_seqno(tmp_path: Path) -> None:
    folder = write_logs(tmp_path / "in", [[seb(0, 1), seb(1, 2)]])
    (second,) = (walked for walked in walk(folder) if walked.seb == 1)
    data = bytearray((folder / "bgTrace0").read_bytes())
    data[second.offset + 4] = 9
    (folder / "bgTrace0").write_bytes(data)
    report = check(folder)
    assert report.findings.counts == {"seqno": 1}
    assert report.findings.shown["seqno"][0].message == "seqno 9"


def test_dependencies_that_disagree_in_a_long_timeline_are_found_nearly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a timeline with more SEBs than there are sums, some SEBs share a sum."""
    monkeypatch.setattr(dependencies, "MOST_SUMS", 4)
    line = [seb(k, k + 1) for k in range(16)]
    line[10] = seb(10, 11, backward=[6])
    report = check(write_logs(tmp_path / "in", [line]))
    assert report.findings.counts == {"dependencies-disagree": 1}
    (finding,) = report.findings.shown["dependencies-disagree"]
    assert finding.location.seb == 4
    assert finding.message.endswith(", or those of one of the 3 SEBs after it")


def test_starting_messages_of_version_0_may_name_nodes(tmp_path: Path) -> None:
    timelines = [[seb(0, 1, messages=[message(0.5, msg_id=k)])] for k in range(4)]
    timelines[3] = [seb(0, 1, src_pe=1, msg_id=2)]
    old = check(write_logs(tmp_path / "old", timelines, wth=2, log_version=0))
    assert old.findings.counts == {}
    assert "named by its node" in old.not_checked[0]
    new = check(write_logs(tmp_path / "new", timelines, wth=2, log_version=1))
    assert new.findings.counts == {"not-sent": 1}


class TestParams:
    @pytest.fixture
    def logs(self, tmp_path: Path) -> Path:
        timeline = [seb(k, k + 1, events=bracket(0.25, 0.75)) for k in range(3)]
        folder = write_logs(tmp_path / "in", [timeline, timeline])
        for pe in (0, 1):
            write_params(folder, pe, *[(k, "k", k + 1) for k in range(3)])
        return folder

    @pytest.mark.parametrize("block_bytes", BLOCKS)
    def test_sound(self, logs: Path, block_bytes: int) -> None:
        report = check(logs, block_bytes=block_bytes)
        assert (report.findings.counts, report.findings.records) == ({}, 6)

    @pytest.mark.parametrize("block_bytes", BLOCKS)
    def test_what_is_wrong_with_them(self, logs: Path, block_bytes: int) -> None:
        write_params(logs, 1, (1, "k", 9), (3, "other", 1), (99, "k", 1))
        write_params(logs, 5, (0, "k", 1))
        with (logs / "param.0").open("a") as file:
            file.write(
                "1 TRACEBIGSIM: event:{ k params:{ 1 }\n"
                "2 TRACEBIGSIM: event:{ k } seqno: { 1 } params:{ 1 }\n"
            )
        report = check(logs, block_bytes=block_bytes)
        assert report.findings.counts == {
            "param-records": 2,
            "param-seb": 2,
            "param-pe": 1,
            "param-line": 1,
            "param-seqno": 1,
        }
        shown = {rule: list(map(str, some)) for rule, some in report.findings.shown.items()}
        assert f"{logs / 'bgTrace0'}, byte" in shown["param-records"][0]
        assert "PE 0, SEB 2: 2 param records and 1 bracket" in shown["param-records"][0]
        assert "PE 1, SEB 1: 2 param records" in shown["param-records"][1]
        assert shown["param-seb"][0].startswith(f"{logs / 'param.1'}, PE 1, SEB 3: ")
        assert "'other', but the timeline has 3 SEBs" in shown["param-seb"][0]
        assert shown["param-line"][0].startswith(f"{logs / 'param.0'}:4: ")
        assert shown["param-seqno"][0].startswith(f"{logs / 'param.0'}:5: ")
        assert not report.sound

    @pytest.mark.parametrize("block_bytes", BLOCKS)
    def test_a_file_that_cannot_be_read(self, logs: Path, block_bytes: int) -> None:
        (logs / "param.0").unlink()
        (logs / "param.0").mkdir()
        report = check(logs, block_bytes=block_bytes)
        assert report.findings.counts == {"param-file": 1, "param-records": 3}
        assert report.findings.shown["param-file"][0].location.file == logs / "param.0"
        assert report.findings.records == 3

    def test_another_folder(self, logs: Path, tmp_path: Path) -> None:
        (tmp_path / "params").mkdir()
        write_params(tmp_path / "params", 0, (0, "k", 1))
        assert counts_of(logs, params=tmp_path / "params") == {"param-records": 5}

    def test_without_any_brackets_alone_are_no_finding(self, logs: Path) -> None:
        for pe in (0, 1):
            (logs / f"param.{pe}").unlink()
        assert counts_of(logs) == {}

    def test_a_record_without_marks_is_odd(self, tmp_path: Path) -> None:
        folder = write_logs(tmp_path / "in", [[seb(0, 1)]])
        write_params(folder, 0, (0, "k", 1))
        report = check(folder)
        assert report.findings.counts == {"param-records": 1}
        assert report.sound


TIMES = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0])
INDEX = st.integers(-1, 4)


@st.composite
def sebs(draw: st.DrawFn) -> dict[str, Any]:
    sent = [
        message(
            draw(TIMES),
            draw(TIMES),
            size=draw(st.integers(-1, 1)),
            msg_id=draw(INDEX),
            dst_node=draw(st.sampled_from([-102, -101, -100, -3, -2, -1, 0, 1, 2])),
            tid=draw(st.integers(-2, 2)),
        )
        for _ in range(draw(st.integers(0, 2)))
    ]
    fields = {
        "exec_time": draw(TIMES),
        "recv_time": draw(TIMES),
        "src_pe": draw(INDEX),
        "msg_id": draw(INDEX),
        "messages": sent,
        "backward": draw(st.lists(INDEX, max_size=3)),
        "forward": draw(st.lists(INDEX, max_size=3)),
    }
    return seb(draw(TIMES), draw(TIMES), **fields)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    timelines=st.lists(st.lists(sebs(), max_size=4), min_size=2, max_size=2),
    log_version=st.sampled_from([0, 3, 6]),
    order=st.sampled_from(["little", "big"]),
    block_bytes=st.sampled_from(BLOCKS),
)
def test_agrees_with_construct(
    timelines: Any,
    log_version: int,
    order: Any,
    block_bytes: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = write_logs(
        tmp_path_factory.mktemp("logs"), timelines, wth=1, order=order, log_version=log_version
    )
    counts = counts_of(folder, block_bytes=block_bytes)
    expected = _expected(folder, len(timelines))
    for rule in ("not-sent", "dependency-cycle"):
        counts.pop(rule, None)
    assert counts == {rule: count for rule, count in expected.items() if count}


_NUMBERED = {
    1: "recv-before-send",
    2: "message-size",
    3: "dependency-order",
    4: "exec-time",
    5: "send-outside",
    6: "two-causes",
    7: "floating",
}


def _expected(folder: Path, nodes: int) -> Counter[str]:
    """What construct finds, FORMAT read again: a machine of nodes with one worker thread."""
    sebs = {(seb.pe, seb.seb): seb.fields for seb in walk(folder)}
    closed = {key for key, fields in sebs.items() if fields.end_time >= fields.start_time}
    expected: Counter[str] = Counter()
    for rule, pe, index, _ in violations(folder):
        if (pe, index) in closed or rule not in (4, 5):
            expected[_NUMBERED[rule]] += 1
    for pe in range(nodes):
        timeline = [fields for key, fields in sorted(sebs.items()) if key[0] == pe]
        expected.update(_expected_of(timeline, nodes))
    return expected


def _expected_of(timeline: list[Any], nodes: int) -> Counter[str]:
    expected: Counter[str] = Counter()
    total, last = len(timeline), -1
    forward = [Counter(j for j in fields.forward if 0 <= j < total) for fields in timeline]
    backward = [
        Counter(j for j, fields in enumerate(timeline) for k in fields.backward if k == i)
        for i in range(total)
    ]
    expected["dependencies-disagree"] = sum(a != b for a, b in zip(forward, backward, strict=True))
    for index, fields in enumerate(timeline):
        is_exit = index == total - 1 and fields.exec_time <= 0
        expected["exec-time"] += fields.end_time < fields.start_time and not is_exit
        expected["dependency-order"] += sum(not index < j < total for j in fields.forward)
        named = fields.msg_id >= 0 and 0 <= fields.src_pe < nodes
        expected["starting-message"] += not (named or fields.msg_id == fields.src_pe == -1)
        for sent in fields.messages:
            expected["message-number"] += sent.msg_id <= max(last, -1)
            last = sent.msg_id
            node = sent.dst_node if sent.dst_node > -100 else -100 - sent.dst_node
            exists = sent.tid in (-1, 0) and (node == -1 or 0 <= node < nodes)
            expected["message-target"] += not (exists or sent.dst_node == -2)
    return expected


def test_cycles_of_many_timelines_and_one_whose_end_is_not_known(tmp_path: Path) -> None:
    """Of three timelines that each have a cycle the second has no place, so the first no end."""
    timeline = [seb(0, 1), seb(1, 2, backward=[1, 0], forward=[1])]
    folder = write_logs(tmp_path / "in", [timeline, timeline, timeline])
    begins = {(walked.pe, walked.seb): walked.offset for walked in walk(folder)}
    data = bytearray((folder / "bgTrace0").read_bytes())
    data[24:28] = b"\xff\xff\xff\xff"
    (folder / "bgTrace0").write_bytes(data)
    report = check(folder)
    assert report.findings.counts["offset"] == 1
    assert report.findings.counts["dependency-cycle"] == 2
    places = [finding.location for finding in report.findings.shown["dependency-cycle"]]
    assert [(place.pe, place.seb) for place in places] == [(0, 1), (2, 1)]
    assert [place.offset_bytes for place in places] == [begins[0, 1], begins[2, 1]]
