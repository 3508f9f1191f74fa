"""How a command ends: by signals, with pipes that close, and with outputs that are full."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from itertools import product
from pathlib import Path

import commands
import pytest
from chosen import by_tier
from faulty import HANGS_S, SCRIPT, content
from logbuilder import bracket, seb, write_logs, write_timings
from oracle import SAMPLE_LOGS

CELLS = SAMPLE_LOGS / "cells"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

pytestmark = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="the system has no device that is full"
)

SLOW_MODEL = textwrap.dedent("""
    import os, time

    class Slow:
        def fit(self, X, y):
            open(os.environ["STARTED"], "w").close()
            try:
                time.sleep(60)
            except BaseException:
                if os.environ.get("SWALLOWS"):
                    return self
                raise
        def predict(self, X):
            return X[:, 0]

    class Odd:
        def fit(self, X, y):
            raise {"exit": SystemExit(0), "keys": KeyboardInterrupt(),
                   "odd": BaseException("odd"), "close": GeneratorExit()}[os.environ["RAISES"]]
        def predict(self, X):
            return X[:, 0]
""")


@pytest.fixture(autouse=True)
def _interrupts_reach_commands() -> None:
    """A signal that this process ignores, as in the background of a shell, its children ignore."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "slow.py").write_text(SLOW_MODEL)
    timelines = [[seb(k, k + 1, events=bracket(0.2, 0.6)) for k in range(20)]]
    write_logs(tmp_path / "in", timelines)
    write_timings(tmp_path / "timings", *[("k", 1.0 + n, float(n)) for n in range(20)])
    return tmp_path


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The environment in which a folder's modules are found, before those of this process."""
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "STARTED": str(folder / "started"), **more}


COMMANDS = {
    "rewrite": ["rewrite", "in", "out", "--model", "slow:Slow", "--timings", "timings"],
    "fit": ["fit", "timings", "--model", "slow:Slow", "-o", "model.json"],
    "compare": ["compare", "timings", "--models", "slow:Slow,auto"],
}


@pytest.mark.parametrize(
    ("command", "number", "swallows"),
    by_tier(
        [
            *product(COMMANDS, SIGNALS, ["1"]),
            ("rewrite", signal.SIGTERM, ""),
            ("fit", signal.SIGHUP, ""),
            ("compare", signal.SIGINT, ""),
        ],
        [("rewrite", signal.SIGTERM, "1"), ("fit", signal.SIGHUP, "")],
        [("rewrite", signal.SIGTERM, ""), ("compare", signal.SIGINT, "")],
    ),
)
def test_a_signal_in_a_fit_is_no_error_of_the_model(
    command: str, number: signal.Signals, swallows: str, work: Path
) -> None:
    before = {path.name for path in work.iterdir()}
    process = subprocess.Popen(
        [SCRIPT, *COMMANDS[command]],
        cwd=work,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environment(work, SWALLOWS=swallows),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not (work / "started").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    out, errors = process.communicate(timeout=HANGS_S)
    assert process.returncode == 128 + number
    ending = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    assert (out, errors) == ("", f"rewritelog: {ending}\n")
    assert {path.name for path in work.iterdir()} - {"__pycache__"} == before | {"started"}


SIGNAL_BEFORE_THE_BLOCK = textwrap.dedent("""
    import contextlib, os, signal

    enter = contextlib._GeneratorContextManager.__enter__

    def enter_and_get_a_signal(self):
        entered = enter(self)
        if self.gen.__name__ == os.environ["ENTERED"]:
            os.kill(os.getpid(), signal.SIGTERM)
        return entered

    contextlib._GeneratorContextManager.__enter__ = enter_and_get_a_signal
""")


def test_a_signal_between_making_a_folder_and_using_it_leaves_none(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SIGNAL_BEFORE_THE_BLOCK)
    (tmp_path / "work").mkdir()
    done = subprocess.run(
        [SCRIPT, "rewrite", CELLS, tmp_path / "work" / "out", "--dilation", "2"],
        env=environment(tmp_path / "site", ENTERED="new_folder"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        128 + signal.SIGTERM,
        "rewritelog: ended by SIGTERM\n",
    )
    assert list((tmp_path / "work").iterdir()) == []


def test_sighup_leaves_neither_lock_nor_draft(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [SCRIPT, "synth", tmp_path / "out", "--pes", "64"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not any(path.name.startswith(".out.rewritelog-") for path in tmp_path.iterdir()):
        if process.poll() is not None:
            pytest.skip("the command was done before the signal was sent")
        time.sleep(0.001)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=HANGS_S)
    assert process.returncode in (0, -signal.SIGHUP, 128 + signal.SIGHUP)
    assert {path.name for path in tmp_path.iterdir()} <= {"out"}


def test_what_the_caller_ignores_stays_ignored(tmp_path: Path) -> None:
    """As nohup ignores SIGHUP."""
    code = "from rewritelog.stopping import stop_on_signals; stop_on_signals(); import os, signal; "
    code += "os.kill(os.getpid(), signal.SIGHUP); print('here')"
    words = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout == "here\n"


def test_a_signal_in_a_finaliser_is_not_lost() -> None:
    """Python prints what a finaliser raises, and goes on."""
    code = textwrap.dedent("""
        import os, signal, time, weakref
        from rewritelog.stopping import Stopped, stop_on_signals
        class Object: pass
        stop_on_signals()
        one = Object()
        reference = weakref.ref(one, lambda _: os.kill(os.getpid(), signal.SIGTERM))
        try:
            del one
            time.sleep(30)
        except Stopped as reason:
            print(reason)
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("ended by SIGTERM\n", "")


def test_processes_that_a_model_forks_end_as_any_others() -> None:
    """A pool of `multiprocessing` ends its processes with SIGTERM."""
    code = textwrap.dedent("""
        import multiprocessing
        from rewritelog.stopping import stop_on_signals
        stop_on_signals()
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(abs, [-1, -2]))
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[1, 2]\n", "")


def test_a_process_that_has_just_been_forked_ends_as_any_other() -> None:
    """A signal between the fork and the change of its handlers ended it with lines on stderr."""
    code = textwrap.dedent("""
        import os, signal
        from rewritelog.stopping import stop_on_signals
        os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGTERM))
        stop_on_signals()
        if not (process := os.fork()):
            raise SystemExit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{-signal.SIGTERM}\n", "")


@pytest.mark.long
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_at_any_moment_from_the_start_ends_as_such(
    number: signal.Signals, work: Path
) -> None:
    """Python itself has some milliseconds in which it answers SIGINT with lines of its own."""
    words = [str(SCRIPT), "check", "in"]
    began = time.perf_counter()
    subprocess.run(words, cwd=work, check=True, capture_output=True)
    usual_s = time.perf_counter() - began
    for step in range(40):
        process = subprocess.Popen(
            words, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        time.sleep(0.1 + step / 40 * usual_s)
        process.send_signal(number)
        _, errors = process.communicate(timeout=HANGS_S)
        if number == signal.SIGINT and process.returncode == 1:
            assert "KeyboardInterrupt" in errors  # Python's own
            assert "process.py" not in errors
            continue
        assert process.returncode in (0, -number, 128 + number)
        if process.returncode == 128 + number:
            assert len(errors.splitlines()) == 1


@pytest.mark.parametrize("raised", by_tier(["exit", "keys", "odd", "close"], ["odd"]))
def test_whatever_a_plug_in_raises_is_its_error(raised: str, work: Path) -> None:
    done = subprocess.run(
        [SCRIPT, "fit", "timings", "--model", "slow:Odd"],
        cwd=work,
        capture_output=True,
        env=environment(work, RAISES=raised),
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("rewritelog: error: model 'slow:Odd'")
    assert len(done.stderr.splitlines()) == 1


PRINTING: dict[str, list[str | Path]] = {
    "info": ["info", CELLS],
    "check": ["check", CELLS],
    "dump": ["dump", CELLS, "--pe", "0"],
    "diff": ["diff", CELLS, CELLS],
    "help": ["--help"],
    "rewrite": ["rewrite", CELLS, "--dry-run", "--dilation", "2"],
}

SOME_PRINTING = by_tier(PRINTING, ["diff"], ["info", "help"])


@pytest.mark.parametrize("name", SOME_PRINTING)
def test_a_full_standard_output_is_one_line_and_no_answer(name: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [SCRIPT, *PRINTING[name]], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == (2 if name == "diff" else 1)
    problem = "standard output cannot be written: No space left on device"
    assert done.stderr == f"rewritelog: error: {problem}\n"


def test_a_model_is_not_written_to_a_closed_standard_output() -> None:
    """It was said to be open for reading only: so is what stands in its place."""
    words = f"'{SCRIPT}' fit '{CELLS / 'timings.txt'}' -o - >&-"
    done = subprocess.run(["sh", "-c", words], stderr=subprocess.PIPE, text=True, check=False)
    problem = "/dev/stdout: cannot be written: it is closed"
    assert (done.returncode, done.stderr) == (1, f"rewritelog: error: {problem}\n")


@pytest.mark.parametrize("name", SOME_PRINTING)
def test_a_closed_pipe_is_silence(name: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [SCRIPT, *PRINTING[name]], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_files_are_written_although_the_report_cannot_be_printed(tmp_path: Path) -> None:
    """They were lost when `less` was left before the end of a long report."""
    words = f"'{SCRIPT}' info '{CELLS}' --report r.json >/dev/full"
    done = subprocess.run(["sh", "-c", words], cwd=tmp_path, stderr=subprocess.DEVNULL, check=False)
    assert done.returncode == 1
    assert {path.name for path in tmp_path.iterdir()} == {"r.json"}


@pytest.mark.slow
def test_a_closed_standard_output_is_no_place_for_a_file(tmp_path: Path) -> None:
    """Else the first file that is opened would have its number, and the report."""
    words = f"'{SCRIPT}' rewrite '{CELLS}' '{tmp_path / 'out'}' --dilation 2 >&-"
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert (
        done.stderr == "rewritelog: error: standard output cannot be written: Bad file descriptor\n"
    )
    fine: list[str | Path] = [
        SCRIPT,
        "rewrite",
        CELLS,
        tmp_path / "again",
        "--dilation",
        "2",
        "--quiet",
    ]
    subprocess.run(fine, check=True)
    assert content(tmp_path / "out") == content(tmp_path / "again")


CLOSED = ["2>&-", "0<&- 2>&-", "2>/dev/full"]


@pytest.mark.parametrize("closed", by_tier(CLOSED, [], CLOSED[-1:]))
def test_messages_that_nobody_can_read_stop_nothing(closed: str, tmp_path: Path) -> None:
    for words, code in ((f"info '{CELLS}'", 0), ("info nowhere", 1), ("nonsense", 2)):
        done = subprocess.run(
            ["sh", "-c", f"'{SCRIPT}' {words} {closed}"], stdout=subprocess.DEVNULL, check=False
        )
        assert done.returncode == code


RANKS = {"PMI_RANK": "0", "PMI_SIZE": "3"}


@pytest.mark.parametrize(("rank", "notes"), by_tier([("0", 1), ("1", 0)], [("0", 1)], [("1", 0)]))
def test_ranks_without_the_engine_mpi_are_told_once(rank: str, notes: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [SCRIPT, "rewrite", CELLS, tmp_path / rank, "--dilation", "2", "--quiet"],
        env={**os.environ, **RANKS, "PMI_RANK": rank},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.count("each of 3 ranks does this rewrite on its own") == notes


def test_ranks_are_told_of_commands_that_they_cannot_share() -> None:
    """Each of them did the work, and wrote the outputs, without a word."""
    timings = CELLS / "timings.txt"
    told = "each of 3 ranks does this stats on its own; one rank is enough"
    assert told in commands.rewritelog("stats", timings, env=RANKS).stderr
    assert commands.rewritelog("completion", "bash", env=RANKS).stderr == ""


@pytest.mark.parametrize("rank", ["0", "1"])
@pytest.mark.parametrize(
    "wrong", by_tier([["--nonsense"], ["--jobs", "2"]], [["--jobs", "2"]], [["--nonsense"]])
)
def test_wrong_usage_of_ranks_is_said_once(rank: str, wrong: list[str]) -> None:
    done = subprocess.run(
        [SCRIPT, "rewrite", "in", "out", "--engine", "mpi", *wrong],
        env={**os.environ, **RANKS, "PMI_RANK": rank},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert bool(done.stderr) == (rank == "0")


@pytest.mark.parametrize(
    ("module", "becomes"),
    [
        ("rewritelog.cli.app", "stop"),
        ("rewritelog.cli.app", "SyntaxError('a name of a character') from stop"),
        ("unicodedata", "stop"),
    ],
)
@pytest.mark.parametrize(("ranks", "code"), [(1, 143), (3, -signal.SIGTERM)])
def test_a_signal_during_the_first_imports_ends_a_rank_by_that_signal(
    ranks: int, code: int, module: str, becomes: str, tmp_path: Path
) -> None:
    """Launchers notice no other end of a rank that MPI does not know, and the others waited.

    Python imports `unicodedata` to compile some texts, and made a SyntaxError of the signal.
    """
    script = textwrap.dedent(f"""
        import os, signal, sys
        from rewritelog.cli import main
        class Signals:
            def find_spec(self, name, *_):
                if name == {module!r}:
                    try:
                        os.kill(os.getpid(), signal.SIGTERM)
                    except BaseException as stop:
                        raise {becomes}
        sys.meta_path.insert(0, Signals())
        sys.argv = ["rewritelog", "check", "none", "--engine", "mpi"]
        main()
    """)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False,
        env={**os.environ, "PMI_RANK": "0", "PMI_SIZE": str(ranks),
             "PYTHONPYCACHEPREFIX": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (code, "rewritelog: ended by SIGTERM\n")


@pytest.mark.parametrize("launcher", [{}, {"OMPI_COMM_WORLD_RANK": "0"}], ids=str)
def test_headings_are_plain_on_the_terminal_that_open_mpi_gives_to_ranks(
    launcher: dict[str, str],
) -> None:
    """Its `mpiexec … > report.txt` left escape sequences in the file."""
    ours, theirs = os.openpty()
    subprocess.run(
        [SCRIPT, "info", CELLS], stdout=theirs, check=True, timeout=HANGS_S,
        env={**os.environ, **launcher, "TERM": "xterm", "NO_COLOR": ""},
    )  # fmt: skip
    assert os.read(ours, 10_000).startswith(b"\x1b[1m") != bool(launcher)
    os.close(ours)
    os.close(theirs)
