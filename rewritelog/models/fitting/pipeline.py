"""From an event's timings to its fit, top down: the steps of every fit in their order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from msgspec import Struct, structs

from rewritelog.arrays import Flags, Floats, column_range, median
from rewritelog.models.base import EventTimings, is_measured
from rewritelog.models.exact_matches import ExactMatch, exact_matches_of
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.correction import UseCorrection, choose_correction
from rewritelog.models.fitting.design import Family, Parameters, SelectionSamples
from rewritelog.models.fitting.diagnosis import (
    Coefficient,
    Diagnosis,
    Dropped,
    diagnose,
    dropped_terms,
)
from rewritelog.models.fitting.event_fit import ClassFit, EventFit
from rewritelog.models.fitting.extrapolation import growth_of
from rewritelog.models.fitting.families import automatic_families
from rewritelog.models.fitting.function import AnyFunction, FittedFunction, FittedMixture, Formula
from rewritelog.models.fitting.regression import Loss
from rewritelog.models.fitting.samples import (
    Samples,
    Weighting,
    coarse_step,
    usable_samples,
    without_short_scales,
)
from rewritelog.models.fitting.validation import cross_validate, fit_family
from rewritelog.progress import report_progress
from rewritelog.text import count_text


class FitConfig(Struct, frozen=True):
    """How an event is fitted."""

    weights: Weighting = "relative"
    loss: Loss = "huber"
    exact_match: ExactMatch = "auto"
    correction: UseCorrection = "none"
    """Whether the selected function may be corrected by a smooth factor."""
    families: Mapping[str, Family] | None = None
    """The family of given terms, by its name; None for the automatic choice."""
    category: Expression | None = None
    """The expression that divides the event's calls into classes, each with its own fit."""
    names: tuple[str, ...] = ()
    """The names of the parameters in reports; empty without names."""


@np.errstate(all="ignore")  # extreme numbers may overflow
def fit_event(timings: EventTimings, config: FitConfig) -> EventFit:
    """Fit one event's times; in at least one sample all numbers have to be finite."""
    usable, first = usable_samples(timings)
    lowest, highest = column_range(usable.params)
    whole = _fit_class(usable, first, config, None, usable.params)
    large, small = _classes(usable, config.category)
    classes = [
        _fit_class(usable.part(rows), first[rows], config, value, usable.params)
        for value, rows in large
    ]
    whole = whole._replace(fit=structs.replace(whole.fit, dropped=(*whole.fit.dropped, *small)))
    classed = sum(int(np.count_nonzero(rows)) for _, rows in large)
    validated = classes or [whole]
    held_out = EventTimings(
        timings.event,
        np.concatenate([each.held_out.params for each in validated]),
        np.concatenate([each.held_out.seconds for each in validated]),
        np.flatnonzero(np.concatenate([each.held_out.first for each in validated])),
    )
    return EventFit(
        event=timings.event,
        parameters=usable.parameters,
        names=config.names,
        samples=len(usable.seconds),
        unusable=len(timings.seconds) - len(usable.seconds),
        unclassed=len(usable.seconds) - classed if classes else 0,
        seconds=float(usable.seconds.sum()),
        clock_step_s=coarse_step(usable.seconds) if is_measured(timings.event) else 0.0,
        lowest=lowest,
        highest=highest,
        classes=(whole.fit, *(each.fit for each in classes)),
        category=config.category,
        family_errors=whole.family_errors,
        exact_matches=exact_matches_of(
            usable,
            config.exact_match,
            held_out,
            np.concatenate([each.held_out_s for each in validated]),
            knows_other_points=any(each.fit.knows_other_points for each in validated),
        ),
    )


class _ValidatedFit(NamedTuple):
    """The fit of one class, and what is known from its cross-validation."""

    fit: ClassFit
    family_errors: dict[str, float]
    held_out: Samples
    held_out_s: Floats
    """The samples held out, and what fits without them predict: NaN if they are too few."""


def _fit_class(
    usable: EventTimings, first: Flags, config: FitConfig, value: float | None, params: Floats
) -> _ValidatedFit:
    """Fit the samples of one class, or all: clean, validate, select, solve, diagnose.

    `params` are those of all samples of the event; `first` is true for its first calls.
    """
    all_samples = Samples.of(usable, first, config.weights)
    usable_part, loss = all_samples.random_part(tuning.MOST_FITTED), _loss(usable, config)
    samples = without_short_scales(usable_part, loss)
    selection = SelectionSamples.of(samples.random_part(tuning.MOST_SELECTED_WITH), loss)
    families = _families(selection, config, params)
    validation = cross_validate(families, selection)
    # a value for each code predicts no other code, but is better than a trend that does not exist
    by_line = config.families is None and validation.are_codes
    chosen_by = cross_validate(families, selection, by_line=True) if by_line else validation
    weights = chosen_by.select()
    corrected, plain_s = None, validation.predicted_by(weights)
    if config.correction == "auto" and config.families is None and plain_s is not None:
        corrected = choose_correction(next(iter(weights)), plain_s, validation)
    final_s = corrected.held_out.predicted_s if corrected else plain_s
    growth = None if config.families is not None else growth_of(weights, validation, final_s)
    if corrected is not None and [*weights] != [corrected.family]:
        if growth is not None and growth.function is None:
            growth = structs.replace(growth, function=validation.solve(weights))
        weights = {corrected.family: 1.0}
        plain_s = validation.predicted_by(weights)
    report_progress("coefficients")
    formula = validation.solve(weights, samples)
    diagnosis = diagnose(formula, samples, loss, selection.samples, plain_s)
    simplest = next(name for name in validation.families if name in weights)
    family = validation.families[simplest]
    coefficients = _coefficients(formula, diagnosis)
    function: AnyFunction = formula
    formula_error = None
    if corrected is not None and isinstance(formula, FittedFunction):
        formula_error = diagnosis.quality.held_out_error
        function = corrected.with_formulas(
            lambda name: fit_family(validation.families[name], selection, samples)
        )
        diagnosis = diagnose(function, samples, loss, selection.samples, final_s)
    fit = ClassFit(
        value=value,
        samples=len(samples),
        family="mixture" if isinstance(formula, FittedMixture) else simplest,
        function=function,
        formula_error=formula_error,
        growth=growth,
        coefficients=coefficients,
        dropped=_dropped_parameters(selection.parameters)
        if family.user_terms is None
        else dropped_terms(family.user_terms, formula.terms, selection, params),
        **diagnosis._asdict(),
    )
    errors = {name: family.mean_error for name, family in validation.predictions.items()}
    held_out_s = np.full(len(selection.samples), np.nan) if final_s is None else final_s
    return _ValidatedFit(fit, errors, selection.samples, held_out_s)


def _loss(usable: EventTimings, config: FitConfig) -> Loss:
    """Return the loss of a fit: squares where the clock rounds most of the times to 0.

    The robust centre of such times is 0, while their mean is that of the calls, since a call begins
    anywhere between two steps of the clock.
    """
    rounded = is_measured(usable.event) and median(usable.seconds) == 0
    return "squares" if rounded else config.loss


def _families(
    selection: SelectionSamples, config: FitConfig, params: Floats
) -> Mapping[str, Family]:
    """Return the families to choose from."""
    if config.families is not None:
        return {name: family.finite_in(params) for name, family in config.families.items()}
    return automatic_families(selection.samples.effective_count)


def _classes(
    usable: EventTimings, category: Expression | None
) -> tuple[list[tuple[float, Flags]], tuple[Dropped, ...]]:
    """Return each value of the category that has enough samples, with its rows.

    Also return, for reports, how many other values there are.
    """
    if category is None:
        return [], ()
    values = category.evaluate(usable.params)
    distinct_values, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    large = counts >= tuning.FEWEST_IN_A_CLASS
    classes = [(value, values == value) for value in distinct_values[large].tolist()]
    if large.all():
        return classes, ()
    few = f"{np.count_nonzero(~large):,} of {count_text(len(counts), 'class', 'classes')}"
    reason = f"fewer than {tuning.FEWEST_IN_A_CLASS} samples in {few}"
    return classes, (Dropped(str(category), reason, "small classes"),)


def _coefficients(function: Formula, diagnosis: Diagnosis) -> tuple[Coefficient, ...]:
    """Return the calibrated coefficients with standard errors; none for a mixture.

    Standard errors are the square roots of the diagonal of s² (XᵀX)⁻¹, s² being χ² per degree of
    freedom; they do not include the uncertainty of the selection of the terms.
    """
    if isinstance(function, FittedMixture):
        return ()
    names, quality = map(str, function.terms), diagnosis.quality
    values = (function.coefficients * function.calibration).tolist()
    if not quality.dof:
        return tuple(map(Coefficient, names, values))
    residual = np.sqrt(quality.chi2 / quality.dof)
    errors = residual * np.linalg.norm(diagnosis.leverage_root, axis=0)
    return tuple(map(Coefficient, names, values, errors.tolist()))


def _dropped_parameters(parameters: Parameters) -> tuple[Dropped, ...]:
    """Return the parameters that no candidate term uses."""
    return tuple(
        Dropped(
            f"p{number}",
            f"p{number} {reason}",
            "constant" if number in parameters.constant else "tied",
        )
        for number, reason in parameters.ignored.items()
    )
