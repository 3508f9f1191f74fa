"""Preparation of a replay: the model is fitted, and the logs are loaded as a workload."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rewritelog.cores import limited_to
from rewritelog.formats.bgtrace.logset import LogSet, open_logs
from rewritelog.replaying.loading import load_workload
from rewritelog.replaying.network import Network
from rewritelog.replaying.simulate import Case
from rewritelog.replaying.workload import Workload
from rewritelog.rewriting.dilations import DilationRules
from rewritelog.rewriting.fits import fitted_predictor
from rewritelog.rewriting.options import DurationOptions
from rewritelog.rewriting.predicting import Predictor
from rewritelog.rewriting.report_warnings import warnings_of_unused


@dataclass(frozen=True)
class Prepared:
    """A log set that has been loaded with predicted durations."""

    logs: LogSet
    options: DurationOptions
    predictor: Predictor
    workload: Workload
    warnings: tuple[str, ...]
    """Warnings of the model's fit, and of options that had no effect."""

    def case(self, network: Network, dilation: float | None = None) -> Case:
        """Return the case to replay, with the dilation of the options or another one."""
        return case_of(self.options, network, dilation)


def prepare(logs: LogSet | str | Path, options: DurationOptions) -> Prepared:
    """Fit the model and load the logs; raise a `RewriteLogError` for any invalid input."""
    source = open_logs(logs)
    model, remarks, predictor = fitted_predictor(options)
    workload = workload_of(source, options, predictor, predicts=model.uses_params)
    matched = DilationRules(1.0, options.dilation_for).matching(workload.names)
    unused = warnings_of_unused(options, model, source.terms, matched)
    return Prepared(source, options, predictor, workload, (*remarks, *unused))


def workload_of(
    logs: LogSet, options: DurationOptions, predictor: Predictor, *, predicts: bool
) -> Workload:
    """Load the logs with the durations of a model; `predicts` is whether it reads params."""
    with limited_to(options.jobs):
        return load_workload(
            logs, predictor, predicts=predicts, params=options.params, strict=options.strict
        )


def case_of(options: DurationOptions, network: Network, dilation: float | None = None) -> Case:
    """Return the case to replay, with the dilation of the options or another one."""
    factor = options.general_dilation if dilation is None else dilation
    return Case(network, DilationRules(factor, options.dilation_for).factor_for)
