"""What the kernels of a replay take and give: columns of SEBs and messages, links, delays.

SEBs are numbered through the log set, PE after PE in the order of their timelines, and messages
in the order of the SEBs that send them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Bytes, Floats, Table

Numbers = NDArray[np.int32]

WAITS_FOR_PREVIOUS = 1
"""A flag of a SEB that cannot start before the one before it in its timeline has ended."""

NO_MESSAGE, NOT_SENT = -1, -2
"""In place of a starting message: none is needed, or it is needed and no SEB sends it."""

BY_ITSELF, BY_PREVIOUS, BY_DEPENDENCY, BY_MESSAGE = range(4)
"""Which kind of input made a SEB ready, the later ones winning where several come at one time."""


class SebColumns(NamedTuple):
    """What a block holds of SEBs, as columns in the block's order."""

    scaled_s: Floats
    """The part of the duration that a dilation scales."""
    fixed_s: Floats
    """The part that a model has given; no entries where there is no model."""
    name: Numbers
    flags: Bytes
    source: Numbers
    """The PE that sends the starting message."""
    number: Numbers
    """The starting message's `msgID`, −1 for none."""
    messages: Numbers
    """How many it sends."""
    dependencies: Numbers
    """How many SEBs of its timeline it waits for."""


class MessageColumns(NamedTuple):
    """What a block holds of messages; offsets count from their SEB's start, split as durations."""

    scaled_s: Floats
    fixed_s: Floats
    transit_s: Floats
    """The recorded `recvTime − sendTime`."""
    size_bytes: Numbers
    number: Numbers
    node: Numbers
    worker: NDArray[np.int16]


class RegionColumns(NamedTuple):
    """The middle regions that are certainly paired with a param record."""

    seb: Numbers
    """In a block the SEB's row, later its number in the log set."""
    event: Numbers
    begin_scaled_s: Floats
    begin_fixed_s: Floats
    scaled_s: Floats
    fixed_s: Floats


SEB_ROW = np.dtype(
    [
        ("scaled_s", np.float64),
        ("name", np.int32),
        ("pe", np.int32),
        ("starter", np.int32),
        ("first_message", np.int32),
        ("first_dependency", np.int32),
        ("first_dependent", np.int32),
        ("flags", np.uint8),
    ],
    align=True,
)
"""What a replay reads of a SEB, side by side: it goes from PE to PE, and each array that it looks
into there costs it a cache miss."""

MESSAGE_ROW = np.dtype(
    [
        ("scaled_s", np.float64),
        ("transit_s", np.float64),
        ("size_bytes", np.int32),
        ("first_receiver", np.int32),
    ],
    align=True,
)
"""What a replay reads of a message."""

OFFSET_ROW = np.dtype([("scaled_s", np.float64), ("unused", np.uint8)], align=True)
"""A column of `scaled_s` in place of one of those tables: kernels compile for columns of tables."""

STATE_ROW = np.dtype([("ready_s", np.float64), ("missing", np.int32), ("pe", np.int32)], align=True)
"""What is known of a SEB that has not run: its latest input so far, and how many it lacks."""

RUN_ROW = np.dtype(
    [
        *((name, STATE_ROW[name]) for name in STATE_ROW.names or ()),
        ("start_s", np.float64),
        ("end_s", np.float64),
        ("cause", np.int32),
        ("kind", np.uint8),
    ],
    align=True,
)
"""The same, and what is recorded of a SEB."""


class Sebs(NamedTuple):
    """All SEBs of a log set; columns of a table of `SEB_ROW`, but for those said to be apart."""

    scaled_s: Floats
    fixed_s: Floats
    name: Numbers
    pe: Numbers
    flags: Bytes
    starter: Numbers
    """The message that starts it, `NO_MESSAGE` or `NOT_SENT`."""
    first_message: Numbers
    """Where the messages of each SEB begin; shape (SEBs + 1,)."""
    first_dependency: Numbers
    """Where the dependencies of each SEB begin; shape (SEBs + 1,)."""
    dependencies: Numbers
    """Indices in the SEB's timeline."""
    first_of_pe: Numbers
    """The first SEB of each PE; shape (PEs + 1,)."""


class Messages(NamedTuple):
    """All messages of a log set; columns of a table of `MESSAGE_ROW`, but for two."""

    scaled_s: Floats
    fixed_s: Floats
    transit_s: Floats
    size_bytes: Numbers
    first_receiver: Numbers
    """Where the receivers of each message begin; shape (messages + 1,)."""
    receivers: Numbers
    """The SEBs that a message starts."""


def sebs_of(table: Table, fixed_s: Floats, dependencies: Numbers, first_of_pe: Numbers) -> Sebs:
    """Return the columns of a table of SEBs, which has one more row for where lists end."""
    return Sebs(
        table["scaled_s"][:-1],
        fixed_s,
        table["name"][:-1],
        table["pe"][:-1],
        table["flags"][:-1],
        table["starter"][:-1],
        table["first_message"],
        table["first_dependency"],
        dependencies,
        first_of_pe,
    )


def messages_of(table: Table, fixed_s: Floats, receivers: Numbers) -> Messages:
    """Return the columns of a table of messages, which has one more row as that of SEBs."""
    return Messages(
        table["scaled_s"][:-1],
        fixed_s,
        table["transit_s"][:-1],
        table["size_bytes"][:-1],
        table["first_receiver"],
        receivers,
    )


class Dependents(NamedTuple):
    """The dependencies seen from the SEBs that are waited for."""

    first: Numbers
    """Where the dependents of each SEB begin; shape (SEBs + 1,)."""
    sebs: Numbers


class Program(NamedTuple):
    """All that happens in a run, without its times."""

    sebs: Sebs
    messages: Messages
    dependents: Dependents


class Scale(NamedTuple):
    """What multiplies durations, a factor for each SEB name."""

    scaled: Floats
    fixed: Floats


class Delays(NamedTuple):
    """How long messages take from PE to PE, in seconds and bytes."""

    recorded: bool
    """Whether each message between nodes takes as long as was recorded."""
    latency_s: float
    bandwidth_bytes_per_s: float
    cost_per_packet_s: float
    packet_bytes: float
    """0 where packets cost nothing."""
    node_latency_s: float
    workers: int
    """Worker threads of a node."""


class State(NamedTuple):
    """The columns of a table of `STATE_ROW`, or the same ones of `RUN_ROW`."""

    ready_s: Floats
    missing: Numbers
    pe: Numbers


class Times(NamedTuple):
    """When each SEB was ready, started and ended; NaN for one that never ran."""

    ready_s: Floats
    start_s: Floats
    end_s: Floats
    order: Numbers
    """The SEBs in the order in which they became ready; as many as have run."""


class Causes(NamedTuple):
    """What made each SEB ready."""

    seb: Numbers
    """The SEB behind the input that came last, −1 for none."""
    kind: Bytes


class Record(NamedTuple):
    """What a replay records of each SEB, where it does."""

    wanted: bool
    times: Times
    causes: Causes


def state_of(table: Table) -> State:
    """Return the columns of a table of `STATE_ROW` or `RUN_ROW` that every replay needs."""
    return State(table["ready_s"], table["missing"], table["pe"])


def times_of(table: Table, order: Numbers) -> Times:
    """Return the columns of a table of `RUN_ROW` that say when SEBs ran."""
    return Times(table["ready_s"], table["start_s"], table["end_s"], order)


def record_of(table: Table, order: Numbers, *, wanted: bool = True) -> Record:
    """Return the columns of a table of `RUN_ROW` that are filled in where it is `wanted`."""
    return Record(wanted, times_of(table, order), Causes(table["cause"], table["kind"]))
