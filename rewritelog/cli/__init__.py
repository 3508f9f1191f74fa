"""The command line: options in, one call of the pipeline or a tool, text out.

Heavy packages are imported by the command that needs them, so that `--help` is quick.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from rewritelog.stopping import Stopped, stop_on_signals

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line; a signal ends it from here on, while modules are imported too."""
    stop_on_signals()
    try:
        from rewritelog.cli.process import main as run  # noqa: PLC0415 - signals come first
    except Stopped as reason:
        sys.stderr.write(f"rewritelog: {reason}\n")
        os._exit(reason.exit_code)
    run()
