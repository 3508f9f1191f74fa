"""The options of the network that messages take in a replay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, TypeAlias

from rewritelog.errors import UsageError, spelled
from rewritelog.options import As, Kind, NumberOrText, Options, PathLike, option

if TYPE_CHECKING:
    from rewritelog.replaying.network import Network

NetworkLike: TypeAlias = Annotated["Network | str", Kind(use="text")]
Machine: TypeAlias = Annotated[
    As["PathLike | None", "Network | None"], Kind("replaying.network:to_machine")
]
"""A machine file, or the name of one that rewritelog has."""
Time: TypeAlias = Annotated[NumberOrText, Kind("units:seconds", use="text", metavar="TIME")]
Size: TypeAlias = Annotated[NumberOrText, Kind("units:size_bytes", use="text", metavar="SIZE")]
Rate: TypeAlias = Annotated[NumberOrText, Kind("units:bytes_per_s", use="text", metavar="RATE")]
NETWORK = "Network"
"""The heading of these options in the help."""
QUANTITIES = ("latency", "bandwidth", "cost_per_packet", "packet_size", "node_latency")


class NetworkOptions(Options, group=NETWORK):
    """A network: a `Network`, a machine file, or its quantities, as numbers or with units."""

    network: NetworkLike | None = option(
        "log: each message keeps its recorded transit time [default if no network is given].",
        default=None, metavar="log", rare=True,
    )  # fmt: skip
    machine: Machine = option(
        "A machine by name, as in alps, or its TOML file; other options override it.",
        default=None, complete="machine",
    )  # fmt: skip
    latency: Time = option("Latency between nodes, as in 1us.", default=None)
    bandwidth: Rate = option("Bandwidth between nodes, as in 10GB/s.", default=None)
    cost_per_packet: Time = option("Time for each packet.", default=None, rare=True)
    packet_size: Size = option("Size of a packet.", default=None, rare=True)
    node_latency: Time = option(
        "Latency from one worker thread of a node to another [default: 0].",
        default=None, rare=True, for_traces=False,
    )  # fmt: skip

    def read_network(self, swept: Mapping[str, float] | None = None) -> Network:
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
                f"{spelled('network')} must be log, not {self.network!r}; {spelled('latency')} "
                "describes other networks"
            )
        for name in ("machine", *QUANTITIES[:-1]):  # a node's latency is none of the log's
            if self.network == "log" and getattr(self, name) is not None:
                raise UsageError(f"{spelled('network', 'log')} takes no {spelled(name)}")
        quantities |= swept or {}
        network = (self.machine or Network()).with_quantities(quantities)
        if "packet-size" in quantities and not (
            network.cost_per_packet_s or "cost-per-packet" in quantities
        ):
            raise UsageError(f"{spelled('packet_size')} needs {spelled('cost_per_packet')}")
        return network

    @property
    def describes_network(self) -> bool:
        """Whether any option is given."""
        names = ("network", "machine", *QUANTITIES)
        return any(getattr(self, name) is not None for name in names)
