"""Blocks read side by side, each in memory of its own."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from logbuilder import seb, write_logs

import rewritelog
from rewritelog.formats.bgtrace.blocks import LoadedBlock, plan_blocks, read_block
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.progress import listening


@pytest.mark.parametrize("block_bytes", [1 << 24, 200])
def test_two_log_sets_are_read_in_turn(block_bytes: int, tmp_path: Path) -> None:
    a = rewritelog.open_logs(write_logs(tmp_path / "a", [[seb(0, 1)] * 4]))
    b = rewritelog.open_logs(write_logs(tmp_path / "b", [[seb(0, 2)] * 4]))

    def parts(logs: LogSet) -> Iterator[LoadedBlock]:
        return logs.load(plan_blocks(logs.files[0], block_bytes), block_bytes)

    one_by_one = [[part.buffer.tobytes() for part in parts(logs)] for logs in (a, b)]
    assert one_by_one[0] != one_by_one[1]
    pairs = zip(parts(a), parts(b), strict=True)
    in_turn = [(first.buffer.tobytes(), second.buffer.tobytes()) for first, second in pairs]
    assert in_turn == list(zip(*one_by_one, strict=True))


def test_a_thread_reads_all_its_blocks_into_the_same_memory(tmp_path: Path) -> None:
    logs = rewritelog.open_logs(write_logs(tmp_path / "in", [[seb(0, 1)] * 4] * 3))
    (file,) = logs.files
    blocks = list(plan_blocks(file, 500))
    assert len(blocks) == 3
    buffers = [next(read_block(file, block, logs.layout)).buffer for block in blocks]
    assert len({buffer.ctypes.data for buffer in buffers}) == 1


def test_as_many_timelines_as_fit_share_a_block(tmp_path: Path) -> None:
    (file,) = rewritelog.open_logs(write_logs(tmp_path / "in", [[seb(0, 1)] * 4] * 3)).files
    two = int(file.borders[2] - file.borders[0])
    for block_bytes, sizes in ((two, [2, 1]), (two - 1, [1, 1, 1])):
        assert [block.timelines for block in plan_blocks(file, block_bytes)] == sizes


def test_a_rewrite_reads_as_much_at_a_time_as_its_log_set_says(tmp_path: Path) -> None:
    logs = rewritelog.open_logs(write_logs(tmp_path / "in", [[seb(0.0, 1.0)] * 4] * 10))
    done = list[int]()
    with listening(lambda _, bytes_done, *__: done.append(bytes_done)):
        rewritelog.rewrite(replace(logs, block_bytes=300), dilation=2)
    assert len(set(done)) > 10
