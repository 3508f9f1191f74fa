"""Work that writes files of an output folder, on the engine of a job."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from rewritelog.arrays import Bytes
from rewritelog.output.files import OutputFile, flush_files
from rewritelog.running.engine import Gathered

Item = TypeVar("Item")
Result = TypeVar("Result")


class FlushingWork(Gathered[Item, Result]):
    """Work that writes files; each process flushes those that it wrote, as no other host can."""

    def __init__(self, folder: Path | None, *, flush: bool) -> None:
        """Begin with the folder of the files, which exist; None to write nothing."""
        self._folder, self._flush = folder, flush
        self._written: set[Path] = set()

    def write(self, name: str, data: Bytes, offset: int) -> None:
        """Write into a file of the folder; raise `OSError` if that fails."""
        if self._folder is not None:
            path = self._folder / name
            self._written.add(path)
            with OutputFile(path, flush=self._flush) as file:
                file.write(data, offset)

    def state(self) -> OSError | None:
        """Flush the files; return the error if that fails."""
        if self._flush:
            try:
                flush_files(sorted(self._written))
            except OSError as error:
                return error
        return None

    def gather(self, state: OSError | None) -> None:
        """Raise the error of a process that could not flush its files."""
        if state is not None:
            raise state
