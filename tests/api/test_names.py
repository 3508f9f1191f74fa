"""The public names: completion, `help`, reprs, errors of wrong use, and the page of docs."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import io
import math
import pydoc
import re
import runpy
import shutil
import subprocess
import sys
import typing
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chosen import by_tier
from oracle import SAMPLE_LOGS
from users import heeding_modes

import rewritelog
import tracebigsim
from rewritelog import MissingFileError, RewriteLogError, UsageError, UsageTypeError
from rewritelog.viewing.pictures import Picture

public: Any = rewritelog
"""The package as code without types sees it."""

ROOT = Path(__file__).parents[2]
CELLS = SAMPLE_LOGS / "cells"
ARRAY = np.array(["squares", "huber"])
TRACES = SAMPLE_LOGS / "transformer" / "profile"
MODEL = rewritelog.fit({"k": ([[1], [2], [4]], [1, 2, 4])}, "least-squares")
untyped: Any = MODEL
PUBLIC = [
    getattr(package, name) for package in (rewritelog, tracebigsim) for name in package.__all__
]
MODULES = sorted({each.__module__ for each in PUBLIC} | {"rewritelog", Picture.__module__})
"""Those with public names, and with what these return."""

SLOW = [
    "rewritelog.api.fitted", "rewritelog.api.pages", "rewritelog.commands.fits",
    "rewritelog.commands.logs",
]  # fmt: skip
"""Those whose examples take a second or more."""


def test_completion_shows_the_public_names_alone() -> None:
    shown = {name for name in dir(rewritelog) if not name.startswith("__")}
    assert shown == set(rewritelog.__all__)
    assert {"fit", "read_timings", "load_model", "verify", "compare", "sample", "replay"} <= shown
    for name in shown:
        assert getattr(rewritelog, name).__doc__, name


@pytest.mark.parametrize("name", rewritelog.__all__)
def test_type_hints_can_be_read(name: str) -> None:
    """Those of all functions of commands named types that their module does not have."""
    named = getattr(rewritelog, name)
    typing.get_type_hints(named)
    for method, function in inspect.getmembers(named, inspect.isfunction):
        if not method.startswith("_") and (name, method) != ("LogSet", "timeline"):
            typing.get_type_hints(function)


def test_no_submodule_has_the_name_of_a_public_function() -> None:
    folder = Path(rewritelog.__file__).parent
    modules = {path.stem for path in folder.iterdir()}
    assert not modules & set(rewritelog.__all__)


def test_help_explains_the_names_with_an_example() -> None:
    page = pydoc.plain(pydoc.render_doc(rewritelog))
    for name in rewritelog.__all__:
        assert name in page
    assert '>>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")' in page


def test_the_package_alone_imports_nothing_heavy() -> None:
    program = "import sys, rewritelog; dir(rewritelog); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("name", by_tier(MODULES, {*MODULES}.difference(SLOW), SLOW))
def test_examples_of_the_docstrings(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for needed in ("pandas", "matplotlib", "bokeh"):
        pytest.importorskip(needed)
    output = io.StringIO()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=flags)
    names = {"rewritelog": rewritelog, "tracebigsim": tracebigsim}
    for test in doctest.DocTestFinder().find(importlib.import_module(name), extraglobs=names):
        folder = tmp_path / test.name
        folder.mkdir()
        (folder / "sample_logs").symlink_to(SAMPLE_LOGS)
        monkeypatch.chdir(folder)
        runner.run(test, out=output.write)
    assert runner.failures == 0, output.getvalue()


@pytest.mark.parametrize("named", PUBLIC, ids=lambda named: named.__name__)
def test_a_docstring_has_an_example_that_runs_and_says_what_is_raised(named: Any) -> None:
    """Most commands did not say what they raise, and many examples were only for reading."""
    if inspect.isclass(named) and issubclass(named, Exception):
        return
    if named is not tracebigsim.end:  # whose example is that of `start`
        assert ">>> " in named.__doc__
    assert ("+SKIP" in named.__doc__) == (named is rewritelog.explore)  # which does not end
    if inspect.isfunction(named) and inspect.signature(named).parameters:
        assert re.search(r"\braises? ", str(named.__doc__).replace("\n", " "), re.IGNORECASE)


class _Inputs:
    """Inputs of each kind that cannot be used, and those that can."""

    def __init__(self, folder: Path) -> None:
        self.damaged, self.nothing = folder / "damaged", folder / "nothing.txt"
        self.no_model, self.out = folder / "model.json", folder / "out"
        self.taken = folder / "taken"
        self.taken.mkdir()
        (self.taken / "file").touch()
        shutil.copytree(CELLS, self.damaged)
        (self.damaged / "bgTrace").write_bytes(b"x" * 60)
        self.nothing.touch()
        self.no_model.write_text("{")


def wrong_of(parameter: str, inputs: _Inputs) -> tuple[object, ...]:
    """Return values of a parameter of commands that cannot be used, in different ways."""
    known: dict[str, tuple[object, ...]] = {
        **dict.fromkeys(("logs", "a", "b", "traces"), ("nowhere", inputs.damaged, 3)),
        **dict.fromkeys(("timings", "files"), ("nowhere", inputs.taken, 3)),
        **dict.fromkeys(("formulas", "event_params", "param_names"), ("nowhere", inputs.no_model)),
        **dict.fromkeys(("fitted", "model"), ("nowhere", inputs.no_model, 3)),
        **dict.fromkeys(("plot", "html", "timings_out"), (inputs.taken, "no/f.svg")),
        "output": (inputs.nothing / "f.svg",),
        "out": (inputs.taken,),
        "models": ("nowhere", 3),
        "machine": ("nowhere", 3),
        "at": ({"P": -1}, 3),
        "jobs": (-1,),
        "rule": ("nothing",),
    }
    return known.get(parameter, ())


COMMANDS = [each for each in PUBLIC if each.__module__.startswith("rewritelog.commands.")]


@pytest.mark.parametrize("call", COMMANDS, ids=lambda call: call.__name__)
def test_a_command_raises_what_its_docstring_says(call: Callable[..., Any], tmp_path: Path) -> None:
    if call is rewritelog.explore:
        pytest.importorskip("bokeh")
    inputs = _Inputs(tmp_path)
    usable: dict[str, object] = {
        **dict.fromkeys(("logs", "a", "b"), CELLS),
        **dict.fromkeys(("timings", "files"), CELLS / "timings.txt"),
        "traces": SAMPLE_LOGS / "transformer/profile",
        "model": MODEL, "vary": {"latency": [1]}, "at": {"P": 1}, "pe": 0, "to": "csv",
        "out": inputs.out, "output": tmp_path / "o",
    }  # fmt: skip
    parameters = inspect.signature(call).parameters
    needed = {name for name, each in parameters.items() if each.default is each.empty}
    raised = set()
    for parameter in parameters:
        for wrong in wrong_of(parameter, inputs):
            options = {name: usable[name] for name in needed} | {parameter: wrong}
            if parameter == "formulas" and call is not rewritelog.sample:
                options |= {"timings": CELLS / "timings.txt"}
            try:
                result = call(**options)
                if call is rewritelog.predict:
                    list(result)
            except RewriteLogError as error:
                raised |= {each.__name__ for each in type(error).__mro__}
    errors = {each.__name__ for each in PUBLIC if inspect.isclass(each)} - {"RewriteLogError"}
    errors -= {"UsageTypeError"}  # which is a UsageError
    documented = call.__doc__ or ""
    assert {error for error in errors if f"`{error}`" in documented} == raised & errors


@pytest.mark.slow
def test_the_pages_are_what_the_declarations_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python docs/generate_api.py` writes it anew."""
    if importlib.util.find_spec("griffe2md") is None:
        pytest.skip("griffe2md is not installed")
    script = runpy.run_path(str(ROOT / "docs" / "generate_api.py"))
    monkeypatch.setenv("COLUMNS", "80")
    for name, page in script["PAGES"].items():
        assert (ROOT / "docs" / name).read_text() == page()
    described = re.findall(r"^### `(\w+)`", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    assert sorted(described) == sorted(rewritelog.__all__)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: rewritelog.open_logs("nowhere"), FileNotFoundError, "nowhere: does not exist"),
        (lambda: public.open_logs(7), TypeError, "the logs must be a path, not int"),
        (lambda: rewritelog.read_timings("no.txt"), FileNotFoundError, "no.txt"),
        (lambda: rewritelog.read_timings([]), ValueError, "at least one file"),
        (lambda: public.read_timings(3), TypeError, "a path or several"),
        (lambda: rewritelog.load_model("no.json"), FileNotFoundError, "no.json"),
        (lambda: rewritelog.fit({"k": ([[1]], [1])}, "no-model"), ValueError, "unknown model"),
        (
            lambda: rewritelog.fit({"k": ([[1]], [1])}, model_options={"loss": "x"}),
            ValueError,
            "option 'loss'",
        ),
        (lambda: rewritelog.fit({"k": ([["a"]], [1])}), TypeError, "numbers"),
        (lambda: rewritelog.fit({"k": ([[1]], [1, 2])}), ValueError, "must have 1 values"),
        (lambda: rewritelog.rewrite(CELLS, dilation=-1), ValueError, "dilation"),
        (lambda: rewritelog.rewrite(CELLS, params="nowhere"), FileNotFoundError, "nowhere"),
        (lambda: public.sample(CELLS, fractoin=0.5), TypeError, "argument 'fractoin'"),
        (lambda: rewritelog.sample(CELLS, fraction=2), ValueError, "fraction"),
        (lambda: rewritelog.verify("no.json", "t"), FileNotFoundError, "no.json"),
        (lambda: rewritelog.compare(CELLS / "timings.txt", []), ValueError, "at least one model"),
        (lambda: rewritelog.check("nowhere"), FileNotFoundError, "nowhere"),
        (lambda: rewritelog.read_params(CELLS, [99]), ValueError, r"no param\.99"),
        (lambda: rewritelog.open_logs(CELLS).sebs("0-99"), ValueError, "the PEs are 0 to 15"),
        (lambda: public.open_logs(CELLS).sebs([None]), TypeError, "such as 0-31"),
        (lambda: public.convert(CELLS, "x", byte_order="middle"), ValueError, "byte_order"),
        (lambda: rewritelog.synth("x", pes=0), ValueError, "pes"),
        (lambda: rewritelog.sweep(CELLS, {"speed": [1]}), ValueError, "the names are dilation"),
        (lambda: rewritelog.lost_cycles(CELLS, variables={"P": 3}), ValueError, "P is the number"),
        (lambda: public.export(CELLS, "x", "gaol"), ValueError, "gaol"),
        (lambda: public.to_frame([1]), TypeError, "not list"),
        (
            lambda: public.check(CELLS, jobs="many"),
            ValueError,
            "jobs must be an integer from 0 to 10,000, not 'many'",
        ),
        (lambda: public.convert(CELLS, "x", force="maybe"), ValueError, "True or False"),
        (
            lambda: public.rewrite(CELLS, dilation=[1]),
            ValueError,
            "finite number above 0, not",
        ),
        (
            lambda: public.rewrite(CELLS, "a\0b"),
            ValueError,
            r"out: no file can have the name 'a\\x00b'",
        ),
        (lambda: public.info("a\0b"), ValueError, "logs: no file can have the name"),
        (lambda: public.info("a\ud800"), ValueError, r"logs: no file can have the name 'a\\ud800'"),
        (lambda: public.rewrite(CELLS, dilation_for=3), TypeError, "names with values, not 3"),
        (
            lambda: public.rewrite(CELLS, fitted=3),
            TypeError,
            "fitted must be a fitted model or the path of its file, not int",
        ),
        (lambda: public.rewrite(CELLS, model=3), TypeError, "must be a name or a Model, not int"),
        (lambda: rewritelog.rewrite(CELLS, model="m.json"), ValueError, "write fitted='m.json'"),
        (lambda: public.replay(CELLS, model=Path("m.json")), ValueError, "write fitted='m.json'"),
        (lambda: public.rewrite(CELLS, progress=3), TypeError, "progress must be a function, not"),
        (lambda: rewritelog.replay(""), ValueError, "logs: the path is empty"),
        (lambda: rewritelog.fit([""]), ValueError, "timings: the path is empty"),
        (lambda: rewritelog.rewrite(CELLS, timings=()), ValueError, "name at least one file"),
        (lambda: rewritelog.replay(CELLS, timings={}), ValueError, "at least one event"),
        (lambda: rewritelog.sample(CELLS, timings=()), ValueError, "name at least one file"),
        (lambda: public.rewrite(CELLS, fitted=()), TypeError, "path of its file, not tuple"),
        (lambda: rewritelog.rewrite(TRACES, types=()), ValueError, "types names no type"),
        (lambda: rewritelog.sweep(CELLS, {"dilation": [1]}, dilation=2), ValueError, "not both"),
        (
            lambda: rewritelog.compare(CELLS / "timings.txt", folds=3, fraction=0.5),
            ValueError,
            "give folds or fraction, not both",
        ),
        (lambda: public.read_params(CELLS).to_frame([99]), ValueError, "rows: index 99"),
        (lambda: public.read_params(CELLS).to_frame("x"), ValueError, "rows: only integers"),
        (
            lambda: rewritelog.rewrite(CELLS, "x", dry_run=True),
            ValueError,
            "=True takes no OUT",
        ),
        (
            lambda: public.fit(CELLS / "timings.txt", event="Cell::bonded"),
            TypeError,
            "unexpected keyword argument 'event'",
        ),
        (
            lambda: public.compare(CELLS / "timings.txt", correction="none"),
            TypeError,
            'options of a model are given as in model_options={"loss": "squares"}',
        ),
        (lambda: rewritelog.fit(CELLS / "timings.txt", clock_hz=0), ValueError, "above 0"),
        (lambda: rewritelog.read_timings(CELLS / "timings.txt", clock_hz=-1), ValueError, "clock"),
        (lambda: public.compare(CELLS / "timings.txt", 3), TypeError, "takes names, not 3"),
        (lambda: rewritelog.export(CELLS, "x", "csv", pes=[99]), ValueError, "PE 99 is not in"),
        (lambda: rewritelog.open_logs(CELLS).timeline("0"), ValueError, "PE '0' is not in"),  # type: ignore[arg-type]
        (lambda: public.export(CELLS, "x", "csv", pes=[True]), TypeError, "integers, not"),
        (lambda: rewritelog.export(CELLS, "x", "csv", pes=[]), ValueError, "no PE is chosen"),
        (lambda: rewritelog.export(CELLS, "x", "csv", pes=()), ValueError, "no PE is chosen"),
        (lambda: rewritelog.open_logs(CELLS).sebs([]), ValueError, "no PE is chosen"),
        (lambda: public.open_logs(CELLS).messages(3.5), TypeError, "integers, not 3.5"),
        (lambda: public.Timings.from_arrays(3), TypeError, "a mapping of an event's name"),
        (lambda: public.export(CELLS, "x", "csv", from_s=[1]), ValueError, "is not a time"),
        (
            lambda: rewritelog.replay(CELLS, gains=-1),
            ValueError,
            "gains must be an integer of 0 or more",
        ),
        (lambda: public.replay(CELLS, latency=[1]), ValueError, "is not a number"),
        (lambda: rewritelog.replay(CELLS, latency=math.nan), ValueError, "nan is not a number"),
        (lambda: public.replay(CELLS, machine=3), TypeError, "must be a path, not int"),
        (lambda: public.Network(latency=[1]), ValueError, "is not a number"),
        (lambda: public.Network(packet_size=None), ValueError, "packet-size: None is not a number"),
        (lambda: public.Network(1e-6, name=3), TypeError, "name must be a text, not 3"),
        (
            lambda: rewritelog.Network().with_quantities({"speed": 1}),
            ValueError,
            "no quantity 'speed'; it has latency, bandwidth, cost-per-packet",
        ),
        (lambda: public.Network().with_quantities(None), TypeError, "names with values, not None"),
        (
            lambda: rewritelog.sweep(
                CELLS,
                {"machine": [rewritelog.Network(1e-6, name="x"), rewritelog.Network(name="x")]},
            ),
            ValueError,
            "two different values would be called 'x'",
        ),
        (lambda: public.lost_cycles(CELLS, lost_as={"x": 3}), ValueError, "invalid category"),
        (lambda: public.lost_cycles(CELLS, variables=3), TypeError, "names with values, not 3"),
        (lambda: public.sweep(CELLS, 3), TypeError, "names with values, not 3"),
        (lambda: rewritelog.fit(MODEL), TypeError, "timings must be a path or several, not Fitted"),
        (lambda: public.predict_run(MODEL, {"P": "x"}), ValueError, "'x' is not a number"),
        (lambda: public.predict(MODEL, 3), TypeError, "give files, or an event"),
        (
            lambda: public.predict(MODEL, {"k": [1]}),
            TypeError,
            "parameters; FittedModel.predict takes tables",
        ),
        (lambda: rewritelog.predict(MODEL, []), ValueError, "give files, or an event"),
        (lambda: public.read_params(CELLS, ["x"]), TypeError, "a text such as 0-31,40"),
        (lambda: public.read_params(CELLS, ""), ValueError, "pes: '' is not a PE"),
        (
            lambda: public.read_timings(CELLS / "timings.txt", strict=ARRAY),
            ValueError,
            "strict must be True or False, not array",
        ),
        (lambda: public.read_params(CELLS, strict=0), ValueError, "True or False, not 0"),
        (lambda: untyped.plot("k", kind="tiff"), ValueError, "kind must be 'svg' or 'png'"),
        (lambda: untyped.plot("k", kind=ARRAY), ValueError, "kind must be 'svg' or 'png'"),
        (lambda: untyped.formula("k", ARRAY), ValueError, "unknown language array"),
        (lambda: untyped.formula("k", parameters=[1]), ValueError, r"must be 1, not \[1\]"),
        (
            lambda: public.fit({"k": ([[1]], [1])}, model_options={"loss": ARRAY}),
            ValueError,
            "option 'loss': array.* is not one of huber, squares",
        ),
    ],
)
def test_wrong_use_is_an_error_of_both_kinds(
    call: Callable[[], object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, RewriteLogError)


def test_messages_name_options_as_python_does_and_leave_other_words_alone(tmp_path: Path) -> None:
    """Reports said `--dilation` and `--total`; a folder named `--force` became `force=True`."""
    report = rewritelog.rewrite(CELLS, timings=CELLS / "timings.txt")
    compared = rewritelog.compare(CELLS / "timings.txt", ["least-squares"], folds=2)
    text = " ".join((*report.warnings, report.text(), compared.text()))
    assert "give the target's with dilation, or dilation=1 if" in text
    assert "--" not in text
    for name in rewritelog.__all__:
        described = (getattr(rewritelog, name).__doc__ or "").replace("`--html`", "")
        for of_the_command_line in ("--", "exit code", "epeatable"):
            assert of_the_command_line not in described.replace("(exit code 2", ""), name
    out = tmp_path / "--force"
    out.mkdir()
    (out / "kept").touch()
    with pytest.raises(RewriteLogError, match=r"/--force: exists .* \(force=True replaces it"):
        rewritelog.convert(CELLS, out)


def test_a_result_says_what_it_is_and_what_to_do_with_it() -> None:
    """The repr of a comparison was its two paths, cut before the verdict."""
    compared = rewritelog.diff(CELLS, SAMPLE_LOGS / "cells-big-endian")
    assert repr(compared) == f"<Comparison: {compared.verdict}>"
    with pytest.raises(
        UsageTypeError, match="no page for an object of type ReplayReport: replay has html=FILE"
    ):
        public.page(rewritelog.replay(CELLS, gains=0))


def test_values_are_read_as_on_the_command_line() -> None:
    texts: dict[str, Any] = {"dilation": "0.5", "jobs": "1", "dilation_for": ["Cell::*=2"]}
    numbers: dict[str, Any] = {"dilation": 0.5, "jobs": 1, "dilation_for": {"Cell::*": 2}}
    from_texts, from_numbers = (
        rewritelog.rewrite(CELLS, **options) for options in (texts, numbers)
    )
    assert from_texts.to_json()["options"] == from_numbers.to_json()["options"]
    assert len(rewritelog.read_params(CELLS, "0-3")) == len(rewritelog.read_params(CELLS, range(4)))
    assert public.sweep(CELLS, {"dilation": 0.5}).points[0].values == ("0.5",)
    assert rewritelog.Network(latency="1us") == rewritelog.Network(latency=1e-6)
    named = rewritelog.Network().with_quantities(
        {"cost_per_packet": 1, "packet-size": "1kB", "latency": "1us"}
    )
    assert named == rewritelog.Network(1e-6, None, 1, 1000)


def test_decimals_and_fractions_are_numbers() -> None:
    """Half of the numbers took them, and half said that they must be numbers."""
    rewritten = [public.rewrite(CELLS, dilation=half) for half in (Fraction(1, 2), Decimal("0.5"))]
    assert {report.to_json()["options"]["dilation"] for report in rewritten} == {0.5}
    assert public.rewrite(CELLS, dilation=Fraction(1, 3)).options.dilation == 1 / 3
    assert public.verify(MODEL, {"k": ([[1]], [1])}, worst=Decimal(2)).to_json()
    for wrong in (Decimal("NaN"), Decimal("inf"), Fraction(-1, 2), 1j):
        with pytest.raises(UsageError, match="dilation must be a finite number above 0"):
            public.rewrite(CELLS, dilation=wrong)
    with pytest.raises(UsageError, match="worst must be an integer"):
        public.verify(MODEL, {"k": ([[1]], [1])}, worst=Decimal("2.5"))


def test_a_network_is_given_as_a_replay_is() -> None:
    """`Network` called them latency_s, bandwidth_bytes_per_s and packet_bytes."""
    options: dict[str, str] = {
        "latency": "1us",
        "bandwidth": "10GB/s",
        "cost_per_packet": "10ns",
        "packet_size": "1kB",
        "node_latency": "2us",
    }
    network = rewritelog.Network(**options)
    assert public.replay(CELLS, **options, gains=0).network == network
    assert (network.latency, network.bandwidth, network.packet_size) == (1e-6, 1e10, 1000)


def test_a_sweep_takes_networks_as_machines_and_an_infinite_bandwidth() -> None:
    """A Network was looked for as a file, and inf was written infGB/s."""
    near, far = (rewritelog.Network(latency) for latency in (1e-6, 1e-3))
    swept = rewritelog.sweep(CELLS, {"machine": [near, far], "bandwidth": [math.inf, 1e9]})
    assert [point.values for point in swept.points[:2]] == [
        ("latency 1 µs", "inf"),
        ("latency 1 µs", "1GB/s"),
    ]
    assert swept.points[0].predicted_s < swept.points[2].predicted_s


@pytest.mark.parametrize(
    ("network", "vary", "label"),
    [
        (rewritelog.Network("5us", "1GB/s"), ["latency"], "bandwidth 1 GB/s"),
        (rewritelog.Network("5us", "1GB/s"), ["latency", "bandwidth"], "unnamed"),
        (rewritelog.Network("5us", "1GB/s"), ["dilation"], "latency 5 µs, bandwidth 1 GB/s"),
        (rewritelog.Network(), ["latency"], "infinite bandwidth"),
    ],
)
def test_a_network_in_a_sweep_is_not_labelled_with_what_is_varied(
    network: rewritelog.Network, vary: list[str], label: str
) -> None:
    """A point of 1 µs was said to have 5 µs, or the recorded transit times."""
    values = {"latency": "1us", "bandwidth": "2GB/s", "dilation": 1}
    grid: dict[str, list[Any]] = {name: [values[name]] for name in vary}
    (point,) = rewritelog.sweep(CELLS, {"machine": [network], **grid}).points
    assert point.values[0] == label


def test_errors_are_of_the_matching_built_in_kind() -> None:
    assert issubclass(UsageError, ValueError)
    assert issubclass(UsageTypeError, TypeError)
    assert issubclass(MissingFileError, FileNotFoundError)
    assert str(MissingFileError("x: does not exist")) == "x: does not exist"


@pytest.mark.parametrize(
    "call",
    [
        rewritelog.info,
        rewritelog.replay,
        rewritelog.open_logs,
        rewritelog.open_traces,
        rewritelog.fit,
        rewritelog.load_model,
        lambda path: rewritelog.replay(CELLS, machine=path),
        lambda path: rewritelog.verify(MODEL, path),
    ],
)
def test_a_path_that_cannot_be_looked_at_is_an_error_of_this_package(
    call: Callable[[str], object], tmp_path: Path
) -> None:
    """It was a bare `OSError`, as for timing lines that are given in place of their file."""
    with pytest.raises(RewriteLogError, match=r"^x{300}: File name too long$"):
        call("x" * 300)
    (tmp_path / "closed").mkdir(mode=0)
    inner = tmp_path / "closed/inner"
    with (
        heeding_modes(),
        pytest.raises(RewriteLogError, match=f"^{re.escape(str(inner))}: Permission denied$"),
    ):
        call(str(inner))
