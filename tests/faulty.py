"""Rewrites that are killed, crowded out or run out of room, and what is left of them."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

SCRIPT = Path(sysconfig.get_path("scripts")) / "rewritelog"

SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)

HANGS_S = 1800
"""What has not ended after that time hangs: on no machine is it only slow."""


class Running(Protocol):
    """A process that runs rewritelog."""

    def send_signal(self, number: int, /) -> None: ...
    def wait(self) -> int: ...


Start = Callable[[Sequence[str | Path]], Running]
"""Starts rewritelog with some words."""


def started(words: Sequence[str | Path], output: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """Start the command as a user would; it obeys SIGINT even where this process does not."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return subprocess.Popen(
        [SCRIPT, *words], stdin=subprocess.DEVNULL, stdout=output, stderr=output, text=True
    )


def started_quietly(words: Sequence[str | Path]) -> Running:
    """Start the command with nowhere to print to."""
    return started(words, subprocess.DEVNULL)


class Zygote:
    """Starts runs that have nothing to import (see `zygote.py`), one at a time."""

    def __init__(self, logs: Path, timings: Path) -> None:
        self._words = (logs, timings)

    def __enter__(self) -> Zygote:
        self._mother = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("zygote.py"), *self._words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_error: object) -> None:
        self._mother.communicate()

    def start(self, words: Sequence[str | Path]) -> Running:
        """Start a run."""
        assert self._mother.stdin is not None
        self._mother.stdin.write(json.dumps([str(word) for word in words]) + "\n")
        self._mother.stdin.flush()
        return _Forked(self.answer(), self)

    def answer(self) -> int:
        """Wait for what is told next of a run."""
        assert self._mother.stdout is not None
        return int(self._mother.stdout.readline())


@dataclass(frozen=True)
class _Forked:
    process: int
    zygote: Zygote

    def send_signal(self, number: int, /) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.process, number)

    def wait(self) -> int:
        return self.zygote.answer()


def ran(words: Sequence[str | Path]) -> tuple[int, str]:
    """Run the command; return its exit code and what it printed as an error."""
    process = started(words)
    _, errors = process.communicate(timeout=HANGS_S)
    return process.returncode, errors


def content(folder: Path) -> str | None:
    """Return a digest of a folder's names and bytes; None where there is no such folder."""
    if not folder.is_dir():
        return None
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        digest.update(f"{path.name} {len(data)} ".encode() + data)
    return digest.hexdigest()


@dataclass(frozen=True)
class Killing:
    """Rewrites of one log set into one output, each killed at a random moment of its life."""

    logs: Path
    out: Path
    words: tuple[str | Path, ...]
    """How the logs are rewritten."""
    start: Start
    replacing: bool
    """Whether the output is there before, and replaced with `--force`."""
    writing: bool = False
    """Whether the moments lie in the part of its life in which it writes."""

    def run(self, moments: int, seed: int) -> Counter[str]:
        """Kill as often as asked; return how often each thing was seen, `lost` among them.

        Signals take turns; moments lie evenly from the start to a little after the usual end.
        """
        self.out.parent.mkdir()
        outcomes: Counter[str] = Counter(dict.fromkeys(("lost", "not run again"), 0))
        source = content(self.logs)
        if not self._rewrite(self._words(self.words)):
            raise RuntimeError("a rewrite that nobody kills fails")
        new = content(self.out)
        running = self.start((*self._words(self.words), "--force"))
        self._await_writing()
        began = time.perf_counter()
        running.wait()
        usual_s = time.perf_counter() - began
        draw = random.Random(seed)  # noqa: S311 - nothing secret
        for number in range(moments):
            old = self._before()
            moment_s = draw.uniform(0, 1.05 * usual_s)
            outcomes.update(self._kill(SIGNALS[number % len(SIGNALS)], moment_s, old, new))
            outcomes["lost"] += content(self.logs) != source
        return outcomes

    def _await_writing(self) -> None:
        """Wait for the first thing beside the output, where that is wanted."""
        last = time.perf_counter() + 60
        while self.writing and not self._beside() and time.perf_counter() < last:
            time.sleep(0.0002)

    def _beside(self) -> set[str]:
        return {path.name for path in self.out.parent.iterdir()} - {self.out.name}

    def _words(self, words: Sequence[str | Path]) -> tuple[str | Path, ...]:
        return ("rewrite", self.logs, self.out, *words, "--quiet")

    def _before(self) -> str | None:
        """Put the output into the state before; return its content."""
        if not self.replacing:
            _remove(self.out)
            return None
        self._rewrite((*self._words(("--dilation", "3")), "--force", "--no-flush"))
        return content(self.out)

    def _rewrite(self, words: Sequence[str | Path]) -> bool:
        return self.start(words).wait() == 0

    def _kill(
        self, number: signal.Signals, moment_s: float, old: str | None, new: str | None
    ) -> Iterator[str]:
        force = ("--force",) if self.replacing else ()
        process = self.start((*self._words(self.words), *force))
        self._await_writing()
        time.sleep(moment_s)
        process.send_signal(number)
        ended = process.wait()
        yield f"{number.name}: {'it had ended' if ended == 0 else 'killed'}"
        if self._beside():
            yield f"{number.name}: something left beside the output"
        now = content(self.out)
        yield "the output is the new set" if now == new else "the output is as it was"
        if now not in (old, new):
            yield "lost"
        if now != new or self.replacing:
            again = self._rewrite((*self._words(self.words), *force, "--no-flush"))
            if not again or content(self.out) != new or self._beside():
                yield "not run again"


def _remove(folder: Path) -> None:
    if folder.is_dir():
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[Path]:
    """Mount a file system of that size in memory; raise `OSError` where that is not allowed."""
    folder.mkdir()
    size = ["-o", f"size={size_bytes}"]
    done = subprocess.run(
        ["mount", "-t", "tmpfs", *size, "rewritelog-test", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise OSError(done.stderr.strip())
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def make_read_only(folder: Path) -> None:
    """Mount a small disk anew so that nothing can be written."""
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
