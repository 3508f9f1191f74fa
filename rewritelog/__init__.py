"""Rewrites BigSim bgTrace logs with new SEB durations; a map of the package, lowest layer first.

- `errors`: one root error, and the location in a log that an error names
- `stopping`: how a signal ends a run: as an exception that no code takes for its own
- `text`: names made harmless for a terminal, numbers with units
- `arrays`: names for kinds of arrays
- `hashing`: the hash that finds rows and draws numbers
- `format`: the binary format, declared once with construct, and what is derived from it
- `kernels`: the compiled loops over bytes that all jobs share: loads, walk, brackets, names, sums
- `models`: duration models: timings in, seconds out; they know arrays only
- `logs`: a log set on disk: summary, timeline files, blocks, columns, params
- `output`: output folders that are whole or not there
- `timings`: timing lines of files, and the other texts that models are made with
- `checking`: what is wrong with a log set: `check`
- `synthesis`: made log sets: `synth`
- `converting`: other log versions and byte orders: `convert`
- `rewriting`: new durations in a log set, block by block: `rewrite`
- `replaying`: how long the whole program takes: `replay` and `lost-cycles`
- `exporting`: logs in the formats of other tools: `export`
- `inspection`: what a log set holds: `info` and `dump`
- `diffing`: what two log sets differ in: `diff`
- `sampling`: which SEBs to time: `sample`
- `evaluation`: fits apart from a rewrite: `fit`, `predict`, `verify` and `compare`
- `viewing`: pictures and pages of logs and fits: `timeline`
- `cli`: the command line

`tracebigsim`, beside this package, is the instrumentation side and the grammar of timing lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewritelog.errors import RewriteLogError
    from rewritelog.logs.logset import LogSet, open_logs
    from rewritelog.rewriting.options import RewriteOptions
    from rewritelog.rewriting.run import rewrite

__all__ = ["LogSet", "RewriteLogError", "RewriteOptions", "open_logs", "rewrite"]

__version__ = "0.1.0"

_HOMES = {
    "LogSet": "rewritelog.logs.logset",
    "RewriteLogError": "rewritelog.errors",
    "RewriteOptions": "rewritelog.rewriting.options",
    "open_logs": "rewritelog.logs.logset",
    "rewrite": "rewritelog.rewriting.run",
}


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used, so that `import rewritelog` is quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'rewritelog' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - kept off the import of the package

    return getattr(import_module(_HOMES[name]), name)
