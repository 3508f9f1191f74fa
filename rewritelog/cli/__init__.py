"""The command line: parses options, runs a command, and prints its report.

Heavy packages are imported only by the commands that need them, so that `--help` is fast.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from rewritelog.stopping import stop_on_signals, stopped

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line; from here on signals end it cleanly, even during imports."""
    stop_on_signals()
    try:
        from rewritelog.cli.process import main as run  # noqa: PLC0415 - signals come first
    except BaseException:  # as in `exit_code`, it may have become another exception
        if (reason := stopped()) is None:
            raise
        sys.stderr.write(f"rewritelog: {reason}\n")
        from rewritelog.cli.process import leave_unjoined  # noqa: PLC0415 - as above

        leave_unjoined(reason.exit_code)
    run()
