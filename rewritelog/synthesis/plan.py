"""The plan of a synthetic log set: the iteration of all PEs, and the bytes of its SEBs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rewritelog.arrays import Ints, Table
from rewritelog.commands.logs import CELLS_OF_A_PE, SynthCommand
from rewritelog.errors import UsageError, spelled
from rewritelog.formats.bgtrace.declaration import (
    MISSING,
    NAME_BYTES,
    Layout,
    layout,
    seb_struct,
)
from rewritelog.formats.bgtrace.heads import OFFSET_RANGE
from rewritelog.synthesis import program
from rewritelog.synthesis.program import EVENTS, Kernels, kernels_for

_MOST_SLOTS, _LEAST_SLOTS = 64, 40
_EXTRAS = 0.5
"""The average number of extra SEBs after an iteration."""
_SENDS_OF_BRACKET = 4
_STARTED_TOGETHER = 3
_LONGEST_CHAIN = 6
_EVERY_ZERO_LENGTH = 7
_GAP_NS = 2000
"""The gap between iterations, longer than the transit of any message."""
_SHORT_NS, _LONG_NS = (30, 370), (1000, 15000)
"""The least duration of a SEB without a bracket, and the width of its range, in ns."""
_CHAIN_NAMES = (
    "user_code",
    "AMPI_SEND",
    "AMPI_SEND_END",
    "split-broadcast",
    "user_code",
    "AMPI_Allreduce",
    "end-broadcast",
)
_ALLREDUCE, _ALLREDUCE_BYTES = 2, 8
_TIMES = ("recv_time", "eff_recv_time", "start_time", "exec_time", "end_time")
_PRINT = (2, b"user code at work\n\0")
_START, _END = (3, b"startTraceBigSim %f\n\0"), (3, b"endTraceBigSim %f\n\0")


def machine_shape(nodes: int) -> tuple[int, int, int]:
    """Return x ≥ y ≥ z with x·y·z = nodes, as close to a cube as the divisors allow."""
    z = _divisor_below(nodes, round(nodes ** (1 / 3)))
    y = _divisor_below(nodes // z, math.isqrt(nodes // z))
    z, y, x = sorted((z, y, nodes // z // y))
    return x, y, z


def _divisor_below(number: int, most: int) -> int:
    return next(n for n in range(max(most, 1), 0, -1) if number % n == 0)


def iteration_of(options: SynthCommand) -> tuple[Table, Ints]:
    """Return the iteration that every PE repeats: the rows of its SEBs, and the starting messages.

    The rows of the extra SEB and of PE 0's first one come last. A starting message has the slot of
    its sender, its index in that SEB, and its number in the iteration; shape (started, 3).
    """
    count = _slot_count(options)
    rows = np.zeros(count + 2, dtype=program.ROW)
    rows["event"] = rows["started"] = -1
    rows["name"] = b"msgep"
    slots = rows[:count]
    bracketed, sends = (_share(share, count) for share in (options.bracketed, options.messages))
    k = np.arange(min(bracketed, count))
    slots["event"][(2 * k + 1) * count // (2 * max(bracketed, 1))] = k % len(EVENTS)
    started = min(sends, count - count // 5)
    k = np.arange(started)
    together = k % _STARTED_TOGETHER
    slots["started"][together - (together - k) * count // max(started, 1)] = k
    _make_chains(slots)
    marked = np.flatnonzero(slots["event"] >= 0)
    most = sends - _SENDS_OF_BRACKET * np.arange(len(marked))
    slots["sends"][marked] = np.clip(most, 0, _SENDS_OF_BRACKET)
    left = sends - int(slots["sends"].sum())
    np.add.at(slots["sends"], (2 * np.arange(left) + 1) * count // (2 * max(left, 1)), 1)
    rows["first_send"][:-1] = np.cumsum(rows["sends"][:-1]) - rows["sends"][:-1]
    rows[-2]["root"], rows[-2]["name"], rows[-2]["zero_length"] = 1, b"addMsg", 1
    rows[-1] = rows[0]
    rows[-1]["broadcasts"] = max(started - 1, 0)
    number = k * sends // max(started, 1)
    slot = np.repeat(np.arange(count), slots["sends"])[number]
    return rows, np.column_stack([slot, number - slots["first_send"][slot], number])


def _slot_count(options: SynthCommand) -> int:
    """Return the number of slots that approximates the shares best, or fewer for few SEBs."""
    if options.sebs < 3 * _LEAST_SLOTS:
        return max(options.sebs // 3, min(options.sebs, 8))
    shares = options.bracketed, options.messages

    def miss(count: int) -> float:
        return sum(abs(_share(share, count) / (count + _EXTRAS) - share) for share in shares)

    return min(range(_LEAST_SLOTS, _MOST_SLOTS + 1), key=miss)


def _share(share: float, count: int) -> int:
    return max(round(share * (count + _EXTRAS)), 1) if share > 0 else 0


def _make_chains(slots: Table) -> None:
    """Let each SEB without a starting message depend on the previous one, or start by itself."""
    depth = plain = 0
    for at, slot in enumerate(slots):
        is_plain = slot["started"] < 0 and slot["event"] < 0
        plain += is_plain
        idle = is_plain and plain % _EVERY_ZERO_LENGTH == 0
        depth += 1
        if slot["started"] >= 0 or at == 0:
            depth, slot["root"] = 0, slot["started"] < 0
        elif idle or depth == _LONGEST_CHAIN:
            depth, slot["root"] = 0, 1
            if is_plain:
                slot["name"], slot["zero_length"] = b"addMsg", 1
        else:
            slot["backward"] = 2 if depth == 2 else 1
            if is_plain:
                slot["name"] = _CHAIN_NAMES[plain % len(_CHAIN_NAMES)]
            slots["forward"][at - slot["backward"] : at] += 1


def program_of(options: SynthCommand) -> program.SyntheticProgram:
    """Return the program of all PEs; raise `UsageError` if a timeline would be too large."""
    rows, starters = iteration_of(options)
    lay, kernels = layout(options.log_version, options.byte_order), kernels_for(options.cells)
    period_ns = _set_times(rows, lay, kernels)
    surface = (options.cells / CELLS_OF_A_PE) ** (2 / 3)
    count = len(rows) - 2
    records = tuple(_seb_bytes(row, lay, surface, k > count) for k, row in enumerate(rows))
    length = max(1, round(options.sebs * count / (count + _EXTRAS)))
    sends, broadcasts = int(rows["sends"][:count].sum()), int(rows["broadcasts"][-1])
    iterations = length // count + 1
    if iterations * sum(map(len, records)) >= OFFSET_RANGE:
        raise UsageError(f"{spelled('sebs')}: a timeline would have 4 GiB or more")
    return program.SyntheticProgram(
        seed=options.seed,
        slots=count,
        length=length,
        shape=machine_shape(options.nodes),
        workers=options.wth,
        period_ns=period_ns,
        sends=sends,
        broadcasts=broadcasts,
        rows=rows,
        records=records,
        starters=starters,
        kernels=kernels,
    )


def _set_times(rows: Table, lay: Layout, kernels: Kernels) -> int:
    """Fill in durations, starts and offsets of log events' times; return the period in ns."""
    marked, calls = rows["event"] >= 0, rows["name"] == b"user_code"
    for name, short, long in zip(("least_ns", "spread_ns"), _SHORT_NS, _LONG_NS, strict=True):
        rows[name] = np.where(rows["zero_length"] == 1, 0, np.where(calls, long, short))
    of_event = kernels.most_ns[rows["event"]]
    most_ns = np.where(marked, of_event, rows["least_ns"] + rows["spread_ns"]) + program.JITTER_NS
    rows["at_ns"][:-1] = np.cumsum(most_ns[:-1]) - most_ns[:-1]
    messages = rows["sends"] + rows["broadcasts"]
    events_at = lay.seb.itemsize + 2 * lay.count.itemsize + messages * lay.message.itemsize
    first_at = events_at + int(lay.core["event_r_time"])
    rows["time_1"] = np.where(marked | calls, first_at, 0)
    bytes_1 = lay.event.itemsize + len(_START[1])
    rows["time_2"] = np.where(marked, first_at + bytes_1, 0)
    return int(rows["at_ns"][-2]) + program.JITTER_NS + _GAP_NS


def _seb_bytes(row: Any, lay: Layout, surface: float, is_first: bool) -> bytes:
    """Return the bytes of a SEB, with zeros in the fields that differ from SEB to SEB.

    The sizes of messages to neighbours are proportional to `surface`, relative to 1000 cells.
    """
    name, chare = row["name"], row["event"] >= 0
    allreduce, calls = name == b"AMPI_Allreduce", [_PRINT] if name == b"user_code" else []
    indices = lay.seb["obj_id"].shape[0] if "obj_id" in (lay.seb.names or ()) else 0
    fields: dict[str, Any] = MISSING | {
        "ep": 2 if row["started"] >= 0 else -1,
        "seqno": 0,
        "src_pe": -1,
        "msg_id": -1,
        "mpi_op": _ALLREDUCE if allreduce else 0,
        "mpi_size": _ALLREDUCE_BYTES if allreduce else 0,
        "charm_ep": 139 if chare else -1,
        **dict.fromkeys(_TIMES, 0.0),
        "flag": int(is_first),
        "name": name.ljust(NAME_BYTES, b"\0"),
        "obj_id": [0 if chare else -1] * indices,
        "messages": [_message(k, -1, 112) for k in range(row["broadcasts"])]
        + [_message(k, 0, round((128 + 88 * k) * surface)) for k in range(row["sends"])],
        "events": [
            {"type": kind, "r_time": 0.0, "data": text}
            for kind, text in ((_START, _END) if chare else calls)
        ],
        "backward": [0] * row["backward"],
        "forward": [0] * row["forward"],
    }
    return bytes(seb_struct(lay.log_version, lay.order).build(fields))


def _message(number: int, node: int, size: int) -> dict[str, Any]:
    fields = {"msg_id": number, "dst_node": node, "tid": min(node, 0), "size": size}
    return MISSING | fields | {"send_time": 0.0, "recv_time": 0.0}
