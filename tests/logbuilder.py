"""Log sets built by construct alone, SEB by SEB, for tests whose answers are worked out by hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewritelog.formats.bgtrace.declaration import (
    MAGIC,
    MISSING,
    ByteOrder,
    summary_struct,
    timeline_file_struct,
    timeline_struct,
)

START, END = b"startTraceBigSim %f\n\0", b"endTraceBigSim %f\n\0"


def machine(order: ByteOrder, header_version: int = 1) -> dict[str, Any]:
    little = int(order == "little")
    sizes = {
        "char_size": 1,
        "short_size": 2,
        "int_size": 4,
        "long_size": 8,
        "int128_size": 16,
        "integer_format": little,
        "float_size": 4,
        "double_size": 8,
        "float_format": little,
        "bool_size": 1,
        "pointer_size": 8,
        "padding": b"\x5a",
    }
    return {"magic": MAGIC, "header_version": header_version, "sizes": sizes}


def message(sent: float, recv: float | None = None, **fields: Any) -> dict[str, Any]:
    plain = MISSING | {"msg_id": 0, "dst_node": -100, "tid": 0, "size": 64}
    return plain | {"send_time": sent, "recv_time": sent if recv is None else recv} | fields


def mark(kind: bytes, time: float) -> dict[str, Any]:
    return {"type": 3, "r_time": time, "data": kind}


def bracket(start: float, end: float) -> list[dict[str, Any]]:
    return [mark(START, start), mark(END, end)]


def seb(start: float, end: float, **fields: Any) -> dict[str, Any]:
    plain = MISSING | {
        "ep": 1,
        "src_pe": -1,
        "msg_id": -1,
        "mpi_size": 0xDEADBEEF,
        "recv_time": start,
        "eff_recv_time": start,
        "flag": 0,
        "name": b"msgep",
        "messages": [],
        "events": [],
        "backward": [],
        "forward": [],
    }
    return plain | {"start_time": start, "end_time": end, "exec_time": end - start} | fields


def pad_name(name: bytes) -> bytes:
    """A name field with garbage after its NUL, as real logs have it."""
    return name if len(name) == 20 else (name + b"\0" + b"\xa5garbage-after-the-nul")[:20]


def write_logs(
    folder: Path,
    timelines: Sequence[Sequence[dict[str, Any]]],
    *,
    files: int = 1,
    wth: int = 1,
    log_version: int = 6,
    order: ByteOrder = "little",
    header_version: int = 1,
    summary_bytes: int = 60,
) -> Path:
    """Write a log set whose PE P has the SEBs `timelines[P]`."""
    folder.mkdir(parents=True, exist_ok=True)
    nodes = len(timelines) // wth
    head = {
        "machine": machine(order, header_version),
        "total_pes": len(timelines),
        "x": nodes,
        "y": 1,
        "z": 1,
        "num_cth": 1,
        "num_wth": wth,
        "stack_size": 0,
        "timing_method": 2,
        "files": files,
        "log_version": log_version,
        "thread_entry_point": 1,
    }
    summary = summary_struct(order).build(head)
    (folder / "bgTrace").write_bytes(summary[:summary_bytes])
    for index in range(files):
        pes = [n * wth + w for n in range(index, nodes, files) for w in range(wth)]
        bodies = [timeline_bytes(timelines[pe], log_version, order) for pe in pes]
        offsets = []
        at = 20 + 4 * len(pes)
        for body in bodies:
            offsets.append(at)
            at += len(body)
        file_head = {
            "machine": machine(order, header_version),
            "count": len(pes),
            "offsets": offsets,
        }
        data = timeline_file_struct(order).build(file_head) + b"".join(bodies)
        (folder / f"bgTrace{index}").write_bytes(data)
    return folder


def timeline_bytes(sebs: Sequence[dict[str, Any]], log_version: int, order: ByteOrder) -> bytes:
    numbered = [
        fields | {"seqno": index, "name": pad_name(fields["name"])}
        for index, fields in enumerate(sebs)
    ]
    if log_version < 3:
        numbered = [fields | {"obj_id": fields["obj_id"][:3]} for fields in numbered]
    return bytes(timeline_struct(log_version, order).build({"sebs": numbered}))


def write_params(folder: Path, pe: int, *lines: tuple[Any, ...]) -> None:
    """Append lines (seb, event, parameters…) to `param.P`."""
    with (folder / f"param.{pe}").open("a") as file:
        for index, event, *params in lines:
            numbers = "".join(f"{param:f} " for param in params)
            file.write(
                f"{index} TRACEBIGSIM: event:{{ {event} }} seqno: {{ {index} }}    "
                f"params:{{ {numbers}}}\n"
            )


def write_timings(path: Path, *lines: tuple[Any, ...]) -> Path:
    """Write timing lines (event, seconds, parameters…)."""
    path.write_text(
        "".join(
            f"TRACEBIGSIM: event:{{ {event} }}  time:{{ {seconds!r} }}  "
            f"params:{{ {' '.join(map(repr, params))} }}\n"
            for event, seconds, *params in lines
        )
    )
    return path
