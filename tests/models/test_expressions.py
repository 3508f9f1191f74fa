"""Expressions: what they compute, what they refuse and where, and that text does no harm."""

from __future__ import annotations

import ast
import math
import operator
import pickle
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chosen import by_tier
from hypothesis import given
from hypothesis import strategies as st
from kinds import ReferenceTimings

import rewritelog.models.expressions as package
from rewritelog.errors import ModelError, RewriteLogError
from rewritelog.models.expressions import (
    FUNCTIONS,
    MAX_DEPTH,
    MAX_LENGTH,
    MAX_STEPS,
    Expression,
    FormulaError,
    Origin,
    parse,
)

ROWS = np.array([[2.0, 3.0, 5.0], [7.0, 0.5, 1.0], [4.0, 4.0, 4.0]])


def value(text: str, *params: float) -> float:
    return float(parse(text).evaluate(np.array([params], dtype=np.float64))[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        (".5", 0.5),
        ("2.", 2),
        ("1.5e-3", 0.0015),
        ("1E2", 100),
        ("1 + 2*3", 7),
        ("(1 + 2)*3", 9),
        ("8 - 3 - 2", 3),
        ("8 - (3 - 2)", 7),
        ("8/4/2", 1),
        ("8/(4/2)", 4),
        ("2*3/4", 1.5),
        ("2^3^2", 512),
        ("(2^3)^2", 64),
        ("-2^2", -4),
        ("(-2)^2", 4),
        ("2^-1", 0.5),
        ("2^-1*3", 1.5),
        ("-2*3", -6),
        ("--2", 2),
        ("+2", 2),
        ("1 - -2", 3),
        ("3*-2", -6),
        ("4^0.5", 2),
        ("1 < 2", 1),
        ("2 < 1", 0),
        ("2 <= 2", 1),
        ("2 > 2", 0),
        ("2 >= 2", 1),
        ("2 == 2", 1),
        ("2 != 2", 0),
        ("1 + 1 == 2", 1),
        ("(1 < 2) + (2 < 3)", 2),
        ("min(3, 1, 2)", 1),
        ("max(3, 1, 2)", 3),
        ("min(2, 1)", 1),
        ("sqrt(16)", 4),
        ("log(1)", 0),
        ("log1p(0)", 0),
        ("log2(8)", 3),
        ("exp(0)", 1),
        ("abs(-3)", 3),
        ("floor(-1.5)", -2),
        ("ceil(1.2)", 2),
        (" 1\t+\r\n1 ", 2),
    ],
)
def test_arithmetic_is_what_engineers_write(text: str, expected: Any) -> None:
    assert value(text) == expected


def test_parameters_are_columns_and_names_stand_for_them() -> None:
    assert parse("p1*p3 - p2").evaluate(ROWS).tolist() == [7, 6.5, 12]
    named = parse("n*c - half", names={"n": 1, "c": 3, "half": 2})
    assert named == parse("p1*p3 - p2")
    assert named.parameters == {1, 2, 3}
    assert str(named) == "p1*p3 - p2"
    assert named.to_text({1: "n", 2: "half", 3: "c"}) == "n*c - half"


def test_a_constant_has_a_value_for_each_row() -> None:
    assert parse("2 < 3").evaluate(np.empty((4, 0))).tolist() == [1, 1, 1, 1]
    assert parse("p1").evaluate(np.empty((0, 1))).shape == (0,)
    assert parse("p2").evaluate(ROWS).dtype == np.float64
    assert parse("p1 < p2").evaluate(ROWS).tolist() == [1, 0, 0]


def test_evaluation_leaves_the_parameters_alone() -> None:
    params = ROWS.copy()
    parse("-p1 + p1*p1^2 - min(p1, p2, p3)").evaluate(params)
    assert (params == ROWS).all()


def test_results_are_those_of_ieee_arithmetic_and_raise_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert value("log(p1)", 0) == -math.inf
        assert value("1/p1", 0) == math.inf
        assert math.isnan(value("p1/p1", 0))
        assert math.isnan(value("sqrt(p1)", -1))
        assert math.isnan(value("min(p1, sqrt(p2))", 1, -1))
        assert value("exp(p1)", 1000) == math.inf
        assert value("9^9^9^9") == math.inf


@pytest.mark.parametrize(
    ("first", "second", "size", "distance"),
    [
        ((0, 0, 0), (0, 0, 0), (6, 6, 4), 0),
        ((0, 0, 0), (1, 0, 0), (6, 6, 4), 1),
        ((0, 0, 0), (5, 0, 0), (6, 6, 4), 1),  # round the back
        ((5, 2, 3), (0, 2, 0), (6, 6, 4), 2),
        ((5, 5, 3), (0, 0, 0), (6, 6, 4), 3),  # a corner, wrapping in all dimensions
        ((0, 0, 0), (3, 3, 2), (6, 6, 4), 8),  # the farthest
        ((0, 0, 0), (4, 0, 0), (math.inf, 1, 1), 4),  # a dimension that does not wrap
        ((7, 0, 0), (0, 0, 0), (6, 1, 1), 1),  # places are taken modulo the size
    ],
)
def test_torus_distance(first: Any, second: Any, size: Any, distance: Any) -> None:
    text = "torus_distance(p1, p2, p3, p4, p5, p6, p7, p8, p9)"
    assert value(text, *first, *second, *size) == distance
    assert value(text, *second, *first, *size) == distance


@pytest.mark.parametrize("size", [0, -3, math.nan])
def test_a_torus_without_a_size_has_no_distances(size: Any) -> None:
    assert math.isnan(value("torus_distance(0, 0, 0, 1, 0, 0, p1, 1, 1)", size))


def test_namd_pairs_fall_into_three_classes_by_torus_distance(
    reference_timings: ReferenceTimings,
) -> None:
    (pairs,) = [t for t in reference_timings("namd") if t.event.startswith("calc_pair")]
    expression = parse("torus_distance(p3, p4, p5, p6, p7, p8, 6, 6, 4)")
    distances, counts = np.unique(expression.evaluate(pairs.params), return_counts=True)
    assert distances.tolist() == [1, 2, 3]
    assert counts.sum() == len(pairs.seconds)


def test_a_row_has_the_same_bits_whatever_stands_beside_it() -> None:
    params = np.random.default_rng(3).uniform(0.1, 50, (20_001, 4))
    text = "p1^1.5*log1p(p2) + exp(-p3)/sqrt(p4) - p1^p2*log(p3) + log2(p4)^2"
    expression = parse(text)
    values = expression.evaluate(params)
    assert (expression.evaluate(params[7:]) == values[7:]).all()
    assert (expression.evaluate(np.asfortranarray(params)) == values).all()
    for row in (0, 1, 8191, 8192, 20_000):
        assert expression.evaluate(params[row : row + 1])[0] == values[row]


def test_a_million_rows_need_few_temporaries() -> None:
    params = np.ones((1_000_000, 3))
    expression = parse("min(p1*p2, p3)*log1p(p1 + p2) + torus_distance(p1,p2,p3,p2,p1,p3,6,6,4)")
    tracemalloc.start()
    expression.evaluate(params)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * params.nbytes / 3


def test_expressions_can_be_compared_hashed_and_pickled() -> None:
    expression = parse("min(p1, 2)*log(p2) <= -1")
    again = pickle.loads(pickle.dumps(expression))  # noqa: S301 - just made
    assert again == expression
    assert {expression: 1}[again] == 1
    assert (again.evaluate(ROWS) == expression.evaluate(ROWS)).all()
    assert parse("p1") != parse("1")
    assert parse("p1*p2") != parse("p2*p1")
    assert parse("p1+p2") == parse(" ( p1 ) + p2")


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("p1-(p2-p3)", "p1 - (p2 - p3)"),
        ("(p1-p2)-p3", "p1 - p2 - p3"),
        ("((p1*p2))/p3", "p1*p2/p3"),
        ("p1*(p2/p3)", "p1*(p2/p3)"),
        ("(p1^p2)^p3", "(p1^p2)^p3"),
        ("p1^(p2^p3)", "p1^p2^p3"),
        ("p1^(-p2)", "p1^-p2"),
        ("(-p1)^2", "(-p1)^2"),
        ("-(p1^2)", "-p1^2"),
        ("-(p1*p2)", "-(p1*p2)"),
        ("(p1<p2)<p3", "(p1 < p2) < p3"),
        ("min(min(p1,p2),p3)", "min(p1, p2, p3)"),
        ("min(p1,min(p2,p3))", "min(p1, min(p2, p3))"),
        ("max(min(p1,p2),p3)", "max(min(p1, p2), p3)"),
        ("100000", "100000"),
        ("1e-6", "1e-06"),
        ("0.1", "0.1"),
        ("1e300", "1e+300"),
    ],
)
def test_the_canonical_text_says_the_same_with_no_needless_parentheses(
    text: str, canonical: str
) -> None:
    assert str(parse(text)) == canonical
    assert parse(canonical) == parse(text)


INFIX = {"+": operator.add, "-": operator.sub, "*": operator.mul}
CALLS = {"min": min, "max": max}


@st.composite
def trees(draw: Any, depth: int = 4) -> Any:
    """An expression's text in full parentheses, and its value by Python's own integers."""
    kind = draw(st.sampled_from(["leaf", *INFIX, *CALLS, "negate", "<"])) if depth else "leaf"
    if kind == "leaf":
        number = draw(st.integers(0, 4))
        return draw(st.sampled_from([(str(number), number), ("p1", 2), ("p2", 3), ("p3", 5)]))
    left, a = draw(trees(depth - 1))
    if kind == "negate":
        return f"(-{left})", -a
    right, b = draw(trees(depth - 1))
    if kind in CALLS:
        return f"{kind}({left}, {right})", CALLS[kind](a, b)
    if kind == "<":
        return f"({left} < {right})", int(a < b)
    return f"({left} {kind} {right})", INFIX[kind](a, b)


@given(trees())
def test_any_expression_computes_as_python_does_and_survives_its_canonical_text(tree: Any) -> None:
    text, expected = tree
    expression = parse(text)
    assert expression.evaluate(ROWS)[0] == expected
    assert parse(str(expression)) == expression
    assert str(parse(str(expression))) == str(expression)


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, "missing before the end"),
        ("  ", 3, "missing before the end"),
        ("p1 p2", 4, "an operator is missing before 'p2'"),
        ("2n", 2, "an operator is missing before 'n'"),
        ("p1 + ", 6, r"a number, a name or '\(' is missing before the end"),
        ("(p1", 4, r"'\)' is missing before the end"),
        ("p1)", 3, r"missing before '\)'"),
        ("p1 + p21", 6, "unknown name 'p21'; known: p1 to p20"),
        ("p0", 1, "unknown name 'p0'"),
        ("n + q", 5, "unknown name 'q'; known: p1 to p20, n$"),
        ("p01", 1, "unknown name 'p01'"),
        ("1 + foo(2)", 5, "unknown function 'foo'; known: abs, ceil, exp, "),
        ("n(2)", 2, r"an operator is missing before '\('"),
        ("log", 4, r"'\(' is missing after 'log'"),
        ("log + 1", 5, r"'\(' is missing after 'log'"),
        ("log()", 1, "log takes 1 argument, not 0"),
        ("log(1, 2)", 1, "log takes 1 argument, not"),
        ("min(1)", 1, "min takes at least 2 arguments, not 1"),
        ("min(1, )", 8, r"missing before '\)'"),
        ("min(1 2)", 7, r"',' or '\)' is missing"),
        ("torus_distance(1,2,3)", 1, "torus_distance takes 9 arguments, not 3"),
        ("1 < 2 < 3", 7, "comparisons do not chain"),
        ("p1**2", 4, r"is missing before '\*'; a power is \^$"),
        ("p1 = 2", 4, "invalid character"),
        ("p1 × 2", 4, "invalid character '×'"),
        ("p1; import os", 3, "invalid character ';'"),
        ("p1.real", 3, "invalid character '.'"),
        ("__import__('os')", 12, 'invalid character "\'"'),
        ("1e999", 1, "larger than any float64"),
        ("1_000", 2, "an operator is missing before '_000'"),
        ("p1 \x00", 4, "invalid character '.*x00'"),
    ],
)
def test_a_mistake_is_named_with_its_column(text: str, column: int, problem: str) -> None:
    with pytest.raises(FormulaError, match=problem) as caught:
        parse(text, names={"n": 1})
    assert caught.value.column == column
    assert isinstance(caught.value, ModelError)
    assert isinstance(caught.value, RewriteLogError)


def test_an_error_names_file_line_and_column() -> None:
    with pytest.raises(FormulaError, match=r"^my\.toml:7:15: unknown name 'q'") as caught:
        parse("1 + q", where=Origin("my.toml", 7, 11))
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - just made
    assert (str(again), again.line, again.column) == (str(caught.value), 7, 15)
    with pytest.raises(FormulaError, match=r"^bad\\x1b\.toml:1:1:"):
        parse("q", where=Origin("bad\x1b.toml", 1))
    with pytest.raises(FormulaError, match=r"^model\.json, column 1:"):
        parse("q", where=Origin("model.json"))
    with pytest.raises(FormulaError, match=r"^my\.toml:4: unknown name"):
        parse("q", where=Origin("my.toml", 4, None))


NESTED = [
    "+" * 1000 + "1",
    "log(" * 20_000,
    "(" * 100_000,
    "-" * 99_000 + "1",
    "2^" * 49_000 + "2",
    "1+(" * 30_000 + "1" + ")" * 30_000,
    "min(1," * 15_000,
    "1<(" * 30_000,
]


@pytest.mark.parametrize("text", by_tier(NESTED, NESTED[:2], NESTED))
def test_deep_nesting_is_refused_and_never_overflows_the_stack(text: str) -> None:
    with pytest.raises(FormulaError, match=f"nested more than {MAX_DEPTH} deep|at most"):
        parse(text)


@pytest.mark.parametrize("text", ["1+" * 3000 + "1", "min(" + "1," * 3000 + "1)"])
def test_many_steps_are_refused(text: str) -> None:
    with pytest.raises(FormulaError, match=f"more than {MAX_STEPS} numbers, names and operations"):
        parse(text)


def test_long_text_is_refused() -> None:
    with pytest.raises(FormulaError, match="the expression has 1000000 characters; at most"):
        parse("1" * 1_000_000)


def test_the_largest_expressions_work_and_their_canonical_text_stays_within_the_limits() -> None:
    deep = parse("(" * MAX_DEPTH + "p1" + ")" * MAX_DEPTH)
    chain = parse("p1" + "-p1*1e-300" * (MAX_STEPS // 4 - 1))
    nested = parse("(-p1^2+" * 33 + "1" + ")" * 33)
    for expression in (deep, chain, nested):
        assert len(str(expression)) < MAX_LENGTH
        assert parse(str(expression)) == expression
        assert expression.evaluate(ROWS).shape == (3,)
        assert pickle.loads(pickle.dumps(expression)) == expression  # noqa: S301 - just made
        assert isinstance(hash(expression), int)


def test_a_missing_parameter_is_an_error_that_names_the_expression() -> None:
    with pytest.raises(ModelError, match=r"p1 \+ p4 needs 4 parameters, not an array of \(3, 3\)"):
        parse("p1 + p4").evaluate(ROWS)


@given(st.text(alphabet="p1 2.e+-*/^<=>!(),minaxlogq_\n", max_size=60))
def test_any_text_is_an_expression_or_a_formula_error(text: str) -> None:
    try:
        expression = parse(text)
    except FormulaError:
        return
    assert isinstance(expression, Expression)
    assert expression.evaluate(np.ones((2, 20))).shape == (2,)
    assert parse(str(expression)) == expression


def test_no_module_of_the_package_hands_text_to_python() -> None:
    for path in Path(package.__file__).parent.glob("*.py"):
        calls = [
            node.func
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call)
        ]
        named = {func.id for func in calls if isinstance(func, ast.Name)}
        assert not named & {"eval", "exec", "compile", "__import__"}, path


def test_every_function_is_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "formulas.md").read_text()
    for name in FUNCTIONS:
        assert f"`{name}" in text, name


@pytest.mark.parametrize(
    ("first", "second", "product"),
    [
        ("p1", "1/max(p2, 1)", "p1/max(p2, 1)"),
        ("1/p2", "p1", "p1/p2"),
        ("1/p1", "1/p2", "1/p1/p2"),
        ("p1", "p2*log(p2)", "p1*p2*log(p2)"),
        ("p1/p2", "p3*p1/p2", "p1/p2*p3*p1/p2"),
        ("1/(1 + p1)", "p2 + p3", "(p2 + p3)/(1 + p1)"),
        ("(1 + p1)/p2", "1/p3", "(1 + p1)/p2/p3"),
        ("1", "p1*p2", "p1*p2"),
        ("p1^2", "1", "p1^2"),
        ("-p1", "p2 - 1", "-p1*(p2 - 1)"),
    ],
)
def test_products_are_written_as_people_do(first: str, second: str, product: str) -> None:
    """Reports had `p1*(1/max(p2, 1))` and `p1*(p2*log(p2))`."""
    written = parse(first).times(parse(second))
    assert str(written) == product
    assert parse(product) == written
    rows = np.random.default_rng(1).uniform(0.5, 3.0, (20, 3))
    factors = parse(first).evaluate(rows) * parse(second).evaluate(rows)
    assert written.evaluate(rows) == pytest.approx(factors, rel=1e-14)


def test_products_of_many_factors_are_not_recursive() -> None:
    long = parse("*".join(["p1"] * 900))
    assert str(long.times(long)) == "*".join(["p1"] * 1800)
