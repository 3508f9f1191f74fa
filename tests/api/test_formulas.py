"""What a fitted model says of itself: formulas, coefficients, tables and pictures."""

from __future__ import annotations

import math
import pickle
import re
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from oracle import SAMPLE_LOGS

import rewritelog
from rewritelog.errors import ModelError
from rewritelog.models.expressions import parse

LINES = SAMPLE_LOGS / "cells" / "timings.txt"
NEVER = {"exact_match": "never"}

EXPRESSIONS = [
    ("p1^2", "p1**2.0", "p_{1}^{2}"),
    ("(p1 + 1)^p2", "(p1 + 1.0)**p2", r"\left(p_{1} + 1\right)^{p_{2}}"),
    ("-p1^-2", "-p1**-2.0", "-p_{1}^{-2}"),
    ("(-p1)^2", "(-p1)**2.0", r"\left(-p_{1}\right)^{2}"),
    ("p1*(p2 - (p1 - 3))", "p1 * (p2 - (p1 - 3.0))",
     r"p_{1} \cdot \left(p_{2} - \left(p_{1} - 3\right)\right)"),
    ("p1/(p2/2)/3", "p1 / (p2 / 2.0) / 3.0", r"\frac{\frac{p_{1}}{\frac{p_{2}}{2}}}{3}"),
    ("p1*(p1*p2 <= 16)", "p1 * np.where(p1 * p2 <= 16.0, 1.0, 0.0)",
     r"p_{1} \cdot [p_{1} \cdot p_{2} \leq 16]"),
    ("(p1 < 2) + (p2 != 3)", "np.where(p1 < 2.0, 1.0, 0.0) + np.where(p2 != 3.0, 1.0, 0.0)",
     r"[p_{1} < 2] + [p_{2} \neq 3]"),
    ("min(p1, p2, 4) + max(p1, 2)", "np.minimum(np.minimum(p1, p2), 4.0) + np.maximum(p1, 2.0)",
     r"\min\left(\min\left(p_{1}, p_{2}\right), 4\right) + \max\left(p_{1}, 2\right)"),
    ("log2(p1)*sqrt(p2)", "np.log2(p1) * np.sqrt(p2)",
     r"\log_2\left(p_{1}\right) \cdot \sqrt{p_{2}}"),
    ("abs(floor(p1) - ceil(p2))", "np.absolute(np.floor(p1) - np.ceil(p2))",
     r"\left|\left\lfloor p_{1}\right\rfloor - \left\lceil p_{2}\right\rceil\right|"),
    ("1e-06^p1 + 2e+20", "1e-06**p1 + 2e+20",
     r"\left(1 \cdot 10^{-6}\right)^{p_{1}} + 2 \cdot 10^{20}"),
    ("exp(log1p(p1))", "np.exp(np.log1p(p1))", r"\exp\left(\ln\left(1 + p_{1}\right)\right)"),
]  # fmt: skip


def evaluated(formula: str, names: dict[str, Any]) -> Any:
    """What a user gets who evaluates a formula in Python."""
    return eval(formula, {"np": np, **names})  # noqa: S307 - that is what it is for


@pytest.mark.parametrize(("text", "python", "latex"), EXPRESSIONS)
def test_an_expression_in_python_computes_what_it_does(text: str, python: str, latex: str) -> None:
    expression = parse(text)
    assert expression.to_text({}, "python") == python
    assert expression.to_text({}, "latex") == latex
    assert expression.to_text({}, "text") == str(expression)
    params = np.random.default_rng(1).uniform(0.5, 8, (100, 2))
    values = evaluated(python, {"p1": params[:, 0], "p2": params[:, 1]})
    np.testing.assert_allclose(values, expression.evaluate(params), rtol=1e-14)


def test_a_formula_in_python_takes_columns_of_integers_as_frames_have_them() -> None:
    """Powers of large integers overflowed to other numbers, and negative ones raised an error."""
    sizes = np.array([1, 3_000_000, 9_000_000])
    expected = 1.0 / sizes + sizes.astype(float) ** 3
    values = evaluated(parse("p1^-1 + p1^3").to_text({}, "python"), {"p1": sizes})
    np.testing.assert_allclose(values, expected, rtol=1e-14)


def test_a_constant_stands_alone_in_a_formula() -> None:
    timings = {"k": ([[n] for n in range(1, 9)], [2 + 3 * n for n in range(1, 9)])}
    fitted = rewritelog.fit(timings, "least-squares", model_options={"basis": "linear"})
    assert re.fullmatch(r"\S+ \+ \S+ \* p1", fitted.formula("k", "python"))
    assert fitted.formula("k") == "2 + 3*p1"


def test_a_function_that_numpy_lacks_is_named() -> None:
    torus = parse(f"torus_distance({', '.join(f'p{k}' for k in range(1, 10))})")
    assert r"\operatorname{torus\_distance}" in torus.to_text({}, "latex")


@pytest.mark.parametrize("model", ["auto", "least-squares"])
def test_the_formula_in_python_predicts_what_the_model_does(model: str) -> None:
    fitted = rewritelog.fit(LINES, model, model_options=NEVER)
    samples = rewritelog.read_timings(LINES)
    for event in fitted.events:
        params = samples[event].params
        names: dict[str, Any] = {f"p{k + 1}": column for k, column in enumerate(params.T)}
        seconds = evaluated(fitted.formula(event, "python"), names)
        np.testing.assert_allclose(seconds, fitted.predict(event, params), rtol=1e-12)


def test_a_mean_of_formulas_is_a_product_of_their_powers() -> None:
    timings = rewritelog.read_timings(LINES)["Cell::pairForces"]
    few = {"k": (timings.params[:12], timings.seconds[:12])}
    fitted = rewritelog.fit(few, model_options=NEVER)
    formula = fitted.formula("k", "python")
    assert ")**" in formula
    names = {"p1": timings.params[:12, 0], "p2": timings.params[:12, 1]}
    seconds = evaluated(formula, names)
    np.testing.assert_allclose(seconds, fitted.predict("k", timings.params[:12]), rtol=1e-4)
    with pytest.raises(ModelError, match="a mean of formulas"):
        fitted.coefficients("k")


def test_coefficients_quality_and_the_table_of_fits() -> None:
    pytest.importorskip("pandas")
    sizes = [[n] for n in range(1, 9)]
    fitted = rewritelog.fit({"k": (sizes, [3e-6 * n for (n,) in sizes]), "c": (sizes, [1e-6] * 8)})
    assert fitted.coefficients("k") == pytest.approx({"p1": 3e-6})
    assert fitted.r2["k"] == pytest.approx(1.0)
    assert math.isnan(fitted.r2["c"])
    frame = fitted.to_frame()
    assert list(frame["event"]) == ["k", "c"]
    assert frame["formula"][0] == fitted.formula("k") == "3e-06*p1"
    for call in (fitted.formula, fitted.coefficients, fitted.plot):
        with pytest.raises(rewritelog.UsageError, match="the event 'z'"):
            call("z")
    with pytest.raises(rewritelog.UsageError, match="unknown language 'c'"):
        fitted.formula("k", "c")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("term", "text", "latex"),
    [
        ("-p1", "2*(-p1)", r"2 \, \left(-p_{1}\right)"),
        ("-p1*p1", "2*(-p1*p1)", r"2 \, \left(-p_{1} \cdot p_{1}\right)"),
        ("2^p1", "2*2^p1", r"2 \cdot 2^{p_{1}}"),
        ("5*p1", "2*5*p1", r"2 \cdot 5 \cdot p_{1}"),
        ("1/p1", "2*1/p1", r"2 \, \frac{1}{p_{1}}"),
        ("(p1 == 1048577)", "2*(p1 == 1048577)", r"2 \, [p_{1} = 1048577]"),
    ],
)
def test_a_coefficient_is_read_as_a_factor_of_its_term(
    tmp_path: Path, term: str, text: str, latex: str
) -> None:
    """`2 -p1` looked like a difference, `2 2^p1` like 22^p1; 1048577 was rounded to 1.04858e6."""
    formulas = tmp_path / "f.toml"
    formulas.write_text(f"[[formula]]\nevent = 'k'\nterms = ['1', '{term}']\n")
    sizes = np.append(np.arange(1.0, 9), 1048577 if "==" in term else 9)[:, None]
    seconds = 600 + 2 * parse(term).evaluate(sizes)
    fitted = rewritelog.fit({"k": (sizes, seconds)}, formulas=formulas)
    assert fitted.formula("k") == f"600 + {text}"
    assert fitted.formula("k", "latex") == f"600 + {latex}"
    factor = text.removeprefix("2*")
    assert re.search(rf"\(2 ± \S+\) {re.escape(factor)}\n", fitted.summary())


def test_an_event_with_several_numbers_of_parameters_asks_for_one() -> None:
    both = rewritelog.read_timings(LINES).timings
    (pairs, bonded) = both
    pandas = pytest.importorskip("pandas")
    rows = [
        {"event": "k", "p1": row[0], "p2": row[1] if len(row) > 1 else np.nan, "seconds": seconds}
        for samples in (pairs, bonded)
        for row, seconds in zip(samples.params.tolist(), samples.seconds.tolist(), strict=True)
    ]
    timings = rewritelog.Timings.from_frame(pandas.DataFrame(rows))
    fitted = rewritelog.fit(timings, "least-squares")
    with pytest.raises(rewritelog.UsageError, match="parameters must be 1 or 2, not None"):
        fitted.formula("k")
    assert "p2" in fitted.formula("k", parameters=2)
    assert "p2" not in fitted.formula("k", parameters=1)
    with pytest.raises(rewritelog.UsageError, match="parameters must be 1 or 2, not None"):
        timings["k"]
    assert timings.of_event("k", 1).params.shape == bonded.params.shape


def test_models_without_formulas_say_so(tmp_path: Path) -> None:
    fitted = rewritelog.fit(LINES, "least-squares")
    fitted.save(tmp_path / "m.json")
    loaded = rewritelog.load_model(tmp_path / "m.json")
    assert loaded.formula("Cell::bonded") == fitted.formula("Cell::bonded")
    with pytest.raises(rewritelog.UsageError, match="no samples: give timings"):
        loaded.plot("Cell::bonded")


def test_columns_of_a_frame_name_the_parameters() -> None:
    pandas = pytest.importorskip("pandas")
    rows = [{"event": "work", "atoms": n, "seconds": 2e-6 * n} for n in range(1, 9)]
    rows += [{"event": "send", "bytes": 8.0 * n, "seconds": 1e-6 * n} for n in range(1, 9)]
    frame = pandas.DataFrame(rows)
    fitted = rewritelog.fit(frame)
    assert fitted.formula("work") == "2e-06*atoms"
    assert fitted.formula("send") == "1.25e-07*bytes"
    assert "work(atoms)" in fitted.summary()
    shown: Any = fitted.summary()  # a notebook showed the text as one line, with \\n
    assert "\n  seconds = " in shown._repr_html_()
    report = rewritelog.rewrite(SAMPLE_LOGS / "cells", timings=frame, dilation=1.0)
    assert "work(atoms)" in report.details()
    with pytest.raises(rewritelog.UsageError, match=r"'two words' is not a valid name.*rename"):
        rewritelog.fit(frame.rename(columns={"atoms": "two words"}))


@pytest.mark.slow
def test_pictures_are_shown_by_a_notebook(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    fitted = rewritelog.fit(LINES, "least-squares")
    svg = fitted.plot("Cell::bonded")
    assert "<svg" in (svg._repr_svg_() or "")
    assert (svg._repr_png_(), svg._repr_html_()) == (None, None)
    assert repr(svg) == str(svg) == f"<Picture: svg, {len(svg):,} bytes>"
    again = pickle.loads(pickle.dumps(svg))  # noqa: S301 - it was not possible, nor was a copy
    assert (again, again.kind) == (svg, "svg")
    png = fitted.plot("Cell::pairForces", kind="png")
    assert (png._repr_png_() or b"").startswith(b"\x89PNG")
    picture = rewritelog.timeline(SAMPLE_LOGS / "cells", tmp_path / "t.svg", pes=[0])
    assert (tmp_path / "t.svg").read_text() == picture._repr_svg_()


def test_no_time_below_zero_is_drawn() -> None:
    """Intervals and predictions of 0 s were drawn below the axis."""
    axes = pytest.importorskip("matplotlib.axes").Axes
    n = np.arange(1.0, 9)
    lines = {"k": (n[:, None], np.where(n > 6, 1.0, 0.0)), "m": (np.column_stack([n, n % 2]), n**6)}
    fitted = rewritelog.fit(lines, "least-squares", model_options={"exact_match": "never"})
    with (
        mock.patch.object(axes, "plot", autospec=True, side_effect=axes.plot) as points,
        mock.patch.object(
            axes, "fill_between", autospec=True, side_effect=axes.fill_between
        ) as areas,
    ):
        fitted.plot("k")
        fitted.plot("m")
    curves = [call.args[2] for call in [*points.mock_calls, *areas.mock_calls]]
    assert len(curves) == 2 + 2 * 2 + 1
    assert min(np.nanmin(times) for times in curves) == 0


def test_one_dimension_is_refused_where_it_might_be_a_row_or_a_column() -> None:
    fitted = rewritelog.fit(LINES, "least-squares")
    for call in (
        lambda: fitted.predict("Cell::pairForces", [53, 11]),
        lambda: rewritelog.fit({"k": ([1, 2, 4], [1e-6, 2e-6, 4e-6])}),
        lambda: rewritelog.AutoRegressor().fit([1, 2, 4], [1e-6, 2e-6, 4e-6]),
    ):
        with pytest.raises(rewritelog.UsageError, match=r"X.* must have two dimensions, a row for"):
            call()


@pytest.mark.slow
def test_a_regressor_that_is_not_fitted_raises_what_scikit_learn_does() -> None:
    exceptions = pytest.importorskip("sklearn.exceptions")
    with pytest.raises(exceptions.NotFittedError, match="call fit first") as caught:
        rewritelog.AutoRegressor().predict([[1]])
    assert isinstance(caught.value, rewritelog.UsageError)


def test_every_report_is_shown_whole_by_a_notebook(tmp_path: Path) -> None:
    cells = SAMPLE_LOGS / "cells"
    reports = (
        rewritelog.replay(cells, gains=0),
        rewritelog.replay(cells, gains=0, against=cells),
        rewritelog.sweep(cells, {"dilation": [1, 2]}),
        rewritelog.lost_cycles(cells),
        rewritelog.convert(cells, tmp_path / "big", byte_order="big"),
        rewritelog.export(cells, tmp_path / "tables", "csv", pes="0"),
    )
    for report in reports:
        assert report._repr_html_().startswith("<pre>")
        assert len(repr(report)) < 160


def test_the_repr_of_a_report_is_its_first_sentence_and_not_its_first_line() -> None:
    """They ended at a comma, where the text goes on in the next line."""
    cells = SAMPLE_LOGS / "cells"
    vary: dict[str, Any] = {"latency": ["1us", "2us"], "bandwidth": ["2GB/s"], "dilation": [1]}
    assert repr(rewritelog.sweep(cells, vary)) == (
        "<Sweep: Shortest predicted run time: 392.9 µs, with latency 1us, bandwidth 2GB/s, "
        "dilation 1>"
    )
    assert repr(rewritelog.rewrite(cells, dilation=0.5)) == (
        "<RewriteReport: Predicted run time: 391.2 µs → 195.7 µs, 1.999 × faster, on 16 PEs, "
        "each message with its recorded transit time.>"
    )
    assert repr(rewritelog.info(cells)).endswith("header version 1>")
    chosen = rewritelog.sample(cells, fraction=0.2)
    assert repr(chosen).startswith("<SampleReport: 16 param records chosen of 80 (")


def test_events_with_long_names_and_without_samples() -> None:
    """Bare errors: the name was looked for as a file, and the least of no times was asked for."""
    name = "std::map<" + "long" * 80 + ">"
    fitted = rewritelog.fit({name: ([[1.0], [2.0], [3.0]], [1e-6, 2e-6, 3e-6])})
    (record,) = rewritelog.predict(fitted, [name, "2"])
    assert record["predicted_s"] == pytest.approx(2e-6, rel=0.01)
    nothing = rewritelog.Timings.from_arrays({"k": (np.zeros((0, 2)), [])})
    assert "<td" in nothing._repr_html_()
