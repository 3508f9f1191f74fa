"""What people type first: names in place of files, numbers without units, folders not made yet."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import rewritelog as run
from logbuilder import seb, write_logs, write_timings

from rewritelog.replaying.network import read_machine


@pytest.fixture
def timings(tmp_path: Path) -> Path:
    lines = [("Cell::work", 1e-6 * n * m, float(n), float(m)) for n in range(1, 9) for m in (1, 5)]
    return write_timings(tmp_path / "timings.txt", *lines)


@pytest.fixture
def model(timings: Path, tmp_path: Path) -> Path:
    assert run("fit", timings, "-o", tmp_path / "model.json", "-q").returncode == 0
    return tmp_path / "model.json"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return write_logs(tmp_path / "in", [[seb(0, 1), seb(1, 3)]])


def test_the_time_of_one_call_is_predicted_from_its_parameters(model: Path) -> None:
    done = run("predict", model, "Cell::work", "4", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Cell::work(p1 = 4, p2 = 3): 12.00 µs")
    named = run("predict", model, "Cell::work", "p2=3", "p1=4", "--json")
    assert json.loads(named.stdout)["predicted_s"] == pytest.approx(12e-6, rel=1e-3)


def test_a_call_is_told_from_files_by_what_follows_the_event(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of the event's name was taken for a file of records."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Cell::work").mkdir()
    assert run("predict", model, "Cell::work", "4", "3").returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("Cell::work", "4"), "1 parameter given, but the model has Cell::work(p1, p2)"),
        (("Cell::work", "4", "x=3"), "x is not a parameter; it has p1, p2"),
        (("Cell::work", "4", "p1=3"), "p1 is given twice"),
        (("Cell::work", "4", "many"), "p2: 'many' is not a number"),
        (("Cell::work", "4", "p2=6_4"), "p2: '6_4' is not a number"),
        (("Cell::wrok", "4", "3"), "neither a file nor an event of"),
    ],
)
def test_a_call_that_cannot_be_predicted(model: Path, words: tuple[str, ...], message: str) -> None:
    done = run("predict", model, *words)
    assert done.returncode in (1, 2)
    assert message in done.stderr


def test_a_negative_parameter_needs_no_dashes_before_it(model: Path) -> None:
    done = run("predict", model, "--json", "Cell::work", "-4", "-.5e1", "-q")
    assert json.loads(done.stdout)["params"] == [-4, -5]
    assert done.stdout == run("predict", model, "--json", "Cell::work", "--", "-4", "-5").stdout
    assert "no such option: -x" in run("predict", model, "Cell::work", "-x4").stderr


def test_a_model_may_come_through_a_pipe(model: Path) -> None:
    words = [sys.executable, "-m", "rewritelog", "predict", "-", "Cell::work", "4", "3"]
    done = subprocess.run(
        words, input=model.read_text(), capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("Cell::work(p1 = 4, p2 = 3): 12.00 µs")


def test_a_model_in_a_file_of_the_user(timings: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Half:\n"
        "    def fit(self, X, y):\n        self.mean = y.mean() / 2\n        return self\n"
        "    def predict(self, X):\n        return self.mean + 0 * X[:, 0]\n"
    )
    done = run("compare", timings, "--models", f"{tmp_path / 'mine.py'}:Half")
    assert (done.returncode, done.stderr) == (0, "")
    assert "mine.py:Half" in done.stdout
    missing = run("compare", timings, "--models", f"{tmp_path / 'mine.py'}:Other")
    assert "has no attribute 'Other'" in missing.stderr


def test_machines_are_known_by_name(logs: Path) -> None:
    network = json.loads(run("replay", logs, "--machine", "cray-xe6", "--json").stdout)["network"]
    assert (network["name"], network["latency_s"]) == ("Cray XE6 (Gemini)", 1.4e-6)
    done = run("replay", logs, "--machine", "cray")
    assert done.returncode == 1
    assert "cray: does not exist, and is no known machine; known: alps, azure-hbv4, " in done.stderr


@pytest.mark.parametrize(
    ("name", "latency_s", "bandwidth_bytes_per_s"),
    [
        ("alps", 3e-6, 24e9),
        ("azure-hbv4", 2e-6, 50e9),
        ("oci-optimized3", 1.68e-6, 12.25e9),
        ("piz-daint", 1.11e-6, 9.7e9),
    ],
)
def test_newer_machines_have_what_their_sources_say(
    name: str, latency_s: float, bandwidth_bytes_per_s: float
) -> None:
    machine = read_machine(name)
    assert machine.latency == pytest.approx(latency_s)
    assert machine.bandwidth == pytest.approx(bandwidth_bytes_per_s)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--latency", "1"), "--latency: '1' has no unit: write 1us or 1s"),
        (("--bandwidth", "10"), "--bandwidth: '10' has no unit: write 10GB/s or 10Gbit/s"),
        (("--bandwidth", "1e9"), "--bandwidth: '1e9' has no unit: write 1e9B/s or 1e9bit/s"),
        (("--bandwidth", "10Gx"), "'10Gx' is not a bandwidth: a number with one of B/s"),
    ],
)
def test_a_quantity_without_a_unit_is_refused(
    logs: Path, words: tuple[str, str], message: str
) -> None:
    done = run("replay", logs, *words)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("text", "bytes_per_s"), [("10GBps", 1e10), ("10Gb/s", 1.25e9), ("80Gbps", 1e10), ("inf", None)]
)
def test_spellings_of_a_bandwidth(logs: Path, text: str, bytes_per_s: float | None) -> None:
    done = run("replay", logs, "--bandwidth", text, "--json")
    assert json.loads(done.stdout)["network"]["bandwidth_bytes_per_s"] == bytes_per_s


def test_folders_above_an_output_are_made_if_it_is_written(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    assert run("rewrite", logs, out, "--dilation", "2").returncode == 0
    assert (out / "bgTrace").exists()
    (logs / "bgTrace0").write_bytes(b"damaged")
    assert run("rewrite", logs, tmp_path / "d" / "e", "--dilation", "2").returncode == 1
    assert not (tmp_path / "d").exists()


def test_an_output_in_the_way_is_found_before_the_fit(logs: Path, tmp_path: Path) -> None:
    torn = tmp_path / "torn.txt"
    torn.write_text("no timing line\n")
    done = run("rewrite", logs, logs.parent, "--timings", torn, "--dilation", "1")
    assert "the output would replace its own input" in done.stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    done = run("rewrite", logs, tmp_path / "full", "--timings", torn, "--dilation", "1")
    assert "exists and is not empty (--force replaces it)" in done.stderr


def test_help_is_a_command_too() -> None:
    assert run("help").stdout == run("--help").stdout
    assert run("help", "fit").stdout == run("fit", "--help").stdout
    assert run("help", "fti").returncode == 2


def test_a_time_beyond_the_logs_is_not_drawn(logs: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = run("timeline", logs, "-o", tmp_path / "t.svg", "--from", "4", "--until", "5000ms")
    assert done.returncode == 2
    assert "nothing to draw from 4.000 to 5.000 s: the logs last from 0" in done.stderr
    assert not (tmp_path / "t.svg").exists()
    done = run("timeline", logs, "-o", tmp_path / "t.svg", "--from", "4 hours")
    assert "--from: '4 hours' is not a time: a number with one of s, ms, us or ns" in done.stderr
