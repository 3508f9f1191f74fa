"""A fit as text: formula, quality, range, dropped terms, and warnings with advice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from rewritelog.models.expressions import FormulaError, parse
from rewritelog.models.fitting.diagnosis import Coefficient
from rewritelog.models.fitting.event_fit import ClassFit, EventFit
from rewritelog.models.fitting.function import CorrectedFunction, FittedFunction, FittedMixture
from rewritelog.models.fitting.modes import interrupted_share, modes_of
from rewritelog.text import (
    WIDTH,
    count_text,
    event_label,
    parameter_names,
    percent_text,
    some_text,
)

Rename = Callable[[str], str]
"""A function that replaces p1, p2, … in the text of a term by names."""

POOR_R2 = 0.5
"""A fit with a lower R² gets a warning."""

LARGE_ERROR = 0.2
"""A larger mean relative error on held-out samples gets a warning."""

FEW_FOR_EACH = 3
"""Fewer samples per coefficient get a warning."""

MANY_OUTLIERS = 0.01
"""A larger share of outliers gets a warning."""

ENOUGH = 8
"""With fewer samples there are no warnings of outliers."""

FIRST_CALL = 1.5
"""A first call that took this many times as long as the fit predicts gets a warning."""

LARGE_SUM_ERROR = 0.1
"""A larger relative error of the sum on held-out samples gets a warning."""

FEW_INTERRUPTED = 0.2
"""A larger share of calls far above their prediction is not explained by interruptions."""

MOST_SPELLED_OUT = 1e4
"""Larger shares are written in scientific notation."""

ILL_CONDITIONED = 1e6
"""A larger condition number of the design matrix gets a warning."""

LINE_WIDTH = WIDTH - 2
"""Reports indent the summary by two."""

_PARAMETER = re.compile(r"\bp([1-9][0-9]?)\b")


def summarise(fit: EventFit) -> list[str]:
    """Return one event's fit in a few lines: quality, formula, ranges, what was dropped."""
    whole, rename = fit.whole, renaming(fit.names)
    label = event_label(fit.event, fit.parameters, names=fit.names)
    lines = _wrap("", _quality_texts(f"{label}: ", whole, fit.samples), ", ", indent=2)
    lines += _wrap("  on held-out samples: ", _held_out_texts(whole), ", ")
    lines += _formula_lines("  seconds = ", whole, rename)
    lines += _correction_lines("  ", whole, fit.parameters, rename)
    lines += _extrapolation_lines(whole, rename)
    for one in fit.classes[1:]:
        head = f"  class {one.value:g}: "
        lines += _wrap("", _quality_texts(head, one, one.samples), ", ", indent=4)
        lines += _formula_lines("    seconds = ", one, rename)
        lines += _correction_lines("    ", one, fit.parameters, rename)
    names = parameter_names(fit.parameters, fit.names)
    ranges = (
        f"{name} {low:.6g} to {high:.6g}"
        for name, low, high in zip(names, fit.lowest, fit.highest, strict=True)
    )
    lines += _wrap("  range: ", ranges, ", ")
    lines += _wrap("  dropped: ", map(rename, _dropped_texts(whole)), "; ")
    return lines


def renaming(names: Sequence[str]) -> Rename:
    """Return the function that replaces p1, p2, … by these names, given in this order."""
    called = parameter_names(len(names), names)

    def name_of(found: re.Match[str]) -> str:
        number = int(found[1])
        return called[number - 1] if number <= len(called) else found[0]

    return lambda text: _PARAMETER.sub(name_of, text)


def _quality_texts(head: str, fit: ClassFit, samples: int) -> list[str]:
    """Return how well a function fits its samples, as parts of a line; `head` starts the first."""
    quality = fit.quality
    r2 = "undefined" if quality.r2 is None else f"{quality.r2:.4f}"
    unit = "" if quality.relative else " s²"
    left = f"χ² {quality.chi2:.2g}{unit}" if quality.dof else "no degree of freedom"
    return [head + fit.family, count_text(samples, "sample"), f"R² {r2}", left]


def _held_out_texts(fit: ClassFit) -> list[str]:
    """Return how well a function predicts held-out samples, as parts of a line, or nothing."""
    quality = fit.quality
    if quality.held_out_error is None:
        return []
    said = [f"mean error {share_text(quality.held_out_error, 2)}"]
    if quality.held_out_sum_error is not None:
        said.append(f"error of the sum {share_text(quality.held_out_sum_error, 2, '+')}")
    if quality.held_out_r2 is not None:
        said.append(f"R² {quality.held_out_r2:.4f}")
    return said


def _formula_lines(head: str, fit: ClassFit, rename: Rename) -> list[str]:
    if isinstance(fit.function, FittedMixture):
        return _mixture_lines(head, fit.function, rename)
    terms = [one for one in fit.coefficients if one.value] or list(fit.coefficients[:1])
    return _wrap(head, (rename(_coefficient_text(one)) for one in terms), " + ")


def _correction_lines(indent: str, fit: ClassFit, parameters: int, rename: Rename) -> list[str]:
    """Return what the correction of a function adds to its formula, if it has one."""
    function, after = fit.function, fit.quality.held_out_error
    if not isinstance(function, CorrectedFunction) or fit.formula_error is None or after is None:
        return []
    before = share_text(fit.formula_error, 1).removesuffix(" %")
    parts = [f"a smooth correction takes the mean error from {before} to {share_text(after, 1)}"]
    used = function.correction.parameters
    if len(used) < parameters:
        parts.append("it depends on " + some_text([f"p{number}" for number in used], 5))
    codes = function.correction.codes
    parts += [f"the values of p{number} count as codes without order" for number in codes]
    return _wrap(f"{indent}corrected: ", map(rename, parts), "; ")


def _mixture_lines(head: str, mixture: FittedMixture, rename: Rename) -> list[str]:
    """Return the members of a mixture, each with its share and its formula."""
    lines = [f"{head}the weighted geometric mean of"]
    for weight, member in zip(mixture.weights, mixture.members, strict=True):
        lines += _wrap(f"    {percent_text(weight, 0)}: ", map(rename, _term_texts(member)), " + ")
    return lines


def _term_texts(function: FittedFunction) -> list[str]:
    values = (function.coefficients * function.calibration).tolist()
    return [
        _coefficient_text(Coefficient(str(term), value, None))
        for term, value in zip(function.terms, values, strict=True)
        if value or len(values) == 1
    ]


def _extrapolation_lines(fit: ClassFit, rename: Rename) -> list[str]:
    """Return how the function is extrapolated, if not simply by its formula."""
    if fit.growth is None or fit.growth.function is None:
        return []
    head = "  beyond the range it grows as "
    if isinstance(fit.growth.function, FittedMixture):
        return _mixture_lines(head, fit.growth.function, rename)
    return _wrap(head, map(rename, _term_texts(fit.growth.function)), " + ")


def warn(fit: EventFit) -> list[str]:
    """Return the weak points of an event's fit, each as a sentence with advice."""
    name = event_label(fit.event, fit.parameters, names=fit.names)
    rename = renaming(fit.names)
    found: list[str] = []
    if fit.unusable:
        left_out = count_text(fit.unusable, "sample")
        found.append(f"{left_out} with numbers that are not finite left out")
    found += map(rename, _sample_warnings(fit))
    found += map(rename, _dropped_warnings(fit.whole))
    found += _quality_warnings(fit)
    return [f"{name}: {text}" for text in found]


def _sample_warnings(fit: EventFit) -> Iterable[str]:
    """Yield a warning if there are too few samples for the coefficients."""
    short = [drop.term for drop in fit.whole.dropped if drop.reason.endswith("more terms")]
    if short:
        samples = count_text(fit.samples, "sample")
        yield f"{samples} cannot determine {some_text(short, 5)}; add timing lines"
    elif fit.whole.quality.dof == 0 and fit.parameters:
        yield "as many terms as samples, so the fit's error is unknown; add timing lines"
    elif fit.parameters and fit.samples < FEW_FOR_EACH * len(fit.whole.function.terms):
        coefficients = count_text(len(fit.whole.function.terms), "coefficient")
        samples = count_text(fit.samples, "sample")
        yield f"only {samples} for {coefficients}; add timing lines"


def _dropped_warnings(fit: ClassFit) -> Iterable[str]:
    """Yield warnings of parameters whose effect the samples cannot determine."""
    plain = [drop for drop in fit.dropped if "^" not in drop.term]
    constant = [drop.term for drop in plain if "is constant" in drop.reason]
    if constant:
        yield (
            f"the samples have only one value of {some_text(constant, 5)}, so its influence is "
            "unknown; if the logs have other values, time those too"
        )
    tied = [d.term for d in plain if "combination" in d.reason or "follows" in d.reason]
    if tied:
        yield (
            f"other parameters determine {some_text(tied, 5)} in all samples; if that is not so "
            "in the logs, time values that vary independently"
        )


def _quality_warnings(fit: EventFit) -> Iterable[str]:
    """Yield warnings of a fit that explains little, overfits, or has outliers."""
    quality = fit.whole.quality
    if quality.dof and quality.r2 is not None and quality.r2 < POOR_R2 and fit.parameters:
        yield (
            f"R² {quality.r2:.3f}: the parameters explain little of the time; pass "
            "parameters that determine it, or check the timings for noise"
        )
    elif fit.parameters and (quality.held_out_r2 or 1.0) < POOR_R2 <= (quality.r2 or 0.0):
        yield (
            f"R² is {quality.r2:.3f} on the samples but {quality.held_out_r2:.3f} on held-out "
            "ones: the fit is too detailed for them; add timing lines"
        )
    if quality.held_out_error is not None and quality.held_out_error > LARGE_ERROR:
        yield (
            f"predictions are off by {share_text(quality.held_out_error)} on average on "
            "held-out samples; pass parameters that determine the time, split the event by "
            "a category, or add timing lines"
        )
    if quality.outliers > MANY_OUTLIERS * fit.samples and fit.samples >= ENOUGH:
        yield (
            f"{quality.outliers} of {fit.samples} samples differ from the fit by more than "
            "a factor of 2; look for disturbed measurements or for a missing parameter"
        )
    first = quality.first_call
    if first is not None and fit.samples >= ENOUGH and first >= FIRST_CALL:
        yield (
            f"the first call took {first:.1f} times as long as the fit predicts: cold caches or "
            "set-up; leave a warm-up call out of the timings"
        )
    if fit.samples >= ENOUGH:
        yield from _sum_warnings(fit.whole)
    if quality.negative:
        yield (
            f"the fit is below zero for {quality.negative} of its own samples; choose other terms, "
            "or --model auto"
        )
    if quality.condition > ILL_CONDITIONED:
        yield (
            f"the terms are nearly dependent (condition number {quality.condition:.1g}), so "
            "single coefficients mean little; time values that vary independently"
        )


def _sum_warnings(fit: ClassFit) -> Iterable[str]:
    """Yield warnings of two modes, and of an error of the sum with its probable cause."""
    modes, interrupted = modes_of(fit.ratios), interrupted_share(fit.ratios)
    if modes is not None:
        low, high = modes.centres
        shares = [percent_text(share, 0) for share in modes.shares]
        yield (
            f"there are two kinds of calls that no parameter tells apart: {shares[0]} take "
            f"{low:.2f} times the prediction and {shares[1]} {high:.2f} times; pass a "
            "parameter that tells them apart, or draw both with --spread residual"
        )
    error = fit.quality.held_out_sum_error
    if error is None or abs(error) <= LARGE_SUM_ERROR:
        return
    if modes is not None:
        cause = "the second kind of calls"
    elif 0 < interrupted <= FEW_INTERRUPTED:
        share = percent_text(interrupted, 1)
        cause = f"a few calls ({share}) that took more than twice as long as predicted"
    else:
        cause = "what the parameters do not explain"
    yield (
        f"the sum of the predictions is off by {share_text(error, 0, '+')} on held-out "
        f"samples, because of {cause}; a rewrite corrects sums with --total measured"
    )


def share_text(value: float, digits: int = 0, sign: str = "") -> str:
    """Return a share in per cent, a huge one in scientific notation."""
    if abs(value) < MOST_SPELLED_OUT:
        return percent_text(value, digits, sign)
    return f"{100 * value:.1e} %"


def _coefficient_text(coefficient: Coefficient) -> str:
    """Return one term of the formula, as in `(1.2e-06 ± 3e-08) p1^2`."""
    error = coefficient.standard_error
    value = f"{coefficient.value:.6g}" + ("" if error is None else f" ± {error:.2g}")
    if coefficient.term == "1":
        return f"({value})"
    term = f"({coefficient.term})" if _is_sum(coefficient.term) else coefficient.term
    return f"({value}) {term}"


def _is_sum(term: str) -> bool:
    """Return whether a term needs parentheses as a factor; a file may contain any name for it."""
    try:
        return parse(term).is_sum
    except FormulaError:
        return False


def _dropped_texts(fit: ClassFit) -> list[str]:
    """Return the dropped terms, grouped by reason."""
    by_reason: dict[str, list[str]] = {}
    for drop in fit.dropped:
        by_reason.setdefault(drop.reason, []).append(drop.term)
    return [f"{', '.join(terms)} ({reason})" for reason, terms in by_reason.items()]


def _wrap(head: str, parts: Iterable[str], joint: str, indent: int | None = None) -> list[str]:
    """Return the parts joined after the head, in lines that break between parts; [] without parts.

    Further lines are indented by the length of the head, or by `indent`. A part longer than a line
    breaks after its `*` too.
    """
    lines: list[str] = []
    line = head
    indent = len(head) if indent is None else indent
    for number, part in enumerate(parts):
        piece = part if number == 0 else joint + part
        if number and len(line) + len(piece) + len(joint.rstrip()) > LINE_WIDTH:
            lines.append(line + joint.rstrip())
            line = " " * indent + part
        else:
            line += piece
        while len(line) > LINE_WIDTH and (end := line.rfind("*", indent, LINE_WIDTH)) > indent:
            lines.append(line[: end + 1])
            line = " " * indent + line[end + 1 :]
    return [*lines, line] if line != head else []
