"""Commands as whole processes: wall time, peak memory, and turns that share the machine's moods."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
_NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True)
class Ran:
    """One run of a command."""

    wall_s: float
    """From before its start until its end was seen."""
    user_s: float
    """Processor time in its own code, of all threads."""
    system_s: float
    """Processor time in the kernel."""
    peak_bytes: int
    """The most memory that was resident; at least what this process had when it started it."""
    output: str

    def then(self, other: Ran) -> Ran:
        """Return both as one run, the other having followed this."""
        return Ran(
            self.wall_s + other.wall_s,
            self.user_s + other.user_s,
            self.system_s + other.system_s,
            max(self.peak_bytes, other.peak_bytes),
            self.output + other.output,
        )


Job = Callable[[], Ran]


def run(command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> Ran:
    """Run a command from the checkout's folder; raise `RuntimeError` where it fails.

    Python may keep its bytecode, as an installed package has it from the start.
    """
    words = [str(word) for word in command]
    around = {name: value for name, value in os.environ.items() if name not in _NO_BYTECODE}
    with tempfile.TemporaryFile() as out:
        began = time.perf_counter()
        process = subprocess.Popen(words, stdout=out, cwd=ROOT, env={**around, **(env or {})})
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        output = out.read().decode(errors="replace")
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: exit code {process.returncode}\n{output}")
    return Ran(wall_s, usage.ru_utime, usage.ru_stime, usage.ru_maxrss * 1024, output)


def in_turns(jobs: Mapping[str, Job], rounds: int) -> dict[str, list[Ran]]:
    """Run each job once unmeasured, then all of them in each round, every other one backwards."""
    for job in jobs.values():
        job()
    ran: dict[str, list[Ran]] = {name: [] for name in jobs}
    for number in range(rounds):
        names = list(jobs)[:: 1 if number % 2 == 0 else -1]
        for name in names:
            ran[name].append(jobs[name]())
    return ran


def walls(runs: Sequence[Ran]) -> list[float]:
    """Return the wall times in seconds."""
    return [ran.wall_s for ran in runs]


def median_s(runs: Sequence[Ran]) -> float:
    """Return the median of the wall times in seconds."""
    return statistics.median(walls(runs))


def peak(runs: Sequence[Ran]) -> int:
    """Return the largest peak in bytes."""
    return max(ran.peak_bytes for ran in runs)


@contextmanager
def working_folder(within: Path | None) -> Iterator[Path]:
    """Make a folder to work in, within one that is made if need be, and remove it at the end."""
    if within:
        within.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rewritelog-benchmarks-", dir=within) as folder:
        yield Path(folder)


def module(name: str, *words: str | Path) -> list[str | Path]:
    """Return the command line of one of the modules that run in processes of their own."""
    return [PYTHON, "-m", f"benchmarks.{name}", *words]


def rewritelog(*words: str | Path) -> list[str | Path]:
    """Return the command line of rewritelog, from the environment that this process runs in."""
    script = Path(PYTHON).with_name("rewritelog")
    return [script, *words] if script.exists() else [PYTHON, "-m", "rewritelog", *words]
