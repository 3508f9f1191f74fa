"""From an event's timings to its fit, top down: the steps of every fit in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from msgspec import structs

from rewritelog.arrays import Flags, Floats, column_range
from rewritelog.models.base import EventTimings, has_slow_first_call
from rewritelog.models.exact_matches import ExactMatch, HeldOutTimes, exact_matches_of
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.automatic import PROPORTIONAL, automatic_families, few_families
from rewritelog.models.fitting.candidates import Parameters
from rewritelog.models.fitting.corrected import UseCorrection, choose_correction
from rewritelog.models.fitting.cross_validation import (
    NOT_VALIDATED,
    CrossValidation,
    cross_validate,
    select_families,
    solve_families,
)
from rewritelog.models.fitting.design import SelectionSamples
from rewritelog.models.fitting.diagnosis import Coefficient, Diagnosis, Dropped, diagnose
from rewritelog.models.fitting.dropped import dropped_terms
from rewritelog.models.fitting.event_fit import ClassFit, EventFit, usable_part
from rewritelog.models.fitting.extrapolation import growth_of
from rewritelog.models.fitting.families import Family, fixed_terms
from rewritelog.models.fitting.function import AnyFunction, FittedFunction, FittedMixture, Formula
from rewritelog.models.fitting.one_sample import fit_one_sample, is_one_sample
from rewritelog.models.fitting.regression import Loss
from rewritelog.models.fitting.samples import BLOCK_ROWS, Samples, Weighting
from rewritelog.models.fitting.short_outliers import without_short_scales
from rewritelog.progress import report_progress

AsReported: TypeAlias = Callable[[Sequence[Expression], Parameters], tuple[tuple[str, ...], Floats]]
"""A function of terms that returns their names in reports, and the matrix that turns their
coefficients into those of the named terms."""


@dataclass(frozen=True)
class FitConfig:
    """How an event is fitted."""

    weights: Weighting = "relative"
    loss: Loss = "huber"
    exact_match: ExactMatch = "auto"
    correction: UseCorrection = "none"
    """Whether the selected function may be corrected by what it leaves."""
    families: Mapping[str, Family] | None = None
    """The families to choose from; None for the automatic choice."""
    category: Expression | None = None
    """The expression that divides the event's calls into classes, each with its own fit."""
    terms: Callable[[Parameters], Mapping[str, Expression]] | None = None
    """The given terms of the only family, by their names in reports."""
    as_reported: AsReported | None = None
    """How reports spell the terms, if not as they are fitted."""

    def with_terms(
        self, name: str, terms: tuple[Expression, ...], *, non_negative: bool = False
    ) -> FitConfig:
        """Return the configuration with these terms as the only family, called `name`."""
        families = {name: fixed_terms(terms, non_negative=non_negative)}
        return replace(self, families=families, terms=lambda _: {str(term): term for term in terms})


def fit_event(timings: EventTimings, config: FitConfig) -> EventFit:
    """Fit one event's times; in at least one sample all numbers have to be finite."""
    with np.errstate(all="ignore"):  # extreme numbers may overflow
        usable = usable_part(timings)
        lowest, highest = column_range(usable.params)
        whole, validation, held_out_s = _fit_class(usable, config, None)
        fits, held_out = [whole], [(validation, held_out_s)]
        for value, rows in _classes(usable, config.category):
            part = EventTimings(timings.event, usable.params[rows], usable.seconds[rows])
            class_fit, of_class, held_out_s = _fit_class(part, config, value)
            fits.append(class_fit)
            held_out.append((of_class, held_out_s))
        return EventFit(
            event=timings.event,
            parameters=usable.parameters,
            samples=len(usable.seconds),
            unusable=len(timings.seconds) - len(usable.seconds),
            lowest=lowest,
            highest=highest,
            classes=tuple(fits),
            category=config.category,
            family_errors={
                name: tried.mean_error for name, tried in validation.predictions.items()
            },
            exact_matches=exact_matches_of(
                usable, config.exact_match, _held_out_times(held_out[1:] or held_out)
            ),
        )


def _fit_class(
    usable: EventTimings, config: FitConfig, value: float | None
) -> tuple[ClassFit, CrossValidation, Floats | None]:
    """Fit the samples of one class, or all: clean, validate, select, solve, calibrate, diagnose.

    Return the fit, its cross-validation, and the seconds that this predicts for held-out samples.
    """
    if config.families is None and is_one_sample(usable):
        class_fit = fit_one_sample(usable, PROPORTIONAL, config.weights, value)
        return class_fit, NOT_VALIDATED, None
    samples = _cleaned(usable, config)
    selection = SelectionSamples.of(samples.random_part(tuning.MOST_SELECTED_WITH), config.loss)
    families = _families(selection, config)
    validation = NOT_VALIDATED
    if len(samples) >= tuning.FEWEST_TO_VALIDATE:
        validation = cross_validate(families, selection)
    weights = select_families(families, validation)
    corrected = None
    if config.correction == "auto" and config.families is None and len(weights) == 1:
        corrected = choose_correction(next(iter(weights)), families, selection, validation)
    final_s = validation.predicted_by(weights)
    if corrected is not None:
        final_s = corrected.held_out.predicted_s
    growth = None
    if config.families is None:
        growth = growth_of(weights, families, selection, validation, final_s)
    if corrected is not None and corrected.family not in weights:
        if growth is not None and growth.function is None:
            growth = structs.replace(growth, function=solve_families(weights, families, selection))
        weights = {corrected.family: 1.0}
    held_out_s = validation.predicted_by(weights)
    if samples is not selection.samples:  # what follows works on all of the many samples
        selection.table.forget_values()
    report_progress("coefficients")
    formula = solve_families(weights, families, selection, samples)
    diagnosis = diagnose(formula, samples, validation.samples, held_out_s)
    names, coefficients = _coefficients(formula, selection.parameters, samples, config, diagnosis)
    function: AnyFunction = formula
    formula_error = None
    if corrected is not None and isinstance(formula, FittedFunction):
        formula_error = diagnosis.quality.held_out_error
        function = corrected.with_formula(formula)
        part = samples.random_part(BLOCK_ROWS)  # a correction costs much more than its formula
        diagnosis = diagnose(function, part, validation.samples, final_s)
    fit = ClassFit(
        value=value,
        samples=len(samples),
        family=_family_name(formula, families, weights),
        function=function,
        formula_error=formula_error,
        growth=growth,
        total_ratio=diagnosis.total_ratio,
        coefficients=coefficients,
        dropped=_dropped(names, selection, config),
        quality=diagnosis.quality,
        leverage_root=diagnosis.leverage_root,
        ratios=diagnosis.ratios,
    )
    return fit, validation, final_s


def _family_name(
    function: Formula, families: Mapping[str, Family], weights: Mapping[str, float]
) -> str:
    """Return what reports call the function: by the simplest of the families that chose it."""
    if isinstance(function, FittedMixture):
        return "mixture"
    return next(name for name in families if name in weights)


def _cleaned(usable: EventTimings, config: FitConfig) -> Samples:
    """Return the samples with their weights, those of short outliers reduced in a robust fit."""
    samples = Samples.weighted(
        usable.params, usable.seconds, config.weights, slow_first=has_slow_first_call(usable.event)
    )
    return without_short_scales(samples) if config.loss == "huber" else samples


def _families(selection: SelectionSamples, config: FitConfig) -> Mapping[str, Family]:
    """Return the families to choose from; only the simplest one if no sample can be held out."""
    if config.families is not None:
        return config.families
    if len(selection.samples) < tuning.FEWEST_TO_VALIDATE:
        return few_families(selection)
    return automatic_families(len(selection.samples))


def _classes(usable: EventTimings, category: Expression | None) -> Iterator[tuple[float, Flags]]:
    """Yield each value of the category that has enough samples, with its rows."""
    if category is None:
        return
    values = category.evaluate(usable.params)
    distinct_values, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    for value, count in zip(distinct_values, counts, strict=True):
        if count >= tuning.FEWEST_IN_A_CLASS:
            yield float(value), values == value


def _held_out_times(
    validated: Sequence[tuple[CrossValidation, Floats | None]],
) -> HeldOutTimes:
    """Return the held-out samples of several classes as one table."""
    known = [
        (validation.samples, held_out) for validation, held_out in validated if held_out is not None
    ]
    if not known:
        return HeldOutTimes(np.zeros((0, 0)), np.zeros(0), np.zeros(0))
    return HeldOutTimes(
        np.concatenate([samples.params for samples, _ in known]),
        np.concatenate([samples.seconds for samples, _ in known]),
        np.concatenate([held_out for _, held_out in known]),
    )


def _coefficients(
    function: Formula,
    parameters: Parameters,
    samples: Samples,
    config: FitConfig,
    diagnosis: Diagnosis,
) -> tuple[tuple[str, ...], tuple[Coefficient, ...]]:
    """Return the names of the terms, and their calibrated coefficients with standard errors.

    Standard errors are the square roots of the diagonal of s² (XᵀX)⁻¹, s² being χ² per degree of
    freedom; they do not include the uncertainty of the selection of the terms.
    """
    if isinstance(function, FittedMixture):
        return (), ()
    names, matrix = tuple(map(str, function.terms)), np.eye(len(function.terms))
    if config.as_reported is not None:
        names, matrix = config.as_reported(function.terms, parameters)
    values = matrix @ function.coefficients * function.calibration
    quality = diagnosis.quality
    if not quality.dof:
        return names, tuple(map(Coefficient, names, values.tolist(), [None] * len(names)))
    residual = np.sqrt(quality.chi2 / quality.dof)
    residual /= 1.0 if samples.relative else samples.sigma_s[0]
    errors = residual * np.linalg.norm(diagnosis.leverage_root @ matrix.T, axis=0)
    return names, tuple(map(Coefficient, names, values.tolist(), errors.tolist()))


def _dropped(
    taken: Sequence[str], selection: SelectionSamples, config: FitConfig
) -> tuple[Dropped, ...]:
    """Return the parameters that no candidate term uses, or the given terms that were left out."""
    if config.terms is None:
        return tuple(
            Dropped(f"p{ignored.parameter}", f"p{ignored.parameter} {ignored.reason}")
            for ignored in selection.parameters.ignored
        )
    return dropped_terms(config.terms(selection.parameters), taken, selection)
