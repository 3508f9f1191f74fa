"""Each reader has one bound on memory (docs/reliability.md): it holds as a limit of the process."""

import gzip
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from faulty import HANGS_S, SCRIPT
from logbuilder import bracket, mark, seb, write_logs, write_params, write_timings
from many_sebs import write_many

from rewritelog.commands.durations import RewriteOptions
from rewritelog.errors import ModelError, TimingError
from rewritelog.formats.bgtrace import params
from rewritelog.models.base import ModelText
from rewritelog.models.coefficients import parse_coefficients
from rewritelog.models.model_file import parse_model
from rewritelog.rewriting.run import rewrite
from tracebigsim import LineFormatError, format_line

IDLE_MB = 448
"""What Python, its libraries and the compiled kernels take of a process's data before any input."""

DUMP_IDLE_MB = 100
"""The same of `dump`, which needs no kernels."""

PARAMS_MB = 640
"""Some 16 MB of text and its scan, and the records of a block, once more while they are sorted."""


EVENTS_MB = 200
"""10 kB for each of 20,000 events."""


def run_within(megabytes: int, *words: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process that may have so much data besides what it always has."""
    code = textwrap.dedent("""
        import os, resource, sys
        limit = int(sys.argv[1]) << 20
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        os.execv(sys.argv[2], sys.argv[2:])
    """)
    return subprocess.run(
        [sys.executable, "-c", code, str(IDLE_MB + megabytes), str(SCRIPT), *map(str, words)],
        capture_output=True, text=True, check=False, timeout=HANGS_S,
    )  # fmt: skip


@pytest.fixture
def timings(tmp_path: Path) -> Path:
    return write_timings(tmp_path / "timings", *[("k", 1.0 + n, float(n)) for n in range(9)])


def words_of(logs: Path, timings: Path) -> list[object]:
    return ["rewrite", logs, "--dry-run", "--model", "least-squares", "--timings", timings]


@pytest.mark.long
def test_many_small_param_files_of_one_block_are_not_held_at_once(
    tmp_path: Path, timings: Path
) -> None:
    logs = write_logs(tmp_path / "in", [[seb(0, 1, events=bracket(0.2, 0.6))]] * 1500)
    for pe in range(1500):
        write_params(logs, pe, (0, "k", 2.0))
        os.truncate(logs / f"param.{pe}", 1 << 20)
    done = run_within(PARAMS_MB, *words_of(logs, timings))
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_each_of_many_events_takes_so_much_with_its_fit(tmp_path: Path) -> None:
    lines = [(f"Kernel::number{number}", 1e-6 + 1e-9 * number, 5.0) for number in range(20_000)]
    timings = write_timings(tmp_path / "timings", *lines)
    done = run_within(EVENTS_MB, "fit", timings, "-q", "-o", tmp_path / "model.json")
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.parametrize("seb_number", ["0", "999999999"])
def test_a_packed_param_file_that_unpacks_to_gigabytes_is_refused(
    seb_number: str, tmp_path: Path, timings: Path
) -> None:
    """Records of one SEB, or of none that the timeline has, without an end."""
    logs = write_logs(tmp_path / "in", [[seb(0, 1, events=bracket(0.2, 0.6))]])
    line = f"{seb_number} TRACEBIGSIM: event:{{ k }} params:{{ {'1 ' * 20}}}\n".encode()
    with gzip.open(logs / "param.0", "wb", compresslevel=9) as packed:
        for _ in range(40):
            packed.write(line * 100_000)
    done = run_within(PARAMS_MB, *words_of(logs, timings))
    assert done.returncode == 1
    assert "param.0: the records of some SEBs take more than" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_records_beyond_the_bound_are_refused(
    tmp_path: Path, timings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = write_logs(tmp_path / "in", [[seb(0, 1, events=bracket(0.2, 0.6))]])
    write_params(logs, 0, *[(0, "k", 2.0)] * 1000)
    monkeypatch.setattr(params, "MOST_RECORD_BYTES", 10_000)
    options = RewriteOptions(model="least-squares", timings=(timings,))
    with pytest.raises(TimingError, match=r"param\.0: the records of some SEBs take more than"):
        rewrite(logs, None, options)


def test_small_param_files_read_in_parts_give_the_same(
    tmp_path: Path, timings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = write_logs(tmp_path / "in", [[seb(0, 1, events=bracket(0.2, 0.6))]] * 9)
    for pe in range(9):
        write_params(logs, pe, (0, f"k{pe % 2}", 2.0 + pe), (7, "k", 1.0))
    options = RewriteOptions(model="least-squares", timings=(timings,))
    together = rewrite(logs, None, options).to_json()
    monkeypatch.setattr(params, "_MOST_SMALL_BYTES", 100)
    parts = rewrite(logs, None, options).to_json()
    assert {**parts, "run": None} == {**together, "run": None}


def test_a_long_run_of_digits_is_read_in_linear_time() -> None:
    """A regular expression that tries each digit twice took 50 s for 40,000 of them."""
    text = ModelText("c", "k " + "1" * 4_000_000 + "x 1 2\n")
    assert list(parse_coefficients(text)) == ["k " + "1" * 4_000_000 + "x"]


def test_a_name_of_nested_braces_is_checked_in_one_pass() -> None:
    deep = "{" * 400_000 + "}" * 400_000
    assert format_line(deep, time_s=1.0).count("{") > 400_000
    with pytest.raises(LineFormatError, match="do not pair up"):
        format_line("}" + "{" * 400_000, time_s=1.0)


MODEL_MB = 2500
"""A model file of 512 MiB, decoded, and the values that it may hold."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("value", "count"),
    [
        ("[]", 3_999_000),
        ('{"a":0.5}', 3_999_000),
        ("0.25", 15_990_000),
        (f'"{"x" * 500}"', 1 << 20),
    ],
    ids=["lists", "objects", "numbers", "texts"],
)
@pytest.mark.parametrize("key", ["notes", "events"])
def test_a_model_file_of_many_values_is_refused_within_the_bound(
    key: str, value: str, count: int, tmp_path: Path, timings: Path
) -> None:
    """Values of two bytes took 40 times as much memory."""
    model = tmp_path / "model.json"
    before = f'{{"format": "rewritelog model", "version": 3, "{key}": ['
    model.write_text(before + ",".join([value] * count) + "]}")
    done = run_within(MODEL_MB, "predict", model, timings)
    assert done.returncode == 1
    assert "model.json: $" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("value", "message"),
    [("[]", "4,000,002 lists and objects; at most 4,000,000"), ("0", "16,000,001 values")],
)
def test_more_values_than_a_model_file_may_hold_are_refused_before_they_are_read(
    value: str, message: str
) -> None:
    count = 16_000_001 if value == "0" else 4_000_001
    with pytest.raises(ModelError, match=f"^m.json: holds {message}"):
        parse_model("[" + ",".join([value] * count) + "]", "m.json")


def with_many_events(folder: Path, count: int) -> Path:
    """Write a log of one SEB with as many marks."""
    single, double = (
        write_logs(folder / f"{n}", [[seb(0, 1, events=[mark(b"start\0", 0.5)] * n)]]) / "bgTrace0"
        for n in (1, 2)
    )
    event = double.stat().st_size - single.stat().st_size
    raw = bytearray(single.read_bytes())
    at = raw.index(b"start\0") + len(b"start\0") - event
    raw[at - 4 : at] = count.to_bytes(4, "little")
    (single.parent / "bgTrace0").write_bytes(
        raw[:at] + raw[at : at + event] * count + raw[at + event :]
    )
    return single.parent


@pytest.mark.long
@pytest.mark.parametrize("kind", [[], ["--json"]])
def test_a_seb_of_any_size_is_dumped_in_little_memory(kind: list[str], tmp_path: Path) -> None:
    """As lists, its 100,000 events would take 60 MB."""
    logs = with_many_events(tmp_path, 100_000)
    done = run_within(16 - IDLE_MB + DUMP_IDLE_MB, "dump", logs, "--pe", 0, *kind)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"start"') == 100_000


TIMELINES_MB = 128
"""Some blocks of 16 MB and the PEs' sums, on one thread."""


@pytest.mark.long
def test_timelines_of_any_size_are_rewritten_in_little_memory(tmp_path: Path) -> None:
    logs = tmp_path / "in"
    write_many(logs, 1, files=2, times=10, workers=4, sebs=25_000)
    assert sum(path.stat().st_size for path in logs.iterdir()) > 200 << 20
    done = run_within(TIMELINES_MB, "rewrite", logs, "--dry-run", "--dilation", 2, "--jobs", 1)
    assert done.returncode == 0, done.stderr


HEAD_MB = 16 + 64
"""16 bytes for each of 4 million timelines, and what any command takes."""


@pytest.mark.long
def test_a_head_takes_little_memory_for_each_timeline_that_it_claims(tmp_path: Path) -> None:
    """A sparse file has room for as many timelines as it likes."""
    logs = write_logs(tmp_path / "in", [[seb(0, 1)]])
    head = (logs / "bgTrace0").read_bytes()[:16]
    timelines = 4_000_000
    with (logs / "bgTrace0").open("wb") as file:
        file.write(head + timelines.to_bytes(4, "little"))
        file.truncate(20 + 8 * timelines)
    summary = bytearray((logs / "bgTrace").read_bytes())
    summary[16:20] = summary[20:24] = timelines.to_bytes(4, "little")
    (logs / "bgTrace").write_bytes(summary)
    done = run_within(HEAD_MB, "rewrite", logs, "--dry-run", "--dilation", 2)
    assert done.returncode == 1
    assert "bgTrace0" in done.stderr
    assert len(done.stderr.splitlines()) == 1


LINE_MB = 96
"""Some MB of text, and its scan."""


@pytest.mark.long
@pytest.mark.parametrize("begin", [b"", b"TRACEBIGSIM: event:{ "], ids=["other text", "a name"])
def test_a_line_without_an_end_is_not_held(begin: bytes, tmp_path: Path) -> None:
    path = tmp_path / "timings"
    with path.open("wb") as file:
        file.write(begin)
        for _ in range(300):
            file.write(b"x" * (1 << 20))
    done = run_within(LINE_MB, "fit", path)
    assert done.returncode == 1
    assert "no timing line found" in done.stderr


COEFFICIENTS_MB = 640
"""16 MiB of text with a line of some ten characters for each event."""


@pytest.mark.long
@pytest.mark.parametrize("numbers", [1, 41])
def test_a_file_of_coefficients_takes_bounded_memory(
    numbers: int, sample_logs: Path, tmp_path: Path
) -> None:
    path = tmp_path / "coefficients"
    values = " 1" * numbers + "\n"
    lines = ((16 << 20) - 64) // (len(values) + len("e100000"))
    path.write_text("".join(f"e{number:x}{values}" for number in range(lines)))
    words = ("rewrite", sample_logs / "cells", "--dry-run", "--model", "coefficients")
    done = run_within(COEFFICIENTS_MB, *words, "--coefficients", path)
    assert done.returncode == 0, done.stderr


FORMULAS_MB = 64
"""200,000 characters, as the objects that they say."""

TEXTS = {
    "lists": ("--formulas", "a = [\n" + "[],\n" * 49_000 + "]"),
    "terms": ("--formulas", 'k = """p1\n' + "+p1\n" * 49_000 + '"""'),
    "names": ("--param-names", "a = [" + "[],\n" * 49_000 + "]"),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", TEXTS)
def test_texts_that_models_are_made_with_take_a_bounded_memory(
    kind: str, tmp_path: Path, timings: Path
) -> None:
    option, text = TEXTS[kind]
    path = tmp_path / "text"
    path.write_text(text)
    done = run_within(FORMULAS_MB, "fit", timings, option, path)
    assert done.returncode == 1
    assert f"{path}:1:" in done.stderr
    assert len(done.stderr.splitlines()) == 1
