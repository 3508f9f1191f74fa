"""Merging the outputs of many processes into one clean, sorted timing file without other text.

Lines are sorted by event, parameters and time, by an external merge sort in bounded memory: sorted
runs of about RUN_BYTES go to temporary files, which take about three times the space of the timing
lines, and are merged.
"""

from __future__ import annotations

import heapq
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from tracebigsim.errors import TraceFileError
from tracebigsim.files import CHUNK_BYTES, Faults, TextChunk, scan_chunks
from tracebigsim.lines import LineTable, TimeUnit
from tracebigsim.writing import KEYWORD

RUN_BYTES: Final = 32 << 20
MERGED_AT_ONCE: Final = 64
"""How many runs are merged, and so how many files are open, at a time."""

_KEY_END: Final = b"\x03"


@dataclass
class Merged:
    """The lines that a merge writes, and what it leaves out."""

    lines: int = 0
    """Lines written."""
    without_time: int = 0
    """Param lines, which hold no time and are left out."""
    faults: Faults = field(default_factory=Faults)
    """Torn or malformed lines, which are left out."""

    def keyed(self, paths: Iterable[str | os.PathLike[str]]) -> Iterator[bytes]:
        """Yield the timing lines of files, each preceded by its sort key; count all."""
        for path in paths:
            for chunk, table in scan_chunks(path, CHUNK_BYTES):
                self.faults.add(path, table)
                timed = np.flatnonzero(table.time_unit != TimeUnit.NONE)
                self.lines += len(timed)
                self.without_time += len(table) - len(timed)
                yield from _keyed_lines(chunk, table, timed)


def _sortable(numbers: NDArray[np.float64]) -> bytes:
    """Return numbers as 8 bytes each (IEEE 754 bits made monotone) that sort as the numbers do."""
    bits = numbers.view(np.uint64)
    negative = bits >> np.uint64(63) == 1
    sign = np.uint64(1 << 63)
    return np.where(negative, ~bits, bits | sign).astype(">u8").tobytes()


def _keyed_lines(chunk: TextChunk, table: LineTable, rows: NDArray[np.int64]) -> Iterator[bytes]:
    """Yield the lines of a chunk from TRACEBIGSIM on, each after its key and with a newline.

    Names contain no bytes below a tab, so that a name sorts before longer names that begin with it.
    """
    text = chunk.text.tobytes()
    params, times = _sortable(table.params), _sortable(table.time)
    events = [event.encode() for event in table.events]
    bounds = table.param_start.tolist()
    for row in rows.tolist():
        start = int(table.offset[row]) - chunk.offset_bytes
        end = text.find(b"\n", start)
        line = text[text.index(KEYWORD.encode(), start) : end if end >= 0 else len(text)]
        key = b"%s\x01%s\x02%d%s" % (
            events[table.event[row]],
            params[8 * bounds[row] : 8 * bounds[row + 1]].hex().encode(),
            table.time_unit[row],
            times[8 * row : 8 * row + 8].hex().encode(),
        )
        yield key + _KEY_END + line.rstrip() + b"\n"


def _sorted_runs(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield sorted lists of lines of about RUN_BYTES each."""
    run: list[bytes] = []
    size = 0
    for line in lines:
        run.append(line)
        size += len(line)
        if size >= RUN_BYTES:
            run.sort()
            yield run
            run, size = [], 0
    run.sort()
    yield run


def _write_run(folder: Path, number: int, lines: Iterable[bytes]) -> Path:
    path = folder / f"run{number}"
    with path.open("wb") as stream:
        stream.writelines(lines)
    return path


def _merge_runs(folder: Path, runs: list[Path]) -> list[Path]:
    """Merge runs until few enough are left to be opened together."""
    number = len(runs)
    while len(runs) > MERGED_AT_ONCE:
        some, runs = runs[:MERGED_AT_ONCE], runs[MERGED_AT_ONCE:]
        with ExitStack() as stack:
            streams = [stack.enter_context(path.open("rb")) for path in some]
            runs.append(_write_run(folder, number, heapq.merge(*streams)))
        number += 1
        for path in some:
            path.unlink()
    return runs


def _write_sorted(paths: Iterable[str | os.PathLike[str]], out: BinaryIO, folder: Path) -> Merged:
    """Write the sorted lines of files to a stream, with temporary runs in a folder."""
    merged = Merged()
    runs = _sorted_runs(merged.keyed(paths))
    files = [_write_run(folder, number, run) for number, run in enumerate(runs)]
    with ExitStack() as stack:
        opened = _merge_runs(folder, files)
        streams = [stack.enter_context(path.open("rb")) for path in opened]
        out.writelines(line.partition(_KEY_END)[2] for line in heapq.merge(*streams))
    return merged


def merge_to_stream(paths: Iterable[str | os.PathLike[str]], out: BinaryIO) -> Merged:
    """Write the timing lines of files to a stream, with temporary files in the system's folder.

    Raises TraceFileError for a file that cannot be read.
    """
    with _working_folder(Path(tempfile.gettempdir()), "tracebigsim-") as folder:
        return _write_sorted(paths, out, folder)


def merge_files(
    paths: Iterable[str | os.PathLike[str]], out: str | os.PathLike[str], *, force: bool = False
) -> Merged:
    """Write the timing lines of files to a new file, which appears when it is complete.

    A device or a pipe is written directly. Raises TraceFileError if the output exists (unless
    `force`) or cannot be written, or an input cannot be read.
    """
    out = Path(out)
    if out.is_dir():
        raise TraceFileError(out, "is a folder, not a file")
    if out.exists() and not out.is_file():  # a device or a pipe
        with out.open("wb") as stream:
            return merge_to_stream(paths, stream)
    if out.exists() and not force:
        raise TraceFileError(out, "exists (--force replaces it)")
    try:
        with _working_folder(out.parent, ".tracebigsim-") as folder:
            whole = folder / "merged"
            with whole.open("wb") as stream:
                merged = _write_sorted(paths, stream, folder)
            whole.replace(out)
    except OSError as error:
        raise TraceFileError(out, error.strerror or str(error)) from error
    return merged


@contextmanager
def _working_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield a new folder that only this user can read, and remove it with all that is in it."""
    folder = parent / f"{prefix}{secrets.token_hex(16)}"
    try:  # a signal may come as soon as the folder is made
        folder.mkdir(0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def merged_text(merged: Merged) -> str:
    """Return the result of a merge as text."""
    lines = [f"timing lines: {merged.lines:,}"]
    if merged.without_time:
        lines.append(f"left out, without a time: {merged.without_time:,}")
    return "\n".join(lines) + "\n"
