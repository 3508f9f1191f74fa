"""The times of collectives on a network with latency and bandwidth alone (Hockney's α and β).

A ring of p ranks: an all-gather, a reduce-scatter or an all-to-all of n bytes takes p − 1 steps of
n/p bytes, an all-reduce twice that. A binomial tree: the others take ⌈log2 p⌉ steps of n bytes.
Nothing else is in it: no congestion, no topology, no overlap of chunks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rewritelog.formats.traces import Traces
from rewritelog.replaying.network import Network
from rewritelog.replaying.simulate import delays_s

_ALL_REDUCE, _BARRIER = 0, 9
_RING = {2, 6, 7, 8}
"""All-gather, all-to-all and the two forms of reduce-scatter, by `comm_type`."""


@dataclass(frozen=True)
class Kind:
    """The types of nodes that communicate, as indices into the types of the traces."""

    collective: int
    send: int
    receive: int

    @classmethod
    def of(cls, traces: Traces) -> Kind:
        """Return those of a format."""
        return cls(*map(traces.types.index, traces.communicating))


@dataclass(frozen=True)
class Collective:
    """A collective."""

    kind: float
    """The attribute `comm_type`; NaN counts as an all-reduce."""
    size_bytes: float
    ranks: int


def seconds_of(collective: Collective, network: Network) -> float:
    """Return how long a collective takes; 0 for a single rank."""
    ranks, size = collective.ranks, collective.size_bytes
    if ranks < 2:
        return 0.0
    if collective.kind in _RING or collective.kind == _ALL_REDUCE or math.isnan(collective.kind):
        steps = ranks - 1 if collective.kind in _RING else 2 * (ranks - 1)
        return steps * _delay_s(network, size / ranks)
    return math.ceil(math.log2(ranks)) * _delay_s(
        network, 0.0 if collective.kind == _BARRIER else size
    )


def _delay_s(network: Network, size_bytes: float) -> float:
    return float(delays_s(network, np.array([size_bytes]))[0])
