"""`rewritelog export`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rewritelog.commands.command import ENGINE, REPORT, WARNINGS, Command, function
from rewritelog.commands.network import NETWORK, NetworkOptions
from rewritelog.commands.shared import OUT_HELP, AnyTraces, Force, Params, Selection
from rewritelog.errors import UsageError
from rewritelog.exporting.options import Target
from rewritelog.options import argument, declared, option

if TYPE_CHECKING:
    from rewritelog.api.arguments import OutputPath
    from rewritelog.exporting.exported import Exported


@declared
class Export(Force, Selection, NetworkOptions, Params, AnyTraces, Command["Exported"]):
    """Write logs in the format of a trace viewer, of tables, or of a simulator.

    >>> found = rewritelog.export("sample_logs/cells", "out", "csv", pes="0-3")  # doctest: +SKIP
    """

    shell = REPORT | WARNINGS | ENGINE

    out: OutputPath = argument(OUT_HELP, metavar="OUT", kw_only=False)
    to: Target = argument(
        "chrome: JSON for Perfetto and chrome://tracing; parquet, csv: tables; goal: LogGOPSim; "
        "simgrid: smpirun -replay.",
        metavar="", positional=False, kw_only=False,
    )  # fmt: skip
    replayed: bool = option(
        "goal, simgrid: each PE runs its SEBs in the order of a replay over this network. Chakra "
        "traces: nodes start when they do in it.",
        default=False, group=NETWORK,
    )  # fmt: skip

    def run(self) -> Exported:
        """Write the folder; return what it holds."""
        from rewritelog.exporting.options import ExportOptions
        from rewritelog.exporting.run import export_opened

        if self.describes_network and not self.replayed:
            raise UsageError("a network is for --replayed")
        given = self.given
        options = ExportOptions(
            self.to,
            self.chosen_pes(given.logs),
            -math.inf if self.from_s is None else self.from_s,
            math.inf if self.until_s is None else self.until_s,
            given.params,
            self.read_network() if self.replayed else None,
        )
        return export_opened(given.logs, given.out, options, force=self.force)


export = function(Export)
