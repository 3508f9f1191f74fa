"""A fit in words: formula, quality, range, what was dropped, what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from rewritelog.models.expressions import FormulaError, parse
from rewritelog.models.fitting.diagnosis import Coefficient
from rewritelog.models.fitting.event_fit import ClassFit, EventFit
from rewritelog.models.fitting.function import FittedFunction, FittedMixture
from rewritelog.models.fitting.modes import interrupted_share, modes_of
from rewritelog.text import WIDTH, event_label, parameter_names, percent_text, some_text

Rename = Callable[[str], str]
"""Puts names in the place of p1, p2, … in the text of a term."""

POOR_R2 = 0.5
"""Below this share of explained variation a fit is warned of."""

LARGE_ERROR = 0.2
"""A mean error on held-out samples beyond this is warned of."""

FEW_FOR_EACH = 3
"""Fewer samples than these for each coefficient are warned of."""

MANY_OUTLIERS = 0.01
"""A share of samples far off beyond this is warned of."""

ENOUGH = 8
"""Among fewer samples than these nothing can be called an outlier."""

FIRST_CALL = 1.5
"""A first call that took this many times as long as the fit predicts gets a warning."""

LARGE_SUM_ERROR = 0.1
"""An error of the sum on held-out samples beyond this is warned of."""

FEW_INTERRUPTED = 0.2
"""With a larger share of calls that are far too long, these are not interruptions."""

MOST_SPELLED_OUT = 1e4
"""Larger shares are written as powers of ten."""

ILL_CONDITIONED = 1e6

LINE_WIDTH = WIDTH - 2
"""Reports indent the summary by two."""

_PARAMETER = re.compile(r"\bp([1-9][0-9]?)\b")


def summarise(fit: EventFit) -> list[str]:
    """Return one event's fit in a few lines: quality, formula, ranges, what was dropped."""
    whole, rename = fit.whole, renaming(fit.names)
    label = event_label(fit.event, fit.parameters, names=fit.names)
    lines = _wrap("", _quality(f"{label}: ", whole, fit.samples), ", ", indent=2)
    lines += _wrap("  on held-out samples: ", _unseen(whole), ", ")
    lines += _formula("  seconds = ", whole, rename)
    lines += _beyond(whole, rename)
    for one in fit.classes[1:]:
        lines += _wrap("", _quality(f"  class {one.value:g}: ", one, one.samples), ", ", indent=4)
        lines += _formula("    seconds = ", one, rename)
    names = parameter_names(fit.parameters, fit.names)
    ranges = (
        f"{name} {low:.6g} to {high:.6g}"
        for name, low, high in zip(names, fit.lowest, fit.highest, strict=True)
    )
    lines += _wrap("  range: ", ranges, ", ")
    lines += _wrap("  dropped: ", map(rename, _dropped(whole)), "; ")
    return lines


def renaming(names: Sequence[str]) -> Rename:
    """Return what writes these names, in the parameters' order, in the place of p1 and so on."""
    called = parameter_names(len(names), names)

    def name_of(found: re.Match[str]) -> str:
        number = int(found[1])
        return called[number - 1] if number <= len(called) else found[0]

    return lambda text: _PARAMETER.sub(name_of, text)


def _quality(head: str, fit: ClassFit, samples: int) -> list[str]:
    """Return how good a function is on its samples; the first of the parts has the head."""
    quality = fit.quality
    r2 = "undefined" if quality.r2 is None else f"{quality.r2:.4f}"
    unit = "" if quality.relative else " s²"
    left = f"χ² {quality.chi2:.2g}{unit}" if quality.freedom else "no degree of freedom"
    return [head + fit.family, f"{samples} samples", f"R² {r2}", left]


def _unseen(fit: ClassFit) -> list[str]:
    """Return how good a function is on held-out samples, or nothing."""
    quality = fit.quality
    if quality.held_out_error is None:
        return []
    said = [f"mean error {share_text(quality.held_out_error, 2)}"]
    if quality.held_out_sum_error is not None:
        said.append(f"error of the sum {share_text(quality.held_out_sum_error, 2, '+')}")
    if quality.held_out_r2 is not None:
        said.append(f"R² {quality.held_out_r2:.4f}")
    return said


def _formula(head: str, fit: ClassFit, rename: Rename) -> list[str]:
    if isinstance(fit.function, FittedMixture):
        return _mixture(head, fit.function, rename)
    terms = [one for one in fit.coefficients if one.value] or list(fit.coefficients[:1])
    return _wrap(head, (rename(_spell(one)) for one in terms), " + ")


def _mixture(head: str, mixture: FittedMixture, rename: Rename) -> list[str]:
    """Return the members of a mixture, each with its share and its formula."""
    lines = [f"{head}the weighted geometric mean of"]
    for share, member in zip(mixture.shares, mixture.members, strict=True):
        lines += _wrap(f"    {percent_text(share, 0)}: ", map(rename, _sum_of(member)), " + ")
    return lines


def _sum_of(function: FittedFunction) -> list[str]:
    values = (function.coefficients * function.calibration).tolist()
    return [
        _spell(Coefficient(str(term), value, None))
        for term, value in zip(function.terms, values, strict=True)
        if value or len(values) == 1
    ]


def _beyond(fit: ClassFit, rename: Rename) -> list[str]:
    """Return how the function is continued beyond the samples' range, where not by itself."""
    if fit.growth is None or fit.growth.function is None:
        return []
    head = "  beyond the range it grows as "
    if isinstance(fit.growth.function, FittedMixture):
        return _mixture(head, fit.growth.function, rename)
    return _wrap(head, map(rename, _sum_of(fit.growth.function)), " + ")


def warn(fit: EventFit) -> list[str]:
    """Return one event's fit's weak points, each a sentence with what to do about it."""
    name = event_label(fit.event, fit.parameters, names=fit.names)
    rename = renaming(fit.names)
    found: list[str] = []
    if fit.unusable:
        found.append(f"{fit.unusable} samples hold numbers that are not finite and are left out")
    found += map(rename, _of_samples(fit))
    found += map(rename, _of_dropped(fit.whole))
    found += _of_quality(fit)
    return [f"{name}: {text}" for text in found]


def _of_samples(fit: EventFit) -> Iterable[str]:
    """Say where there are too few samples for what is fitted to them."""
    short = [drop.term for drop in fit.whole.dropped if "allow no more" in drop.reason]
    if short:
        yield f"{fit.samples} samples are too few for {some_text(short, 5)}; add timing lines"
    elif fit.whole.quality.freedom == 0 and fit.parameters:
        yield "as many terms as samples, so the fit's error is unknown; add timing lines"
    elif fit.parameters and fit.samples < FEW_FOR_EACH * len(fit.whole.function.terms):
        yield (
            f"{fit.samples} samples for {len(fit.whole.function.terms)} coefficients are few; "
            "add timing lines"
        )


def _of_dropped(fit: ClassFit) -> Iterable[str]:
    """Say which parameters the samples know nothing about."""
    plain = [drop for drop in fit.dropped if "^" not in drop.term]
    constant = [drop.term for drop in plain if "is constant" in drop.reason]
    if constant:
        yield (
            f"the samples have only one value of {some_text(constant, 5)}, whose influence is "
            "unknown; where the logs have others, time those too"
        )
    tied = [d.term for d in plain if "combination" in d.reason or "follows" in d.reason]
    if tied:
        yield (
            f"other parameters determine {some_text(tied, 5)} in all samples; where that is not so "
            "in the logs, time values that vary independently"
        )


def _of_quality(fit: EventFit) -> Iterable[str]:
    """Say where the fit explains little, only looks good, or has outliers."""
    quality = fit.whole.quality
    if quality.freedom and quality.r2 is not None and quality.r2 < POOR_R2 and fit.parameters:
        yield (
            f"R² {quality.r2:.3f}: the parameters explain little of the time; bracket with "
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
            "held-out samples; bracket with parameters that determine the time, split the event by "
            "a category, or add timing lines"
        )
    if quality.outliers > MANY_OUTLIERS * fit.samples and fit.samples >= ENOUGH:
        yield (
            f"{quality.outliers} of {fit.samples} samples differ from the fit by more than "
            "a factor of 2; look for disturbed measurements or for a parameter that is missing"
        )
    first = quality.first_call
    if first is not None and fit.samples >= ENOUGH and first >= FIRST_CALL:
        yield (
            f"the first call took {first:.1f} times as long as the fit predicts: cold caches or "
            "set-up; leave a warm-up call out of the timings"
        )
    if fit.samples >= ENOUGH:
        yield from _of_sum(fit.whole)
    if quality.negative:
        yield (
            f"the fit is below zero for {quality.negative} of its own samples; choose other terms, "
            "or --model auto"
        )
    if quality.condition > ILL_CONDITIONED:
        yield (
            f"the terms are nearly dependent (condition number {quality.condition:.1g}), so that "
            "their coefficients say little; time values that vary independently"
        )


def _of_sum(fit: ClassFit) -> Iterable[str]:
    """Say where the sum of the predictions is not that of the times, and why; and of two modes."""
    modes, interrupted = modes_of(fit.ratios), interrupted_share(fit.ratios)
    if modes is not None:
        low, high = modes.centres
        shares = [percent_text(share, 0) for share in modes.shares]
        yield (
            f"calls come in two kinds that no parameter tells apart: {shares[0]} take "
            f"{low:.2f} times the prediction and {shares[1]} {high:.2f} times; bracket with a "
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
    """Return a share in per cent, a huge one in powers of ten."""
    if abs(value) < MOST_SPELLED_OUT:
        return percent_text(value, digits, sign)
    return f"{100 * value:.1e} %"


def _spell(coefficient: Coefficient) -> str:
    """Return one term of the formula, as in `(1.2e-06 ± 3e-08) p1^2`."""
    error = coefficient.standard_error
    value = f"{coefficient.value:.6g}" + ("" if error is None else f" ± {error:.2g}")
    if coefficient.term == "1":
        return f"({value})"
    term = f"({coefficient.term})" if _is_sum(coefficient.term) else coefficient.term
    return f"({value}) {term}"


def _is_sum(term: str) -> bool:
    """Return whether a term needs parentheses as a factor; a file may name it as it likes."""
    try:
        return parse(term).is_sum
    except FormulaError:
        return False


def _dropped(fit: ClassFit) -> list[str]:
    """Return what was dropped, things of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for drop in fit.dropped:
        by_reason.setdefault(drop.reason, []).append(drop.term)
    return [f"{', '.join(terms)} ({reason})" for reason, terms in by_reason.items()]


def _wrap(head: str, parts: Iterable[str], joint: str, indent: int | None = None) -> list[str]:
    """Return the parts joined after the head, in lines that break between parts; [] if none.

    Later lines are indented as far as the head reaches, or by `indent`. A part longer than a line
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
