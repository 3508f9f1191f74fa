"""A log set as a whole: the summary and all its timeline files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import asdict

from rewritelog import units
from rewritelog.arrays import Rows, with_text
from rewritelog.errors import MissingFileError, RewriteLogError, UsageError
from rewritelog.formats.bgtrace.blocks import (
    BLOCK_BYTES,
    Block,
    Buffer,
    LoadedBlock,
    plan_blocks,
    plan_in_turn,
    read_block,
    timelines_of,
)
from rewritelog.formats.bgtrace.declaration import Layout, layout
from rewritelog.formats.bgtrace.heads import (
    SUMMARY_NAME,
    Summary,
    TimelineFile,
    read_summary,
    read_timeline_file,
)
from rewritelog.formats.traces import Opened, Terms
from rewritelog.paths import input_exists
from rewritelog.text import TextTable, bytes_text, count_text, printable, shorten

if TYPE_CHECKING:
    from rewritelog.formats.bgtrace.records import Tables

_TERMS = Terms("SEB", "PE", "bracket", "param record", "messages")


@dataclass(frozen=True, repr=False, eq=False)
class LogSet(Opened):
    """The logs of one emulation: their paths and heads; timelines are read when they are needed.

    >>> logs = rewritelog.open_logs("sample_logs/cells")
    >>> logs.pes
    range(0, 16)
    >>> sebs = logs.sebs("0-3")
    >>> busy_s = (sebs["end_time"] - sebs["start_time"])[sebs["end_time"] >= 0].sum()
    """

    files: tuple[TimelineFile, ...]
    summary: Summary
    block_bytes: int = BLOCK_BYTES
    """The largest size of what is read at a time, unless one SEB is larger."""

    title: ClassVar[str] = "bgTrace logs"
    terms: ClassVar[Terms] = _TERMS
    has_messages: ClassVar[bool] = True

    @property
    def described(self) -> str:
        """A description in one line: PEs, nodes, log version, byte order and size."""
        s = self.summary
        workers = count_text(s.num_wth, "worker thread")
        return (
            f"{count_text(s.total_pes, 'PE')} ({s.x} × {s.y} × {s.z} nodes, {workers} each), log "
            f"version {s.log_version}, {s.order}-endian, {count_text(s.files, 'timeline file')}, "
            f"{bytes_text(self.size_bytes)}"
        )

    def machine_json(self) -> dict[str, Any]:
        """Return the summary as a JSON object."""
        return asdict(self.summary)

    @property
    def summary_path(self) -> Path:
        """The path of the summary file."""
        return self.folder / SUMMARY_NAME

    @property
    def pes(self) -> range:
        """The numbers of the emulated PEs."""
        return range(self.summary.total_pes)

    @property
    def units_bytes(self) -> int:
        """The size of the timelines, without the heads of their files."""
        return sum(file.size_bytes - file.head_bytes for file in self.files)

    @property
    def layout(self) -> Layout:
        """The byte layout of the records in timelines."""
        return layout(self.summary.log_version, self.summary.order)

    def __repr__(self) -> str:
        summary = self.summary
        pes, files = count_text(summary.total_pes, "PE"), count_text(len(self.files), "file")
        folder = shorten(str(self.folder), 60)
        return f"<LogSet {folder}: {pes} in {files}, log version {summary.log_version}>"

    def _repr_html_(self) -> str:
        summary = self.summary
        rows = [
            ("PEs", f"{summary.total_pes:,}"),
            ("nodes", f"{summary.x:,} × {summary.y:,} × {summary.z:,}"),
            ("worker threads per node", f"{summary.num_wth:,}"),
            ("log version", f"{summary.log_version}"),
            ("byte order", f"{summary.order}-endian"),
            ("timeline files", f"{len(self.files):,}, {bytes_text(self.size_bytes)}"),
        ]
        return TextTable((printable(str(self.folder)), ""), rows).html()

    def timeline_block(self, pe: int) -> Block:
        """Return the timeline of a PE as a block; raise `UsageError` for an unknown PE."""
        is_number = isinstance(pe, Number) and not isinstance(pe, bool)
        if not is_number or pe not in self.pes:
            known = f"it has PEs 0 to {self.pes[-1]}"
            raise UsageError(f"PE {units.value_text(pe)} is not in the log: {known}")
        file, index = self.summary.timeline_of(int(pe))
        return timelines_of(self.files[file], index, index + 1)

    def units(self, *, in_turn: bool = False) -> Iterator[Block]:
        """Yield the blocks, file by file, or alternating between a few files if `in_turn`."""
        if in_turn:
            return plan_in_turn(self.files, self.block_bytes)
        return chain.from_iterable(plan_blocks(file, self.block_bytes) for file in self.files)

    def read(self, unit: Block) -> Iterator[LoadedBlock]:
        """Yield a block with its bytes, a long timeline in parts; each overwrites the one before.

        The bytes are in this thread's own buffer. Raise as `read_block` does.
        """
        return read_block(self.files[unit.file], unit, self.layout, self.block_bytes)

    def load(self, blocks: Iterable[Block], part_bytes: int = BLOCK_BYTES) -> Iterator[LoadedBlock]:
        """Yield blocks with their bytes, a long timeline in parts; each overwrites the one before.

        The bytes are in a new buffer, since the caller may read other blocks meanwhile.
        """
        buffer = Buffer()
        for block in blocks:
            file = self.files[block.file]
            yield from read_block(file, block, self.layout, part_bytes, buffer=buffer)

    def timeline(self, pe: int) -> Tables:
        """Return all records of a PE's timeline as tables; raise `UsageError` for an unknown PE.

        The tables `sebs`, `messages`, `log_events` and `dependencies` are arrays with a row for
        each record, and named fields. Raise `DamagedLogError` if the timeline is damaged.

        >>> rewritelog.open_logs("sample_logs/cells").timeline(0)
        <Tables: 55 SEBs, 37 messages, 10 log events, 8 dependencies>
        """
        from rewritelog.formats.bgtrace.records import Tables, tables_of  # noqa: PLC0415 - of few

        return Tables(*tables_of(self.load([self.timeline_block(pe)])))

    def sebs(self, pes: str | int | Iterable[int] | None = None) -> Rows:
        """Return the SEBs of some or all PEs as an array with a row for each, and named fields.

        PEs are given as a number, numbers, or a text as in `0-3,8`. Times are in seconds, `offset`
        is in bytes; `messages`, `log_events`, `backward` and `forward` are the lengths of these
        lists. Raise `UsageError` for unknown PEs, and `DamagedLogError` for damage.

        >>> rewritelog.open_logs("sample_logs/cells").sebs(0)["start_time"][:2]
        array([2.3000e-07, 1.4486e-04])
        """
        return self._table("sebs", pes)

    def messages(self, pes: str | int | Iterable[int] | None = None) -> Rows:
        """Return the messages of some or all PEs, as `sebs` does; `size` is in bytes.

        >>> int(rewritelog.open_logs("sample_logs/cells").messages("0-3")["size"].max())
        1072
        """
        return self._table("messages", pes)

    def log_events(self, pes: str | int | Iterable[int] | None = None) -> Rows:
        """Return the log events of some or all PEs, as `sebs` does.

        `r_time` is in seconds from the start of the SEB, `index` points into a Projections log (−1:
        none), and `text` is a mark or a printed text.

        >>> rewritelog.open_logs("sample_logs/cells").log_events(0)["text"][0].strip()
        'startTraceBigSim %f'
        """
        return self._table("log_events", pes)

    def _table(self, name: str, pes: str | int | Iterable[int] | None) -> Rows:
        from rewritelog.formats.bgtrace.records import tables_of  # noqa: PLC0415 - of few jobs

        numbers = self.pes if pes is None else pes
        chosen = units.chosen_pes(units.pes(numbers, "pes"), self.pes) or ()
        (table,) = tables_of(self.load([self.timeline_block(pe) for pe in chosen]), [name])
        return with_text(table)


def log_folder(path: Path) -> Path:
    """Return the folder of a log set, given the folder or its `bgTrace` file.

    Raise `MissingFileError` if it does not exist, `RewriteLogError` for another kind of file.
    """
    folder = path if path.is_dir() else path.parent
    if not path.is_dir() and path.name != SUMMARY_NAME:
        if input_exists(path):
            raise RewriteLogError(
                f"{path}: is neither a log folder, a bgTrace file nor a Chakra trace, "
                "NAME.RANK.et in binary form (PyTorch records JSON, which programs of Chakra join "
                "and convert)"
            )
        raise MissingFileError(f"{path}: does not exist")
    if not input_exists(folder / SUMMARY_NAME):
        raise MissingFileError(
            f"{folder}: no log set here: the file {SUMMARY_NAME} is missing (and there are no "
            "Chakra traces, NAME.RANK.et in binary form, which PyTorch's JSON is converted to)"
        )
    return folder


def open_log_set(path: Path) -> LogSet:
    """Open a log set, given its folder or its `bgTrace` file.

    Raise `DamagedLogError` if the summary or the head of a timeline file is damaged, and
    `RewriteLogError` if a file is missing or cannot be read.
    """
    folder = log_folder(path)
    summary = read_summary(folder / SUMMARY_NAME)
    files = tuple(
        read_timeline_file(folder / f"{SUMMARY_NAME}{index}", index, summary)
        for index in range(summary.files)
    )
    return LogSet(folder, files, summary)
