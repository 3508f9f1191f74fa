"""`python -m benchmarks.replaying`: how the time and memory of `replay` grow with a log set.

The table of docs/measurements/replaying.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from benchmarks.process import ROOT, module, rewritelog, run, working_folder
from benchmarks.results import Table, add_out, machine, put_into

SEBS = (100_000, 1_000_000, 10_000_000)
PES = 1000
MESSAGES = 0.8
"""Of a SEB."""
MOST_FOR_ALL_GAINS = 1_000_000
ROUNDS = 2
SMALL = ROOT / "sample_logs" / "cells"
HEAD = (
    "SEBs",
    "messages",
    "loading",
    "replays",
    "replay and report",
    "CPU time of it",
    "per SEB and replay",
    "peak memory",
)


def main() -> None:
    """Measure, print, and put the table into a document."""
    parser = argparse.ArgumentParser("python -m benchmarks.replaying", description=__doc__)
    add_out(parser)
    parser.add_argument("--work", type=Path, help="the folder to make logs in; it needs 2 GB")
    arguments = parser.parse_args()
    rows = []
    with working_folder(arguments.work) as folder:
        for sebs in SEBS:
            print(f"measuring: {sebs:,} SEBs", file=sys.stderr, flush=True)
            logs = folder / "logs"
            size = ("--pes", str(PES), "--sebs", str(sebs // PES), "--messages", str(MESSAGES))
            run(rewritelog("synth", logs, *size, "--quiet"))
            rows.append(_row(logs))
            if sebs <= MOST_FOR_ALL_GAINS:
                rows.append(_row(logs, "10"))
            shutil.rmtree(logs)
    title = f"The quickest of {ROUNDS} runs, on {PES:,} PEs:"
    text = f"{machine()}\n\n{Table(title, HEAD, rows).text()}"
    print(text)
    if arguments.out:
        put_into(arguments.out, text)


def _row(logs: Path, *gains: str) -> list[str]:
    ran = [run(module("child_replaying", SMALL, logs, *gains)) for _ in range(ROUNDS)]
    replays = [json.loads(process.output) for process in ran]
    best = min(replays, key=lambda replay: float(replay["replay_s"]))
    each_ns = best["replay_cpu_s"] / best["sebs"] / best["replays"] * 1e9
    return [
        f"{best['sebs']:,}",
        f"{best['messages']:,}",
        f"{min(replay['load_s'] for replay in replays):.1f} s",
        f"{best['replays']}",
        f"{best['replay_s']:.1f} s",
        f"{best['replay_cpu_s']:.1f} s",
        f"{each_ns:.0f} ns",
        f"{max(process.peak_bytes for process in ran) / 1e6:,.0f} MB",
    ]


if __name__ == "__main__":
    main()
