"""The one JSON form of an event's fit: model files hold all of it, reports leave out its data.

What only predictions need (leverages, ratios, measured times) is in model files alone. Their
numbers read back as they were, NaN and infinity as texts; in a report these are null.
`docs/model-files.md` describes each key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
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
from rewritelog.models.json_document import MAX_EVENT_NAME, Node
from rewritelog.text import exact_number, json_number

MOST_SETS_OF_A_HASH = 64
"""More parameter sets that share a hash are no accident."""

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
"""How JSON names a field of `Quality`, where it has a name of its own."""

VERSION_1_KEYS = {
    "unusable_samples": "unusable",
    "family_errors": "tried",
    "exact_matches": "exact",
    "function": "law",
    "outliers": "far_off",
    **{new: old for old, new in QUALITY_KEYS.items()},
}
"""What version 1 of model files called the keys that have another name now."""

_Number: TypeAlias = Callable[[float | None], float | str | None]


def event_json(fit: EventFit, *, complete: bool) -> dict[str, Any]:
    """Return one event's fit in JSON types, `complete` as a model file needs it."""
    number: _Number = exact_number if complete else json_number
    exact = fit.exact_matches
    return {
        "event": fit.event,
        "parameters": fit.parameters,
        "names": list(fit.names),
        "samples": fit.samples,
        "unusable_samples": fit.unusable,
        "lowest": fit.lowest.tolist(),
        "highest": fit.highest.tolist(),
        "category": None if fit.category is None else str(fit.category),
        "family_errors": {name: number(error) for name, error in fit.family_errors.items()},
        "classes": [_class_json(one, number, complete=complete) for one in fit.classes],
        "exact_matches": None if exact is None else _matches_json(exact, complete=complete),
    }


def _class_json(fit: ClassFit, number: _Number, *, complete: bool) -> dict[str, Any]:
    quality = {QUALITY_KEYS.get(name, name): value for name, value in asdict(fit.quality).items()}
    written: dict[str, Any] = {
        "value": fit.value,
        "samples": fit.samples,
        "family": fit.family,
        "function": _function_json(fit.function, complete=complete),
        "growth": None if fit.growth is None else _growth_json(fit.growth, complete=complete),
        "total_ratio": number(fit.total_ratio),
        "coefficients": [
            {
                "term": one.term,
                "value": number(one.value),
                "standard_error": number(one.standard_error),
            }
            for one in fit.coefficients
        ],
        "dropped": [asdict(one) for one in fit.dropped],
        "quality": {
            name: value if isinstance(value, int) else number(value)
            for name, value in quality.items()
        },
    }
    if complete:
        rows = fit.leverage_root.tolist()
        written["leverage_root"] = [[number(value) for value in row] for row in rows]
        written["ratios"] = fit.ratios.tolist()
    return written


def _function_json(function: AnyFunction, *, complete: bool) -> dict[str, Any]:
    """Return what predicts: a model file cannot hold a function that is not finite."""
    if isinstance(function, FittedMixture):
        return {
            "members": [
                {"share": share, "function": _function_json(member, complete=complete)}
                for member, share in zip(function.members, function.shares, strict=True)
            ]
        }
    number = float if complete else json_number
    return {
        "bounds": None if function.bounds is None else _bounds_json(function.bounds),
        "terms": [
            {"term": str(term), "coefficient": number(float(coefficient))}
            for term, coefficient in zip(function.terms, function.coefficients, strict=True)
        ],
        "calibration": number(function.calibration),
    }


def _growth_json(growth: Growth, *, complete: bool) -> dict[str, Any]:
    function = growth.function
    return {
        "function": None if function is None else _function_json(function, complete=complete),
        "error": growth.error,
        "least_s": growth.least_s,
    }


def _bounds_json(bounds: PredictionBounds) -> dict[str, Any]:
    return {
        "least_s": bounds.least_s,
        "most_s": bounds.most_s,
        "lowest": bounds.lowest.tolist(),
        "highest": bounds.highest.tolist(),
    }


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
    """Return the fit that `event_json` wrote in full; raise `ModelError` for anything else."""
    parts = node.fields(
        "event",
        "parameters",
        "samples",
        "unusable_samples",
        "lowest",
        "highest",
        "category",
        "family_errors",
        "classes",
        "exact_matches",
        optional=("names",),
    )
    many = parts["parameters"].count()
    if many > MAX_PARAMETERS:
        raise parts["parameters"].error(f"is {many}; at most {MAX_PARAMETERS}")
    errors = parts["family_errors"].entries()
    return EventFit(
        event=parts["event"].text(MAX_EVENT_NAME),
        samples=parts["samples"].count(),
        unusable=parts["unusable_samples"].count(),
        lowest=parts["lowest"].numbers(many),
        highest=parts["highest"].numbers(many),
        classes=_read_classes(parts["classes"], many),
        category=parts["category"].maybe(lambda one: _read_expression(one, many)),
        family_errors={name: one.exact_number() for name, one in errors.items()},
        exact_matches=parts["exact_matches"].maybe(lambda one: _read_matches(one, many)),
        names=_read_names(parts["names"], many),
    )


def _read_names(node: Node, many: int) -> tuple[str, ...]:
    """Return the parameters' names; none where the file has none."""
    nodes = node.maybe(Node.items) or []
    if nodes and len(nodes) != many:
        raise node.error(f"has {len(nodes)} names for {many} parameters")
    return checked_names([(one.text(), Origin(one.where)) for one in nodes])


def _read_classes(node: Node, many: int) -> tuple[ClassFit, ...]:
    """Return the functions: the one of all samples first, then one for each value."""
    nodes = node.items()
    if not nodes:
        raise node.error("is empty: the function of all samples is missing")
    classes = [_read_class(one, many) for one in nodes]
    for place, (one, found) in enumerate(zip(nodes, classes, strict=True)):
        if (found.value is None) != (place == 0):
            raise one.error("the first class has the value null, and all others a number")
    if len({found.value for found in classes}) < len(classes):
        raise node.error("has a duplicated value")
    return tuple(classes)


def _read_class(node: Node, many: int) -> ClassFit:
    parts = node.fields(
        "value",
        "samples",
        "family",
        "function",
        "coefficients",
        "dropped",
        "quality",
        "leverage_root",
        "ratios",
        optional=("growth", "total_ratio"),
    )
    function = _read_function(parts["function"], many)
    ratios = parts["ratios"].numbers()
    if (np.diff(ratios) < 0).any():
        raise parts["ratios"].error("do not rise")
    root = parts["leverage_root"].exact_table(len(function.terms))
    if len(root) > len(function.terms):
        raise parts["leverage_root"].error(f"has more than {len(function.terms)} rows")
    return ClassFit(
        value=parts["value"].maybe(Node.number),
        samples=parts["samples"].count(),
        family=parts["family"].text(),
        function=function,
        growth=parts["growth"].maybe(lambda one: _read_growth(one, many)),
        total_ratio=_read_total_ratio(parts["total_ratio"]),
        coefficients=tuple(_read_coefficient(one) for one in parts["coefficients"].items()),
        dropped=tuple(_read_dropped(one) for one in parts["dropped"].items()),
        quality=_read_quality(parts["quality"]),
        leverage_root=root,
        ratios=ratios,
    )


def _read_total_ratio(node: Node) -> float:
    """Return the ratio, 1 where a file of version 1 has none."""
    ratio = node.maybe(Node.number)
    if ratio is None:
        return 1.0
    if ratio < 0:
        raise node.error("must not be negative")
    return ratio


def _read_growth(node: Node, many: int) -> Growth:
    parts = node.fields("function", "error", "least_s")
    return Growth(
        parts["function"].maybe(lambda one: _read_function(one, many)),
        parts["error"].maybe(Node.number),
        parts["least_s"].number(),
    )


def _read_function(node: Node, many: int) -> AnyFunction:
    """Return a sum of terms, or a mixture of such."""
    if not (isinstance(node.value, dict) and "members" in node.value):
        return _read_sum(node, many)
    members: list[FittedFunction] = []
    shares: list[float] = []
    for one in node.fields("members")["members"].items():
        parts = one.fields("share", "function")
        shares.append(parts["share"].number())
        if not 0 < shares[-1] <= 1:
            raise parts["share"].error("must lie between 0 and 1")
        members.append(_read_sum(parts["function"], many))
    if not members:
        raise node.error("has no members")
    return FittedMixture(tuple(members), tuple(shares))


def _read_sum(node: Node, many: int) -> FittedFunction:
    parts = node.fields("bounds", "terms", "calibration")
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
        parts["bounds"].maybe(lambda one: _read_bounds(one, many)),
    )


def _read_bounds(node: Node, many: int) -> PredictionBounds:
    parts = node.fields("least_s", "most_s", "lowest", "highest")
    return PredictionBounds(
        parts["lowest"].numbers(many),
        parts["highest"].numbers(many),
        parts["least_s"].number(),
        parts["most_s"].maybe(Node.number),
    )


def _read_expression(node: Node, many: int) -> Expression:
    return parse(node.text(), parameters=many, where=Origin(node.where))


def _read_coefficient(node: Node) -> Coefficient:
    parts = node.fields("term", "value", "standard_error")
    return Coefficient(
        parts["term"].text(),
        parts["value"].exact_number(),
        parts["standard_error"].maybe(Node.exact_number),
    )


def _read_dropped(node: Node) -> Dropped:
    parts = node.fields("term", "reason")
    return Dropped(parts["term"].text(), parts["reason"].text())


def _read_quality(node: Node) -> Quality:
    """Return the numbers of a fit, each of the type that it is declared with."""
    readers: dict[Any, Callable[[Node], Any]] = {
        int: Node.count,
        bool: Node.flag,
        float: Node.exact_number,
        float | None: lambda one: one.maybe(Node.exact_number),
    }
    kinds = _quality_kinds()
    parts = node.fields(*(QUALITY_KEYS.get(name, name) for name in kinds))
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
            f"has {longest} rows of one hash; at most {MOST_SETS_OF_A_HASH}"
        )
    times = ExactTimes(keys[order], rows[order], seconds[order], counts[order], longest)
    return ExactMatches(times, weights[order])
