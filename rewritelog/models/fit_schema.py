"""The schema of an event's fit: each object of its JSON is a class here, and msgspec checks it.

A class is made `of` the part of a fit that it holds; `made` returns that part again. Model files
leave out keys with default values. Reports have all keys, but lack what only predictions need
(leverages, ratios, measured times). Numbers of model files read back exactly, with NaN and infinity
as strings; in a report these are null. `docs/model-files.md` describes each key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta

from rewritelog.arrays import Floats
from rewritelog.models.exact_matches import ExactMatches
from rewritelog.models.exact_times import ExactTimes, hash_rows
from rewritelog.models.expressions import MAX_PARAMETERS, FormulaError, Origin, parse
from rewritelog.models.fitting.correction import MOST_POINTS, Correction, InputKind, Inputs
from rewritelog.models.fitting.diagnosis import Coefficient, Dropped, Quality
from rewritelog.models.fitting.event_fit import ClassFit, EventFit
from rewritelog.models.fitting.extrapolation import Growth
from rewritelog.models.fitting.function import (
    AnyFunction,
    CorrectedFunction,
    FittedFunction,
    FittedMixture,
    PredictionBounds,
)
from rewritelog.models.fitting.process import Kernel, Process
from rewritelog.models.formulas.names import checked_names
from rewritelog.text import exact_number, json_number

MOST_SETS_OF_A_HASH = 64
"""More parameter sets with the same hash are no coincidence, and would make look-ups slow."""

MOST_INPUTS = 8 * MAX_PARAMETERS
"""A parameter has at most so many inputs of a correction: its size, tiles and alignment."""

Text: TypeAlias = Annotated[str, Meta(max_length=10_000)]
"""A name or sentence."""

EventName: TypeAlias = Annotated[str, Meta(max_length=1 << 20)]
"""The name of an event: no timing line is longer."""

Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]

ParameterCount: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_PARAMETERS)]

Positive: TypeAlias = Annotated[float, Meta(ge=1e-100, le=1e100)]

NotNegative: TypeAlias = Annotated[float, Meta(ge=0, le=1e100)]

Exact: TypeAlias = float | Literal["nan", "inf", "-inf"]
"""A number that need not be finite, as model files hold it; all others have to be."""

Range: TypeAlias = tuple[list[float], list[float]]
"""The lowest and the highest value of each parameter over an event's samples."""


class MisfitError(ValueError):
    """A value that contradicts others; `path` leads to it from the object being converted."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path


@contextmanager
def at(step: str) -> Iterator[None]:
    """Prefix the path of a `MisfitError` with a step; an error in a formula becomes one."""
    try:
        yield
    except MisfitError as error:
        raise MisfitError(error.problem, step + error.path) from None
    except FormulaError as error:
        raise MisfitError(f"column {error.column}: {error.problem}", step) from None


class Form(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object of the JSON."""


class TermForm(Form, frozen=True, kw_only=True):
    """A term of a sum."""

    term: Text
    coefficient: float


class BoundsForm(Form, frozen=True, kw_only=True):
    """The bounds of a function; null for ranges that are the event's."""

    least_s: float = 0.0
    most_s: float | None = None
    lowest: list[float] | None = None
    highest: list[float] | None = None

    @classmethod
    def of(cls, bounds: PredictionBounds, known: Range | None) -> BoundsForm:
        """Return the form of bounds, without ranges that are `known`."""
        found = bounds.lowest.tolist(), bounds.highest.tolist()
        lowest, highest = (
            None if values == of_event else values
            for values, of_event in zip(found, known or (None, None), strict=True)
        )
        return cls(least_s=bounds.least_s, most_s=bounds.most_s, lowest=lowest, highest=highest)

    def made(self, known: Range) -> PredictionBounds:
        """Return the bounds; raise `MisfitError` for a wrong number of parameters."""
        ranges = []
        for name, of_event in zip(("lowest", "highest"), known, strict=True):
            values = getattr(self, name)
            ranges.append(_numbers(of_event if values is None else values, len(of_event), name))
        return PredictionBounds(ranges[0], ranges[1], self.least_s, self.most_s)


class FunctionForm(Form, frozen=True, kw_only=True, tag_field="kind"):
    """A function. A subclass with a tag is a kind of function; `FORMS` says which class it holds.

    Each has a class method `of(function, known)` and a method `made(known)`. `known` is the range
    of the event, which the form need not hold; None for a report.
    """


class SumForm(FunctionForm, frozen=True, kw_only=True, tag="sum"):
    """A sum of terms."""

    bounds: BoundsForm | None = None
    terms: list[TermForm]
    calibration: float = 1.0

    @classmethod
    def of(cls, function: FittedFunction, known: Range | None) -> SumForm:
        """Return the form of a sum."""
        pairs = zip(function.terms, function.coefficients.tolist(), strict=True)
        return cls(
            bounds=None if function.bounds is None else BoundsForm.of(function.bounds, known),
            terms=[TermForm(term=str(term), coefficient=value) for term, value in pairs],
            calibration=function.calibration,
        )

    def made(self, known: Range) -> FittedFunction:
        """Return the sum."""
        terms = []
        for index, one in enumerate(self.terms):
            with at(f".terms[{index}].term"):
                terms.append(parse(one.term, parameters=len(known[0])))
        with at(".bounds"):
            bounds = None if self.bounds is None else self.bounds.made(known)
        coefficients = np.array([one.coefficient for one in self.terms], dtype=np.float64)
        return FittedFunction(tuple(terms), coefficients, self.calibration, bounds)


class MemberForm(Form, frozen=True, kw_only=True):
    """A member of a mixture."""

    share: Annotated[float, Meta(gt=0, le=1)]
    function: SumForm


class MixtureForm(FunctionForm, frozen=True, kw_only=True, tag="mixture"):
    """A geometric mean of sums."""

    members: Annotated[list[MemberForm], Meta(min_length=1)]

    @classmethod
    def of(cls, function: FittedMixture, known: Range | None) -> MixtureForm:
        """Return the form of a mixture."""
        pairs = zip(function.members, function.weights, strict=True)
        return cls(
            members=[
                MemberForm(share=share, function=SumForm.of(member, known))
                for member, share in pairs
            ]
        )

    def made(self, known: Range) -> FittedMixture:
        """Return the mixture."""
        members = []
        for index, one in enumerate(self.members):
            with at(f".members[{index}].function"):
                members.append(one.function.made(known))
        return FittedMixture(tuple(members), tuple(one.share for one in self.members))


class InputForm(Form, frozen=True, kw_only=True):
    """An input of a correction's process; lengths are in units of `deviation`."""

    parameter: Annotated[int, Meta(ge=1)]
    kind: InputKind
    unit: Positive = 1.0
    centre: float
    deviation: Positive
    code: bool = False
    smooth_length: Positive
    rough_length: Positive


class CorrectionForm(Form, frozen=True, kw_only=True):
    """A correction; reports lack the last two fields."""

    inputs: Annotated[list[InputForm], Meta(min_length=1, max_length=MOST_INPUTS)]
    smooth: NotNegative
    rough: NotNegative
    noise: NotNegative
    most: NotNegative
    params: Annotated[list[list[float]], Meta(max_length=MOST_POINTS)]
    weights: Annotated[list[float], Meta(max_length=MOST_POINTS)]

    @classmethod
    def of(cls, correction: Correction) -> CorrectionForm:
        """Return the form of a correction."""
        inputs, kernel = correction.inputs, correction.process.kernel
        columns = zip(
            (inputs.parameters + 1).tolist(),
            inputs.kinds,
            inputs.units.tolist(),
            inputs.centres.tolist(),
            inputs.deviations.tolist(),
            kernel.codes.tolist(),
            kernel.smooth_lengths.tolist(),
            kernel.rough_lengths.tolist(),
            strict=True,
        )
        names = InputForm.__struct_fields__
        return cls(
            inputs=[InputForm(**dict(zip(names, one, strict=True))) for one in columns],
            smooth=kernel.smooth,
            rough=kernel.rough,
            noise=kernel.noise,
            most=correction.most,
            params=correction.params.tolist(),
            weights=correction.process.weights.tolist(),
        )

    def made(self, known: Range) -> Correction:
        """Return the correction."""
        many = len(known[0])
        for index, one in enumerate(self.inputs):
            if one.parameter > many:
                problem = f"is {one.parameter}; the event has {many} parameters"
                raise MisfitError(problem, f".inputs[{index}].parameter")
        names = InputForm.__struct_fields__
        columns = {name: [getattr(one, name) for one in self.inputs] for name in names}
        inputs = Inputs(
            np.array(columns["parameter"], dtype=np.int64) - 1,
            tuple(columns["kind"]),
            np.array(columns["unit"]),
            np.array(columns["centre"]),
            np.array(columns["deviation"]),
        )
        kernel = Kernel(
            np.array(columns["code"], dtype=np.bool_),
            np.array(columns["smooth_length"]),
            np.array(columns["rough_length"]),
            self.smooth,
            self.rough,
            self.noise,
        )
        params = _table(self.params, many, "params")
        weights = _numbers(self.weights, len(params), "weights")
        process = Process(kernel, inputs.columns(params), weights)
        return Correction(inputs, params, process, self.most)


class CorrectedForm(FunctionForm, frozen=True, kw_only=True, tag="corrected"):
    """A formula times the factor of a correction."""

    formula: SumForm
    correction: CorrectionForm

    @classmethod
    def of(cls, function: CorrectedFunction, known: Range | None) -> CorrectedForm:
        """Return the form of a corrected function."""
        return cls(
            formula=SumForm.of(function.formula, known),
            correction=CorrectionForm.of(function.correction),
        )

    def made(self, known: Range) -> CorrectedFunction:
        """Return the corrected function."""
        with at(".formula"):
            formula = self.formula.made(known)
        with at(".correction"):
            correction = self.correction.made(known)
        return CorrectedFunction(formula, correction)


AnyForm: TypeAlias = SumForm | MixtureForm | CorrectedForm

FORMS: dict[type, Any] = {
    FittedFunction: SumForm,
    FittedMixture: MixtureForm,
    CorrectedFunction: CorrectedForm,
}
"""The form of each kind of function."""


def function_form(function: AnyFunction, known: Range | None) -> Any:
    """Return the form of a function of any kind."""
    return FORMS[type(function)].of(function, known)


class GrowthForm(Form, frozen=True, kw_only=True):
    """How a function is extrapolated beyond the range of the samples."""

    function: SumForm | MixtureForm | None = None
    error: float | None = None
    least_s: float
    most_s: float | None = None

    @classmethod
    def of(cls, growth: Growth, known: Range | None) -> GrowthForm:
        """Return the form of a growth."""
        function = growth.function
        return cls(
            function=None if function is None else function_form(function, known),
            error=growth.error,
            least_s=growth.least_s,
            most_s=growth.most_s,
        )

    def made(self, known: Range) -> Growth:
        """Return the growth."""
        with at(".function"):
            function = None if self.function is None else self.function.made(known)
        return Growth(function, self.error, self.least_s, self.most_s)


class CoefficientForm(Form, frozen=True, kw_only=True):
    """A coefficient as reports show it."""

    term: Text
    value: Exact
    standard_error: Exact | None = None


class DroppedForm(Form, frozen=True, kw_only=True):
    """A term or parameter that the samples cannot determine."""

    term: Text
    reason: Text


class QualityForm(
    Form,
    frozen=True,
    kw_only=True,
    rename={
        "held_out_error": "held_out_mean_relative_error",
        "held_out_rms": "held_out_rms_relative_error",
        "coverage": "interval_coverage",
        "relative": "relative_residuals",
        "dof": "degrees_of_freedom",
        "effective_sample_size": "effective_samples",
        "first_call": "first_call_ratio",
        "negative": "negative_predictions",
    },
):
    """The statistics of a fit."""

    r2: Exact | None = None
    held_out_r2: Exact | None = None
    held_out_error: Exact | None = None
    held_out_rms: Exact | None = None
    held_out_sum_error: Exact | None = None
    coverage: Exact | None = None
    chi2: Exact
    relative: bool
    dof: Count
    rank: Count
    condition: Exact
    largest_leverage: Exact
    effective_sample_size: Exact
    outliers: Count = 0
    first_call: Exact | None = None
    negative: Count = 0


class ClassForm(Form, frozen=True, kw_only=True):
    """The fit of a class; reports lack the last two fields."""

    value: float | None = None
    samples: Count
    family: Text
    function: AnyForm
    formula_error: Exact | None = None
    growth: GrowthForm | None = None
    total_ratio: Annotated[float, Meta(ge=0)] = 1.0
    coefficients: list[CoefficientForm] = []
    dropped: list[DroppedForm] = []
    quality: QualityForm
    leverage_root: list[list[Exact]]
    ratios: list[float] = []

    def __post_init__(self) -> None:
        if (np.diff(self.ratios) < 0).any():
            raise ValueError("`ratios` are not in ascending order")

    @classmethod
    def of(cls, fit: ClassFit, known: Range | None) -> ClassForm:
        """Return the form of the fit of a class."""
        return cls(
            value=fit.value,
            samples=fit.samples,
            family=fit.family,
            function=function_form(fit.function, known),
            formula_error=fit.formula_error,
            growth=None if fit.growth is None else GrowthForm.of(fit.growth, known),
            total_ratio=fit.total_ratio,
            coefficients=[CoefficientForm(**vars(one)) for one in fit.coefficients],
            dropped=[DroppedForm(**vars(one)) for one in fit.dropped],
            quality=QualityForm(**vars(fit.quality)),
            leverage_root=fit.leverage_root.tolist(),
            ratios=fit.ratios.tolist(),
        )

    def made(self, known: Range) -> ClassFit:
        """Return the fit of the class."""
        with at(".function"):
            function = self.function.made(known)
        with at(".growth"):
            growth = None if self.growth is None else self.growth.made(known)
        root = [[float(value) for value in row] for row in self.leverage_root]
        many = len(function.terms)
        if len(root) > many:
            raise MisfitError(f"has more than {many} rows", ".leverage_root")
        return ClassFit(
            value=self.value,
            samples=self.samples,
            family=self.family,
            function=function,
            formula_error=None if self.formula_error is None else float(self.formula_error),
            growth=growth,
            total_ratio=self.total_ratio,
            coefficients=tuple(Coefficient(**_exact_fields(one)) for one in self.coefficients),
            dropped=tuple(Dropped(one.term, one.reason) for one in self.dropped),
            quality=Quality(**_exact_fields(self.quality)),
            leverage_root=_table(root, many, "leverage_root"),
            ratios=np.array(self.ratios, dtype=np.float64),
        )


class MatchesForm(Form, frozen=True, kw_only=True):
    """Sets of parameters that were measured, with their mean times."""

    seconds: list[float]
    samples: list[Count]
    weights: list[Annotated[float, Meta(ge=0, le=1)]]
    params: list[list[float]]

    @classmethod
    def of(cls, exact: ExactMatches) -> MatchesForm:
        """Return the form of exact matches."""
        times = exact.times
        return cls(
            seconds=times.seconds.tolist(),
            samples=times.counts.astype(np.int64).tolist(),
            weights=exact.weights.tolist(),
            params=times.rows.tolist(),
        )

    def made(self, parameters: int) -> ExactMatches:
        """Return the exact matches, in the order of their hashes."""
        rows = _table(self.params, parameters, "params")
        seconds, counts, weights = (
            _numbers(getattr(self, name), len(rows), name)
            for name in ("seconds", "samples", "weights")
        )
        keys = hash_rows(rows)
        order = np.lexsort((*rows.T, keys))
        if (rows[order[1:]] == rows[order[:-1]]).all(axis=1).any():
            raise MisfitError("has a duplicated row", ".params")
        longest = int(np.unique(keys, return_counts=True)[1].max(initial=0))
        if longest > MOST_SETS_OF_A_HASH:
            problem = f"has {longest} rows with the same hash; at most {MOST_SETS_OF_A_HASH}"
            raise MisfitError(problem, ".params")
        times = ExactTimes(keys[order], rows[order], seconds[order], counts[order], longest)
        return ExactMatches(times, weights[order])


class EventForm(Form, frozen=True, kw_only=True):
    """The fit of an event; reports have a summary of its exact matches."""

    event: EventName
    parameters: ParameterCount
    names: list[Text] = []
    samples: Count
    unusable_samples: Count = 0
    lowest: list[float]
    highest: list[float]
    category: Text | None = None
    family_errors: dict[Text, Exact] = {}
    classes: Annotated[list[ClassForm], Meta(min_length=1)]
    exact_matches: MatchesForm | None = None

    def __post_init__(self) -> None:
        if self.names and len(self.names) != self.parameters:
            raise ValueError(f"has {len(self.names)} names for {self.parameters} parameters")
        values = [one.value for one in self.classes]
        if values[0] is not None or None in values[1:]:
            raise ValueError("only the first of the `classes` has the `value` null")
        if len({*values}) < len(values):
            raise ValueError("two `classes` have the same `value`")

    @classmethod
    def of(cls, fit: EventFit, known: Range | None, exact: ExactMatches | None) -> EventForm:
        """Return the form of a fit."""
        return cls(
            event=fit.event,
            parameters=fit.parameters,
            names=list(fit.names),
            samples=fit.samples,
            unusable_samples=fit.unusable,
            lowest=fit.lowest.tolist(),
            highest=fit.highest.tolist(),
            category=None if fit.category is None else str(fit.category),
            family_errors=dict(fit.family_errors),
            classes=[ClassForm.of(one, known) for one in fit.classes],
            exact_matches=None if exact is None else MatchesForm.of(exact),
        )

    def made(self) -> EventFit:
        """Return the fit; raise `MisfitError` for parts that contradict each other."""
        many, known = self.parameters, (self.lowest, self.highest)
        lowest, highest = (
            _numbers(getattr(self, name), many, name) for name in ("lowest", "highest")
        )
        classes = []
        for index, one in enumerate(self.classes):
            with at(f".classes[{index}]"):
                classes.append(one.made(known))
        with at(".category"):
            category = None if self.category is None else parse(self.category, parameters=many)
        with at(".exact_matches"):
            exact = None if self.exact_matches is None else self.exact_matches.made(many)
        with at(".names"):
            names = checked_names([(one, Origin()) for one in self.names])
        return EventFit(
            event=self.event,
            samples=self.samples,
            unusable=self.unusable_samples,
            lowest=lowest,
            highest=highest,
            classes=tuple(classes),
            category=category,
            family_errors={name: float(error) for name, error in self.family_errors.items()},
            exact_matches=exact,
            names=names,
        )


def event_in_file(fit: EventFit) -> dict[str, Any]:
    """Return a fit as the JSON object of a model file; raise `ValueError` if that cannot be read.

    That is so for a number that has to be finite and is not.
    """
    known = fit.lowest.tolist(), fit.highest.tolist()
    made: dict[str, Any] = _plain(EventForm.of(fit, known, fit.exact_matches), exact_number)
    msgspec.convert(made, EventForm)
    return made


def event_in_report(fit: EventFit) -> dict[str, Any]:
    """Return a fit as the JSON object of a report."""
    made: dict[str, Any] = _plain(EventForm.of(fit, None, None), json_number, complete=True)
    for one in made["classes"]:
        del one["leverage_root"], one["ratios"]
        if correction := one["function"].get("correction"):
            del correction["params"], correction["weights"]
    if fit.exact_matches is not None:
        weights = fit.exact_matches.weights
        mean = json_number(float(weights.mean())) if len(weights) else None
        made["exact_matches"] = {"sets": len(weights), "mean_weight": mean}
    return made


def _plain(value: Any, number: Callable[[float], object], *, complete: bool = False) -> Any:
    """Return a form as JSON values, with or without its defaults; `number` converts each float."""
    if isinstance(value, list):
        return [_plain(one, number, complete=complete) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one, number, complete=complete) for key, one in value.items()}
    if isinstance(value, Form):
        made = dict(_tag_of(type(value)))
        for name, key, default in _fields_of(type(value)):
            one = getattr(value, name)
            if complete or one != default:
                made[key] = _plain(one, number, complete=complete)
        return made
    return number(value) if type(value) is float else value


@cache
def _tag_of(form: type[Form]) -> dict[str, Any]:
    config = form.__struct_config__
    return {} if config.tag is None else {str(config.tag_field): config.tag}


@cache
def _fields_of(form: type[Form]) -> list[tuple[str, str, Any]]:
    """Return name, key and default of each field."""
    fields = msgspec.structs.fields(form)
    empty = msgspec.NODEFAULT
    return [
        (
            one.name,
            one.encode_name,
            one.default if one.default_factory is empty else one.default_factory(),
        )
        for one in fields
    ]


def _exact_fields(form: Form) -> dict[str, Any]:
    """Return the fields of a form with numbers in place of `Exact` ones."""
    return {
        name: float(value) if isinstance(value, str) and name != "term" else value
        for name, value in msgspec.structs.asdict(form).items()
    }


def _numbers(values: Sequence[float], length: int, name: str) -> Floats:
    """Return a list as an array; raise `MisfitError` unless it has this length."""
    if len(values) != length:
        raise MisfitError(f"must have {length} numbers, not {len(values)}", f".{name}")
    return np.array(values, dtype=np.float64)


def _table(rows: Sequence[Sequence[float]], columns: int, name: str) -> Floats:
    """Return a list of rows as an array; raise `MisfitError` unless each has so many columns."""
    for index, row in enumerate(rows):
        if len(row) != columns:
            problem = f"must have {columns} numbers, not {len(row)}"
            raise MisfitError(problem, f".{name}[{index}]")
    return np.array(rows, dtype=np.float64).reshape(len(rows), columns)
