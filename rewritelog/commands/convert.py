"""`rewritelog convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rewritelog.commands.command import ENGINE, REPORT, Command, function
from rewritelog.commands.shared import OUT_HELP, VERSION_HELP, Force, Logs
from rewritelog.options import argument, declared, option

if TYPE_CHECKING:
    from rewritelog.api.arguments import PathLike
    from rewritelog.converting.convert import Conversion


@declared
class Convert(Force, Logs, Command["Conversion"]):
    """Write a log set in another log version or byte order.

    >>> rewritelog.convert("sample_logs/cells", "big", byte_order="big")  # doctest: +SKIP
    """

    shell = REPORT | ENGINE

    out: PathLike = argument(OUT_HELP, metavar="OUT", kw_only=False)
    log_version: int | None = option(
        f"{VERSION_HELP} [default: as in LOGS].", default=None, metavar="N"
    )
    byte_order: Literal["little", "big"] | None = option(
        "The byte order to write [default: as in LOGS].", default=None
    )
    lossy: bool = option("Drop what the log version has no field for.", default=False)

    def run(self) -> Conversion:
        """Write the folder; return what was converted."""
        from rewritelog.api.arguments import to_path
        from rewritelog.api.logs import open_logs
        from rewritelog.converting.convert import convert_logs

        return convert_logs(
            open_logs(self.logs),
            to_path(self.out, "the output folder"),
            log_version=self.log_version,
            order=self.byte_order,
            lossy=self.lossy,
            force=self.force,
        )


convert = function(Convert)
