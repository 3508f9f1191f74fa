"""Runs the command line as `python -m rewritelog`."""

from rewritelog.cli import main

main()
