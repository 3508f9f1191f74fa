"""The job of `merge`: the timing lines of many outputs in one sorted file without other text.

Only the line that names the parameters of a study is kept. Lines are sorted by event, parameters
and time, by an external merge sort in bounded memory: sorted runs go to temporary files, which take
about three times the space of the timing lines.
"""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.commands.fits import MergeCommand
from rewritelog.errors import OutputError, spelled
from rewritelog.output.files import check_outputs, write_file
from rewritelog.paths import is_stdout
from rewritelog.progress import report_progress
from rewritelog.text import Readable, printable
from rewritelog.timings.read import MalformedLines, StudyNames
from tracebigsim.files import TextChunk
from tracebigsim.lines import LineTable, TimeUnit
from tracebigsim.writing import KEYWORD

RUN_BYTES = 32 << 20
"""The size of a run, which is sorted in memory."""

MERGED_RUNS = 64
"""This many runs of a level are merged into one, so that few files are open at a time."""

_KEY_END: Final = b"\x03"


@dataclass(repr=False)
class MergedLines(Readable):
    """The lines that a merge writes, and what it leaves out."""

    lines: int = 0
    """Lines written."""
    without_time: int = 0
    """Param lines, which hold no time and are left out."""
    malformed: MalformedLines = field(default_factory=MalformedLines)
    study: StudyNames = field(default_factory=StudyNames)
    """The names of the parameters of lost cycles."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Malformed lines, files that are given more than once, and an output without lines."""
        nothing = () if self.lines else ("no timing line found: the output is empty",)
        return (*self.malformed.warnings("line"), *nothing)

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as a JSON object."""
        numbers = {"lines": self.lines, "without_time": self.without_time}
        return {**numbers, "malformed_lines": self.malformed.count, "warnings": list(self.warnings)}

    def text(self) -> str:
        """Return the numbers as text."""
        left_out = f"\nleft out, without a time: {self.without_time:,}"
        return f"timing lines: {self.lines:,}{left_out if self.without_time else ''}"

    def sorted(self, files: Iterable[Path], folder: Path) -> Iterator[bytes]:
        """Yield the sorted lines of files, with runs in temporary files without names in `folder`.

        The first line names the parameters of a study, if the files are of one.
        """
        levels = [list[IO[bytes]]()]
        with ExitStack() as opened:

            def keep(lines: Iterable[bytes], level: int = 0) -> None:
                run = opened.enter_context(tempfile.TemporaryFile(dir=folder))
                run.writelines(lines)
                run.seek(0)
                runs = levels[level]
                runs.append(run)
                if len(runs) == MERGED_RUNS:
                    if level + 1 == len(levels):
                        levels.append([])
                    keep(heapq.merge(*runs), level + 1)
                    while runs:
                        runs.pop().close()

            for run in _sorted_runs(self._keyed(files)):
                keep(run)
            yield self.study.head
            for line in heapq.merge(*chain(*levels)):
                yield line.partition(_KEY_END)[2]

    def _keyed(self, files: Iterable[Path]) -> Iterator[bytes]:
        """Yield the timing lines of files, each after its sort key; count the lines."""
        for path in files:
            report_progress(f"reading {printable(str(path))}")
            for chunk, table in self.malformed.scanned(path):
                self.study.add(path, chunk)
                timed = np.flatnonzero(table.time_unit != TimeUnit.NONE)
                self.lines += len(timed)
                self.without_time += len(table) - len(timed)
                yield from _keyed_lines(chunk, table, timed)


def merge(command: MergeCommand) -> MergedLines:
    """Write the sorted timing lines of files to a file, which appears when it is complete.

    Raise `OutputError` if that file exists, unless `force`, or cannot be written, and `TimingError`
    for a file that cannot be read, and for studies with different parameters.
    """
    files, out = command.files, command.output
    check_outputs([out], () if command.force else files)
    if out.is_file() and not (command.force or is_stdout(out)):
        raise OutputError(f"{out}: exists ({spelled('force', True)} replaces it)")
    merged = MergedLines()
    beside = out.parent if out.is_file() or not out.exists() else Path(tempfile.gettempdir())
    write_file(out, merged.sorted(files, beside))
    return merged


def _sortable(numbers: Floats) -> bytes:
    """Return numbers as 8 bytes each (IEEE 754 bits made monotone) that sort as the numbers do."""
    bits = numbers.view(np.uint64)
    negative = bits >> np.uint64(63) == 1
    sign = np.uint64(1 << 63)
    return np.where(negative, ~bits, bits | sign).astype(">u8").tobytes()


def _keyed_lines(chunk: TextChunk, table: LineTable, rows: Ints) -> Iterator[bytes]:
    """Yield the lines of a chunk, each after its key and with a newline.

    Before TRACEBIGSIM only the number of a SEB is kept. Names contain no bytes below a tab, so a
    name sorts before longer names that begin with it.
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
        number = b"%d " % seb if (seb := int(table.seb[row])) >= 0 else b""
        yield key + _KEY_END + number + line.rstrip() + b"\n"


def _sorted_runs(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield sorted lists of lines of about `RUN_BYTES` each."""
    run: list[bytes] = []
    size = 0
    for line in lines:
        run.append(line)
        size += len(line)
        if size >= RUN_BYTES:
            yield sorted(run)
            run, size = [], 0
    yield sorted(run)
