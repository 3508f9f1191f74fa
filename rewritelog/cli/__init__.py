"""The command line: options in, one call of the pipeline or a tool, text out.

Heavy packages are imported by the command that needs them, so that `--help` is quick.
"""

from rewritelog.cli.process import main

__all__ = ["main"]
