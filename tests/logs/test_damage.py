"""Damaged logs: an error that names the place, never anything else."""

import pickle
import resource
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from blocks import in_blocks
from chosen import by_tier
from logbuilder import END, START, bracket, message, seb, write_logs

import rewritelog
from rewritelog.commands.durations import RewriteOptions
from rewritelog.errors import DamagedLogError, RewriteLogError
from rewritelog.rewriting.run import rewrite

HEAD = 16 + 4 + 2 * 4
"""Where the first timeline's count is in a file of two timelines."""
SEB_FIXED = 101
FIRST_SEB = HEAD + 4
MESSAGE, MARKS = 34, 2 * (9 + 4) + len(START + END)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    full = seb(0, 1, messages=[message(0.5)], events=bracket(0.2, 0.4), backward=[0], forward=[1])
    return write_logs(tmp_path / "in", [[full, full], [full]])


def overwrite(path: Path, offset: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[offset : offset + len(data)] = data
    path.write_bytes(content)


def refused(folder: Path) -> DamagedLogError:
    """The same error from the rewrite and from the reader, and no output."""
    with pytest.raises(DamagedLogError) as read:
        rewritelog.open_logs(folder).sebs()
    out = folder.with_name("out")
    with pytest.raises(DamagedLogError) as written:
        rewrite(folder, out, RewriteOptions(dilation=2))
    assert not out.exists()
    assert list(folder.parent.iterdir()) == [folder]
    assert str(read.value) == str(written.value)
    return written.value


def i4(number: int) -> bytes:
    return struct.pack("<i", number)


AT_MESSAGES = FIRST_SEB + SEB_FIXED
AT_EVENTS = AT_MESSAGES + 4 + MESSAGE
AT_BACKWARD = AT_EVENTS + 4 + MARKS
AT_FORWARD = AT_BACKWARD + 8


@pytest.mark.parametrize(
    ("offset", "data", "field", "problem"),
    [
        (AT_MESSAGES, i4(-1), "number of messages", "negative message count -1"),
        (AT_MESSAGES, i4(2**31 - 1), "number of messages", "message count 2147483647 does not fit"),
        (AT_EVENTS, i4(-7), "number of log events", "negative log event count -7"),
        (AT_EVENTS, i4(10**9), "number of log events", "log event count 1000000000 does not fit"),
        (AT_EVENTS + 4, b"\x09", "log event type", "type 9"),
        (AT_EVENTS + 4, b"\x00", "log event type", "type 0"),
        (AT_EVENTS + 4, b"\xff", "log event type", "type -1"),
        (AT_EVENTS + 13, i4(-2), "log event text length", "negative text length -2"),
        (AT_EVENTS + 13, i4(10**6), "log event text length", "1000000 bytes does not fit"),
        (AT_BACKWARD, i4(-1), "number of backward dependencies", "negative count -1"),
        (AT_BACKWARD, i4(10**9), "number of backward dependencies", "1000000000 of backward"),
        (AT_FORWARD, i4(-1), "number of forward dependencies", "negative count -1"),
        (AT_FORWARD, i4(10**9), "number of forward dependencies", "1000000000 of forward"),
    ],
)
def test_counts_are_checked_against_the_bytes(
    offset: int, data: bytes, field: str, problem: str, logs: Path
) -> None:
    overwrite(logs / "bgTrace0", offset, data)
    error = refused(logs)
    assert error.location.file == logs / "bgTrace0"
    assert (error.location.offset_bytes, error.location.pe, error.location.seb) == (offset, 0, 0)
    assert error.location.field == field
    assert problem in str(error)


@pytest.mark.parametrize("count", [-1, 10**6, 2**31 - 1])
def test_a_timeline_that_claims_too_many_sebs(count: int, logs: Path) -> None:
    overwrite(logs / "bgTrace0", HEAD, i4(count))
    error = refused(logs)
    assert (error.location.offset_bytes, error.location.pe, error.location.field) == (
        HEAD,
        0,
        "count",
    )


def test_a_timeline_that_ends_before_the_next_begins(logs: Path) -> None:
    overwrite(logs / "bgTrace0", HEAD, i4(1))
    assert "bytes left over" in str(refused(logs))


def test_a_byte_after_the_last_timeline(logs: Path) -> None:
    with (logs / "bgTrace0").open("ab") as file:
        file.write(b"\0")
    assert "bytes left over after the last SEB: 1" in str(refused(logs))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("field", ["start_time", "end_time"])
@pytest.mark.parametrize("dilation", [1, 2])
def test_times_that_are_no_numbers_are_refused_even_where_nothing_changes(
    dilation: float, field: str, bad: float, tmp_path: Path
) -> None:
    write_logs(tmp_path / "in", [[seb(0, 1) | {field: bad}]])
    with pytest.raises(DamagedLogError, match=r"PE 0, SEB 0.*not a finite number"):
        rewrite(tmp_path / "in", tmp_path / "out", RewriteOptions(dilation=dilation))


def test_a_send_time_that_is_no_number_is_refused(tmp_path: Path) -> None:
    write_logs(tmp_path / "in", [[seb(0, 1), seb(0, 1, messages=[message(float("nan"))])]])
    with pytest.raises(DamagedLogError, match="PE 0, SEB 1, field sendTime"):
        rewrite(tmp_path / "in", tmp_path / "out", RewriteOptions(dilation=2))


def test_a_duration_too_large_for_a_number_is_refused(tmp_path: Path) -> None:
    write_logs(tmp_path / "in", [[seb(0, 1e300)]])
    with pytest.raises(DamagedLogError, match=r"PE 0, SEB 0, field endTime.*too large for"):
        rewrite(tmp_path / "in", tmp_path / "out", RewriteOptions(dilation=1e300))


@pytest.mark.parametrize("block_bytes", by_tier([1 << 20, 150], quick={150}))
@pytest.mark.parametrize("step", by_tier([1, 13], [13]))
def test_a_file_cut_off_anywhere_is_refused(step: int, block_bytes: int, logs: Path) -> None:
    content = (logs / "bgTrace0").read_bytes()
    for length in range(0, len(content), step):
        (logs / "bgTrace0").write_bytes(content[:length])
        with pytest.raises(DamagedLogError, match="bgTrace0"):
            rewrite(in_blocks(logs, block_bytes), None, RewriteOptions(dilation=2, jobs=1))


@pytest.mark.parametrize("length", [n for n in range(80) if n not in (52, 56, 60)])
def test_a_summary_of_another_length_is_refused(length: int, logs: Path) -> None:
    content = (logs / "bgTrace").read_bytes() + bytes(20)
    (logs / "bgTrace").write_bytes(content[:length])
    with pytest.raises(DamagedLogError, match=f"bgTrace, byte {min(length, 60)}: "):
        rewritelog.open_logs(logs)


@pytest.mark.parametrize(
    ("file", "offset", "data", "message"),
    [
        ("bgTrace", 0, b"\x7fELF", "not a bgTrace file"),
        ("bgTrace0", 0, b"\x7fELF", "not a bgTrace file"),
        ("bgTrace", 4, b"\x07", "header version.*unknown version 7"),
        ("bgTrace", 6, b"\x04", "field short size: 4 bytes"),
        ("bgTrace", 7, b"\x08", "field int size: 8 bytes"),
        ("bgTrace", 12, b"\x04", "field double size: 4 bytes"),
        ("bgTrace", 10, b"\x05", "integer format.*neither 0"),
        ("bgTrace", 13, b"\x00", "float format"),
        ("bgTrace0", 10, b"\x00", "float format"),
        ("bgTrace", 16, i4(3), "total PEs.*3 PEs, but 2 × 1 × 1 nodes"),
        ("bgTrace", 20, i4(-2), "field x: -2 is not positive"),
        ("bgTrace", 48, i4(0), "field timeline files: 0 is not positive"),
        ("bgTrace", 52, i4(99), "log version.*unknown version 99"),
        ("bgTrace0", 16, i4(3), "number of timelines.*3 timelines.*2 PEs"),
        ("bgTrace0", 20, i4(29), "PE 0, field offset: invalid timeline offset 29"),
        ("bgTrace0", 24, i4(27), "PE 1, field offset: invalid timeline offset 27"),
        ("bgTrace0", 24, i4(28), "PE 1, field offset: invalid timeline offset 28"),
    ],
)
def test_heads_that_cannot_be(
    file: str, offset: int, data: bytes, message: str, logs: Path
) -> None:
    overwrite(logs / file, offset, data)
    with pytest.raises(DamagedLogError, match=message):
        rewritelog.open_logs(logs)


def test_timelines_of_the_other_byte_order_are_refused(logs: Path, tmp_path: Path) -> None:
    big = write_logs(tmp_path / "big", [[seb(0, 1)], []], order="big")
    (logs / "bgTrace0").write_bytes((big / "bgTrace0").read_bytes())
    with pytest.raises(DamagedLogError, match="big-endian, but the summary is little-endian"):
        rewritelog.open_logs(logs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda logs: (logs / "bgTrace0").unlink(), "bgTrace0: cannot be read: No such file"),
        (lambda logs: (logs / "bgTrace").unlink(), "no log set here"),
        (
            lambda logs: [(logs / "bgTrace0").unlink(), (logs / "bgTrace0").mkdir()],
            "not a regular file",
        ),
    ],
)
def test_missing_and_odd_files(change: Callable[[Path], object], message: str, logs: Path) -> None:
    change(logs)
    with pytest.raises(RewriteLogError, match=message):
        rewritelog.open_logs(logs)


def test_huge_claims_cost_no_memory(tmp_path: Path) -> None:
    """10⁹ dependencies claimed in a file of some hundred bytes."""
    write_logs(tmp_path / "in", [[seb(0, 1)]])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    overwrite(tmp_path / "in/bgTrace0", 16 + 4 + 4 + 4 + SEB_FIXED + 8, i4(10**9))
    with pytest.raises(DamagedLogError, match="1000000000 of backward"):
        rewritelog.open_logs(tmp_path / "in").timeline(0)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_damage_is_named_where_sebs_are_looked_up_by_name(logs: Path) -> None:
    """The names of a block are collected before its SEBs are rewritten."""
    overwrite(logs / "bgTrace0", AT_MESSAGES, i4(-1))
    with pytest.raises(DamagedLogError, match="negative message count -1"):
        rewrite(logs, None, RewriteOptions(dilation_for=(("m*", 2.0),)))


def test_an_error_crosses_process_borders_whole(logs: Path) -> None:
    """As it does from the ranks of an MPI job, and from what users run in processes."""
    overwrite(logs / "bgTrace0", AT_MESSAGES, i4(-1))
    error = refused(logs)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (str(again), again.location, again.rule) == (str(error), error.location, error.rule)
