"""The JSON schema of an event's fit, for model files and, without its data, for reports.

Only model files contain what only predictions need (leverages, ratios, measured times). Their
numbers read back exactly, with NaN and infinity as strings; in a report these are null.
`docs/model-files.md` describes each key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, get_type_hints

import numpy as np

from rewritelog.models.exact_matches import ExactMatches
from rewritelog.models.exact_times import ExactTimes, hash_rows
from rewritelog.models.expressions import MAX_PARAMETERS, Expression, Origin, parse
from rewritelog.models.fitting.diagnosis import Coefficient, Dropped, Quality
from rewritelog.models.fitting.event_fit import ClassFit, EventFit
from rewritelog.models.fitting.extrapolation import Growth
from rewritelog.models.fitting.function import (
    AnyFunction,
    FittedFunction,
    FittedMixture,
    PredictionBounds,
)
from rewritelog.models.formulas.names import checked_names
from rewritelog.models.json_document import MAX_EVENT_NAME, Node, without_defaults
from rewritelog.text import exact_number, json_number

MOST_SETS_OF_A_HASH = 64
"""More parameter sets with the same hash are no coincidence, and would make look-ups slow."""

QUALITY_KEYS = {
    "held_out_error": "held_out_mean_relative_error",
    "held_out_rms": "held_out_rms_relative_error",
    "coverage": "interval_coverage",
    "relative": "relative_residuals",
    "freedom": "degrees_of_freedom",
    "even_samples": "effective_samples",
    "first_call": "first_call_ratio",
    "negative": "negative_predictions",
}
"""The JSON key of each field of `Quality` whose key differs from its name."""

VERSION_1_KEYS = {
    "unusable_samples": "unusable",
    "family_errors": "tried",
    "exact_matches": "exact",
    "function": "law",
    "outliers": "far_off",
    **{new: old for old, new in QUALITY_KEYS.items()},
}
"""The key in version 1 of model files of each key that has been renamed since."""

_EVENT: dict[str, Any] = {
    "names": [],
    "unusable_samples": 0,
    "category": None,
    "family_errors": {},
    "exact_matches": None,
}
_CLASS: dict[str, Any] = {
    "value": None,
    "growth": None,
    "total_ratio": 1.0,
    "coefficients": [],
    "dropped": [],
    "ratios": [],
}
_SUM = {"bounds": None, "calibration": 1.0}
_BOUNDS = {"least_s": 0.0, "most_s": None}
_GROWTH = {"function": None, "error": None, "most_s": None}
_COEFFICIENT = {"standard_error": None}
_QUALITY: dict[str, Any] = {
    "r2": None,
    "held_out_r2": None,
    "held_out_mean_relative_error": None,
    "held_out_rms_relative_error": None,
    "held_out_sum_error": None,
    "interval_coverage": None,
    "outliers": 0,
    "first_call_ratio": None,
    "negative_predictions": 0,
}
"""The keys that a model file may leave out, with the values that missing ones have."""

_Range: TypeAlias = tuple[list[float], list[float]]
"""The lowest and the highest value of each parameter over an event's samples."""

_Number: TypeAlias = Callable[[float | None], float | str | None]


def event_json(fit: EventFit, *, complete: bool) -> dict[str, Any]:
    """Return one event's fit as a JSON object; `complete` for a model file, else for a report.

    A model file leaves out keys with default values.
    """
    number: _Number = exact_number if complete else json_number
    range_ = fit.lowest.tolist(), fit.highest.tolist()
    writer = _JsonWriter(number, range_, complete=complete)
    exact = fit.exact_matches
    return writer.written(
        {
            "event": fit.event,
            "parameters": fit.parameters,
            "names": list(fit.names),
            "samples": fit.samples,
            "unusable_samples": fit.unusable,
            "lowest": range_[0],
            "highest": range_[1],
            "category": None if fit.category is None else str(fit.category),
            "family_errors": {name: number(error) for name, error in fit.family_errors.items()},
            "classes": [writer.class_(one) for one in fit.classes],
            "exact_matches": None if exact is None else _matches_json(exact, complete=complete),
        },
        _EVENT,
    )


@dataclass(frozen=True)
class _JsonWriter:
    """Converts the parts of one event's fit to JSON objects."""

    number: _Number
    range_: _Range
    complete: bool

    def written(self, made: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
        """Return an object without its defaults in a model file, in full in a report."""
        return without_defaults(made, defaults) if self.complete else made

    def class_(self, fit: ClassFit) -> dict[str, Any]:
        """Return the fit of a class."""
        made: dict[str, Any] = {
            "value": fit.value,
            "samples": fit.samples,
            "family": fit.family,
            "function": self.function(fit.function),
            "growth": None if fit.growth is None else self.growth(fit.growth),
            "total_ratio": self.number(fit.total_ratio),
            "coefficients": [self.coefficient(one) for one in fit.coefficients],
            "dropped": [{"term": one.term, "reason": one.reason} for one in fit.dropped],
            "quality": self.quality(fit.quality),
        }
        if self.complete:
            rows = fit.leverage_root.tolist()
            made["leverage_root"] = [[self.number(value) for value in row] for row in rows]
            made["ratios"] = fit.ratios.tolist()
        return self.written(made, _CLASS)

    def quality(self, quality: Quality) -> dict[str, Any]:
        """Return the statistics of a fit."""
        made = {
            QUALITY_KEYS.get(name, name): value if isinstance(value, int) else self.number(value)
            for name, value in vars(quality).items()
        }
        return self.written(made, _QUALITY)

    def coefficient(self, one: Coefficient) -> dict[str, Any]:
        """Return a coefficient as reports show it."""
        made = {
            "term": one.term,
            "value": self.number(one.value),
            "standard_error": self.number(one.standard_error),
        }
        return self.written(made, _COEFFICIENT)

    def function(self, function: AnyFunction) -> dict[str, Any]:
        """Return a function; in a model file all of its numbers have to be finite."""
        if isinstance(function, FittedMixture):
            return {
                "members": [
                    {"share": share, "function": self.function(member)}
                    for member, share in zip(function.members, function.shares, strict=True)
                ]
            }
        number = float if self.complete else json_number
        made = {
            "bounds": None if function.bounds is None else self.bounds(function.bounds),
            "terms": [
                {"term": str(term), "coefficient": number(coefficient)}
                for term, coefficient in zip(
                    function.terms, function.coefficients.tolist(), strict=True
                )
            ],
            "calibration": number(function.calibration),
        }
        return self.written(made, _SUM)

    def bounds(self, bounds: PredictionBounds) -> dict[str, Any]:
        """Return a function's bounds; by default they refer to the ranges of the event."""
        made = {
            "least_s": bounds.least_s,
            "most_s": bounds.most_s,
            "lowest": bounds.lowest.tolist(),
            "highest": bounds.highest.tolist(),
        }
        return self.written(made, _bounds_defaults(self.range_))

    def growth(self, growth: Growth) -> dict[str, Any]:
        """Return how a function is extrapolated beyond the range of the samples."""
        function = growth.function
        made = {
            "function": None if function is None else self.function(function),
            "error": growth.error,
            "least_s": growth.least_s,
            "most_s": growth.most_s,
        }
        return self.written(made, _GROWTH)


def _bounds_defaults(range_: _Range) -> dict[str, Any]:
    return {**_BOUNDS, "lowest": range_[0], "highest": range_[1]}


def _matches_json(exact: ExactMatches, *, complete: bool) -> dict[str, Any]:
    if not complete:
        weights = exact.weights
        mean = json_number(float(weights.mean())) if len(weights) else None
        return {"sets": len(weights), "mean_weight": mean}
    return {
        "seconds": exact.times.seconds.tolist(),
        "samples": [int(count) for count in exact.times.counts],
        "weights": exact.weights.tolist(),
        "params": exact.times.rows.tolist(),
    }


def read_event(node: Node) -> EventFit:
    """Return the fit of a complete `event_json`; raise `ModelError` for anything else."""
    parts = node.fields(
        "event",
        "parameters",
        "samples",
        "lowest",
        "highest",
        "classes",
        defaults=_EVENT,
    )
    many = parts["parameters"].count()
    if many > MAX_PARAMETERS:
        raise parts["parameters"].error(f"is {many}; at most {MAX_PARAMETERS}")
    errors = parts["family_errors"].entries()
    lowest, highest = parts["lowest"].numbers(many), parts["highest"].numbers(many)
    range_ = lowest.tolist(), highest.tolist()
    return EventFit(
        event=parts["event"].text(MAX_EVENT_NAME),
        samples=parts["samples"].count(),
        unusable=parts["unusable_samples"].count(),
        lowest=lowest,
        highest=highest,
        classes=_read_classes(parts["classes"], range_),
        category=parts["category"].maybe(lambda one: _read_expression(one, many)),
        family_errors={name: one.exact_number() for name, one in errors.items()},
        exact_matches=parts["exact_matches"].maybe(lambda one: _read_matches(one, many)),
        names=_read_names(parts["names"], many),
    )


def _read_names(node: Node, many: int) -> tuple[str, ...]:
    """Return the names of the parameters; an empty tuple if the file has none."""
    nodes = node.items()
    if nodes and len(nodes) != many:
        raise node.error(f"has {len(nodes)} names for {many} parameters")
    return checked_names([(one.text(), Origin(one.where)) for one in nodes])


def _read_classes(node: Node, range_: _Range) -> tuple[ClassFit, ...]:
    """Return the function of all samples, and then that of each class."""
    nodes = node.items()
    if not nodes:
        raise node.error("is empty: the function of all samples is missing")
    classes = [_read_class(one, range_) for one in nodes]
    for index, (one, found) in enumerate(zip(nodes, classes, strict=True)):
        if (found.value is None) != (index == 0):
            raise one.error("the first class has the value null, and all others a number")
    if len({found.value for found in classes}) < len(classes):
        raise node.error("has a duplicated value")
    return tuple(classes)


def _read_class(node: Node, range_: _Range) -> ClassFit:
    parts = node.fields(
        "samples", "family", "function", "quality", "leverage_root", defaults=_CLASS
    )
    function = _read_function(parts["function"], range_)
    ratios = parts["ratios"].numbers()
    if (np.diff(ratios) < 0).any():
        raise parts["ratios"].error("are not in ascending order")
    root = parts["leverage_root"].exact_table(len(function.terms))
    if len(root) > len(function.terms):
        raise parts["leverage_root"].error(f"has more than {len(function.terms)} rows")
    return ClassFit(
        value=parts["value"].maybe(Node.number),
        samples=parts["samples"].count(),
        family=parts["family"].text(),
        function=function,
        growth=parts["growth"].maybe(lambda one: _read_growth(one, range_)),
        total_ratio=_read_total_ratio(parts["total_ratio"]),
        coefficients=tuple(_read_coefficient(one) for one in parts["coefficients"].items()),
        dropped=tuple(_read_dropped(one) for one in parts["dropped"].items()),
        quality=_read_quality(parts["quality"]),
        leverage_root=root,
        ratios=ratios,
    )


def _read_total_ratio(node: Node) -> float:
    ratio = node.number()
    if ratio < 0:
        raise node.error("must not be negative")
    return ratio


def _read_growth(node: Node, range_: _Range) -> Growth:
    parts = node.fields("least_s", defaults=_GROWTH)
    return Growth(
        parts["function"].maybe(lambda one: _read_function(one, range_)),
        parts["error"].maybe(Node.number),
        parts["least_s"].number(),
        parts["most_s"].maybe(Node.number),
    )


def _read_function(node: Node, range_: _Range) -> AnyFunction:
    """Return a sum of terms, or a mixture of such sums."""
    if not (isinstance(node.value, dict) and "members" in node.value):
        return _read_sum(node, range_)
    members: list[FittedFunction] = []
    shares: list[float] = []
    for one in node.fields("members")["members"].items():
        parts = one.fields("share", "function")
        shares.append(parts["share"].number())
        if not 0 < shares[-1] <= 1:
            raise parts["share"].error("must lie between 0 and 1")
        members.append(_read_sum(parts["function"], range_))
    if not members:
        raise node.error("has no members")
    return FittedMixture(tuple(members), tuple(shares))


def _read_sum(node: Node, range_: _Range) -> FittedFunction:
    parts = node.fields("terms", defaults=_SUM)
    many = len(range_[0])
    terms: list[Expression] = []
    coefficients: list[float] = []
    for one in parts["terms"].items():
        term = one.fields("term", "coefficient")
        terms.append(_read_expression(term["term"], many))
        coefficients.append(term["coefficient"].number())
    return FittedFunction(
        tuple(terms),
        np.array(coefficients, dtype=np.float64),
        parts["calibration"].number(),
        parts["bounds"].maybe(lambda one: _read_bounds(one, range_)),
    )


def _read_bounds(node: Node, range_: _Range) -> PredictionBounds:
    parts = node.fields(defaults=_bounds_defaults(range_))
    many = len(range_[0])
    return PredictionBounds(
        parts["lowest"].numbers(many),
        parts["highest"].numbers(many),
        parts["least_s"].number(),
        parts["most_s"].maybe(Node.number),
    )


def _read_expression(node: Node, many: int) -> Expression:
    return parse(node.text(), parameters=many, where=Origin(node.where))


def _read_coefficient(node: Node) -> Coefficient:
    parts = node.fields("term", "value", defaults=_COEFFICIENT)
    return Coefficient(
        parts["term"].text(),
        parts["value"].exact_number(),
        parts["standard_error"].maybe(Node.exact_number),
    )


def _read_dropped(node: Node) -> Dropped:
    parts = node.fields("term", "reason")
    return Dropped(parts["term"].text(), parts["reason"].text())


def _read_quality(node: Node) -> Quality:
    """Return the statistics of a fit, each of its declared type."""
    readers: dict[Any, Callable[[Node], Any]] = {
        int: Node.count,
        bool: Node.flag,
        float: Node.exact_number,
        float | None: lambda one: one.maybe(Node.exact_number),
    }
    kinds = _quality_kinds()
    required = (QUALITY_KEYS.get(name, name) for name in kinds)
    parts = node.fields(*(key for key in required if key not in _QUALITY), defaults=_QUALITY)
    values = {
        name: readers[kind](parts[QUALITY_KEYS.get(name, name)]) for name, kind in kinds.items()
    }
    return Quality(**values)


@cache
def _quality_kinds() -> dict[str, Any]:
    return get_type_hints(Quality)


def _read_matches(node: Node, many: int) -> ExactMatches:
    parts = node.fields("seconds", "samples", "weights", "params")
    rows = parts["params"].table(many)
    seconds = parts["seconds"].numbers(len(rows))
    counts = parts["samples"].numbers(len(rows))
    weights = parts["weights"].numbers(len(rows))
    if ((weights < 0) | (weights > 1)).any():
        raise parts["weights"].error("must lie between 0 and 1")
    keys = hash_rows(rows)
    order = np.lexsort((*rows.T, keys))
    if (rows[order[1:]] == rows[order[:-1]]).all(axis=1).any():
        raise parts["params"].error("has a duplicated row")
    longest = int(np.unique(keys, return_counts=True)[1].max(initial=0))
    if longest > MOST_SETS_OF_A_HASH:
        raise parts["params"].error(
            f"has {longest} rows with the same hash; at most {MOST_SETS_OF_A_HASH}"
        )
    times = ExactTimes(keys[order], rows[order], seconds[order], counts[order], longest)
    return ExactMatches(times, weights[order])
