"""Each reader has one bound on memory (docs/reliability.md): it holds as a limit of the process."""

import gzip
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from faulty import SCRIPT
from logbuilder import bracket, mark, seb, write_logs, write_params, write_timings

from rewritelog.errors import TimingError
from rewritelog.logs import params
from rewritelog.models.base import ModelText
from rewritelog.models.coefficients import parse_coefficients
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.rewriting.run import rewrite
from tracebigsim import LineFormatError, format_line

IDLE_MB = 448
"""What Python, its libraries and the compiled kernels take of a process's data before any input."""

DUMP_IDLE_MB = 100
"""The same of `dump`, which needs no kernels."""

PARAMS_MB = 640
"""Some 16 MB of text and its scan, and the records of a block, once more while they are sorted."""


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
        capture_output=True, text=True, check=False, timeout=300,
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
    options = RewriteOptions("least-squares", timings=(timings,))
    with pytest.raises(TimingError, match=r"param\.0: the records of some SEBs take more than"):
        rewrite(logs, None, options)


def test_small_param_files_read_in_parts_give_the_same(
    tmp_path: Path, timings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = write_logs(tmp_path / "in", [[seb(0, 1, events=bracket(0.2, 0.6))]] * 9)
    for pe in range(9):
        write_params(logs, pe, (0, f"k{pe % 2}", 2.0 + pe), (7, "k", 1.0))
    options = RewriteOptions("least-squares", timings=(timings,))
    whole = rewrite(logs, None, options).to_json()
    monkeypatch.setattr(params, "_TOGETHER_BYTES", 100)
    parts = rewrite(logs, None, options).to_json()
    assert {**parts, "run": None} == {**whole, "run": None}


def test_a_long_run_of_digits_is_read_in_linear_time() -> None:
    """A regular expression that tries each digit twice took 50 s for 40,000 of them."""
    text = ModelText("c", "k " + "1" * 4_000_000 + "x 1 2\n")
    assert list(parse_coefficients(text)) == ["k " + "1" * 4_000_000 + "x"]


def test_a_name_of_nested_braces_is_checked_in_one_pass() -> None:
    deep = "{" * 400_000 + "}" * 400_000
    assert format_line(deep, time_s=1.0).count("{") > 400_000
    with pytest.raises(LineFormatError, match="do not pair up"):
        format_line("}" + "{" * 400_000, time_s=1.0)


def with_many_events(folder: Path, count: int) -> Path:
    """Write a log of one SEB with as many marks."""
    one, two = (
        write_logs(folder / f"{n}", [[seb(0, 1, events=[mark(b"start\0", 0.5)] * n)]]) / "bgTrace0"
        for n in (1, 2)
    )
    event = two.stat().st_size - one.stat().st_size
    raw = bytearray(one.read_bytes())
    at = raw.index(b"start\0") + len(b"start\0") - event
    raw[at - 4 : at] = count.to_bytes(4, "little")
    (one.parent / "bgTrace0").write_bytes(
        raw[:at] + raw[at : at + event] * count + raw[at + event :]
    )
    return one.parent


@pytest.mark.long
@pytest.mark.parametrize("kind", [[], ["--json"]])
def test_a_seb_of_any_size_is_dumped_in_little_memory(kind: list[str], tmp_path: Path) -> None:
    """As lists, its 100,000 events would take 60 MB."""
    logs = with_many_events(tmp_path, 100_000)
    done = run_within(16 - IDLE_MB + DUMP_IDLE_MB, "dump", logs, "--pe", 0, *kind)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"start"') == 100_000
