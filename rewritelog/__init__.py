"""Rewrite BigSim bgTrace logs with predicted SEB durations, for simulations of a target machine.

    >>> import rewritelog
    >>> logs = rewritelog.open_logs("sample_logs/cells")
    >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
    >>> fitted.predict("Cell::pairForces", [[53, 11], [66, 17]])
    array([4.89758546e-06, 7.58604713e-06])
    >>> report = rewritelog.rewrite(logs, fitted=fitted, dilation=0.5)  # add a folder to write to
    >>> report
    <RewriteReport: Predicted run time: 391.2 µs → 294.5 µs, ...

Models: `read_timings`, `write_timings`, `stats`, `merge`, `fit`, `load_model`, `FittedModel`,
`Timings`, `AutoRegressor`, `verify`, `compare`, `predict`. Logs: `open_logs`, `LogSet`,
`open_traces`, `read_params`, `Params`, `to_frame`, `info`, `dump`, `rewrite`, `export`, `check`,
`rules`, `diff`, `convert`, `synth`, and `sample` for which SEBs to time. Whole runs: `replay`,
`Network`, `sweep`, `lost_cycles`, `predict_run`. Pictures: `timeline`, `page` for the pages of
`--html`, `explore`.
`docs/api.md` describes each; every error is a `RewriteLogError`.

The map of the package, lowest layer first:

- `errors`: the hierarchy of errors, and how messages name options and places in logs
- `units`: what users write: quantities with units, `1us`, `10GB/s`; lists of PEs, `0-31,40`
- `options`: the declaration of an option: type, default, help and group; those that jobs share
- `paths`: paths of inputs and outputs, in any form in which they are given
- `stopping`: signals that end a run, as an exception that third-party code does not swallow
- `text`: text output: names safe for a terminal, numbers with units, tables
- `progress`: progress of long jobs, reported to a listener
- `running`: the cores that a job may use; a function mapped over blocks by threads or MPI ranks
- `commands`: each command, declared once: its options, which its job takes, and what is printed
- `arrays`: type aliases for arrays, medians, exact sums, rows by a key, hashes; data frames
- `core`: the compiled core: C functions for what is sequential, checked against their header
- `models`: duration models: timings in, seconds out; they work on arrays only
- `formats`: trace formats: bgTrace, declared once with construct, and log sets on disk: summary,
  timeline files, blocks, columns, params; Chakra; what jobs know of any format with events; opening
- `output`: output folders that are complete or do not exist
- `timings`: timing lines and params, read from files or made from arrays, and what else models need
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
- `api`: what Python has besides the commands: fitted models, a regressor, pages of results
- `cli`: the command line

`tracebigsim`, a separate package, contains the instrumentation and the grammar of timing lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewritelog.api.fitted import FittedModel, load_model
    from rewritelog.api.pages import page
    from rewritelog.api.regressor import AutoRegressor
    from rewritelog.arrays import to_frame
    from rewritelog.commands.fits import (
        compare,
        explore,
        fit,
        merge,
        predict,
        sample,
        stats,
        verify,
        write_timings,
    )
    from rewritelog.commands.logs import (
        check,
        convert,
        diff,
        dump,
        export,
        info,
        rewrite,
        rules,
        synth,
        timeline,
    )
    from rewritelog.commands.runs import lost_cycles, predict_run, replay, sweep
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
    from rewritelog.formats.bgtrace.logset import LogSet
    from rewritelog.formats.opening import open_logs, open_traces
    from rewritelog.replaying.network import Network
    from rewritelog.timings.params import Params, read_params
    from rewritelog.timings.read import read_timings
    from rewritelog.timings.samples import Timings

__all__ = [
    "AutoRegressor",
    "DamagedLogError",
    "FittedModel",
    "LogSet",
    "MissingFileError",
    "ModelError",
    "Network",
    "OutputError",
    "Params",
    "RewriteLogError",
    "TimingError",
    "Timings",
    "UsageError",
    "UsageTypeError",
    "check",
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
    "merge",
    "open_logs",
    "open_traces",
    "page",
    "predict",
    "predict_run",
    "read_params",
    "read_timings",
    "replay",
    "rewrite",
    "rules",
    "sample",
    "stats",
    "sweep",
    "synth",
    "timeline",
    "to_frame",
    "verify",
    "write_timings",
]

__version__ = "0.1.0"

COMMANDS = {
    "Rewrite logs": {"rewrite": "logs"},
    "Fit models": {
        **dict.fromkeys(("stats", "merge", "timings", "fit", "predict", "verify"), "fits"),
        **dict.fromkeys(("compare", "sample", "explore", "models"), "fits"),
    },
    "Predict whole runs": dict.fromkeys(("replay", "sweep", "lost-cycles", "predict-run"), "runs"),
    "Inspect logs": dict.fromkeys(("check", "rules", "info", "diff", "dump", "timeline"), "logs"),
    "Create logs": dict.fromkeys(("convert", "export", "synth"), "logs"),
    "Set up": {"completion": "completion"},
}
"""The registry: commands by purpose, in the order of the help, and their modules in `commands`."""

MODULES = {name: module for panel in COMMANDS.values() for name, module in panel.items()}

_HOMES = {
    "api.fitted": ("FittedModel", "load_model"),
    "api.pages": ("page",),
    "api.regressor": ("AutoRegressor",),
    "arrays": ("to_frame",),
    "commands.fits": ("write_timings",),
    "formats.bgtrace.logset": ("LogSet",),
    "formats.opening": ("open_logs", "open_traces"),
    "replaying.network": ("Network",),
    "timings.params": ("Params", "read_params"),
    "timings.read": ("read_timings",),
    "timings.samples": ("Timings",),
}
"""The modules of public names that are neither errors nor named as commands are."""


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that `import rewritelog` is fast."""
    if name not in __all__:
        raise AttributeError(f"module 'rewritelog' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - kept off the import of the package

    homes = {public: module for module, names in _HOMES.items() for public in names}
    homes |= {name.replace("-", "_"): f"commands.{module}" for name, module in MODULES.items()}
    return getattr(import_module(f"rewritelog.{homes.get(name, 'errors')}"), name)


def __dir__() -> list[str]:
    """Return the public names, for completion and `help`."""
    return sorted([*__all__, "__doc__", "__file__", "__name__", "__path__", "__version__"])
