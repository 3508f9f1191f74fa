"""Files, plain and gzip, in chunks of every size, and what cannot be read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from chosen import by_tier
from users import heeding_modes

from tracebigsim.errors import TraceBigSimError, TraceFileError
from tracebigsim.files import read_text_chunks, scan_file
from tracebigsim.lines import LineTable, scan
from tracebigsim.writing import MAX_LINE_BYTES

TEXT = (
    b"output\n\n7 TRACEBIGSIM: event:{ a } params:{ 1 2 }\r\nTRACEBIGSIM: event:{ b\n"
    b"TRACEBIGSIM: event:{ b } time:{ 0.5 } PAPI:{ 3 }\nTRACEBIGSIM: event:{ a } time:{ 1 }"
)


def summary(tables: list[LineTable]) -> dict[str, object]:
    """What does not depend on how the text was cut."""
    return {
        "events": [table.events[number] for table in tables for number in table.event],
        "faults": [fault for table in tables for fault in table.faults],
        "fault_count": sum(table.fault_count for table in tables),
        **{
            name: np.concatenate([getattr(table, name) for table in tables]).tobytes()
            for name in ("line", "offset", "seb", "seqno", "time", "time_unit", "params")
        },
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "timings.txt"
    path.write_bytes(TEXT)
    return path


@pytest.mark.parametrize("chunk_bytes", range(1, len(TEXT) + 2))
def test_every_chunk_size_gives_the_same_records(file: Path, chunk_bytes: int) -> None:
    assert summary(list(scan_file(file, chunk_bytes))) == summary([scan(TEXT)])
    chunks = list(read_text_chunks(file, chunk_bytes))
    assert b"".join(chunk.text.tobytes() for chunk in chunks) == TEXT
    assert all(chunk.text[-1] == ord("\n") for chunk in chunks[:-1])


@pytest.mark.parametrize("chunk_bytes", [1, 7, 1 << 20])
@pytest.mark.parametrize("members", [1, 3])
def test_gzip_is_told_by_its_first_bytes(tmp_path: Path, chunk_bytes: int, members: int) -> None:
    path = tmp_path / "timings.txt"
    path.write_bytes(gzip.compress(TEXT + b"\n") * members)
    table = scan((TEXT + b"\n") * members)
    assert summary(list(scan_file(path, chunk_bytes))) == summary([table])


def test_a_plain_file_may_be_named_gz(tmp_path: Path) -> None:
    path = tmp_path / "timings.gz"
    path.write_bytes(TEXT)
    assert summary(list(scan_file(path))) == summary([scan(TEXT)])


@pytest.mark.parametrize("content", [b"", b"x", b"\n"])
def test_files_without_records(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "empty"
    path.write_bytes(content)
    assert sum(len(table) for table in scan_file(path)) == 0


@pytest.mark.parametrize("excess", by_tier([0, 1, 2, 5000], [5000], [0, 1]))
@pytest.mark.parametrize(
    "chunk_bytes", by_tier([4096, MAX_LINE_BYTES, MAX_LINE_BYTES + 1, 16 << 20], quick={4096})
)
@pytest.mark.parametrize("last", by_tier([False, True], [False], [True]))
def test_a_line_too_long_is_one_fault(
    tmp_path: Path, excess: int, chunk_bytes: int, last: bool
) -> None:
    path = tmp_path / "long"
    good = b"1 TRACEBIGSIM: event:{ a }\n"
    long = b"y" * (MAX_LINE_BYTES + excess)
    text = good + long if last else good + long + b"\n" + good * 2
    path.write_bytes(text)
    tables = list(scan_file(path, chunk_bytes))
    assert summary(tables) == summary([scan(text)])
    assert sum(table.fault_count for table in tables) == (excess > 0)
    assert max(chunk.text.size for chunk in read_text_chunks(path, chunk_bytes)) <= (
        chunk_bytes + MAX_LINE_BYTES + 1
    )


def test_a_chunk_is_not_empty(file: Path) -> None:
    with pytest.raises(ValueError, match="at least 1 byte"):
        list(read_text_chunks(file, 0))


def assert_refused(path: Path | str, problem: str) -> None:
    with pytest.raises(TraceFileError) as caught:
        list(scan_file(path))
    assert str(path) in str(caught.value)
    assert problem in str(caught.value)
    assert isinstance(caught.value, TraceBigSimError)


def test_no_such_file(tmp_path: Path) -> None:
    assert_refused(tmp_path / "none", "No such file")


def test_a_folder(tmp_path: Path) -> None:
    assert_refused(tmp_path, "is a folder")


def test_a_device() -> None:
    assert_refused("/dev/null", "not a regular file")


EVENTS = [scan(TEXT).events[number] for number in scan(TEXT).event]


def events_of(path: Path | str) -> list[str]:
    return [table.events[number] for table in scan_file(path) for number in table.event]


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_compressed_files_read_as_plain_ones(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "packed"
    path.write_bytes(COMPRESSORS[kind](TEXT))
    assert events_of(path) == EVENTS
    path.write_bytes(path.read_bytes()[:-12])
    assert_refused(path, f"the {kind} data are truncated")


def test_zstandard_is_read_where_a_package_can(tmp_path: Path) -> None:
    own = sys.version_info >= (3, 14)
    zstd = pytest.importorskip("compression.zstd" if own else "backports.zstd")
    packed = zstd.compress(TEXT + b"\n") + zstd.compress(TEXT)
    (tmp_path / "t.zst").write_bytes(packed)
    assert events_of(tmp_path / "t.zst") == 2 * EVENTS
    (tmp_path / "t.zst").write_bytes(packed[:-12])
    assert_refused(tmp_path / "t.zst", "the Zstandard data are truncated")
    (tmp_path / "t.zst").write_bytes(b"\x28\xb5\x2f\xfd broken")
    assert_refused(tmp_path / "t.zst", "corrupt Zstandard data")


def test_a_pipe_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    writer = threading.Thread(target=(tmp_path / "fifo").write_bytes, args=(gzip.compress(TEXT),))
    writer.start()
    assert events_of(tmp_path / "fifo") == EVENTS
    writer.join()


@pytest.mark.parametrize("kind", ["plain", *COMPRESSORS])
@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "non-blocking"])
def test_a_pipe_is_read_to_its_end_however_its_bytes_come(kind: str, blocking: bool) -> None:
    """It ended where no byte was there yet if it did not block; one byte does not tell a kind."""
    data = TEXT if kind == "plain" else COMPRESSORS[kind](TEXT)

    def write(writer: int) -> None:
        for piece in (data[:1], data[1:9], data[9:]):
            time.sleep(0.02)  # the reader waits for it
            os.write(writer, piece)
        os.close(writer)

    before = os.dup(0)
    reader, writer = os.pipe()
    os.set_blocking(reader, blocking)
    os.dup2(reader, 0)
    os.close(reader)
    writing = threading.Thread(target=write, args=(writer,))
    writing.start()
    try:
        assert events_of("-") == EVENTS
    finally:
        writing.join()
        os.dup2(before, 0)
        os.close(before)


def test_standard_input_is_read(file: Path) -> None:
    before = os.dup(0)
    try:
        with file.open("rb") as stream:
            os.dup2(stream.fileno(), 0)
        assert events_of("-") == EVENTS
        os.close(0)
        assert_refused("-", "Bad file descriptor")
    finally:
        os.dup2(before, 0)
        os.close(before)


def test_an_unreadable_file(file: Path) -> None:
    file.chmod(0)
    with heeding_modes():
        assert_refused(file, "Permission denied")


def test_cut_gzip_at_every_byte(tmp_path: Path) -> None:
    packed = gzip.compress(TEXT)
    path = tmp_path / "cut.gz"
    for cut in range(2, len(packed)):
        path.write_bytes(packed[:cut])
        assert_refused(path, "gzip data")


def test_corrupt_gzip(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(TEXT * 20))
    path = tmp_path / "corrupt.gz"
    packed[len(packed) // 2] ^= 0xFF
    path.write_bytes(packed)
    assert_refused(path, "gzip data")
    path.write_bytes(gzip.compress(TEXT) + b"garbage")
    assert_refused(path, "corrupt gzip data")


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_damage_after_a_compressed_stream_is_not_the_end_of_the_file(
    kind: str, tmp_path: Path
) -> None:
    """Files of many ranks joined into one ended at the first damage, without a word."""
    path, packed = tmp_path / "ranks", COMPRESSORS[kind](TEXT + b"\n")
    path.write_bytes(3 * packed)
    assert events_of(path) == 3 * EVENTS
    for at in (1, len(packed) // 2):
        path.write_bytes(packed + packed[:at] + bytes([packed[at] ^ 0x55]) + packed[at + 1 :])
        assert_refused(path, f"corrupt {kind} data")
    path.write_bytes(packed + TEXT)
    assert_refused(path, f"corrupt {kind} data")
    path.write_bytes(packed + packed[:-12])
    assert_refused(path, f"the {kind} data are truncated")


def test_padding_of_an_xz_file_is_passed_over(tmp_path: Path) -> None:
    """The format allows zeros, four at a time, after a stream."""
    packed = lzma.compress(TEXT + b"\n")
    for zeros in (4, 1 << 17):
        (tmp_path / "t.xz").write_bytes(packed + bytes(zeros) + packed + bytes(zeros))
        assert events_of(tmp_path / "t.xz") == 2 * EVENTS


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_named(tmp_path: Path, encoding: str) -> None:
    """As some shells redirect output; no line was found in it."""
    path = tmp_path / "timings.txt"
    path.write_bytes(f"\ufeff{TEXT.decode()}".encode(encoding))
    assert_refused(path, "is UTF-16")


def test_no_column_is_forgotten_in_a_summary() -> None:
    known = {"events", "event", "faults", "fault_count", "counters", "counter_start", "param_start"}
    known |= {"line", "offset", "seb", "seqno", "time", "time_unit", "params"}
    assert {column.name for column in fields(LineTable)} == known
