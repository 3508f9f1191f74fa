"""What a rewrite refuses since it could not do it faithfully, and what it copies as it is."""

import struct
from pathlib import Path
from typing import Any

import pytest
from logbuilder import mark, message, seb, write_logs
from oracle import walk

from rewritelog.checking.run import check_logs
from rewritelog.commands.durations import RewriteOptions
from rewritelog.errors import DamagedLogError, UsageError
from rewritelog.rewriting.run import rewrite


@pytest.fixture
def renumbered(tmp_path: Path) -> Path:
    """A log whose SEB 1 has another seqno."""
    folder = write_logs(tmp_path / "in", [[seb(0, 1), seb(1, 2)]])
    offset = next(walked.offset for walked in walk(folder) if walked.seb == 1)
    data = bytearray((folder / "bgTrace0").read_bytes())
    data[offset + 4 : offset + 8] = struct.pack("<i", 7)
    (folder / "bgTrace0").write_bytes(data)
    return folder


def test_a_seb_that_is_not_the_one_of_its_place(renumbered: Path, tmp_path: Path) -> None:
    with pytest.raises(DamagedLogError, match=r"PE 0, SEB 1, field seqno: 7 is not the SEB's"):
        rewrite(renumbered, tmp_path / "out", RewriteOptions(dilation=2))
    assert not (tmp_path / "out").exists()


def test_it_is_copied_where_nothing_changes(renumbered: Path, tmp_path: Path) -> None:
    rewrite(renumbered, tmp_path / "out", RewriteOptions(dilation=1))
    assert (tmp_path / "out/bgTrace0").read_bytes() == (renumbered / "bgTrace0").read_bytes()


ODD: list[dict[str, Any]] = [
    {"exec_time": 99.0},
    {"src_pe": 99, "msg_id": 5, "backward": [0]},
    {"backward": [-1, 1, 2**31 - 1], "forward": [0, 0]},
    {"messages": [message(5, 1, size=-1, dst_node=-50, tid=-9)]},
    {"messages": [message(float("nan"), float("inf"))], "recv_time": float("nan")},
    {"events": [mark(b"startTraceBigSim", 9), mark(b"x", float("nan"))]},
]


@pytest.mark.parametrize("fields", ODD)
def test_odd_logs_are_copied_to_the_byte_where_nothing_changes(
    fields: dict[str, Any], tmp_path: Path
) -> None:
    folder = write_logs(tmp_path / "in", [[seb(0, 1), seb(1, 2) | fields]])
    assert check_logs(folder).findings.counts
    rewrite(folder, tmp_path / "out", RewriteOptions(dilation=1))
    assert (tmp_path / "out/bgTrace0").read_bytes() == (folder / "bgTrace0").read_bytes()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            {"seed": -1},
            "seed must be an integer from 0 to 18,446,744,073",
        ),
        ({"jobs": -1}, "jobs must be an integer from 0 to 10,000, not -1"),
        ({"jobs": 10**30}, "jobs must be an integer"),
    ],
)
def test_options_from_python_that_there_are_not(options: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError, match=error):
        RewriteOptions(**options)
