"""Kernels give the same answers compiled and as they are, and small inputs compile nothing."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chosen import by_tier

from rewritelog import LogSet, RewriteOptions, open_logs, rewrite
from rewritelog.converting.convert import convert_logs
from rewritelog.exporting.options import ExportOptions
from rewritelog.exporting.run import export
from tracebigsim import compiled


def _rewritten(logs: LogSet, out: Path) -> object:
    timings = (logs.folder / "timings.txt",)
    options = RewriteOptions(dilation=0.7, model="least-squares", timings=timings)
    report = rewrite(logs.folder, out, options)
    named = rewrite(logs.folder, None, RewriteOptions(dilation_for=(("AMPI*", 3.0),), recv="keep"))
    return report.to_json()["events"], report.statistics, named.statistics


def _converted(logs: LogSet, out: Path) -> object:
    return convert_logs(logs, out, log_version=2, order="big", lossy=True).text()


def _exported(logs: LogSet, out: Path) -> object:
    export(logs, out, ExportOptions("goal"))
    return (out / "program.goal").read_bytes()


JOBS: dict[str, Callable[[LogSet, Path], object]] = {
    "rewrite": _rewritten,
    "convert": _converted,
    "export": _exported,
    "tables": lambda logs, _: [repr(table) for table in (logs.sebs(), logs.events())],
}


@pytest.mark.parametrize("job", by_tier(JOBS, [], ["rewrite", "tables"]))
def test_both_ways_give_the_same(
    job: str,
    sample_logs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = []
    for way in ("compiled", "plain"):
        monkeypatch.setenv("TRACEBIGSIM_KERNELS", way)
        answer = repr(JOBS[job](open_logs(sample_logs / "cells"), tmp_path / way)).replace(way, "")
        written = [path.read_bytes() for path in sorted((tmp_path / way).glob("bgTrace*"))]
        answers.append((answer, written))
    assert answers[0] == answers[1]


SMALL_JOBS = {
    "a rewrite": "from rewritelog import RewriteOptions, rewrite\n"
    "rewrite({logs!r}, None, RewriteOptions(dilation=0.5))\n",
    "a fit to six lines": "import numpy, rewritelog\n"
    "sizes = numpy.array([[8, 10], [10, 20], [20, 20], [20, 40], [60, 30], [40, 38.0]])\n"
    "rewritelog.fit({{'k': (sizes, 1e-6 * sizes.prod(axis=1))}})\n",
}


@pytest.mark.parametrize("job", SMALL_JOBS)
def test_a_small_input_imports_no_compiler(job: str, sample_logs: Path, tmp_path: Path) -> None:
    program = SMALL_JOBS[job].format(logs=str(sample_logs / "cells"))
    program += "import sys; print('numba' in sys.modules)"
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "TRACEBIGSIM_KERNELS": "auto"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False"]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_module_in_the_working_directory_is_not_imported(
    sample_logs: Path, tmp_path: Path
) -> None:
    for name in ("numpy", "typer", "numba", "yaml"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('planted')\n")
    command = [sys.executable, "-m", "rewritelog", "info", str(sample_logs / "cells")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "planted" not in done.stderr
    assert done.returncode == 0


def test_a_large_log_is_expected_to_pay_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_state", compiled._State())
    function: Any = lambda array: array  # noqa: E731
    small = compiled.Kernel(function, lambda _: 1e-9)
    assert compiled._state.takes_plain(small, 1e-3)
    compiled.expect(100 << 20)
    assert not compiled._state.takes_plain(small, 1e-3)


def test_a_kernel_on_disk_makes_no_other_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a run with some kernels at hand would wait for the compiler over little input."""
    monkeypatch.setattr(compiled, "_state", compiled._State())
    function: Any = lambda array: array  # noqa: E731
    at_hand, other = (compiled.Kernel(function, lambda _: 1e-9) for _ in range(2))
    vars(at_hand)["on_disk"], vars(other)["on_disk"] = True, False
    assert not compiled._state.takes_plain(at_hand, compiled.WARM_S + 0.1)
    assert compiled._state.takes_plain(other, compiled.WARM_S + 0.1)
    assert not compiled._state.takes_plain(at_hand, 0.1)
    assert not compiled._state.takes_plain(other, compiled.COLD_S)
    assert not compiled._state.takes_plain(other, 0.1)


def test_what_an_uncompiled_kernel_calls_is_uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even without a rate of its own: else a small fit would wait for the compiler."""
    monkeypatch.setattr(compiled, "_state", compiled._State())
    monkeypatch.setenv("TRACEBIGSIM_KERNELS", "auto")
    called: Any = lambda array: sys.version  # noqa: E731 - no compiler knows sys
    inside = compiled.Kernel(called, None)
    around: Any = lambda array: inside(array)  # noqa: E731, PLW0108 - a kernel has code
    assert compiled.Kernel(around, lambda _: 1e-9)(np.zeros(1)) == sys.version


def test_a_way_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEBIGSIM_KERNELS", "fast")
    with pytest.raises(ValueError, match="'fast' is invalid; valid: auto, compiled, plain"):
        compiled.way()
