"""The rewrite of a log set: timings and params in, blocks rewritten, output and report.

It is the one place that knows models, params and logs; `run` is the whole job, `block` one part.
"""
