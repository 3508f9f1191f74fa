"""A fit as text: formula, quality, range, dropped terms, and warnings with advice.

Also its function as a formula, in the syntax of formulas files, Python or LaTeX.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import get_args

import numpy as np

from rewritelog.errors import ModelError, UsageError, spelled
from rewritelog.models.base import is_measured
from rewritelog.models.expressions import (
    Expression,
    FormulaError,
    Language,
    number_in_language,
    parse,
)
from rewritelog.models.fitting.design import ONE
from rewritelog.models.fitting.diagnosis import (
    OUTLIER_FACTOR,
    Coefficient,
    Quality,
    expected_ratio,
    interval_of,
)
from rewritelog.models.fitting.event_fit import ClassFit, EventFit, LeftOut
from rewritelog.models.fitting.function import (
    CorrectedFunction,
    FittedFunction,
    FittedMixture,
    formula_of,
)
from rewritelog.text import (
    MOST_EVENTS,
    NO_VALUE,
    WIDTH,
    Remark,
    TextTable,
    count_text,
    event_label,
    parameter_names,
    percent_text,
    printable,
    range_texts,
    shortest_text,
    some_text,
    time_text,
    wrapped,
)

LARGE_ERROR = 0.2
"""A larger mean relative error on held-out samples gets a warning."""

FEW_FOR_EACH = 3
"""Fewer samples per coefficient get a warning."""

MANY_OUTLIERS = 0.01
"""A larger share of outliers gets a warning."""

ENOUGH = 8
"""With fewer samples there are no warnings of outliers."""

FEW = 20
"""With fewer samples their number alone may be why held-out ones are predicted badly."""

FIRST_CALL = 1.5
"""A first call that took this many times as long as the fit predicts, and longer than nineteen in
twenty other calls, gets a warning."""

LARGE_SUM_ERROR = 0.1
"""A larger relative error of the sum on held-out samples gets a warning."""

EXPLAINED = 0.8
"""From this R² on held-out samples on, the parameters explain most of the time."""

FEW_SHORT = 0.1
"""A larger share of calls far below their prediction is no matter of single lines."""

FEW_LONG = 0.2
"""A larger share of calls far above their prediction is not explained by disturbances."""

MORE_THAN_NOISE = 2.0
"""Noise puts about as many calls far above their prediction as far below it; disturbances put more
than this many times as many above it."""

ONE_CALL = 10.0
"""A call that takes this many times as long as the others may have been interrupted."""

FAIR_ERROR = 0.1
"""A larger mean relative error on held-out samples is fair at best."""

FLAT = 1.01
"""A lower factor of growth for twice a parameter is not reported."""

MOST_ROWS = 100
"""A notebook shows at most this many events."""

_NO_BREAK = "\N{FIGURE SPACE}"
"""A blank at which no line breaks, and which no printable name has."""

_PARAMETER = re.compile(r"\bp([1-9][0-9]?)\b")


def summarise(fit: EventFit) -> list[str]:
    """Return one event's fit in a few lines: quality, formula, ranges, what was dropped."""
    lines, rename = list[str](), renaming(fit.names)
    label = event_label(fit.event, fit.parameters, names=fit.names)

    def add(head: str, parts: Iterable[str], joint: str, indent: int | None = None) -> None:
        lines.extend(_wrap(head, map(rename, parts), joint, indent))

    for part in fit.classes:
        is_whole = part is fit.whole
        indent = "  " if is_whole else "    "
        head = f"{label}: " if part.value is None else f"  class {shortest_text(part.value)}: "
        samples = fit.samples if is_whole else part.samples
        add(head, _quality_texts(part, samples), ", ", len(indent))
        add(f"{indent}on held-out samples: ", _held_out_texts(part.quality), ", ")
        if is_whole:
            add("  on lines left out: ", _left_out_texts(fit.left_out), ", ")
        head = f"{indent}seconds = "
        add(head, _term_texts(part), " + ")
        if isinstance(part.function, FittedMixture):
            weight = percent_text(part.function.weights[0], 0)
            others = count_text(len(part.function.members) - 1, "other function")
            text = f"with weight {weight} in the mean of this and {others}"
            lines.append(" " * len(head) + text)
        add(f"{indent}corrected: ", _correction_texts(part), "; ")
        if is_whole:
            timed = None if fit.exact_matches is None else fit.exact_matches.mean_error
            add("  where parameters were timed: ", _error_texts(timed), "")
            add("  beyond the range: ", _growth_texts(fit), ", ")
    ranges = (
        f"p{number} {' to '.join(range_texts(low, high))}"
        for number, (low, high) in enumerate(zip(fit.lowest, fit.highest, strict=True), 1)
    )
    add("  range: ", ranges, ", ")
    by_reason: dict[str, list[str]] = {}
    for drop in fit.whole.dropped:
        by_reason.setdefault(drop.reason, []).append(drop.term)
    dropped = (f"{', '.join(terms)} ({reason})" for reason, terms in by_reason.items())
    add("  dropped: ", dropped, "; ")
    return lines


def fits_table(fits: Iterable[EventFit]) -> TextTable:
    """Return a table with a row for each event, worst first."""
    by_error, unknown = list[tuple[float, tuple[str, ...]]](), math.inf
    for fit in fits:
        quality, ratios, width = fit.quality, fit.ratios, NO_VALUE
        if len(ratios) >= ENOUGH and fit.judged.knows_other_points:
            low, high = interval_of(ratios, fit.judged.points)
            half = float(high - low) / 2  # of the width
            width = "> 100 %" if half > 1 else percent_text(half, 1)
        lines = f"{fit.samples:,}"
        error, sum_error = quality.held_out_error, quality.held_out_sum_error
        if fit.left_out is not None and fit.left_out.left_out:
            lines += f" of {fit.left_out.lines:,}"
            error, sum_error = fit.left_out.mean_relative_error, fit.left_out.sum_error
        row = (
            printable(fit.event),
            lines,
            str(fit.parameters),
            percent_text(error, 1),
            percent_text(sum_error, 1, "+"),
            width,
            verdict(fit),
        )
        by_error.append((unknown if error is None else error, row))
    rows = [row for _, row in sorted(by_error, key=lambda pair: -pair[0])]
    heads = ("event", "lines", "params", "error", "sum", "± (90 %)", "verdict")
    return TextTable(heads, rows, frozenset({6}), MOST_ROWS)


def overview(fits: Iterable[EventFit]) -> list[str]:
    """Return the table of the `MOST_EVENTS` events that took the most time, and notes on it."""
    by_time = sorted(fits, key=lambda fit: -fit.seconds)
    shown, others = by_time[:MOST_EVENTS], by_time[MOST_EVENTS:]
    lines = fits_table(shown).lines()
    if others:
        share = sum(fit.seconds for fit in others) / (sum(fit.seconds for fit in by_time) or 1.0)
        of_time = f"{percent_text(share, 1)} of the measured time"
        lines.append(f"  and {len(others):,} more with {of_time}")
    left_out = [bool(fit.left_out and fit.left_out.left_out) for fit in shown]
    tried = "held-out lines"
    if any(left_out):
        tried = f"lines left out, the sum as by rewrite {spelled('total', 'measured')}"
    if any(left_out) and not all(left_out):
        tried += " (of held-out lines if all were drawn)"
    lines += wrapped(f"  error and sum: of {tried}; ±: nine of ten calls are within").split("\n")
    if any(fit.classes[1:] for fit in shown):
        which = "±, verdict " * any(fit.left_out for fit in shown)  # error and sum are of all lines
        lines.append(f"  {which}of an event with classes: of the class from which most errors come")
    return lines


def verdict(fit: EventFit) -> str:
    """Return in a word or two how far a fit can be relied on."""
    quality = fit.quality
    if not fit.seconds:
        return "all zero"
    if quality.held_out_error is None or _few_lines(fit):
        return "few lines"
    word, _ = _cause(fit)
    large_sum = abs(quality.held_out_sum_error or 0.0) > LARGE_SUM_ERROR
    if word and (word != "long calls" or large_sum):
        return word
    if not fit.judged.knows_other_points:
        return "good if timed"
    return "fair" if quality.held_out_error > FAIR_ERROR else "good"


def renaming(names: Sequence[str]) -> Callable[[str], str]:
    """Return the function that replaces p1, p2, … by these names, given in this order."""
    called = parameter_names(len(names), names)

    def name_of(match: re.Match[str]) -> str:
        number = int(match[1])
        return called[number - 1] if number <= len(called) else match[0]

    return lambda text: _PARAMETER.sub(name_of, text)


def _quality_texts(fit: ClassFit, samples: int) -> list[str]:
    """Return how well a function fits its samples, as parts of a line."""
    quality = fit.quality
    r2 = "undefined" if quality.r2 is None else f"{quality.r2:.4f}"
    unit = "" if quality.relative else " s²"
    left = f"χ² {quality.chi2:.2g}{unit}" if quality.dof else "no degree of freedom"
    return [fit.family, count_text(samples, "sample"), f"R² {r2}", left]


def _held_out_texts(quality: Quality) -> list[str]:
    """Return how well held-out samples are predicted, as parts of a line, or nothing."""
    texts = _error_texts(quality.held_out_error, quality.held_out_sum_error)
    if texts and quality.held_out_r2 is not None:
        texts.append(f"R² {quality.held_out_r2:.4f}")
    return texts


def _left_out_texts(left_out: LeftOut | None) -> list[str]:
    """Return how well the lines that a fit was not given are predicted, as parts of a line."""
    if left_out is None:
        return []
    texts = _error_texts(left_out.mean_relative_error, left_out.sum_error, "total")
    return [*texts, count_text(left_out.left_out, "line")] if texts else []


def _error_texts(mean: float | None, of_sum: float | None = None, what: str = "sum") -> list[str]:
    """Return a mean error, and that of a sum if it is known, as parts of a line, or nothing."""
    if mean is None:
        return []
    texts = [f"mean error {percent_text(mean, 2)}"]
    if of_sum is not None:
        texts.append(f"error of the {what} {percent_text(of_sum, 2, '+')}")
    return texts


def _term_texts(fit: ClassFit) -> list[str]:
    """Return terms such as `(1.2e-06 ± 3e-08) p1^2`; of a mixture, those of its main function."""
    coefficients = fit.coefficients
    if isinstance(fit.function, FittedMixture):
        largest = fit.function.members[0]
        coefficients = tuple(Coefficient(str(t), value) for t, value in _calibrated_terms(largest))
    texts = []
    for coefficient in [term for term in coefficients if term.value] or coefficients[:1]:
        error, term = coefficient.standard_error, coefficient.term
        value = f"({coefficient.value:.6g}" + ("" if error is None else f" ± {error:.2g}") + ")"
        with suppress(FormulaError):  # a model file may hold any text here
            term = parse(term).as_factor({})
        texts.append(value if term == "1" else f"{value} {term}")
    return texts


def _correction_texts(fit: ClassFit) -> list[str]:
    """Return what the correction of a function adds to its formula, if it has one."""
    function, after = fit.function, fit.quality.held_out_error
    if not isinstance(function, CorrectedFunction) or fit.formula_error is None or after is None:
        return []
    before = percent_text(fit.formula_error, 1).removesuffix(" %")
    parts = [f"a smooth correction takes the mean error from {before} to {percent_text(after, 1)}"]
    if after >= fit.formula_error:  # it was chosen by errors that are limited
        parts.append("most lines are predicted better, and a few that are far off worse")
    if len(function.members) > 1:
        weight = percent_text(function.weights[0], 0)
        others = count_text(len(function.members) - 1, "other corrected formula")
        parts.append(f"with weight {weight} in the mean of this and {others}")
    inputs = function.members[0].correction.process.inputs
    if waves := inputs.waves:
        divided = zip(waves.parameters.tolist(), waves.tiles.tolist(), strict=True)
        factors = [f"p{number}" if tile == 1 else f"⌈p{number}/{tile}⌉" for number, tile in divided]
        workers = [str(waves.workers)] if waves.workers > 1 or not waves.multiplier else []
        workers += [f"p{waves.multiplier}"] if waves.multiplier else []
        parts.append(f"{' · '.join(factors)} blocks run {' · '.join(workers)} at a time")
    for divisor, what in (("twos", "power of two"), ("prime", "largest prime factor")):
        numbers = inputs.parameters[np.array(inputs.kinds) == divisor].tolist()
        if numbers:
            parts.append(f"it depends on the {what} in {', '.join(f'p{n}' for n in numbers)}")
    for number in function.members[0].correction.codes:
        is_parameter = number <= function.params.shape[1]
        values = f"values of p{number}" if is_parameter else "times of the formula"
        parts.append(f"the {values} count as codes without order")
    return parts


def _growth_texts(fit: EventFit) -> list[str]:
    """Return how predictions grow beyond the range, if not simply by the formula.

    The growth with a parameter is that where the others are smallest, and where they are largest.
    Codes and flags do not grow.
    """
    function, growth = fit.whole.function, fit.whole.growth
    if growth is None or growth.function is None:
        return []
    codes: tuple[int, ...] = ()
    if isinstance(function, CorrectedFunction):
        codes = function.members[0].correction.codes
    parts = list[tuple[float, str]]()
    for index, (low, high) in enumerate(zip(fit.lowest, fit.highest, strict=True)):
        if high <= 0 or (low, high) == (0, 1) or index + 1 in codes:
            continue
        rows = np.vstack((fit.lowest, fit.lowest, fit.highest, fit.highest))
        rows[:, index] = high, 2 * high, high, 2 * high
        with np.errstate(all="ignore"):
            before, after = fit.predict(rows).reshape(2, 2).T
            factors = sorted(filter(math.isfinite, (after / before).tolist()))
        if factors and factors[-1] > FLAT:
            texts = dict.fromkeys(f"{factor:.3g}" for factor in factors)
            parts.append((factors[-1], f"{' to '.join(texts)} × for twice p{index + 1}"))
    return [text for _, text in sorted(parts, key=lambda part: -part[0])] or ["no growth"]


def weak_points(fit: EventFit, event: str = "") -> list[Remark]:
    """Return the weak points of an event's fit: the cause of each, and a sentence with advice.

    `event` is the event's name in the sentences; empty for its full name.
    """
    rename, quality = renaming(fit.names), fit.quality
    texts = dict[str, str]()
    if fit.unusable:
        left_out = count_text(fit.unusable, "sample")
        texts["not finite"] = f"{left_out} with numbers that are not finite left out"
    if not fit.seconds and is_measured(fit.event):
        texts["all zero"] = (
            "all times are 0: its calls are shorter than the clock can tell, and are predicted to "
            "take no time; time many calls at once, or with a finer clock"
        )
    texts["few lines"] = rename(_few_lines(fit))
    texts |= _about_parameters(fit)
    inaccurate, advice = _cause(fit)
    texts[inaccurate] = _inaccuracy(fit, advice)
    if quality.negative:
        texts["negative"] = (
            f"the fit is below zero for {quality.negative:,} of its own samples; choose other "
            "terms, or add lines of such calls"
        )
    accurate = fit.samples >= ENOUGH and (quality.held_out_error or 0.0) <= LARGE_ERROR
    accurate = accurate and inaccurate != "coarse clock"
    usual = interval_of(fit.ratios, fit.judged.points)[1] if len(fit.ratios) else 0.0
    if accurate and (quality.first_call or 0.0) >= max(FIRST_CALL, usual):
        texts["first call"] = (
            f"the first call took {quality.first_call:.1f} times as long as the fit predicts: cold "
            "caches or set-up; leave a warm-up call out of the timings"
        )
    if fit.left_out and abs(fit.left_out.sum_error or 0.0) > LARGE_SUM_ERROR:
        texts["left out"] = (
            f"on the {count_text(fit.left_out.left_out, 'timing line')} left out, the predicted "
            f"total is off by {percent_text(fit.left_out.sum_error, 1, '+')}; draw a larger "
            "fraction or fit to all lines"
        )
    label = event_label(event or fit.event, fit.parameters, names=fit.names)
    return [Remark(cause, label, fit.seconds, text) for cause, text in texts.items() if text]


def _about_parameters(fit: EventFit) -> dict[str, str]:
    """Return sentences, by cause, on what the samples' parameters leave unknown."""
    rename, dropped, texts = renaming(fit.names), fit.whole.dropped, dict[str, str]()
    plain = [drop for drop in dropped if "^" not in drop.term]
    constant = [drop.term for drop in plain if drop.cause == "constant"]
    tied = [drop.term for drop in plain if drop.cause == "tied"]
    undefined = [drop.term for drop in dropped if drop.cause == "undefined"]
    if constant:
        texts["constant"] = (
            f"the samples have only one value of {rename(some_text(constant, 5))}, so "
            f"{'its' if len(constant) == 1 else 'their'} influence is unknown; if the "
            "logs have other values, time those too"
        )
    if not fit.judged.knows_other_points:
        texts["few points"] = (
            f"the samples have only {fit.judged.points} sets of parameters, so the error at "
            "others is unknown; if the logs have others, time those too"
        )
    if tied:
        texts["tied"] = (
            f"other parameters determine {rename(some_text(tied, 5))} in all samples; if that is "
            "not so in the logs, time values that vary independently"
        )
    if undefined:
        texts["undefined"] = (
            f"{rename(some_text(undefined, 5))}: not finite for some samples, so left out of the "
            "formula; write it such that it is, as in log(max(p1, 1))"
        )
    for drop in dropped:
        if drop.cause == "small classes":
            texts[drop.cause] = rename(
                f"the category {drop.term} has {drop.reason}, whose calls are predicted by the fit "
                "of all samples; add timing lines of them"
            )
    return texts


def _few_lines(fit: EventFit) -> str:
    """Return the warning of too few samples for the coefficients; empty if there are enough.

    It is about the class with the fewest samples for each of its coefficients.
    """
    part = min(fit.classes, key=lambda part: part.samples / max(1, len(part.function.terms)))
    short = [drop.term for drop in part.dropped if drop.cause == "few lines"]
    terms, samples = len(part.function.terms), count_text(part.samples, "sample")
    samples += "" if part.value is None else f" of class {shortest_text(part.value)}"
    if short:
        return f"{samples} cannot determine {some_text(short, 5)}; add timing lines"
    if part.quality.dof == 0 and fit.parameters:
        return "as many terms as samples, so the fit's error is unknown; add timing lines"
    if fit.parameters and part.samples < FEW_FOR_EACH * terms:
        return f"only {samples} for {count_text(terms, 'coefficient')}; add timing lines"
    return ""


def _inaccuracy(fit: EventFit, advice: str) -> str:
    """Return how far predictions are off, with `advice`; empty if they are accurate.

    `advice` is the second result of `_cause`.
    """
    quality, symptoms = fit.quality, list[str]()
    error, sum_error = quality.held_out_error or 0.0, quality.held_out_sum_error or 0.0
    if error > LARGE_ERROR:
        symptoms.append(f"by {percent_text(error, 0)} on average on held-out lines")
    if fit.samples >= ENOUGH and abs(sum_error) > LARGE_SUM_ERROR:
        symptoms.append(f"by {percent_text(sum_error, 0, '+')} in their sum")
    if _has_many_outliers(fit):
        lines = f"{quality.outliers:,} of {fit.judged.samples:,} lines"
        symptoms.append(f"by more than a factor of 2 for {lines}")
    if symptoms:
        return f"predictions are off {', '.join(symptoms)}: {advice}"
    return ""


def _has_many_outliers(fit: EventFit) -> bool:
    """Return whether more lines are off by more than a factor of 2 than chance explains."""
    outliers = fit.quality.outliers
    return fit.samples >= ENOUGH and outliers > MANY_OUTLIERS * fit.judged.samples


def _cause(fit: EventFit) -> tuple[str, str]:
    """Return the probable cause of inaccurate predictions: in a word or two, and with advice.

    The words are empty if predictions are accurate.
    """
    ratios, error = fit.ratios, fit.quality.held_out_error or 0.0
    if not is_measured(fit.event):
        return "poor" if error > LARGE_ERROR else "one run" if one_long_call(fit) else "", (
            "nothing disturbs a replay: see how the runs of these lines differ from the others, "
            "and give that as a variable of the runs, or fit with other terms"
        )
    if fit.clock_step_s and (error > FAIR_ERROR or _has_many_outliers(fit)):
        return "coarse clock", (
            f"most calls take few steps of the clock, {time_text(fit.clock_step_s, 3)} each, "
            "so their times are rounded; time many calls at once, or with a finer clock"
        )
    if one_call := one_long_call(fit):
        return "one long call", (
            f"one call took {one_call:.4g} times as long as predicted: it was disturbed or does "
            f"more, and {effect_on_totals(fit)}; time the event again on an idle machine"
        )
    if error > LARGE_ERROR:
        return _cause_of_large_error(fit)
    long = np.count_nonzero(ratios > OUTLIER_FACTOR)
    short = np.count_nonzero(ratios < 1 / OUTLIER_FACTOR)
    # calls that merely vary are as often much longer as much shorter
    if fit.quality.outliers and MORE_THAN_NOISE * short < long <= FEW_LONG * len(ratios):
        share = percent_text(long / len(ratios), 1)
        return "long calls", (
            f"{share} of the calls took more than twice as long as predicted{_why_long(fit)}"
        )
    advice = "look for disturbed measurements or for a missing parameter"
    return "", _of_few_lines() if fit.judged.samples < FEW else advice


def _why_long(fit: EventFit) -> str:
    """Return why some calls take longer than predicted, with advice."""
    repeats = np.zeros(0) if fit.exact_matches is None else fit.exact_matches.ratios
    if len(repeats) > len(fit.ratios) / 2 and (repeats <= OUTLIER_FACTOR).all():
        return (
            ", and so did their repeats: they do something else; time more calls with parameters "
            "like theirs, or add a parameter that sets them apart"
        )
    return (
        ": they were disturbed, or do something else; time the event again on an idle machine, see "
        "whether these calls differ, or leave them out of totals with "
        f"{spelled('total', 'typical')}"
    )


def _of_few_lines(effect: str = "") -> str:
    """Return advice where lines may be too few; `effect` says what is true of totals."""
    return (
        f"so few lines may not tell what determines the time{effect}; add timing lines, or pass "
        "parameters that determine it"
    )


def _cause_of_large_error(fit: EventFit) -> tuple[str, str]:
    timed = None if fit.exact_matches is None else fit.exact_matches.mean_error
    if timed is not None and timed <= FAIR_ERROR:
        return "good if timed", (
            f"where other lines have the same parameters it is {percent_text(timed, 1)}, but these "
            "have those of no other; time all parameters that the logs have"
        )
    effect = "" if _total_ratio(fit) == 1 else f", and {effect_on_totals(fit)}"
    if short := _few_short_calls(fit, effect):
        return short
    if fit.judged.samples < FEW:
        return "poor", _of_few_lines(effect)
    if (fit.quality.held_out_r2 or 0.0) >= EXPLAINED:
        return "poor", (
            "the parameters explain most of the time, but calls with like parameters vary"
            f"{effect}; time the event on an idle machine, pass what else determines it, or add "
            "timing lines"
        )
    return "poor", (
        f"the parameters explain little of the time{effect}; pass parameters that determine it, "
        "split the event by a category, or add timing lines"
    )


def _few_short_calls(fit: EventFit, effect: str) -> tuple[str, str] | None:
    """Return the cause and advice if a few calls far below their prediction make the error large.

    An error relative to the measured time may be 13,000 % because of a single line.
    """
    ratios = fit.ratios[fit.ratios > 0]
    short = ratios < 1 / OUTLIER_FACTOR
    share, others = np.count_nonzero(short) / max(len(ratios), 1), ratios[~short]
    if not 0 < share <= FEW_SHORT or np.abs(1 / others - 1).mean() > LARGE_ERROR:
        return None
    return "short calls", (
        f"{percent_text(share, 1)} of the calls took less than half as long as predicted, and the "
        f"others about as long{effect}; see with `rewritelog verify` whether these short ones did "
        "less, or their lines are wrong"
    )


def one_long_call(fit: EventFit) -> float | None:
    """Return how many times as long as predicted one call took; None unless it stands out.

    Its held-out ratio is more than `ONE_CALL` times the mean of the others and a large share of the
    sum of all, few of which are long. If the fit itself, which knows the call, is right about it,
    only the fit without it was wrong.
    """
    ratios = fit.ratios
    if fit.clock_step_s or len(ratios) < ENOUGH or not fit.quality.outliers:
        return None
    if not ratios[-1] > LARGE_SUM_ERROR * ratios.sum():
        return None
    if np.count_nonzero(ratios > OUTLIER_FACTOR) > FEW_LONG * len(ratios):
        return None
    return float(ratios[-1]) if ratios[-1] > ONE_CALL * ratios[:-1].mean() else None


def effect_on_totals(fit: EventFit) -> str:
    """Return a clause that says how totals count interrupted calls."""
    ratio = _total_ratio(fit)
    if ratio == 1:
        return "totals leave it out"
    without = f"{spelled('total', 'typical')} leaves that out"
    return f"totals are {ratio:.3g} × those of usual times ({without})"


def _total_ratio(fit: EventFit) -> float:
    """Return the largest factor that corrects sums among the classes, as it is printed.

    It is 1 where sums lack no more than those of any fit to so few lines do.
    """
    part = max(fit.classes[1:] or fit.classes, key=lambda part: part.total_ratio)
    expected = expected_ratio(part.ratios, part.samples, relative=part.quality.relative)
    is_more = f"{part.total_ratio / expected:.3g}" != "1"
    return float(f"{part.total_ratio:.3g}") if is_more else 1.0


def _wrap(head: str, parts: Iterable[str], joint: str, indent: int | None = None) -> list[str]:
    """Return the parts joined after the head, in lines that break between parts; [] without parts.

    Further lines are indented by the length of the head, or by `indent`. A part longer than a line
    breaks after its `*` too.
    """
    whole = [part.replace(" ", _NO_BREAK) for part in parts]
    # lines may break at blanks alone: those between parts, and these, which are removed again
    whole = [part.replace("*", "* ") if len(part) > WIDTH - 2 else part for part in whole]
    begin = head.lstrip(" ")
    margin = "  " + head.removesuffix(begin)  # reports indent all lines by two
    text = begin.replace(" ", _NO_BREAK) + f"{joint.rstrip().replace(' ', _NO_BREAK)} ".join(whole)
    lines = wrapped(margin + text, 2 + (len(head) if indent is None else indent) - len(margin))
    lines = lines.replace("* ", "*").replace(_NO_BREAK, " ")
    return [line[2:] for line in lines.split("\n")] if whole else []


_TIMES = {"text": "*", "python": " * ", "latex": r" \, "}
_POWER = {"text": "({})^{}", "python": "({})**{}", "latex": r"\left({}\right)^{{{}}}"}


def formula_text(fit: EventFit, language: Language = "text") -> str:
    """Return the seconds of an event as a formula of its parameters.

    Raise `UsageError` for an unknown language.
    """
    if not isinstance(language, str) or language not in get_args(Language):
        raise UsageError(f"unknown language {language!r}; known: {', '.join(get_args(Language))}")
    names = dict(enumerate(parameter_names(fit.parameters, fit.names), 1))
    function = formula_of(fit.whole.function)
    if isinstance(function, FittedFunction):
        return _sum_text(function, names, language)
    factors = [
        (_sum_text(member, names, language), number_in_language(weight, language))
        for weight, member in zip(function.weights, function.members, strict=True)
    ]
    return _TIMES[language].join(_POWER[language].format(*factor) for factor in factors)


def terms_of(fit: EventFit) -> dict[str, float]:
    """Return the coefficient of each term of an event's function, in seconds.

    Raise `ModelError` for a mean of sums.
    """
    function = formula_of(fit.whole.function)
    if not isinstance(function, FittedFunction):
        raise ModelError(
            f"the function of {fit.event!r} is a mean of formulas, without coefficients of its own"
        )
    names = dict(enumerate(parameter_names(fit.parameters, fit.names), 1))
    return {term.to_text(names): value for term, value in _calibrated_terms(function)}


def _calibrated_terms(function: FittedFunction) -> Iterator[tuple[Expression, float]]:
    """Yield each term with its calibrated coefficient."""
    values = (function.coefficients * function.calibration).tolist()
    return zip(function.terms, values, strict=True)


def _sum_text(function: FittedFunction, names: dict[int, str], language: Language) -> str:
    """Return Σ coefficient · term, without terms of coefficient 0."""
    texts = []
    for term, value in _calibrated_terms(function):
        if value:
            factor, number = term.as_factor(names, language), number_in_language(value, language)
            # in LaTeX two numbers with a space between them would look like one
            times = r" \cdot " if language == "latex" and factor[0].isdigit() else _TIMES[language]
            texts.append(number if term == ONE else f"{number}{times}{factor}")
    return (" + ".join(texts) or "0").replace("+ -", "- ")
