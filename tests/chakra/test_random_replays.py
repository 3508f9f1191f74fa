"""Replays of random Chakra traces, against a replay that looks at every node at every time."""

import math
import random
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path

import pytest
from chakrabuilder import COLL, COMP, RECV, SEND, node, write_traces

import rewritelog
from rewritelog.commands.runs import ReplayOptions
from rewritelog.replaying.network import Network
from rewritelog.replaying.replay import Case, prepare, replay_workload

NETWORKS = (Network(), Network(latency=1e-6, bandwidth=1e9))
GROUPS = {"abc": (0, 1, 2), "ab": (0, 1), "bc": (1, 2), "ac": (0, 2)}


@dataclass(eq=False)
class Node:
    """A node of one of three ranks, in microseconds and kilobytes."""

    rank: int
    number: int
    kind: int
    place: str
    duration: int
    deps: list[int]
    control: list[int]
    key: Hashable
    """What the parts of a collective, or a send and its receive, have in common."""
    size: int

    def written(self) -> bytes:
        attributes: dict[str, tuple[str, object]] = {
            "is_cpu_op": ("bool", self.place == "cpu"),
            "comm_size": ("int64", 1000 * self.size),
        }
        if self.kind == COLL:
            attributes["pg_name"] = ("string", str(self.key).split()[0])
        elif self.kind != COMP:
            end, step = ("dst", 1) if self.kind == SEND else ("src", -1)
            attributes[f"comm_{end}"] = ("int64", (self.rank + step) % 3)
            attributes["comm_tag"] = ("int64", self.key)
        return node(
            self.number,
            "n",
            self.duration,
            kind=self.kind,
            deps=self.deps,
            control=self.control,
            attributes=attributes,
        )


def random_ranks(seed: int, longest: int, unit: int) -> list[list[Node]]:
    """Make ranks that compute, communicate in groups, and send messages around a ring.

    Durations and kilobytes are multiples of `unit`: if they are few, nodes are often ready at the
    same time.
    """
    draw, used = random.Random(seed), Counter[str]()  # noqa: S311 - no secrets
    ranks: list[list[Node]] = [[], [], []]

    def add(rank: int, kind: int, place: str, key: Hashable = None, size: int = 0) -> None:
        own = ranks[rank]
        deps, control = (
            [other.number for other in own[-6:] if draw.random() < share] for share in (0.2, 0.1)
        )
        number = 10 * len(own) + draw.randrange(1, 10)
        duration = unit * draw.randint(1, longest)
        own.append(Node(rank, number, kind, place, duration, deps, control, key, size))

    for _ in range(draw.randint(5, 60)):
        size = unit * draw.randint(1, longest // 10 + 1)
        kind = draw.choices((COMP, COLL, SEND), (5, 3, 2))[0]
        group, rank = draw.choice([*GROUPS]), draw.randrange(3)
        if kind == COMP:
            add(rank, COMP, draw.choice(("cpu", "device")))
        elif kind == COLL:
            for part in draw.sample(GROUPS[group], len(GROUPS[group])):
                add(part, COLL, "network", f"{group} {used[group]}", 6 * size)
            used[group] += 1
        else:
            add(rank, SEND, "network", used["tag"], size)
            add((rank + 1) % 3, RECV, "receives", used["tag"], size)
            used["tag"] += 1
    return ranks


class SlowReplay:
    """A replay in steps of time, without queues."""

    def __init__(self, ranks: list[list[Node]], network: Network) -> None:
        self.nodes = [each for rank in ranks for each in rank]
        self.network = network
        numbers = {(each.rank, each.number): each for each in self.nodes}
        sends = {each.key: each for each in self.nodes if each.kind == SEND}
        self.waits = {
            each: [numbers[each.rank, number] for number in (*each.deps, *each.control)]
            + ([sends[each.key]] if each.kind == RECV else [])
            for each in self.nodes
        }
        self.parts = {
            each: [other for other in self.nodes if other.kind == COLL and other.key == each.key]
            if each.kind == COLL
            else [each]
            for each in self.nodes
        }
        self.free = {self.lane(each): 0.0 for each in self.nodes}
        self.begun, self.freed, self.stalls = dict[Node, float](), set[Hashable](), 0
        self.starts, self.ends = dict[Node, float](), dict[Node, float]()

    def lane(self, one: Node) -> Hashable:
        group = str(one.key).split()[0] if one.kind == COLL else one.kind
        return one.rank, one.place, group if self.network.recorded else ""

    def took(self, one: Node) -> float:
        if one.kind == RECV:
            return 0.0
        parts = self.parts[one]
        if self.network.recorded or one.kind == COMP:
            return min((part.duration for part in parts if part.duration), default=0.0)
        return (2 * (len(parts) - 1) if one.kind == COLL else 1) * (1 + one.size / len(parts))

    def ready_at(self, one: Node) -> float:
        return max((self.ends.get(other, math.inf) for other in self.waits[one]), default=0.0)

    def takeable(self, now: float) -> list[Node]:
        """Return the nodes that wait for nothing but their lane, in the order of preference.

        At the same time, lanes for which nodes wait come last: receives may make others ready.
        """
        ready = [each for each in self.nodes if each not in self.begun]
        ready = [each for each in ready if self.ready_at(each) <= now]
        late = {self.lane(each) for each in ready if self.ready_at(each) < now} | self.freed
        return sorted(
            ready, key=lambda each: (self.lane(each) in late, each.rank, self.order(each))
        )

    def order(self, one: Node) -> tuple[bool, bool, bool, bool, int]:
        """Return what orders the lanes of a rank, and the nodes of a lane."""
        is_last = one.place == "network" and not (self.network.recorded and one.kind == SEND)
        return (
            is_last,
            one.place == "receives",
            one.place == "network",
            one.place == "cpu",
            one.number,
        )

    def begin(self, one: Node, now: float) -> None:
        self.begun[one] = now
        self.free[self.lane(one)] = math.inf
        if self.begun.keys() >= {*self.parts[one]}:
            for part in self.parts[one]:
                lane, end = self.lane(part), now + self.took(part)
                self.starts[part], self.ends[part] = now, end
                self.free[lane] = end if math.isinf(self.free[lane]) else max(self.free[lane], end)

    def run(self) -> None:
        now = 0.0
        while True:
            while free := [
                each for each in self.takeable(now) if self.free[self.lane(each)] <= now
            ]:
                self.begin(free[0], now)
            later = [end for end in self.ends.values() if end > now]
            if later:
                now, self.freed = min(later), set()
                continue
            self.freed = {self.lane(each) for each in self.takeable(now)}
            if not self.freed:
                return
            self.stalls += 1
            known = [self.ready_at(each) for each in self.nodes]
            now = max([each for each in known if each < math.inf] + [*self.begun.values()])
            self.free |= dict.fromkeys(self.freed, now)


@pytest.mark.slow
@pytest.mark.parametrize(("longest", "unit"), [(10**6, 1), (3, 10)], ids=("any", "ties"))
@pytest.mark.parametrize("network", NETWORKS, ids=("recorded", "network"))
def test_random_traces_start_their_nodes_as_in_a_slow_replay(
    network: Network, longest: int, unit: int, tmp_path: Path
) -> None:
    stalls = Counter[int]()
    for seed in range(40):
        ranks = random_ranks(seed, longest, unit)
        slow = SlowReplay(ranks, network)
        slow.run()
        nodes = [[each.written() for each in rank] for rank in ranks]
        traces = rewritelog.open_traces(write_traces(tmp_path / str(seed), nodes))
        workload = prepare(traces, ReplayOptions(), recorded=network.recorded).workload
        run = replay_workload(workload, Case(network, workload.seconds[0]))
        assert workload.nodes is not None
        assert (run.stalls > 0) == (slow.stalls > 0)
        if slow.stalls < 2:  # later ones depend on the order within the first
            known = [slow.starts[each] for each in slow.nodes]
            assert 1e6 * run.times.start_s[workload.nodes.seb] == pytest.approx(known, rel=1e-9)
        stalls[slow.stalls] += 1
    assert min(stalls[0], stalls[1]) >= 3
