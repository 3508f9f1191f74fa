"""`rewritelog fit`, `predict`, `verify` and `compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rewritelog.cli.arguments import AsJson, ClockHz, Coefficients, Formulas, ModelOption, Strict
from rewritelog.cli.model_options import MODEL_HELP, add_pairs, with_model_options
from rewritelog.text import printable

ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file of `rewritelog fit`.")
]
Timings = Annotated[
    list[Path], typer.Argument(metavar="TIMINGS...", help="Files of timing lines, plain or gzip.")
]


@with_model_options
def fit_command(
    timings: Timings,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The model file to write [default: only report]."),
    ] = None,
    model: Annotated[str, typer.Option(help=MODEL_HELP, show_default=False)] = "auto",
    formulas: Formulas = None,
    coefficients: Coefficients = None,
    clock_hz: ClockHz = None,
    model_option: ModelOption = None,
    strict: Strict = False,
    as_json: AsJson = False,
    *,
    model_options: dict[str, Any],
) -> None:
    """Fit a model to timing lines, say how far it is to be trusted, and write it to a model file.

    `rewrite --fitted`, `predict` and `verify` use the file without the timings.
    """
    from rewritelog.evaluation.fit import FitRequest, fit  # noqa: PLC0415 - heavy

    add_pairs(model_options, model_option)
    request = FitRequest(
        tuple(timings), model, model_options, formulas, coefficients, clock_hz, strict
    )
    report = fit(request, out)
    typer.echo(report.json_text() if as_json else report.text())


def predict_command(
    model: ModelPath,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Files of params (param.P), timing lines or chosen SEBs."
        ),
    ],
    form: Annotated[
        Literal["csv", "jsonl"], typer.Option("--format", help="What is printed.")
    ] = "csv",
    strict: Strict = False,
) -> None:
    """Print what a model file predicts for each record of the files, a line each, in their order.

    Each prediction says what determined it: fit, exact, out of range, or no model.
    """
    from rewritelog.evaluation.predict import predict  # noqa: PLC0415
    from rewritelog.evaluation.predictions import MalformedLines  # noqa: PLC0415

    malformed = MalformedLines()
    for text in predict(model, files, form, malformed, strict=strict):
        typer.echo(text, nl=False)
    for warning in malformed.warnings():
        typer.echo(f"warning: {printable(warning)}", err=True)


def verify_command(
    model: ModelPath,
    timings: Timings,
    clock_hz: ClockHz = None,
    worst: Annotated[int, typer.Option(help="How many of the worst lines are shown.")] = 10,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Compare the predictions of a model file with measured times, by event and overall."""
    from rewritelog.evaluation.verify import verify  # noqa: PLC0415

    report = verify(model, timings, clock_hz, strict=strict, worst=worst)
    typer.echo(report.json_text() if as_json else report.text())


@with_model_options
def compare_command(
    timings: Timings,
    models: Annotated[
        str, typer.Option(help="The models to compare, with commas between.")
    ] = "auto,least-squares",
    formulas: Formulas = None,
    coefficients: Coefficients = None,
    clock_hz: ClockHz = None,
    folds: Annotated[int, typer.Option(help="Each line is left out of one of so many fits.")] = 10,
    fraction: Annotated[
        float | None,
        typer.Option(help="Fit to so large a random share of each event instead, try on the rest."),
    ] = None,
    repeats: Annotated[int, typer.Option(help="How often all is done, each with a new seed.")] = 1,
    seed: Annotated[int, typer.Option(help="The same seed draws the same lines.")] = 1,
    strict: Strict = False,
    as_json: AsJson = False,
    *,
    model_options: dict[str, Any],
) -> None:
    """Compare models on the same timing lines, each tried on lines that its fit has not seen.

    Lines are left out event by event. Options of models go to all models that have them.
    """
    from rewritelog.evaluation.compare import CompareRequest, compare  # noqa: PLC0415

    request = CompareRequest(
        timings=tuple(timings),
        models=tuple(name.strip() for name in models.split(",") if name.strip()),
        model_options=model_options,
        formulas=formulas,
        coefficients=coefficients,
        clock_hz=clock_hz,
        strict=strict,
        folds=folds,
        fraction=fraction,
        repeats=repeats,
        seed=seed,
    )
    report = compare(request)
    typer.echo(report.json_text() if as_json else report.text())
