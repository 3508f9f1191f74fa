"""A log set as a whole: the summary and all its timeline files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import cached_property, partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from rewritelog import units
from rewritelog.arrays import Rows, with_text
from rewritelog.errors import MissingFileError, RewriteLogError, UsageError
from rewritelog.formats import SUMMARY_NAME
from rewritelog.formats.bgtrace.blocks import (
    BLOCK_BYTES,
    Block,
    Buffer,
    LoadedBlock,
    plan_blocks,
    read_block,
)
from rewritelog.formats.bgtrace.declaration import Layout, layout
from rewritelog.formats.bgtrace.heads import Summary, TimelineFile, read_summary, read_timeline_file
from rewritelog.formats.traces import Terms
from rewritelog.paths import exists
from rewritelog.running.engines import map_blocks
from rewritelog.text import TextTable, bytes_text, count_text, printable, shorten

if TYPE_CHECKING:
    from rewritelog.formats.bgtrace.tables import Tables

Result = TypeVar("Result")

_TERMS = Terms("SEB", "PE", "bracket", "param record", "messages")


@dataclass(frozen=True, repr=False)
class LogSet:
    """The logs of one emulation: their paths and heads; timelines are read when they are needed."""

    folder: Path
    summary: Summary
    files: tuple[TimelineFile, ...]

    title: ClassVar[str] = "bgTrace logs"
    terms: ClassVar[Terms] = _TERMS

    @property
    def path(self) -> Path:
        """The folder."""
        return self.folder

    @property
    def inputs(self) -> tuple[Path, ...]:
        """The folder, which no output may replace."""
        return (self.folder,)

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each timeline file in bytes, by its name."""
        return {file.path.name: file.size_bytes for file in self.files}

    @property
    def described(self) -> str:
        """What they are, in a phrase."""
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
    def size_bytes(self) -> int:
        """The total size of the timeline files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def timelines_bytes(self) -> int:
        """The size of the timelines, without the heads of their files."""
        return sum(file.size_bytes - file.head_bytes for file in self.files)

    @cached_property
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
        if pe not in self.pes:
            raise UsageError(f"PE {pe} is not in the log: it has PEs 0 to {self.pes[-1]}")
        file, index = self.summary.timeline_of(pe)
        begin, end = (int(n) for n in self.files[file].borders[index : index + 2])
        return Block(file, begin, end, index, 1)

    def map(
        self,
        work: Callable[[Iterator[LoadedBlock]], Result],
        stage: str = "reading",
        blocks: Iterable[Block] | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> Iterator[Result]:
        """Yield what a function returns for each block, in order, on the engine of the job.

        The function gets a block with its bytes, a long timeline in parts that overwrite each
        other. By default the blocks of one file follow those of the other.
        """
        if blocks is None:
            blocks = (block for file in self.files for block in plan_blocks(file, block_bytes))
        loading = partial(_loaded, self, work, block_bytes)
        for _, result in map_blocks(loading, blocks, stage, self.timelines_bytes):
            yield result

    def load(self, blocks: Iterable[Block], part_bytes: int = BLOCK_BYTES) -> Iterator[LoadedBlock]:
        """Yield blocks with their bytes, a long timeline in parts; each overwrites the one before.

        They are in a buffer of their own: nobody knows what else the thread reads.
        """
        buffer = Buffer()
        for block in blocks:
            file = self.files[block.file]
            yield from read_block(file, block, self.layout, part_bytes, buffer=buffer)

    def timeline(self, pe: int) -> Tables:
        """Return all records of the timeline of a PE as tables."""
        from rewritelog.formats.bgtrace.tables import Tables, table_of  # noqa: PLC0415 - of few jobs

        block = [self.timeline_block(pe)]
        return Tables(*(table_of(field.name, self.load(block)) for field in fields(Tables)))

    def sebs(self, pes: str | int | Iterable[int] | None = None) -> Rows:
        """Return the SEBs of some or all PEs, one row for each (see `SEB_ROW`)."""
        return self._table("sebs", pes)

    def messages(self, pes: str | int | Iterable[int] | None = None) -> Rows:
        """Return the messages of some or all PEs, one row for each (see `MESSAGE_ROW`)."""
        return self._table("messages", pes)

    def log_events(self, pes: str | int | Iterable[int] | None = None) -> Rows:
        """Return the log events of some or all PEs, one row for each (see `EVENT_ROW`)."""
        return self._table("log_events", pes)

    def _table(self, name: str, pes: str | int | Iterable[int] | None) -> Rows:
        from rewritelog.formats.bgtrace.tables import table_of  # noqa: PLC0415 - of few jobs

        numbers = [pes] if isinstance(pes, Integral) else self.pes if pes is None else pes
        chosen = units.pes(numbers, "pes")
        if isinstance(chosen, str):
            chosen = units.parse_pes(chosen, len(self.pes))
        return with_text(table_of(name, self.load([self.timeline_block(pe) for pe in chosen])))


def _loaded(
    logs: LogSet, work: Callable[[Iterator[LoadedBlock]], Result], block_bytes: int, block: Block
) -> Result:
    return work(read_block(logs.files[block.file], block, logs.layout, block_bytes))


def log_folder(path: str | Path) -> Path:
    """Return the folder of a log set, given the folder or its `bgTrace` file.

    Raise `MissingFileError` if it does not exist, `RewriteLogError` for another kind of file.
    """
    named = Path(path)
    folder = named if named.is_dir() else named.parent
    if not named.is_dir() and named.name != SUMMARY_NAME:
        if exists(named):
            raise RewriteLogError(
                f"{named}: is neither a log folder, a bgTrace file nor a Chakra trace"
            )
        raise MissingFileError(f"{named}: does not exist")
    if not exists(folder / SUMMARY_NAME):
        raise MissingFileError(
            f"{folder}: no log set here: the file {SUMMARY_NAME} is missing (and there are no "
            "Chakra traces, NAME.RANK.et)"
        )
    return folder


def open_logs(path: LogSet | str | Path) -> LogSet:
    """Open a log set, given its folder or its `bgTrace` file; return an open one as it is.

    Raise `DamagedLogError` if the summary or the head of a timeline file is damaged, and
    `RewriteLogError` if a file is missing or cannot be read.
    """
    if isinstance(path, LogSet):
        return path
    folder = log_folder(path)
    summary = read_summary(folder / SUMMARY_NAME)
    files = tuple(
        read_timeline_file(folder / f"{SUMMARY_NAME}{index}", index, summary)
        for index in range(summary.files)
    )
    return LogSet(folder, summary, files)
