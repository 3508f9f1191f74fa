"""The command as a user runs it: what it prints, and its exit codes."""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import sysconfig
import termios
import textwrap
import time
from pathlib import Path

import commands
import pytest
from chosen import by_tier
from commands import Done
from faulty import HANGS_S
from logbuilder import bracket, seb, write_logs, write_params, write_timings

COMMAND = Path(sysconfig.get_path("scripts")) / "rewritelog"

run = commands.rewritelog


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    timeline = [seb(k, k + 1, events=bracket(0.25, 0.75)) for k in range(3)]
    folder = write_logs(tmp_path / "in", [timeline, timeline])
    for pe in (0, 1):
        write_params(folder, pe, *[(k, "k", k + 1) for k in range(3)])
    return folder


@pytest.fixture
def timings(tmp_path: Path) -> Path:
    return write_timings(tmp_path / "timings.txt", *[("k", 2.0 * n, float(n)) for n in range(1, 9)])


def failed(done: Done, code: int, *words: str) -> None:
    assert done.returncode == code, done.stderr
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_help_is_quick_and_whole() -> None:
    done = run("--help")
    assert done.returncode == 0
    for command in ("rewrite", "fit", "predict", "verify", "compare", "info", "dump", "synth"):
        assert command in done.stdout
        assert run(command, "--help").returncode == 0


WORDS = [["info", "LOGS"], ["info", "nowhere"], ["info"], ["--version"]]


@pytest.mark.parametrize("words", by_tier(WORDS, WORDS[:1], WORDS), ids=str)
def test_the_installed_command_is_the_one_that_these_tests_call(
    words: list[str], logs: Path
) -> None:
    arguments = [str(logs) if word == "LOGS" else word for word in words]
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)
    called = run(*arguments)
    assert (done.returncode, done.stdout) == (called.returncode, called.stdout)
    assert done.stderr == called.stderr


def test_help_imports_nothing_heavy() -> None:
    code = textwrap.dedent("""
        import sys
        from rewritelog.cli.app import run
        sys.argv = ["rewritelog", "--help"]
        run()
        heavy = ("numpy", "scipy", "construct", "tqdm", "rewritelog.models")
        print([name for name in heavy if name in sys.modules])
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")


def test_text_that_cannot_be_printed_is_an_error() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "rewritelog", "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "No space left" in done.stderr


def test_version() -> None:
    assert run("--version").stdout.startswith("rewritelog ")


def test_constant(logs: Path, tmp_path: Path) -> None:
    done = run("rewrite", logs, tmp_path / "out", "--dilation", "0.5")
    assert done.returncode == 0, done.stderr
    assert "Predicted run time: 3.000 s → 1.500 s, 2 × faster, on 2 PEs" in done.stdout
    assert done.stderr == ""
    assert (tmp_path / "out/bgTrace0").exists()


def test_speedup_says_the_same_as_dilation(logs: Path, tmp_path: Path) -> None:
    run("rewrite", logs, tmp_path / "a", "--dilation", "0.5")
    run("rewrite", logs / "bgTrace", tmp_path / "b", "--speedup", "2")
    assert (tmp_path / "a/bgTrace0").read_bytes() == (tmp_path / "b/bgTrace0").read_bytes()


def test_least_squares_and_its_json_report(logs: Path, timings: Path, tmp_path: Path) -> None:
    done = run(
        "rewrite",
        logs,
        tmp_path / "out",
        "--model",
        "least-squares",
        "--timings",
        timings,
        "--basis",
        "linear",
        "--report",
        tmp_path / "report.json",
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["model"]["name"] == "least-squares"
    assert report["model"]["options"]["basis"] == "linear"
    assert report["counts"]["by_model"] == 6
    assert report["durations_s"]["bracketed_new"] == pytest.approx(2 * (2 + 4 + 6))
    assert report["events"][0]["event"] == "k"
    assert {"rewritelog", "numpy"} <= report["versions"].keys()


def test_sampled(logs: Path, timings: Path, tmp_path: Path) -> None:
    done = run(
        "rewrite",
        logs,
        tmp_path / "out",
        "--model",
        "sampled",
        "--timings",
        timings,
        "--fraction",
        "0.5",
        "--seed",
        "7",
        "--dilation",
        "1",
        "--quiet",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_option_of_the_model_wins_over_the_seed_of_all_draws(
    logs: Path, timings: Path, tmp_path: Path
) -> None:
    """Without a spread there is one draw, and `--seed` had no effect beside the option."""
    model = ("--model", "sampled", "--timings", timings, "--seed", "3", "--dry-run")
    own, spread = ("--model-option", "seed=5"), ("--spread", "residual")
    failed(run("rewrite", logs, *model, *own), 2, "--seed and the model option 'seed' differ")
    for options, used in (((*own, *spread), 5), (spread, 3), ((), 3)):
        done = run("rewrite", logs, *model, *options, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["model"]["options"]["seed"] == used


def test_dry_run_writes_nothing(logs: Path, tmp_path: Path) -> None:
    done = run("rewrite", logs, "--dry-run", "--dilation", "2")
    assert done.returncode == 0
    assert "dry run" in done.stdout
    assert {p.name for p in tmp_path.iterdir()} == {"in"}


@pytest.mark.parametrize(
    ("args", "word"),
    [
        ([], "OUT"),
        (["OUT", "--dry-run"], "--dry-run"),
        (["OUT", "--dilation", "0"], "above 0"),
        (["OUT", "--dilation", "-1"], "above 0"),
        (["OUT", "--dilation", "nan"], "finite"),
        (["OUT", "--dilation", "inf"], "finite"),
        (["OUT", "--speedup", "0"], "above 0"),
        (["OUT", "--speedup", "2", "--dilation", "0.5"], "not both"),
        (["OUT", "--dilation", "fast"], "--dilation"),
        (["OUT", "--dilation-for", "name"], "NAME=VALUE"),
        (["OUT", "--dilation-for", "name=x"], "not a number"),
        (["OUT", "--dilation-for", "name=-2"], "above 0"),
        (["OUT", "--recv", "drop"], "--recv"),
        (["OUT", "--jobs", "-1"], "jobs"),
        (
            ["OUT", "--model", "nonsense"],
            "counters, least-squares",
        ),
        (["OUT", "--model", "least-squares"], "is fitted to timing lines: give some"),
        (["OUT", "--model", "constant", "--timings", "TIMINGS"], "takes no timings"),
        (["OUT", "--dilation", "2", "--clock-hz", "1e9"], "--clock-hz is for timings"),
        (["OUT", "--dilation", "2", "--param-names", "TIMINGS"], "--param-names is for timings"),
        (["OUT", "--basis", "linear"], "basis"),
        (["OUT", "--basis", "cubic"], "--basis"),
        (["OUT", "--model", "sampled", "--timings", "TIMINGS", "--fraction", "2"], "fraction"),
        (["OUT", "--model-option", "seed"], "NAME=VALUE"),
        (["OUT", "--clock-hz", "0"], "clock"),
        (["OUT", "--no-such-flag"], "--no-such-flag"),
    ],
    ids=str,
)
def test_wrong_usage_exits_with_2(
    args: list[str], word: str, logs: Path, timings: Path, tmp_path: Path
) -> None:
    places = {"OUT": tmp_path / "out", "TIMINGS": timings}
    failed(run("rewrite", logs, *(places.get(arg, arg) for arg in args)), 2, word)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "meant"),
    [("helpp", "'help'"), ("rewrte", "'rewrite'"), ("simulate", "")],
)
def test_the_nearest_command_is_suggested(name: str, meant: str) -> None:
    done = run(name, "x")
    assert done.returncode == 2
    suggestion = f"; did you mean {meant}?" if meant else ""
    first, second = done.stderr.splitlines()
    assert first == f"rewritelog: error: no such command '{name}'{suggestion}"
    assert second == "Try 'rewritelog --help' for help."


def test_help_is_a_command_too() -> None:
    overview, of_fit = run("--help").stdout, run("fit", "--help").stdout
    assert overview != of_fit
    for words in (("help",), ("help", "help"), ("--debug", "help")):
        assert run(*words).stdout == overview
    assert run("help", "fit").stdout == run("--debug", "help", "fit").stdout == of_fit


def test_everything_else_exits_with_1(logs: Path, tmp_path: Path) -> None:
    failed(run("rewrite", tmp_path / "nowhere", tmp_path / "out"), 1, "nowhere: does not exist")
    failed(run("rewrite", tmp_path, tmp_path / "out"), 1, "no log set here")
    failed(run("rewrite", logs, logs, "--force"), 1, "replace its own input")
    failed(run("rewrite", logs, tmp_path), 1, "would replace its own input")
    failed(
        run(
            "rewrite",
            logs,
            tmp_path / "out",
            "--model",
            "least-squares",
            "--timings",
            tmp_path / "none",
        ),
        1,
        "none: does not exist",
    )
    (logs / "bgTrace0").write_bytes((logs / "bgTrace0").read_bytes()[:-3])
    failed(run("rewrite", logs, tmp_path / "out"), 1, "bgTrace0, byte", "PE 1", "SEB 2")
    assert not (tmp_path / "out").exists()


def test_debug_shows_where_an_error_comes_from(tmp_path: Path) -> None:
    done = run("--debug", "rewrite", tmp_path / "nowhere", tmp_path / "out")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def timing_error(logs: Path, tmp_path: Path, text: bytes, *flags: object) -> str:
    (tmp_path / "t").write_bytes(text)
    done = run(
        "rewrite",
        logs,
        tmp_path / "out",
        "--model",
        "least-squares",
        "--timings",
        tmp_path / "t",
        *flags,
    )
    failed(done, 1)
    return done.stderr


def test_timings_that_cannot_be_used(logs: Path, tmp_path: Path) -> None:
    good = b"TRACEBIGSIM: event:{ k } time:{ 1 } params:{ 1 }\n"
    assert "no timing line found" in timing_error(logs, tmp_path, b"just output\n")
    cycles = b"TRACEBIGSIM: event:{ k } time_in_cycles:{ 100 } params:{ 1 }\n"
    assert "t:2: the time is in cycles" in timing_error(logs, tmp_path, good + cycles)
    torn = good + b"TRACEBIGSIM: event:{ k } time:{ 1 } par\n"
    assert "t:2: " in timing_error(logs, tmp_path, torn, "--strict")
    nan = good + b"TRACEBIGSIM: event:{ k } time:{ nan } params:{ 1 }\n"
    assert "t:2: " in timing_error(logs, tmp_path, nan, "--strict")
    assert "gzip" in timing_error(logs, tmp_path, b"\x1f\x8b broken")


def test_cycles_with_a_clock(logs: Path, tmp_path: Path) -> None:
    lines = [
        f"TRACEBIGSIM: event:{{ k }} time_in_cycles:{{ {n}e9 }} params:{{ {n} }}" for n in (1, 2, 3)
    ]
    (tmp_path / "t").write_text("\n".join(lines))
    done = run(
        "rewrite",
        logs,
        tmp_path / "out",
        "--model",
        "least-squares",
        "--timings",
        tmp_path / "t",
        "--clock-hz",
        "2e9",
        "--basis",
        "linear",
        "--report",
        tmp_path / "r.json",
    )
    assert done.returncode == 0, done.stderr
    durations = json.loads((tmp_path / "r.json").read_text())["durations_s"]
    assert durations["bracketed_new"] == pytest.approx(2 * (0.5 + 1 + 1.5))


def test_malformed_timings_are_warned_of(logs: Path, timings: Path, tmp_path: Path) -> None:
    with timings.open("a") as file:
        file.write("TRACEBIGSIM: event:{ k } time:{ 1\n")
        file.write("TRACEBIGSIM: event:{ k } time:{ 1 } params:{ 1 2 }\n")
    done = run("rewrite", logs, "--dry-run", "--model", "least-squares", "--timings", timings)
    assert done.returncode == 0
    assert "warning: 1 malformed timing line left out" in done.stderr
    assert "timings.txt:9: " in done.stderr
    assert "different numbers of parameters" in done.stderr


def test_the_report_never_replaces_an_input(logs: Path, timings: Path, tmp_path: Path) -> None:
    for report in (timings, logs / "bgTrace0"):
        before = report.read_bytes()
        done = run(
            "rewrite",
            logs,
            tmp_path / "out",
            "--model",
            "least-squares",
            "--timings",
            timings,
            "--report",
            report,
        )
        failed(done, 1, "would replace an input")
        assert report.read_bytes() == before


def test_the_program_of_a_model_is_never_replaced(
    logs: Path, timings: Path, tmp_path: Path
) -> None:
    """A user's own file became a model file, a report, or vanished with the old OUT."""
    (tmp_path / "out").mkdir()
    program = tmp_path / "out" / "mine.py"
    text = (
        "from rewritelog.models.least_squares import LeastSquares\nclass Mine(LeastSquares): 'x'\n"
    )
    program.write_text(text)
    model, given = f"{program}:Mine", ("--timings", timings)
    for command in (
        ("fit", timings, "--model", model, "-o", program),
        ("rewrite", logs, tmp_path / "new", *given, "--model", model, "--report", program),
        ("rewrite", logs, tmp_path / "out", *given, "--model", model, "--force"),
        ("compare", timings, "--models", model, "--report", program),
    ):
        failed(run(*command), 1, "the output would replace")
        assert program.read_text() == text


def test_a_report_that_cannot_be_written_at_the_end_says_that_the_logs_are(
    logs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run("rewrite", logs, out, "--dilation", "2", "--report", "/dev/full", "--quiet")
    failed(done, 1, f"No space left on device; {out} is written")
    assert (out / "bgTrace").is_file()
    done = run("sample", logs, "-o", "-", "--report", "/dev/full", "--quiet")
    assert done.stderr.endswith("No space left on device\n")


def test_a_core_that_is_missing_is_one_line(logs: Path) -> None:
    """It was sixty lines of traceback."""
    program = textwrap.dedent("""
        import ctypes, runpy, sys
        plain = ctypes.CDLL
        def load(name, *args, **more):
            return plain(str(name).replace("libcore.so", "missing.so"), *args, **more)
        ctypes.CDLL = load
        sys.argv[1:] = sys.argv[1:] or ["--help"]
        runpy.run_module("rewritelog", run_name="__main__")
    """)
    done = subprocess.run(
        [sys.executable, "-c", program, "check", str(logs)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    failed(done, 1, "the compiled core is missing or unusable")
    assert len(done.stderr.splitlines()) == 1


def test_a_name_cannot_command_the_terminal(tmp_path: Path, timings: Path) -> None:
    folder = write_logs(tmp_path / "in", [[seb(0, 1, name=b"\x1b[2Jevil", events=bracket(0, 1))]])
    (folder / "param.0").write_bytes(b"0 TRACEBIGSIM: event:{ \xc2\x9b31m } params:{ 1 }\n")
    fitted = ("--model", "least-squares", "--timings", timings)
    commands = (
        ("rewrite", folder, "--dry-run", *fitted),
        ("info", folder),
        ("info", folder, "--json"),
        ("dump", folder, "--pe", 0),
    )
    for args in commands:
        done = run(*args)
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout + done.stderr
        assert "\x9b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("number", "code"),
    by_tier(
        [(signal.SIGINT, 130), (signal.SIGTERM, 143)],
        [(signal.SIGTERM, 143)],
        [(signal.SIGINT, 130)],
    ),
)
def test_a_signal_leaves_no_half_set(number: int, code: int, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    assert run("synth", folder, "--pes", 64, "--sebs", 5000).returncode == 0
    process = subprocess.Popen(
        [COMMAND, "rewrite", folder, tmp_path / "out", "--jobs", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not list(tmp_path.glob(".out.*")):
        time.sleep(0.001)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=HANGS_S)
    assert process.returncode in (0, -number, code), stderr
    assert {path.name for path in tmp_path.iterdir()} <= {"in", "out"}
    if (tmp_path / "out").exists():  # the rewrite was done before the signal came
        assert run("diff", folder, tmp_path / "out").returncode == 0
    else:
        assert process.returncode == code


@pytest.mark.parametrize("size", [(25, 80), (0, 0)])  # the latter: a terminal of a container
def test_a_bar_is_shown_on_a_terminal_and_nowhere_else(
    logs: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        for flags, shown in ((["--quiet"], False), ([], True)):
            subprocess.run(
                [COMMAND, "rewrite", logs, tmp_path / "out", "--force", *flags],
                stdout=subprocess.DEVNULL,
                stderr=theirs,
                check=True,
            )
            os.write(theirs, b"end\n")
            assert (b"rewriting" in terminal.read(10_000)) == shown
        os.close(theirs)


def test_standard_input_is_no_file_in_the_output_folder(
    logs: Path, timings: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    options = ["--timings", "-", "--dilation", "1", "--quiet"]
    done = subprocess.run(
        [COMMAND, "rewrite", logs, ".", *options],
        input=timings.read_bytes(),
        cwd=tmp_path / "out",
        capture_output=True,
        check=False,
    )
    message = b"rewritelog: error: .: is or holds the current folder, and would be replaced\n"
    assert done.stderr == message
    assert not [*(tmp_path / "out").iterdir()]
