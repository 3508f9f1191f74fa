"""Whole texts that the commands print; `pytest --update-golden` writes the files anew."""

from __future__ import annotations

import shutil
from pathlib import Path

import commands
import pytest
from golden.comparing import Golden, same
from logbuilder import bracket, mark, message, seb, write_logs, write_params, write_timings

TIMINGS = ("--timings", "cells/timings.txt")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Return what compares texts with the golden files."""
    return Golden(request.config.getoption("update_golden"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, sample_logs: Path) -> Path:
    """A folder with sample logs, a model of theirs, a rewritten set and a damaged one."""
    folder = tmp_path_factory.mktemp("golden")
    for name in ("cells", "ampi-halo"):
        shutil.copytree(sample_logs / name, folder / name)
    for words in (
        ("fit", "cells/timings.txt", "-o", "model.json"),
        ("rewrite", "cells", "predicted", "--fitted", "model.json", "--dilation", "0.5"),
    ):
        assert commands.rewritelog(*words, cwd=folder).returncode == 0
    _damaged(folder / "damaged")
    return folder


def _damaged(folder: Path) -> None:
    """Every kind of thing that a report has a warning or a finding for, in a few SEBs."""
    late = [message(0.5, 0.25, msg_id=1), message(9.0, msg_id=2), message(0.5, msg_id=2)]
    first = [
        seb(0, 1, messages=late, events=bracket(0.2, 0.6)),
        seb(1, 2, events=[mark(b"endTraceBigSim\0", 0.5), mark(b"startTraceBigSim\0", 0.6)]),
        seb(2, 3, backward=[5], exec_time=0.5),
        seb(3, 4, events=[*bracket(0.1, 0.2), *bracket(0.5, 0.9)], backward=[0]),
        seb(5, -1, name=b"the end"),
    ]
    write_logs(folder, [first, [seb(0, 1, name=b"k", events=bracket(0.25, 0.75))]])
    write_params(folder, 0, (0, "k", 2), (3, "k", 3), (3, "other", 1, 1), (77, "k", 1))
    write_params(folder, 1, (0, "k", 900))
    with (folder / "param.1").open("a") as file:
        file.write("1 TRACEBIGSIM: event:{ torn\n")
    lines = [("k", 0.1 * p, float(p)) for p in range(1, 12)] + [("k", 1.0, 2.0, 3.0)]
    with write_timings(folder / "timings.txt", *lines).open("a") as file:
        file.write("TRACEBIGSIM: event:{ k } time:{ x } params:{ 1 }\n")


COMMANDS: dict[str, tuple[str, ...]] = {
    "rewrite-constant": ("rewrite", "cells", "--dry-run", "--speedup", "2"),
    "rewrite-auto": ("rewrite", "cells", "--dry-run", *TIMINGS, "--dilation", "0.5"),
    "rewrite-least-squares": (
        "rewrite",
        "cells",
        "--dry-run",
        "--model",
        "least-squares",
        *TIMINGS,
        "--basis",
        "linear",
        "--spread",
        "residual",
    ),
    "rewrite-sampled": (
        "rewrite",
        "cells",
        "--dry-run",
        "--model",
        "sampled",
        *TIMINGS,
        "--fraction",
        "0.25",
    ),
    "rewrite-fitted": ("rewrite", "cells", "--dry-run", "--fitted", "model.json"),
    "rewrite-damaged": ("rewrite", "damaged", "--dry-run", "--timings", "damaged/timings.txt"),
    "fit-auto": ("fit", "cells/timings.txt"),
    "fit-least-squares": ("fit", "cells/timings.txt", "--model", "least-squares"),
    "fit-torn": ("fit", "damaged/timings.txt", "-o", "torn.json"),
    "predict": ("predict", "model.json", "cells/param.0", "cells/param.1"),
    "verify": ("verify", "model.json", "cells/timings.txt", "--worst", "3"),
    "compare": ("compare", "cells/timings.txt", "--models", "least-squares,constant"),
    "sample": ("sample", "cells", *TIMINGS, "--fraction", "0.25"),
    "info": ("info", "cells"),
    "info-ampi-halo": ("info", "ampi-halo"),
    "info-damaged": ("info", "damaged"),
    "check": ("check", "cells"),
    "check-damaged": ("check", "damaged"),
    "rules": ("rules",),
    "diff-same": ("diff", "cells", "cells"),
    "diff-predicted": ("diff", "cells", "predicted"),
    "diff-others": ("diff", "damaged", "cells"),
    "dump": ("dump", "damaged", "--pe", "0"),
    "dump-jsonl": ("dump", "damaged", "--pe", "1", "--json"),
    "convert": ("convert", "cells", "converted", "--byte-order", "big"),
    "synth": ("synth", "made", "--pes", "4", "--sebs", "50"),
    "no-command": (),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_prints(name: str, folder: Path, golden: Golden) -> None:
    done = commands.rewritelog(*COMMANDS[name], cwd=folder)
    words = " ".join(("$ rewritelog", *COMMANDS[name]))
    errors = "".join(f"stderr: {line}\n" for line in done.stderr.splitlines())
    golden.check(name, f"{words}\n{done.stdout}{errors}exit code {done.returncode}\n")


def test_numbers_may_differ_in_last_digits_and_nothing_else() -> None:
    assert same("a 1.2345 of 10 %\n", "a  1.2346 of 10 %\n")
    assert same("range p1 to 0.5 s", "range p1 to 0.50001 s")
    for other in ("a 1.3 of 10 %\n", "a 1.2345 of 11 %\n", "b 1.2345 of 10 %\n", "a 1.2345 of 10"):
        assert not same("a 1.2345 of 10 %\n", other)
