"""`python -m benchmarks.fuzz`: mutants by the million, or coverage-guided with `--coverage`."""

from __future__ import annotations

import argparse
import faulthandler
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np

TARGETS = (
    "timelines",
    "lines",
    "summary",
    "heads",
    "log-set",
    "params",
    "timings",
    "formulas",
    "coefficients",
    "models",
)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument(
        "--target", action="append", choices=TARGETS, help="one target; repeatable [default: all]"
    )
    parser.add_argument("--runs", type=int, default=100_000, help="mutants of each target")
    parser.add_argument("--seed", type=int, default=1, help="the same seed, the same mutants")
    parser.add_argument(
        "--found",
        type=Path,
        default=Path("found"),
        help="the folder for inputs that broke something",
    )
    parser.add_argument(
        "--coverage", action="store_true", help="one target under atheris (pip install atheris)"
    )
    given = parser.parse_args()
    if given.coverage and len(given.target or ()) != 1:
        parser.error("--coverage is for one --target")
    return given


def fuzz(name: str, runs: int, seed: int, found: Path) -> bool:
    """Run mutants of one target and print what they came to; return whether all held."""
    from benchmarks.fuzz.targets import TARGETS as MAKERS  # noqa: PLC0415 - after the engine's choice
    from benchmarks.fuzz.targets import BrokenError  # noqa: PLC0415

    began, done, good = time.monotonic(), 0, 0
    with closing(MAKERS[name]()) as target:
        while done < runs:
            many = min(target.batch, runs - done)
            rng = np.random.default_rng([seed, done])
            try:
                good += target.run(rng, many)
            except BrokenError as error:
                found.mkdir(parents=True, exist_ok=True)
                case = found / f"{name}-{seed}-{done}"
                case.write_bytes(error.data)
                print(f"{name}: {error} (batch from {done:,}; {case})", flush=True)
                return False
            done += many
    took = time.monotonic() - began
    print(f"{name}: {done:,} mutants, {good:,} of them good inputs, in {took:.0f} s", flush=True)
    return True


def main() -> None:
    """Fuzz what is asked for; end with 1 where something did not hold."""
    given = _arguments()
    faulthandler.enable()
    if given.coverage:
        from benchmarks.fuzz.coverage import run  # noqa: PLC0415

        run(given.target[0], given.runs, given.seed, given.found)
        return
    held = [fuzz(name, given.runs, given.seed, given.found) for name in given.target or TARGETS]
    sys.exit(not all(held))


if __name__ == "__main__":
    main()
