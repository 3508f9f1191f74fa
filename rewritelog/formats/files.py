"""Input files: opened, checked to be regular files, and read at offsets; the file of provenance."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from msgspec import Struct

from rewritelog.arrays import Bytes
from rewritelog.errors import DamagedLogError, Location, RewriteLogError
from rewritelog.text import count_text, printable, shorten, some_text

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Opening neither waits for the writer of a pipe, nor makes a terminal the controlling one."""


def paths_in(folder: Path) -> list[Path]:
    """Return the sorted entries of a folder; raise `RewriteLogError` if it cannot be read.

    Files `._NAME`, which macOS adds to others, are left out.
    """
    try:
        paths = (path for path in folder.iterdir() if not path.name.startswith("._"))
        return sorted(paths, key=attrgetter("name"))
    except OSError as error:
        raise RewriteLogError(f"{folder}: cannot be read: {error.strerror}") from error


class InputFile:
    """A regular file open for reading, from several threads at a time, during its `with` block."""

    def __init__(self, path: Path) -> None:
        """Open a file; raise `RewriteLogError` if it is not a regular file or cannot be read."""
        self.path = path
        try:
            self._fd = os.open(path, _FLAGS)
            status = os.fstat(self._fd)
        except OSError as error:
            raise self._unreadable(error) from error
        self.size_bytes = status.st_size
        if not stat.S_ISREG(status.st_mode):
            os.close(self._fd)
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe, a socket or a device"
            raise RewriteLogError(f"{path}: not a regular file, but {kind}")

    def check_size(self, known_bytes: int) -> None:
        """Raise `DamagedLogError` if the size is not the one that was known before."""
        if self.size_bytes != known_bytes:
            sizes = f"from {known_bytes} to {self.size_bytes} bytes"
            problem = f"the file's size changed {sizes} during the run"
            raise DamagedLogError(Location(self.path), problem)

    def read_into(self, buffer: Bytes, offset: int) -> None:
        """Fill the buffer from `offset`; raise `DamagedLogError` if the file ends before."""
        view = buffer.data
        filled = 0
        while filled < len(view):
            try:
                got = os.preadv(self._fd, [view[filled:]], offset + filled)
            except OSError as error:
                raise self._unreadable(error) from error
            if got == 0:
                missing = len(view) - filled
                raise self._ends_early(offset + filled, missing)
            filled += got

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file; raise `RewriteLogError` if the system reports that reading failed."""
        try:
            os.close(self._fd)
        except OSError as error:
            raise self._unreadable(error) from error

    def stream(self) -> BinaryIO:
        """Return a stream of its bytes, which stays open after this file is closed."""
        return os.fdopen(os.dup(self._fd), "rb")

    def _unreadable(self, error: OSError) -> RewriteLogError:
        return RewriteLogError(f"{self.path}: cannot be read: {error.strerror}")

    def _ends_early(self, at: int, missing: int) -> DamagedLogError:
        return DamagedLogError(Location(self.path, at), f"the file ends {missing} bytes too early")

    def read(self, offset: int, length: int) -> Bytes:
        """Return `length` bytes from `offset`; raise `DamagedLogError` if the file ends before."""
        if length > self.size_bytes - offset:
            missing = length - max(0, self.size_bytes - offset)
            raise self._ends_early(self.size_bytes, missing)
        buffer = np.empty(length, dtype=np.uint8)
        self.read_into(buffer, offset)
        return buffer


PROVENANCE_NAME = "rewritelog.json"
FORMAT, VERSION = "rewritelog provenance", 1
_MOST_BYTES = 1 << 20
_USUAL = {"recv": "shift", "total": "measured", "spread": "none"}
"""The options that are given in any case, with the values that are not worth a word."""


class Provenance(Struct, frozen=True):
    """The content of a provenance file, which another version may have written."""

    content: Mapping[str, Any]

    def text(self) -> str:
        """Return the provenance as a sentence."""
        model, options = self._part("model"), self._part("options")
        lines, dilation = model.get("timing_lines"), options.get("dilation")
        fitted = f" fitted to {count_text(lines, 'timing line')}" if isinstance(lines, int) else ""
        sentence = (
            f"by rewritelog {self.content.get('rewritelog')}: model {model.get('name')}{fitted}, "
            f"dilation {1.0 if dilation is None else dilation}"
        )
        others = (shorten(text, 80) for text in islice(self._other_options(options), 20))
        return printable(", ".join([sentence, *others]))

    def _other_options(self, options: Mapping[str, Any]) -> Iterator[str]:
        """Yield the options beside the dilation that are not as usual."""
        given = options.get("dilation_for")
        pairs = (
            [pair for pair in given if isinstance(pair, list)] if isinstance(given, list) else []
        )
        if factors := [f"{pair[1]} for {pair[0]}" for pair in pairs if len(pair) == 2]:
            yield some_text(factors, 5)
        for name, value in options.items():
            is_other = name not in ("dilation", "dilation_for")
            if is_other and value is not None and value != _USUAL.get(name):
                text = ",".join(map(str, value)) if isinstance(value, list) else value
                yield f"{name.replace('_', '-')} {text}"

    def _part(self, name: str) -> Mapping[str, Any]:
        part = self.content.get(name)
        return part if isinstance(part, dict) else {}


def read_provenance(folder: Path) -> Provenance | None:
    """Return the provenance of a log set; None if it has none or it cannot be read."""
    path = folder / PROVENANCE_NAME
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if isinstance(content, dict) and content.get("format") == FORMAT:
        return Provenance(content)
    return None
