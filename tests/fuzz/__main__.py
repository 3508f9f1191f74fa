"""`python -m fuzz` in `tests/`: every target for a time on all cores; `--core` for those of C.

An input for which something did not hold joins the corpus, which the tests run through.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from fuzz.corpus import CORPUS, TARGET_NAMES, keep


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m fuzz", description=__doc__)
    parser.add_argument(
        "--target", action="append", choices=TARGET_NAMES, help="one target; repeatable"
    )
    parser.add_argument("--seconds", type=float, default=60, help="for all targets together")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--seed", type=int, default=time.time_ns(), help="seed of the mutants")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="what is kept, and grows")
    parser.add_argument(
        "--core", action="store_true", help="the compiled cores, under sanitizers, instead"
    )
    return parser.parse_args()


def fuzz(name: str, seconds: float, seed: int, corpus: Path) -> bool:
    """Run mutants of one target for a time and print their number; return whether all held."""
    from fuzz.targets import TARGETS, BrokenError  # noqa: PLC0415 - after the engine's choice

    done = good = 0
    with closing(TARGETS[name]()) as target:
        began = time.monotonic()
        while not done or time.monotonic() - began < seconds:
            rng = np.random.default_rng([seed, done])
            try:
                good += target.run(rng, target.batch)
            except BrokenError as error:
                kept = keep(corpus, name, error.data)
                print(f"{name}: {error} ({kept})", flush=True)
                return False
            done += target.batch
    took = time.monotonic() - began
    print(f"{name}: {done:,} mutants, {good:,} of them good inputs, in {took:.0f} s", flush=True)
    return True


def fuzz_all(names: Sequence[str], arguments: argparse.Namespace) -> bool:
    """Run each target in a process of its own, some at once; return whether all held."""
    each_s = arguments.seconds * min(arguments.jobs, len(names)) / len(names)
    waiting, held = list(names), True
    running: dict[str, subprocess.Popen[bytes]] = {}
    while waiting or running:
        while waiting and len(running) < arguments.jobs:
            name = waiting.pop(0)
            more = [
                f"--seconds={each_s}",
                f"--seed={arguments.seed}",
                f"--corpus={arguments.corpus}",
            ]
            command = [sys.executable, "-m", "fuzz", "--target", name, "--jobs=1", *more]
            running[name] = subprocess.Popen(command, cwd=Path(__file__).parents[1])
        time.sleep(0.1)
        for name in [name for name, process in running.items() if process.poll() is not None]:
            code = running.pop(name).returncode
            if code not in (0, 1):
                print(f"{name}: the process ended with {code} (seed {arguments.seed})", flush=True)
            held = held and code == 0
    return held


def main() -> None:
    """Fuzz what is asked for; end with 1 where something did not hold."""
    arguments = _arguments()
    names = arguments.target or TARGET_NAMES
    faulthandler.enable()
    if arguments.core:
        from fuzz.cores import TARGETS, fuzz_cores  # noqa: PLC0415 - it loads the package

        held = fuzz_cores(
            TARGETS, arguments.seconds, arguments.seed, arguments.corpus, arguments.jobs
        )
        sys.exit(not held)
    if len(names) == 1:
        sys.exit(not fuzz(names[0], arguments.seconds, arguments.seed, arguments.corpus))
    else:
        sys.exit(not fuzz_all(names, arguments))


if __name__ == "__main__":
    main()
