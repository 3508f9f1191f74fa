"""The plan of a synthetic log set: the machine, the iteration of all PEs, and its bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, get_args

import numpy as np

from rewritelog.arrays import Table
from rewritelog.errors import UsageError
from rewritelog.formats.bgtrace.declaration import (
    LOG_VERSIONS,
    NAME_BYTES,
    ByteOrder,
    Layout,
    layout,
    seb_struct,
)
from rewritelog.synthesis import program
from rewritelog.synthesis.options import CELLS_OF_A_PE, SynthOptions
from rewritelog.synthesis.program import EVENTS, SynthEvent, events_for

_MOST_SLOTS, _LEAST_SLOTS = 64, 40
_EXTRAS = 0.5
"""The average number of extra SEBs after an iteration."""
_SENDS_OF_BRACKET = 4
_STARTED_TOGETHER = 3
_LONGEST_CHAIN = 6
_EVERY_ZERO_LENGTH = 7
_GAP_NS = 2000
"""The gap between iterations, longer than the transit of any message."""
_INT_LIMIT = 2**31
_MOST_CELLS = 1_000_000
"""The most cells per PE."""
_OFFSET_LIMIT = 2**32
_MESSAGES_LIMIT = 1000.0
_SHORT_NS, _LONG_NS = (30, 370), (1000, 15000)
"""The least and the range of the durations of SEBs without brackets, in ns."""
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
_PRINT = 2, b"user code at work\n\0"
_MARKS = (3, b"startTraceBigSim %f\n\0"), (3, b"endTraceBigSim %f\n\0")


def check_options(options: SynthOptions) -> None:
    """Raise `UsageError` naming the option for an invalid value."""
    _check_range("pes", options.pes, 1, _INT_LIMIT)
    _check_range("wth", options.wth, 1, _INT_LIMIT)
    if options.pes % options.wth:
        raise UsageError(f"pes: {options.pes} is not a multiple of wth, {options.wth}")
    _check_range("files", options.files, 1, options.nodes + 1, " (the number of nodes)")
    _check_range("sebs", options.sebs, 1, _INT_LIMIT)
    _check_range("seed", options.seed, 0, 2**63)
    _check_range("size", options.size, 0, _MOST_CELLS * options.pes + 1, f" ({_MOST_CELLS:,} a PE)")
    _check_range("timings", options.timings, 0, _INT_LIMIT)
    _check_range("log_version", options.log_version, LOG_VERSIONS[0], LOG_VERSIONS[-1] + 1)
    if options.byte_order not in get_args(ByteOrder):
        raise UsageError(f"byte_order: {options.byte_order!r} is neither 'little' nor 'big'")
    if not 0.0 <= options.messages <= _MESSAGES_LIMIT:
        raise UsageError(f"messages must be 0 to {_MESSAGES_LIMIT:.0f}, not {options.messages}")
    if not 0.0 <= options.bracketed <= 1.0:
        raise UsageError(f"bracketed must be 0 to 1, not {options.bracketed}")


def _check_range(name: str, value: int, least: int, limit: int, why: str = "") -> None:
    if not least <= value < limit:
        raise UsageError(f"{name} must be {least} to {limit - 1}{why}, not {value}")


def machine_shape(nodes: int) -> tuple[int, int, int]:
    """Return x ≥ y ≥ z with x·y·z = nodes, as close to a cube as the divisors allow."""
    z = _divisor_below(nodes, round(nodes ** (1 / 3)))
    y = _divisor_below(nodes // z, math.isqrt(nodes // z))
    z, y, x = sorted((z, y, nodes // z // y))
    return x, y, z


def _divisor_below(number: int, most: int) -> int:
    return next(n for n in range(max(most, 1), 0, -1) if number % n == 0)


@dataclass
class Slot:
    """A SEB of the iteration."""

    sends: int = 0
    event: int = -1
    started: int = -1
    root: bool = False
    backward: int = 0
    forward: int = 0
    name: str = "msgep"
    zero_length: bool = False

    @property
    def duration_ns(self) -> tuple[int, int]:
        """The least duration without a bracket, and its range, in ns."""
        if self.zero_length:
            return 0, 0
        return _LONG_NS if self.name == "user_code" else _SHORT_NS

    def most_ns(self, events: tuple[SynthEvent, ...]) -> int:
        """Return the time reserved for it, in ns."""
        if self.event < 0:
            return sum(self.duration_ns) + program.JITTER_NS
        return events[self.event].most_ns + program.JITTER_NS


Starter: TypeAlias = tuple[int, int, int]
"""The starting message of a SEB: slot, index in it, and number."""


def iteration_of(options: SynthOptions) -> tuple[list[Slot], list[Starter]]:
    """Plan the iteration that every PE repeats: its SEBs, and what starts those that are started.

    SEBs have brackets, starting messages, chains of dependencies, and sends.
    """
    count = _slot_count(options)
    slots = [Slot() for _ in range(count)]
    bracketed = _share(options.bracketed, count)
    for k in range(min(bracketed, count)):
        slots[(2 * k + 1) * count // (2 * bracketed)].event = k % len(EVENTS)
    sends = _share(options.messages, count)
    started = min(sends, count - count // 5)
    for k in range(started):
        first = k - k % _STARTED_TOGETHER
        slots[-(-first * count // started) + k % _STARTED_TOGETHER].started = k
    _make_chains(slots)
    left = sends
    for slot in slots:
        if slot.event >= 0:
            slot.sends = min(left, _SENDS_OF_BRACKET)
            left -= slot.sends
    for k in range(left):
        slots[(2 * k + 1) * count // (2 * left)].sends += 1
    sources = [(at, which) for at, slot in enumerate(slots) for which in range(slot.sends)]
    numbers = [k * sends // started for k in range(started)]
    return slots, [(*sources[number], number) for number in numbers]


def _slot_count(options: SynthOptions) -> int:
    """Return the number of slots that approximates the shares best, or fewer for few SEBs."""
    if options.sebs < 3 * _LEAST_SLOTS:
        return max(options.sebs // 3, min(options.sebs, 8))
    shares = options.bracketed, options.messages

    def miss(count: int) -> float:
        return sum(abs(_share(share, count) / (count + _EXTRAS) - share) for share in shares)

    return min(range(_LEAST_SLOTS, _MOST_SLOTS + 1), key=miss)


def _share(share: float, count: int) -> int:
    return max(round(share * (count + _EXTRAS)), 1) if share > 0 else 0


def _make_chains(slots: list[Slot]) -> None:
    """Let each SEB without a starting message depend on the previous one, or start by itself."""
    depth = plain = 0
    for at, slot in enumerate(slots):
        is_plain = slot.started < 0 and slot.event < 0
        plain += is_plain
        idle = is_plain and plain % _EVERY_ZERO_LENGTH == 0
        depth += 1
        if slot.started >= 0 or at == 0:
            depth, slot.root = 0, slot.started < 0
        elif idle or depth == _LONGEST_CHAIN:
            depth, slot.root = 0, True
            slot.name, slot.zero_length = ("addMsg", True) if is_plain else ("msgep", False)
        else:
            slot.backward = 2 if depth == 2 else 1
            slot.name = _CHAIN_NAMES[plain % len(_CHAIN_NAMES)] if is_plain else "msgep"
            for back in range(1, slot.backward + 1):
                slots[at - back].forward += 1


def program_of(options: SynthOptions) -> program.SyntheticProgram:
    """Return the program of all PEs; raise `UsageError` if a timeline would be too large."""
    slots, starters = iteration_of(options)
    first = replace(slots[0])
    extra = Slot(root=True, name="addMsg", zero_length=True)
    broadcasts = max(len(starters) - 1, 0)
    lay = layout(options.log_version, options.byte_order)
    events = events_for(options.cells)
    surface = (options.cells / CELLS_OF_A_PE) ** (2 / 3)
    records = [_seb_bytes(slot, lay, surface) for slot in (*slots, extra)]
    records.append(_seb_bytes(first, lay, surface, broadcasts, flag=1))
    rows, period_ns = _rows([*slots, extra, first], len(slots), lay, broadcasts, events)
    count = len(slots)
    length = max(1, round(options.sebs * count / (count + _EXTRAS)))
    sends = sum(slot.sends for slot in slots)
    iterations = length // count + 1
    if iterations * sum(map(len, records)) >= _OFFSET_LIMIT:
        raise UsageError("sebs: a timeline would have 4 GiB or more")
    if iterations * sends + broadcasts >= _INT_LIMIT:
        raise UsageError("messages: a PE would send more messages than there are message numbers")
    x, y, z = machine_shape(options.nodes)
    return program.SyntheticProgram(
        seed=options.seed,
        slots=count,
        length=length,
        x=x,
        y=y,
        z=z,
        workers=options.wth,
        period_ns=period_ns,
        sends=sends,
        broadcasts=broadcasts,
        rows=rows,
        records=tuple(records),
        starters=np.array(starters, dtype=np.int64).reshape(-1, 3),
        events=events,
    )


def _rows(
    slots: list[Slot],
    count: int,
    lay: Layout,
    broadcasts: int,
    events: tuple[SynthEvent, ...],
) -> tuple[Table, int]:
    """Return the rows of the slots, and the period of an iteration in ns."""
    rows = np.zeros(len(slots), dtype=program.ROW)
    at_ns = number = 0
    for k, slot in enumerate(slots):
        first = k == count + 1
        chain = slot.backward, slot.forward
        own = slot.sends, number, slot.event, slot.started, slot.root, *chain, at_ns
        times = _event_time_offsets(slot, lay, slot.sends + (broadcasts if first else 0))
        rows[k] = (*rows[0].item()[:-2], *times) if first else (*own, *slot.duration_ns, *times)
        number += slot.sends
        at_ns += slot.most_ns(events)
    return rows, int(rows["at_ns"][count]) + program.JITTER_NS + _GAP_NS


def _events(slot: Slot) -> list[tuple[int, bytes]]:
    if slot.event >= 0:
        return list(_MARKS)
    return [_PRINT] if slot.name == "user_code" else []


def _event_time_offsets(slot: Slot, lay: Layout, messages: int) -> tuple[int, int]:
    """Return the offsets of the times of a SEB's events in its bytes; 0 for none."""
    offsets = [0, 0]
    at = lay.seb.itemsize + 2 * lay.count.itemsize + messages * lay.message.itemsize
    for k, (_, text) in enumerate(_events(slot)):
        offsets[k] = at + int(lay.core["event_r_time"])
        at += lay.event.itemsize + lay.count.itemsize + len(text)
    return offsets[0], offsets[1]


def _seb_bytes(
    slot: Slot, lay: Layout, surface: float, broadcasts: int = 0, flag: int = 0
) -> bytes:
    """Return the bytes of a SEB, with zeros in the fields that differ from SEB to SEB.

    The sizes of messages to neighbours are proportional to `surface`, relative to 1000 cells.
    """
    allreduce = slot.name == "AMPI_Allreduce"
    chare = slot.event >= 0
    indices = lay.seb["obj_id"].shape[0] if "obj_id" in (lay.seb.names or ()) else 0
    fields: dict[str, Any] = {
        "ep": 2 if slot.started >= 0 else -1,
        "seqno": 0,
        "src_pe": -1,
        "msg_id": -1,
        "mpi_op": _ALLREDUCE if allreduce else 0,
        "mpi_size": _ALLREDUCE_BYTES if allreduce else 0,
        "charm_ep": 139 if chare else -1,
        **dict.fromkeys(_TIMES, 0.0),
        "flag": flag,
        "name": slot.name.encode().ljust(NAME_BYTES, b"\0"),
        "obj_id": [0 if chare else -1] * indices,
        "messages": [_message(k, -1, 112) for k in range(broadcasts)]
        + [_message(k, 0, round((128 + 88 * k) * surface)) for k in range(slot.sends)],
        "events": [{"type": kind, "r_time": 0.0, "data": text} for kind, text in _events(slot)],
        "backward": [0] * slot.backward,
        "forward": [0] * slot.forward,
    }
    return bytes(seb_struct(lay.log_version, lay.order).build(fields))


def _message(number: int, node: int, size: int) -> dict[str, Any]:
    own = {"msg_id": number, "dst_node": node, "tid": min(node, 0), "size": size, "group": 1}
    return {**own, "send_time": 0.0, "recv_time": 0.0}
