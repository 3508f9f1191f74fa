"""The rewrite of a log set or traces: timings and params in, blocks rewritten, output and report.

`run` is the whole job; `block` rewrites one block of logs, and `traces` one unit of traces.
"""
