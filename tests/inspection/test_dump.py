"""The dump of a timeline, against construct's walk; damage, and names that want to be obeyed."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import oracle
import pytest
from chosen import by_tier
from logbuilder import mark, message, pad_name, seb, write_logs
from oracle import VERSIONS_AND_ORDERS, rich_timelines

from rewritelog import LogSet, open_logs
from rewritelog.errors import DamagedLogError, UsageError
from rewritelog.formats.bgtrace.declaration import ByteOrder
from rewritelog.inspection import dump
from rewritelog.inspection.dump import Dump

NEWEST_KEYS = [
    "pe",
    "seb",
    "offset_bytes",
    "ep",
    "seqno",
    "src_pe",
    "msg_id",
    "mpi_op",
    "mpi_size",
    "charm_ep",
    "recv_time_s",
    "eff_recv_time_s",
    "start_time_s",
    "exec_time_s",
    "end_time_s",
    "flag",
    "name",
    "obj_id",
    "messages",
    "log_events",
    "backward",
    "forward",
]


def strict(line: str) -> dict[str, Any]:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    parsed: dict[str, Any] = json.loads(line, parse_constant=refuse)
    return parsed


def number(value: float | str) -> float | str:
    """A time as JSON has it, NaN as a word so that it equals itself."""
    return "nan" if math.isnan(float(value)) else float(value)


def as_json(seb: oracle.Seb) -> dict[str, Any]:
    fields = oracle.newest_fields(seb.fields)
    times = {f"{name}_s": number(fields.pop(name)) for name in list(fields) if "_time" in name}
    name = fields["name"].split(b"\0")[0].decode("utf-8", "backslashreplace")
    messages = [
        {
            "msg_id": m.msg_id,
            "dst_node": m.dst_node,
            "send_time_s": number(m.send_time),
            "recv_time_s": number(m.recv_time),
            "tid": m.tid,
            "size_bytes": m.size,
            "group": m.get("group", 1),
        }
        for m in fields["messages"]
    ]
    events = [
        {
            "type": e.type,
            "r_time_s": number(e.r_time),
            "index": e.data if e.type == 1 else None,
            "text": None if e.type == 1 else e.data.split(b"\0")[0].decode(),
        }
        for e in fields.pop("events")
    ]
    lists = {key: list(fields[key]) for key in ("obj_id", "backward", "forward")}
    place = {"pe": seb.pe, "seb": seb.seb, "offset_bytes": seb.offset}
    return {
        **fields,
        **place,
        **times,
        **lists,
        "name": name,
        "messages": messages,
        "log_events": events,
    }


def comparable(line: str) -> dict[str, Any]:
    seb_json = strict(line)
    seb_json.pop("name_bytes", None)
    for record in (seb_json, *seb_json["messages"], *seb_json["log_events"]):
        record.pop("text_bytes", None)
        record.update({key: number(record[key]) for key in record if key.endswith("_time_s")})
    return seb_json


def dump_lines(logs: LogSet, pe: int, kind: str) -> list[str]:
    return "".join(Dump(logs, pe).pieces(as_json=kind == "jsonl")).split("\n")[:-1]


def check_against_construct(folder: Path) -> None:
    logs = open_logs(folder)
    lines = [line for pe in logs.pes for line in dump_lines(logs, pe, "jsonl")]
    expected = oracle.walk(folder)
    assert len(lines) == len(expected) > 0
    for line, walked in zip(lines, expected, strict=True):
        assert comparable(line) == as_json(walked)


def test_jsonl_says_what_construct_reads(log_set: Path) -> None:
    check_against_construct(log_set)


@pytest.mark.parametrize(("version", "order"), VERSIONS_AND_ORDERS)
def test_jsonl_of_each_version_has_the_same_keys(
    tmp_path: Path, version: int, order: ByteOrder
) -> None:
    folder = write_logs(
        tmp_path, rich_timelines(), files=2, wth=2, log_version=version, order=order
    )
    check_against_construct(folder)
    for line in dump_lines(open_logs(folder), 0, "jsonl"):
        keys = list(strict(line))
        assert [key for key in keys if key != "name_bytes"] == NEWEST_KEYS


def test_lists_too_long_to_be_converted_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump, "_BATCH_ITEMS", 1)
    check_against_construct(write_logs(tmp_path, rich_timelines()))


def test_numbers_that_json_lacks_are_words(tmp_path: Path) -> None:
    times = {"recv_time": math.nan, "eff_recv_time": math.inf, "exec_time": -math.inf}
    write_logs(tmp_path, [[seb(0.0, 1.0, messages=[message(0.5, math.nan)], **times)]])
    seb_json = strict(dump_lines(open_logs(tmp_path), 0, "jsonl")[0])
    assert [seb_json[f"{name}_s"] for name in times] == ["nan", "inf", "-inf"]
    assert seb_json["messages"][0]["recv_time_s"] == "nan"


@pytest.mark.parametrize(
    ("raw", "name", "hidden"),
    [
        (b"plain".ljust(20, b"\0"), "plain", False),
        (b"garbage\0after\0".ljust(20, b"!"), "garbage", True),
        (b"twenty-bytes-no-nul!", "twenty-bytes-no-nul!", False),
        ("größer".encode().ljust(20, b"\0"), "größer", False),
        (b"\xff\xfe".ljust(20, b"\0"), "\\xff\\xfe", True),
    ],
)
def test_bytes_of_a_name_are_given_where_the_text_hides_some(
    tmp_path: Path, raw: bytes, name: str, hidden: bool
) -> None:
    with_text = [{"type": 2, "r_time": 0.0, "data": raw}]
    write_logs(tmp_path, [[seb(0.0, 1.0, events=with_text)]])
    path = tmp_path / "bgTrace0"
    path.write_bytes(path.read_bytes().replace(pad_name(b"msgep"), raw))
    seb_json = strict(dump_lines(open_logs(tmp_path), 0, "jsonl")[0])
    assert seb_json["name"] == seb_json["log_events"][0]["text"] == name
    assert seb_json.get("name_bytes") == (raw.hex() if hidden else None)
    missing_nul = not raw.endswith(b"\0")
    assert seb_json["log_events"][0].get("text_bytes") == (
        raw.hex() if hidden or missing_nul else None
    )
    shown = "\n".join(dump_lines(open_logs(tmp_path), 0, "text"))
    assert shown.count(raw.hex()) == (2 if hidden else 0)


def test_text_shows_every_field_of_a_seb(tmp_path: Path) -> None:
    pointer = {"type": 1, "r_time": 0.125, "data": 4711}
    fields = seb(
        0.5,
        1.75,
        ep=139,
        src_pe=3,
        msg_id=12,
        mpi_op=2,
        mpi_size=8,
        charm_ep=60,
        flag=3,
        recv_time=0.0625,
        eff_recv_time=0.03125,
        exec_time=1.5,
        obj_id=(5, 6, 7, 8),
        name=b"Cell",
        messages=[message(0.75, 0.875, msg_id=77, dst_node=-100, tid=-1, size=1234, group=9)],
        events=[pointer, mark(b"startTraceBigSim %f\n\0", 0.25)],
        backward=[1, 2],
        forward=[3],
    )
    write_logs(tmp_path, [[fields]])
    path = tmp_path / "bgTrace0"
    path.write_bytes(path.read_bytes().replace(pad_name(b"Cell"), b"Cell".ljust(20, b"\0")))
    assert dump_lines(open_logs(tmp_path), 0, "text") == [
        f"PE 0: 1 SEB in bgTrace0, bytes 24 to {path.stat().st_size}",
        "",
        'SEB 0  "Cell"  at byte 28',
        "  ep, seqno       139, 0",
        "  flag            3 (simulation start, quiescence)",
        "  started by      PE 3, message 12",
        "  mpiOp, mpiSize  2 (allreduce), 8",
        "  charm_ep        60",
        "  objId           5 6 7 8",
        "  recvTime        0.0625 s",
        "  effRecvTime     0.03125 s",
        "  startTime       0.5 s",
        "  execTime        1.5 s",
        "  endTime         1.75 s",
        "  backward        1 2",
        "  forward         3",
        "  message  msgID  dstNode  sendTime [s]  recvTime [s]  tID  size [bytes]  group",
        "        0     77     -100          0.75         0.875   -1          1234      9",
        "  log event 0     at 0.125 s: 1 (projections), index 4711",
        '  log event 1     at 0.25 s: 3 (mark), "startTraceBigSim %f\\n"',
    ]


def test_text_leaves_out_what_a_version_lacks(tmp_path: Path) -> None:
    write_logs(tmp_path, [[seb(0.0, 1.0, messages=[message(0.5)])]], log_version=0)
    shown = "\n".join(dump_lines(open_logs(tmp_path), 0, "text"))
    assert "started by      PE -1, message -1 (none)" in shown
    assert all(word not in shown for word in ("mpiOp", "charm_ep", "objId", "group"))


@pytest.mark.parametrize("kind", ["text", "jsonl"])
def test_no_line_holds_what_a_terminal_obeys(tmp_path: Path, kind: Any) -> None:
    nasty = "\x1b[31m\r\b\x07\u202e\x9b2J".encode()
    events = [{"type": 2, "r_time": 0.0, "data": nasty + b"\n\0\x1b[2J"}]
    write_logs(tmp_path, [[seb(0.0, 1.0, name=nasty, events=events)]])
    for line in dump_lines(open_logs(tmp_path), 0, kind):
        assert line.isprintable()


def test_the_pe_is_checked_at_once(tmp_path: Path) -> None:
    logs = open_logs(write_logs(tmp_path, [[seb(0.0, 1.0)]]))
    with pytest.raises(UsageError, match="PE 1 is not in the log"):
        Dump(logs, 1).pieces(as_json=False)


def test_sebs_before_the_damage_are_shown(tmp_path: Path) -> None:
    write_logs(tmp_path, [[seb(0.0, 1.0), seb(1.0, 2.0), seb(2.0, 3.0)]])
    path = tmp_path / "bgTrace0"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DamagedLogError, match="PE 0, SEB 2, field"):
        list(Dump(open_logs(tmp_path), 0).sebs())
    sebs = Dump(open_logs(tmp_path), 0).sebs()
    assert [next(sebs)["seb"] for _ in range(2)] == [0, 1]


def small_log(folder: Path, order: ByteOrder = "little") -> Path:
    texts = [{"type": 1, "r_time": 0.0, "data": 3}, {"type": 2, "r_time": 0.1, "data": b"abc\0"}]
    full = seb(0.0, 1.0, messages=[message(0.5)], events=texts, backward=[0], forward=[2])
    return write_logs(folder, [[seb(0.0, 1.0), full]], order=order)


def outcome(folder: Path, read: Any) -> tuple[Any, ...] | None:
    try:
        read(open_logs(folder))
    except DamagedLogError as error:
        return (error.location.file, error.location.pe, error.location.offset_bytes, error.problem)
    return None


def dumped(logs: Any) -> None:
    for _ in Dump(logs, 0).sebs():
        pass


def tabled(logs: Any) -> None:
    logs.timeline(0)


SEB_1 = 28 + 117
MESSAGES = SEB_1 + 101
EVENTS = MESSAGES + 4 + 34
BACKWARD = EVENTS + 4 + 13 + 17


@pytest.mark.parametrize("order", oracle.ORDERS)
@pytest.mark.parametrize("value", [-1, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize(
    ("at", "place_at", "seb_index", "field"),
    [
        (MESSAGES, MESSAGES, 1, "number of messages"),
        (EVENTS, EVENTS, 1, "number of log events"),
        (EVENTS + 4 + 13 + 9, EVENTS + 4 + 13 + 9, 1, "log event text length"),
        (BACKWARD, BACKWARD, 1, "number of backward dependencies"),
        (BACKWARD + 8, BACKWARD + 8, 1, "number of forward dependencies"),
        (EVENTS + 4, EVENTS + 4, 1, "log event type"),
    ],
)
def test_damage_is_named_as_the_kernels_name_it(
    tmp_path: Path,
    order: ByteOrder,
    value: int,
    at: int,
    place_at: int,
    seb_index: int,
    field: str,
) -> None:
    path = small_log(tmp_path, order) / "bgTrace0"
    raw = bytearray(path.read_bytes())
    raw[at : at + 4] = value.to_bytes(4, order, signed=True)
    path.write_bytes(raw)
    with pytest.raises(DamagedLogError) as caught:
        dumped(open_logs(tmp_path))
    place = caught.value.location
    assert (place.file, place.offset_bytes, place.pe) == (path, place_at, 0)
    assert (place.seb, place.field) == (seb_index, field)
    slow, fast = outcome(tmp_path, dumped), outcome(tmp_path, tabled)
    assert slow is not None
    assert fast is not None
    assert slow[:3] == fast[:3]
    assert slow[3] == fast[3] or field == "log event type", "the kernels' types have no sign"


@pytest.mark.parametrize(
    ("count", "place"),
    [
        (-1, "byte 24, PE 0, field count: negative SEB count -1"),
        (2**31 - 1, "PE 0, SEB 2, field ep: the SEB"),
    ],
)
def test_number_of_sebs_that_cannot_be_is_named(tmp_path: Path, count: int, place: str) -> None:
    path = small_log(tmp_path) / "bgTrace0"
    raw = bytearray(path.read_bytes())
    raw[24:28] = count.to_bytes(4, "little", signed=True)
    path.write_bytes(raw)
    with pytest.raises(DamagedLogError, match=place):
        dumped(open_logs(tmp_path))


@pytest.mark.parametrize("step", by_tier([1, 13], [13], [1]))
def test_log_cut_anywhere_is_damaged(step: int, tmp_path: Path) -> None:
    path = small_log(tmp_path) / "bgTrace0"
    raw = path.read_bytes()
    for length in range(28, len(raw), step):
        path.write_bytes(raw[:length])
        with pytest.raises(DamagedLogError) as caught:
            dumped(open_logs(tmp_path))
        place = caught.value.location
        assert place.pe == 0
        assert place.field
        assert 24 <= (place.offset_bytes or 0) <= length
        assert outcome(tmp_path, tabled) is not None
    path.write_bytes(raw + bytes(1))
    sebs = Dump(open_logs(tmp_path), 0).sebs()
    assert [next(sebs)["seb"], next(sebs)["seb"]] == [0, 1]
    with pytest.raises(DamagedLogError, match="field count: bytes left over after the last SEB: 1"):
        next(sebs)


@pytest.mark.parametrize("left", [0, 1, 8, 9, 12])
def test_an_event_cut_after_a_longer_one_is_named_as_the_kernels_name_it(
    left: int, tmp_path: Path
) -> None:
    """There are bytes for two of the smallest events, but the text of the first takes them."""
    text = b"a text of twenty-odd bytes\0"
    events = [mark(text, 0.1), mark(b"", 0.5)]
    path = write_logs(tmp_path, [[seb(0.0, 1.0, events=events)]]) / "bgTrace0"
    path.write_bytes(path.read_bytes()[: left - 13 - 4 - 4])
    events_at = path.stat().st_size - left - 13 - len(text) - 4
    expected = (path, 0, events_at, "log event count 2 does not fit")
    assert outcome(tmp_path, dumped) == outcome(tmp_path, tabled) == expected


@pytest.mark.long
def test_any_changed_byte_is_read_or_refused_as_the_kernels_do(tmp_path: Path) -> None:
    path = small_log(tmp_path) / "bgTrace0"
    raw = path.read_bytes()
    for place in range(24, len(raw)):
        for value in (0, 1, 0x7F, 0xFF):
            changed = bytearray(raw)
            changed[place] = value
            path.write_bytes(changed)
            slow, fast = outcome(tmp_path, dumped), outcome(tmp_path, tabled)
            assert (slow is None) == (fast is None), (place, value, slow, fast)
