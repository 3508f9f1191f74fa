"""The replay and its categories in plain Python, straight from their definitions."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from rewritelog import open_logs
from rewritelog.replaying.network import Network

MESSAGE, DEPENDENCY, PREVIOUS = 3, 2, 1


@dataclass
class Seb:
    """A SEB with its inputs, and when it was ready, ran and by what."""

    pe: int
    index: int
    name: str
    duration: float
    starter: tuple[int, int] | None
    dependencies: list[int]
    waits_for_previous: bool
    sends: list[dict[str, Any]]
    inputs: list[tuple[float, int, int, Any, float]] = field(default_factory=list)
    """Time, kind, order of the source, the source, when it left the source."""
    ready: float = math.nan
    start: float = math.nan
    end: float = math.nan
    order: int = -1

    @property
    def ran(self) -> bool:
        return self.order >= 0

    @property
    def last_input(self) -> tuple[float, int, int, Any, float] | None:
        return max(self.inputs, key=lambda entry: entry[:3]) if self.inputs else None


@dataclass
class SlowReplay:
    """A replay of a log folder."""

    timelines: list[list[Seb]]
    workers: int
    network: Network
    factor: float = 1.0

    @classmethod
    def of(cls, folder: Path, network: Network | None = None, factor: float = 1.0) -> SlowReplay:
        logs = open_logs(folder)
        timelines = []
        for pe in logs.pes:
            timeline = logs.timeline(pe)
            sends: dict[int, list[dict[str, float]]] = defaultdict(list)
            for row in timeline.messages:
                seb = timeline.sebs[row["seb"]]
                sends[int(row["seb"])].append(
                    {
                        "number": int(row["msg_id"]),
                        "size": int(row["size"]),
                        "offset": float(row["send_time"]) - float(seb["start_time"]),
                        "transit": float(row["recv_time"]) - float(row["send_time"]),
                    }
                )
            back: dict[int, list[int]] = defaultdict(list)
            for row in timeline.dependencies:
                if not row["forward"]:
                    back[int(row["seb"])].append(int(row["other"]))
            timelines.append([cls._seb(pe, row, sends, back) for row in timeline.sebs])
        replay = cls(timelines, logs.summary.num_wth, network or Network(), factor)
        replay.run()
        return replay

    @staticmethod
    def _seb(pe: int, row: Any, sends: Any, back: Any) -> Seb:
        index = int(row["seb"])
        depends, by_message = bool(back[index]), int(row["msg_id"]) >= 0
        follows = not by_message and (not depends or float(row["recv_time"]) != -1.0)
        closed = float(row["end_time"]) >= float(row["start_time"])
        return Seb(
            pe,
            index,
            row["name"].decode(),
            float(row["exec_time"]) if closed else 0.0,
            (int(row["src_pe"]), int(row["msg_id"])) if by_message else None,
            back[index],
            follows and index > 0,
            sends[index],
        )

    @property
    def sebs(self) -> list[Seb]:
        return [seb for line in self.timelines for seb in line]

    def delay(self, message: dict[str, float], sender: int, to: int) -> float:
        if sender == to:
            return 0.0
        network = self.network
        if sender // self.workers == to // self.workers:
            return network.node_latency
        if network.recorded:
            return max(message["transit"], 0.0)
        bandwidth = network.bandwidth or math.inf
        packets = 0.0
        if network.packet_size:
            packets = max(math.ceil(message["size"] / network.packet_size), 1)
        return (
            (network.latency or 0.0)
            + message["size"] / bandwidth
            + network.cost_per_packet * packets
        )

    def needed(self, seb: Seb) -> int:
        return len(seb.dependencies) + (seb.starter is not None) + seb.waits_for_previous

    def run(self) -> None:
        numbers: set[tuple[int, int]] = set()
        for seb in self.sebs:
            for message in seb.sends:
                key = (seb.pe, int(message["number"]))
                message["counts"] = key not in numbers
                numbers.add(key)
        free: dict[int, float] = defaultdict(float)
        step = 0
        while True:
            candidates = [
                seb for seb in self.sebs if not seb.ran and len(seb.inputs) == self.needed(seb)
            ]
            if not candidates:
                return
            for seb in candidates:
                seb.ready = max((entry[0] for entry in seb.inputs), default=0.0)
            seb = min(
                candidates, key=lambda candidate: (candidate.ready, candidate.pe, candidate.index)
            )
            seb.start = max(seb.ready, free[seb.pe])
            seb.end = seb.start + seb.duration * self.factor
            free[seb.pe] = seb.end
            seb.order = step
            step += 1
            self._give(seb)

    def _give(self, seb: Seb) -> None:
        for message in seb.sends:
            offset = min(max(message["offset"], 0.0), seb.duration) * self.factor
            sent = min(seb.start + offset, seb.end)
            for to in self.sebs:
                if to.starter == (seb.pe, message["number"]) and message["counts"]:
                    arrived = sent + self.delay(message, seb.pe, to.pe)
                    to.inputs.append((arrived, MESSAGE, seb.order, seb, sent))
        for to in self.timelines[seb.pe]:
            for other in to.dependencies:
                if other == seb.index:
                    to.inputs.append((seb.end, DEPENDENCY, seb.order, seb, seb.end))
            if to.waits_for_previous and to.index == seb.index + 1:
                to.inputs.append((seb.end, PREVIOUS, seb.order, seb, seb.end))

    @property
    def run_time(self) -> float:
        return max((seb.end for seb in self.sebs if seb.ran), default=0.0)

    def categories(self) -> dict[str, float]:
        """PE-seconds by category, looked up in the middle of each interval without any change."""
        ran = [seb for seb in self.sebs if seb.ran]
        moments = {0.0, self.run_time}
        for seb in ran:
            moments |= {seb.ready, seb.start, seb.end}
            moments |= {entry[4] for entry in seb.inputs}
        total: dict[str, float] = defaultdict(float)
        for low, high in pairwise(sorted(moments)):
            middle = low + (high - low) / 2
            busy = sum(seb.start <= middle < seb.end for seb in ran)
            for pe in range(len(self.timelines)):
                total[self._category(pe, middle, busy)] += high - low
        return total

    def _category(self, pe: int, time: float, busy: int) -> str:
        mine = sorted((seb for seb in self.timelines[pe] if seb.ran), key=lambda seb: seb.order)
        if any(seb.start <= time < seb.end for seb in mine):
            return "busy"
        if not mine or time < mine[0].start:
            return "start"
        if time >= max(seb.end for seb in mine):
            return "end"
        seb = next(seb for seb in mine if seb.start > time)
        while True:
            last = seb.last_input
            assert last is not None
            source, left = last[3], last[4]
            if left <= time < seb.ready:
                return "communication"
            if source.start <= time < source.end:
                return "insufficient parallelism" if busy == 1 else "synchronisation"
            if source.ready <= time < source.start:
                return "load imbalance"
            seb = source
