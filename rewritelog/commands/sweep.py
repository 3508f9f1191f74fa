"""`rewritelog sweep`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rewritelog.commands.command import ENGINE, PAGE, REPORT, WARNINGS, Command, function
from rewritelog.commands.network import NetworkOptions
from rewritelog.commands.shared import Logs
from rewritelog.errors import UsageError
from rewritelog.options import OUTPUT, OptionalOutput, argument, declared, option
from rewritelog.rewriting.options import DurationOptions

if TYPE_CHECKING:
    from rewritelog.replaying.sweep import Sweep as SweptRunTimes


def _axes(texts: list[str], _: str) -> dict[str, tuple[str, ...]]:
    from rewritelog.replaying.sweep import Axis

    axes = [Axis.parse(text) for text in texts]
    values = {axis.name: axis.values for axis in axes}
    if len(values) < len(axes):
        raise UsageError("a sweep can vary each quantity only once")
    return values


@declared
class Sweep(DurationOptions, NetworkOptions, Logs, Command["SweptRunTimes"]):
    """Predict the run time at every point of a grid; the logs are read once.

    >>> grid = {"dilation": [0.5, 1], "latency": ["1us", "10us"]}
    >>> swept = rewritelog.sweep("sample_logs/cells", grid)
    >>> [point.values for point in swept.points]
    [('0.5', '1us'), ('0.5', '10us'), ('1', '1us'), ('1', '10us')]
    """

    shell = REPORT | WARNINGS | PAGE | ENGINE
    rare = frozenset({"speedup", "dilation_for"})

    vary: Mapping[str, Iterable[float | str]] = argument(
        "The values of dilation, latency, bandwidth, cost-per-packet, packet-size or node-latency; "
        "repeatable.",
        metavar="NAME=VALUE,VALUE,...", positional=False, kw_only=False, read=_axes,
    )  # fmt: skip
    output: OptionalOutput = option(
        "Write the grid to this file as CSV [default: none]; - is standard output.",
        default=None, names=("--output", "-o"), metavar="FILE", group=OUTPUT,
    )  # fmt: skip
    plot: OptionalOutput = option(
        "Draw the grid: .png, .svg or .pdf; needs rewritelog[view].",
        default=None, metavar="FILE", group=OUTPUT,
    )  # fmt: skip

    def run(self) -> SweptRunTimes:
        """Return the run times."""
        from rewritelog.output import check_outputs, write_text_file
        from rewritelog.replaying.network import PACKET_QUANTITIES
        from rewritelog.replaying.sweep import Axis, sweep
        from rewritelog.viewing.sweep_plot import check_plot, write_plot

        axes = [Axis.of(name, values) for name, values in self.vary.items()]
        packets = {axis.name: axis.values[0] for axis in axes if axis.name in PACKET_QUANTITIES}
        network = self.read_network(packets)  # packets need both, of which one may be swept
        opened = self.opened
        if opened.plot is not None:
            check_plot(opened.plot)
        check_outputs(
            [opened.output, opened.plot], opened.files, [opened.logs.folder, opened.params]
        )
        swept = sweep(opened.logs, axes, network, opened)
        if opened.output is not None:
            write_text_file(opened.output, swept.csv())
        if opened.plot is not None:
            write_plot(swept, opened.plot)
        return swept

    def page(self, result: SweptRunTimes) -> str:
        """Return the page of the grid."""
        from rewritelog.viewing.replay_page import sweep_page

        return sweep_page(result)


sweep = function(Sweep)
