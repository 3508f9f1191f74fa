"""Exported tables, read back with the readers that users have, and compared value by value."""

from __future__ import annotations

import csv
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logbuilder import bracket, message, seb, write_logs

import rewritelog
from rewritelog import LogSet, open_logs
from rewritelog.errors import UsageError

Rows = dict[str, list[Any]]


def from_parquet(path: Path) -> Rows:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    return dict(parquet.read_table(path).to_pydict())


def from_csv(path: Path) -> Rows:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else [])}


def same(exported: list[Any], originals: list[Any]) -> bool:
    """Whether values are the same, those of CSV after the conversion of a text."""

    def read(value: Any, original: Any) -> Any:
        if isinstance(value, str) and original is None:
            return value or None
        return type(original)(value) if isinstance(value, str) else value

    values = [read(value, original) for value, original in zip(exported, originals, strict=True)]
    return all(
        value == original
        or (isinstance(original, float) and math.isnan(value) and math.isnan(original))
        for value, original in zip(values, originals, strict=True)
    )


def expected(logs: LogSet) -> dict[str, Rows]:
    """What the tables hold, from the API that other tests check against the slow reader."""
    sebs, messages, events = logs.sebs(), logs.messages(), logs.log_events()
    names, texts = sebs["name"].tolist(), events["text"].tolist()
    times = {f"{n}_s": sebs[n].tolist() for n in sebs.dtype.names or () if n.endswith("_time")}
    plain = ("pe", "seb", "ep", "src_pe", "msg_id", "flag", "messages", "backward")
    return {
        "sebs": {
            **{name: sebs[name].tolist() for name in plain},
            **times,
            "name": names,
            "offset_bytes": sebs["offset"].tolist(),
            "obj_id_3": sebs["obj_id"][:, 3].tolist(),
        },
        "messages": {
            "pe": messages["pe"].tolist(),
            "send_time_s": messages["send_time"].tolist(),
            "recv_time_s": messages["recv_time"].tolist(),
            "size_bytes": messages["size"].tolist(),
            "tid": messages["tid"].tolist(),
        },
        "log_events": {
            "seb": events["seb"].tolist(),
            "type": events["type"].tolist(),
            "r_time_s": events["r_time"].tolist(),
            "text": texts,
        },
    }


@pytest.mark.parametrize(("kind", "read"), [("parquet", from_parquet), ("csv", from_csv)])
def test_every_value_is_read_back(kind: Any, read: Any, log_set: Path, tmp_path: Path) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    logs = open_logs(log_set)
    done = rewritelog.export(logs, tmp_path / "out", kind)
    for name, columns in expected(logs).items():
        table = read(tmp_path / "out" / f"{name}.{kind}")
        assert done.counts[name] == len(next(iter(columns.values())))
        for column, originals in columns.items():
            assert same(table.get(column, []), originals), (name, column)


def test_parquet_is_written_whatever_the_bytes_of_its_folder(
    sample_logs: Path, tmp_path: Path
) -> None:
    """It ended with a UnicodeEncodeError."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    out = tmp_path / os.fsdecode(b"\xff")
    assert rewritelog.export(sample_logs / "cells", out, "parquet").counts["sebs"] == 676
    assert len([*out.iterdir()]) == 6


def test_brackets_and_records_are_those_of_the_logs(sample_logs: Path, tmp_path: Path) -> None:
    folder = sample_logs / "cells"
    done = rewritelog.export(folder, tmp_path / "out", "csv")
    lines = sum(len(path.read_text().splitlines()) for path in folder.glob("param.*"))
    assert done.counts["params"] == lines
    records, brackets = (from_csv(tmp_path / f"out/{n}.csv") for n in ("params", "brackets"))
    assert set(brackets["event"]) == set(records["event"])
    assert list(zip(brackets["pe"], brackets["seb"], strict=True)) == list(
        zip(records["pe"], records["seb"], strict=True)
    )
    events = open_logs(folder).log_events()
    marks = [float(time) for pair in zip(brackets["start_s"], brackets["end_s"], strict=True)
             for time in pair]  # fmt: skip
    assert np.allclose(marks, events["r_time"], rtol=0, atol=1e-18)


def small(folder: Path) -> Path:
    lines = [[seb(k, k + 1, events=bracket(0.25, 0.5), messages=[message(k + 0.5)])
              for k in range(4)] for _ in range(3)]  # fmt: skip
    logs = write_logs(folder, lines)
    (logs / "param.1").write_text("2 TRACEBIGSIM kernel 5.0\n")
    return logs


def test_a_choice_of_pes_and_times(tmp_path: Path) -> None:
    logs = small(tmp_path / "logs")
    rewritelog.export(logs, tmp_path / "out", "csv", pes="1-2", from_s=1.5, until_s=2.5)
    for name in ("sebs", "messages", "brackets"):
        table = from_csv(tmp_path / f"out/{name}.csv")
        keys = sorted(set(zip(table["pe"], table["seb"], strict=True)))
        assert keys == [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")], name
    records = from_csv(tmp_path / "out/params.csv")
    assert records == {"pe": ["1"], "seb": ["2"], "event": ["kernel"], "params": ["5.0"]}
    table = from_csv(tmp_path / "out/brackets.csv")
    assert table["event"] == ["", "kernel", "", ""]


def test_a_seb_may_have_any_number_of_brackets(tmp_path: Path) -> None:
    """More than the kernel's table has room for at first."""
    marks = [mark for k in range(100) for mark in bracket(k / 128, (k + 0.5) / 128)]
    line = [seb(0, 1, events=bracket(0, 0.5)), seb(1, 2, events=marks), seb(2, 3)]
    logs = write_logs(tmp_path / "logs", [line])
    rewritelog.export(logs, tmp_path / "out", "csv")
    table = from_csv(tmp_path / "out/brackets.csv")
    assert table["seb"] == ["0"] + ["1"] * 100
    assert table["bracket"] == ["0", *map(str, range(100))]
    assert [float(text) for text in table["start_s"][1:]] == [k / 128 for k in range(100)]
    assert [float(text) for text in table["end_s"][1:]] == [(k + 0.5) / 128 for k in range(100)]


@pytest.mark.parametrize("pes", ["3", "2-1", "x", "0-", "", "-1", "0,,1"])
def test_pes_that_there_are_not(pes: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^pes"):
        rewritelog.export(small(tmp_path / "logs"), tmp_path / "out", "csv", pes=pes)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_timeline_in_parts_gives_the_same_tables(
    tmp_path: Path, sample_logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritelog.export(sample_logs / "ampi-halo", tmp_path / "whole", "csv")
    monkeypatch.setattr("rewritelog.exporting.contents.PART_BYTES", 700)
    rewritelog.export(sample_logs / "ampi-halo", tmp_path / "parts", "csv")
    for path in (tmp_path / "whole").iterdir():
        lines = [
            sorted((folder / path.name).read_text().splitlines())
            for folder in (tmp_path / "whole", tmp_path / "parts")
        ]
        assert lines[0] == lines[1]


@pytest.mark.parametrize("name", ["sebs", "messages", "log_events"])
def test_data_frames_have_the_columns_of_the_files(
    name: str, sample_logs: Path, tmp_path: Path
) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    logs = open_logs(sample_logs / "cells-2workers")
    rewritelog.export(logs, tmp_path / "out", "parquet")
    frame = getattr(logs, name)().to_frame()
    pandas.testing.assert_frame_equal(frame, pandas.read_parquet(tmp_path / f"out/{name}.parquet"))
