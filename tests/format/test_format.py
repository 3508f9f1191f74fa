"""The declaration, what is derived from it, and the kernels' walk, on real and on built logs."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import construct as c
import numpy as np
import oracle
import pytest
from logbuilder import message, seb, write_logs
from oracle import VERSIONS_AND_ORDERS, rich_timelines

from rewritelog import open_logs
from rewritelog.formats.bgtrace import declaration
from rewritelog.formats.bgtrace.declaration import dtype_of, layout
from rewritelog.formats.bgtrace.heads import timeline_borders


@pytest.fixture(params=VERSIONS_AND_ORDERS, ids=lambda pair: f"v{pair[0]}-{pair[1]}")
def built(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a log set of each version and order: 3 nodes of 2 workers in 2 files."""
    version, order = request.param
    return write_logs(
        tmp_path / "logs", rich_timelines(), files=2, wth=2, log_version=version, order=order
    )


@pytest.mark.parametrize(("version", "order"), VERSIONS_AND_ORDERS)
def test_dtypes_have_the_structs_size(version: int, order: declaration.ByteOrder) -> None:
    lay = layout(version, order)
    assert lay.seb.itemsize == declaration.seb_head_struct(version, order).sizeof()
    assert lay.message.itemsize == declaration.message_struct(version, order).sizeof()
    assert lay.event.itemsize == 13
    more = {2: 12, 3: 16, 4: 18, 5: 18, 6: 24}
    assert lay.seb.itemsize == 77 + more.get(version, 0), "FORMAT 4, added up by hand"
    assert lay.message.itemsize == (34 if version else 30)


def test_parse_and_build_give_the_same_bytes(log_set: Path) -> None:
    for name, data in oracle.rebuilt(log_set).items():
        assert data == (log_set / name).read_bytes(), name


def test_parse_and_build_give_the_same_bytes_of_built_logs(built: Path) -> None:
    for name, data in oracle.rebuilt(built).items():
        assert data == (built / name).read_bytes(), name


def test_kernels_say_what_construct_reads(log_set: Path) -> None:
    assert oracle.same_as_kernel(log_set) > 0


def test_kernels_say_what_construct_reads_of_built_logs(built: Path) -> None:
    assert oracle.same_as_kernel(built) == 10


@pytest.mark.parametrize("header_version", [0, 1])
@pytest.mark.parametrize("summary_bytes", [52, 56, 60])
@pytest.mark.parametrize("order", oracle.ORDERS)
def test_old_heads(
    tmp_path: Path, order: declaration.ByteOrder, summary_bytes: int, header_version: int
) -> None:
    version = 0 if summary_bytes == 52 else 6
    folder = write_logs(
        tmp_path / "logs",
        rich_timelines(),
        wth=2,
        log_version=version,
        order=order,
        header_version=header_version,
        summary_bytes=summary_bytes,
    )
    assert (folder / "bgTrace").stat().st_size == summary_bytes
    summary = open_logs(folder).summary
    assert (summary.order, summary.header_version) == (order, header_version)
    assert summary.log_version == version
    assert summary.thread_entry_point == (1 if summary_bytes == 60 else -1)
    assert oracle.same_as_kernel(folder) == 10
    for name, data in oracle.rebuilt(folder).items():
        assert data == (folder / name).read_bytes(), name


@pytest.mark.parametrize("name", sorted(oracle.WRITTEN_SETS.values()))
def test_all_versions_of_a_log_say_the_same(reference: Path, name: str) -> None:
    emulated = oracle.walk(reference / "cells/emulation")
    written = oracle.walk(reference / name)
    assert len(written) == len(emulated) == 676
    for walked, original in zip(written, emulated, strict=True):
        assert walked[:2] == original[:2]
        expected = {key: original.fields[key] for key in walked.fields if key != "_io"}
        if "obj_id" in expected:
            expected["obj_id"] = expected["obj_id"][: len(walked.fields.obj_id)]
        for sent in expected["messages"]:
            if walked.fields.messages and "group" not in walked.fields.messages[0]:
                sent.pop("group", None)
        assert {key: walked.fields[key] for key in expected} == expected


DUMPS = {
    "ampi-halo": "ampi-halo",
    "cells-2workers": "cells-2workers",
    "cells-projections": "cells-projections",
    "cells_emulation": "cells/emulation",
    "versions_v0-2004": "versions/v0-2004",
    "versions_v0-little": "versions/v0-little",
    "versions_v6-big": "versions/v6-big",
}
SEB_COLUMNS = {
    "events": "log_events",
    "start": "start_time",
    "end": "end_time",
    "exec": "exec_time",
    "recv": "recv_time",
    "eff_recv": "eff_recv_time",
}
MESSAGE_COLUMNS = {"msg": "message", "sent": "send_time", "recv": "recv_time"}


def test_every_dump_of_the_library_is_compared(reference: Path) -> None:
    assert {path.name for path in (reference / "expected/dump").iterdir()} == set(DUMPS)


@pytest.mark.parametrize("dump", DUMPS)
def test_tables_equal_the_librarys_dump(reference: Path, dump: str) -> None:
    logs = open_logs(reference / DUMPS[dump])
    folder = reference / "expected/dump" / dump
    same_as_csv(logs.sebs(), folder / "sebs.csv", SEB_COLUMNS)
    same_as_csv(logs.messages(), folder / "messages.csv", MESSAGE_COLUMNS)


def same_as_csv(table: Any, path: Path, columns: dict[str, str]) -> None:
    with path.open(newline="", encoding="latin-1") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(table)
    for column in rows[0]:
        values = table[columns.get(column, column)].tolist()
        text = [row[column] for row in rows]
        if column == "name":
            assert values == text
        elif isinstance(values[0], float):
            assert values == [float(number) for number in text], column
        else:
            assert values == [int(number) for number in text], column


def borders(offsets: list[int], first: int, size: int) -> list[int]:
    places = np.array(offsets, dtype=np.int64)
    bounds, known = timeline_borders(places, first, size)
    assert known.all()
    return [int(place) for place in bounds]


def test_wrapped_offsets_are_told_from_the_ones_before() -> None:
    sizes = [3 << 30, 4, (4 << 30) - 1, 2 << 30, 1 << 20]
    true = np.cumsum([40, *sizes]).tolist()
    assert borders([at % (1 << 32) for at in true[:-1]], 40, true[-1]) == true
    assert true[-1] > 9 << 30


def test_offsets_that_are_invalid_are_left_out() -> None:
    bounds, known = timeline_borders(np.array([40, 41, 60, 70, 80]), 40, 100)
    assert known.tolist() == [True, False, True, True, True]
    assert bounds.tolist() == [40, 60, 60, 70, 80, 100]


@pytest.mark.slow
def test_log_of_more_than_4_gib_is_read(tmp_path: Path) -> None:
    """A sparse file: two SEBs whose one event is a text of 2 GiB, and a third after them."""
    last = seb(2.0, 3.0, messages=[message(2.5)], name=b"beyond")
    huge = seb(0.0, 1.0, events=[{"type": 2, "r_time": 0.0, "data": b""}])
    folder = write_logs(tmp_path / "logs", [[huge], [huge], [last]])
    path = folder / "bgTrace0"
    raw = bytearray(path.read_bytes())
    text = 2**31 - 1
    seb_bytes = int.from_bytes(raw[24:28], "little") - 32
    begins = [32, 32 + seb_bytes + text, 32 + 2 * (seb_bytes + text)]
    for pe, begin in enumerate(begins):
        raw[20 + 4 * pe : 24 + 4 * pe] = (begin % (1 << 32)).to_bytes(4, "little")
    with path.open("wb") as file:
        file.write(raw[:32])
        for begin in begins[:2]:
            file.seek(begin)
            event_length = bytes(raw[32 : 32 + seb_bytes - 12]) + text.to_bytes(4, "little")
            file.write(event_length)
            file.seek(begin + seb_bytes + text - 8)
            file.write(bytes(8))
        file.write(raw[32 + 2 * seb_bytes :])
    assert begins[2] > 1 << 32
    logs = open_logs(folder)
    assert logs.files[0].borders.tolist() == [*begins, path.stat().st_size]
    sebs = logs.sebs([2])
    assert sebs["name"].tolist() == ["beyond"]
    assert sebs["offset"].tolist() == [begins[2] + 4]


def test_a_field_without_a_fixed_size_is_named() -> None:
    with pytest.raises(TypeError, match="field text has no fixed size"):
        dtype_of(c.Struct("count" / c.Int32ul, "text" / c.GreedyBytes))
