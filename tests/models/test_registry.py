"""Models are found by name, built-in ones and outsiders' alike, and made from their options."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from commands import rewritelog as rewritelog_command
from kinds import Install, MakeTimings

import rewritelog
from rewritelog.errors import ModelError, UsageError
from rewritelog.models.base import Model
from rewritelog.models.fitted import Fitted
from rewritelog.models.least_squares import LeastSquares, LeastSquaresOptions
from rewritelog.models.registry import (
    describe_options,
    known_models,
    load_model,
    make_options,
    model_class,
)
from rewritelog.models.sampled import SampledOptions
from rewritelog.options import convert

PLUGIN = Path(__file__).parent / "outside_plugin"
DOCS = Path(__file__).parents[2] / "docs" / "writing-a-model.md"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return an installer of a distribution with models: metadata and modules on sys.path."""
    monkeypatch.syspath_prepend(tmp_path)
    modules: list[str] = []

    def install_distribution(name: str, entries: dict[str, str], *sources: Path | str) -> None:
        folder = tmp_path / f"{name.replace('-', '_')}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"{model} = {target}\n" for model, target in entries.items()]
        (folder / "entry_points.txt").write_text("".join(["[rewritelog.models]\n", *lines]))
        for source in sources:
            shutil.copy(source, tmp_path)
            modules.append(Path(source).stem)
        importlib.invalidate_caches()

    yield install_distribution
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture
def power_law(install: Install) -> None:
    """Install the plug-in of the docs as its pyproject.toml declares it."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())
    modules = [PLUGIN / f"{name}.py" for name in project["tool"]["setuptools"]["py-modules"]]
    entries = project["project"]["entry-points"]["rewritelog.models"]
    install(project["project"]["name"], entries, *modules)


def test_the_built_in_models_are_known_by_their_entry_points() -> None:
    assert {"constant", "least-squares", "sampled"} <= set(known_models())
    assert model_class("least-squares") is LeastSquares
    assert load_model("sampled", {}).options == SampledOptions()


def test_an_unknown_model_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"'leastsquares'; known models: auto, coefficients, "):
        load_model("leastsquares", {})


def test_listing_models_imports_nothing_heavy() -> None:
    code = (
        "import sys; from rewritelog.models import registry; registry.known_models();"
        "print([m for m in ('scipy', 'rewritelog.models.least_squares') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["pyproject.toml", "power_law_model.py"])
def test_the_docs_show_the_plugin_as_it_is_tested(name: str) -> None:
    assert (PLUGIN / name).read_text() in DOCS.read_text()


def test_an_outside_model_is_used_by_name(power_law: None, event: MakeTimings) -> None:
    assert "power-law" in known_models()
    p1, p2 = np.random.default_rng(1).uniform(1, 50, (2, 30))
    samples = event(p1, p2, seconds=1e-6 * (p1 + 0.5) ** 2 * (p2 + 0.5) ** -1)
    model = load_model("power-law", {"offset": "0.5"})
    fitted = Fitted.of(model, "power-law", [samples])
    judged = fitted.prediction("kernel", samples.params)
    assert judged.seconds == pytest.approx(samples.seconds, rel=1e-9)
    assert fitted.raw.summary() == ("kernel: seconds = 1e-06 (p1 + 0.5)^2 (p2 + 0.5)^-1",)
    assert fitted.raw.describe()["events"][0]["b"] == pytest.approx([2, -1])
    unknown = fitted.prediction("other", samples.params)
    assert np.isnan(unknown.seconds).all()


def test_an_outside_model_has_its_options_checked(power_law: None) -> None:
    with pytest.raises(UsageError, match="no option 'ofset'; its options: offset, least_samples"):
        load_model("power-law", {"ofset": "1"})
    with pytest.raises(UsageError, match="option 'least_samples': 'few' is not of type int"):
        load_model("power-law", {"least-samples": "few"})
    with pytest.raises(UsageError, match="model 'power-law': offset must not be negative"):
        load_model("power-law", {"offset": "-1"})


def test_options_are_listed_as_they_are_given(power_law: None) -> None:
    """Those of a package have no flags."""
    assert "  --model-option offset=NUMBER\n" in rewritelog_command("models", "power-law").stdout
    assert "  --loss huber|squares\n" in rewritelog_command("models", "auto").stdout


def test_a_name_declared_twice_names_both_distributions(power_law: None, install: Install) -> None:
    install("rival", {"power-law": "power_law_model:PowerLaw"})
    with pytest.raises(ModelError) as caught:
        load_model("power-law", {})
    assert "power-law-model 1.0" in str(caught.value)
    assert "rival 1.0" in str(caught.value)
    assert load_model("constant", {})


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("no_such_module_anywhere:Thing", "ModuleNotFoundError: .*no_such_module_anywhere"),
        ("rewritelog.models.base:Nothing", "AttributeError: .*Nothing"),
        ("rewritelog.models.base:NoOptions", "is not a subclass of Model"),
        ("rewritelog.arrays:mix", "is not a subclass of Model"),
        ("rewritelog.models.base:Model", "Options is not a dataclass"),
    ],
)
def test_a_broken_plugin_is_named_with_the_cause(
    install: Install, target: str, problem: str
) -> None:
    install("broken", {"bad": target})
    assert "bad" in known_models()
    with pytest.raises(ModelError, match=problem) as caught:
        load_model("bad", {})
    assert "model 'bad'" in str(caught.value)


def test_a_model_that_cannot_be_made_is_named(install: Install) -> None:
    """The class is abstract: it has options, but no fit."""
    install("half", {"half": f"{__name__}:HalfModel"})
    with pytest.raises(ModelError, match="model 'half' cannot be made: TypeError"):
        load_model("half", {})


class HalfModel(Model[LeastSquaresOptions]):
    Options = LeastSquaresOptions


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("true", bool, True),
        ("No", bool, False),
        (" 1 ", bool, True),
        (False, bool, False),
        ("7", int, 7),
        (7, int, 7),
        (7.0, int, 7),
        ("-3", int, -3),
        ("0.5", float, 0.5),
        (2, float, 2.0),
        ("1e3", float, 1000.0),
        ("inf", float, float("inf")),
        ("x", str, "x"),
        ("linear", Literal["quadratic", "linear"], "linear"),
    ],
)
def test_option_values_are_converted_by_type(value: Any, kind: Any, expected: Any) -> None:
    converted = convert(value, kind)
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("maybe", bool),
        (1, bool),
        (None, bool),
        ("1.5", int),
        ("1_000", int),
        (1.5, int),
        (True, int),
        (float("inf"), int),
        (float("nan"), int),
        ("", float),
        (None, float),
        ("nan", float),
        (True, float),
        (10**400, float),
        (3, str),
        (None, str),
        ("cubic", Literal["quadratic", "linear"]),
        (["linear"], Literal["quadratic", "linear"]),
        ("none", int),
    ],
)
def test_wrong_option_values_are_refused(value: Any, kind: Any) -> None:
    with pytest.raises(ValueError, match="is n"):
        convert(value, kind)


def test_options_are_made_from_text() -> None:
    options = make_options(
        "least-squares", LeastSquares, {"basis": "linear", "exact-match": "always"}
    )
    assert options == LeastSquaresOptions(basis="linear", exact_match="always")
    with pytest.raises(UsageError, match="given more than once"):
        make_options("m", LeastSquares, {"exact-match": "auto", "exact_match": "auto"})
    with pytest.raises(UsageError, match="'cubic' is not one of quadratic, linear"):
        make_options("m", LeastSquares, {"basis": "cubic"})
    with pytest.raises(UsageError, match="no option 'x'; its options: none"):
        load_model("constant", {"x": 1})


def test_options_are_described_for_flags() -> None:
    described = {info.field: info for info in describe_options("sampled", model_class("sampled"))}
    assert list(described) == ["weights", "loss", "exact_match", "correction", "fraction", "seed"]
    assert described["fraction"].kind is float
    assert described["exact_match"].default == "auto"
    assert all(info.help for info in described.values())


@dataclass(frozen=True)
class Bounded:
    most: int | None = 9


class BoundedModel(LeastSquares):
    Options = Bounded  # type: ignore[assignment]


def test_an_option_that_may_be_none_is_given_as_a_value_or_as_none() -> None:
    for written, expected in (({}, 9), ({"most": "5"}, 5), ({"most": "none"}, None)):
        assert make_options("bounded", BoundedModel, written) == Bounded(expected)
    assert make_options("bounded", BoundedModel, {"most": None}) == Bounded(None)
    with pytest.raises(UsageError, match="'few' is not of type int"):
        make_options("bounded", BoundedModel, {"most": "few"})
    (described,) = describe_options("bounded", BoundedModel)
    assert described.metavar == "N"


def test_reports_print_options_as_the_command_line_takes_them(event: MakeTimings) -> None:
    """They were None and True, as in Python."""

    @dataclass(frozen=True)
    class Switched(LeastSquaresOptions):
        exact: bool = True
        most: int | None = None

    class SwitchedModel(LeastSquares):
        Options = Switched

    fitted = Fitted.of(SwitchedModel(Switched()), "switched", (event(seconds=[1.0, 2.0]),))
    assert fitted.options_text == (
        "weights uniform, loss squares, exact-match auto, basis quadratic, exact true, most none"
    )
    assert make_options("m", SwitchedModel, {"exact": "true", "most": "none"}) == Switched()


@dataclass(frozen=True)
class NoDefault:
    size: int


@dataclass(frozen=True)
class OddType:
    sizes: list[int] | None = None


@dataclass(frozen=True)
class SeveralTypes:
    size: int | str | None = None


@dataclass(frozen=True)
class UnknownType:
    size: "NoSuchType" = 3  # type: ignore[name-defined]  # noqa: F821, UP037


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (NoDefault, "no default"),
        (OddType, "unusable type"),
        (SeveralTypes, "unusable type"),
        (UnknownType, "unusable type, 'NoSuchType'"),
        (3, "dataclass"),
    ],
)
def test_options_that_break_the_contract_are_refused(options: Any, problem: str) -> None:
    class Odd(HalfModel):
        Options = options

    with pytest.raises(ModelError, match=problem):
        describe_options("odd", Odd)  # type: ignore[type-abstract] # it is to be refused


def test_a_fit_whose_events_are_unknown_has_a_short_repr(
    power_law: None, event: MakeTimings
) -> None:
    samples = event([1.0, 2.0, 3.0, 4.0], seconds=[1.0, 2.0, 3.0, 4.0])
    fitted = rewritelog.fit({"kernel": (samples.params, samples.seconds)}, "power-law")
    assert repr(fitted) == "<FittedModel power-law: fitted to 4 samples>"
    assert fitted.predict("kernel", [[2.0]]) == pytest.approx([2.0], rel=0.1)
