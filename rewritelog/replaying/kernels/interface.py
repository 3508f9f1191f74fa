"""The data structures of the replay kernels: columns of SEBs and messages, links, delays.

SEBs are numbered over the whole log set, PE by PE in the order of their timelines, and messages in
the order of the SEBs that send them.
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
"""Values in place of a starting message: the SEB has none, or no SEB sends it."""

BY_ITSELF, BY_PREVIOUS, BY_DEPENDENCY, BY_MESSAGE = range(4)
"""The kind of the last input of a SEB; of simultaneous inputs the kind listed last wins."""


class SebColumns(NamedTuple):
    """The columns of the SEBs of a block, in its order."""

    scaled_s: Floats
    """The part of the duration that a dilation scales."""
    fixed_s: Floats
    """The part of the duration that a model predicts; empty without a model."""
    name: Numbers
    flags: Bytes
    source: Numbers
    """The PE that sends the starting message."""
    number: Numbers
    """The `msgID` of the starting message, −1 for none."""
    messages: Numbers
    """The number of messages that it sends."""
    dependencies: Numbers
    """The number of SEBs of its timeline that it waits for."""


class MessageColumns(NamedTuple):
    """The columns of the messages of a block; send times are offsets in their SEBs."""

    scaled_s: Floats
    fixed_s: Floats
    transit_s: Floats
    """The recorded `recvTime − sendTime`."""
    size_bytes: Numbers
    number: Numbers
    node: Numbers
    worker: NDArray[np.int16]


class RegionColumns(NamedTuple):
    """The columns of the middle regions that are paired with a param record."""

    seb: Numbers
    """The SEB's row in its block, and after loading its number in the log set."""
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
"""The data of a SEB that a replay reads, in one row: a replay jumps from PE to PE, and each further
array would be another cache miss."""

MESSAGE_ROW = np.dtype(
    [
        ("scaled_s", np.float64),
        ("transit_s", np.float64),
        ("size_bytes", np.int32),
        ("first_receiver", np.int32),
    ],
    align=True,
)
"""The data of a message that a replay reads, in one row."""

OFFSET_ROW = np.dtype([("scaled_s", np.float64), ("unused", np.uint8)], align=True)
"""A `scaled_s` column that replaces that of a table: kernels are compiled for strided columns."""

STATE_ROW = np.dtype([("ready_s", np.float64), ("missing", np.int32), ("pe", np.int32)], align=True)
"""The state of a SEB in a replay: its latest input so far, and the number of missing inputs."""

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
"""The state of a SEB together with its recorded times and cause."""


class Sebs(NamedTuple):
    """All SEBs of a log set; columns of a table of `SEB_ROW`, and some separate arrays."""

    scaled_s: Floats
    fixed_s: Floats
    name: Numbers
    pe: Numbers
    flags: Bytes
    starter: Numbers
    """The number of the starting message, `NO_MESSAGE` or `NOT_SENT`."""
    first_message: Numbers
    """The first message of each SEB; shape (SEBs + 1,)."""
    first_dependency: Numbers
    """The first entry of each SEB in `dependencies`; shape (SEBs + 1,)."""
    dependencies: Numbers
    """The SEBs that are waited for, as indices in the timeline."""
    first_of_pe: Numbers
    """The first SEB of each PE; shape (PEs + 1,)."""


class Messages(NamedTuple):
    """All messages of a log set; columns of a table of `MESSAGE_ROW`, and two separate arrays."""

    scaled_s: Floats
    fixed_s: Floats
    transit_s: Floats
    size_bytes: Numbers
    first_receiver: Numbers
    """The first entry of each message in `receivers`; shape (messages + 1,)."""
    receivers: Numbers
    """The SEBs that messages start."""


def sebs_of(table: Table, fixed_s: Floats, dependencies: Numbers, first_of_pe: Numbers) -> Sebs:
    """Return the columns of a table of SEBs, whose additional last row ends their lists."""
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
    """Return the columns of a table of messages, with an additional last row as that of SEBs."""
    return Messages(
        table["scaled_s"][:-1],
        fixed_s,
        table["transit_s"][:-1],
        table["size_bytes"][:-1],
        table["first_receiver"],
        receivers,
    )


class Dependents(NamedTuple):
    """The inverse of the dependencies: the SEBs that wait for each SEB."""

    first: Numbers
    """The first entry of each SEB in `sebs`; shape (SEBs + 1,)."""
    sebs: Numbers


class Program(NamedTuple):
    """Everything that happens in a run, without its times."""

    sebs: Sebs
    messages: Messages
    dependents: Dependents


class Scale(NamedTuple):
    """The factors of durations, one for each SEB name."""

    scaled: Floats
    fixed: Floats


class Delays(NamedTuple):
    """The network model: the delays of messages between PEs, in seconds and bytes."""

    recorded: bool
    """Whether messages between nodes keep their recorded transit times."""
    latency_s: float
    bandwidth_bytes_per_s: float
    cost_per_packet_s: float
    packet_bytes: float
    """0 without a cost per packet."""
    node_latency_s: float
    workers: int
    """The number of worker threads per node."""


class State(NamedTuple):
    """The columns of a table of `STATE_ROW`, or the same columns of one of `RUN_ROW`."""

    ready_s: Floats
    missing: Numbers
    pe: Numbers


class Times(NamedTuple):
    """The times at which each SEB was ready, started and ended; NaN for one that never ran."""

    ready_s: Floats
    start_s: Floats
    end_s: Floats
    order: Numbers
    """The SEBs that have run, in the order in which they became ready."""


class Causes(NamedTuple):
    """The last input of each SEB, which made it ready."""

    seb: Numbers
    """The SEB that produced the last input, −1 for none."""
    kind: Bytes


class Record(NamedTuple):
    """The recorded times and causes of SEBs, if they are wanted."""

    wanted: bool
    times: Times
    causes: Causes


def state_of(table: Table) -> State:
    """Return the columns of a table of `STATE_ROW` or `RUN_ROW` that every replay needs."""
    return State(table["ready_s"], table["missing"], table["pe"])


def times_of(table: Table, order: Numbers) -> Times:
    """Return the columns with times of a table of `RUN_ROW`."""
    return Times(table["ready_s"], table["start_s"], table["end_s"], order)


def record_of(table: Table, order: Numbers, *, wanted: bool = True) -> Record:
    """Return the columns of a table of `RUN_ROW` that a replay fills in if they are `wanted`."""
    return Record(wanted, times_of(table, order), Causes(table["cause"], table["kind"]))
