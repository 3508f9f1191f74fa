"""Network models: recorded transit times, or latency, bandwidth and cost per packet."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from rewritelog import units
from rewritelog.errors import MissingFileError, RewriteLogError, UsageError, UsageTypeError
from rewritelog.options import settings, settle
from rewritelog.paths import input_exists, to_path
from rewritelog.text import bytes_text, time_text

DIGITS = 6
"""The digits of quantities in texts: more than users give."""


class Quantity(NamedTuple):
    """A quantity that describes a network."""

    key: str
    """Its name in reports in JSON."""
    read: Callable[[object, str], float]
    """Converts a number or a text; the second argument is how errors name it."""
    base: str
    """The unit of a plain number, as texts spell it."""
    phrase: str
    """How a description of the network names it."""

    def text(self, value: float) -> str:
        """Return a value as people give it, as in `1 µs`."""
        if self.base != "s":
            return bytes_text(value, DIGITS) + self.base.removeprefix("B")
        number, _, unit = time_text(value, DIGITS).partition(" ")
        plain = "." in number and "e" not in number
        return f"{number.rstrip('0').rstrip('.') if plain else number} {unit}"


QUANTITIES = {
    "latency": Quantity("latency_s", units.seconds, "s", "latency {}"),
    "bandwidth": Quantity("bandwidth_bytes_per_s", units.bytes_per_s, "B/s", "bandwidth {}"),
    "cost-per-packet": Quantity("cost_per_packet_s", units.seconds, "s", "{} per packet"),
    "packet-size": Quantity("packet_bytes", units.size_bytes, "B", "packets of {}"),
    "node-latency": Quantity("node_latency_s", units.seconds, "s", "{} within a node"),
}
"""The quantities of a network, by the names of the options."""

_FIELDS = {option: option.replace("-", "_") for option in QUANTITIES}

_MACHINES = Path(__file__).with_name("machines")


@dataclass(frozen=True, init=False)
class Network:
    """A network model, with arguments named as the options of `replay`, and fields in SI units.

    Without latency and bandwidth each message keeps its recorded transit time. Numbers are in
    seconds, bytes and bytes per second; texts have a unit. Raise `UsageError` for invalid ones.

    >>> rewritelog.Network(latency="1us", bandwidth="10GB/s").text()
    'latency 1 µs, bandwidth 10 GB/s'
    """

    latency: float | None
    bandwidth: float | None
    cost_per_packet: float
    packet_size: float
    """0 without packets."""
    node_latency: float
    """The latency between worker threads of the same node."""
    name: str
    """The name of the machine."""

    def __init__(
        self,
        latency: float | str | None = None,
        bandwidth: float | str | None = None,
        cost_per_packet: float | str = 0.0,
        packet_size: float | str = 0.0,
        node_latency: float | str = 0.0,
        name: str = "",
    ) -> None:
        """Read numbers, or texts with a unit."""
        values = (latency, bandwidth, cost_per_packet, packet_size, node_latency)
        for (option, quantity), value in zip(QUANTITIES.items(), values, strict=True):
            is_unknown = value is None and option in ("latency", "bandwidth")
            settle(self, **{_FIELDS[option]: None if is_unknown else quantity.read(value, option)})
        if not isinstance(name, str):
            raise UsageTypeError(f"name must be a text, not {name!r}")
        settle(self, name=name)
        if self.cost_per_packet and not self.packet_size:
            raise UsageError("packets need both a cost (cost-per-packet) and a size (packet-size)")
        if self.recorded and self.packet_size:
            raise UsageError("packets need a latency or a bandwidth, too")

    @property
    def recorded(self) -> bool:
        """Whether each message keeps its recorded transit time."""
        return self.latency is None and self.bandwidth is None

    def text(self, recorded: str = "", varied: Collection[str] = ()) -> str:
        """Return the model as text, without the quantities whose options `varied` names.

        `recorded` is the text for a network without latency and bandwidth, if not the usual one.
        """
        parts = list[str]()
        is_recorded = self.recorded and not {"latency", "bandwidth"} & {*varied}
        if is_recorded:
            parts.append(recorded or "each message with its recorded transit time")
        usual = {} if is_recorded else {"latency": 0.0, "bandwidth": math.inf}
        for option, quantity in QUANTITIES.items():
            value = getattr(self, _FIELDS[option]) or usual.get(option)
            if value is None or option in varied:
                continue
            is_unlimited = option == "bandwidth" and math.isinf(value)
            phrase = quantity.phrase.format(quantity.text(value))
            parts.append("infinite bandwidth" if is_unlimited else phrase)
        return ": ".join(filter(None, (self.name, ", ".join(parts))))

    def to_json(self) -> dict[str, Any]:
        """Return the model as a JSON object; an infinite bandwidth is null."""
        values = {QUANTITIES[option].key: getattr(self, field) for option, field in _FIELDS.items()}
        if self.bandwidth is not None and math.isinf(self.bandwidth):
            values["bandwidth_bytes_per_s"] = None
        model = "log" if self.recorded else "latency-bandwidth"
        return {"model": model, **values, "name": self.name}

    def with_quantities(self, values: Mapping[str, Any]) -> Network:
        """Return the network with some quantities replaced, given by the names of the options.

        Raise `UsageError` for unknown names, and `UsageTypeError` for anything but names with
        values.

        >>> rewritelog.Network(latency="1us").with_quantities({"bandwidth": "10GB/s"}).text()
        'latency 1 µs, bandwidth 10 GB/s'
        """
        given = settings(values, "values")
        named = {name.replace("_", "-"): value for name, value in given.items()}
        if unknown := named.keys() - QUANTITIES:
            known = ", ".join(QUANTITIES)
            raise UsageError(f"a network has no quantity {min(unknown)!r}; it has {known}")
        return replace(self, **{_FIELDS[name]: value for name, value in named.items()})


def machine_names() -> list[str]:
    """Return the names of the machines that come with rewritelog."""
    return sorted(file.stem for file in _MACHINES.glob("*.toml"))


def to_machine(machine: object, what: str) -> Network:
    """Return the network of a machine; raise as `read_machine` does."""
    return machine if isinstance(machine, Network) else read_machine(to_path(machine, what))


def read_machine(machine: str | os.PathLike[str]) -> Network:
    """Read a machine file: TOML with `latency`, `bandwidth` and so on, a `name` and a `source`.

    `machine` is a file, or the name of one that comes with rewritelog. Numbers other than 0 and inf
    need a unit, as on the command line. Raise `MissingFileError` if there is none, and
    `RewriteLogError` naming the file if it is invalid or cannot be read.
    """
    from rewritelog.models.located_toml import read_toml  # noqa: PLC0415 - few runs need it
    from rewritelog.timings.read import read_model_text  # noqa: PLC0415

    path = Path(machine)
    if not input_exists(path):
        names = machine_names()
        if str(path) not in names:
            known = ", ".join(names)
            raise MissingFileError(
                f"{path}: does not exist, and is no known machine; known: {known}"
            )
        path = _MACHINES / f"{path}.toml"
    read = read_model_text(path)
    entries = read_toml(read.text, read.name).document
    quantities = {key: value for key, value in entries.items() if key not in ("name", "source")}
    for key, value in quantities.items():
        if type(value) in (int, float) and value not in (0, math.inf):
            problem = f"{key} = {value} has no unit: write a text with one, as in"
            raise RewriteLogError(f'{path}: {problem} latency = "1.4us" and bandwidth = "6GB/s"')
    try:
        network = Network(name=entries.get("name", "")).with_quantities(quantities)
    except UsageError as error:
        raise RewriteLogError(f"{path}: {error}") from error
    if network.recorded:
        raise RewriteLogError(f"{path}: has neither latency nor bandwidth: give at least one")
    return network
