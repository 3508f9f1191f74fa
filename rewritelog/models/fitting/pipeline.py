"""From an event's timings to its fit: the choice of a function, its diagnosis, its classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rewritelog.arrays import Flags, Floats
from rewritelog.models.base import EventTimings
from rewritelog.models.exact_matches import ExactMatch, HeldOutTimes, exact_matches_of
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting.candidates import Parameters
from rewritelog.models.fitting.cross_validation import Choice, choose, fit_all_samples
from rewritelog.models.fitting.diagnosis import Coefficient, Dropped, Quality, diagnose
from rewritelog.models.fitting.event_fit import ClassFit, EventFit, usable_part
from rewritelog.models.fitting.families import FAMILIES, Family, fixed_terms, proportional
from rewritelog.models.fitting.function import FittedFunction
from rewritelog.models.fitting.samples import Samples, Weighting
from rewritelog.models.fitting.short_outliers import without_short_scales
from rewritelog.models.fitting.solving import Loss

FEWEST_TO_CHOOSE = 4
"""With fewer samples there is nothing to leave out, and the simplest family is taken."""

NOT_DETERMINED = "is constant or a combination of the other terms in all samples"

FEWEST_IN_A_CLASS = 8
"""A class with fewer samples is predicted by the function of all samples."""


@dataclass(frozen=True)
class Account:
    """A function of all samples, with what a person reads of it."""

    function: FittedFunction
    coefficients: tuple[Coefficient, ...]
    dropped: tuple[Dropped, ...]


@dataclass(frozen=True)
class FitConfig:
    """How an event is fitted."""

    weights: Weighting = "relative"
    loss: Loss = "huber"
    exact_match: ExactMatch = "auto"
    families: Mapping[str, Family] | None = None
    """The families to choose from; None for the automatic choice."""
    category: Expression | None = None
    """What splits the event into classes with a fit each."""
    terms: tuple[Expression, ...] = ()
    """The terms of the one family, where they are given."""
    account: Callable[[Samples, Loss], Account] | None = None
    """How the one family fits all samples, where it has a way of its own."""


def with_formula(
    config: FitConfig, terms: tuple[Expression, ...], category: Expression | None
) -> FitConfig:
    """Return the config for the terms, and maybe the classes, of a formula."""
    families = {"formula": fixed_terms(terms)}
    return replace(config, families=families, terms=terms, category=category)


def fit_event(timings: EventTimings, config: FitConfig) -> EventFit:
    """Fit one event's times; at least one sample must be finite in all its numbers."""
    with np.errstate(all="ignore"):  # numbers near the ends of their range may overflow
        return _fit_event(timings, config)


def _fit_event(timings: EventTimings, config: FitConfig) -> EventFit:
    usable = usable_part(timings)
    whole, choice = _fit_class(usable, config, None)
    fits, choices = [whole], [choice]
    if config.category is not None:
        values = config.category.evaluate(usable.params)
        for value, rows in _classes(values):
            part = EventTimings(timings.event, usable.params[rows], usable.seconds[rows])
            fit, its_choice = _fit_class(part, config, value)
            fits.append(fit)
            choices.append(its_choice)
    return EventFit(
        event=timings.event,
        samples=len(usable.seconds),
        unusable=len(timings.seconds) - len(usable.seconds),
        lowest=usable.params.min(axis=0),
        highest=usable.params.max(axis=0),
        classes=tuple(fits),
        category=config.category,
        family_errors={name: one.mean_error for name, one in choice.tried.items()},
        exact_matches=exact_matches_of(
            usable, config.exact_match, _together(choices[1:] or choices)
        ),
    )


def _classes(values: Floats) -> list[tuple[float, Flags]]:
    """Return each value of the category that has samples enough, with its rows."""
    found, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    return [
        (float(value), values == value)
        for value, count in zip(found, counts, strict=True)
        if count >= FEWEST_IN_A_CLASS
    ]


def _together(parts: Sequence[Choice]) -> HeldOutTimes:
    """Return the held-out samples of several choices as one table."""
    known = [(one.tried_with, one.held_out) for one in parts if one.held_out is not None]
    if not known:
        return HeldOutTimes(np.zeros((0, 0)), np.zeros(0), np.zeros(0))
    return HeldOutTimes(
        np.concatenate([samples.params for samples, _ in known]),
        np.concatenate([samples.seconds for samples, _ in known]),
        np.concatenate([tried.predicted_s for _, tried in known]),
    )


def _fit_class(
    usable: EventTimings, config: FitConfig, value: float | None
) -> tuple[ClassFit, Choice]:
    """Fit the samples of a class, or all; return the fit and the choice that it comes from."""
    samples = Samples.weighted(usable.params, usable.seconds, config.weights)
    if config.loss == "huber":
        samples = without_short_scales(samples)
    families = _families(samples, config)
    choice = choose(families, samples, config.loss, try_out=len(samples) >= FEWEST_TO_CHOOSE)
    held_out = choice.held_out
    seen = None if held_out is None else (choice.tried_with, held_out.predicted_s)
    told = None if config.account is None else config.account(samples, config.loss)
    if told is None:
        function = fit_all_samples(families[choice.family], choice.tried_with, samples, config.loss)
    else:
        function = told.function
    quality, root, ratios = diagnose(function, samples, seen)
    fit = ClassFit(
        value=value,
        samples=len(samples),
        family=choice.family,
        function=function,
        coefficients=told.coefficients if told else _coefficients(function, samples, quality, root),
        dropped=told.dropped if told else _dropped(function, samples, config),
        quality=quality,
        leverage_root=root,
        ratios=ratios,
    )
    return fit, choice


def _families(samples: Samples, config: FitConfig) -> Mapping[str, Family]:
    """Return the families to choose from, the simplest alone where nothing can be tried."""
    if config.families is not None:
        return config.families
    return FAMILIES if len(samples) >= FEWEST_TO_CHOOSE else {"proportional": proportional}


def _coefficients(
    function: FittedFunction, samples: Samples, quality: Quality, root: Floats
) -> tuple[Coefficient, ...]:
    """Return the terms with their calibrated coefficients and standard errors.

    Standard errors are the roots of the diagonal of s² (XᵀX)⁻¹, s² being χ² for each degree of
    freedom; they know nothing of the choice of the terms.
    """
    spread = np.linalg.norm(root, axis=0)
    chi2 = quality.chi2 / (1.0 if samples.relative else float(samples.scale_s[0]) ** 2)
    errors = spread * np.sqrt(chi2 / quality.freedom) if quality.freedom else None
    return tuple(
        Coefficient(
            str(term),
            float(coefficient) * function.calibration,
            None if errors is None else float(errors[place]),
        )
        for place, (term, coefficient) in enumerate(
            zip(function.terms, function.coefficients, strict=True)
        )
    )


def _dropped(function: FittedFunction, samples: Samples, config: FitConfig) -> tuple[Dropped, ...]:
    """Return the parameters that no term could be made of, or the given terms left out."""
    if config.families is None:
        ignored = Parameters.of_samples(samples.params).ignored
        return tuple(
            Dropped(f"p{one.parameter}", f"p{one.parameter} {one.reason}") for one in ignored
        )
    left = (term for term in config.terms if term not in function.terms)
    return tuple(Dropped(str(term), NOT_DETERMINED) for term in left)
