"""Files through the readers and commands that a user calls: a result, or an error that says why."""

from __future__ import annotations

import gzip
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from blocks import in_blocks
from chakrabuilder import trace
from rules import violations

import rewritelog
from fuzz.seeds import NODES, make_logs
from rewritelog import open_logs
from rewritelog.checking.findings import Severity
from rewritelog.checking.run import check_logs
from rewritelog.commands.durations import RewriteOptions
from rewritelog.diffing.run import compare_logs
from rewritelog.errors import RewriteLogError
from rewritelog.formats.bgtrace.blocks import plan_blocks
from rewritelog.formats.bgtrace.heads import read_summary, read_timeline_file
from rewritelog.formats.bgtrace.params import list_params, read_params
from rewritelog.formats.chakra import open_chakra
from rewritelog.formats.traces import UnitWriter
from rewritelog.inspection.dump import Dump
from rewritelog.inspection.info import survey
from rewritelog.models.base import EventTimings, ModelText, digest_of
from rewritelog.models.fitted import Fitted, Source
from rewritelog.models.model_file import (
    model_file_text,
    parse_model,
)
from rewritelog.models.registry import load_model
from rewritelog.rewriting.run import rewrite
from rewritelog.text import json_text as strict_json
from rewritelog.timings.read import read_model_text, read_timings
from tracebigsim.errors import TraceBigSimError

Check = Callable[[bytes], bool]
"""Gives an input to a reader; returns whether it was taken, False where it was refused by name."""

_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of one's own is made in it

FORMULAS = b"""[[formula]]
event = "calc_pair_*"
params = ["n1", "n2", "x1", "y1", "z1", "x2", "y2", "z2", "tested", "close"]
terms = ["1", "n1*n2", "tested^2 / max(close, 1)", "log2(1 + close)"]
category = "torus_distance(x1, y1, z1, x2, y2, z2, 6, 6, 4)"

[[formula]]
event = ["angles", "dihedrals"]
kind = "linear"
of = ["p2"]
"""

COEFFICIENTS = b"""# event, factors of the parameters, constant
Cell::pairForces 1.5e-9 2e-10 3.25e-7
Cell::bonded 5e-7 -2e-10 1e-6
k 1
"""

BARE_LINES = b"""19 TRACEBIGSIM Cell::pairForces 53.0 11.0
0 TRACEBIGSIM: event:{ Cell::bonded } seqno: { 0 }    params:{ 53.000000 }
2 TRACEBIGSIM: event:{ Cell::bonded } seqno: { 3 } time:{ 0.5 } PAPI:{ 3 4 } params:{ -0 1e300 }
"""


@contextmanager
def workplace() -> Iterator[Path]:
    """Yield a folder, in memory where the system has such folders."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        yield Path(folder)


def _refusals(read: Callable[[], object]) -> bool:
    try:
        read()
    except (RewriteLogError, TraceBigSimError):
        return False
    return True


def summary_check(work: Path) -> tuple[Check, list[bytes]]:
    """Read a mutant as `bgTrace`."""
    seeds = [
        make_logs(work / f"s{version}", version, "big" if version % 2 else "little")
        for version in (0, 3, 6)
    ]
    path = work / "bgTrace"

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        return _refusals(lambda: read_summary(path))

    return check, [logs.summary_path.read_bytes() for logs in seeds]


def head_check(work: Path) -> tuple[Check, list[bytes]]:
    """Read a mutant as the head of a `bgTraceN`."""
    logs = make_logs(work / "logs", 6, "little")
    path = work / "bgTrace0"

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        return _refusals(lambda: read_timeline_file(path, 0, logs.summary))

    begins = logs.files[0].head_bytes
    head = logs.files[0].path.read_bytes()[:begins]
    empty = [begins + 4 * pe for pe in logs.pes]
    count = begins - 4 * len(empty)
    return check, [head[:count] + struct.pack(f"<{len(empty)}I", *empty) + bytes(4 * len(empty))]


def log_set_check(work: Path) -> tuple[Check, list[bytes]]:
    """Give a log set with a mutant for its timeline file to every command."""
    logs = make_logs(work / "logs", 6, "little")
    path, out = logs.files[0].path, work / "out"
    beside = {entry.name for entry in work.iterdir()}
    constant = RewriteOptions(dilation=0.5, jobs=1, no_flush=True, force=True)

    def use_all() -> None:
        opened = open_logs(logs.folder)
        surveyed = survey(opened)
        surveyed.text()
        if (surveyed.sebs, surveyed.messages) != (len(opened.sebs()), len(opened.messages())):
            raise AssertionError("the survey does not agree with the tables")
        for line in Dump(opened, 0).pieces(as_json=True):
            line.encode()
        before = check_logs(logs.folder)
        rewrite(in_blocks(logs.folder, 512), out, constant)
        after = check_logs(out)
        if after.count(Severity.STOP) > before.count(Severity.STOP):
            raise AssertionError(f"a rewrite adds to what stops the simulator: {after.text()}")
        if not compare_logs(opened, open_logs(out)).times_alone:
            raise AssertionError("a rewrite changes more than times")
        if not violations(out) <= violations(logs.folder):
            raise AssertionError("a rewritten log breaks a rule of its readers that it kept")
        rewritelog.convert(opened, out, log_version=3, byte_order="big", lossy=True, force=True)

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        taken = _refusals(use_all)
        if {entry.name for entry in work.iterdir()} - beside - {"out"}:
            raise AssertionError("something was left behind beside the output")
        return taken

    return check, [path.read_bytes()]


REFUSED = {
    "unreadable",
    "machine-header",
    "byte-order",
    "summary",
    "pe-count",
    "log-version",
    "timeline-count",
    "offset",
    "count",
    "cut-off",
    "left-over",
    "event-type",
}
"""The rules of `check` that a rewrite refuses in any log, as its documentation says."""
REFUSED_WHERE_CHANGED = {"seqno", "not-finite"}
"""Those that it refuses in SEBs that it would change."""


def check_and_rewrite_check(work: Path) -> tuple[Check, list[bytes]]:
    """Let `check` and `rewrite` say what they think of a timeline file: they have to agree."""
    logs = make_logs(work / "logs", 6, "little")
    path, out = logs.files[0].path, work / "out"
    halved = RewriteOptions(dilation=0.5, jobs=1, no_flush=True, force=True)

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        findings = set(check_logs(logs.folder).findings.counts)
        taken = _refusals(lambda: rewrite(in_blocks(logs.folder, 512), out, halved))
        if taken and findings & REFUSED:
            raise AssertionError(f"rewritten, though check finds {findings & REFUSED}")
        if not taken and not findings & (REFUSED | REFUSED_WHERE_CHANGED):
            raise AssertionError(f"refused, though check finds nothing but {findings}")
        return taken

    return check, [path.read_bytes()]


def convert_back_check(work: Path) -> tuple[Check, list[bytes]]:
    """Convert a log set to the other byte order and back: the bytes are the same."""
    logs = make_logs(work / "logs", 6, "little")
    path = logs.files[0].path

    def there_and_back() -> None:
        rewritelog.convert(logs.folder, work / "there", byte_order="big", force=True)
        rewritelog.convert(work / "there", work / "back", byte_order="little", force=True)

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        taken = _refusals(there_and_back)
        if taken and (work / "back" / path.name).read_bytes() != data:
            raise AssertionError("a conversion there and back changes bytes")
        if taken and compare_logs(open_logs(logs.folder), open_logs(work / "there")).fields:
            raise AssertionError("a log differs from itself in the other byte order")
        return taken

    return check, [path.read_bytes()]


def diff_itself_check(work: Path) -> tuple[Check, list[bytes]]:
    """Compare a log set with itself, and with another one both ways round."""
    logs = make_logs(work / "logs", 6, "little")
    other = make_logs(work / "other", 6, "little").folder
    path = logs.files[0].path

    def compare() -> None:
        opened = open_logs(logs.folder)
        itself = compare_logs(opened, opened)
        if not itself.same or itself.fields:
            raise AssertionError(f"a log set differs from itself: {itself.fields}")
        if itself.totals.sides[0]["SEBs"] != survey(opened).sebs:
            raise AssertionError("a comparison does not count what the walk does")
        forth, back = (
            compare_logs(open_logs(a), open_logs(b))
            for a, b in ((logs.folder, other), (other, logs.folder))
        )
        fields = [
            {field: change.count for field, change in comparison.fields.items()}
            for comparison in (forth, back)
        ]
        if forth.same != back.same or fields[0] != fields[1]:
            raise AssertionError(f"a comparison is not symmetric: {fields}")

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        taken = _refusals(compare)
        if not taken and not set(check_logs(logs.folder).findings.counts) & REFUSED:
            raise AssertionError("a comparison fails where the walk does not")
        return taken

    return check, [path.read_bytes()]


def chakra_check(work: Path) -> tuple[Check, list[bytes]]:
    """Read a mutant as a Chakra trace, and write it with other durations."""
    path = work / "run.0.et"

    def write() -> None:
        traces = open_chakra(path)
        assert traces is not None
        writer = UnitWriter()
        for part in traces.read(traces.files[0]):
            for name in ("waits", "name", "shapes", "lane", "rest", "num_ops", "group"):
                assert len(part[name]) == len(part)
            assert len(part["waited_for"]) == part["waits"].sum()
            writer.written(part, part["duration_s"] * 0.5, part["on_host"])

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        return _refusals(write)

    return check, [trace(NODES), gzip.compress(trace(NODES))]


def params_check(work: Path) -> tuple[Check, list[bytes]]:
    """Read a mutant as the `param.0` of a block."""
    logs = make_logs(work / "logs", 6, "little")
    path = logs.folder / "param.0"
    seeds = [path.read_bytes(), BARE_LINES]
    folder = list_params(logs.folder)
    loaded = next(logs.load(plan_blocks(logs.files[0])))

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        return _refusals(lambda: read_params(folder, loaded, strict=False))

    return check, seeds


def formulas_check(work: Path) -> tuple[Check, list[bytes]]:
    """Read a mutant as a formulas file, and fit its formulas to some samples."""
    rows = np.random.default_rng(1).uniform(1, 50, (40, 10)).round()
    samples = [
        EventTimings("calc_pair_self", rows, rows[:, 0] * 1e-6),
        EventTimings("angles", rows[:, :2], rows[:, 1] * 1e-6),
    ]

    def fit(text: ModelText) -> None:
        fitted = load_model("sampled", {"fraction": 0.5}, {"formulas": text}).fit(samples)
        for sample in samples:
            fitted.predict_detailed(sample.event, sample.params)

    return _text_check(work / "formulas.toml", fit), [FORMULAS]


def coefficients_check(work: Path) -> tuple[Check, list[bytes]]:
    """Read a mutant as a file of coefficients, and predict by what it holds."""

    def predict(text: ModelText) -> None:
        fitted = load_model("coefficients", {}, {"coefficients": text}).fit(())
        for count in range(4):
            fitted.predict("Cell::bonded", np.ones((2, count)))

    return _text_check(work / "coefficients.txt", predict), [COEFFICIENTS]


def models_check(work: Path) -> tuple[Check, list[bytes]]:
    """Read a mutant as a model file, and predict by what it holds."""

    def use(text: ModelText) -> None:
        fitted = parse_model(text.text, text.name)
        strict_json(fitted.raw.describe())
        "\n".join([*fitted.raw.summary(), *fitted.raw.warnings()])
        for event, count in fitted.fits:
            rows = np.vstack([np.full(count, value) for value in (0.0, 1.0, 50.0, 1e6, -3.0)])
            fitted.prediction(event, rows)
            fitted.spread(event, count)

    return _text_check(work / "model.json", use), _model_files()


def _model_files() -> list[bytes]:
    """Return small model files: of a formula with classes, exact matches, and a correction."""
    rng = np.random.default_rng(1)
    rows = rng.integers(1, 6, (12, 2)).astype(np.float64)
    samples = [EventTimings("k", rows, 1e-6 * (7 - rows[:, 0]))]
    formula = ModelText(
        "f.toml",
        '[[formula]]\nevent = "k"\nparams = ["n", "side"]\nterms = ["1", "n"]\ncategory = "side"\n',
    )
    source = Source("0", ("t.txt",), len(rows), None, digest_of(samples))
    models = [
        load_model("auto", {}, {"formulas": formula}),
        load_model("least-squares", {"exact_match": "always"}),
    ]
    fits = [model.fit(samples) for model in models]
    wide = np.rint(10 ** rng.uniform(1, 4, (150, 2)))
    logs = np.log(wide)
    waves = 1e-7 * wide[:, 0] * np.exp(np.sin(1.5 * logs[:, 0]) * np.cos(1.2 * logs[:, 1]))
    corrected = load_model("auto", {"exact_match": "never"}).fit([EventTimings("k", wide, waves)])
    fits.append(corrected)
    return [model_file_text(Fitted("m", fit, source=source)).encode() for fit in fits]


def _text_check(path: Path, use: Callable[[ModelText], None]) -> Check:
    def check(data: bytes) -> bool:
        path.write_bytes(data)
        return _refusals(lambda: use(read_model_text(path)))

    return check


def timings_check(work: Path) -> tuple[Check, list[bytes]]:
    """Read a mutant as a file of timing lines, and fit to it what it holds."""
    logs = make_logs(work / "logs", 6, "little")
    path = work / "timings.txt"
    model = load_model("least-squares", {})

    def fit() -> None:
        fitted = model.fit(read_timings([path], clock_hz=1e9).timings)
        fitted.describe()
        "\n".join(fitted.summary())

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        return _refusals(fit)

    return check, [(logs.folder / "timings.txt").read_bytes(), BARE_LINES]
