"""The command line: parses options, runs a command, and prints its report.

Heavy packages are imported only by the commands that need them, so that `--help` is fast.
"""

from rewritelog.cli.process import main

__all__ = ["main"]
