"""`python -m benchmarks.faults`: what the tests try for seconds, tried for an hour.

Rewrites killed at hundreds of random moments, disks of any size that are too small, rewrites that
start at once, ten million random SEBs and a sum over a hundred million. The tables go into
docs/measurements/reliability.md with `--out`. Disks are mounted, which root alone may do.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.process import ROOT, rewritelog, run, working_folder
from benchmarks.results import add_out, file_system, machine, put_into

sys.path.insert(0, str(ROOT / "tests"))

import numpy as np
from faulty import (
    SIGNALS,
    Killing,
    Start,
    Zygote,
    content,
    ran,
    small_disk,
    started,
    started_quietly,
)
from many_sebs import write_many
from random_sebs import BATCH, predict_detailed, random_batch

from rewritelog import open_logs
from rewritelog.commands.durations import RewriteOptions
from rewritelog.rewriting.run import rewrite
from rewritelog.rewriting.statistics import DurationSum

PAGE_BYTES = 4096


@dataclass(frozen=True)
class Scale:
    """How much is tried."""

    moments: int
    """Kills by each signal."""
    commands: int
    """The same for whole commands, most of whose life is the start."""
    writing: int
    """The same for the time in which files are written."""
    disks: int
    races: int
    random_sebs: int
    summed_sebs: int


FULL = Scale(200, 14, 34, 100, 40, 10_000_000, 100_000_000)
QUICK = Scale(4, 2, 4, 8, 4, 200_000, 1_000_000)


@dataclass(frozen=True)
class Line:
    """A line of the table of faults."""

    trial: str
    tried: int
    seen: str
    lost: int

    def text(self) -> str:
        """Return the line in Markdown."""
        return f"| {self.trial} | {self.tried:,} | {self.seen} | {self.lost:,} |"


@dataclass(frozen=True)
class Yard:
    """Where things are broken."""

    folder: Path
    logs: Path
    scale: Scale

    @property
    def timings(self) -> Path:
        """The timings of the logs."""
        return self.logs / "timings.txt"

    @property
    def words(self) -> tuple[str | Path, ...]:
        """How the logs are rewritten."""
        return ("--model", "least-squares", "--timings", self.timings)


def killed(yard: Yard) -> list[Line]:
    """Kill rewrites at random moments, by every signal, into a new place and over an old set."""
    lines: list[Line] = []
    with Zygote(yard.logs, yard.timings) as zygote:
        runs: list[tuple[str, Start, int, bool]] = [
            ("at work", zygote.start, yard.scale.moments, False),
            ("as a whole command", started_quietly, yard.scale.commands, False),
            ("while it writes", zygote.start, yard.scale.writing, True),
        ]
        for how, start, moments, writing in runs:
            for replacing in (False, True):
                out = yard.folder / f"killed-{len(lines)}" / "out"
                killing = Killing(yard.logs, out, yard.words, start, replacing, writing)
                tried = moments * len(SIGNALS)
                outcomes = killing.run(tried, seed=len(lines) + 1)
                over = "over an old set (`--force`)" if replacing else "into a new place"
                names = ", ".join(signal.name for signal in SIGNALS)
                lines.append(
                    Line(
                        f"killed {how}, {over}: {names} in turn",
                        tried,
                        _of_kills(outcomes),
                        outcomes["lost"] + outcomes["not run again"],
                    )
                )
                shutil.rmtree(out.parent)
    return lines


def _of_kills(outcomes: Counter[str]) -> str:
    ended = sum(count for name, count in outcomes.items() if name.endswith("it had ended"))
    left = sum(count for name, count in outcomes.items() if name.endswith("beside the output"))
    return (
        f"{outcomes['the output is as it was']:,} as before, "
        f"{outcomes['the output is the new set']:,} the new set ({ended:,} had ended); "
        f"{left:,} left something beside it, which the next run removed"
    )


def no_room(yard: Yard) -> list[Line]:
    """Rewrite onto disks of random sizes, half of them with an old set that must stay."""
    draw = random.Random(7)  # noqa: S311 - nothing secret
    whole_bytes = sum(path.stat().st_size for path in yard.logs.iterdir())
    seen: Counter[str] = Counter()
    lost = 0
    for number in range(yard.scale.disks):
        pages = int(2 ** draw.uniform(2, np.log2(1.3 * whole_bytes / PAGE_BYTES)))
        with small_disk(yard.folder / f"disk-{number}", pages * PAGE_BYTES) as disk:
            if number % 2:
                (disk / "out").mkdir()
                (disk / "out/mine").write_text("x")
            before = content(disk / "out")
            code, errors = ran(
                ["rewrite", yard.logs, disk / "out", "--dilation", "2", "--force", "--quiet"]
            )
            done = code == 0
            explained = "No space left on device" in errors and "Traceback" not in errors
            stays = {path.name for path in disk.iterdir()} == ({"out"} if before or done else set())
            same = done or content(disk / "out") == before
            seen["it fitted" if done else "refused"] += 1
            lost += not (stays and same and (done or explained))
    summary = f"{seen['refused']:,} refused with the reason, {seen['it fitted']:,} fitted"
    return [Line("disk full: tmpfs of random sizes", yard.scale.disks, summary, lost)]


def races(yard: Yard) -> list[Line]:
    """Start two rewrites to one output at once."""
    lost, busy = 0, 0
    expected = {}
    for factor in ("2", "3"):
        code, errors = ran(["rewrite", yard.logs, yard.folder / factor, "--dilation", factor])
        if code != 0:
            raise RuntimeError(errors)
        expected[factor] = content(yard.folder / factor)
    out = yard.folder / "raced" / "out"
    for _ in range(yard.scale.races):
        out.parent.mkdir()
        running = {
            factor: started(["rewrite", yard.logs, out, "--dilation", factor, "--quiet"])
            for factor in expected
        }
        errors_of = {factor: process.communicate()[1] for factor, process in running.items()}
        winners = [factor for factor, process in running.items() if process.returncode == 0]
        alone = len(winners) == 1 and content(out) == expected[winners[0]]
        busy += any("is writing it" in errors for errors in errors_of.values())
        lost += not (alone and len(list(out.parent.iterdir())) == 1)
        shutil.rmtree(out.parent)
    summary = (
        f"one won each time; {busy:,} times the other named its process, else that OUT is taken"
    )
    return [Line("two rewrites to one output, started at once", yard.scale.races, summary, lost)]


def random_times(yard: Yard) -> list[Line]:
    """Rewrite random SEBs, and judge where their times went."""
    draw = np.random.default_rng(2026)
    broken: Counter[str] = Counter()
    batches = yard.scale.random_sebs // BATCH
    began = time.perf_counter()
    for number in range(batches):
        before = random_batch(draw)
        broken.update(predict_detailed(before, before.rewritten(keep_recv=number % 2 == 1)))
    summary = f"{len(broken)} promises each, in {time.perf_counter() - began:.0f} s"
    return [Line("random SEBs, regions down to one ulp", batches * BATCH, summary, broken.total())]


def sums(yard: Yard) -> list[Line]:
    """Sum the durations of many SEBs, with any threads and blocks, and compare with `math.fsum`."""
    times = 10
    sebs = yard.scale.summed_sebs // (8 * times * 4)
    folder = yard.folder / "many"
    written = write_many(folder, 1, files=8, times=times, workers=4, sebs=sebs)
    exact = {DurationSum.OLD: written.sum_s(), DurationSum.NEW: written.sum_s(0.7)}
    worst, answers = 0.0, set()
    for jobs, block_bytes in ((1, 16 << 20), (2, 16 << 20), (2, 1 << 20), (4, 64 << 20)):
        logs = replace(open_logs(folder), block_bytes=block_bytes)
        statistics = rewrite(logs, None, RewriteOptions(dilation=0.7, jobs=jobs)).statistics
        answers.add(tuple(statistics.seconds(kind) for kind in exact))
        worst = max([worst, *(abs(statistics.seconds(kind) / exact[kind] - 1) for kind in exact)])
    shutil.rmtree(folder)
    summary = (
        f"off `math.fsum` by {worst:.1g} relative; {len(answers)} answer for 1, 2 and 4 threads "
        "and blocks of 1, 16 and 64 MiB"
    )
    wrong = int(worst > 1e-12) + len(answers) - 1
    tried = sebs * 8 * times * 4
    return [Line("sums of durations from 1e-12 to 1e4 s", tried, summary, wrong)]


TRIALS: dict[str, Callable[[Yard], list[Line]]] = {
    "killed": killed,
    "no-room": no_room,
    "races": races,
    "times": random_times,
    "sums": sums,
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="run each trial a few times")
    parser.add_argument(
        "--only",
        action="append",
        choices=TRIALS,
        help="one kind of trial; repeatable [default: all]",
    )
    add_out(parser)
    parser.add_argument("--work", type=Path, help="the folder to work in; sums need 2 GB")
    return parser.parse_args()


def main() -> None:
    """Try everything; end with 1 where something was lost."""
    arguments = _arguments()
    scale = QUICK if arguments.quick else FULL
    with working_folder(arguments.work) as folder:
        synth = run(
            rewritelog("synth", folder / "logs", "--pes", "32", "--sebs", "1500", "--files", "4")
        )
        yard = Yard(folder, folder / "logs", scale)
        lines = []
        for trial in arguments.only or TRIALS:
            print(f"trying: {trial}", file=sys.stderr, flush=True)
            lines += TRIALS[trial](yard)
            print("\n".join(line.text() for line in lines), file=sys.stderr, flush=True)
        notes = f"- logs: {synth.output.strip()}\n- file system: {file_system(folder)}"
    table = ["| what | tried | seen | lost or wrong |", "| --- | --- | --- | --- |"]
    text = "\n".join([machine(), notes, "", *table, *(line.text() for line in lines)])
    print(text)
    if arguments.out:
        put_into(arguments.out, text)
    if any(line.lost for line in lines):
        sys.exit(1)


if __name__ == "__main__":
    main()
