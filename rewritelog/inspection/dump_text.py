"""The output of `dump`: a SEB as a line of JSON or as labelled lines, in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from rewritelog.formats.bgtrace.declaration import (
    LOG_VERSIONS,
    MISSING,
    NAME_BYTES,
    EventType,
    format_names,
    layout,
)
from rewritelog.inspection.dump_reader import Items, Record
from rewritelog.text import exact_number, json_text, printable

_TEXTS_A_PIECE = 500

_UNITS = {"send_time": " [s]", "recv_time": " [s]", "size": " [bytes]"}
_SHOWN_TOGETHER = {"ep", "seqno", "flag", "name", "src_pe", "msg_id", "mpi_op", "mpi_size"}
_FLAGS = {1: "simulation start", 2: "quiescence"}
_MPI_OPERATIONS = {0: "none", 1: "barrier", 2: "allreduce", 3: "alltoall"}
_EVENT_KINDS = {
    EventType.PROJECTIONS: "Projections",
    EventType.PRINT: "print",
    EventType.MARK: "mark",
}


def _decode(raw: bytes) -> tuple[str, bool]:
    """Return bytes as text up to the first NUL, and whether only NULs follow."""
    text = raw.split(b"\0", 1)[0].decode("utf-8", "backslashreplace")
    return text, text.encode().ljust(len(raw), b"\0") == raw


def json_pieces(record: Record) -> Iterator[str]:
    """Yield a SEB as one line of JSON."""
    seb, fields = layout(LOG_VERSIONS[-1], "little").seb, dict(record)
    fields["obj_id"] = _filled_up(fields.get("obj_id", ()), MISSING["obj_id"])
    name, plain = _decode(record["name"])
    fields["name"] = name
    line = {"pe": record["pe"], "seb": record["seb"], "offset_bytes": record["offset"]}
    line |= _json_fields(fields, seb)
    if not plain:
        line["name_bytes"] = record["name"].hex()
    message = layout(LOG_VERSIONS[-1], "little").message
    yield json_text(line)[:-1]
    messages = (_json_fields(sent, message) for sent in record["messages"])
    yield from _json_list("messages", messages)
    yield from _json_list("events", map(_json_event, record["events"]))
    yield from _json_list("backward", record["backward"])
    yield from _json_list("forward", record["forward"])
    yield "}\n"


def _json_list(key: str, values: Iterable[Any]) -> Iterator[str]:
    yield f', "{key}": ['
    yield from _joined(map(json_text, values), ", ")
    yield "]"


def _joined(texts: Iterable[str], separator: str) -> Iterator[str]:
    """Yield texts with separators between them, several hundred in a piece."""
    between = ""
    rest = iter(texts)
    while some := list(islice(rest, _TEXTS_A_PIECE)):
        yield between + separator.join(some)
        between = separator


def _filled_up(values: Sequence[int], missing: Sequence[int]) -> list[int]:
    return [*values, *missing[len(values) :]]


def _json_fields(record: Record, newest: np.dtype[Any]) -> Record:
    """Return the fields of the newest version, with units in their names."""
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
    fields["text"], plain = _decode(data)
    if not plain or not data.endswith(b"\0"):
        fields["text_bytes"] = data.hex()
    return fields


def text_pieces(record: Record) -> Iterator[str]:
    """Yield a SEB as labelled lines after an empty line."""
    head = "\n".join(_head_lines(record))
    yield f"\n{head}\n"
    for name in ("backward", "forward"):
        yield _labelled(name, "" if record[name] else "none")
        yield from _joined(map(str, record[name]), " ")
        yield "\n"
    yield from _joined(_message_lines(record["messages"]), "")
    yield from _joined(_event_lines(record["events"]), "")


def _head_lines(record: Record) -> Iterator[str]:
    """Yield the fields of a SEB: those that belong together or have a meaning, then the others."""
    yield f"SEB {record['seb']}  {_text(record['name'], NAME_BYTES)}  at byte {record['offset']}"
    yield _labelled("ep, seqno", f"{record['ep']}, {record['seqno']}")
    yield _labelled("flag", _flag(record["flag"]))
    none = " (none)" if (record["src_pe"], record["msg_id"]) == (-1, -1) else ""
    yield _labelled("started by", f"PE {record['src_pe']}, message {record['msg_id']}{none}")
    if "mpi_op" in record:
        operation = _MPI_OPERATIONS.get(record["mpi_op"], "unknown")
        yield _labelled("mpiOp, mpiSize", f"{record['mpi_op']} ({operation}), {record['mpi_size']}")
    labels = format_names("seb")
    others = [name for name in labels if name in record and name not in _SHOWN_TOGETHER]
    for name in sorted(others, key=_is_time):
        yield _labelled(labels[name], _value(record[name], is_time=_is_time(name)))


def _is_time(name: str) -> bool:
    return name.endswith("_time")


def _value(value: Any, *, is_time: bool) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return f"{value!r} s" if is_time else str(value)


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


def _event_lines(events: Items) -> Iterator[str]:
    for index, event in enumerate(events):
        text = f"at {event['r_time']!r} s: {_event_text(event)}"
        yield _labelled(f"event {index}", text) + "\n"


def _event_text(event: Record) -> str:
    kind = f"{event['type']} ({_EVENT_KINDS[event['type']]})"
    if event["type"] == EventType.PROJECTIONS:
        return f"{kind}, index {event['data']}"
    return f"{kind}, {_text(event['data'], len(event['data']))}"


def _text(raw: bytes, size: int) -> str:
    """Return bytes as quoted, printable text, with the raw bytes if it does not show all."""
    text, plain = _decode(raw)
    quoted = f'"{printable(text)}"'
    return quoted if plain else f"{quoted} (all {size} bytes: {raw.hex()})"


def _flag(flag: int) -> str:
    names = [name for bit, name in _FLAGS.items() if flag & bit]
    return f"{flag} ({', '.join(names)})" if names else str(flag)
