"""The fit of one event: its function, or one for each class of its calls, with diagnostics."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import Meta, field
from msgspec.structs import replace

from rewritelog.arrays import Flags, Floats
from rewritelog.models.base import Prediction
from rewritelog.models.exact_matches import ExactMatches
from rewritelog.models.expressions import Expression, FormulaError, Origin, checked_names
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.diagnosis import (
    Coefficient,
    Dropped,
    Quality,
    interval_of,
    leverages,
)
from rewritelog.models.fitting.extrapolation import Growth, distance, is_outside
from rewritelog.models.fitting.function import AnyFunction, sum_of_terms
from rewritelog.models.fitting.regression import columns_of
from rewritelog.models.form import (
    AnyFloat,
    Count,
    EventName,
    Form,
    NotNegative,
    ParameterCount,
    PerParameter,
    Text,
    defect,
    require_ascending,
    require_shape,
)
from rewritelog.running.locks import cached_property

LEAST_UNCLASSED = 0.1
"""With less than this share of the samples, those in no class do not count in verdicts and ±."""


class ClassFit(Form, frozen=True, kw_only=True):
    """The function of one class of an event's calls, or of all of them."""

    value: float | None = None
    """The value of the category expression in this class; None for the function of all samples."""
    samples: Count
    family: Text
    function: AnyFunction
    formula_error: float | None = None
    """Mean held-out error of the formula of a corrected function without its correction."""
    growth: Growth | None = None
    """How the function is extrapolated; None if simply by its formula."""
    total_ratio: NotNegative = 1.0
    """The factor, from held-out samples, that corrects sums of predictions (`total_ratio_of`)."""
    coefficients: tuple[Coefficient, ...] = ()
    """Empty for a mixture."""
    dropped: tuple[Dropped, ...] = ()
    quality: Quality
    leverage_root: Floats
    """The matrix L, shape (terms, terms): the leverage of a row with term values t is |L·t|², with
    relative weights of t over its predicted sum."""
    ratios: Floats
    """Measured / predicted seconds of held-out samples, ascending."""
    spread_ratios: Floats
    """The same as `--spread residual` draws them (`ratios_by_time`)."""
    points: Count
    """The number of points that these samples have: how much is known of a further one."""

    def __post_init__(self) -> None:
        terms = len(self.function.terms)
        rows = min(len(self.leverage_root), terms)
        require_shape(".leverage_root", self.leverage_root, rows, terms)
        require_ascending(".ratios", self.ratios)
        require_ascending(".spread_ratios", self.spread_ratios)
        if not min(1, len(self.ratios)) <= self.points <= len(self.ratios):
            raise defect(f"must be from 1 to the number of `ratios`, {len(self.ratios)}", ".points")

    @property
    def knows_other_points(self) -> bool:
        """Whether held-out samples tell of other points: of 2 or 3 points none can be held out."""
        return not 1 < self.points < tuning.FEWEST_TO_VALIDATE

    def predict(
        self, params: Floats, lowest: Floats, highest: Floats
    ) -> tuple[Floats, Flags, Flags, Flags]:
        """Return each row's seconds, NaN where they are not finite, given the samples' range.

        Also return which rows are outside the range, which have more leverage than any sample, and
        for which the function is negative, unless its growth from the edge of the range is not.
        """
        columns = columns_of(self.function.terms, params)
        unbounded = self.function.unbounded(params, columns)
        seconds, negative = self.function.bounded(unbounded), unbounded < 0
        sum_s = sum_of_terms(self.function, params, columns, seconds)
        size = leverages(columns, sum_s, self.leverage_root, relative=self.quality.relative)
        remote = ~(size <= self.quality.largest_leverage * (1 + 1e-9))
        outside = is_outside(params, lowest, highest)
        if self.growth is not None and outside.any():
            grown_s = self.growth.predict(self.function, params[outside], lowest, highest)
            seconds[outside] = grown_s
            negative[outside] &= ~(grown_s > 0)
        return seconds, outside, remote, negative

    def widening(self, far: Floats) -> Floats | float:
        """Return the factor by which intervals are wider at a `distance` beyond the range."""
        if self.growth is None:
            return 1.0
        rate = self.growth.widening_rate
        rate = tuning.UNKNOWN_RATE if rate is None else rate
        return np.asarray(np.exp(np.fmin(rate * far, 50.0)))


class LeftOut(Form, frozen=True, kw_only=True):
    """The errors of a fit to lines drawn at random, on the event's other lines (`sampled`)."""

    lines: Count
    """The number of all timing lines of the event."""
    drawn: Count
    left_out: Count
    """The number of lines left out that have a prediction."""
    mean_relative_error: float | None
    sum_error: float | None
    """Of their total, predicted as by `rewrite --total measured`."""


class EventFit(
    Form,
    frozen=True,
    kw_only=True,
    dict=True,
    rename={
        "unusable": "unusable_samples",
        "unclassed": "unclassed_samples",
        "left_out": "check",
    },
):
    """The fit of one event with one number of parameters."""

    event: EventName
    parameters: ParameterCount
    names: tuple[Text, ...] = ()
    """The names of the parameters in reports, `_` for one without a name; empty for p1, p2, …"""
    samples: Count
    unusable: Count = 0
    """Number of samples left out because a number in them is not finite."""
    unclassed: Count = 0
    """Number of samples in none of the classes, beside which there are some."""
    seconds: AnyFloat = 0.0
    """The measured time of all samples together."""
    clock_step_s: NotNegative = 0.0
    """The step of a clock that is coarse for these samples; 0 if their clock is not."""
    lowest: PerParameter
    highest: PerParameter
    """The range of each parameter over the samples."""
    category: Expression | None = None
    """The expression that divides the calls into classes; None if there is one function for all."""
    family_errors: dict[Text, float] = field(default_factory=dict)
    """Mean error of each family on held-out samples, by name."""
    classes: Annotated[tuple[ClassFit, ...], Meta(min_length=1)]
    """The function of all samples first, then one for each class with enough samples."""
    exact_matches: ExactMatches | None = None
    """Usual times of parameters that were timed, and their weight against the function."""
    left_out: LeftOut | None = None
    """None for a fit to all lines."""

    def __post_init__(self) -> None:
        if self.names and len(self.names) != self.parameters:
            raise defect(f"has {len(self.names)} names for {self.parameters} parameters")
        try:
            checked_names([(name, Origin()) for name in self.names])
        except FormulaError as error:
            raise defect(error.problem, ".names") from None
        values = [class_fit.value for class_fit in self.classes]
        if values[0] is not None or None in values[1:]:
            raise defect("only the first of the `classes` has the `value` null")
        if len({*values}) < len(values):
            raise defect("two `classes` have the same `value`")

    def named(self, names: tuple[str, ...]) -> EventFit:
        """Return the fit with other names of its parameters."""
        return replace(self, names=names)

    @property
    def whole(self) -> ClassFit:
        """The function of all samples."""
        return self.classes[0]

    @property
    def judged(self) -> ClassFit:
        """The fit by which the event is judged: that of the class from which most errors come.

        The function of all samples counts as that of those in no class, unless these are few.
        """
        judged = list(self.classes[1:])
        if not judged or self.unclassed >= LEAST_UNCLASSED * self.samples:
            judged.append(self.whole)

        def errors(part: ClassFit) -> float:
            samples = self.unclassed if part is self.whole else part.samples
            return samples * (part.quality.held_out_error or 0.0)

        return max(judged, key=errors)

    @property
    def quality(self) -> Quality:
        """The quality of the fit by which the event is judged."""
        return self.judged.quality

    @property
    def ratios(self) -> Floats:
        """Measured / predicted seconds of held-out samples, ascending.

        Ratios to negative predictions, which no rewrite uses, are left out.
        """
        ratios = self.judged.ratios
        return ratios[ratios >= 0]

    def predict(self, params: Floats) -> Floats:
        """Return the seconds of each row, possibly negative; NaN where not finite."""
        return self._by_function(params)[0]

    def predict_detailed(self, params: Floats) -> Prediction:
        """Return each row's seconds, exact matches included, with flags for how they came about."""
        seconds, outside, remote, negative = self._by_function(params)
        seconds, exact = self._with_exact_matches(params, seconds)
        outside &= ~exact
        widening = np.ones(len(params))
        widening[outside] = self._widening(params[outside])
        return Prediction(seconds, exact, outside, remote, negative & ~exact, widening)

    def _by_function(self, params: Floats) -> tuple[Floats, Flags, Flags, Flags]:
        """Return what `ClassFit.predict` does, each row by the function of its class.

        Rows of a category without a class are outside: nothing is known of it.
        """
        seconds, flags = np.empty(len(params)), np.empty((3, len(params)), np.bool_)
        for class_fit, rows in self._by_class(params):
            answers = class_fit.predict(params[rows], self.lowest, self.highest)
            seconds[rows], flags[:, rows] = answers[0], answers[1:]
            flags[0, rows] |= class_fit is self.whole and len(self.classes) > 1
        outside, remote, negative = flags
        return seconds, outside, remote, negative

    def _with_exact_matches(self, params: Floats, seconds: Floats) -> tuple[Floats, Flags]:
        """Return the predicted seconds blended with exact matches, and which rows are exact."""
        if self.exact_matches is None:
            return seconds, np.zeros(len(params), dtype=np.bool_)
        return self.exact_matches.blend(params, seconds)

    @np.errstate(all="ignore")  # extreme numbers may overflow
    def interval(self, params: Floats) -> tuple[Floats, Floats]:
        """Return the lower and upper bounds in seconds of each row's 90 % prediction interval.

        They are the prediction times quantiles of the ratios measured / predicted of held-out
        samples, with the ranks that guarantee the coverage for any distribution of the errors
        (as in split conformal prediction, Lei et al., JASA 113, 2018). For exact matches timed more
        than once, the ratios are those of replicates. An interval always includes its
        prediction. The bounds are NaN with too few samples or points, and for negative predictions.
        """
        seconds, _, _, negative = self._by_function(params)
        widening = self._widening(params)
        low, high = np.full((2, len(params)), np.nan)
        for class_fit, rows in self._by_class(params):
            if len(class_fit.ratios) and class_fit.knows_other_points:
                shortest, longest = interval_of(class_fit.ratios, class_fit.points)
                low[rows] = seconds[rows] * shortest / widening[rows]
                high[rows] = seconds[rows] * longest * widening[rows]
        low[negative] = high[negative] = np.nan
        predicted, _ = self._with_exact_matches(params, seconds)
        matches = self.exact_matches
        if matches is not None and len(matches.ratios):
            replicated = matches.is_in(params, matches.are_exact & (matches.counts > 1))
            ends = interval_of(matches.ratios, len(matches.ratios))
            low[replicated], high[replicated] = predicted[replicated] * ends[:, None]
        return np.minimum(low, predicted), np.maximum(high, predicted)

    def _widening(self, params: Floats) -> Floats:
        """Return the factor by which each row's interval is wider than within the range."""
        far = distance(params, self.lowest, self.highest)
        widening = np.ones(len(params))
        for class_fit, rows in self._by_class(params):
            widening[rows] = class_fit.widening(far[rows])
        return widening

    def retransformation(self, params: Floats) -> Floats:
        """Return each row's factor that corrects sums of predictions (`total_ratio`)."""
        factors = np.ones(len(params))
        for class_fit, rows in self._by_class(params):
            factors[rows] = class_fit.total_ratio
        return self._with_measured_times(params, factors)

    def drawn_factors(self, params: Floats, uniforms: Floats) -> Floats:
        """Return a held-out ratio for each row, drawn by its uniform random number in [0, 1).

        Ratios to negative predictions are left out. The mean of those of exact matches is their
        factor of totals: where the clock makes times 0 or 1, that of the held-out ratios is larger.
        """
        factors = np.ones(len(params))

        def draw(ratios: Floats, rows: Flags) -> None:
            known = ratios[ratios >= 0]
            if len(known):
                index = (uniforms[rows] * len(known)).astype(np.int64)
                factors[rows] = known[np.minimum(index, len(known) - 1)]

        for class_fit, rows in self._by_class(params):
            draw(class_fit.spread_ratios, rows)
        factors = self._with_measured_times(params, factors)
        if (matches := self.exact_matches) is not None:
            exact = matches.is_in(params, matches.are_exact)
            draw(matches.ratios, exact)
            mean = float(matches.ratios.mean()) if len(matches.ratios) else 0.0
            if mean > 0:
                factors[exact] *= self.retransformation(params[exact]) / mean
        return factors

    def _with_measured_times(self, params: Floats, factors: Floats) -> Floats:
        """Return factors of predictions, given those of functions.

        Where a prediction is a function's blended with a measured time, which has a factor of its
        own, each counts for its part.
        """
        if (matches := self.exact_matches) is None:
            return factors
        index = matches.points.find(params)
        measured = np.append(matches.total_ratios, 1.0)[index]
        return factors + np.append(self._measured_shares, 0.0)[index] * (measured - factors)

    @cached_property
    def _measured_shares(self) -> Floats:
        """The share of the measured time in the prediction of each set of exact matches."""
        matches = self.exact_matches
        if matches is None:
            return np.zeros(0)
        return matches.measured_shares(self._by_function(matches.rows)[0])

    def _by_class(self, params: Floats) -> list[tuple[ClassFit, Flags]]:
        """Return each class with its rows; the function of all samples has the remaining ones."""
        rest = np.ones(len(params), dtype=np.bool_)
        if self.category is None or len(self.classes) == 1:
            return [(self.whole, rest)]
        values = self.category.evaluate(params)
        classes = []
        for class_fit in self.classes[1:]:
            rows = np.asarray(values == class_fit.value)
            rest = np.asarray(rest & ~rows)
            classes.append((class_fit, rows))
        return [(self.whole, rest), *classes]
