"""Dump of a timeline: every field of every SEB, read through the declared format itself.

No kernel has a part in it, so that it also shows how the kernels' answers can be checked.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import construct
import numpy as np

from rewritelog.errors import DamagedLogError, Location, UsageError
from rewritelog.format import EventType, Layout, format_names, layout
from rewritelog.format.declaration import (
    LOG_VERSIONS,
    MISSING,
    NAME_BYTES,
    PRIMITIVES,
    event_struct,
    message_struct,
    seb_head_struct,
)
from rewritelog.kernels import walk
from rewritelog.logs.files import InputFile
from rewritelog.logs.logset import LogSet
from rewritelog.text import count_text, exact_number, json_text, printable

DumpKind: TypeAlias = Literal["text", "jsonl"]

Record: TypeAlias = dict[str, Any]

_BUFFER_BYTES = 1 << 18

_UNITS = {"send_time": " [s]", "recv_time": " [s]", "size": " [bytes]"}
_FLAGS = {1: "simulation start", 2: "quiescence"}
_MPI_OPERATIONS = {0: "none", 1: "barrier", 2: "allreduce", 3: "alltoall"}
_EVENT_KINDS = {
    EventType.PROJECTIONS: "Projections",
    EventType.PRINT: "print",
    EventType.MARK: "mark",
}


def dump_lines(logs: LogSet, pe: int, kind: DumpKind) -> Iterator[str]:
    """Return the lines that show a PE's timeline, made one SEB at a time as they are asked for.

    `jsonl` is one strict JSON object a SEB, the same keys in every log version: times are in
    seconds (numbers that JSON lacks are the strings "nan", "inf" and "-inf"), offsets in bytes
    from the file's start. Raise `UsageError` at once for a PE or kind that is not there, and while
    reading `DamagedLogError` that names offset, SEB and field.
    """
    if kind not in get_args(DumpKind):
        raise UsageError(f"dump format {kind!r} is unknown; there are text and jsonl")
    block = logs.timeline_block(pe)
    path = logs.files[block.file].path
    return _lines(logs.layout, path, pe, block.offset, block.end, kind)


def _lines(lay: Layout, path: Path, pe: int, begin: int, end: int, kind: DumpKind) -> Iterator[str]:
    with InputFile(path) as source, _Bytes(source, begin, end) as stream:
        reader = _Reader(stream, lay, path, pe)
        count = reader.begin()
        if kind == "text":
            yield f"PE {pe}: {count_text(count, 'SEB')} in {path.name}, bytes {begin} to {end}"
        for seb in range(count):
            record = reader.read_seb(seb)
            if kind == "jsonl":
                yield _json_line(record)
            else:
                yield from _text_lines(record)
        reader.finish(count)


class _Part(io.RawIOBase):
    """A part of a file, as a stream whose positions are the file's."""

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


class _Bytes(io.BufferedReader):
    """The bytes of a timeline; asked for more than there are, it makes room for no more."""

    def __init__(self, source: InputFile, begin: int, end: int) -> None:
        super().__init__(_Part(source, begin, end), _BUFFER_BYTES)
        self._end = end

    @property
    def left(self) -> int:
        """How many bytes are still to come."""
        return self._end - self.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        left = self.left
        return super().read(left if size is None or size < 0 else min(size, left))


class _Reader:
    """Reads the SEBs of one timeline in order."""

    def __init__(self, stream: _Bytes, lay: Layout, path: Path, pe: int) -> None:
        self._stream, self._path, self._pe = stream, path, pe
        self._seb: int | None = None
        self._fields: Mapping[str, Any] = lay.seb.fields or {}
        self._head = seb_head_struct(lay.log_version, lay.order)
        self._message = message_struct(lay.log_version, lay.order)
        self._event = event_struct(lay.order)
        self._i4 = PRIMITIVES[lay.order].i4

    def begin(self) -> int:
        """Return the number of SEBs, which the timeline begins with.

        One that is too large shows at the SEB that is not whole, after all that are.
        """
        at = self._stream.tell()
        count = self._number(walk.SEB_COUNT_TOO_LARGE)
        if count < 0:
            raise self._fault(walk.SEB_COUNT_NEGATIVE, at, count)
        return count

    def finish(self, count: int) -> None:
        """Raise where bytes are left over after the last of `count` SEBs."""
        if self._stream.left > 0:
            self._seb = count
            raise self._fault(walk.BYTES_LEFT_OVER, self._stream.tell(), self._stream.left)

    def read_seb(self, seb: int) -> Record:
        """Return a SEB: its location, its fields, and its lists of messages, events and so on."""
        self._seb = seb
        at = self._stream.tell()
        record: Record = {"pe": self._pe, "seb": seb, "offset": at, **self._read_head(at)}
        record["messages"] = self._list(
            self._message, walk.MESSAGE_COUNT_NEGATIVE, walk.MESSAGES_CUT
        )
        record["events"] = self._events()
        record["backward"] = self._list(self._i4, walk.BACKWARD_NEGATIVE, walk.BACKWARD_CUT)
        record["forward"] = self._list(self._i4, walk.FORWARD_NEGATIVE, walk.FORWARD_CUT)
        return record

    def _read_head(self, at: int) -> Record:
        try:
            return _fields(self._head.parse_stream(self._stream))
        except construct.StreamError as error:
            field = _field_of(error)
            offset = at + self._fields[field][1]
            raise self._damage(offset, field, walk.FAULTS[walk.SEB_CUT].problem) from error

    def _list(self, item: Any, negative: int, cut: int) -> list[Any]:
        at = self._stream.tell()
        count = self._number(cut)
        self._check_count(at, count, item.sizeof(), negative, cut)
        return [_plain(item.parse_stream(self._stream)) for _ in range(count)]

    def _events(self) -> list[Record]:
        at = self._stream.tell()
        count = self._number(walk.EVENTS_CUT)
        smallest = sum(part.sizeof() for part in self._event.subcons[:2]) + self._i4.sizeof()
        self._check_count(at, count, smallest, walk.EVENT_COUNT_NEGATIVE, walk.EVENTS_CUT)
        return [self._read_event() for _ in range(count)]

    def _read_event(self) -> Record:
        at = self._stream.tell()
        try:
            return _fields(self._event.parse_stream(self._stream))
        except construct.ExplicitError as error:
            self._stream.seek(at)
            kind = self._event.subcons[0].parse_stream(self._stream)
            raise self._fault(walk.EVENT_TYPE, at, kind) from error
        except construct.StreamError as error:
            raise self._event_cut(at, _field_of(error)) from error

    def _event_cut(self, at: int, field: str) -> DamagedLogError:
        if field != "data":
            return self._fault(walk.EVENTS_CUT, at, 1)
        head = sum(part.sizeof() for part in self._event.subcons[:2])
        self._stream.seek(at + head)
        if self._stream.left < self._i4.sizeof():
            return self._fault(walk.EVENTS_CUT, at, 1)
        length = self._i4.parse_stream(self._stream)
        return self._fault(walk.TEXT_NEGATIVE if length < 0 else walk.TEXT_CUT, at + head, length)

    def _number(self, cut: int) -> int:
        at = self._stream.tell()
        try:
            return int(self._i4.parse_stream(self._stream))
        except construct.StreamError as error:
            field = walk.FAULTS[cut].field
            raise self._damage(at, field, walk.FAULTS[walk.SEB_CUT].problem) from error

    def _check_count(self, at: int, count: int, size: int, negative: int, cut: int) -> None:
        if count < 0:
            raise self._fault(negative, at, count)
        if count * size > self._stream.left:
            raise self._fault(cut, at, count)

    def _fault(self, code: int, at: int, value: int) -> DamagedLogError:
        kind = walk.FAULTS[code]
        return self._damage(at, kind.field, kind.problem.format(value))

    def _damage(self, at: int, field: str, problem: str) -> DamagedLogError:
        return DamagedLogError(Location(self._path, at, self._pe, self._seb, field), problem)


def _field_of(error: construct.ConstructError) -> str:
    """Return the field of a struct in which it could not be parsed further."""
    return str(error.path or "").split(" -> ")[1] if " -> " in str(error.path) else ""


def _fields(container: Any) -> Record:
    return {name: _plain(value) for name, value in container.items() if name != "_io"}


def _plain(value: Any) -> Any:
    """Return a parsed value as dicts, lists, numbers and bytes."""
    if isinstance(value, construct.Container):
        return _fields(value)
    return list(value) if isinstance(value, construct.ListContainer) else value


def _spell(raw: bytes) -> tuple[str, bool]:
    """Return a text up to its first NUL, and whether it and one NUL or more are all there is."""
    text = raw.split(b"\0", 1)[0].decode("utf-8", "backslashreplace")
    return text, text.encode().ljust(len(raw), b"\0") == raw


def _json_line(record: Record) -> str:
    seb, fields = layout(LOG_VERSIONS[-1], "little").seb, dict(record)
    fields["obj_id"] = _whole(fields.get("obj_id", ()), MISSING["obj_id"])
    name, plain = _spell(record["name"])
    fields["name"] = name
    line = {"pe": record["pe"], "seb": record["seb"], "offset_bytes": record["offset"]}
    line |= _json_fields(fields, seb)
    if not plain:
        line["name_bytes"] = record["name"].hex()
    message = layout(LOG_VERSIONS[-1], "little").message
    line["messages"] = [_json_fields(sent, message) for sent in record["messages"]]
    line["events"] = [_json_event(event) for event in record["events"]]
    line["backward"], line["forward"] = record["backward"], record["forward"]
    return json_text(line)


def _whole(values: Sequence[int], missing: Sequence[int]) -> list[int]:
    return [*values, *missing[len(values) :]]


def _json_fields(record: Record, newest: np.dtype[Any]) -> Record:
    """Return the fields of the newest version under names that say the unit."""
    fields: Record = {}
    for name in newest.names or ():
        value = record[name] if name in record else MISSING[name]
        if newest[name].kind == "f":
            fields[f"{name}_s"] = exact_number(value)
        else:
            fields["size_bytes" if name == "size" else name] = value
    return fields


def _json_event(event: Record) -> Record:
    data = event["data"]
    fields: Record = {"type": event["type"], "r_time_s": exact_number(event["r_time"])}
    if event["type"] == EventType.PROJECTIONS:
        return fields | {"index": data, "text": None}
    fields["index"] = None
    fields["text"], plain = _spell(data)
    if not plain or not data.endswith(b"\0"):
        fields["text_bytes"] = data.hex()
    return fields


def _text_lines(record: Record) -> Iterator[str]:
    yield ""
    yield f"SEB {record['seb']}  {_text(record['name'], NAME_BYTES)}  at byte {record['offset']}"
    yield _labelled("ep, seqno", f"{record['ep']}, {record['seqno']}")
    yield _labelled("flag", _flag(record["flag"]))
    none = " (none)" if (record["src_pe"], record["msg_id"]) == (-1, -1) else ""
    yield _labelled("started by", f"PE {record['src_pe']}, message {record['msg_id']}{none}")
    if "mpi_op" in record:
        operation = _MPI_OPERATIONS.get(record["mpi_op"], "unknown")
        yield _labelled("mpiOp, mpiSize", f"{record['mpi_op']} ({operation}), {record['mpi_size']}")
    if "charm_ep" in record:
        yield _labelled("charm_ep", str(record["charm_ep"]))
    if "obj_id" in record:
        yield _labelled("objId", _numbers(record["obj_id"]))
    for name, label in format_names("seb").items():
        if name.endswith("_time"):
            yield _labelled(label, f"{record[name]!r} s")
    for name in ("backward", "forward"):
        yield _labelled(name, _numbers(record[name]) or "none")
    yield from _message_lines(record["messages"])
    for index, event in enumerate(record["events"]):
        yield _labelled(f"event {index}", f"at {event['r_time']!r} s: {_event_text(event)}")


def _labelled(label: str, value: str) -> str:
    return f"  {label:<16}{value}"


def _message_lines(messages: list[Record]) -> Iterator[str]:
    """Yield a table of the messages, each column as wide as its widest entry."""
    if not messages:
        return
    names = format_names("message")
    titles = ["message", *(names[name] + _UNITS.get(name, "") for name in messages[0])]
    rows = [titles, *([str(k), *map(str, m.values())] for k, m in enumerate(messages))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))


def _event_text(event: Record) -> str:
    kind = f"{event['type']} ({_EVENT_KINDS[event['type']]})"
    if event["type"] == EventType.PROJECTIONS:
        return f"{kind}, index {event['data']}"
    return f"{kind}, {_text(event['data'], len(event['data']))}"


def _text(raw: bytes, size: int) -> str:
    """Return bytes as quoted text without anything that a terminal obeys, and what it hides."""
    text, plain = _spell(raw)
    quoted = f'"{printable(text)}"'
    return quoted if plain else f"{quoted} (all {size} bytes: {raw.hex()})"


def _numbers(values: Sequence[int]) -> str:
    return " ".join(map(str, values))


def _flag(flag: int) -> str:
    said = [name for bit, name in _FLAGS.items() if flag & bit]
    return f"{flag} ({', '.join(said)})" if said else str(flag)
