"""`rewritelog export`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import ENGINE, REPORT, WARNINGS, Command, function
from rewritelog.commands.network import NETWORK, NetworkOptions
from rewritelog.commands.shared import AnyTraces, Out
from rewritelog.errors import UsageError
from rewritelog.exporting.options import ExportOptions
from rewritelog.options import Force, declared, option

if TYPE_CHECKING:
    from rewritelog.exporting.exported import Exported


@declared
class Export(Force, ExportOptions, NetworkOptions, Out, AnyTraces, Command["Exported"]):
    """Write logs in the format of a trace viewer, of tables, or of a simulator.

    >>> exported = rewritelog.export("sample_logs/cells", "out", "csv", pes="0-3")  # doctest: +SKIP
    """

    shell = REPORT | WARNINGS | ENGINE

    replayed: bool = option(
        "goal, simgrid: each PE runs its SEBs in the order of a replay over this network. Chakra "
        "traces: nodes start when they do in it.",
        default=False, group=NETWORK,
    )  # fmt: skip

    def run(self) -> Exported:
        """Write the folder; return what it holds."""
        from rewritelog.exporting.run import export_opened

        if self.describes_network and not self.replayed:
            raise UsageError("a network is for --replayed")
        opened, network = self.opened, self.read_network() if self.replayed else None
        return export_opened(opened.logs, opened.out, opened, network, force=self.force)


export = function(Export)
