"""Under `NUMBA_BOUNDSCHECK=1`, as CI runs the kernels' tests once, a stray load is an exception."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import numpy as np
from rewritelog.format import layout
from rewritelog.kernels import walk

lay = layout(6, "little").kernel
buffer, at = np.zeros(4 * lay.count_bytes + 4, dtype=np.uint8), {at}
fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
print(walk.advance(buffer, at - lay.seb_bytes, at + 500, 1, lay, fault))
"""


@pytest.mark.long
@pytest.mark.parametrize(("at", "fine"), [(0, True), (4, True), (5, False), (-1, False)])
def test_a_load_outside_of_the_buffer_is_an_error(at: int, fine: bool, tmp_path: Path) -> None:
    """The four counts of an empty SEB begin at `at`; the kernel is told that there is room."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(at=at)],
        env=os.environ
        | {
            "NUMBA_BOUNDSCHECK": "1",
            "NUMBA_CACHE_DIR": str(tmp_path),
            "TRACEBIGSIM_KERNELS": "compiled",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode == 0) is fine, done.stderr
    assert ("IndexError: a load of 4 bytes outside of the buffer" in done.stderr) is not fine
