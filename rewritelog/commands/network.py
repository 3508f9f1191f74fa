"""The options of the network that messages take in a replay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, TypeAlias

from rewritelog.errors import UsageError
from rewritelog.options import As, Kind, Options, PathLike, Quantity, option

if TYPE_CHECKING:
    from rewritelog.replaying.network import Network

NetworkLike: TypeAlias = Annotated["Network | str", Kind(read=str)]
Machine: TypeAlias = Annotated[
    As["PathLike | None", "Network | None"], Kind("replaying.network:to_machine", str, use="input")
]
"""A machine file, or the name of one that rewritelog has."""
NETWORK = "Network"
"""The heading of these options in the help."""
QUANTITIES = ("latency", "bandwidth", "cost_per_packet", "packet_size", "node_latency")


class NetworkOptions(Options, group=NETWORK):
    """A network: a `Network`, a machine file, or its quantities, as numbers or with units."""

    network: NetworkLike | None = option(
        "log: each message keeps its recorded transit time [default without --latency, "
        "--bandwidth and --machine].",
        default=None, metavar="log", rare=True,
    )  # fmt: skip
    machine: Machine = option(
        "A machine by name, as in alps, or its TOML file; other options override it.",
        default=None, metavar="FILE",
    )  # fmt: skip
    latency: Quantity | None = option(
        "Latency between nodes, as in 1us.", default=None, metavar="TIME"
    )
    bandwidth: Quantity | None = option(
        "Bandwidth between nodes, as in 10GB/s.", default=None, metavar="RATE"
    )
    cost_per_packet: Quantity | None = option(
        "Time for each packet.", default=None, metavar="TIME", rare=True
    )
    packet_size: Quantity | None = option(
        "Size of a packet.", default=None, metavar="SIZE", rare=True
    )
    node_latency: Quantity | None = option(
        "Latency from one worker thread of a node to another [default: 0].",
        default=None, metavar="TIME", rare=True,
    )  # fmt: skip

    def read_network(self, swept: Mapping[str, str] | None = None) -> Network:
        """Return the network.

        `swept` has quantities that a sweep replaces at each point, by the names of the options.
        """
        from rewritelog.replaying.network import Network

        named = {name.replace("_", "-"): getattr(self, name) for name in QUANTITIES}
        quantities = {name: value for name, value in named.items() if value is not None}
        if isinstance(self.network, Network):
            if quantities or self.machine is not None:
                raise UsageError("give a Network, or its quantities, not both")
            return self.network
        if self.network is not None and str(self.network) != "log":
            raise UsageError(
                f"--network must be log, not {self.network!r}; --latency describes other networks"
            )
        for name in ("machine", *QUANTITIES[:-1]):  # a node's latency is none of the log's
            if self.network == "log" and getattr(self, name) is not None:
                raise UsageError(f"--network log takes no --{name.replace('_', '-')}")
        base = self.machine or Network()
        return base.with_quantities({**(swept or {}), **quantities})

    @property
    def describes_network(self) -> bool:
        """Whether any option is given."""
        names = ("network", "machine", *QUANTITIES)
        return any(getattr(self, name) is not None for name in names)
