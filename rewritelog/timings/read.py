"""Timing lines read from files, and grouped into samples; the other files that models need.

The other files are formulas, coefficients, parameter names and model files.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rewritelog import units
from rewritelog.arrays import Columns, Flags, Floats, Ints, check_columns, rows_by_key
from rewritelog.errors import ModelError, TimingError, UsageError, UsageTypeError, spelled
from rewritelog.models.base import (
    LOST,
    STUDY_HEAD,
    EventKey,
    EventTimings,
    ModelText,
    ParamNames,
    study_head,
)
from rewritelog.models.expressions import FormulaError, Origin, checked_names
from rewritelog.options import PathsLike, flag
from rewritelog.paths import STANDARD_STREAM, to_input, to_inputs
from rewritelog.progress import report_progress
from rewritelog.text import FAULTS_SHOWN, count_text, fault_text, printable, shorten, some_text
from rewritelog.timings.samples import SampleLocations, Timings, TimingsLike, to_files_or_samples
from tracebigsim.errors import TraceFileError
from tracebigsim.files import TextChunk, scan_chunks
from tracebigsim.lines import LineTable, TimeUnit
from tracebigsim.writing import MAX_LINE_BYTES, format_line

if TYPE_CHECKING:
    from rewritelog.models.fitted import Fitted


def read_timings(
    paths: PathsLike,
    *,
    clock_hz: float | str | None = None,
    strict: bool = False,
    columns: Columns = "params",
) -> Timings:
    """Read the timing lines of files, plain or compressed, among any other text.

    `clock_hz` is the clock rate for times in cycles, in Hz or as in "2.4GHz"; with `strict` a
    malformed line is an error; `columns="counters"` reads performance counters (PAPI) in place of
    parameters, and leaves lines without counters out. Raise `TimingError` for a file that cannot be
    read, for times in cycles without a clock, and if there is no timing line.

    >>> rewritelog.read_timings("sample_logs/cells/timings.txt")
    <Timings: 600 samples of 2 events (Cell::pairForces, Cell::bonded)>
    """
    check_columns(columns)
    rate_hz = None if clock_hz is None else units.hertz(clock_hz, "clock_hz")
    files = to_inputs(paths, "the timings")
    is_strict = flag(strict, "strict")
    return read_timings_as((columns,), files, rate_hz, strict=is_strict)[columns]


def samples_of(
    timings: Timings | tuple[Path, ...],
    clock_hz: float | None = None,
    *,
    strict: bool = False,
    columns: Columns = "params",
) -> Timings:
    """Return the samples of files, or samples that are in memory; raise as `read_timings` does.

    Those made from arrays and DataFrames have the columns that a model takes.
    """
    if not isinstance(timings, Timings):
        return read_timings(timings, clock_hz=clock_hz, strict=strict, columns=columns)
    if timings.columns != columns and timings.inputs:
        raise UsageError(
            f"the model is fitted to {columns}: read the timings with columns={columns!r}"
        )
    return replace(timings, columns=columns)


def to_timings(samples: TimingsLike, columns: Columns) -> Timings:
    """Return timings given in any accepted form."""
    return samples_of(to_files_or_samples(samples, "the timings"), columns=columns)


def read_timings_as(
    columns_read: Collection[Columns],
    paths: Iterable[Path],
    clock_hz: float | None = None,
    *,
    strict: bool = False,
) -> dict[Columns, Timings]:
    """Read files as `read_timings` does, but once for all kinds of columns, as pipes require."""
    files, malformed, study = tuple(paths), MalformedLines(), StudyNames()
    collectors = {columns: _SampleCollector(columns) for columns in columns_read}
    for number, path in enumerate(files):
        report_progress(f"reading {printable(str(path))}")
        for chunk, table in malformed.scanned(path, strict=strict):
            study.add(path, chunk)
            for collector in collectors.values():
                collector.add(number, path, table, clock_hz)
    timings_by_columns = {}
    for columns, collector in collectors.items():
        timings = collector.finished(clock_hz, files, malformed)
        timings_by_columns[columns] = replace(timings, names=study.of(timings))
        if not timings.timings:
            names = ", ".join(map(str, files))
            what, counters = "timing line", tuple[int, ...]()
            if columns == "counters":
                what, counters = "timing line with counters", (356, 67)
            line = format_line("NAME", [157, 9], time_s=3e-5, counters=counters).rstrip()
            advice = f"one is like {line}; for tables see docs/notebook.md"
            if any(map(_is_model_file, files)):
                advice = f"a model file is given with {spelled('fitted')}"
            why = timings.warnings or (advice,)
            raise TimingError("; ".join((f"{names}: no {what} found", *why)))
    return timings_by_columns


def _is_model_file(path: Path) -> bool:
    """Return whether a regular file begins as a model file does."""
    from rewritelog.models.model_file import FORMAT  # noqa: PLC0415 - only an error needs it

    if not path.is_file():
        return False
    with path.open("rb") as file:
        return f'"format": "{FORMAT}"'.encode() in file.read(100)


class StudyNames(Struct):
    """The parameter names of lost cycles, which the files of a study have in their first lines."""

    names: tuple[str, ...] = ()
    file: Path | None = None
    """The first file with names."""

    def add(self, path: Path, chunk: TextChunk) -> None:
        """Add the names in a file's first chunk; raise `TimingError` if invalid or different."""
        head = STUDY_HEAD.encode()
        if chunk.offset_bytes or chunk.text[: len(head)].tobytes() != head:
            return
        line, _, _ = chunk.text[len(head) : MAX_LINE_BYTES].tobytes().partition(b"\n")
        listed = line.decode(errors="replace").strip().split(", ")
        try:
            names = checked_names([(name, Origin()) for name in listed])
        except FormulaError as error:
            raise TimingError(f"{path}:1: the names of parameters: {error.problem}") from error
        if self.names not in ((), names):
            of_both = f"{', '.join(names)}, but those of {self.file} are {', '.join(self.names)}"
            raise TimingError(f"{path}:1: the parameters of lost cycles are {of_both}")
        self.names, self.file = names, self.file or path

    @property
    def head(self) -> bytes:
        """The first line of a file with these names; empty without any."""
        return study_head(self.names).encode() if self.names else b""

    def of(self, timings: Timings) -> dict[str, tuple[str, ...]]:
        """Return the names for each event of lost cycles."""
        events = timings.events if self.names else ()
        return {event: self.names for event in events if event.startswith(LOST)}


class MalformedLines(Struct):
    """The number of malformed lines, which are left out, and the first few of them.

    Also the files that were given more than once, whose lines count more than once, and those that
    have no line.
    """

    count: int = 0
    examples: list[str] = []
    files: dict[str, list[Path]] = {}
    """The paths under which each file was given."""
    without: list[Path] = []
    """Files that are not empty, but have no line."""
    has_lines: bool = False
    """Whether any file has one."""

    def scanned(self, path: Path, *, strict: bool = False) -> Iterator[tuple[TextChunk, LineTable]]:
        """Yield each chunk of a file with its table, and note its malformed lines.

        Raise `TimingError` for a file that cannot be read and, with `strict`, for a malformed line.
        """
        self.files.setdefault(os.path.realpath(path), []).append(path)
        is_empty, has_lines = True, False
        try:
            for chunk, table in scan_chunks(path):
                texts = [fault_text(path, f.line, f.problem, f.text) for f in table.faults]
                if strict and texts:
                    raise TimingError(texts[0])
                self.count += table.fault_count
                self.examples += texts[: FAULTS_SHOWN - len(self.examples)]
                has_lines |= len(table) + table.fault_count > 0
                is_empty = False
                yield chunk, table
        except TraceFileError as error:
            ways = "a timed program prints timing lines, and `rewritelog timings` makes those of"
            advice = f"; {ways} Chakra traces" if path.is_dir() else ""
            raise TimingError(f"{error}{advice}") from error
        if not has_lines and path.name.endswith((".et", ".et.gz")):
            advice = "`rewritelog timings` makes timing lines of Chakra traces"
            raise TimingError(f"{path}: no timing line found; {advice}")
        self.has_lines |= has_lines
        if not has_lines and not is_empty:
            self.without.append(path)

    def warnings(self, what: str) -> Iterator[str]:
        """Yield a warning of the lines, named `what`, and one for each file that is given again."""
        if self.count:
            lines = count_text(self.count, f"malformed {what}")
            yield f"{lines} left out: {'; '.join(self.examples)}"
        if self.without and self.has_lines:
            paths = some_text([str(path) for path in self.without], FAULTS_SHOWN)
            yield f"{count_text(len(self.without), 'file')} without a {what}: {paths}"
        for _, *again in self.files.values():
            for path in again:
                yield f"{path}: given more than once, so its lines count more than once"


MOST_EVENTS = 100_000
"""More events than any program has. Each has a fit of its own: 10 kB, and up to 50 ms."""


LATER_CALLS = 9
"""With fewer other calls for each file, its first call of an event is no exception."""


class _SampleCollector:
    """The samples of all lines so far, with columns of one kind."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._samples: dict[EventKey, tuple[bytearray, ...]] = {}
        """By event and number of columns: parameters, seconds, files and lines, whose bytes grow in
        place."""
        self._first_calls: dict[EventKey, list[int]] = {}
        """The rows of the first lines of an event in each file."""
        self._called: set[tuple[str, int]] = set()
        """The events in each file."""
        self._untimed = self._uncounted = 0
        self._in_cycles = False

    def add(self, file: int, path: Path, table: LineTable, clock_hz: float | None) -> None:
        timed = table.time_unit != TimeUnit.NONE
        self._untimed += int(np.count_nonzero(~timed))
        self._in_cycles |= bool((table.time_unit == TimeUnit.CYCLES).any())
        seconds = seconds_of(path, table, clock_hz)
        if self._columns == "counters":
            counted = np.diff(table.counter_start) > 0
            self._uncounted += int(np.count_nonzero(timed & ~counted))
            timed &= counted
        for event, rows, params in line_groups(table, self._columns, timed):
            files = np.full(len(rows), file, dtype=np.int64)
            new_rows = params, seconds[rows], files, table.line[rows].astype(np.int64)
            key = event, params.shape[1]
            if key not in self._samples:
                self._samples[key] = tuple(bytearray() for _ in new_rows)
                self._first_calls[key] = []
            if (event, file) not in self._called:
                self._called.add((event, file))
                self._first_calls[key].append(len(self._samples[key][1]) // seconds.itemsize)
            for column, part in zip(self._samples[key], new_rows, strict=True):
                column.extend(part.tobytes())
            if len(self._samples) > MOST_EVENTS:
                raise TimingError(
                    f"{path}: more than {MOST_EVENTS:,} different events, such as "
                    f"'{shorten(event, 40)}': what differs from call to call belongs in "
                    "params:{ … }, not in the name of the event"
                )

    def finished(
        self, clock_hz: float | None, files: tuple[Path, ...], malformed: MalformedLines
    ) -> Timings:
        timings, locations = [], []
        for (event, count), columns in self._samples.items():
            params, seconds = (np.frombuffer(column) for column in columns[:2])
            file, line = (np.frombuffer(column, np.int64) for column in columns[2:])
            first = np.array(self._first_calls[event, count], dtype=np.int64)
            if len(seconds) < (1 + LATER_CALLS) * len(first):
                first = first[:1]
            timings.append(EventTimings(event, params.reshape(len(seconds), count), seconds, first))
            locations.append(SampleLocations(file, line))
        notes = [*malformed.warnings("timing line")]
        if self._untimed:
            notes.append(f"{count_text(self._untimed, 'line')} without a time left out")
        if self._uncounted:
            notes.append(
                f"{count_text(self._uncounted, 'timing line')} without counters (PAPI) left out: "
                "count them in the timed run too, or choose a model of parameters"
            )
        if clock_hz is not None and not self._in_cycles:
            notes.append("the clock rate is not used: no timing line has a time in cycles")
        return Timings(
            tuple(timings),
            columns=self._columns,
            uncounted=self._uncounted,
            notes=tuple(notes),
            inputs=files,
            locations=tuple(locations),
        )


def line_groups(
    table: LineTable, columns: Columns, chosen: Flags
) -> Iterator[tuple[str, Ints, Floats]]:
    """Yield the chosen lines grouped by event and number of columns, in order of first appearance.

    A group consists of its event, its rows in the table and their parameters or counters, shape
    (rows, columns).
    """
    start, numbers = table.param_start, table.params
    if columns == "counters":
        start, numbers = table.counter_start, table.counters.astype(np.float64)
    counts = np.diff(start)
    keys = table.event.astype(np.int64) * (1 + counts.max(initial=0)) + counts
    for rows in rows_by_key(keys, chosen):
        row = rows[0]
        count = int(counts[row])
        if rows[-1] - row == len(rows) - 1:  # all lines from the first to the last one
            params = numbers[start[row] : start[row] + len(rows) * count].reshape(len(rows), count)
        else:
            params = numbers[start[rows][:, None] + np.arange(count)]
        yield table.events[table.event[row]], rows, params


def seconds_of(path: Path, table: LineTable, clock_hz: float | None) -> Floats:
    """Return the time of each line in seconds, NaN without one.

    Raise `TimingError` for times in cycles without a clock.
    """
    cycles = table.time_unit == TimeUnit.CYCLES
    if not cycles.any():
        return table.time
    if clock_hz is None:
        line = table.line[int(np.argmax(cycles))]
        raise TimingError(
            f"{path}:{line}: the time is in cycles, but no clock rate is given "
            f"({spelled('clock_hz')})"
        )
    with np.errstate(over="ignore"):  # infinite times are left out
        return np.where(cycles, table.time / clock_hz, table.time)


MAX_BYTES = 16 << 20
"""The largest size of a file of formulas, coefficients or names."""

MAX_MODEL_BYTES = 512 << 20
"""The largest size of a model file: a million exact matches of 8 parameters take 150 MB, 100,000
events 300 MB."""


def read_texts(formulas: Path | None, coefficients: Path | None) -> dict[str, ModelText]:
    """Return the texts of the given files by kind, `formulas` or `coefficients`.

    Raise `ModelError` for a file that cannot be read or is not UTF-8.
    """
    files = {"formulas": formulas, "coefficients": coefficients}
    return {what: read_model_text(path) for what, path in files.items() if path is not None}


def read_param_names(path: Path | None) -> ParamNames | None:
    """Return the contents of a file of parameter names; raise `ModelError` for any error in it."""
    if path is None:
        return None
    from rewritelog.models.formulas import parse_param_names  # noqa: PLC0415 - few runs need it

    return parse_param_names(read_model_text(path))


def to_fitted(model: object, what: str) -> Fitted:
    """Return a fitted model, given itself or its file."""
    from rewritelog.models.fitted import Fitted  # noqa: PLC0415 - only some runs need it

    if isinstance(model, Fitted):
        return model
    if not isinstance(model, str | os.PathLike):
        kind = type(model).__name__
        raise UsageTypeError(f"{what} must be a fitted model or the path of its file, not {kind}")
    return read_model_file(to_input(model, what))


def read_model_file(path: Path) -> Fitted:
    """Return the fitted model in a file or, for `-`, in standard input; its name is the path.

    Raise `ModelError` if it is invalid.
    """
    from rewritelog.models.model_file import parse_model  # noqa: PLC0415 - only some runs need it

    if path == STANDARD_STREAM:
        with open(0, "rb", closefd=False) as stream:
            content = stream.read(MAX_MODEL_BYTES + 1)
        read = _decoded("standard input", content, MAX_MODEL_BYTES, "a model file")
    else:
        read = read_model_text(path, MAX_MODEL_BYTES, "a model file")
    digest = hashlib.sha256(read.text.encode()).hexdigest()
    return dataclasses.replace(
        parse_model(read.text, read.name), name=str(path), inputs=(path,), file_sha256=digest
    )


def read_model_text(
    path: Path, most_bytes: int = MAX_BYTES, what: str = "a text file"
) -> ModelText:
    """Return the text of a file; raise `ModelError` if it is too large, unreadable or not UTF-8.

    `what` is what it should be, for the error.
    """
    try:
        with open(path, "rb", opener=_open_regular) as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from error
    return _decoded(str(path), content, most_bytes, what)


def _decoded(name: str, content: bytes, most_bytes: int, what: str) -> ModelText:
    """Return the text of a file; raise `ModelError` if it is too large or not UTF-8."""
    if len(content) > most_bytes:
        raise ModelError(f"{name}: is larger than {most_bytes} bytes")
    try:
        return ModelText(name, content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ModelError(f"{name}: is not {what}: byte {error.start} is not UTF-8") from error


def _open_regular(path: str, flags: int) -> int:
    """Open a regular file; raise `OSError` for a pipe or device, which might block or never end."""
    handle = os.open(path, flags | os.O_NONBLOCK)
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        folder = "it is a folder, not a file"
        raise OSError(0, folder if stat.S_ISDIR(mode) else "it is not a regular file")
    return handle
