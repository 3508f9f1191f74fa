"""The input of replays: all SEBs and messages of a log set as columns, with their links.

SEBs are numbered over the whole log set, PE by PE in the order of their timelines, and messages in
the order of the SEBs that send them. One reading gives the links, and the times of each rewrite of
the logs that is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from rewritelog.arrays import Floats, Ints, Table
from rewritelog.errors import spelled
from rewritelog.models.base import EventKey
from rewritelog.replaying.network import Network
from rewritelog.text import count_text

if TYPE_CHECKING:
    from rewritelog.replaying.replay import ReplayedRun, ReplayedTime

Numbers: TypeAlias = NDArray[np.signedinteger[Any]]
"""Numbers of SEBs, messages, PEs and names, of 32 bits where they are kept."""

NO_MESSAGE, NOT_SENT = -1, -2
"""Values in place of a starting message: the SEB has none, or no SEB sends it."""

_NONE, _EMPTY = np.zeros(0, dtype=np.int32), np.zeros(0)


class Sebs(Struct, frozen=True):
    """The columns of all SEBs."""

    name: Numbers
    pe: Numbers
    starter: Numbers
    """The number of the starting message, `NO_MESSAGE` or `NOT_SENT`."""
    inputs: Numbers
    """How many inputs each SEB waits for: its message, its dependencies, the SEB before it."""
    links: Table
    """The first message of each SEB, and its first entry in `waiting`; shape (SEBs + 1,)."""
    waiting: Numbers
    """The SEBs that wait for the end of each; as −1 − SEB if only because they come next."""
    first_of_pe: Numbers
    """The first SEB of each PE; shape (PEs + 1,)."""

    def __len__(self) -> int:
        return len(self.pe)

    @property
    def first_message(self) -> Numbers:
        """The first message of each SEB; shape (SEBs + 1,)."""
        first: Numbers = self.links["first_message"]
        return first

    def senders(self, message: Numbers) -> Ints:
        """Return the SEBs that send messages."""
        return np.searchsorted(self.first_message, message, side="right") - 1

    def waits(self, low: int, high: int) -> tuple[Ints, Ints]:
        """Return pairs: a SEB from `low` to before `high`, and a SEB that waits for its end."""
        first = self.links["first_waiting"][low : high + 1]
        waiting = self.waiting[first[0] : first[-1]].astype(np.int64)
        return np.repeat(np.arange(low, high), np.diff(first)), np.maximum(waiting, -1 - waiting)


class Messages(Struct, frozen=True):
    """The columns of all messages."""

    size_bytes: Numbers
    number: Numbers
    """The number of each message on its PE."""
    first_receiver: Numbers
    """The first entry of each message in `receivers`; shape (messages + 1,)."""
    receivers: Numbers
    """The SEBs that messages start."""

    def __len__(self) -> int:
        return len(self.size_bytes)


class PairedRegions(Struct, frozen=True):
    """The columns of the middle regions that are paired with a param record, by their SEB."""

    seb: Numbers
    event: Numbers


class Seconds(NamedTuple):
    """The times in logs as they are, or as a rewrite would write them."""

    of_sebs: Floats
    """The duration of each SEB."""
    until_sent: Floats = _EMPTY
    """From the start of its SEB until each message leaves."""
    in_transit: Floats = _EMPTY
    """The recorded `recvTime − sendTime` of each message."""
    until_regions: Floats = _EMPTY
    """From the start of its SEB until each middle region begins."""
    in_regions: Floats = _EMPTY
    """The length of each middle region."""

    @np.errstate(over="ignore", invalid="ignore")  # by extreme dilations, which a replay refuses
    def interpolated(self, other: Seconds, share: float) -> Seconds:
        """Interpolate by a share from these times to others; extrapolate below 0 and above 1."""
        pairs = zip(self, other, strict=True)
        interpolated = Seconds(*(begin + share * (end - begin) for begin, end in pairs))
        return interpolated._replace(in_transit=self.in_transit)


DEVICE, HOST, NETWORK = range(3)
"""Where the nodes of a lane run."""


class Lanes(NamedTuple):
    """The threads, streams and networks of traces, on which nodes run; arrays of equal length."""

    rank: Ints
    where: Ints
    """`DEVICE`, `HOST` or `NETWORK`."""
    track: NDArray[np.str_]
    """The name of each within its rank."""

    @property
    def names(self) -> list[str]:
        """The name of each, with its rank."""
        lanes = zip(self.rank.tolist(), self.track.tolist(), strict=True)
        return [f"rank {rank} {track}" for rank, track in lanes]

    @property
    def computing(self) -> NDArray[np.bool_]:
        """Whether each is a thread or stream, not a network."""
        return np.not_equal(self.where, NETWORK, dtype=np.bool_)


class Transfers(NamedTuple):
    """The collectives, sends and receives of traces, and the steps that each takes on a network."""

    seb: Numbers
    steps: Floats
    """The number of steps, one after the other."""
    step_bytes: Floats


class Nodes(Struct, frozen=True):
    """What only the workload of traces has."""

    lanes: Lanes
    """In place of PEs."""
    transfers: Transfers
    """How long communication takes, unless it is as recorded."""
    parts: Table
    """The core's struct `collective_part` for each SEB."""
    ranks: Ints
    """The number of ranks of each collective."""
    recorded: bool
    """Whether the lanes are for communication as recorded, not on a network."""
    names: tuple[str, ...]
    """The distinct names of nodes of the types that get new durations."""
    seb: Numbers
    """The SEB of each node, rank by rank."""
    first: Mapping[int, int]
    """The first node of each rank."""
    absent: str
    """A phrase for the ranks that are missing, empty if there are none."""
    received: Numbers
    """The SEBs that receive messages; as recorded they take no time, since the sends take it."""
    missing: int
    """The number of data dependencies on nodes that are not there."""
    ignored: int
    """The number of control dependencies, if some are on nodes that are not there."""
    absent_control: int
    """The number of those that are."""
    on_device: int
    """The number of nodes that compute on devices."""
    leaves: int
    """The number of those that nothing depends on; 0 without nodes on hosts, which might."""
    unmatched: int
    """The number of messages received that no rank sends."""
    mismatched: int
    """The number of collectives that are not of one type and size on all ranks."""
    overridden: int
    """The number of nodes with new durations that take the time of the network instead."""

    def equalise(self, seconds: Floats) -> None:
        """Give all parts of a collective the shortest of their durations, in place.

        The others are longer by the wait for the last rank, which a replay adds.
        """
        part = np.flatnonzero(self.parts["next"] != np.arange(len(self.parts)))
        collective, of_collective = self.parts["collective"][part], np.empty(len(self.ranks))
        of_collective[collective] = seconds[part]
        np.minimum.at(of_collective, collective, seconds[part])
        seconds[part] = of_collective[collective]

    def places_of(self, seb: Numbers) -> tuple[Ints, Ints]:
        """Return the rank of each SEB's node, and the index of the node there."""
        node = np.argsort(self.seb)[seb]
        ranks, first = np.array([*self.first.items()]).T
        rank = np.searchsorted(first, node, side="right") - 1
        return ranks[rank], node - first[rank]

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what utilisation refers to, and how collectives are replayed, if there are any."""
        computing = int(np.count_nonzero(self.lanes.computing))
        threads = count_text(computing, "thread or stream", "threads and streams")
        utilised = f"utilisation is that of {threads}"
        if not len(self.ranks):
            return (utilised,)
        how = "as recorded" if self.recorded else "as rings and trees without congestion"
        count = count_text(len(self.ranks), "collective")
        return (utilised, f"{count}, {how}: a simulator knows better")

    def warnings(self, stalls: int) -> Iterator[str]:
        """Yield what the traces lack, a sentence each."""
        if self.absent:
            yield f"{self.absent}: nothing waits for what is missing"
        if self.missing:
            deps = count_text(self.missing, "dependency")
            yield f"{deps} on nodes that are not there: ignored"
        if self.ignored:
            control = count_text(self.ignored, "control dependency")
            of_them = "is" if self.absent_control == 1 else "are"
            why = f"{of_them} on nodes that are not there, for which newer simulators end"
            yield f"{control} ignored: {self.absent_control:,} {why} (`rewritelog check`)"
        if self.leaves > self.on_device / 2:
            leaves, nodes = f"{self.leaves:,}", count_text(self.on_device, "node")
            why = "unless they end last, new durations for them change nothing"
            yield f"nothing depends on {leaves} of {nodes} on devices: {why} (`rewritelog check`)"
        if self.unmatched:
            received = count_text(self.unmatched, "message")
            yield f"{received} received that no rank sends: not waited for"
        if self.mismatched:
            collectives = count_text(self.mismatched, "collective")
            used = "the type of the lowest rank and the largest size are used; " * (
                not self.recorded
            )
            why = "a simulator may never end (`rewritelog check` says where it would not)"
            yield f"{collectives} whose type or size differs between ranks: {used}{why}"
        if self.overridden:
            nodes = count_text(self.overridden, "node communicates", "nodes communicate")
            instead = "the network's time for them, not their new durations"
            yield f"{nodes}: the run time has {instead}"
        alone = int(np.count_nonzero(self.ranks == 1))
        if alone and not self.recorded:
            collectives = count_text(alone, "collective")
            ranks = "in no time: give the traces of all ranks"
            yield f"{collectives} of one rank only, {ranks}"
        if stalls:
            times = count_text(stalls, "time")
            waited = f"ranks waited in collectives for others that did not come ({times})"
            yield f"{waited}: a simulator never ends, here they went on with their next ones"


_NO_MESSAGES = Messages(_NONE, _NONE, np.zeros(1, dtype=np.int32), _NONE)
_NO_REGIONS = PairedRegions(_NONE, _NONE)


class Workload(Struct, frozen=True):
    """Logs or traces that have been loaded for any number of replays."""

    sebs: Sebs
    seconds: tuple[Seconds, ...]
    """The times of each rewrite that was asked for."""
    messages: Messages = _NO_MESSAGES
    regions: PairedRegions = _NO_REGIONS
    names: tuple[str, ...] = ()
    """The distinct names of SEBs."""
    events: tuple[str, ...] = ()
    """The events of the middle regions."""
    workers: int = 1
    """The number of worker threads per node."""
    recorded_s: float = 0.0
    """The latest end of a SEB in the log."""
    exec_differing: int = 0
    """The number of SEBs whose `execTime` is not `endTime − startTime`."""
    not_sent: Numbers = field(default_factory=lambda: _NONE.reshape(0, 3))
    """SEBs whose starting message no SEB sends, with its PE and number; shape (…, 3)."""
    beyond: Numbers = field(default_factory=lambda: _NONE.reshape(0, 2))
    """SEBs that depend on one that their timeline does not have, and its index; shape (…, 2)."""
    repeated_numbers: int = 0
    """The number of messages with a number that their PE had used before; the first one counts."""
    asked: Collection[str] = ()
    """The events that the model was asked for."""
    uncovered: Mapping[EventKey, int] = {}
    """How many param records or nodes of each event the model does not cover."""
    unused: Counter[str] = field(default_factory=Counter)
    """How many param lines are `malformed`, and records `unpaired`, since no bracket belongs to
    them, or `of_no_length`, as their SEBs are."""
    nodes: Nodes | None = None
    """What only traces have; None for logs."""

    @property
    def pes(self) -> int:
        """The number of PEs."""
        return len(self.sebs.first_of_pe) - 1

    def places_of(self, seb: Numbers) -> tuple[Ints, Ints]:
        """Return the PEs of SEBs, or ranks of nodes, and the indices of the SEBs or nodes there."""
        if self.nodes is not None:
            return self.nodes.places_of(seb)
        pe = self.sebs.pe[seb].astype(np.int64)
        return pe, seb - self.sebs.first_of_pe[pe]

    def name_of(self, seb: int) -> str:
        """Return the name of a SEB."""
        return self.names[int(self.sebs.name[seb])]

    def warnings(
        self, networks: Collection[Network], runs: Collection[ReplayedRun | ReplayedTime]
    ) -> list[str]:
        """Return the warnings of replays over some networks."""
        recorded = any(network.recorded for network in networks)
        warnings = list[str]()
        if never_ran := max(run.never_ran for run in runs):
            of_all = count_text(len(self.sebs), "SEB" if self.nodes is None else "node")
            never = f"{never_ran:,} of {of_all} never ran"
            warnings.append(f"{never}: not included in the predicted run time")
        if self.nodes is not None:
            warnings += self.nodes.warnings(max(run.stalls for run in runs))
            seb = self.nodes.transfers.seb[self.nodes.transfers.steps > 0]
            takes_time = any(seconds.of_sebs[seb].any() for seconds in self.seconds)
            if self.nodes.recorded and len(seb) and not takes_time:
                given = f"{spelled('latency')} and {spelled('bandwidth')}"
                why = "since none is recorded"
                warnings.append(f"communication takes no time, {why}: give {given}")
        if self.repeated_numbers:
            warnings.append(
                f"{count_text(self.repeated_numbers, 'message')} with the number of an "
                "earlier one of the same PE; the first message of each number is used"
            )
        if self.exec_differing:
            sebs = count_text(self.exec_differing, "SEB")
            warnings.append(
                f"{sebs} whose execTime is not endTime − startTime: a recorded duration is the "
                "former, 0 in unclosed SEBs, and a new one is made from the latter (`rewritelog "
                "check` says where)"
            )
        negative = np.count_nonzero(~(self.seconds[0].in_transit >= 0))
        if negative and recorded:
            warnings.append(
                f"{count_text(int(negative), 'message')} with an invalid transit time "
                f"(received before sent), delivered immediately by {spelled('network', 'log')}"
            )
        return [*warnings, *self.without_effect(networks)]

    def without_effect(self, networks: Collection[Network]) -> Iterator[str]:
        """Yield a warning for each quantity of the networks that affects no message."""
        near = spelled("node_latency")
        if self.workers == 1 and any(network.node_latency for network in networks):
            one = "each node of the logs has one PE" if self.nodes is None else "it is for logs"
            yield f"{near} has no effect: {one}"
        if 1 < self.pes <= self.workers and not all(network.recorded for network in networks):
            yield f"all PEs of the logs are on one node: of the network only {near} has an effect"


def grouped(keys: Numbers, values: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """Group values by keys below `count`; return where each key's values begin, and the values.

    The first result has one more element, the end of the last group.
    """
    first = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(np.bincount(keys, minlength=count), out=first[1:])
    return first, values[np.argsort(keys, kind="stable")]
