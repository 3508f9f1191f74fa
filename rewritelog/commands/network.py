"""The options of the network that delays messages in a replay."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from rewritelog.errors import UsageError
from rewritelog.options import declared, option

if TYPE_CHECKING:
    from rewritelog.replaying.network import Network

NetworkLike: TypeAlias = "Network | str"
MachineLike: TypeAlias = "str | os.PathLike[str]"
"""A machine file, or the name of one that rewritelog has."""
Quantity: TypeAlias = "float | str"
"""A number in seconds or bytes, or a text with a unit."""

NETWORK = "Network"
"""The heading of these options in the help."""

QUANTITIES = ("latency", "bandwidth", "cost_per_packet", "packet_size", "node_latency")


@declared
class NetworkOptions:
    """A network: a `Network`, a machine file, or its quantities, as numbers or with units."""

    network: NetworkLike | None = option(
        "log: each message keeps its recorded transit time [default without --latency, "
        "--bandwidth and --machine].",
        default=None, metavar="log", group=NETWORK, rare=True,
    )  # fmt: skip
    machine: MachineLike | None = option(
        "A machine by name, as in cray-xe6, or its TOML file; other options override it.",
        default=None, metavar="FILE", group=NETWORK,
    )  # fmt: skip
    latency: Quantity | None = option(
        "Latency between nodes, as in 1us.", default=None, metavar="TIME", group=NETWORK
    )
    bandwidth: Quantity | None = option(
        "Bandwidth between nodes, as in 10GB/s.", default=None, metavar="RATE", group=NETWORK
    )
    cost_per_packet: Quantity | None = option(
        "Time for each packet.", default=None, metavar="TIME", group=NETWORK, rare=True
    )
    packet_size: Quantity | None = option(
        "Size of a packet.", default=None, metavar="SIZE", group=NETWORK, rare=True
    )
    node_latency: Quantity | None = option(
        "Latency from one worker thread of a node to another [default: 0].",
        default=None, metavar="TIME", group=NETWORK, rare=True,
    )  # fmt: skip

    def read_network(self, swept: Mapping[str, str] | None = None) -> Network:
        """Return the network.

        `swept` has quantities that a sweep replaces at each point, by the names of the options;
        an option that is given has precedence.
        """
        from rewritelog.replaying.network import Network, read_machine, with_unit

        values = {name: getattr(self, name) for name in QUANTITIES}
        named = {name.replace("_", "-"): value for name, value in values.items()}
        quantities = {
            name: with_unit(name, value) for name, value in named.items() if value is not None
        }
        others = {"--machine": self.machine, "--latency": self.latency}
        others["--bandwidth"] = self.bandwidth
        if isinstance(self.network, Network):
            if quantities or self.machine is not None:
                raise UsageError("give a Network, or its quantities, not both")
            return self.network
        if self.network not in (None, "log"):
            raise UsageError(
                f"--network must be log, not {self.network!r}; --latency describes other networks"
            )
        if self.network == "log":
            refuse("--network log", others)
        machine = self.machine
        base = Network() if machine is None else read_machine(machine)
        return base.with_quantities({**(swept or {}), **quantities})

    @property
    def describes_network(self) -> bool:
        """Whether any option is given."""
        names = ("network", "machine", *QUANTITIES)
        return any(getattr(self, name) is not None for name in names)


def refuse(what: str, others: Mapping[str, object]) -> None:
    """Raise `UsageError` if any of these options is given."""
    quantities = [name for name, value in others.items() if value is not None]
    if quantities:
        raise UsageError(f"{what} takes no {quantities[0]}")
