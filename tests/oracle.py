"""The slow reader that everything fast is checked against: construct and nothing else.

Only the declaration is used; the rules of the file set (FORMAT 1, 3 and 4) are spelled out again.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any, NamedTuple

import logbuilder
import numpy as np

from rewritelog import open_logs
from rewritelog.formats.bgtrace.declaration import (
    LOG_VERSIONS,
    MISSING,
    ByteOrder,
    MachineHeader,
    seb_struct,
    summary_struct,
    timeline_file_struct,
    timeline_struct,
)

REPOSITORY = Path(__file__).parents[1]
SAMPLE_LOGS = REPOSITORY / "sample_logs"
REFERENCE = Path(os.environ.get("REWRITELOG_REFERENCE", REPOSITORY.parent / "shared" / "reference"))

ORDERS: tuple[ByteOrder, ...] = ("little", "big")
VERSIONS_AND_ORDERS = [(version, order) for version in LOG_VERSIONS for order in ORDERS]
SAMPLE_SETS = ("cells", "cells-2workers", "ampi-halo", "cells-big-endian", "cells-version-3")
WRITTEN_SETS = {
    (version, order): f"versions/v{version}-{order}" for version in range(7) for order in ORDERS
} | {(6, "little"): "cells/emulation"}
"""`cells/emulation` as the library wrote it in each log version and byte order."""
REFERENCE_SETS = (
    *sorted(WRITTEN_SETS.values()),
    "cells-2workers",
    "cells-projections",
    "ampi-halo",
    "versions/v0-2004",
)


def rich_timelines() -> list[list[dict[str, Any]]]:
    """Six PEs: every kind of event, no and many messages, dependencies, an empty timeline."""
    pointer = {"type": 1, "r_time": 0.25, "data": -7}
    printed = {"type": 2, "r_time": 0.5, "data": b"a line\n\0"}
    bare = {"type": 3, "r_time": 0.5, "data": b""}
    objects = {"obj_id": (1, -2, 3, 4), "charm_ep": 300, "mpi_op": 3, "mpi_size": 1 << 31}
    busy = logbuilder.seb(
        1.0,
        3.0,
        events=[pointer, *logbuilder.bracket(0.5, 1.5), printed, bare, pointer],
        messages=[
            logbuilder.message(1.5, 2.5, group=9, size=-1),
            logbuilder.message(2.0, float("inf"), tid=-1),
        ],
        backward=[0],
        forward=[2, 3],
        flag=-128,
        name=b"twenty-bytes-no-nul!",
        **objects,
    )
    plain = logbuilder.seb(0.0, 1.0, forward=[1], name="größer".encode())
    unclosed = logbuilder.seb(4.0, -1.0, backward=[1], recv_time=float("nan"))
    marked = logbuilder.seb(5.0, 6.0, events=[bare], src_pe=2, msg_id=2**31 - 1, mpi_op=1)
    return [[plain, busy, unclosed], [], [marked], [plain] * 3, [busy, busy], [unclosed]]


class Seb(NamedTuple):
    """A SEB as construct reads it, and where it is."""

    pe: int
    seb: int
    offset: int
    fields: Any


def format_of(folder: Path) -> tuple[int, ByteOrder]:
    """Return the log version and the byte order of a log set."""
    raw = (folder / "bgTrace").read_bytes()
    order: ByteOrder = "little" if MachineHeader.parse(raw).sizes.integer_format else "big"
    return summary_struct(order).parse(raw).log_version or 0, order


def walk_file(folder: Path, index: int) -> list[Seb]:
    """Return the SEBs of one timeline file, in its order."""
    version, order = format_of(folder)
    summary = summary_struct(order).parse((folder / "bgTrace").read_bytes())
    raw = (folder / f"bgTrace{index}").read_bytes()
    head = timeline_file_struct(order).parse(raw)
    nodes = range(index, summary.x * summary.y * summary.z, summary.files)
    pes = [node * summary.num_wth + worker for node in nodes for worker in range(summary.num_wth)]
    assert head.count == len(pes)
    struct, stream, sebs = seb_struct(version, order), io.BytesIO(raw), []
    stream.seek(20 + 4 * head.count)
    for pe, offset in zip(pes, head.offsets, strict=True):
        assert offset == stream.tell()
        count = int.from_bytes(stream.read(4), order)
        for seb in range(count):
            at = stream.tell()
            sebs.append(Seb(pe, seb, at, struct.parse_stream(stream)))
    assert stream.tell() == len(raw)
    return sebs


def walk(folder: Path) -> list[Seb]:
    """Return all SEBs of a log set, PE by PE."""
    _, order = format_of(folder)
    files = summary_struct(order).parse((folder / "bgTrace").read_bytes()).files
    return sorted(seb for index in range(files) for seb in walk_file(folder, index))


def rebuilt(folder: Path) -> dict[str, bytes]:
    """Return what each file of a log set becomes when it is parsed and built again."""
    version, order = format_of(folder)
    timeline = timeline_struct(version, order)
    summary = summary_struct(order).parse((folder / "bgTrace").read_bytes())
    files = {"bgTrace": summary_struct(order).build(summary)}
    for index in range(summary.files):
        raw = (folder / f"bgTrace{index}").read_bytes()
        head = timeline_file_struct(order).parse(raw)
        bodies = [timeline.parse(raw[offset:]) for offset in head.offsets]
        files[f"bgTrace{index}"] = timeline_file_struct(order).build(head) + b"".join(
            timeline.build(body) for body in bodies
        )
    return files


def converted(folder: Path, version: int, order: ByteOrder) -> dict[str, bytes]:
    """Return the files of a log set in another log version and byte order."""
    old_version, old_order = format_of(folder)
    summary = summary_struct(old_order).parse((folder / "bgTrace").read_bytes())
    summary.machine.sizes.integer_format = summary.machine.sizes.float_format = ORDERS[::-1].index(
        order
    )
    if summary.log_version is not None or version > 0:
        summary.log_version = version
    files = {"bgTrace": summary_struct(order).build(summary)}
    for index in range(summary.files):
        raw = (folder / f"bgTrace{index}").read_bytes()
        offsets = timeline_file_struct(old_order).parse(raw).offsets
        bodies = []
        for offset in offsets:
            timeline = timeline_struct(old_version, old_order).parse(raw[offset:])
            sebs = [_seb_of_version(seb, version) for seb in timeline.sebs]
            bodies.append(timeline_struct(version, order).build({"sebs": sebs}))
        begins = [20 + 4 * len(bodies) + sum(map(len, bodies[:k])) for k in range(len(bodies))]
        head = {"machine": summary.machine, "count": len(bodies), "offsets": begins}
        files[f"bgTrace{index}"] = timeline_file_struct(order).build(head) + b"".join(bodies)
    return files


def _seb_of_version(seb: Any, version: int) -> dict[str, Any]:
    fields = newest_fields(seb)
    fields["obj_id"] = fields["obj_id"][: 3 if version < 3 else 4]
    fields["messages"] = [{"group": 1, **sent} for sent in fields["messages"]]
    return fields


def newest_fields(fields: Any) -> dict[str, Any]:
    """Return a SEB's own fields as the newest version has them, defaults for what lacks."""
    known = {name: value for name, value in fields.items() if name != "_io"}
    merged = {**{name: MISSING[name] for name in MISSING if name != "group"}, **known}
    merged["obj_id"] = (*merged["obj_id"], -1)[:4]
    return merged


def same_as_kernel(folder: Path) -> int:
    """Check that the kernels' tables say what construct reads; return the number of SEBs."""
    logs = open_logs(folder)
    by_pe: dict[int, list[Seb]] = {pe: [] for pe in logs.pes}
    for seb in walk(folder):
        by_pe[seb.pe].append(seb)
    for pe, sebs in by_pe.items():
        tables = logs.timeline(pe)
        _same_rows(tables.sebs, [_seb_row(seb) for seb in sebs])
        _same_rows(tables.messages, [row for seb in sebs for row in _message_rows(seb)])
        _same_rows(tables.log_events, [row for seb in sebs for row in _event_rows(seb)])
        for forward in (False, True):
            chosen = tables.dependencies[tables.dependencies["forward"] == forward]
            _same_rows(chosen, [row for seb in sebs for row in _dependency_rows(seb, forward)])
    return sum(map(len, by_pe.values()))


def _same_rows(table: Any, rows: list[dict[str, Any]]) -> None:
    assert len(table) == len(rows)
    for name in rows[0] if rows else ():
        expected = [row[name] for row in rows]
        if table[name].dtype.kind == "f":
            np.testing.assert_array_equal(table[name], expected, err_msg=name)
        else:
            assert table[name].tolist() == expected, name
    assert not rows or set(rows[0]) == set(table.dtype.names)


def _seb_row(seb: Seb) -> dict[str, Any]:
    row = newest_fields(seb.fields)
    for name in ("messages", "events", "backward", "forward"):
        row[name] = len(row[name])
    row["log_events"] = row.pop("events")
    row["name"] = row["name"].split(b"\0")[0]
    row["obj_id"] = list(row["obj_id"])
    return {"pe": seb.pe, "seb": seb.seb, "offset": seb.offset, **row}


def _message_rows(seb: Seb) -> list[dict[str, Any]]:
    version = 1 if seb.fields.messages and "group" in seb.fields.messages[0] else 0
    size = 34 if version else 30
    begin = seb.offset + _head_size(seb) + 4
    return [
        {"pe": seb.pe, "seb": seb.seb, "message": k, "offset": begin + k * size, "group": 1}
        | {name: value for name, value in message.items() if name != "_io"}
        for k, message in enumerate(seb.fields.messages)
    ]


def _head_size(seb: Seb) -> int:
    """FORMAT 4, added up by hand: 77 bytes in version 0, and what later ones have more."""
    more = {"mpi_op": 2, "mpi_size": 4, "charm_ep": 2}
    known = sum(size for name, size in more.items() if name in seb.fields)
    return 77 + known + 4 * len(seb.fields.get("obj_id", ()))


def _event_rows(seb: Seb) -> list[dict[str, Any]]:
    size = 34 if seb.fields.messages and "group" in seb.fields.messages[0] else 30
    at = seb.offset + _head_size(seb) + 4 + size * len(seb.fields.messages) + 4
    rows = []
    for k, event in enumerate(seb.fields.events):
        pointer = event.type == 1
        rows.append(
            {
                "pe": seb.pe,
                "seb": seb.seb,
                "log_event": k,
                "offset": at,
                "type": event.type,
                "r_time": event.r_time,
                "index": event.data if pointer else -1,
                "text": None if pointer else event.data,
            }
        )
        at += 13 + (0 if pointer else len(event.data))
    return rows


def _dependency_rows(seb: Seb, forward: bool) -> list[dict[str, Any]]:
    others = seb.fields.forward if forward else seb.fields.backward
    return [{"pe": seb.pe, "seb": seb.seb, "forward": forward, "other": other} for other in others]
