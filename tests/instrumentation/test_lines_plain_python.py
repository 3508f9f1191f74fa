"""The kernels as plain Python, where a read outside the text raises instead of reading on.

numba checks no bounds, so this is what shows that the kernels keep them: texts that end anywhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tracebigsim

PROGRAM = r"""
import sys, warnings
warnings.simplefilter("error")
from tracebigsim.lines import scan

lines = [
    b"  19 TRACEBIGSIM : event:{ a::{b} c } seqno : { 19 } params:{ 53.5e+1 -1e-320 123456.5e9 }",
    b"TRACEBIGSIM: time:{ 0.12345678901234567 } PAPI:{ -3 5 } event:{ k } \r",
    b"TRACEBIGSIM: event:{ k } time_in_cycles:{ 1.5 }  params:{ -inf",
    b"TRACEBIGSIM: event:{ k } params:{ nan( }",
    b"x 99999999999999999999 TRACEBIGSIM ",
    b"99999999999999999999 TRACEBIGSIM: ",
    b"19 TRACEBIGSIM Cell of TRACEBIG 53.0 infinity",
    b"# TRACEBIGSIM:",
    b"TRACEBIGSIM",
    b"TRACEBIGSIM::",
]
for line in lines:
    for cut in range(len(line) + 1):
        for before in (b"", b"7 TRACEBIGSIM k 1\r\n"):
            table = scan(before + line[:cut])
            print(table.events, table.params.tolist(), table.time.tolist(), table.faults)
"""


@pytest.mark.long
def test_no_kernel_reads_outside_the_text() -> None:
    package_folder = str(Path(tracebigsim.__file__).resolve().parents[1])
    printed = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONPATH": package_folder, "TRACEBIGSIM_KERNELS": way},
            capture_output=True,
            text=True,
            check=False,
        )
        for way in ("compiled", "plain")
    ]
    assert [run.stderr for run in printed] == ["", ""]
    assert printed[0].stdout == printed[1].stdout
