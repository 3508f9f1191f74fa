"""Names of parameters: the file that gives them, and the reports that use them."""

import re
from pathlib import Path

import commands
import pytest
from logbuilder import bracket, seb, write_logs, write_params, write_timings

from rewritelog.errors import ModelError
from rewritelog.models.base import ModelText
from rewritelog.models.formulas import parse_param_names


@pytest.fixture
def timings(tmp_path: Path) -> Path:
    lines = [("k", 1e-6 * (n * n + 3 * m), float(n), float(m)) for n in range(1, 9) for m in (1, 5)]
    return write_timings(tmp_path / "timings.txt", *lines)


def test_reports_and_model_files_use_the_names(timings: Path, tmp_path: Path) -> None:
    names, model = tmp_path / "names.toml", tmp_path / "m.json"
    names.write_text('"k*" = ["atoms", "_"]\nother = ["x"]\n')
    words = ("fit", timings, "--model", "least-squares", "--param-names", names, "-o", model)
    done = commands.rewritelog(*words, "-v")
    assert "k(atoms, p2)" in done.stdout
    assert "atoms^2" in done.stdout
    assert "p1" not in done.stdout
    assert "atoms 1 to 8, p2 1 to 5" in done.stdout
    assert "parameter names for 'other' are not used" in done.stderr
    plain = commands.rewritelog(
        "fit", timings, "--model", "least-squares", "-v", "-o", tmp_path / "n"
    )
    assert "p1^2" in plain.stdout
    shown = plain.stdout.replace(str(timings), "timings.txt")
    assert all(len(line) <= 80 for line in shown.splitlines() if "/" not in line)
    asked = [
        commands.rewritelog("predict", file, timings).stdout for file in (model, tmp_path / "n")
    ]
    assert asked[0] == asked[1]


def test_formulas_give_names_too(timings: Path, tmp_path: Path) -> None:
    formulas = tmp_path / "f.toml"
    formulas.write_text(
        '[[formula]]\nevent = "k"\nparams = ["n", "m"]\nterms = ["n^2", "m"]\n'
        '[[formula]]\nevent = ["none", "neither"]\nterms = ["1"]\n'
    )
    done = commands.rewritelog("fit", timings, "--formulas", formulas, "-v")
    assert "n^2" in done.stdout
    assert "p1" not in done.stdout
    assert f"{formulas}:5: the formula for 'none', 'neither' is not used" in done.stderr
    words = ("compare", timings, "--models", "auto", "--folds", "2", "--formulas", formulas)
    assert "is not used" in commands.rewritelog(*words).stderr


def test_names_that_a_formula_or_a_model_file_overrules_are_told(
    timings: Path, tmp_path: Path
) -> None:
    """They had no effect, and nobody said so."""
    formulas, names, model = tmp_path / "f.toml", tmp_path / "n.toml", tmp_path / "m.json"
    formulas.write_text('[[formula]]\nevent = "k"\nparams = ["n", "m"]\nterms = ["n^2", "m"]\n')
    fit = ("fit", timings, "--formulas", formulas, "--param-names", names, "-o", model)
    logs = write_logs(tmp_path / "logs", [[seb(0, 1, events=bracket(0.2, 0.8))]])
    write_params(logs, 0, (0, "k", 4, 3))
    sample = ("sample", logs, "--formulas", formulas, "--param-names", names)
    told_of = {'k = ["a", "b"]': "'k'", '"*" = ["a", "b"]': "'*'", 'k = ["n", "m"]': None}
    for text, pattern in told_of.items():
        names.write_text(text)
        for words in (fit, sample):
            told = re.search("parameter names for (.*) are not", commands.rewritelog(*words).stderr)
            assert (told and told[1]) == pattern


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('k = ["n", "n"]', "names:1:12: the name 'n' is duplicated"),
        ('k = ["log"]', "names:1:7: 'log' is a function"),
        ('k = "n"', "names:1:6: k: must be a list, not a text"),
        ('k = ["a", 1]', "names:1: k: value 2 must be a text, not a whole number"),
        ("k = []", "names:1: k: must be a list of length >= 1"),
        ('k = ["p2"]', "names:1:7: 'p2' cannot be the name of p1"),
        ("", "names: names no event"),
    ],
)
def test_faults_have_a_place(text: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse_param_names(ModelText("names", text))
    assert str(caught.value).startswith(message), caught.value
