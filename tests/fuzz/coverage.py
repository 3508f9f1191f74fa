"""The same checks under atheris, which follows coverage into the kernels as plain Python.

Run as `NUMBA_DISABLE_JIT=1 python -m fuzz --coverage --target timelines`.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

SECONDS_AN_INPUT = 60
LONGEST_BYTES = 4096


def run(name: str, seconds: float, seed: int, corpus: Path) -> None:
    """Fuzz one target; atheris ends the process, and adds what breaks to what is kept."""
    if os.environ.get("NUMBA_DISABLE_JIT") != "1":
        sys.exit("NUMBA_DISABLE_JIT=1 is needed: coverage cannot see into compiled kernels")
    import atheris  # noqa: PLC0415 - only this way of fuzzing needs it

    warnings.simplefilter("ignore", RuntimeWarning)  # overflow of numpy's scalars, meant in hashes
    with atheris.instrument_imports(include=["rewritelog", "tracebigsim"]):
        from fuzz import plain  # noqa: PLC0415
    check, seeds = plain.target(name)
    found = corpus / name
    found.mkdir(parents=True, exist_ok=True)
    inputs = Path(tempfile.mkdtemp())
    for number, data in enumerate(seeds):
        (inputs / f"seed-{number}").write_bytes(data)
    atheris.Setup(
        [
            sys.argv[0],
            f"-max_total_time={seconds:.0f}",
            f"-seed={seed}",
            f"-timeout={SECONDS_AN_INPUT}",
            f"-max_len={LONGEST_BYTES}",
            f"-artifact_prefix={found}/found-",
            str(inputs),
            str(found),
        ],
        _quiet(check),
    )
    atheris.Fuzz()


def _quiet(check: Callable[[bytes], object]) -> Callable[[bytes], None]:
    def one(data: bytes) -> None:
        check(data)

    return one
