"""Rewrite BigSim bgTrace logs with predicted SEB durations, for simulations of a target machine.

    >>> import rewritelog
    >>> logs = rewritelog.open_logs("sample_logs/cells")
    >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
    >>> fitted.predict("Cell::pairForces", [[53, 11], [66, 17]])
    array([4.89758546e-06, 7.58604713e-06])
    >>> report = rewritelog.rewrite(logs, fitted=fitted, dilation=0.5)  # add a folder to write to
    >>> print(report.text())  # doctest: +SKIP

Models: `read_timings`, `fit`, `load_model`, `FittedModel`, `Timings`, `AutoRegressor`, `verify`,
`compare`, `predict`, `predict_run`. Logs: `open_logs`, `LogSet`, `read_params`, `Params`,
`to_pandas`, `info`, `dump`, `rewrite`, `replay`, `sweep`, `lost_cycles`, `export`, `check`,
`check_rules`, `diff`, `convert`, `synth`, and `choose` for which SEBs to time. Pictures:
`timeline`, `page` for the pages of `--html`, `explore`.
`docs/api.md` describes each; every error is a `RewriteLogError`.

The map of the package, lowest layer first:

- `errors`: the hierarchy of errors, and the location in a log that an error names
- `stopping`: signals that end a run, as an exception that third-party code does not swallow
- `text`: text output: names safe for a terminal, numbers with units, tables
- `progress`: progress of long jobs, reported to a listener
- `cores`: the number of cores that a job may use, and parallel work with its results in order
- `running`: a function mapped over blocks by threads or by the ranks of an MPI job
- `arrays`: type aliases for arrays, medians, rows grouped by a key
- `hashing`: the hash function for look-ups and pseudo-random numbers
- `core`: the compiled core: C functions for what is sequential, checked against their header
- `sums`: exact sums, for results that do not depend on the order of blocks
- `format`: the binary format, declared once with construct, and the layouts derived from it
- `models`: duration models: timings in, seconds out; they work on arrays only
- `logs`: a log set on disk: summary, timeline files, blocks, columns, params
- `output`: output folders that are complete or do not exist
- `timings`: timing lines read from files, and the other files that models need
- `checking`: validation of a log set: `check`
- `synthesis`: synthetic log sets: `synth`
- `converting`: other log versions and byte orders: `convert`
- `rewriting`: new durations for a log set, block by block: `rewrite`
- `replaying`: the predicted run time of the whole program: `replay` and `lost-cycles`
- `exporting`: logs in the formats of other tools: `export`
- `inspection`: the contents of a log set: `info` and `dump`
- `diffing`: the differences of two log sets: `diff`
- `sampling`: the choice of SEBs to time: `sample`
- `evaluation`: fits without a rewrite: `fit`, `predict`, `verify` and `compare`
- `viewing`: figures and HTML pages of logs and fits: `timeline`, `explore`
- `api`: the Python interface: a function for each command
- `cli`: the command line

`tracebigsim`, a separate package, contains the instrumentation and the grammar of timing lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewritelog.api.fitted import FittedModel, fit, load_model
    from rewritelog.api.frames import to_pandas
    from rewritelog.api.jobs import (
        check,
        check_rules,
        choose,
        compare,
        convert,
        diff,
        dump,
        info,
        open_logs,
        predict,
        predict_run,
        rewrite,
        synth,
        verify,
    )
    from rewritelog.api.params import Params, read_params
    from rewritelog.api.pictures import explore, page, timeline
    from rewritelog.api.regressor import AutoRegressor
    from rewritelog.api.runs import export, lost_cycles, replay, sweep
    from rewritelog.api.timings import Timings, read_timings
    from rewritelog.errors import (
        DamagedLogError,
        MissingFileError,
        ModelError,
        OutputError,
        RewriteLogError,
        TimingError,
        UsageError,
        UsageTypeError,
    )
    from rewritelog.logs.logset import LogSet
    from rewritelog.rewriting.options import RewriteOptions
    from rewritelog.sampling.options import SampleOptions

__all__ = [
    "AutoRegressor",
    "DamagedLogError",
    "FittedModel",
    "LogSet",
    "MissingFileError",
    "ModelError",
    "OutputError",
    "Params",
    "RewriteLogError",
    "RewriteOptions",
    "SampleOptions",
    "TimingError",
    "Timings",
    "UsageError",
    "UsageTypeError",
    "check",
    "check_rules",
    "choose",
    "compare",
    "convert",
    "diff",
    "dump",
    "explore",
    "export",
    "fit",
    "info",
    "load_model",
    "lost_cycles",
    "open_logs",
    "page",
    "predict",
    "predict_run",
    "read_params",
    "read_timings",
    "replay",
    "rewrite",
    "sweep",
    "synth",
    "timeline",
    "to_pandas",
    "verify",
]

__version__ = "0.1.0"

_HOMES = {
    "AutoRegressor": "rewritelog.api.regressor",
    "DamagedLogError": "rewritelog.errors",
    "FittedModel": "rewritelog.api.fitted",
    "LogSet": "rewritelog.logs.logset",
    "MissingFileError": "rewritelog.errors",
    "ModelError": "rewritelog.errors",
    "OutputError": "rewritelog.errors",
    "Params": "rewritelog.api.params",
    "RewriteLogError": "rewritelog.errors",
    "RewriteOptions": "rewritelog.rewriting.options",
    "SampleOptions": "rewritelog.sampling.options",
    "TimingError": "rewritelog.errors",
    "Timings": "rewritelog.api.timings",
    "UsageError": "rewritelog.errors",
    "UsageTypeError": "rewritelog.errors",
    "check": "rewritelog.api.jobs",
    "check_rules": "rewritelog.api.jobs",
    "choose": "rewritelog.api.jobs",
    "compare": "rewritelog.api.jobs",
    "convert": "rewritelog.api.jobs",
    "diff": "rewritelog.api.jobs",
    "dump": "rewritelog.api.jobs",
    "explore": "rewritelog.api.pictures",
    "export": "rewritelog.api.runs",
    "fit": "rewritelog.api.fitted",
    "info": "rewritelog.api.jobs",
    "load_model": "rewritelog.api.fitted",
    "lost_cycles": "rewritelog.api.runs",
    "open_logs": "rewritelog.api.jobs",
    "page": "rewritelog.api.pictures",
    "predict": "rewritelog.api.jobs",
    "predict_run": "rewritelog.api.jobs",
    "read_params": "rewritelog.api.params",
    "read_timings": "rewritelog.api.timings",
    "replay": "rewritelog.api.runs",
    "rewrite": "rewritelog.api.jobs",
    "sweep": "rewritelog.api.runs",
    "synth": "rewritelog.api.jobs",
    "timeline": "rewritelog.api.pictures",
    "to_pandas": "rewritelog.api.frames",
    "verify": "rewritelog.api.jobs",
}


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that `import rewritelog` is fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'rewritelog' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - kept off the import of the package

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Return the public names, for completion and `help`."""
    return sorted([*__all__, "__doc__", "__file__", "__name__", "__path__", "__version__"])
