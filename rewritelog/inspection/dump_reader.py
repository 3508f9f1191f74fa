"""Reading of a timeline SEB by SEB with the declaration of the format, for `dump`."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import construct
import numpy as np

from rewritelog.core import core
from rewritelog.errors import DamagedLogError, Location
from rewritelog.format import Layout
from rewritelog.format.declaration import PRIMITIVES, event_struct, message_struct, seb_head_struct
from rewritelog.logs.faults import FAULTS
from rewritelog.logs.files import InputFile

Record: TypeAlias = dict[str, Any]

_BUFFER_BYTES = 1 << 18
_KEPT_ITEMS = 10_000
"""Longer lists of a SEB are not kept in memory, where an item takes about 600 bytes."""


class _FilePart(io.RawIOBase):
    """A part of a file as a stream, whose positions are those of the file."""

    def __init__(self, source: InputFile, begin: int, end: int) -> None:
        super().__init__()
        self._source, self._at, self._end = source, begin, end

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._end}
        self._at = bases[whence] + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        size = max(0, min(len(buffer), self._end - self._at))
        self._source.read_into(np.frombuffer(buffer, dtype=np.uint8)[:size], self._at)
        self._at += size
        return size


class TimelineBytes(io.BufferedReader):
    """The bytes of a timeline as a stream, which never allocates more than there are."""

    def __init__(self, source: InputFile, begin: int, end: int) -> None:
        super().__init__(_FilePart(source, begin, end), _BUFFER_BYTES)
        self._end = end

    @property
    def left(self) -> int:
        """The number of bytes not yet read."""
        return self._end - self.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        """Return at most `size` bytes, all that are left if it is negative or None."""
        left = self.left
        return super().read(left if size is None or size < 0 else min(size, left))


class Items:
    """Messages, events or dependencies of a SEB; many are read again for each iteration."""

    def __init__(
        self,
        stream: TimelineBytes,
        count: int,
        read: Callable[[], Any],
        item_bytes: int | None = None,
    ) -> None:
        """Read all items once to validate them, unless they have a fixed size."""
        self._stream, self._count, self._read = stream, count, read
        self._begin = stream.tell()
        self._items = [read() for _ in range(count)] if count <= _KEPT_ITEMS else None
        if self._items is None and item_bytes is not None:
            stream.seek(self._begin + count * item_bytes)  # complete, and valid with any value
        elif self._items is None:
            for _ in range(count):
                read()

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        return self._parsed() if self._items is None else iter(self._items)

    def _parsed(self) -> Iterator[Any]:
        self._stream.seek(self._begin)
        for _ in range(self._count):
            yield self._read()


class SebReader:
    """Reads the SEBs of one timeline in order."""

    def __init__(self, stream: TimelineBytes, lay: Layout, path: Path, pe: int) -> None:
        self._stream, self._path, self._pe = stream, path, pe
        self._seb: int | None = None
        self._end = 0  # the end of the SEB read last, as a file offset
        self._fields: Mapping[str, Any] = lay.seb.fields or {}
        self._head = seb_head_struct(lay.log_version, lay.order)
        self._message = message_struct(lay.log_version, lay.order)
        self._event = event_struct(lay.order)
        self._i4 = PRIMITIVES[lay.order].i4

    def begin(self) -> int:
        """Return the number of SEBs, with which the timeline begins.

        A number that is too large is detected at the first SEB that is incomplete.
        """
        at = self._stream.tell()
        count = self._number(core.SEB_COUNT_TOO_LARGE)
        if count < 0:
            raise self._fault(core.SEB_COUNT_NEGATIVE, at, count)
        self._end = self._stream.tell()
        return count

    def finish(self, count: int) -> None:
        """Raise `DamagedLogError` if bytes are left over after the last of `count` SEBs."""
        self._stream.seek(self._end)
        if self._stream.left > 0:
            self._seb = count
            raise self._fault(core.BYTES_LEFT_OVER, self._stream.tell(), self._stream.left)

    def read_seb(self, seb: int) -> Record:
        """Return a SEB: its location, its fields, and its lists as `Items`.

        All of it has been validated; items can be read until the next SEB is read.
        """
        self._seb = seb
        self._stream.seek(self._end)  # items of the previous SEB may have been read again
        at = self._end
        record: Record = {"pe": self._pe, "seb": seb, "offset": at, **self._read_head(at)}
        record["messages"] = self._list(
            self._message, core.MESSAGE_COUNT_NEGATIVE, core.MESSAGES_TRUNCATED
        )
        record["events"] = self._events()
        record["backward"] = self._list(self._i4, core.BACKWARD_NEGATIVE, core.BACKWARD_TRUNCATED)
        record["forward"] = self._list(self._i4, core.FORWARD_NEGATIVE, core.FORWARD_TRUNCATED)
        self._end = self._stream.tell()
        return record

    def _read_head(self, at: int) -> Record:
        try:
            return _fields(self._head.parse_stream(self._stream))
        except construct.StreamError as error:
            field = _field_of(error)
            offset = at + self._fields[field][1]
            raise self._damage(offset, field, FAULTS[core.SEB_TRUNCATED].problem) from error

    def _list(self, item: Any, negative: int, cut: int) -> Items:
        at = self._stream.tell()
        count = self._number(cut)
        self._check_count(at, count, item.sizeof(), negative, cut)
        return Items(
            self._stream,
            count,
            lambda: _builtin_types(item.parse_stream(self._stream)),
            item.sizeof(),
        )

    def _events(self) -> Items:
        at = self._stream.tell()
        count = self._number(core.EVENTS_TRUNCATED)
        smallest = sum(part.sizeof() for part in self._event.subcons[:2]) + self._i4.sizeof()
        self._check_count(at, count, smallest, core.EVENT_COUNT_NEGATIVE, core.EVENTS_TRUNCATED)
        return Items(self._stream, count, lambda: self._read_event(at, count))

    def _read_event(self, counted_at: int, count: int) -> Record:
        """Return the next of `count` events, which are counted at `counted_at`."""
        at = self._stream.tell()
        try:
            return _fields(self._event.parse_stream(self._stream))
        except construct.ExplicitError as error:
            self._stream.seek(at)
            kind = self._event.subcons[0].parse_stream(self._stream)
            raise self._fault(core.EVENT_TYPE, at, kind) from error
        except construct.StreamError as error:
            length_at = at + sum(part.sizeof() for part in self._event.subcons[:2])
            self._stream.seek(length_at)
            if self._stream.left < self._i4.sizeof():
                raise self._fault(core.EVENTS_TRUNCATED, counted_at, count) from error
            length = self._i4.parse_stream(self._stream)
            code = core.TEXT_NEGATIVE if length < 0 else core.TEXT_TRUNCATED
            raise self._fault(code, length_at, length) from error

    def _number(self, cut: int) -> int:
        at = self._stream.tell()
        try:
            return int(self._i4.parse_stream(self._stream))
        except construct.StreamError as error:
            field = FAULTS[cut].field
            raise self._damage(at, field, FAULTS[core.SEB_TRUNCATED].problem) from error

    def _check_count(self, at: int, count: int, size: int, negative: int, cut: int) -> None:
        if count < 0:
            raise self._fault(negative, at, count)
        if count * size > self._stream.left:
            raise self._fault(cut, at, count)

    def _fault(self, code: int, at: int, value: int) -> DamagedLogError:
        kind = FAULTS[code]
        return self._damage(at, kind.field, kind.problem.format(value))

    def _damage(self, at: int, field: str, problem: str) -> DamagedLogError:
        return DamagedLogError(Location(self._path, at, self._pe, self._seb, field), problem)


def _field_of(error: construct.ConstructError) -> str:
    """Return the field in which parsing a struct failed."""
    return str(error.path or "").split(" -> ")[1] if " -> " in str(error.path) else ""


def _fields(container: Any) -> Record:
    return {name: _builtin_types(value) for name, value in container.items() if name != "_io"}


def _builtin_types(value: Any) -> Any:
    """Return a parsed value as dicts, lists, numbers and bytes."""
    if isinstance(value, construct.Container):
        return _fields(value)
    return list(value) if isinstance(value, construct.ListContainer) else value
