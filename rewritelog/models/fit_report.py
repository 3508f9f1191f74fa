"""A fit in words and in JSON types: formula, quality, range, what was dropped, what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from rewritelog.models.regression import Coefficient, EventFit

POOR_R2 = 0.5
"""Below this share of explained variation a fit is warned of."""

LINE_WIDTH = 100


def finite(value: float | None) -> float | None:
    """Return the value as JSON can hold it: null for what is not a finite number."""
    return None if value is None or not math.isfinite(value) else float(value)


def label(event: str, parameters: int) -> str:
    """Return the event with its parameters, as in `Cell::pairForces(p1, p2)`."""
    if parameters > 4:
        return f"{event}(p1, ..., p{parameters})"
    return f"{event}({', '.join(f'p{number}' for number in range(1, parameters + 1))})"


def describe(fit: EventFit) -> dict[str, Any]:
    """Return one event's fit in JSON types; times are in seconds, χ² in s²."""
    return {
        "event": fit.event,
        "parameters": fit.parameters,
        "samples": fit.samples,
        "unusable_samples": fit.unusable,
        "terms": [
            {
                "term": str(coefficient.term),
                "coefficient": finite(coefficient.value),
                "standard_error": finite(coefficient.standard_error),
            }
            for coefficient in fit.coefficients
        ],
        "dropped": [{"term": str(drop.term), "reason": drop.reason} for drop in fit.dropped],
        "ranges": [
            {"parameter": f"p{number}", "min": float(low), "max": float(high)}
            for number, (low, high) in enumerate(zip(fit.lowest, fit.highest, strict=True), 1)
        ],
        "chi2": finite(fit.chi2),
        "degrees_of_freedom": fit.freedom,
        "chi2_per_degree": finite(fit.chi2_per_freedom),
        "r2": finite(fit.r2),
    }


def summarise(fit: EventFit) -> list[str]:
    """Return one event's fit in a few lines: quality, formula, ranges, dropped terms."""
    r2 = "undefined" if fit.r2 is None else f"{fit.r2:.4f}"
    per_degree = fit.chi2_per_freedom
    share = (
        "no degree of freedom" if per_degree is None else f"{per_degree:.2g} per degree of freedom"
    )
    quality = f"{fit.samples} samples, R² {r2}, χ² {fit.chi2:.2g} s² ({share})"
    lines = [f"{label(fit.event, fit.parameters)}: {quality}"]
    lines += _wrap("  seconds = ", (_spell(c) for c in fit.coefficients), " + ")
    ranges = (
        f"p{number} {low:.6g} to {high:.6g}"
        for number, (low, high) in enumerate(zip(fit.lowest, fit.highest, strict=True), 1)
    )
    lines += _wrap("  range: ", ranges, ", ")
    lines += _wrap("  dropped: ", _dropped(fit), "; ")
    return lines


def warn(fit: EventFit) -> list[str]:
    """Return one event's fit's weak points, each a sentence with what to do about it."""
    name = label(fit.event, fit.parameters)
    found: list[str] = []
    if fit.unusable:
        found.append(f"{name}: {fit.unusable} samples hold numbers that are not finite; left aside")
    short = [str(drop.term) for drop in fit.dropped if "allow no more" in drop.reason]
    if short:
        found.append(
            f"{name}: {fit.samples} samples are too few for {_some(short)}; add timing lines"
        )
    elif fit.freedom == 0 and fit.parameters:
        found.append(
            f"{name}: as many terms as samples, so the fit's error is unknown; add timing lines"
        )
    linear = [drop for drop in fit.dropped if drop.term.power == 1]
    constant = [str(drop.term) for drop in linear if "is constant" in drop.reason]
    if constant:
        found.append(
            f"{name}: {_some(constant)} never varies in the samples, so its influence is unknown; "
            "where it varies in the logs, time other values of it"
        )
    tied = [str(drop.term) for drop in linear if "combination" in drop.reason]
    if tied:
        found.append(
            f"{name}: {_some(tied)} determined by other parameters in all samples; where that is "
            "not so in the logs, time values that vary independently"
        )
    if fit.freedom and fit.r2 is not None and fit.r2 < POOR_R2 and fit.parameters:
        found.append(
            f"{name}: R² {fit.r2:.3f}: the parameters explain little of the time; bracket with "
            "parameters that determine it, or check the timings for noise"
        )
    return found


def _spell(coefficient: Coefficient) -> str:
    """Return one term of the formula, as in `(1.2e-06 ± 3e-08) p1^2`."""
    error = coefficient.standard_error
    value = f"{coefficient.value:.6g}" + ("" if error is None else f" ± {error:.2g}")
    return f"({value})" if str(coefficient.term) == "1" else f"({value}) {coefficient.term}"


def _dropped(fit: EventFit) -> list[str]:
    """Return the dropped terms, those of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for drop in fit.dropped:
        by_reason.setdefault(drop.reason, []).append(str(drop.term))
    return [f"{', '.join(terms)} ({reason})" for reason, terms in by_reason.items()]


def _some(names: list[str]) -> str:
    """Return the names, or the first few of many with their number."""
    if len(names) <= 6:
        return ", ".join(names)
    return f"{', '.join(names[:5])} and {len(names) - 5} more"


def _wrap(head: str, parts: Iterable[str], joint: str) -> list[str]:
    """Return the parts joined after the head, in lines that break between parts; [] if none."""
    lines: list[str] = []
    line = head
    for number, part in enumerate(parts):
        piece = part if number == 0 else joint + part
        if number and len(line) + len(piece) + len(joint.rstrip()) > LINE_WIDTH:
            lines.append(line + joint.rstrip())
            line = " " * len(head) + part
        else:
            line += piece
    return [*lines, line] if line != head else []
