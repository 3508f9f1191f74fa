"""The model of a rewrite: read or chosen, fitted, and made a predictor of records."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from rewritelog.cores import limited_to
from rewritelog.errors import UsageError
from rewritelog.formats.traces import Terms
from rewritelog.models.base import Model, ModelFit
from rewritelog.models.checks import checked_fit, knows_residuals
from rewritelog.models.registry import load_model
from rewritelog.options import is_given
from rewritelog.rewriting.options import DurationOptions, RewriteOptions
from rewritelog.rewriting.predicting import Predictor
from rewritelog.text import printable
from rewritelog.timings.read import TimingsRead
from rewritelog.timings.samples import names_of, samples_of
from rewritelog.timings.texts import (
    named_fit,
    read_model_file,
    read_texts,
)


def read_model(options: DurationOptions) -> Model[Any]:
    """Return the model by name, or that of a model file."""
    if isinstance(options.model, Model):
        return options.model
    if isinstance(options.fitted, Model):
        return options.fitted
    if options.fitted is not None:
        from rewritelog.models.model_file import FromFile  # noqa: PLC0415 - only some runs need it

        return FromFile(read_model_file(options.fitted))
    texts = read_texts(options.formulas, options.coefficients)
    return load_model(options.model_name, options.model_options, texts)


def fit_model(model: Model[Any], options: DurationOptions) -> tuple[TimingsRead | None, ModelFit]:
    """Read the timings and fit the model."""
    name = options.model_name
    if not model.needs_timings:
        if is_given(options.timings):
            raise UsageError(f"the model {name!r} is not fitted: it takes no timings")
        return None, checked_fit(model, name, ())
    if not is_given(options.timings):
        raise UsageError(f"the model {name!r} is fitted to timing lines: give some (--timings)")
    read = samples_of(
        options.timings, options.clock_hz, strict=options.strict, columns=model.columns
    )
    names = names_of(options.param_names, options.timings)
    with limited_to(options.jobs):
        return read, named_fit(checked_fit(model, name, read.timings), names)


def predictor_for(model: Model[Any], fitted: ModelFit, options: DurationOptions) -> Predictor:
    """Return the predictor; raise `UsageError` to spread with a model without residuals."""
    if not isinstance(options, RewriteOptions):
        return Predictor(options.model_name, fitted, model.columns)
    if options.spread == "none":
        measured = options.total == "measured"
        return Predictor(options.model_name, fitted, model.columns, measured_totals=measured)
    if not knows_residuals(fitted):
        raise UsageError(
            f"the model {options.model_name!r} has no residuals, so --spread residual cannot "
            "draw from them: choose a model that is fitted to timing lines, such as auto"
        )
    return Predictor(options.model_name, fitted, model.columns, options.spread_seed)


def fitted_predictor(options: DurationOptions) -> tuple[Model[Any], tuple[str, ...], Predictor]:
    """Return the model for the options, the warnings of its fit, and the predictor."""
    model = read_model(options)
    read, fitted = fit_model(model, options)
    warnings = (*(() if read is None else read.warnings()), *fitted.warnings())
    return model, warnings, predictor_for(model, fitted, options)


def warnings_of_unused(
    options: DurationOptions, model: Model[Any], terms: Terms, matched_patterns: Collection[str]
) -> Iterator[str]:
    """Yield a warning for each option without effect, given the patterns that matched."""
    yield from _about_unread_params(options, model)
    for pattern, _ in options.dilation_for:
        if pattern not in matched_patterns:
            name = f"no {terms.item}'s name"
            yield f"the dilation for {printable(pattern)!r} was not used: {name} matches"


def _about_unread_params(options: DurationOptions, model: Model[Any]) -> Iterator[str]:
    if options.params is not None and not model.uses_params:
        yield (
            f"{options.params}: the model {options.model_name!r} reads no params, so this "
            "folder was not used"
        )
    event_params = getattr(options, "event_params", None)
    if event_params is not None and not model.uses_params:
        yield f"{event_params}: not used, since the model {options.model_name!r} reads no params"
