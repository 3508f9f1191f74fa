"""The commands as functions: each returns a report with `text()`, `to_json()` and `warnings`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rewritelog.api.arguments import (
    PathLike,
    PathsLike,
    make_options,
    optional_input,
    optional_path,
    to_input,
    to_inputs,
    to_path,
)
from rewritelog.api.fitted import FittedModel, Given, fit, to_fitted
from rewritelog.api.timings import Timings, TimingsLike, to_timings
from rewritelog.checking.report import CheckReport
from rewritelog.checking.rules import rule_of_name, rules_text
from rewritelog.checking.run import check_logs
from rewritelog.converting.convert import Conversion, convert_logs
from rewritelog.diffing.report import Comparison
from rewritelog.diffing.run import compare_logs
from rewritelog.errors import UsageError, UsageTypeError
from rewritelog.evaluation.compare import CompareReport, CompareRequest, default_models
from rewritelog.evaluation.compare import compare as compare_models
from rewritelog.evaluation.predict import rows_of
from rewritelog.evaluation.predictions import LinePredictor, MalformedLines
from rewritelog.evaluation.totals import RunPrediction
from rewritelog.evaluation.totals import predict_run as predict_of_run
from rewritelog.evaluation.verify import VerifyReport, verify_lines, verify_samples
from rewritelog.inspection.dump import dump_lines
from rewritelog.inspection.info import LogInfo, survey
from rewritelog.logs import logset
from rewritelog.logs.logset import LogSet
from rewritelog.progress import Listener, listening
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.rewriting.report import Report
from rewritelog.rewriting.run import rewrite as rewrite_logs
from rewritelog.sampling.choose import sample
from rewritelog.sampling.options import SampleOptions
from rewritelog.sampling.report import SampleReport
from rewritelog.synthesis.synth import Synthesis, SynthOptions, synthesise

LogsLike: TypeAlias = "LogSet | PathLike"


def open_logs(path: LogsLike) -> LogSet:
    """Open a log set, given its folder or its `bgTrace` file.

    Raise `MissingFileError` if it does not exist, and `DamagedLogError` with file and offset if the
    summary or the head of a timeline file is damaged.

    >>> logs = rewritelog.open_logs("sample_logs/cells")
    >>> logs
    <LogSet sample_logs/cells: 16 PEs in 2 files, log version 6>
    >>> len(logs.sebs())
    676
    """
    return path if isinstance(path, LogSet) else logset.open_logs(to_path(path, "the logs"))


def logs_folder(logs: LogsLike) -> Path:
    """Return the path of a log set that may be too damaged to open."""
    return logs.folder if isinstance(logs, LogSet) else to_input(logs, "the logs")


def rewrite(
    logs: LogsLike,
    out: PathLike | None = None,
    options: RewriteOptions | None = None,
    progress: Listener | None = None,
    **given: Any,
) -> Report:
    """Rewrite a log set into the folder `out`, or only report if `out` is None.

    The fields of `RewriteOptions` can be given by name; other names are options of the model.
    `timings` are files, `Timings`, `{event: (X, y)}` or a DataFrame, `fitted` is a `FittedModel` or
    a model file, and `dilation_for` can be a mapping. Raise a `RewriteLogError` for any invalid
    input; `out` is then not changed.

    >>> timings = "sample_logs/cells/timings.txt"
    >>> report = rewritelog.rewrite("sample_logs/cells", timings=timings, dilation=0.5)
    >>> report.events[0].by_model
    24
    """
    if options is None:
        options = rewrite_options(given)
    elif given:
        raise UsageTypeError("give RewriteOptions, or options by name, not both")
    target = optional_path(out, "the output folder")
    with listening(progress):
        return rewrite_logs(open_logs(logs), target, options)


def rewrite_options(given: Mapping[str, Any]) -> RewriteOptions:
    """Return the options given by name, including those of the model."""
    known = {field.name for field in dataclasses.fields(RewriteOptions)}
    own = {name: value for name, value in given.items() if name in known}
    model_options = {name: value for name, value in given.items() if name not in known}
    model_options |= own.get("model_options", {})
    own = _with_paths(own, ("formulas", "coefficients", "param_names", "params"))
    if isinstance(own.get("dilation_for"), Mapping):
        own["dilation_for"] = tuple(own["dilation_for"].items())
    timings, fitted = own.pop("timings", None), own.pop("fitted", None)
    if isinstance(fitted, FittedModel):
        own["fitted"] = Given(fitted)
    elif fitted is not None:
        own["fitted"] = to_input(fitted, "the model file")
    if are_paths(timings):
        own["timings"] = to_inputs(timings, "the timings")
    elif timings is not None:
        names = ("formulas", "coefficients", "clock_hz")
        used = {name: own.pop(name) for name in names if name in own} | {"jobs": own.get("jobs", 0)}
        made = fit(timings, own.pop("model", None) or "auto", **used, **model_options)
        return RewriteOptions(fitted=Given(made), **own)
    return RewriteOptions(model_options=model_options, **own)


def _with_paths(given: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the values, with those of these names converted to paths."""
    paths = {name: to_input(given[name], name) for name in names if given.get(name) is not None}
    return {**given, **paths}


def are_paths(given: object) -> bool:
    """Return whether timings are given as files."""
    if isinstance(given, str | Path):
        return True
    return isinstance(given, list | tuple) and all(isinstance(one, str | Path) for one in given)


def verify(
    model: FittedModel | PathLike,
    timings: TimingsLike,
    *,
    clock_hz: float | None = None,
    strict: bool = False,
    worst: int = 10,
) -> VerifyReport:
    """Compare the predictions of a fitted model with measured times, by event and overall.

    >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
    >>> report = rewritelog.verify(fitted, "sample_logs/cells/timings.txt")
    >>> round(report.overall.score.r2, 2)
    0.99
    """
    fitted = to_fitted(model)
    predictor = LinePredictor(_model_name(model), fitted.raw, fitted.columns)
    if are_paths(timings):
        files = to_inputs(timings, "the timings")
        return verify_lines(predictor, files, clock_hz, strict=strict, worst=worst)
    return verify_samples(predictor, tuple(to_timings(timings, fitted.columns)), worst=worst)


def _model_name(model: FittedModel | PathLike) -> str:
    return model.name if isinstance(model, FittedModel) else str(model)


def predict(
    model: FittedModel | PathLike,
    files: PathsLike,
    *,
    clock_hz: float | None = None,
    strict: bool = False,
) -> Iterator[dict[str, Any]]:
    """Yield a dict for each record of param files, timing lines or chosen SEBs.

    Its keys are file, line, seb, event, params, measured_s (None for a record without a time),
    predicted_s (None without a prediction), determined_by, and low_s and high_s, the bounds of the
    90 % interval (None where it is unknown). Malformed lines are skipped; with `strict` they are
    errors.

    >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
    >>> next(rewritelog.predict(fitted, "sample_logs/cells/param.0"))["determined_by"]
    'fit'
    """
    fitted = to_fitted(model)
    predictor = LinePredictor(_model_name(model), fitted.raw, fitted.columns)
    paths = to_inputs(files, "the files")
    for lines in predictor.predict_detailed(paths, MalformedLines(), strict=strict):
        yield from rows_of(lines, clock_hz)


def predict_run(model: PathLike, **variables: float) -> RunPrediction:
    """Predict the run time from a model of lost cycles, for `P` PEs and the study's variables.

    `predicted_s` of the report is the run time; `text()` includes the categories.

    >>> run = rewritelog.predict_run("study.json", P=4096, D=512)  # doctest: +SKIP
    """
    return predict_of_run(to_input(model, "the model file"), variables)


def _model_names(models: str | Sequence[str] | None) -> tuple[str, ...]:
    if models is None:
        return default_models()
    return (models,) if isinstance(models, str) else tuple(models)


def compare(
    timings: TimingsLike,
    models: str | Sequence[str] | None = None,
    *,
    formulas: PathLike | None = None,
    coefficients: PathLike | None = None,
    clock_hz: float | None = None,
    strict: bool = False,
    folds: int = 10,
    fraction: float | None = None,
    repeats: int = 1,
    seed: int = 1,
    jobs: int = 0,
    **model_options: object,
) -> CompareReport:
    """Compare models on held-out timing lines.

    `models` are by default auto, least-squares and, if scikit-learn is installed, gaussian-process.
    Lines are held out in `folds`, or by fitting only to a random `fraction` of each event's lines,
    `repeats` times. `model_options` are passed to each model that has them.

    >>> report = rewritelog.compare("sample_logs/cells/timings.txt", ["least-squares"], folds=5)
    >>> report.tried[0].overall.predicted
    600
    """
    request = CompareRequest(
        timings=to_inputs(timings, "the timings") if are_paths(timings) else (),
        models=_model_names(models),
        model_options=model_options,
        formulas=optional_input(formulas, "formulas"),
        coefficients=optional_input(coefficients, "coefficients"),
        clock_hz=clock_hz,
        strict=strict,
        folds=folds,
        fraction=fraction,
        repeats=repeats,
        seed=seed,
        jobs=jobs,
    )
    if request.timings:
        return compare_models(request)
    given = timings if isinstance(timings, Timings) else to_timings(timings)
    return compare_models(request, given.read)


def choose(logs: LogsLike, out: PathLike | None = None, **options: Any) -> SampleReport:
    """Choose which SEBs of a run to time, and write their list to `out`.

    Options are those of `SampleOptions`: fraction, method, seed, floor, replicates, params,
    timings, clock_hz, formulas, strict, jobs. `listing()` of the report returns the list.

    >>> report = rewritelog.choose("sample_logs/cells", fraction=0.2)
    >>> report.chosen
    16
    """
    given = _with_paths(options, ("params", "formulas"))
    if given.get("timings") is not None:
        given["timings"] = to_inputs(given["timings"], "the timings")
    target = optional_path(out, "the list")
    return sample(open_logs(logs), make_options(SampleOptions, given), target)


def check(logs: LogsLike, params: PathLike | None = None, *, jobs: int = 0) -> CheckReport:
    """Validate a log set and its params; damage is reported, not raised.

    >>> rewritelog.check("sample_logs/cells").sound
    True
    """
    return check_logs(logs_folder(logs), optional_input(params, "params"), jobs=jobs)


def check_rules(name: str | None = None) -> str:
    """Return the list of the rules that `check` applies, or the description of one rule.

    >>> "The summary has 52, 56 or 60 bytes" in rewritelog.check_rules("summary")
    True
    """
    return rules_text() if name is None else rule_of_name(name).text()


def diff(a: LogsLike, b: LogsLike, params: PathLike | None = None, *, jobs: int = 0) -> Comparison:
    """Compare two log sets, which may have different log versions and byte orders.

    >>> rewritelog.diff("sample_logs/cells", "sample_logs/cells-big-endian").verdict
    'different: only the representation; the content is the same'
    """
    folder = optional_input(params, "params")
    return compare_logs(open_logs(a), open_logs(b), folder, jobs=jobs)


def info(logs: LogsLike, *, jobs: int = 0) -> LogInfo:
    """Summarise a log set: machine, sizes, brackets, and time by SEB name.

    >>> rewritelog.info("sample_logs/cells").brackets > 0
    True
    """
    return survey(open_logs(logs), jobs=jobs)


def dump(logs: LogsLike, pe: int) -> Iterator[dict[str, Any]]:
    """Yield a dict with all fields of each SEB of a PE, in the order of its timeline.

    Its keys are those of `rewritelog dump --json`, the same in every log version: times are in
    seconds, offsets in bytes from the start of the file. Raise `UsageError` for an unknown PE, and
    `DamagedLogError` at the first damage.

    >>> next(rewritelog.dump("sample_logs/cells", pe=0))["offset_bytes"]
    56
    """
    return map(json.loads, dump_lines(open_logs(logs), pe, "jsonl"))


def convert(
    logs: LogsLike,
    out: PathLike,
    *,
    log_version: int | None = None,
    byte_order: Literal["little", "big"] | None = None,
    lossy: bool = False,
    force: bool = False,
) -> Conversion:
    """Write a log set in another log version or byte order; None keeps that of the logs.

    >>> rewritelog.convert("sample_logs/cells", "big", byte_order="big")  # doctest: +SKIP
    """
    if byte_order not in ("little", "big", None):
        raise UsageError(f"the byte order must be 'little' or 'big', not {byte_order!r}")
    return convert_logs(
        open_logs(logs),
        to_path(out, "the output folder"),
        log_version=log_version,
        order=byte_order,
        lossy=lossy,
        force=force,
    )


def synth(out: PathLike, *, force: bool = False, flush: bool = True, **options: Any) -> Synthesis:
    """Write a realistic synthetic log set with brackets, params and timings.

    The options are the fields of `SynthOptions`: pes, sebs, messages, files, wth, seed, order,
    log_version, bracketed, timings, size.

    >>> rewritelog.synth("made", pes=4, sebs=100)  # doctest: +SKIP
    """
    made = make_options(SynthOptions, options)
    return synthesise(to_path(out, "the output folder"), made, force=force, flush=flush)
