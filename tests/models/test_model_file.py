"""Model files: what is read back predicts to the bit, and no file does any harm."""

import copy
import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from kinds import MakeTimings, ReferenceTimings
from msgspec import structs

from rewritelog.arrays import Columns
from rewritelog.errors import ModelError
from rewritelog.models.auto import Auto, AutoOptions
from rewritelog.models.base import EventTimings, ModelText, digest_of
from rewritelog.models.fitted import Fitted, Source
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.fitting.function import FittedFunction
from rewritelog.models.form import _decoded
from rewritelog.models.model_file import model_file_text, parse_model
from rewritelog.models.registry import load_model

DOCS = Path(__file__).parents[2] / "docs" / "model-files.md"

FORMULA = """
[[formula]]
event = "kernel"
params = ["n", "side"]
terms = ["1", "n"]
category = "side"
"""

FALLING = """
[[formula]]
event = "kernel"
params = ["n"]
terms = ["1", "n"]
"""


def file_of(
    timings: Any, name: str = "auto", columns: Columns = "params", **options: Any
) -> Fitted:
    source = Source("1.2", ("t.txt",), 3, None, digest_of(timings))
    fitted = Fitted.of(load_model(name, options), name, timings)
    return Fitted(name, fitted.raw, columns, source)


@pytest.mark.parametrize("number", [np.bool_, np.int64, np.float64])
def test_a_list_becomes_an_array_however_numpy_spells_its_type(number: type[np.generic]) -> None:
    """From numpy 2.5 on an NDArray in a class is another object than the same one elsewhere."""
    kind = np.ndarray[tuple[int], np.dtype[number]]  # type: ignore[valid-type]
    decoded = _decoded(1, kind, np.array([1, 0], number).tolist())
    assert decoded.dtype == number
    assert decoded.tolist() == [1, 0]


def keys_of(form: type) -> set[str]:
    """Return the keys of a form, and of all forms in it, as a file spells them."""
    schema = msgspec.json.schema(form, schema_hook=lambda _: {"title": "numbers"})
    forms = schema.get("$defs", {}).values()
    return {key for nested in forms for key in nested.get("properties", {})}


def test_the_docs_name_every_key_of_an_event() -> None:
    page = DOCS.read_text(encoding="utf-8")
    keys = keys_of(EventFit)
    assert {"growth", "members", "may_be_negative", "held_out_r2", "unusable_samples"} <= keys
    assert sorted(key for key in keys if f"`{key}`" not in page and f'"{key}"' not in page) == []


def some(timings: list[EventTimings]) -> list[EventTimings]:
    """Return every fifth line, for speed."""
    return [
        EventTimings(samples.event, samples.params[::5], samples.seconds[::5])
        for samples in timings
    ]


def events_of(file: Fitted) -> FittedEvents:
    """Return the fits of a file."""
    assert isinstance(file.raw, FittedEvents)
    return file.raw


def again(file: Fitted) -> Fitted:
    """Return what is read back from the file, which is strict JSON and writes as it was."""
    text = model_file_text(file)
    json.loads(text, parse_constant=pytest.fail)
    back = parse_model(text, "m.json")
    assert model_file_text(back) == text
    return back


def test_events_may_end_with_a_bracket() -> None:
    """The last character of such a name was lost, so that `level 12]` answered for `level 1]`."""
    n = np.array([1.0, 2, 4, 8, 16])[:, None]
    names = ["level 1]", "level 12]", "[a]", "{", "b}", '"]', "]\n}"]
    timings = [EventTimings(name, n, k * 1e-6 * n[:, 0]) for k, name in enumerate(names, 1)]
    back = again(Fitted.of(Auto(AutoOptions()), "auto", timings))
    assert [event for event, _ in back.keys] == names


def same_bits(first: FittedEvents, second: FittedEvents, timings: Any) -> None:
    """All that two fits say of the samples, and of rows far from them, is the same to the bit."""
    for samples in timings:
        event, params = samples.event, samples.params
        rows = np.vstack([params, 1.37 * params, params - 11.3, -params, 1e6 * params])
        mine, yours = first.predict_detailed(event, rows), second.predict_detailed(event, rows)
        numbers = np.linspace(0, 0.999, len(rows))
        pairs = [
            *(
                (getattr(mine, field), getattr(yours, field))
                for field in ("seconds", "exact", "outside", "remote", "negative")
            ),
            *zip(first.interval(event, rows), second.interval(event, rows), strict=True),
            tuple(fitted.drawn_factors(event, rows, numbers) for fitted in (first, second)),
        ]
        for a, b in pairs:
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
        count = params.shape[1]
        assert first.total_spread(event, count) == second.total_spread(event, count)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("auto", {}),
        pytest.param(
            "auto", {"exact_match": "always", "weights": "uniform"}, marks=pytest.mark.slow
        ),
        ("least-squares", {}),
        ("least-squares", {"exact_match": "always", "basis": "linear"}),
        ("sampled", {"fraction": "0.1"}),
    ],
)
def test_real_fits_predict_to_the_bit(
    name: str, options: dict[str, Any], sample_timings: list[EventTimings]
) -> None:
    timings = some(sample_timings)
    file = file_of(timings, name, **options)
    back = again(file)
    same_bits(events_of(file), events_of(back), timings)
    assert back.raw.describe() == file.raw.describe()
    assert back.raw.summary() == file.raw.summary()
    assert back.raw.warnings() == file.raw.warnings()
    assert back.source == file.source


def test_reference_fits_predict_to_the_bit(
    reference_timings: ReferenceTimings,
) -> None:
    timings = reference_timings("namd")
    file = file_of(timings, "least-squares", exact_match="auto")
    same_bits(events_of(file), events_of(again(file)), timings)


def test_classes_of_a_formula_are_kept(event: MakeTimings) -> None:
    n, side = np.arange(40.0), np.arange(40) % 2
    timings = [event(n, side, seconds=1 + n * (1 + side))]
    model = Auto(AutoOptions(), ModelText("f.toml", FORMULA))
    fitted = model.fit(timings)
    file = Fitted("auto", fitted, source=Source("1", (), 40, 2e9, digest_of(timings)))
    back = again(file)
    assert len(back.fits["kernel", 2].classes) == 3
    same_bits(fitted, events_of(back), timings)


def test_degenerate_samples(event: MakeTimings) -> None:
    timings = [
        event(seconds=[2.0], name="no parameters"),
        event(seconds=[1.0, 2.0, 1.5] * 5, name="no parameters, many"),
        event([3.0], seconds=[1.0], name="one sample"),
        event([3.0] * 6, [1, 2, 3, 4, 5, 6], seconds=[0.0] * 6, name="all zero"),
        event([1.0, 2.0], seconds=[np.nan, np.nan], name="unusable"),
        event([1e300, 2e300, 3e300], seconds=[1e-300, 2e-300, 3e-300], name="huge"),
        event([1.0, 2, 3, 4, 5], seconds=[5.0, 4, 3, 2, 1], name="falling \x1b[31m {é}"),
    ]
    for name in ("auto", "least-squares"):
        for exact in ("always", "never"):
            file = file_of(timings, name, exact_match=exact)
            back = again(file)
            with np.errstate(all="ignore"):
                same_bits(events_of(file), events_of(back), timings)
            assert events_of(back).unfitted == (("unusable", 1),)


def test_a_fit_of_counters_says_so(event: MakeTimings) -> None:
    timings = [event([1.0, 2, 3, 4], [5.0, 5, 6, 6], seconds=[1.0, 2, 3, 4])]
    back = again(file_of(timings, "counters", "counters"))
    assert back.columns == "counters"
    assert again(file_of(timings)).columns == "params"


def test_a_read_model_says_where_it_is_from(sample_timings: list[EventTimings]) -> None:
    back = again(file_of(some(sample_timings)))
    assert back.name == "m.json"
    assert back.options == {
        "made_by": "auto",
        "rewritelog": "1.2",
        "lines": 3,
        "sha256": digest_of(some(sample_timings)),
    }


def test_the_digest_is_of_every_number(event: MakeTimings) -> None:
    def digest(params: list[float], seconds: list[float], name: str = "k") -> str:
        return digest_of([event(params, seconds=seconds, name=name)])

    first = digest([1.0, 2.0], [3.0, 4.0])
    assert first == digest([1.0, 2.0], [3.0, 4.0])
    others = [
        digest([1.0, 2.0], [3.0, np.nextafter(4.0, 5.0)]),
        digest([2.0, 1.0], [3.0, 4.0]),
        digest([1.0, 2.0], [3.0, 4.0], "l"),
        digest([1.0], [3.0]),
        digest_of([event(seconds=[1.0, 2.0, 3.0, 4.0], name="k")]),
    ]
    assert len({first, *others}) == 6


def test_outside_regressors_are_refused_by_name(
    event: MakeTimings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    fitted = load_model("regressors:Plane", {}).fit([event([1.0, 2], seconds=[1.0, 2.0])])
    with pytest.raises(ModelError, match=r"'regressors:Plane' cannot be written .* no code"):
        model_file_text(Fitted("regressors:Plane", fitted))


@pytest.fixture(scope="module")
def text(event: MakeTimings) -> str:
    """Return a model file: falling times, repeated parameters with exact matches."""
    falling = event([1.0, 2, 3, 4, 5, 1] * 4, seconds=[5.0, 4, 3, 2, 1, 5.1] * 4)
    plain = event([1.0, 2, 3, 4] * 3, [5.0, 5, 6, 7] * 3, seconds=[1.0, 2, 3, 4] * 3, name="plain")
    formula = ModelText("f.toml", FALLING)
    fitted = Auto(AutoOptions(exact_match="always"), formula).fit([falling, plain])
    source = Source("1", ("t",), 36, None, "0" * 64)
    return model_file_text(Fitted("auto", fitted, source=source))


@pytest.fixture
def document(text: str) -> dict[str, Any]:
    """Return the model file as JSON has it."""
    parsed: dict[str, Any] = json.loads(text)
    return parsed


LAW = ("events", 1, "classes", 0, "function")
BREAKS: list[tuple[tuple[Any, ...], Any, str]] = [
    (("format",), "other", r"m\.json: \$: is not a model file"),
    (("version",), 2, "is of version 2; this rewritelog reads 13"),
    (("version",), True, "is of version True"),
    (("version",), None, r"\$: has no version; this rewritelog reads 13"),
    (("version",), "x" * 100_000, "is of version 'x*…x*'; this"),
    (("events",), {}, r"\$\.events: must be a list, not an object"),
    (("source", "lines"), -1, r"\$\.source\.lines: must be a whole number >= 0"),
    (("source", "sha256"), None, r"\$\.source\.sha256: must be a text, not null"),
    (("source", "more"), 1, r"\$\.source: unknown key 'more'"),
    (("columns",), "x", r"\$\.columns: unknown value 'x'"),
    (("columns",), "\x1b[31m" + "x" * 100_000, r"unknown value '\\x1b\[31mx*…x*'$"),
    (
        ("options", "loss"),
        [],
        r"\$\.options\[\.\.\.\]: must be true or false or a whole number or a number or a text",
    ),
    (("events", 1, "event"), 7, r"\$\.events\[1\]\.event: must be a text, not a whole number"),
    (("events", 1, "event"), "x" * (2**20 + 1), "must be a text of length <= 1048576"),
    (("events", 1, "parameters"), 21, r"\.parameters: must be a whole number <= 20"),
    (
        (*LAW[:-1], "quality", "effective_samples"),
        0,
        r"\$\.events\[1\]\.classes\[0\]\.quality\.effective_samples: must be a number > 0",
    ),
    (("events", 1, "names"), ["a"], r"\$\.events\[1\]: has 1 names for 2 parameters"),
    (("events", 1, "names"), ["a", "exp"], r"\$\.events\[1\]\.names: .*'exp' is a function"),
    (("events", 1, "lowest"), [1.0], r"lowest: must have 2 numbers, not 1"),
    (("events", 1, "lowest"), [1.0, "1"], r"lowest\[1\]: must be a number, not a text"),
    (("events", 1, "highest"), [1.0, True], r"highest\[1\]: must be a number, not true or false"),
    (("events", 1, "classes"), [], r"\.classes: must be a list of length >= 1"),
    (("events", 1, "classes", 0, "value"), 1.0, "only the first .* has the `value` null"),
    (("events", 1, "category"), "p1 +", r"\$\.events\[1\]\.category: column 5"),
    ((*LAW, "kind"), "other", r"function\.kind: Invalid value 'other'"),
    (
        (*LAW, "may_be_negative"),
        1,
        r"function\.may_be_negative: must be true or false, not a whole number",
    ),
    ((*LAW, "terms", 0), "p3", r"terms\[0\]: column 1: unknown name"),
    ((*LAW, "terms", 0), "1 + system(p1)", r"column 5: unknown function 'system'"),
    ((*LAW, "terms", 0), "(" * 5000 + "1" + ")" * 4999, "nested|more than"),
    ((*LAW, "coefficients", 0), "nan", r"coefficients\[0\]: must be a number, not a text"),
    ((*LAW, "coefficients", 0), 10**400, r"\$.*: Number out of range"),
    ((*LAW, "more"), 1, r"function: unknown key 'more'"),
    ((*LAW, "calibration"), None, r"calibration: must be a number, not null"),
    (("events", 1, "classes", 0, "leverage_root"), [[1.0] * 5], r"leverage_root: must have"),
    (("events", 1, "classes", 0, "leverage_root"), [[1.0]] * 2, "must have 1 × 1 numbers, not 2"),
    (("events", 1, "classes", 0, "quality", "rank"), 1.5, "must be a whole number, not a number"),
    (("events", 1, "classes", 0, "quality", "chi2"), "NaN", "unknown value 'NaN'"),
    (("events", 1, "classes", 0, "total_ratio"), -1.0, "must be a number >= 0.0"),
    (("events", 1, "classes", 0, "ratios"), [[], []], r"ratios: must have 2 numbers, not 2 × 0"),
    (("events", 1, "classes", 0, "ratios"), [2.0, 1.0], "must be in ascending order"),
    (("events", 1, "classes", 0, "spread_ratios"), [2.0, 1.0], "must be in ascending order"),
    (("events", 0, "exact_matches", "ratios"), [2.0, 1.0], "must be in ascending order"),
    (("events", 1, "exact_matches", "weights", 0), 1.5, r"weights: must be between 0 and 1"),
    (("events", 1, "exact_matches", "params", 0), [2.0, 5.0], "params: has a duplic"),
    (("events", 1, "exact_matches", "seconds"), [1.0], "seconds: must have 4 numbers"),
]


@pytest.mark.parametrize(("path", "value", "message"), BREAKS, ids=[row[2][:30] for row in BREAKS])
def test_each_defect_is_named(
    path: tuple[Any, ...], value: object, message: str, document: dict[str, Any]
) -> None:
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ModelError, match=message) as refused:
        parse_model(json.dumps(document), "m.json")
    assert str(refused.value).startswith("m.json: $")


def test_a_missing_key_and_an_event_twice(document: dict[str, Any]) -> None:
    document["events"].append(document["events"][0])
    with pytest.raises(ModelError, match=r"\$\.events\[2\]: is duplicated"):
        parse_model(json.dumps(document), "m.json")
    del document["events"][0]["classes"][0]["function"]["terms"]
    with pytest.raises(ModelError, match=r"\[0\]\.function: .*the key 'terms' is missing"):
        parse_model(json.dumps(document), "m.json")


def test_defaults_may_be_left_out_or_written(document: dict[str, Any]) -> None:
    """A person who writes a file need not know them."""
    plain = document["events"][1]
    assert not {"names", "unusable_samples", "category"} & plain.keys()
    assert "may_be_negative" not in plain["classes"][0]["function"]
    read = parse_model(json.dumps(document), "m").raw.describe()
    plain |= {"names": [], "unusable_samples": 0, "category": None}
    plain["classes"][0]["value"] = None
    plain["classes"][0]["function"]["may_be_negative"] = False
    plain["classes"][0]["quality"].setdefault("interval_coverage", None)
    assert parse_model(json.dumps(document), "m").raw.describe() == read


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "m.json: is not a model file: its JSON is cut off"),
        ('{"format": "rewritelog model", "ver', "m.json: is not a model file: its JSON is cut off"),
        ('{\n "format": }', "m.json: is not a model file"),
        ('{\n "é": "é", x}', "m.json: is not a model file"),
        ('{"a": ' + "[" * 100_000, "m.json: is nested too deeply|m.json: is not a model file"),
        ('{"a": NaN}', "m.json: is not a model file"),
        ('{"a": -Infinity}', "m.json: is not a model file"),
        ('{"a": "\\udc80"}', "m.json: is not a model file"),
        ("9" * 10_000, r"m\.json: is not a model file: Number out of range"),
        ("{}", r"m\.json: \$: is not a model file"),
        (
            '{"format": "rewritelog model", "version": 13}',
            r"m\.json: \$: the key 'source' is missing",
        ),
        ("[]", r"m\.json: is not a model file: its JSON must be an object, not a list"),
        ("1 TRACEBIGSIM: event:{ k }", "m.json: is not a model file: .*`fit` makes one of timing"),
    ],
)
def test_what_is_no_model_file(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        parse_model(text, "m.json")


def test_a_fit_that_could_not_be_read_back_is_not_written(document: dict[str, Any]) -> None:
    file = parse_model(json.dumps(document), "m")
    (key, fit), *_ = file.fits.items()
    assert isinstance(fit.whole.function, FittedFunction)
    function = structs.replace(fit.whole.function, calibration=math.nan)
    of_all = structs.replace(fit.whole, function=function)
    fits = {key: structs.replace(fit, classes=(of_all,))}
    broken = replace(file, raw=replace(events_of(file), fits=fits))
    with pytest.raises(ModelError, match=r"cannot be written: .*function\.calibration"):
        model_file_text(broken)
    with pytest.raises(ModelError, match="cannot be written"):
        model_file_text(replace(file, raw=replace(events_of(file), notes=("\udc80",))))


def test_rows_of_exact_matches_may_stand_in_any_order(document: dict[str, Any]) -> None:
    rows = np.array([[1.0, 5.0], [4.0, 7.0]])
    before = parse_model(json.dumps(document), "m").raw.predict("plain", rows)
    matches = document["events"][1]["exact_matches"]
    for values in matches.values():
        values.reverse()
    after = parse_model(json.dumps(document), "m").raw.predict("plain", rows)
    assert before.tobytes() == after.tobytes()


ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    3,
    1e308,
    -1e308,
    1e-320,
    "",
    "p1",
    "nan",
    "inf",
    "p1/0",
    "exp(p1)",
    "min(",
    [],
    {},
    [[]],
    10**400,
    2**62,
    [1, 2],
    "\x1b[31m",
]


@pytest.mark.slow
def test_random_damage_is_refused_or_harmless(document: dict[str, Any]) -> None:
    rng = random.Random(4)  # noqa: S311 - damage that can be made again
    places = [place for place in walk(document) if place and max_index(place) < 3]
    for _ in range(600):
        damaged = copy.deepcopy(document)
        place = rng.choice(places)
        inner: Any = damaged
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = rng.choice(ODD)
        try:
            file = parse_model(json.dumps(damaged), "m.json")
        except ModelError as error:
            assert str(error).startswith("m.json")  # noqa: PT017 - each of many must name the file
        else:
            use(file)


def use(file: Fitted) -> None:
    """Do with a model all that is done with one; only a `ModelError` may come of it."""
    file.raw.summary()
    file.raw.warnings()
    json.dumps(file.raw.describe(), allow_nan=False)
    model_file_text(file)
    for event, count in file.fits:
        rows = np.vstack([np.full((2, count), value) for value in (0.0, 1.0, 100.0, 1e6, -3.0)])
        try:
            file.prediction(event, rows)
            file.drawn_factors(event, rows, np.linspace(0, 0.99, len(rows)))
            file.spread(event, count)
        except ModelError:
            continue


def walk(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the places of all values within."""
    inner: Any = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    return [place, *(deeper for step, part in inner for deeper in walk(part, (*place, step)))]


def max_index(place: tuple[Any, ...]) -> int:
    return max((step for step in place if isinstance(step, int)), default=0)
