"""Formulas files: which formula an event gets, what a kind of kernel stands for, wrong files."""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chosen import by_tier
from hypothesis import given
from hypothesis import strategies as st
from kinds import ReferenceTimings

from rewritelog.models.expressions import FormulaError, parse
from rewritelog.models.formulas import Formulas, kinds, parse_formulas
from rewritelog.text import matches

DOCS = Path(__file__).parents[2] / "docs" / "formulas.md"

NAMD = """\
# two patches, their cells on the patch grid, and what the pair list had to do
[[formula]]
event = "calc_pair_*"
params = ["n1", "n2", "x1", "y1", "z1", "x2", "y2", "z2", "tested", "close", "_", "_", "_", "_"]
terms = ["1", "n1*n2", "tested", "close"]
category = "torus_distance(x1, y1, z1, x2, y2, z2, 6, 6, 4)"

[[formula]]
event = ["angles", "dihedrals"]
kind = "linear"
of = ["p2"]
times = "p1"

[[formula]]
event = "*"
kind = "n-log-n"
"""


def entry(body: str) -> str:
    return f'[[formula]]\nevent = "kernel"\n{body}\n'


def listed(values: Any) -> str:
    return "[" + ", ".join(f"'{value}'" for value in values) + "]"


def terms(body: str, event: str = "kernel", parameters: int = 3) -> list[str]:
    formula = parse_formulas(entry(body), "my.toml").for_event(event, parameters)
    assert formula is not None
    return [str(term) for term in formula.terms]


def refused(text: str) -> FormulaError:
    with pytest.raises(FormulaError) as caught:
        parse_formulas(text, "my.toml")
    return caught.value


def test_an_event_gets_the_first_formula_that_matches_and_fits() -> None:
    formulas = parse_formulas(NAMD, "namd.toml")
    pair = formulas.for_event("calc_pair_energy_fullelect", 14)
    assert pair is formulas.entries[0]
    assert pair.where == "namd.toml:2"
    assert pair.category == parse("torus_distance(p3, p4, p5, p6, p7, p8, 6, 6, 4)")
    assert [str(term) for term in pair.terms] == ["1", "p1*p2", "p9", "p10"]
    assert formulas.for_event("dihedrals", 2) is formulas.entries[1]
    assert formulas.for_event("other", 2) is formulas.entries[2]
    assert formulas.for_event("other", 0) is None


def test_a_formula_is_not_used_for_another_number_of_parameters() -> None:
    """Torn lines show as another number: they fall to a later formula, or to none."""
    formulas = parse_formulas(NAMD, "namd.toml")
    assert formulas.for_event("calc_pair_x", 13) is formulas.entries[2]
    named, of_others = formulas.unused([("calc_pair_x", 13)])
    assert named == (
        "namd.toml:2: the formula for 'calc_pair_*' is not used: "
        "'calc_pair_x' has 13 parameters, the formula names 14"
    )
    assert of_others == (
        "namd.toml:8: the formula for 'angles', 'dihedrals' is not used: no event has such a name"
    )
    (of_few,) = formulas.unused([("calc_pair_x", 14), ("angles", 1)])
    assert of_few.endswith(": 'angles' has 1 parameter, the formula uses p2")
    assert formulas.unused([("calc_pair_x", 14), ("angles", 2), ("other", 1)]) == ()
    assert formulas.for_event("angles", 20) is formulas.entries[1]  # nothing is named: p2 is enough


def test_a_formula_evaluates_on_real_lines(
    reference_timings: ReferenceTimings,
) -> None:
    formulas = parse_formulas(NAMD, "namd.toml")
    classes = {}
    for samples in reference_timings("namd"):
        formula = formulas.for_event(samples.event, samples.params.shape[1])
        assert formula is not None
        for term in formula.terms:
            assert np.isfinite(term.evaluate(samples.params)).all()
        if formula.category is not None:
            classes[samples.event] = set(formula.category.evaluate(samples.params))
    assert classes == {"calc_pair_energy_fullelect": {1, 2, 3}}


def test_formulas_cross_process_borders() -> None:
    formulas = parse_formulas(NAMD, "namd.toml")
    assert pickle.loads(pickle.dumps(formulas)) == formulas  # noqa: S301 - just made


@pytest.mark.parametrize(
    ("pattern", "event", "expected"),
    [
        ("a", "a", True),
        ("a", "ab", False),
        ("*", "", True),
        ("*", "a b", True),
        ("a*", "a", True),
        ("a*", "ba", False),
        ("*b", "ab", True),
        ("*b", "abc", False),
        ("a*b", "ab", True),
        ("a*b", "aXXb", True),
        ("a*a", "a", False),
        ("ab*ba", "aba", False),
        ("*a*b*", "xaybz", True),
        ("*a*b*", "xbyaz", False),
        ("a**b", "ab", True),
        ("Cell<3>::[run]", "Cell<3>::[run]", True),
        ("a?", "ab", False),
        ("[ab]", "a", False),
        ("*x*x", "xx", True),
        ("*x*x", "x", False),
        (r"operator\*", "operator*", True),
        (r"operator\*", "operator+", False),  # C++ names could not be told from patterns
        (r"f<int\*>(*)", "f<int*>(long)", True),
        (r"f<int\*>(*)", "f<int>(long)", False),
        ("a[*]", "a[k]", True),
        ("a[*b]", "a[xb]", True),
    ],
)
def test_a_star_stands_for_any_characters_and_a_star_in_brackets_for_itself(
    pattern: str, event: str, expected: Any
) -> None:
    assert matches(pattern, event) is expected


LARGE_FILES = {
    "dotted keys": "".join(f"[x{i}]\na" + ".a" * 490 + "=1\n" for i in range(199)),
    "dotted headers": "".join("[[" + "a." * 490 + "a]]\n" for _ in range(199)),
    "arrays": "a = [" + ("[]," * 330 + "\n") * 199 + "]",
    "a long string": "a = '''" + ("x" * 999 + "\n") * 199 + "'''",
    "many formulas": "".join("[[formula]]\nevent='a'\nterms=['1']\nx=1\n" for _ in range(5000)),
}


@pytest.mark.parametrize("kind", by_tier(LARGE_FILES, [], ["arrays", "many formulas"]))
def test_a_file_takes_little_time_whatever_it_holds(kind: str) -> None:
    started = time.process_time()
    refused(LARGE_FILES[kind])
    assert time.process_time() - started < 20


def test_matching_takes_linear_time() -> None:
    started = time.process_time()
    assert not matches("*a" * 2000 + "*b", "a" * 100_000)
    assert time.process_time() - started < 5


@pytest.mark.parametrize("kind", kinds())
def test_every_kind_of_kernel_can_be_named(kind: Any) -> None:
    sizes = len(kinds()[kind].of)
    expected = [str(term) for term in kinds()[kind].expressions()]
    assert terms(f'kind = "{kind}"') == expected
    of = listed(f"p{number}" for number in range(1, sizes + 1))
    assert terms(f'kind = "{kind}"\nof = {of}') == expected
    rows = np.random.default_rng(5).uniform(1, 100, (200, max(sizes, 1)))
    columns = np.column_stack([term.evaluate(rows) for term in kinds()[kind].expressions()])
    assert np.linalg.matrix_rank(columns / columns.max(axis=0)) == len(expected)
    zeros = np.zeros((1, max(sizes, 1)))
    assert all(np.isfinite(term.evaluate(zeros)).all() for term in kinds()[kind].expressions())


def test_a_kind_is_of_any_expressions() -> None:
    assert terms('params = ["r", "m", "k"]\nkind = "n-log-n"\nof = ["m*k"]') == (
        ["1", "p2*p3", "p2*p3*log1p(p2*p3)"]
    )
    assert terms('kind = "stencil-3d"\nof = ["p1 + 2"]') == ["1", "(p1 + 2)^(2/3)", "p1 + 2"]


def test_a_kind_may_have_terms_of_its_own_beside_it() -> None:
    assert terms('kind = "linear"\nterms = ["p2*p3"]') == ["1", "p1", "p2*p3"]


def test_a_repeat_count_multiplies_every_term_and_leaves_a_constant() -> None:
    assert terms('kind = "n-log-n"\nof = ["p2"]\ntimes = "p1"') == (
        ["1", "p1", "p1*p2", "p1*p2*log1p(p2)"]
    )
    assert terms('terms = ["p2", "p3"]\ntimes = "p1 + 1"') == ["1", "(p1 + 1)*p2", "(p1 + 1)*p3"]


def test_what_is_composed_is_text_that_parses_again() -> None:
    """A model file holds the text; what grows beyond the limits is refused at its place."""
    deep = "(" * 95 + "p1" + "-1)" * 95
    formulas = parse_formulas(entry(f'kind = "fft-3d"\nof = ["{deep}", "p2", "p3"]'), "my.toml")
    for term in formulas.entries[0].terms:
        assert parse(str(term)) == term
    right = "p1-(" * 50 + "p1" + ")" * 50
    error = refused(entry(f'kind = "fft-3d"\nof = ["{right}", "p2", "p3"]'))
    assert "nested more than" in str(error)
    assert (error.line, error.column) == (3, 9)


@pytest.mark.parametrize(
    ("body", "line", "column", "problem"),
    [
        ('terms = ["1", "n*q"]\nparams = ["n"]', 3, 18, "unknown name 'q'; known: p1 to p1, n"),
        ('terms = ["1",\n  "p1",\n  "foo(p1)"]', 5, 4, r"unknown function 'foo'"),
        ('terms = ["""\n1 +\n  q"""]', 3, None, "unknown name 'q'"),
        ('terms = ["""1 +\n  q"""]', 3, None, "unknown name 'q'"),
        ('terms = ["\\u0070\\u0031 + q"]', 3, None, "unknown name 'q'"),
        ('terms = ["1", """\\\n   p1 \\\n  + q"""]', 3, None, "unknown name 'q'"),
        ("terms = ['p1 +']", 3, 15, "missing before the end"),
        ('terms = ["1"]\ncategory = "p1 <"', 4, 17, "missing before the end"),
        ('terms = ["p2"]\nparams = ["n"]', 3, 11, "unknown name 'p2'; known: p1 to p1"),
        (
            'terms = ["1"]\nnames = ["n"]',
            4,
            None,
            "unknown key 'names'; known: event, params, terms",
        ),
        ("terms.x = 1", 3, None, "terms: must be a list"),
        ('terms = "1"', 3, 10, "terms: must be a list, not a text"),
        ("terms = [1]", 3, None, "terms: value 1 must be a text, not a whole number"),
        ('terms = ["1", true]', 3, None, "must be a text, not true or false"),
        ("terms = [1979-05-27 07:32:00]", 3, None, "must be a text, not a date"),
        ("kind = 2020-01-01", 3, None, "must be a text, not a date"),
        ("kind = 07:32:00", 3, None, "must be a text, not a time"),
        ('terms = ["1", ["p1"]]', 3, None, "must be a text, not a list"),
        ("terms = []", 3, None, "terms: must be a list of length >= 1"),
        ('params = ["n"]', 1, None, "terms or kind is missing"),
        ('terms = ["p1*p2", "p1 * p2"]', 3, 20, "the term 'p1 \\* p2' is duplicated"),
        (f"terms = {listed(range(101))}", 3, 601, "at most 100 terms"),
        ('terms = ["1"]\nparams = ["n", "n"]', 4, 17, "the name 'n' is duplicated"),
        ('terms = ["1"]\nparams = ["2n"]', 4, 12, "'2n' is not a valid name"),
        ('terms = ["1"]\nparams = ["max"]', 4, 12, "'max' is a function"),
        ('terms = ["1"]\nparams = ["p2"]', 4, 12, "'p2' cannot be the name of p1"),
        (f"terms = ['1']\nparams = {listed(['_'] * 21)}", 4, 112, "at most 20 parameters"),
        ('kind = "n-log"', 3, 9, "unknown kind 'n-log'; known: constant, linear, n-log-n"),
        ("kind = 3", 3, None, "kind: must be a text, not a whole number"),
        ('kind = "linear"\nof = ["p1", "p2"]', 4, None, r"linear needs 1 size \(n\), not 2"),
        ('kind = "linear"\nof = ["p1 p2"]', 4, 11, "an operator is missing"),
        ('terms = ["1"]\nof = ["p1"]', 4, None, "of needs a kind"),
        ('terms = ["1"]\ntimes = ["p1"]', 4, None, "times: must be a text, not a list"),
    ],
)
def test_a_mistake_is_named_with_file_line_and_column(
    body: str, line: int, column: int | None, problem: str
) -> None:
    for newline in ("\n", "\r\n"):
        with pytest.raises(FormulaError, match=problem) as caught:
            parse_formulas(entry(body).replace("\n", newline), "my.toml")
        assert (caught.value.line, caught.value.column) == (line, column)
        place = f"my.toml:{line}" + (f":{column}" if column else "")
        assert str(caught.value).startswith(f"{place}: ")


@pytest.mark.parametrize(
    ("text", "start", "problem"),
    [
        ("", "my.toml:", r"has no \[\[formula\]\]"),
        ("formula = []", "my.toml:", r"has no \[\[formula\]\]"),
        (
            "[formula]\nevent = 'a'",
            "my.toml:1:",
            r"write \[\[formula\]\], in double brackets",
        ),
        ("formula = 3", "my.toml:1:", "formula: must be a list"),
        ("version = 1\n" + entry("terms = ['1']"), "my.toml:1:", "unknown key 'version'"),
        ("\n[[formulas]]\nevent = 'a'", "my.toml:2:", "unknown key 'formulas'"),
        ("[[formula]]\nterms = ['1']", "my.toml:1:", "formula: the key 'event' is missing"),
        (
            "[[formula]]\nterms = ['1']\nevent = 3",
            "my.toml:3:",
            "event: must be a text or a list, not a whole number",
        ),
        (
            "[[formula]]\nterms = ['1']\nevent = ''",
            "my.toml:3:10:",
            "event: must be a text of length >= 1",
        ),
        (
            "[[formula]]\nevent = ['a', '']",
            "my.toml:2:16:",
            "event: value 2 must be a text of length >= 1",
        ),
        ("[[formula]]\nevent = []", "my.toml:2:", "event is empty"),
        ("[[formula]]\n[formula.terms]\na = 1", "my.toml:2:", "terms: must be a list"),
        (entry("[formula.more]\na = 1"), "my.toml:3:", "unknown key 'more'"),
        ("[[formula]]\nevent = 'a", "my.toml:", "is not TOML: "),
        ("[[formula]]\nevent = 'a'\nevent = 'b'", "my.toml:", "is not TOML: Cannot overwrite"),
        ("a = \n", "my.toml:", r"is not TOML: Invalid value \(at line 1, column 5\)"),
        ("a = [", "my.toml:", "is not TOML: "),
        ("a = '\x1b[31m'", "my.toml:", r"is not TOML: .*'\\x1b'"),
        ("a = [\n" + "[\n" * 3000, "my.toml:", "is nested too deeply"),
        ("a = " + "9" * 900, "my.toml:1:", "unknown key 'a'"),
        ("b = 1\n" + "a" * 1001 + " = 1", "my.toml:2:", "more than 1000 characters; split it"),
        ("#\n" * 100_001, "my.toml:", "has more than 200000 characters"),
    ],
)
def test_a_file_that_is_none_says_so(text: str, start: str, problem: str) -> None:
    with pytest.raises(FormulaError, match=problem) as caught:
        parse_formulas(text, "my.toml")
    assert str(caught.value).startswith(start.removesuffix(":"))


@given(
    st.lists(
        st.sampled_from(
            [
                "[[formula]]\n",
                "event",
                "terms",
                " = ",
                '"',
                "'",
                '"""',
                "[",
                "]",
                "\\",
                "p1",
                "*",
                "1",
                ",",
                "\n",
                "#",
                "{",
                "}",
                "u0041",
                ".",
                "kind",
                "linear",
                "'''",
                "\r\n",
                'event = "a"\n',
                'terms = ["1"]\n',
            ]
        ),
        max_size=30,
    )
)
def test_any_text_is_formulas_or_a_formula_error(parts: Any) -> None:
    try:
        formulas = parse_formulas("".join(parts), "my.toml")
    except FormulaError:
        return
    assert isinstance(formulas, Formulas)


def test_the_docs_show_the_library_as_it_is() -> None:
    text = DOCS.read_text()
    for name, kind in kinds().items():
        row = f"| `{name}` | {', '.join(kind.of) or '–'} | "
        row += ", ".join(f"`{term}`" for term in kind.terms) + f" | {kind.use} |"
        assert row in text, row


def test_the_example_of_the_docs_is_a_formulas_file() -> None:
    examples = [part.split("```")[0] for part in DOCS.read_text().split("```toml\n")[1:]]
    examples = [example for example in examples if "[[formula]]" in example]
    assert examples
    for example in examples:
        assert parse_formulas(example, "docs").entries
