"""What is measured with: made log sets, the smallest sample, and a file of timing lines."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from functools import cache, partial
from pathlib import Path

from benchmarks.process import PYTHON, ROOT, Job, Ran, rewritelog, run

SAMPLE = ROOT / "sample_logs" / "cells"
PES_OF_A_GB, SEBS, FILES = 2048, 3400, 8
FIT_LINES, FIT_PARAMS = 1_000_000, 8
BASE = ["--dilation", "0.5"]
_LEFT_BYTES = 4 << 30
_START_UP_S = 0.6
"""A copy waits for as long as a rewrite takes to start: meanwhile a system takes memory back."""


class Workshop:
    """Makes what measurements ask for, once each, in a folder that its owner removes."""

    def __init__(self, folder: Path, scale: float) -> None:
        self.folder = folder
        self.scale = scale
        """The size of the large log set in GB."""
        self.made: dict[str, str] = {}
        """What synth said of each set."""
        self.logs = cache(self._logs)
        self._holders: list[subprocess.Popen[bytes]] = []

    @property
    def small_scale(self) -> float:
        """The size in GB of the log set that the large one's memory is compared with."""
        return self.scale / 20

    def _logs(self, scale: float, order: str = "little") -> Path:
        """Return a log set of about `scale` GB."""
        out = self.folder / f"logs-{scale:g}-{order}"
        pes = max(FILES, round(PES_OF_A_GB * scale))
        ran = run(
            rewritelog(
                "synth",
                out,
                "--pes",
                str(pes),
                "--sebs",
                str(SEBS),
                "--files",
                str(FILES),
                "--byte-order",
                order,
            )
        )
        self.made[out.name] = ran.output.strip()
        return out

    def timing_lines(self) -> Path:
        """Write a million timing lines of an event with 8 parameters, noisy and seeded."""
        path = self.folder / "timing-lines.txt"
        draw = random.Random(1)  # noqa: S311 - nothing secret
        with path.open("w", encoding="ascii") as file:
            for _ in range(FIT_LINES):
                params = [draw.randrange(1, 1000) for _ in range(FIT_PARAMS)]
                time_s = 1e-6 * (1 + draw.random() / 100) * sum(params)
                numbers = " ".join(f"{param}.000000" for param in params)
                file.write(
                    f"TRACEBIGSIM: event:{{ solve }}  time:{{ {time_s:.9f} }}  "
                    f"params:{{ {numbers} }}\n"
                )
        return path

    def copying(self, logs: Path, *, flush: bool = False) -> Job:
        """Return a job: a plain copy of the timeline files, which are what a rewrite writes."""
        return partial(self._copy, logs, flush)

    def rewriting(self, logs: Path, *words: str | Path) -> Job:
        """Return a job: a rewrite of the logs; its output is removed when it was timed."""
        return partial(self._rewrite, logs, *words)

    def _rewrite(self, logs: Path, *words: str | Path) -> Ran:
        """Rewrite the logs; remove the output."""
        self._settle(logs)
        out = self.folder / "rewritten"
        ran = run(rewritelog("rewrite", logs, out, *BASE, *words))
        shutil.rmtree(out)
        return ran

    def _settle(self, logs: Path) -> None:
        """Copy large logs and remove the copy, so that every timed run comes after the same.

        How fast the system hands out memory for a file depends on what was freed before: memory
        that has long been free a virtual machine must first ask its host for, at a tenth of the
        speed. So most of the free memory is held, as other work would, and what the copy frees is
        what the timed run gets.
        """
        if logs != SAMPLE:
            self._hold_all_but(max(2 * timeline_bytes(logs), _LEFT_BYTES))
            self._copied(logs)

    def _hold_all_but(self, left_bytes: int) -> None:
        more = _free_bytes() - left_bytes
        if more > left_bytes // 2:
            command = [PYTHON, "-m", "benchmarks.child_holding", str(more)]
            holder = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            _first_line(holder)
            self._holders.append(holder)

    def close(self) -> None:
        """Give back the memory that was held."""
        while self._holders:
            self._holders.pop().communicate()

    def _copy(self, logs: Path, flush: bool) -> Ran:
        self._settle(logs)
        time.sleep(_START_UP_S)
        return self._copied(logs, flush=flush)

    def _copied(self, logs: Path, *, flush: bool = False) -> Ran:
        out = self.folder / "copy"
        out.mkdir()
        ran = run(["cp", "--reflink=never", *sorted(logs.glob("bgTrace*")), out])
        if flush:
            ran = ran.then(run(["sync", *sorted(out.iterdir()), out]))
        shutil.rmtree(out)
        return ran


def fitted(logs: Path, model: str = "least-squares") -> list[str | Path]:
    """Return the options of a rewrite with a fitted model and the timings beside the logs."""
    return ["--model", model, "--timings", logs / "timings.txt"]


def timeline_bytes(logs: Path) -> int:
    """Return the size of a set's timeline files together."""
    return sum(path.stat().st_size for path in logs.glob("bgTrace?*"))


def _first_line(process: subprocess.Popen[bytes]) -> bytes:
    """Wait for the first line that a process prints."""
    assert process.stdout is not None
    return process.stdout.readline()


def _free_bytes() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
