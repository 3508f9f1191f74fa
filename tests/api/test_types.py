"""Values of wrong types from Python: an error that names the option, as a scientist needs it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import SAMPLE_LOGS

import rewritelog

LOGS, TIMINGS = SAMPLE_LOGS / "cells", SAMPLE_LOGS / "cells/timings.txt"
CALLS: dict[str, Callable[..., Any]] = {
    "rewrite": lambda **options: rewritelog.rewrite(LOGS, **options),
    "replay": lambda **options: rewritelog.replay(LOGS, **options),
    "sweep": lambda **options: rewritelog.sweep(LOGS, {"dilation": [1]}, **options),
    "lost_cycles": lambda **options: rewritelog.lost_cycles(LOGS, **options),
    "check": lambda **options: rewritelog.check(LOGS, **options),
    "diff": lambda **options: rewritelog.diff(LOGS, LOGS, **options),
    "compare": lambda **options: rewritelog.compare(TIMINGS, **options),
    "timeline": lambda **options: rewritelog.timeline(LOGS, **options),
}
WRONG: list[Any] = [object(), b"x", np.array([1, 2]), np.array(object()), [object()]]
OPEN = {"progress", "model", "timings", "pes"}
"""Options that take what is made elsewhere, or any sequence."""


@pytest.mark.parametrize("name", CALLS)
def test_each_option_of_a_wrong_type_is_an_error_that_names_it(name: str) -> None:
    parameters = inspect.signature(getattr(rewritelog, name)).parameters.values()
    options = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    for option in set(options) - OPEN:
        for value in WRONG:
            with pytest.raises(rewritelog.RewriteLogError, match=rf"(?<!-)\b{option}\b"):
                CALLS[name](**{option: value})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rewritelog.replay(3), "logs must be a path or several, not int"),  # type: ignore[arg-type]
        (lambda: rewritelog.replay(np.array("x")), "logs must be a path or several, not ndarray"),
        (lambda: rewritelog.read_timings(np.array("x")), "timings must be a path or several"),
        (lambda: rewritelog.timeline(LOGS, pes=np.array("x")), "pes must be a text such as"),  # type: ignore[arg-type]
        (lambda: rewritelog.dump(LOGS, np.array([1])), "pe must be an integer, not array"),  # type: ignore[arg-type]
        (lambda: rewritelog.rules(["x"]), "rule must be a text, not .'x'."),  # type: ignore[arg-type]
        (lambda: rewritelog.convert(LOGS, None), "out must be given"),  # type: ignore[arg-type]
        (lambda: rewritelog.sweep(LOGS, {"latency": [None]}), "latency: None is not a number"),  # type: ignore[list-item]
        (lambda: rewritelog.sweep(LOGS, {"dilation": None}), "dilation: None is not a number"),  # type: ignore[dict-item]
        (
            lambda: rewritelog.timeline(LOGS, seed=-1, messages=True),
            "seed must be an integer from 0 to",
        ),
        (
            lambda: rewritelog.check(LOGS, jobs=10**20),
            "jobs must be an integer from 0 to 10,000, not 1",
        ),
        (
            lambda: rewritelog.read_timings(TIMINGS, clock_hz="x"),
            "clock_hz: 'x' is not a clock rate: a number with one of Hz",
        ),
        (
            lambda: rewritelog.read_timings(TIMINGS, columns=np.zeros(2)),  # type: ignore[arg-type]
            "columns must be 'params' or 'counters'",
        ),
        (
            lambda: rewritelog.compare(TIMINGS, clock_hz=-1),
            "clock_hz must be a finite",
        ),
    ],
)
def test_a_value_that_cannot_be_used(call: Callable[[], object], message: str) -> None:
    with pytest.raises(rewritelog.UsageError, match=message):
        call()


def test_a_series_of_pandas_has_names_with_values() -> None:
    """It had no names, or its values were taken for names."""
    pd = pytest.importorskip("pandas")
    study = rewritelog.fit({"lost::idle": ([[16], [32], [64]], [0.16, 0.32, 0.64])})
    run = rewritelog.predict_run(study, pd.Series({"P": 4096}))
    assert run.total_s == rewritelog.predict_run(study, {"P": 4096}).total_s
    factors = {"msgep": 0.5, "addMsg": 2.0}
    of_series, of_dict = (
        rewritelog.rewrite(LOGS, dilation_for=named).to_json()["durations_s"]
        for named in (pd.Series(factors), factors)
    )
    assert of_series == of_dict


def test_a_table_in_place_of_a_value_is_named_in_one_line() -> None:
    """Its rows were part of the message."""
    pd = pytest.importorskip("pandas")
    study = rewritelog.fit({"lost::idle": ([[16], [32], [64]], [0.16, 0.32, 0.64])})
    values: Any = pd.Series([64, 128])
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: rewritelog.predict_run(study, {"P": values}), "at P: a Series is not a number"),
        (lambda: rewritelog.rewrite(LOGS, dilation=values), "dilation must .*, not a Series"),
        (
            lambda: rewritelog.rewrite(LOGS, dilation_for={"msgep": values}),
            "dilation_for msgep: a Series is not a number",
        ),
    ]
    for call, message in calls:
        with pytest.raises(rewritelog.UsageError, match=f"^{message}$"):
            call()


@pytest.mark.parametrize(
    "call",
    [
        rewritelog.fit,
        rewritelog.stats,
        lambda path: rewritelog.verify(rewritelog.fit(TIMINGS), path),
        lambda path: rewritelog.predict(rewritelog.fit(TIMINGS), path),
        lambda path: rewritelog.rewrite(LOGS, timings=path),
    ],
)
def test_a_chakra_trace_in_place_of_timings_is_refused_with_what_makes_them(
    call: Callable[[Any], Any],
) -> None:
    """Only a folder of them was; a file had no timing lines, and predictions were empty."""
    trace = SAMPLE_LOGS / "transformer/profile/layers.0.et"
    with pytest.raises(rewritelog.TimingError, match=r"\.et: no .*; `rewritelog timings` makes"):
        list(call(trace))


def test_predictions_need_words_and_finite_numbers() -> None:
    fitted = rewritelog.fit(TIMINGS)
    with pytest.raises(rewritelog.UsageError, match="give files, or an event"):
        rewritelog.predict(fitted, [])
    with pytest.raises(rewritelog.UsageError, match="at takes names, not"):
        rewritelog.predict_run(fitted, 3.5)  # type: ignore[arg-type]
    with pytest.raises(rewritelog.UsageError, match="P: 'x' is not a number"):
        rewritelog.predict_run(fitted, {"P": "x"})  # type: ignore[dict-item]
    with pytest.raises(rewritelog.UsageError, match="must be finite"):
        rewritelog.predict_run(fitted, {"P": float("nan")})


def test_numbers_of_numpy_are_numbers() -> None:
    numbers: dict[str, Any] = {"dilation": np.float32(0.5), "jobs": np.int64(1), "seed": np.int8(3)}
    spread: dict[str, Any] = {"timings": LOGS / "timings.txt", "spread": "residual"}
    report = rewritelog.rewrite(LOGS, **numbers, **spread, latency=np.float64(0))
    assert report.to_json()["options"]["seed"] == 3
    assert rewritelog.sweep(LOGS, {"dilation": np.array([1, 2])}).points


def test_more_folds_than_lines_hold_out_each_line_once() -> None:
    samples = ([[1], [2], [3], [4]], [1e-6, 2e-6, 3e-6, 4e-6])
    timings = rewritelog.Timings.from_arrays({"k": samples})
    four_folds, more_folds = (
        rewritelog.compare(timings, "least-squares", folds=count).tried[0] for count in (4, 10**20)
    )
    assert four_folds.fits == more_folds.fits == 4


def test_a_replay_refuses_or_names_what_it_does_not_use() -> None:
    with pytest.raises(rewritelog.UsageError, match=r"^types is for traces of events"):
        rewritelog.replay(LOGS, types="COMP")
    traces = SAMPLE_LOGS / "transformer/training"
    (warning,) = rewritelog.replay(traces, dilation_for={"aten::mm": 2, "nosuch": 2}).warnings
    of_no_node = "no node of the types that types chooses has such a name"
    assert warning.startswith(f"the dilation for 'nosuch' was not used: {of_no_node}; ")


def test_a_dilation_for_an_event_is_told_from_a_mistyped_name() -> None:
    rules = {"nosuch": 2, "Cell::bon*": 2}
    timings = LOGS / "timings.txt"
    report = rewritelog.rewrite(LOGS, timings=timings, dilation=1, dilation_for=rules)
    of_none, of_event = [text for text in report.warnings if text.startswith("the dilation for")]
    assert "no SEB's name matches, only an event's; " in of_event
    assert "event" not in of_none
    assert of_none.endswith("; `rewritelog info` lists their names")


def test_options_of_the_command_line_alone_are_no_parameters() -> None:
    with pytest.raises(rewritelog.UsageTypeError, match="unexpected keyword argument 'quiet'"):
        rewritelog.rewrite(LOGS, quiet=True)  # type: ignore[call-arg]
