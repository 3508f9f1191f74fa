"""Rewritten logs against what the original tool wrote, mended only where it aborts."""

import csv
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blocks import in_blocks

import rewritelog
from rewritelog.commands.durations import RewriteOptions
from rewritelog.rewriting.run import rewrite

SETS = {
    "ampi-halo": "ampi-halo",
    "cells": "cells/emulation",
    "cells-2workers": "cells-2workers",
    "cells-projections": "cells-projections",
    "v0-2004": "versions/v0-2004",
}

SEB_TIMES = {
    "start": "start_time",
    "end": "end_time",
    "exec": "exec_time",
    "recv": "recv_time",
    "eff_recv": "eff_recv_time",
}
MESSAGE_TIMES = {"sent": "send_time", "recv": "recv_time"}

CASES = [
    "ampi-halo_scale_3_shift",
    "cells-2workers_params_1.5_shift",
    "cells-projections_params_0.25_shift",
    "cells_params_0.5_shift",
    "cells_params_1_shift",
    "cells_scale_0.5_keep",
    "cells_scale_2_keep",
    "cells_scale_2_shift",
    "v0-2004_scale_0.5_shift",
]


def options_of(case: str, reference: Path) -> tuple[Path, RewriteOptions]:
    name, model, dilation, recv = case.rsplit("_", 3)
    fitted = {
        "model": "least-squares",
        "model_options": {"basis": "quadratic", "exact_match": "always"},
        "timings": (reference / "cells/timings.txt",),
    }
    options: dict[str, Any] = {"dilation": float(dilation), "recv": recv}
    options |= fitted if model == "params" else {}
    return reference / SETS[name], RewriteOptions(**options)


def assert_times(table: Any, rows: list[dict[str, str]], names: dict[str, str]) -> None:
    assert len(table) == len(rows)
    for column, field in names.items():
        expected = np.array([float(row[column]) for row in rows])
        np.testing.assert_allclose(table[field], expected, rtol=1e-9, atol=1e-15, err_msg=column)


def test_every_case_of_the_reference_is_tested(reference: Path) -> None:
    assert sorted(p.name for p in (reference / "expected/rewritten").iterdir()) == CASES


@pytest.mark.parametrize("block_bytes", [16 << 20, 2000], ids=["whole", "cut"])
@pytest.mark.parametrize("case", CASES)
def test_times_are_those_of_the_original(
    case: str, block_bytes: int, reference: Path, tmp_path: Path
) -> None:
    folder, options = options_of(case, reference)
    rewrite(in_blocks(folder, block_bytes), tmp_path / "out", options)
    logs = rewritelog.open_logs(tmp_path / "out")
    expected = reference / "expected/rewritten" / case
    for table, name, times in (
        (logs.sebs(), "sebs.csv", SEB_TIMES),
        (logs.messages(), "messages.csv", MESSAGE_TIMES),
    ):
        with (expected / name).open() as file:
            assert_times(table, list(csv.DictReader(file)), times)


def test_large_set_has_the_sums_of_the_original(reference: Path, tmp_path: Path) -> None:
    with tarfile.open(reference / "large/cells-1024.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4
        archive.extractall(tmp_path / "in")  # noqa: S202 - it is our own
    (summary,) = (tmp_path / "in").rglob("bgTrace")
    _, options = options_of("cells_params_0.5_shift", reference)
    report = rewrite(summary, tmp_path / "out", options)
    assert sum(line.records for line in report.events) == 122_880
    logs = rewritelog.open_logs(tmp_path / "out")
    sebs, messages = logs.sebs(), logs.messages()
    with (reference / "large/cells-1024_params_0.5_shift.csv").open() as file:
        rows = list(csv.DictReader(file))
    closed = sebs["end_time"] > sebs["start_time"]
    starts = sebs["start_time"][
        np.searchsorted(sebs["pe"] * 2**32 + sebs["seb"], messages["pe"] * 2**32 + messages["seb"])
    ]
    sums = {
        "sebs": np.bincount(sebs["pe"]),
        "messages": np.bincount(messages["pe"], minlength=len(logs.pes)),
        "sum_exec_s": np.bincount(sebs["pe"], weights=sebs["exec_time"] * closed),
        "sum_send_offset_s": np.bincount(
            messages["pe"], weights=messages["send_time"] - starts, minlength=len(logs.pes)
        ),
    }
    for name, values in sums.items():
        expected = np.array([float(row[name]) for row in rows])
        np.testing.assert_allclose(values, expected, rtol=1e-9, err_msg=name)
