"""The dump of a timeline: every field of every SEB, as text or a line of JSON each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, TypeAlias

from msgspec import Struct

from rewritelog.commands.logs import DumpCommand
from rewritelog.errors import DamagedLogError
from rewritelog.formats.bgtrace.blocks import Block, Buffer, LongTimeline
from rewritelog.formats.bgtrace.declaration import (
    EventType,
    format_names,
    is_time,
    raise_first,
)
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.records import LISTS, BlockRecords, Records, records_of
from rewritelog.formats.files import InputFile
from rewritelog.text import count_text, decoded, exact_number, json_text, printable

Record: TypeAlias = dict[str, Any]

_PART_BYTES = 1 << 18
"""The timeline is read in parts of this size, unless one SEB is larger."""

_BATCH_ITEMS = 1000
"""The number of items of a list that are Python objects at a time."""


class Items(Struct, frozen=True):
    """The messages, events or dependencies of a SEB, which become Python objects one by one."""

    objects: Callable[[slice], Iterator[Any]]
    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin

    def __iter__(self) -> Iterator[Any]:
        for low in range(self.begin, self.end, _BATCH_ITEMS):
            yield from self.objects(slice(low, min(low + _BATCH_ITEMS, self.end)))


def _records(block: BlockRecords, *, newest: bool) -> Iterator[Record]:
    """Yield each SEB: its location, its fields as `_dicts` does, and its lists as `Items`."""
    backward, forward = block.backward["other"], block.forward["other"]
    objects: dict[str, Callable[[slice], Iterator[Any]]] = {
        "messages": _dicts(block.messages, newest=newest),
        "events": _events(block.events),
        "backward": lambda rows: iter(backward[rows].tolist()),
        "forward": lambda rows: iter(forward[rows].tolist()),
    }
    firsts = {name: block.first(name).tolist() for name in LISTS}
    offsets = block.sebs.at + block.loaded.block.offset
    for k, fields in enumerate(_dicts(block.sebs, newest=newest)(slice(None))):
        yield {
            "pe": int(block.pe[k]),
            "seb": int(block.index[k]),
            "offset": int(offsets[k]),
            **fields,
            **{name: Items(objects[name], *firsts[name][k : k + 2]) for name in LISTS},
        }


def _dicts(records: Records, *, newest: bool = False) -> Callable[[slice], Iterator[Record]]:
    """Return a function that makes dicts of records, with the fields of their log version.

    If `newest` they have those of the newest version; a SEB's name always has all its bytes.
    """
    names = list((records.newest if newest else records.dtype).names or ())
    columns = [records[name] if newest and name != "name" else records.raw(name) for name in names]

    def dicts(rows: slice) -> Iterator[Record]:
        for values in zip(*(column[rows].tolist() for column in columns), strict=True):
            yield dict(zip(names, values, strict=True))

    return dicts


def _events(events: Records) -> Callable[[slice], Iterator[Record]]:
    """Return a function that makes dicts of log events, whose `data` is an index or a text."""
    fields_of, texts = _dicts(events), events.at + events.dtype.itemsize

    def dicts(rows: slice) -> Iterator[Record]:
        for at, event in zip(texts[rows].tolist(), fields_of(rows), strict=True):
            number = event.pop("number")
            text = events.buffer[at : at + number]
            pointer = event["type"] == EventType.PROJECTIONS
            yield {**event, "data": number if pointer else text.tobytes()}

    return dicts


_TEXTS_A_PIECE = 500

_UNITS = {"send_time": " [s]", "recv_time": " [s]", "size": " [bytes]"}
_SHOWN_TOGETHER = {"ep", "seqno", "flag", "name", "src_pe", "msg_id", "mpi_op", "mpi_size"}
_FLAGS = {1: "simulation start", 2: "quiescence"}
_MPI_OPERATIONS = {0: "none", 1: "barrier", 2: "allreduce", 3: "alltoall"}


def _decode(raw: bytes) -> tuple[str, bool]:
    """Return bytes as text up to the first NUL, and whether only NULs follow."""
    text = decoded(raw.split(b"\0", 1)[0])
    return text, text.encode().ljust(len(raw), b"\0") == raw


def json_pieces(record: Record) -> Iterator[str]:
    """Yield a SEB with the fields of the newest log version as one line of JSON."""
    lists = {
        "messages": map(_json_fields, record.pop("messages")),
        "log_events": map(_json_event, record.pop("events")),
        "backward": record.pop("backward"),
        "forward": record.pop("forward"),
    }
    raw = record["name"]
    record["name"], plain = _decode(raw)
    hidden = {} if plain else {"name_bytes": raw.hex()}
    yield json_text(_json_fields(record) | hidden)[:-1]
    for key, values in lists.items():
        yield f', "{key}": ['
        yield from _joined(map(json_text, values), ", ")
        yield "]"
    yield "}\n"


def _joined(texts: Iterable[str], separator: str) -> Iterator[str]:
    """Yield texts with separators between them, several hundred in a piece."""
    between, rest = "", iter(texts)
    while piece := list(islice(rest, _TEXTS_A_PIECE)):
        yield between + separator.join(piece)
        between = separator


def _json_fields(record: Record) -> Record:
    """Return fields with units in their names."""
    fields: Record = {}
    for name, value in record.items():
        unit = "_s" if is_time(name) else "_bytes" if name in ("size", "offset") else ""
        fields[name + unit] = exact_number(value) if isinstance(value, float) else value
    return fields


def _json_event(event: Record) -> Record:
    data = event["data"]
    fields: Record = {"type": event["type"], "r_time_s": exact_number(event["r_time"])}
    if event["type"] == EventType.PROJECTIONS:
        return fields | {"index": data, "text": None}
    text, plain = _decode(data)
    hidden = {} if plain and data.endswith(b"\0") else {"text_bytes": data.hex()}
    return fields | {"index": None, "text": text, **hidden}


def text_pieces(record: Record) -> Iterator[str]:
    """Yield a SEB as labelled lines after an empty line."""
    head = "\n".join(_head_lines(record))
    yield f"\n{head}\n"
    for name in ("backward", "forward"):
        yield _labelled(name, "" if record[name] else "none")
        yield from _joined(map(str, record[name]), " ")
        yield "\n"
    yield from _joined(_message_lines(record["messages"]), "")
    events = (
        _labelled(f"log event {index}", f"at {event['r_time']!r} s: {_event_text(event)}") + "\n"
        for index, event in enumerate(record["events"])
    )
    yield from _joined(events, "")


def _head_lines(record: Record) -> Iterator[str]:
    """Yield the fields of a SEB: those that belong together or have a meaning, then the others."""
    yield f"SEB {record['seb']}  {_text(record['name'])}  at byte {record['offset']}"
    yield _labelled("ep, seqno", f"{record['ep']}, {record['seqno']}")
    meant = ", ".join(name for bit, name in _FLAGS.items() if record["flag"] & bit)
    yield _labelled("flag", f"{record['flag']} ({meant})" if meant else str(record["flag"]))
    none = " (none)" if (record["src_pe"], record["msg_id"]) == (-1, -1) else ""
    yield _labelled("started by", f"PE {record['src_pe']}, message {record['msg_id']}{none}")
    if "mpi_op" in record:
        operation = _MPI_OPERATIONS.get(record["mpi_op"], "unknown")
        yield _labelled("mpiOp, mpiSize", f"{record['mpi_op']} ({operation}), {record['mpi_size']}")
    labels = format_names("seb")
    rest = [name for name in labels if name in record and name not in _SHOWN_TOGETHER]
    for name in sorted(rest, key=is_time):
        value = record[name]
        text = " ".join(map(str, value)) if isinstance(value, list) else repr(value)
        yield _labelled(labels[name], f"{text} s" if is_time(name) else text)


def _labelled(label: str, value: str) -> str:
    return f"  {label:<16}{value}"


def _message_lines(messages: Items) -> Iterator[str]:
    """Yield a table of the messages, each column as wide as its widest entry."""
    if not messages:
        return
    labels = format_names("message")
    names = list(next(iter(messages)))
    titles = ["message", *(labels[name] + _UNITS.get(name, "") for name in names)]
    widths = [max(len(titles[0]), len(str(len(messages) - 1))), *map(len, titles[1:])]
    for message in messages:
        widths[1:] = map(max, widths[1:], (len(str(value)) for value in message.values()))
    rows = ([str(index), *map(str, m.values())] for index, m in enumerate(messages))
    for row in chain([titles], rows):
        cells = (f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        yield "  " + "  ".join(cells) + "\n"


def _event_text(event: Record) -> str:
    kind = f"{event['type']} ({EventType(event['type']).name.lower()})"
    if event["type"] == EventType.PROJECTIONS:
        return f"{kind}, index {event['data']}"
    return f"{kind}, {_text(event['data'])}"


def _text(raw: bytes) -> str:
    """Return bytes as quoted, printable text, with the raw bytes if it does not show all."""
    text, plain = _decode(raw)
    quoted = f'"{printable(text)}"'
    return quoted if plain else f"{quoted} (all {len(raw)} bytes: {raw.hex()})"


class Dump(Struct, frozen=True):
    """A PE's timeline, printed while it is read."""

    logs: LogSet
    pe: int

    def pieces(self, *, as_json: bool) -> Iterator[str]:
        """Yield it as text, or as a line of JSON for each SEB, in pieces that are made on demand.

        A line is a strict JSON object with the same keys in every log version: times are in seconds
        (numbers that are not finite are the strings "nan", "inf" and "-inf"), offsets in bytes from
        the start of the file. A piece is at most about 100 kB, or one text of the log. Raise
        `UsageError` at once for an unknown PE, and while reading `DamagedLogError` naming offset
        and SEB, after the last SEB before any damage.
        """
        return chain.from_iterable(self._shown(self.logs.timeline_block(self.pe), as_json=as_json))

    def sebs(self) -> Iterator[dict[str, Any]]:
        """Return its SEBs as JSON types; raise as `pieces` does."""
        shown = self._shown(self.logs.timeline_block(self.pe), as_json=True)
        return (json.loads("".join(pieces)) for pieces in shown)

    def _shown(self, block: Block, *, as_json: bool) -> Iterator[Iterable[str]]:
        """Yield the pieces of each SEB; as text, first those of a heading."""
        logs, damage = self.logs, list[DamagedLogError]()
        file, shown = logs.files[block.file], json_pieces if as_json else text_pieces

        def add_faults(faults: Iterable[DamagedLogError], count: int = 1) -> None:  # noqa: ARG001
            damage.extend(faults)

        with InputFile(file.path) as source:
            timeline = LongTimeline(
                source, file, block, logs.layout, Buffer(), _PART_BYTES, add_faults, fits=False
            )
            raise_first(damage)
            if not as_json:
                sebs, path = count_text(timeline.left, "SEB"), file.path.name
                yield [f"PE {self.pe}: {sebs} in {path}, bytes {block.offset} to {block.end}\n"]
            for loaded in timeline.parts():
                records = records_of(loaded, add_faults)
                yield from map(shown, _records(records, newest=as_json))
            raise_first(damage)


def dump(command: DumpCommand) -> Dump:
    """Return the timeline of a PE, printed while it is read."""
    return Dump(command.logs, command.pe)
