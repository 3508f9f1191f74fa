"""`rewritelog fit`, `predict`, `verify` and `compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rewritelog.cli import console
from rewritelog.cli.arguments import (
    MODEL,
    OUTPUT,
    ClockHz,
    Coefficients,
    Formulas,
    Jobs,
    ModelName,
    ModelOption,
    ParamNames,
    Seed,
    Strict,
    Timings,
    is_stdout,
    output_option,
    to_path,
)
from rewritelog.cli.completers import complete_models
from rewritelog.cli.console import Outcome
from rewritelog.cli.model_options import add_pairs, with_model_options
from rewritelog.cli.standard import FailOnWarning, plain, reporting
from rewritelog.errors import UsageError

NOTHING_COVERED = 1
"""The exit code if the model has no prediction for any line."""

ModelPath = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="A model file of `rewritelog fit -o`.", show_default=False
    ),
]


@reporting(warns=True, pages=True)
@with_model_options
def fit_command(
    timings: Timings,
    output: Annotated[
        Path | None, output_option("The model file to write [default: none, only report]")
    ] = None,
    model: ModelName = "auto",
    formulas: Formulas = None,
    param_names: ParamNames = None,
    coefficients: Coefficients = None,
    clock_hz: ClockHz = None,
    model_option: ModelOption = None,
    jobs: Jobs = 0,
    strict: Strict = False,
    *,
    model_options: dict[str, Any],
) -> Outcome:
    """Fit a model to timing lines, and write it to a model file.

    `rewrite --fitted`, `predict` and `verify` use the file without the timings.
    """
    from rewritelog.evaluation.fit import FitRequest, fit  # noqa: PLC0415 - heavy

    add_pairs(model_options, model_option)
    request = FitRequest(
        timings=tuple(timings),
        model=model or "auto",
        model_options=model_options,
        formulas=formulas,
        coefficients=coefficients,
        param_names=param_names,
        clock_hz=clock_hz,
        strict=strict,
        jobs=jobs,
    )
    report = fit(request, to_path(output))

    def page() -> str:
        from rewritelog.viewing.fit_pages import fit_page  # noqa: PLC0415 - an extra

        return fit_page(report)

    return Outcome(report, stdout_taken=is_stdout(output), page=page)


@plain(prints_lines=True)
def predict_command(
    model: ModelPath,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE...",
            help="Files of params (param.P), timing lines or chosen SEBs.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="P=N,NAME=VALUE,...",
            help="Instead of FILE: predict the lost cycles of a run with N PEs and these "
            "variables, and their sum.",
        ),
    ] = None,
    output: Annotated[
        Path | None, output_option("The file to write [default: -, standard output]")
    ] = None,
    clock_hz: ClockHz = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            rich_help_panel=OUTPUT,
            help="Print one JSON object per line for each record.",
        ),
    ] = False,
    strict: Strict = False,
    fail_on_warning: FailOnWarning = False,
) -> None:
    """Print the predictions of a model file as CSV, one line for each record.

    The measured time is printed beside the predicted one if the record has one. For each prediction
    it prints what determined it: fit, exact, out of range, or no model. The exit code is 1 if the
    model has no prediction for any record.
    """
    if (at is None) == (not files):
        raise UsageError("missing argument 'FILE...'" if at is None else "--at takes no FILE")
    if at is not None:
        if output is not None:
            raise UsageError("--at takes no --output")
        _predict_run(model, at, as_json=as_json)
        console.leave_if_warned(fail_on_warning)
        return
    from rewritelog.evaluation.predict import predict  # noqa: PLC0415
    from rewritelog.evaluation.predictions import MalformedLines  # noqa: PLC0415

    malformed = MalformedLines()
    texts = predict(
        model, files or [], "jsonl" if as_json else "csv", malformed, clock_hz, strict=strict
    )
    if output is None or is_stdout(output):
        for text in texts:
            typer.echo(text, nl=False)
    else:
        from rewritelog.output import check_outputs, write_text_file  # noqa: PLC0415

        check_outputs([output], [model, *(files or [])])
        write_text_file(output, "".join(texts))
    console.note_all(malformed.warnings())
    if not malformed.predicted:
        console.note(f"{model}: the model has no prediction for any record")
        raise typer.Exit(NOTHING_COVERED)
    console.leave_if_warned(fail_on_warning)


def _predict_run(model: Path, at: str, *, as_json: bool) -> None:
    from rewritelog.evaluation.totals import parse_point, predict_run  # noqa: PLC0415
    from rewritelog.text import json_text  # noqa: PLC0415

    found = predict_run(model, parse_point(at))
    console.note_all(found.warnings)
    if as_json:
        typer.echo(json_text(found.to_json(), indent=2))
    elif not console.quiet():
        console.show(found.text())


@reporting(warns=True, pages=True, rereads="timings")
def verify_command(
    model: ModelPath,
    timings: Timings,
    clock_hz: ClockHz = None,
    worst: Annotated[
        int, typer.Option(metavar="N", help="How many of the worst lines to show.")
    ] = 10,
    strict: Strict = False,
) -> Outcome:
    """Compare the predictions of a model file with measured times.

    The exit code is 1 if the model has no prediction for any line.
    """
    from rewritelog.evaluation.verify import verify  # noqa: PLC0415

    report = verify(model, timings, clock_hz, strict=strict, worst=worst)

    def page() -> str:
        from rewritelog.evaluation.predictions import LinePredictor  # noqa: PLC0415
        from rewritelog.timings.read import read_timings  # noqa: PLC0415
        from rewritelog.viewing.fit_pages import verify_page  # noqa: PLC0415 - an extra

        predictor = LinePredictor.of(model)
        read = read_timings(timings, clock_hz, columns=predictor.columns)
        return verify_page(report, predictor.fitted, read)

    code = 0 if report.overall.score.predicted else NOTHING_COVERED
    return Outcome(report, code, page=page)


@reporting(warns=True, pages=True)
@with_model_options
def compare_command(
    timings: Timings,
    models: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="The models to compare [default: auto, least-squares, and gaussian-process where "
            "scikit-learn is installed].",
            rich_help_panel=MODEL,
            autocompletion=complete_models,
        ),
    ] = None,
    formulas: Formulas = None,
    coefficients: Coefficients = None,
    clock_hz: ClockHz = None,
    folds: Annotated[
        int,
        typer.Option(metavar="N", help="Divide the lines into N parts, and hold out each in turn."),
    ] = 10,
    fraction: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Fit to this share of each event's lines instead, drawn at random, and predict "
            "the rest.",
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(metavar="N", help="Repeat the comparison N times, each time with a new seed."),
    ] = 1,
    seed: Seed = 1,
    jobs: Jobs = 0,
    strict: Strict = False,
    *,
    model_options: dict[str, Any],
) -> Outcome:
    """Compare models on held-out timing lines.

    Lines are held out event by event. Options of models go to all models that have them.
    """
    from rewritelog.evaluation.compare import (  # noqa: PLC0415
        CompareRequest,
        compare,
        default_models,
    )

    request = CompareRequest(
        timings=tuple(timings),
        models=default_models()
        if models is None
        else tuple(name.strip() for name in models.split(",") if name.strip()),
        model_options=model_options,
        formulas=formulas,
        coefficients=coefficients,
        clock_hz=clock_hz,
        strict=strict,
        folds=folds,
        fraction=fraction,
        repeats=repeats,
        seed=seed,
        jobs=jobs,
    )
    report = compare(request)

    def page() -> str:
        from rewritelog.viewing.compare_page import compare_page  # noqa: PLC0415 - an extra

        return compare_page(report)

    return Outcome(report, page=page)
