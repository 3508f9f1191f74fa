"""Runs the command line as `python -m rewritelog`."""

import os
import sys

# `python -m` looks for modules in the working directory first, which may be a folder of logs.
if not (sys.flags.safe_path or __file__.startswith(sys.path[0] + os.sep)):
    del sys.path[0]

from rewritelog.cli import main

main()
