"""What `info` says of logs, against what the C++ library reads in them and against made damage."""

from __future__ import annotations

import csv
import json
import math
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import rewritelog as run
from growth import Job, check_growth
from hypothesis import given, settings
from hypothesis import strategies as st
from logbuilder import bracket, message, write_logs
from logbuilder import seb as made_seb

import rewritelog
from rewritelog import open_logs
from rewritelog.errors import DamagedLogError
from rewritelog.inspection import info
from rewritelog.inspection.info import survey

DUMPED = {
    "ampi-halo": "ampi-halo",
    "cells/emulation": "cells_emulation",
    "cells-2workers": "cells-2workers",
    "cells-projections": "cells-projections",
    "versions/v0-2004": "versions_v0-2004",
    "versions/v0-little": "versions_v0-little",
    "versions/v6-big": "versions_v6-big",
}


@pytest.mark.parametrize("name", DUMPED)
def test_agrees_with_the_dumps_of_the_cpp_library(name: str, reference: Path) -> None:
    surveyed = survey(open_logs(reference / name))
    dump = reference / "expected" / "dump" / DUMPED[name]
    sebs = list(_rows(dump / "sebs.csv"))
    times = [(float(row["start"]), float(row["end"])) for row in sebs]
    closed = [(start, end) for start, end in times if end >= start]
    assert surveyed.sebs == len(sebs)
    assert surveyed.messages == sum(1 for _ in _rows(dump / "messages.csv"))
    assert surveyed.log_events == sum(int(row["events"]) for row in sebs)
    for kind in ("backward", "forward"):
        assert getattr(surveyed, kind) == sum(int(row[kind]) for row in sebs)
    assert surveyed.unclosed == len(times) - len(closed)
    assert surveyed.zero_length == sum(start == end for start, end in closed)
    assert surveyed.earliest_s == min(start for start, _ in times)
    assert surveyed.latest_s == max(end for _, end in closed)
    assert surveyed.seb_seconds == math.fsum(end - start for start, end in closed)
    assert {share.name: share.sebs for share in surveyed.names} == Counter(
        row["name"] for row in sebs
    )


@pytest.mark.parametrize("name", ["cells/emulation", "cells-2workers", "cells-projections"])
def test_finds_a_bracket_for_each_param_record(name: str, reference: Path) -> None:
    surveyed = survey(open_logs(reference / name))
    params = list((reference / name).glob("param.*"))
    assert surveyed.brackets == sum(path.read_text().count("TRACEBIGSIM") for path in params)
    assert surveyed.irregular == 0
    assert surveyed.param_files == len(params)


def test_describes_the_machine_and_what_is_beside(reference: Path) -> None:
    surveyed = survey(open_logs(reference / "cells-projections"))
    assert [file.name for file in surveyed.files] == ["bgTrace0", "bgTrace1"]
    text = " ".join(surveyed.text().split())  # lines are wrapped by the length of the folder's name
    assert "4 × 2 × 2 nodes, 1 worker thread and 1 communication thread per node: 16 PEs" in text
    assert "log version 6, little-endian, header version 1" in text
    assert "932 SEBs, 545 messages, 3,327 log events" in text


def test_names_are_sorted_by_their_share_of_time(reference: Path) -> None:
    surveyed = survey(open_logs(reference / "ampi-halo"))
    seconds = [share.seconds for share in surveyed.names]
    assert seconds == sorted(seconds, reverse=True)
    assert math.fsum(share.share for share in surveyed.names) == pytest.approx(1.0)
    assert surveyed.seb_seconds == pytest.approx(math.fsum(seconds), rel=1e-15)
    lines = surveyed.text().splitlines()
    assert lines[-1] == f"  and {len(surveyed.names) - 20} more"
    assert lines[-21].split()[0] == surveyed.names[0].name


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"format": "of another tool"}', "[" * 100_000, "\xff"]
)
def test_a_provenance_of_another_tool_is_not_reported(text: str, tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "logs", [[made_seb(0, 1)]])
    (logs / "rewritelog.json").write_text(text, encoding="latin-1")
    assert survey(open_logs(logs)).to_json()["provenance"] is None


def test_of_many_files_some_are_listed(tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "logs", [[made_seb(0, 1)]] * 30, files=30)
    lines = survey(open_logs(logs)).text().splitlines()
    assert sum(line.startswith("  bgTrace") for line in lines) == 20
    assert "  and 10 more" in lines


def test_every_real_set_becomes_strict_json(log_set: Path) -> None:
    surveyed = survey(open_logs(log_set)).to_json()
    assert json.loads(json.dumps(surveyed, allow_nan=False)) == surveyed
    assert surveyed["sebs"] == sum(name["sebs"] for name in surveyed["names"])
    assert surveyed["bytes"] == sum(file["bytes"] for file in surveyed["files"])


def test_json_holds_the_machine(reference: Path) -> None:
    surveyed = survey(open_logs(reference / "cells-2workers")).to_json()
    assert surveyed["machine"] == {
        "order": "little",
        "header_version": 1,
        "log_version": 6,
        "total_pes": 24,
        "x": 3,
        "y": 2,
        "z": 2,
        "num_cth": 1,
        "num_wth": 2,
        "stack_size": 0,
        "timing_method": 2,
        "timeline_files": 3,
        "thread_entry_point": 1,
    }


@dataclass(frozen=True)
class MadeLogs:
    """A made log set whose bytes can be changed."""

    folder: Path

    def put(self, pe: int, seb: int, field: str, data: bytes) -> None:
        """Overwrite the beginning of a field of a SEB."""
        logs = open_logs(self.folder)
        fields: Any = logs.layout.seb.fields
        self.put_at(pe, int(logs.sebs([pe])[seb]["offset"]) + fields[field][1], data)

    def put_at(self, pe: int, offset: int, data: bytes) -> None:
        """Overwrite bytes of the file that holds a PE."""
        logs = open_logs(self.folder)
        file = logs.files[logs.timeline_block(pe).file]
        with file.path.open("r+b") as handle:
            handle.seek(offset)
            handle.write(data)

    def survey(self) -> info.LogInfo:
        """Survey the log set as it is now."""
        return survey(open_logs(self.folder))


@pytest.fixture
def made_logs(tmp_path: Path) -> MadeLogs:
    """Return a made log set of 4 PEs."""
    rewritelog.synth(tmp_path / "made", pes=4, sebs=300)
    return MadeLogs(tmp_path / "made")


def test_more_names_than_there_is_room_for(made_logs: MadeLogs) -> None:
    logs = open_logs(made_logs.folder)
    place: Any = logs.layout.seb.fields
    for file in logs.files:
        data = bytearray(file.path.read_bytes())
        for pe in file.pes:
            for row in logs.sebs([int(pe)]):
                at = int(row["offset"]) + place["name"][1]
                name = b"name %d of %d" % (row["seb"], pe)
                data[at : at + 20] = name.ljust(20, b"\0")
        file.path.write_bytes(data)
    sebs = open_logs(made_logs.folder).sebs()
    surveyed = made_logs.survey()
    expected = {
        f"name {row['seb']} of {row['pe']}": max(row["end_time"] - row["start_time"], 0.0)
        for row in sebs
    }
    assert len(expected) == len(sebs) > 4 * 256
    assert {share.name: share.seconds for share in surveyed.names} == expected
    assert {share.sebs for share in surveyed.names} == {1}
    assert surveyed.text().endswith(f"and {len(sebs) - 20:,} more")


def test_blocks_of_any_size_give_the_same_answer(made_logs: MadeLogs) -> None:
    assert survey(replace(open_logs(made_logs.folder), block_bytes=2000)) == made_logs.survey()


def test_what_tracer_would_replace_is_told_where_there_is_any(tmp_path: Path) -> None:
    names = (b"AMPI_SEND", b"user_code", b"msgep", b"msgep2")
    line = [made_seb(0, 1.0 + (name == b"user_code"), name=name) for name in names]
    surveyed = survey(open_logs(write_logs(tmp_path / "logs", [line])))
    assert surveyed.tracer_replaces == pytest.approx(0.4)
    assert surveyed.to_json()["tracer_replaces"] == pytest.approx(0.4)
    assert "TraceR takes durations of its own for 40.0 % of the SEBs' time" in surveyed.text()
    own = survey(open_logs(write_logs(tmp_path / "own", [[made_seb(0, 1, name=b"user_code")]])))
    assert own.tracer_replaces == 0
    assert "TraceR" not in own.text()


def test_names_cannot_command_a_terminal(made_logs: MadeLogs) -> None:
    made_logs.put(1, 3, "name", b"\x1b[31m\xff\nred\0")
    surveyed = made_logs.survey()
    assert "\x1b[31m\\xff\nred" in {share.name for share in surveyed.names}
    assert r"\x1b[31m\xff\nred" in surveyed.text()
    assert surveyed.text().replace("\n", "").isprintable()


def test_times_that_are_no_numbers_count_for_nothing(made_logs: MadeLogs) -> None:
    before = made_logs.survey()
    for seb, (field, value) in enumerate(
        [("end_time", math.nan), ("start_time", math.inf), ("end_time", -math.inf)], start=2
    ):
        made_logs.put(1, seb, field, np.float64(value).tobytes())
    surveyed = made_logs.survey()
    assert surveyed.not_finite == 3
    assert "3 SEBs with times that are not finite" in surveyed.text()
    assert (surveyed.sebs, surveyed.messages) == (before.sebs, before.messages)
    assert surveyed.seb_seconds < before.seb_seconds
    json.dumps(surveyed.to_json(), allow_nan=False)


def test_durations_beyond_all_numbers_become_null(made_logs: MadeLogs) -> None:
    for seb in (2, 3):
        made_logs.put(1, seb, "end_time", np.float64(1.7e308).tobytes())
        made_logs.put(1, seb, "name", b"eternal\0")
    surveyed = made_logs.survey().to_json()
    assert surveyed["seb_seconds"] is None
    assert surveyed["latest_s"] == 1.7e308
    json.dumps(surveyed, allow_nan=False)
    assert "eternal" in made_logs.survey().text()


def test_marks_that_do_not_pair_up_are_counted(made_logs: MadeLogs) -> None:
    before = made_logs.survey()
    events = open_logs(made_logs.folder).log_events([2])
    mark = next(event for event in events if event["text"] == "endTraceBigSim %f\n")
    made_logs.put_at(2, int(mark["offset"]) + 13, b"endTraceBigsim")
    surveyed = made_logs.survey()
    assert surveyed.irregular == 1
    assert surveyed.brackets == before.brackets - 1


def test_a_seb_may_have_any_number_of_brackets(tmp_path: Path) -> None:
    """More than the kernel's table has room for at first."""
    marks = [mark for k in range(100) for mark in bracket(k / 128, (k + 0.5) / 128)]
    line = [made_seb(0, 1, events=bracket(0, 0.5)), made_seb(1, 2, events=marks), made_seb(2, 3)]
    surveyed = survey(open_logs(write_logs(tmp_path / "logs", [line, line[::-1]])))
    assert (surveyed.brackets, surveyed.log_events, surveyed.irregular) == (2 * 101, 2 * 202, 0)
    assert (surveyed.sebs, surveyed.seb_seconds) == (6, 6.0)


def test_a_damaged_seb_is_named(made_logs: MadeLogs) -> None:
    logs = open_logs(made_logs.folder)
    at = int(logs.sebs([3])[7]["offset"]) + logs.layout.seb.itemsize
    made_logs.put_at(3, at, b"\xff\xff\xff\xff")
    with pytest.raises(DamagedLogError, match=f"byte {at}, PE 3, SEB 7, field number of messages"):
        made_logs.survey()


def test_bytes_after_the_last_seb_are_damage(made_logs: MadeLogs) -> None:
    logs = open_logs(made_logs.folder)
    file = logs.files[logs.timeline_block(3).file]
    with file.path.open("ab") as handle:
        handle.write(b"more")
    with pytest.raises(DamagedLogError, match=r"PE 3, SEB \d+, field count: .*: 4$"):
        made_logs.survey()


def _rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file."""
    with path.open(newline="") as file:
        yield from csv.DictReader(file)


def test_messages_are_counted_for_every_pe_that_they_are_addressed_to(tmp_path: Path) -> None:
    """Two nodes of two workers: to a worker, to a node, to everybody, and to all but a node."""
    sent = [
        message(0.5, 0.6, msg_id=0, dst_node=1, tid=0, size=100),
        message(0.5, 0.6, msg_id=1, dst_node=1, tid=-1, size=10),
        message(0.5, 0.6, msg_id=2, dst_node=-1, tid=-1, size=1),
        message(0.5, 0.6, msg_id=3, dst_node=-100, tid=-1, size=1000),
        message(0.5, 0.6, msg_id=4, dst_node=-101, tid=1, size=5),
        message(0.5, 0.6, msg_id=5, dst_node=-2, tid=-1, size=0),
        message(0.5, 0.6, msg_id=6, dst_node=0, tid=2, size=7),  # a worker that is not there
    ]
    lines = [[made_seb(0, 1, messages=sent)], [], [], []]
    logs = open_logs(write_logs(tmp_path / "logs", lines, wth=2))
    traffic = survey(logs).traffic
    assert traffic.messages.tolist() == [[2, 2, 5, 3], [0] * 4, [0] * 4, [0] * 4]
    assert traffic.sent_bytes[0].tolist() == [6, 6, 1116, 1011]
    assert traffic.multicasts == 1
    ones = [(least, 2 * least - 1, 1) for least in (1, 8, 64, 512)]
    classes = sorted([(0, 0, 1), (4, 7, 2), *ones])
    assert [size_class for size_class in traffic.size_classes() if size_class[2]] == classes
    assert json.loads(json.dumps(traffic.to_json()))["sizes"][0]["messages"] == 1


@settings(max_examples=60, deadline=None)
@given(data=st.data(), nodes=st.sampled_from([1, 3, 50]), workers=st.integers(1, 7))
def test_traffic_is_what_each_message_comes_to(
    data: st.DataObject, nodes: int, workers: int
) -> None:
    to = st.tuples(st.integers(-103, nodes), st.integers(-1, workers), st.integers(0, 9))
    sent = data.draw(st.lists(to, max_size=9))
    messages = [
        message(0.5, msg_id=k, dst_node=node, tid=worker, size=size)
        for k, (node, worker, size) in enumerate(sent)
    ]
    pes = nodes * workers
    group = -(-pes // 128)
    expected = np.zeros((2, -(-pes // group)), dtype=np.int64)
    for node, worker, size in sent:
        for pe in range(pes):
            own = worker in (-1, pe % workers)
            excepted = -100 - node == pe // workers and own
            everywhere = node == worker == -1 or (node <= -100 and not excepted)
            if everywhere or (own and node == pe // workers):
                expected[:, pe // group] += 1, size
    lines: list[list[Any]] = [[made_seb(0, 1, messages=messages)], *[[]] * (pes - 1)]
    with tempfile.TemporaryDirectory() as folder:
        traffic = survey(open_logs(write_logs(Path(folder) / "logs", lines, wth=workers))).traffic
    assert traffic.messages[0].tolist() == expected[0].tolist()
    assert traffic.sent_bytes[0].tolist() == expected[1].tolist()
    assert not traffic.messages[1:].any()


@pytest.mark.slow
def test_many_workers_of_a_node_in_many_blocks_take_linear_time(tmp_path: Path) -> None:
    def job_of(workers: int) -> Job:
        sent = [message(0.5, dst_node=0, tid=-1)]
        lines = [[made_seb(0, 1, messages=sent)]] * workers
        logs = open_logs(write_logs(tmp_path / str(workers), lines, wth=workers))
        return lambda: survey(replace(logs, block_bytes=10_000))

    check_growth(job_of, 250)


def test_a_page_shows_who_sends_to_whom(sample_logs: Path, tmp_path: Path) -> None:
    pytest.importorskip("bokeh")
    page = tmp_path / "page.html"
    assert run("info", sample_logs / "cells", "--html", page, "-q").returncode == 0
    text = page.read_text()
    headings = re.findall("<h2>([^<]*)</h2>", text)
    assert headings == [
        "Durations by name", "Messages between PEs", "Bytes between PEs", "Sizes of messages",
        "Summary",
    ]  # fmt: skip
    assert len(text) < 6e6
