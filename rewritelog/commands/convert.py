"""`rewritelog convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rewritelog.commands.command import ENGINE, REPORT, Command, function
from rewritelog.commands.shared import Logs, Out
from rewritelog.options import Force, declared, option
from rewritelog.synthesis.options import VERSION_HELP

if TYPE_CHECKING:
    from rewritelog.converting.convert import Conversion


@declared
class Convert(Force, Out, Logs, Command["Conversion"]):
    """Write a log set in another log version or byte order.

    >>> rewritelog.convert("sample_logs/cells", "big", byte_order="big")  # doctest: +SKIP
    """

    shell = REPORT | ENGINE

    log_version: int | None = option(
        f"{VERSION_HELP} [default: as in LOGS].", default=None, metavar="N"
    )
    byte_order: Literal["little", "big"] | None = option(
        "The byte order to write [default: as in LOGS].", default=None
    )
    lossy: bool = option("Drop what the log version has no field for.", default=False)

    def run(self) -> Conversion:
        """Write the folder; return what was converted."""
        from rewritelog.converting.convert import convert_logs

        opened = self.opened
        return convert_logs(
            opened.logs,
            opened.out,
            log_version=self.log_version,
            order=self.byte_order,
            lossy=self.lossy,
            force=self.force,
        )


convert = function(Convert)
