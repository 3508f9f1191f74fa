"""The engine `mpi`, for real: three ranks, and the same bytes and figures as threads give."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import sysconfig
import textwrap
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from faulty import HANGS_S
from logbuilder import bracket, seb, write_logs, write_params, write_timings

import rewritelog

SCRIPTS = Path(sysconfig.get_path("scripts"))
MPIEXEC = shutil.which("mpiexec", path=str(SCRIPTS)) or shutil.which("mpiexec")

pytestmark = [
    pytest.mark.long,  # ranks wait for each other at full speed
    pytest.mark.skipif(
        find_spec("mpi4py") is None or MPIEXEC is None, reason="mpi4py or mpiexec is not installed"
    ),
]

DRIVER = textwrap.dedent("""
    import json, sys
    from dataclasses import replace
    from pathlib import Path
    import rewritelog
    from rewritelog.commands.durations import RewriteOptions
    from rewritelog.rewriting.run import rewrite
    from rewritelog.running import lead
    folder, engine = Path(sys.argv[1]), sys.argv[2]
    options = RewriteOptions(
        model="least-squares", model_options={"basis": "linear"}, timings=(folder / "timings",),
        dilation=0.5, spread="residual",
    )
    logs = replace(rewritelog.open_logs(folder / "in"), block_bytes=2000)
    report = lead(engine, 0, lambda: rewrite(logs, folder / engine, options))
    if report is not None:
        print(json.dumps(report.to_json()))
""")


def mpi(ranks: int, *command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(MPIEXEC), "-n", str(ranks), *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_S,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    timelines = [
        [seb(k, k + 1 + pe, events=bracket(0.25, 0.75)) for k in range(40)] for pe in range(12)
    ]
    folder = write_logs(tmp_path / "in", timelines, files=3)
    for pe in range(12):
        write_params(folder, pe, *[(k, "k", k + pe) for k in range(0, 40, 3)])
    write_timings(tmp_path / "timings", *[("k", 0.1 + n + n % 7 / 9, float(n)) for n in range(60)])
    return folder


@pytest.mark.parametrize("ranks", [1, 3])
def test_ranks_write_the_bytes_of_threads(ranks: int, logs: Path, tmp_path: Path) -> None:
    reports = {}
    for engine, command in (
        (
            "threads",
            subprocess.run(
                [sys.executable, "-c", DRIVER, str(tmp_path), "threads"],
                capture_output=True,
                text=True,
                check=True,
            ),
        ),
        ("mpi", mpi(ranks, sys.executable, "-c", DRIVER, tmp_path, "mpi")),
    ):
        assert command.returncode == 0, command.stderr
        reports[engine] = json.loads(command.stdout)
        reports[engine] |= {"run": None, "out": None}
    assert reports["mpi"] == reports["threads"]
    written = {path.name: path.read_bytes() for path in (tmp_path / "threads").iterdir()}
    assert set(written) == {"bgTrace", "bgTrace0", "bgTrace1", "bgTrace2", "rewritelog.json"}
    assert {path.name: path.read_bytes() for path in (tmp_path / "mpi").iterdir()} == written


def test_a_rank_that_fails_ends_the_run_and_leaves_nothing(logs: Path, tmp_path: Path) -> None:
    content = (logs / "bgTrace2").read_bytes()
    (logs / "bgTrace2").write_bytes(content[:-3])
    done = mpi(
        3,
        SCRIPTS / "rewritelog",
        "rewrite",
        logs,
        tmp_path / "out",
        "--engine",
        "mpi",
        "--dilation",
        "2",
    )
    assert done.returncode != 0
    assert done.stdout == ""
    assert "bgTrace2, byte" in done.stderr
    assert "PE 11, SEB 39" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"in", "timings"}


def test_each_rank_flushes_what_it_wrote(logs: Path, tmp_path: Path) -> None:
    """A rank may be the only one whose system knows that its data never reached the disk."""
    failing = textwrap.dedent("""
        import errno, os
        from mpi4py import MPI
        def full(_file):
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
        if MPI.COMM_WORLD.Get_rank() == 2:
            os.fsync = full
    """)
    done = mpi(3, sys.executable, "-c", failing + DRIVER, tmp_path, "mpi")
    assert done.returncode != 0
    assert "cannot be written: Disk quota exceeded" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"in", "timings"}


def test_what_rank_0_refuses_ends_all_ranks(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for wrong, word in ((["--model", "nonsense"], "unknown model"), (["--jobs", "2"], "--jobs")):
        done = mpi(3, SCRIPTS / "rewritelog", "rewrite", logs, out, "--engine", "mpi", *wrong)
        assert done.returncode != 0
        assert word in done.stderr
        assert not out.exists()


def ranks_of(mark: str) -> dict[int, int]:
    """The processes of a marked job, by rank."""
    processes = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has gone, or is another user's
            continue
        if f"MARK={mark}".encode() in variables and any(b"rewritelog" in word for word in words):
            for variable in variables:
                if variable.startswith(b"PMI_RANK="):
                    processes[int(variable[9:])] = int(folder.name)
    return processes


REWRITE = ("rewrite", "--dilation", "2")
"""A command, and its options."""


def signalled(
    logs: Path,
    work: Path,
    rank: int,
    number: signal.Signals,
    after_s: float,
    command: tuple[str, ...] = REWRITE,
) -> None:
    """Run a command on three ranks, one of which gets a signal: it must end, and leave nothing."""
    work.mkdir(exist_ok=True)
    mark = f"{os.getpid()}-{random.getrandbits(40)}"
    job = subprocess.Popen(
        [str(MPIEXEC), "-n", "3", str(SCRIPTS / "rewritelog"), command[0], str(logs),
         str(work / "out"), "--engine", "mpi", *command[1:], "--quiet", "--force"],
        env={**os.environ, "MARK": mark}, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        while len(processes := ranks_of(mark)) < 3 and job.poll() is None:
            time.sleep(0.01)
        time.sleep(after_s)
        sent = rank in processes and job.poll() is None
        if sent:
            os.kill(processes[rank], number)
        _, errors = job.communicate(timeout=HANGS_S)
        left = {path.name for path in work.iterdir()}
        if number != signal.SIGKILL:
            assert left <= {"out"}
        assert "out" in left or (sent and job.returncode != 0), errors
    except ProcessLookupError:  # the job was done before the signal was sent
        job.communicate(timeout=HANGS_S)
        assert job.returncode == 0
    finally:
        for process in ranks_of(mark).values():
            os.kill(process, signal.SIGKILL)
        job.kill()
        job.communicate()


@pytest.mark.parametrize(("rank", "after_s"), [(1, 0.05), (0, 0.4), (2, 0.8)])
def test_a_rank_that_is_ended_ends_the_job(
    rank: int, after_s: float, logs: Path, tmp_path: Path
) -> None:
    signalled(logs, tmp_path / "work", rank, signal.SIGTERM, after_s)


def test_a_hangup_ends_a_job_whatever_the_mpi_library_uses_it_for() -> None:
    """UCX took it, printed hundreds of debug messages, and the job went on."""
    hung_up = textwrap.dedent("""
        import os, signal
        from rewritelog.running import lead
        from rewritelog.stopping import stop_on_signals
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        stop_on_signals()
        def hang_up():
            os.kill(os.getpid(), signal.SIGHUP)
            print("it goes on")
        lead("mpi", 0, hang_up)
    """)
    done = mpi(2, sys.executable, "-c", hung_up)
    assert done.returncode != 0
    assert done.stdout == ""


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_rank_that_is_ended_at_any_moment_ends_the_job(
    number: signal.Signals, logs: Path, tmp_path: Path
) -> None:
    draw = random.Random(int(number))  # noqa: S311
    for step in range(15):
        signalled(logs, tmp_path / "work", step % 3, number, draw.uniform(0, 3))


def test_a_rank_that_is_ended_while_it_sends_large_results_leaves_nothing(tmp_path: Path) -> None:
    """Its notice to rank 0 waited behind the results: the job was aborted, and a draft stayed."""
    logs = tmp_path / "in"
    rewritelog.synth(logs, pes=256, sebs=4000, files=4)
    for after_s in (0.7, 0.9, 1.1, 1.3):
        export = ("export", "--to", "goal")
        signalled(logs, tmp_path / "work", 1, signal.SIGTERM, after_s, export)


def test_ranks_without_launcher_end_when_rank_0_is_killed() -> None:
    """The launcher would have ended them: here its process, their parent, is killed, too."""
    killed = textwrap.dedent("""
        import os, signal
        from rewritelog.running import lead
        def kill():
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        lead("mpi", 0, kill)
    """)
    mark = f"{os.getpid()}-{random.getrandbits(40)}"
    job = subprocess.Popen(
        [str(MPIEXEC), "-n", "3", sys.executable, "-c", killed],
        env={**os.environ, "MARK": mark}, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        job.wait(timeout=HANGS_S)  # it waits for the ranks' output to be closed
        assert not ranks_of(mark)
    finally:
        for process in ranks_of(mark).values():
            os.kill(process, signal.SIGKILL)
        job.kill()
        job.wait()
