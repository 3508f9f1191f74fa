"""Replayed times written into the bytes of a block, whose durations are already the new ones."""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Bytes, Floats, Ints
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.raw import load_f8, load_i4, store_f8
from rewritelog.kernels.walk import (
    FAULT_PIECE,
    FAULT_SEB,
    LOG_CHANGED,
    Pieces,
    seb_parts,
    set_fault,
)
from rewritelog.replaying.kernels.interface import Delays, Program, Scale, Times
from rewritelog.replaying.kernels.replay import delay_between, network_delay, sent_at
from tracebigsim.compiled import inner, kernel


@inner
def written_delay(program: Program, delays: Delays, message: int, sender: int) -> float:
    """Return the transit time that is written for a message, in seconds.

    It is the delay to its slowest receiver, or that between nodes if it has none.
    """
    messages = program.messages
    first, last = messages.first_receiver[message], messages.first_receiver[message + 1]
    if first == last:
        return network_delay(delays, messages.transit_s[message], messages.size_bytes[message])
    longest = 0.0
    for k in range(first, last):
        to = program.sebs.pe[messages.receivers[k]]
        longest = max(longest, delay_between(program, delays, message, sender, to))
    return longest


@inner
def write_messages(
    buf: Bytes,
    at: int,
    lay: KernelLayout,
    program: Program,
    scale: Scale,
    delays: Delays,
    seb: int,
    start: float,
    end: float,
) -> None:
    """Write the times of the messages whose count is at `at`."""
    pe, name = program.sebs.pe[seb], program.sebs.name[seb]
    for k in range(load_i4(buf, at, lay.swap)):
        message = program.sebs.first_message[seb] + k
        offset = at + lay.count_bytes + k * lay.message_bytes
        sent = sent_at(program, scale, name, start, end, message)
        arrived = sent + written_delay(program, delays, message, pe)
        store_f8(buf, offset + lay.message_send_time, sent, lay.swap)
        store_f8(buf, offset + lay.message_recv_time, arrived, lay.swap)


@inner
def write_seb(
    buf: Bytes, at: int, lay: KernelLayout, ready: float, start: float, end: float, duration: float
) -> None:
    """Write the times of a SEB; it stays unclosed if it was, and a receive time of −1 stays."""
    closed = load_f8(buf, at + lay.seb_end_time, lay.swap) >= load_f8(
        buf, at + lay.seb_start_time, lay.swap
    )
    store_f8(buf, at + lay.seb_start_time, start, lay.swap)
    store_f8(buf, at + lay.seb_eff_recv_time, ready, lay.swap)
    if load_f8(buf, at + lay.seb_recv_time, lay.swap) != -1.0:
        store_f8(buf, at + lay.seb_recv_time, ready, lay.swap)
    if closed:
        store_f8(buf, at + lay.seb_exec_time, duration, lay.swap)
        store_f8(buf, at + lay.seb_end_time, end, lay.swap)


@kernel(ns_per_byte=300)
def write_times(
    buf: Bytes,
    pieces: Pieces,
    lay: KernelLayout,
    firsts: Ints,
    program: Program,
    scale: Scale,
    delays: Delays,
    times: Times,
    durations: Floats,
    fault: Ints,
) -> None:
    """Write the replayed times into a block; `firsts` is the number of each piece's first SEB."""
    for piece in range(len(pieces.starts)):
        fault[FAULT_PIECE] = piece
        at = pieces.starts[piece]
        for k in range(pieces.counts[piece]):
            fault[FAULT_SEB] = k
            _, _, following = seb_parts(buf, at, pieces.ends[piece], lay, fault)
            if following < 0:
                return
            seb = firsts[piece] + k
            messages = load_i4(buf, at + lay.seb_bytes, lay.swap)
            first, last = program.sebs.first_message[seb], program.sebs.first_message[seb + 1]
            if messages != last - first:
                set_fault(fault, LOG_CHANGED, at + lay.seb_bytes, messages)
                return
            start, end = times.start_s[seb], times.end_s[seb]
            write_seb(buf, at, lay, times.ready_s[seb], start, end, durations[seb])
            write_messages(buf, at + lay.seb_bytes, lay, program, scale, delays, seb, start, end)
            at = following


@kernel(ns_per_byte=500)
def place_never_run(program: Program, scale: Scale, times: Times, pes: int, latest: float) -> None:
    """Place SEBs that never ran after the end of the run, one after the other on each PE."""
    free = np.full(pes, latest)
    for seb in range(len(program.sebs.pe)):
        if np.isnan(times.ready_s[seb]):
            pe, name = program.sebs.pe[seb], program.sebs.name[seb]
            duration = program.sebs.scaled_s[seb] * scale.scaled[name]
            if len(program.sebs.fixed_s) > 0:
                duration += program.sebs.fixed_s[seb] * scale.fixed[name]
            times.ready_s[seb], times.start_s[seb] = free[pe], free[pe]
            times.end_s[seb] = free[pe] + duration
            free[pe] = times.end_s[seb]
